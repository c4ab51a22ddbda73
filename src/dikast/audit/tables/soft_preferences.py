"""Soft preferences: numbers between the two choices, such as 1.3 for a judge that prefers the second by 30 %."""

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from dikast.audit.plan import PairLabels, is_number, spelling
from dikast.audit.statistics.paired_comparison.ranking import Bouts
from dikast.audit.tables.columns import Words
from dikast.core.errors import UserError

Floats = NDArray[np.float64]
NEAREST = "soft preferences count as the choice they are nearest to (the middle is a tie)"


def worth_of(words: Words, labels: PairLabels | None) -> Floats:
    """What the first response earns by each word of a column, in [0, 1]; NaN for a word that is no preference.

    A number counts by where it lies from the first label (1) to the second (0); a spelling of a label is that end
    (of a tie a half), also where it is a word. UserError where the labels of the two do not hold one number each.
    """
    spelt = {} if labels is None else {word: (1.0, 0.0, 0.5)[code] for word, code in labels.codes().items()}
    ends = [[float(word) for word in spelt if spelt[word] == end and is_number(word)] for end in (1.0, 0.0)]
    if [len(each) for each in ends] != [1, 1]:
        raise UserError("--soft: give the two ends as --pair-labels, one number each, such as 1,2 or 0,1")
    ((first,), (second,)) = ends

    def one(text: str) -> float:
        word = spelling(text)
        if word in spelt or word == "tie":
            return spelt.get(word, 0.5)
        share = (second - float(word)) / (second - first) if is_number(word) else math.nan
        return share if 0 <= share <= 1 else math.nan

    return np.array([one(name) for name in words.names], np.float64)


def softened(bouts: Bouts, worth: Floats) -> Bouts:
    """Each game (n,) as a win of weight `worth` and a loss of the rest, the two drawn together."""
    n = len(bouts.first)
    twice = np.tile(np.arange(n), 2)
    weight = np.concatenate([bouts.weight * worth, bouts.weight * (1 - worth)])
    unit = np.arange(n) if bouts.unit is None else bouts.unit
    kept = np.flatnonzero(weight > 0)
    at = twice[kept]
    return dataclasses.replace(
        bouts,
        first=bouts.first[at],
        second=bouts.second[at],
        outcome=np.repeat([0, 1], n)[kept],
        weight=weight[kept],
        covariates=bouts.covariates[at],
        unit=unit[at],
        n=n,
    )
