"""Word noise in the level descriptions of rubrics."""

import re

import numpy as np

from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.training.data.rubric_augmentation import other_words

RUBRIC = Rubric(
    "counts",
    "Judge the counts and sizes. Take off 2 points for each mistake in the counts.",
    Scale.parse("1-3"),
    (("1", "more than 4 points lost"), ("2", "1 to 4 points lost"), ("3", "0 points lost")),
)


def levels(rubric: Rubric) -> list[str]:
    return [text for _, text in rubric.levels]


def other(seed: int, rubric: Rubric = RUBRIC) -> Rubric:
    return other_words(rubric, np.random.default_rng(seed))


def test_criterion_labels_and_numbers_stay() -> None:
    for seed in range(200):
        made = other(seed)
        assert (made.name, made.criterion, made.scale) == (RUBRIC.name, RUBRIC.criterion, RUBRIC.scale)
        assert [label for label, _ in made.levels] == ["1", "2", "3"]
        assert [re.findall(r"\d+", text) for text in levels(made)] == [["4"], ["1", "4"], ["0"]]
        assert all(text and text == text.strip() and "  " not in text for text in levels(made))


def test_a_word_has_one_fate_at_every_level() -> None:
    changed = 0
    for seed in range(200):
        tails = {re.sub(r"^.*\d ?", "", text) for text in levels(other(seed))}
        assert len(tails) == 1  # "points lost", whatever became of it
        changed += tails != {"points lost"}
    assert 20 < changed < 160


def test_a_quarter_of_the_words_changes_on_average_and_sometimes_most() -> None:
    words = ("more", "than", "points", "lost", "to")
    kept = [sum(word in " ".join(levels(other(seed))).split() for word in words) / 5 for seed in range(500)]
    assert 0.69 < np.mean(kept) < 0.81  # 1 - 1/4; the mean's standard error is about .01
    assert min(kept) < 0.5


def test_a_text_that_would_be_left_empty_stays() -> None:
    rubric = Rubric("r", "Good?", Scale.parse("1-2"), (("1", "no"), ("2", "yes")))
    found = {text for seed in range(300) for text in levels(other(seed, rubric))}
    assert {"no", "yes"} < found
    assert "" not in found


def test_a_rubric_without_levels_stays() -> None:
    bare = Rubric("r", "Is it good?", Scale.parse("1-5"))
    assert all(other(seed, bare) == bare for seed in range(20))


def test_the_same_draws_make_the_same_rubric() -> None:
    assert other(3) == other(3) != other(4)
