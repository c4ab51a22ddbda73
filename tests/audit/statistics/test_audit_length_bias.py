import math
from typing import Any

import numpy as np
import pytest

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.length_bias import length_controlled_lead, length_controlled_means, length_slope


def test_by_hand() -> None:
    # errors 0, 1, 2 at lengths 1, 2, 4: one level for each doubling, no residual
    found = length_slope([1, 2, 3], [1, 1, 1], [1, 2, 4])
    assert math.isclose(found.value, 1.0)
    assert found.n == 3
    assert math.isclose(found.low, 1.0)
    assert math.isclose(found.high, 1.0)
    # x = log2 length = -1, 0, 1 about its mean, errors 0, 3, 0: slope 0; residuals -1, 2, -1
    # parts = x * residual / 2 = .5, 0, -.5; variance = 3/2 * .5 = .75
    found = length_slope([0, 3, 0], [0, 0, 0], [1, 2, 4])
    assert math.isclose(found.value, 0.0, abs_tol=1e-12)
    assert math.isclose(found.high, 1.959963985 * math.sqrt(0.75), rel_tol=1e-6)


def test_gold_may_depend_on_length() -> None:
    length = np.array([10, 20, 40, 80, 160])
    found = length_slope(np.log2(length), np.log2(length), length)
    assert found.value == 0


def test_clusters_widen_what_they_repeat() -> None:
    rng = np.random.default_rng(0)
    length, error = rng.integers(5, 500, 100), rng.normal(size=100)
    once = length_slope(error, np.zeros(100), length)
    scores, gold, lengths = (np.repeat(each, 4) for each in (error, np.zeros(100), length))
    naive = length_slope(scores, gold, lengths)
    honest = length_slope(scores, gold, lengths, cluster=np.repeat(np.arange(100), 4))
    assert math.isclose(once.value, honest.value)
    assert math.isclose(once.half_width, honest.half_width, rel_tol=1e-9)
    assert naive.half_width < 0.6 * honest.half_width


def test_the_interval_covers() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        length = rng.integers(10, 1000, 200)
        score = 0.3 * np.log2(length) + rng.normal(size=200) * np.log2(length) / 4
        found = length_slope(score, np.zeros(200), length)
        hits += found.low <= 0.3 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


def test_undefined() -> None:
    assert math.isnan(length_slope([1, 2], [1, 1], [3, 4]).value)
    assert "equally long" in length_slope([1, 2, 3], [1, 1, 1], [4, 4, 4]).note
    alone = length_slope([1, 2, 3], [1, 1, 1], [1, 2, 4], cluster=np.zeros(3, np.int64))
    assert math.isnan(alone.low)


def held_equal(score: Any, system: Any, question: Any, length: Any) -> list[Estimate]:
    scores, lengths = np.asarray(score, np.float64), np.asarray(length, np.float64)
    return length_controlled_means(scores, system, 2, question, lengths, 0.95, question)


SYSTEM, QUESTION = np.repeat([0, 1], 10), np.tile(np.arange(10), 2)


def test_means_with_the_length_held_equal_by_hand() -> None:
    # Ten prompts; x = log2(1 + length). The first system's responses have 3 characters (x = 2) on every other prompt,
    # else 1 (x = 1), the second's always 1. Scores are 2 + x and 1 + x, so the slope is 1. Raw means: 2 + 1.5 = 3.5
    # and 2. Mean x of all: (1.5 + 1) / 2 = 1.25, so equal lengths give 3.5 - (1.5 - 1.25) = 3.25 and 2 + .25 = 2.25.
    length = np.concatenate([np.tile([3, 1], 5), np.ones(10)])
    score = np.where(SYSTEM == 0, 2, 1) + np.log2(1 + length)
    question = np.concatenate([np.arange(10), np.arange(10)])
    first, second = held_equal(score, SYSTEM, question, length)
    assert (first.value, second.value) == pytest.approx((3.25, 2.25))
    assert (first.n, second.n) == (10, 10)


@pytest.mark.parametrize(
    ("length", "why"),
    [
        (np.repeat([7, 3], 10), "cannot be told from the systems"),  # one is always twice as long
        (3 + QUESTION, "cannot be told from the systems"),  # both answer some prompts at length
        (np.full(20, 4), "equally long"),
        (np.concatenate([[3], np.ones(19)]), "too few prompts"),
    ],
    ids=["one is longer", "by prompt", "alike", "few"],
)
def test_no_mean_where_length_tells_nothing(length: Any, why: str) -> None:
    found = held_equal(np.random.default_rng(2).normal(3, 1, 20), SYSTEM, QUESTION, length)
    assert all(math.isnan(each.value) and why in each.note for each in found)
    assert all(each.n == 10 for each in found)


