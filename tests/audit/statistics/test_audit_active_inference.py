"""Means from labels that were chosen with unequal chances: by hand, and what is refused."""

import math

import numpy as np
import pytest

from dikast.annotation.active_order import chances, priorities_of
from dikast.audit.statistics.ppi import active_mean, mean_of_labels


def test_by_hand() -> None:
    # Least squares through (0, 1), (2, 4), (4, 4): 1.5 + .75 f, residuals -.5, 1, -.5, which have the mean 0. The mean
    # of the predictions 1.5, 3, 4.5, and of the unlabelled 2.25 and 3.75, is 3
    found = active_mean([1, 4, 4], [0, 2, 4], [0.5, 0.5, 0.5], [1, 3])
    assert math.isclose(found.value, 3)
    # each adds (prediction - 3) / 5, and a label a third of its residual: -7/15, 1/3, 2/15, -.15, .15. The squares
    # sum to 47/120; * 5/4 * 3/1 = 1.46875; t(1) = 12.7062
    assert math.isclose(found.half_width, 12.7062 * math.sqrt(1.46875), rel_tol=1e-4)
    assert found.n == 3


def test_unequal_chances_by_hand() -> None:
    # weights 1 / p^2: 4, 4, 1. Means: f 4/3, y 17/9; the slope is (40/3) / 16 = 5/6, the intercept 7/9, residuals are
    # 2/9, -4/9, 8/9, and their mean with the shares 2/5, 2/5, 1/5 is 4/45. The mean of the predictions is 22/9
    found = active_mean([1, 2, 5], [0, 2, 4], [0.5, 0.5, 1], [1, 3])
    assert math.isclose(found.value, 22 / 9 + 4 / 45)
    assert math.isnan(found.low)  # an effective number of 9^2 / 33 = 2.5 labels, and two coefficients


def test_degenerate() -> None:
    assert math.isnan(active_mean([1, 2], [1, 2], [0.5, 0.5], [1]).value)
    assert active_mean([1, 2, 3], [0, 0, 0], [1, 1, 1], []).value == 2  # all labelled: the mean of the labels
    # a constant judge has no slope: the weighted mean of the labels, weights 2, 2, 1
    found = active_mean([1, 3, 2], [4, 4, 4], [0.5, 0.5, 1], [4, 4])
    assert math.isclose(found.value, (2 * 1 + 2 * 3 + 1 * 2) / 5)
    codes = np.array([0, 0, 1, 2, 3])
    assert math.isnan(active_mean([1, 2, 5], [0, 2, 4], [0.5, 0.5, 1], [1, 3], cluster=codes).low)
    with pytest.raises(ValueError, match="above 0"):
        active_mean([1, 2, 3], [1, 2, 3], [0, 0.5, 1], [])


def test_certain_labels_beside_others_are_a_random_sample() -> None:
    """Raters are done, but for what they skipped or never were given: the rest is predicted (not as 0)."""
    y, f, rest = [1.0, 2.0, 4.0, 5.0], [1.0, 3.0, 3.0, 5.0], [2.0, 4.0]
    found = active_mean(y, f, [1] * 4, rest)
    assert math.isclose(found.value, 3)  # the line f, at 1, 3, 3, 5, 2, 4
    assert math.isclose(active_mean(y, [0] * 4, [1] * 4, [0, 0]).value, 3)
    alone = active_mean(y, f, [1] * 4, [])
    # without others the mean of the labels, and their interval but for the two coefficients: t(2) in place of t(3)
    assert math.isclose(alone.half_width / mean_of_labels(y).half_width, 4.30265 / 3.18245 * math.sqrt(2), rel_tol=1e-5)
    # only ratios of chances count: halved as if each rater of two had begun with even odds, or not
    halved = active_mean(y, f, [0.5, 0.25, 0.5, 0.25], rest)
    assert math.isclose(halved.value, active_mean(y, f, [1, 0.5, 1, 0.5], rest).value)


@pytest.mark.parametrize("done", [(50, 0), (49, 0)])
def test_two_raters_of_whom_one_has_hardly_begun(done: tuple[int, int]) -> None:
    """50 questions each; items of which the judge is certain score higher."""
    rng, held, wrong = np.random.default_rng(1), [], []
    for _ in range(100):
        said, truth = rng.gamma(2, 0.5, 100), rng.beta(2, 1.5, 100)
        gold = truth - 0.15 * (said - 1) + 0.12 * said * rng.normal(size=100)
        order = priorities_of(
            map(str, range(100)), dict(zip(map(str, range(100)), said, strict=True)), int(rng.integers(99999))
        )
        mine = [
            sorted(map(str, each), key=lambda key: order[key].place) for each in rng.permutation(100).reshape(2, 50)
        ]
        asked = [(rater, key) for rater in (0, 1) for key in mine[rater][: done[rater]]]
        reached = {rater: order[mine[rater][done[rater]]].place for rater in (0, 1) if done[rater] < 50}
        at, chance = [int(key) for _, key in asked], chances(order, asked, reached)
        rest = np.setdiff1d(np.arange(100), at)
        found = active_mean(gold[at], 0.3 + 0.6 * truth[at], [chance[key] for _, key in asked], 0.3 + 0.6 * truth[rest])
        wrong.append(found.value - 2 / 3.5)
        held.append(found.low <= 2 / 3.5 <= found.high)
    assert abs(np.mean(wrong)) < 3 * np.std(wrong) / 10 < 0.02
    assert np.mean(held) >= 0.9
