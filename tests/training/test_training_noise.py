"""Rubrics in other words."""

import re
from collections import Counter

import numpy as np

from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.training.noise import other_words

RUBRIC = Rubric(
    "counts",
    "Judge the counts and sizes. Take off 2 points for each mistake in the counts.",
    Scale.parse("1-3"),
    (("1", "more than 4 points lost"), ("2", "1 to 4 points lost"), ("3", "0 points lost")),
)


def texts(rubric: Rubric) -> list[str]:
    return [rubric.criterion, *(text for _, text in rubric.levels)]


def test_numbers_labels_and_their_order_stay() -> None:
    for seed in range(200):
        made = other_words(RUBRIC, np.random.default_rng(seed))
        assert (made.name, made.scale, made.weight) == (RUBRIC.name, RUBRIC.scale, RUBRIC.weight)
        assert [label for label, _ in made.levels] == ["1", "2", "3"]
        assert [re.findall(r"\d+", text) for text in texts(made)] == [["2"], ["4"], ["1", "4"], ["0"]]
        assert all(text and text == text.strip() and "  " not in text for text in texts(made))


def test_a_word_has_one_fate_everywhere() -> None:
    changed = 0
    for seed in range(200):
        made = other_words(RUBRIC, np.random.default_rng(seed))
        ends = [text.split(" ", 2)[-1] for text in texts(made)[2:]]
        tail = {re.sub(r"^[\d\s]*(\S* )?\d+ ?", "", text) for text in texts(made)[2:]}
        assert len(tail) == 1, ends  # "points lost", whatever became of it
        changed += "points lost" not in tail
    assert 20 < changed < 160


def test_up_to_half_of_the_words_change_a_quarter_on_average() -> None:
    words = Counter(re.findall(r"[A-Za-z]{2,}", " ".join(texts(RUBRIC))))
    kept = [
        sum(word in re.findall(r"\w+", " ".join(texts(other_words(RUBRIC, np.random.default_rng(seed)))))
            for word in words) / len(words)
        for seed in range(500)
    ]  # fmt: skip
    assert 0.71 < np.mean(kept) < 0.79  # 1 - 1/4; the mean's standard error is about .008


def test_a_text_that_would_be_left_empty_stays() -> None:
    rubric = Rubric("r", "Good?", Scale.parse("1-2"), (("1", "no"), ("2", "yes")))
    found = {text for seed in range(300) for text in texts(other_words(rubric, np.random.default_rng(seed)))}
    assert {"no", "yes", "Good?"} < found
    assert "" not in found


def test_the_same_draws_make_the_same_rubric() -> None:
    one, again = (other_words(RUBRIC, np.random.default_rng(3)) for _ in range(2))
    assert one == again
    assert one != other_words(RUBRIC, np.random.default_rng(4))
