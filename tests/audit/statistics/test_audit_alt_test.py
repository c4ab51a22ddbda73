import math

import numpy as np
import pytest
from scipy import stats

from dikast.audit.statistics.against_gold.rank_agreement import rank_agreement, read_ranking
from dikast.audit.statistics.alt_test import alt_test
from dikast.audit.statistics.claim_agreement import (
    ClaimVerdict,
    Span,
    claims_of,
    feedback_scores,
    score_follows,
    span_f1,
)
from dikast.audit.statistics.drift import drift, e_value
from dikast.audit.statistics.intervals import Resampling
from dikast.core.confidence import wilson

HOW = Resampling(200, seed=1)


def annotators(n: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A truth and three annotators who see it with some noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, n).astype(float)
    return truth, np.array([np.where(rng.random(n) < noise, rng.integers(1, 6, n), truth) for _ in range(3)])


def test_alt_test_by_hand() -> None:
    people = np.array([[1.0, 1, 1, 1], [1, 1, 2, 2], [1, 2, 1, 2]])
    judge = np.array([1.0, 1, 1, 2])
    found = alt_test(judge, people, how=HOW)
    first = found.annotators[0]
    assert first is not None
    # others of annotator 0: (1,1) (1,2) (2,1) (2,2). Judge agrees 1, 1/2, 1/2, 1; annotator 1, 1/2, 1/2, 0
    assert (first.judge.value, first.annotator.value, first.less.value) == (1, 3 / 4, 1 / 4)
    # differences annotator less judge: 0 0 0 -1: mean -.25, sd .5; t = (-.25 - .2) / .25 = -1.8 with 3 degrees
    assert math.isclose(first.p, stats.t.cdf(-1.8, 3))


def test_alt_test_passes_a_good_judge_and_fails_a_random_one() -> None:
    truth, people = annotators(120, 0.3)
    good = alt_test(truth, people, how=HOW)
    assert good.passed
    assert good.winning_rate == 1
    bad = alt_test(np.random.default_rng(5).integers(1, 6, 120), people, how=HOW)
    assert not bad.passed
    assert bad.advantage.value < good.advantage.value
    by_distance = alt_test(truth, people, alignment="rmse", how=HOW)
    assert by_distance.passed


def test_alt_test_with_missing_ratings_and_too_few_people() -> None:
    truth, people = annotators(60, 0.2)
    people[0, :20] = math.nan
    found = alt_test(truth, people, how=HOW)
    assert found.annotators[0] is not None
    assert found.annotators[0].items == 40
    with pytest.raises(ValueError, match="three annotators"):
        alt_test(truth, people[:2])
    nobody = alt_test(np.full(5, math.nan), people[:, :5], how=HOW)
    assert math.isnan(nobody.winning_rate)
    assert not nobody.passed


def test_drift_by_hand() -> None:
    found = drift([1, 2, 3, 4, math.nan], [2, 2, 4, 4, 5], how=HOW)
    assert found.shift.value == 2 / 4
    assert found.changed.value == 2 / 4
    assert (found.lost, found.gained) == (0, 1)
    assert found.shift.dropped == 1


def test_drift_sees_a_shift_and_not_a_mere_wobble() -> None:
    rng = np.random.default_rng(2)
    before = rng.integers(1, 6, 300).astype(float)
    wobble = np.clip(before + rng.choice([-1, 0, 0, 0, 1], 300), 1, 5)
    shifted = np.clip(before + (rng.random(300) < 0.3), 1, 5)
    assert drift(before, shifted, how=HOW, span=4).shifted
    assert drift(before, shifted, how=HOW, span=4).evidence > 20
    assert drift(before, wobble, how=HOW, span=4).evidence < 20
    same = drift(before, before, how=HOW)
    assert (same.shift.value, same.changed.value, same.icc.value) == (0, 0, 1)


def test_evidence_rarely_misleads() -> None:
    rng = np.random.default_rng(3)
    false_alarms = sum(e_value(rng.choice([-1.0, 0, 1], 200)) > 20 for _ in range(1000))
    assert false_alarms <= 50
    assert math.isclose(e_value([0.0, 0, 0]), 1)
    assert math.isnan(e_value([]))
    assert math.isnan(e_value([2.0]))


def claims(*texts: str) -> list[ClaimVerdict]:
    found = claims_of([{"text": text[1:], "verdict": "supported" if text[0] == "+" else "wrong"} for text in texts])
    assert found is not None
    return found


def test_feedback_by_hand() -> None:
    said = [claims("+The cat is red.", "-There are two dogs"), claims("-a sky")]
    gold = [claims("+the cat is  red", "+there are two dogs", "-a tree"), claims("-a sky")]
    found = feedback_scores(said, gold, HOW)
    # claims: 3 of 3 said are among 4: F1 = 6/7; with the right verdict 2: 4/7; faults: 1 of 2 said and 2 due: 2/4
    assert math.isclose(found.claim_f1.value, 6 / 7)
    assert math.isclose(found.verdict_f1.value, 4 / 7)
    assert math.isclose(found.fault_f1.value, 2 / 4)
    assert math.isnan(feedback_scores([[]], [[]], HOW).claim_f1.value)
    assert claims_of("no list") is None


def test_spans_by_hand() -> None:
    # characters 0-4 and 2-6: 2 in common of 4 and 4
    assert math.isclose(span_f1([[Span(0, 4)]], [[Span(2, 6)]], HOW).value, 2 * 2 / 8)
    assert span_f1([[Span(0, 3), Span(1, 3)]], [[Span(0, 3)]], HOW).value == 1


def test_whether_the_score_follows() -> None:
    said = [claims("+a", "+b"), claims("+a", "-b"), claims("-a", "-b"), [], claims("+a", "+b")]
    found = score_follows([5, 3, 1, 4, math.nan], said, HOW)
    assert found["pearson"].value == 1
    assert found["pearson"].n == 3


def test_rankings_by_hand() -> None:
    assert read_ranking("B>A=C") == {"B": 1, "A": 2.5, "C": 2.5}
    assert read_ranking(["x", ["y", "z"]]) == {"x": 1, "y": 2.5, "z": 2.5}
    assert read_ranking({"x": 2, "y": 1}) == {"x": 2, "y": 1}
    for no_ranking in ("A", "A>A", "", None, 3, ["x"], {"x": "first"}):
        assert read_ranking(no_ranking) is None
    found = rank_agreement([read_ranking("A>B>C"), read_ranking("C>A=B")], [read_ranking("A>C>B")] * 2, HOW.level)
    # first: of 3 pairs B-C is turned round: tau 1/3, best found. Second: A-C turned, A-B tied: (1 - 1) / sqrt(2 * 3)
    assert math.isclose(found.tau_b.value, (1 / 3 + 0) / 2)
    assert found.top_1.value == 1 / 2
    assert math.isclose(found.pairs.value, (2 / 3 + 1.5 / 3) / 2)
    right = rank_agreement([read_ranking("A>B>C")] * 8, [read_ranking("A>C>B")] * 8, HOW.level)
    assert (right.top_1.low, right.top_1.high) == pytest.approx(wilson(8, 8, HOW.level))
    assert right.pairs.low < 2 / 3 < right.pairs.high  # all alike: each item counts once
    nothing = rank_agreement([None], [read_ranking("A>B")], HOW.level)
    assert math.isnan(nothing.tau_b.value)
    assert nothing.tau_b.dropped == 1