def test_means_with_the_length_held_equal_are_least_squares() -> None:
    """Against a plain regression on indicator columns, of systems that answered some of the prompts, some twice; and
    95 of 100 intervals hold the truth.
    """
    rng, held = np.random.default_rng(5), 0
    for number in range(200):
        question, system = rng.integers(0, 30, 150), rng.integers(0, 2, 150)
        x = rng.normal(6, 1, 150) + 0.5 * system
        score = rng.normal(0, 1, 30)[question] + 0.5 * x + 0.3 * system + rng.normal(0, 1, 150)
        found = held_equal(score, system, question, 2**x - 1)
        if number < 5:
            prompts = [question == k for k in np.unique(question)]
            slope = np.linalg.lstsq(np.column_stack([*prompts, system == 1, x]).astype(np.float64), score)[0][-1]
            for code in (0, 1):
                mine = system == code
                assert found[code].value == pytest.approx(score[mine].mean() - slope * (x[mine].mean() - x.mean()))
        held += found[1].low <= 0.5 * 6.25 + 0.3 <= found[1].high  # half of the responses are of each system
    assert 0.90 <= held / 200 <= 0.985


def test_a_lead_with_the_length_held_equal_by_hand() -> None:
    # Ten prompts; the first system's responses are longer by l doublings than the second's (x = 1), and score higher by
    # d: 0, 1, 1, 1, 2 where l = 0 and 2, 3, 3, 3, 4 where l = 1. The slope is 3 - 1 = 2, the raw lead 2, and with equal
    # lengths it is 2 - 2 * .5 = 1: the mean of d where l is 0. By its residual e a prompt moves it by
    # e (1/10 - .5 (l - .5) / 2.5): .2 e where l = 0, else 0. There e is -1, 0, 0, 0, 1: squares of 2 * .04 = .08, times
    # 10/9 for ten clusters; Student's quantile of 9 degrees of freedom is 2.262157.
    longer, less = np.repeat([0, 1], 5), np.array([0, 1, 1, 1, 2, 2, 3, 3, 3, 4])
    score = np.concatenate([2 + less, np.full(10, 2)]).astype(np.float64)
    length = np.concatenate([2.0 ** (1 + longer) - 1, np.ones(10)])
    found = length_controlled_lead(score, SYSTEM, 2, QUESTION, length, 0.95, QUESTION, (0, 1))
    assert found.value == pytest.approx(1)
    assert found.n == 10
    assert found.half_width == pytest.approx(2.262157 * math.sqrt(10 / 9 * 0.08), rel=1e-6)
    turned = length_controlled_lead(score, SYSTEM, 2, QUESTION, length, 0.95, QUESTION, (1, 0))
    assert turned.value == pytest.approx(-1)
    assert turned.low == pytest.approx(-found.high)
    means = held_equal(score, SYSTEM, QUESTION, length)  # where all prompts are of both, the difference of the means
    assert means[0].value - means[1].value == pytest.approx(1)
    # five criteria of one prompt are one cluster: too few tell the slope; prompts of one system alone have no lead
    alike = length_controlled_lead(score, SYSTEM, 2, QUESTION, length, 0.95, QUESTION // 5, (0, 1))
    assert alike.note == "too few prompts tell the effect of length"
    three = np.concatenate([SYSTEM, [2, 2]])
    more = np.concatenate([QUESTION, [10, 11]])
    found = length_controlled_lead(
        np.append(score, [1, 1]), three, 3, more, np.append(length, [5, 9]), 0.95, more, (0, 2)
    )
    assert found.note == "no question that both answered"


def test_the_interval_of_a_length_controlled_lead_covers() -> None:
    rng = np.random.default_rng(4)
    system, question, hits = np.repeat([0, 1], 40), np.tile(np.arange(40), 2), 0
    for _ in range(400):
        length = np.concatenate([rng.integers(50, 400, 40), rng.integers(20, 200, 40)]).astype(np.float64)
        hard = rng.normal(size=40)[question]
        score = hard + 0.5 * np.log2(1 + length) + np.where(system == 0, 0.3, 0) + rng.normal(size=80)
        found = length_controlled_lead(score, system, 2, question, length, 0.95, question, (0, 1))
        hits += found.low <= 0.3 <= found.high
    assert 0.925 <= hits / 400 <= 0.975  # 95 % +/- 2.3 standard errors of 1.1 %
