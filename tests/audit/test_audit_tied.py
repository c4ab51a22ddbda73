"""Where two labels are equally likely, or the orders of a pair disagree, there is no label to be right or wrong."""

import numpy as np
import pytest

from dikast.audit.sections.label_probabilities import (
    Distributions,
    Labels,
    abstain_table,
    calibration_table,
    reliability_table,
)
from dikast.audit.statistics import conformal
from dikast.audit.statistics.intervals import Resampling
from dikast.core.distribution import likeliest, likeliest_choice
from dikast.core.scale import Scale
from dikast.core.verdict import Question, Status, Verdict
from dikast.judging.label_scores import combine_samples

THREE = Scale.parse("1-3")


def test_equal_probabilities_prefer_nobody() -> None:
    assert likeliest({"a": 0.3, "b": 0.1 + 0.2, "tie": 0.4 - 1e-16}) == ["tie"]
    assert likeliest({"1": 0.1 + 0.2, "2": 0.3, "3": 0.4 - 0.1}) == ["1", "2", "3"]  # equal but for rounding
    choices = [{"a": 0.5, "b": 0.5}, {"a": 0.4, "b": 0.2, "tie": 0.4}, {"a": 0.1, "b": 0.6, "tie": 0.3}]
    assert [likeliest_choice(each) for each in choices] == ["tie", "tie", "b"]


def test_samples_that_contradict_each_other_make_no_winner() -> None:
    both = [
        Verdict(f"{k:032}", Question("i", "c", (0, 1), k), Status.OK, label)
        for k, label in enumerate(("a", "b"))
    ]  # fmt: skip
    for order in (both, both[::-1]):
        assert combine_samples(order, None).label == "tie"


def test_a_tie_of_labels_is_neither_right_nor_wrong_by_hand() -> None:
    # gold 1, 1, 2, 3: .7 on 1 (right), .6 on 2 (wrong), .5/.5 (no label), .8 on 3 (right)
    p = np.array([[0.7, 0.3, 0], [0.4, 0.6, 0], [0.5, 0.5, 0], [0, 0.2, 0.8]])
    gold = np.array([1.0, 1, 2, 3])
    given = Distributions(p, p.sum(1), THREE)
    assert given.tied.tolist() == [False, False, True, False]
    found = calibration_table(given, gold, Resampling(50), None, None)
    row = found["as read"]
    accuracy, confidence, brier = (found.estimate("as read", name) for name in ("accuracy", "confidence", "Brier"))
    assert accuracy.value == pytest.approx(2 / 3)
    assert (accuracy.n, accuracy.dropped) == (3, 1)
    assert confidence.value == pytest.approx((0.7 + 0.6 + 0.8) / 3)
    assert confidence.n == 3
    # squared distances: .09 + .09; .36 + .36; .25 + .25; .04 + .04
    assert brier.value == pytest.approx((0.18 + 0.72 + 0.5 + 0.08) / 4)
    assert brier.n == 4
    # one row a bin: gaps of .3, .6 and .2
    assert found.estimate("as read", "ECE").value == pytest.approx((0.3 + 0.6 + 0.2) / 3)
    assert any("1 row of 4 without a label" in note for note in found.notes), row
    assert sum(n for _, n, *_ in reliability_table(given, gold, 0.95).rows if isinstance(n, int)) == 3
    assert [row[2] for row in abstain_table(given, gold, 0.95).rows] == [3, 2, 2, 1, 1]


def test_a_temperature_changes_no_label() -> None:
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1, 1, 1], 200)
    gold = rng.integers(1, 4, 200).astype(float)
    p[::2] = np.array([0.5 + 3e-12, 0.5 - 3e-12, 0])  # told apart as read, and no longer when nearly flat
    found = calibration_table(Distributions(p, p.sum(1), THREE), gold, Resampling(50), None, None)
    one, two = (found.estimate(name, "accuracy") for name in ("as read", "temperature"))
    assert (one.value, one.n) == (two.value, two.n)


def test_the_surest_rows_do_not_hang_on_their_order() -> None:
    right = np.array([True, True, False, False, True])
    sure = np.array([0.5, 0.5, 0.5, 0.5, 0.9])
    for order in ([0, 1, 2, 3, 4], [3, 4, 2, 0, 1]):
        found = conformal.accuracy_coverage(sure[order], (1.0, 0.4, 0.2))
        assert [(len(each.rows), int(right[order][each.rows].sum())) for each in found] == [(5, 3), (5, 3), (1, 1)]
    assert conformal.accuracy_coverage([]) == []


def test_no_row_with_a_label_is_undefined_and_says_why() -> None:
    p, gold = np.full((60, 3), 1 / 3), np.tile([1.0, 2, 3], 20)
    given = Distributions(p, p.sum(1), THREE)
    found = calibration_table(given, gold, Resampling(50), None, None, labels=Labels(np.full(60, -1), "they disagree"))
    for name in ("accuracy", "confidence", "ECE"):
        each = found.estimate("as read", name)
        assert (np.isnan(each.value), each.n, each.dropped) == (True, 0, 60)
        assert "they disagree" in each.note
    assert found.estimate("as read", "Brier").n == 60
    assert not abstain_table(given, gold, 0.95).rows
