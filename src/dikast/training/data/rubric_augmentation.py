"""Rubric augmentation, a form of data augmentation: word noise in level descriptions.

With it a judge also uses the numbers and the order of the levels.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dikast.core.rubric import Rubric

_WORD = re.compile(r"[^\W\d_]{2,}")
_MOST = 0.5  # the largest probability that a word changes
_CONSONANTS, _VOWELS = "bcdfghklmnprstvwz", "aeiou"


def other_words(rubric: Rubric, rng: np.random.Generator) -> Rubric:
    """`rubric` with some words of its levels replaced by made-up words, misspelt or dropped, each with a probability up
    to a half that is drawn once.

    A word is changed in the same way at every level. Numbers, punctuation, labels, and texts that would become empty
    are kept, so that a level's meaning follows from them, from the order of the levels and from the remaining words.
    The criterion is unchanged, since nothing else says what to judge. Word noise as in Xie et al. 2017, "Data Noising
    as Smoothing in Neural Network Language Models", here on level descriptions only.
    """
    share = rng.random() * _MOST
    fates: dict[str, str] = {}

    def fate(found: re.Match[str]) -> str:
        word = found[0]
        if word not in fates:
            fates[word] = _CHANGES[int(rng.integers(len(_CHANGES)))](word, rng) if rng.random() < share else word
        return fates[word]

    def told(text: str) -> str:
        return re.sub(r" {2,}", " ", _WORD.sub(fate, text)).strip() or text

    return replace(rubric, levels=tuple((label, told(text)) for label, text in rubric.levels))


def _made_up(word: str, rng: np.random.Generator) -> str:
    syllables = rng.integers(1, 4)
    return "".join(_one(_CONSONANTS, rng) + _one(_VOWELS, rng) for _ in range(syllables)) + _one(_CONSONANTS, rng)


def _misspelt(word: str, rng: np.random.Generator) -> str:
    """The word with one letter dropped, doubled or inserted."""
    at = int(rng.integers(len(word)))
    new = ("", word[at] * 2, word[at] + _one(_CONSONANTS + _VOWELS, rng))[int(rng.integers(3))]
    return word[:at] + new + word[at + 1 :]


def _left_out(word: str, rng: np.random.Generator) -> str:
    return ""


def _one(letters: str, rng: np.random.Generator) -> str:
    return letters[int(rng.integers(len(letters)))]


_CHANGES: tuple[Callable[[str, np.random.Generator], str], ...] = (_made_up, _made_up, _misspelt, _left_out)
