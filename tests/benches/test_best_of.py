"""Figures of several graded responses, worked by hand."""

import math

import numpy as np
import pytest

from dikast.benches.best_of import GradedResponses, best_of, order_distance, ties_score
from dikast.core.errors import UserError


def graded(scores: list[float], gold: list[float], item: str = "i") -> GradedResponses:
    return GradedResponses(item, np.array(scores), np.array(gold))


@pytest.mark.parametrize(
    ("scores", "right", "worth"),
    [([5, 3, 3, 1], [1, 0, 0, 0], 1), ([5, 5, 3, 1], [1, 0, 0, 0], 0.5), ([4, 5, 3, 1], [1, 0, 0, 0], 0)],
)
def test_the_best_of_four(scores: list[float], right: list[float], worth: float) -> None:
    assert best_of(graded(scores, right)) == worth
    assert best_of(graded([*scores[:3], math.nan], right)) == worth  # a missing score never is the best
    assert best_of(graded([math.nan, *scores[1:]], right)) == 0
    assert math.isnan(best_of(graded([math.nan] * 4, right)))


@pytest.mark.parametrize(
    ("scores", "places", "distance"),
    [
        ([4, 3, 2, 1], [1, 2, 3, 4], 0),
        ([3, 4, 2, 1], [1, 2, 3, 4], 2 / 4),  # two replacements
        ([1, 4, 3, 2], [1, 2, 3, 4], 2 / 4),  # the first is taken out and put at the end
        ([1, 2, 3, 4], [1, 2, 3, 4], 4 / 4),  # reversed
        ([4, 3, 1, 1], [1, 2, 3, 4], (0 + 2 / 4) / 2),  # two that score alike, in either order
        ([2, 2], [1, 2], 0.5),
    ],
)
def test_edit_distance_of_orders(scores: list[float], places: list[float], distance: float) -> None:
    assert order_distance(graded(scores, places)) == pytest.approx(distance)
    assert math.isnan(order_distance(graded([math.nan, *scores[1:]], places)))


def test_orders_too_many_to_try() -> None:
    with pytest.raises(UserError, match="8 responses score alike"):
        order_distance(graded([1] * 8, list(range(8))))


def test_ties_of_rewardbench_2_by_hand() -> None:
    items = [
        graded([5, 2, 1], [1, 0, 0], "ref:1"),  # gap 3
        graded([5, 4, 1], [1, 1, 0], "tied:1"),  # gap 3, spread 1
        graded([2, 3], [1, 0], "ref:2"),  # gap -1
        graded([5, 3, 2], [1, 1, 0], "tied:2"),  # gap 1, spread 2
    ]
    first = 0.3 + 0.3 + 0.2 + 0.2 + 0.01 * math.tanh(3 / 1 - 1)
    second = 0.3 + 0.01 * math.tanh(-1 / 2 - 1)  # its several right responses beat the wrong one, and no more
    found = ties_score(items, 0.95)
    assert found.value == pytest.approx((first + second) / 2)
    assert found.n == 2
    assert (found.low, found.high) == (-0.01, 1.01)  # two prompts say nothing: the interval is all that can be


def test_the_interval_of_ties_is_that_of_a_mean_of_prompts() -> None:
    right = [(graded([5, 2], [1, 0], f"ref:{i}"), graded([4, 4, 1], [1, 1, 0], f"tied:{i}")) for i in range(19)]
    wrong = [(graded([1, 2], [1, 0], f"ref:{i}"), graded([1, 3, 2], [1, 1, 0], f"tied:{i}")) for i in range(19, 20)]
    found = ties_score([each for pair in (*right, *wrong) for each in pair], 0.95)
    worth = [1.0 + 0.01] * 19 + [0.01 * math.tanh(-1 / 2 - 1)]
    assert found.value == pytest.approx(np.mean(worth))
    assert found.value - found.low == pytest.approx(2.093 * np.std(worth, ddof=1) / math.sqrt(20), rel=1e-3)


def test_ties_that_cannot_be_scored() -> None:
    alike = [graded([5, 2], [1, 0], "ref:1"), graded([4, 4, 1], [1, 1, 0], "tied:1")]
    assert math.isnan(ties_score(alike, 0.95).value)  # one prompt
    assert math.isnan(ties_score([*alike, graded([1, 0], [1, 0], "ref:2")], 0.95).value)
    lost = [graded([math.nan, 2], [1, 0], "ref:2"), graded([4, math.nan, 1], [1, 1, 0], "tied:2")]
    found = ties_score([*alike, *lost], 0.95)
    assert found.value == pytest.approx((0.3 + 0.3 + 0.2 + 0.2 + 0.01 * math.tanh(math.inf)) / 2, abs=0.011)
