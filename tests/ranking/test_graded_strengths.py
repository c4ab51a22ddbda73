"""Strengths by grades and comparisons together: by hand, and found again in what is simulated."""

import math
from itertools import permutations

import numpy as np
import pytest

from dikast.ranking.comparisons import Comparison, Games, OrderedPair, games_of
from dikast.ranking.graded_strengths import GradeLine, centred, grade_line, graded_strengths
from dikast.ranking.pooled import Noise, Pooled, SlotBias


def compared(*values: tuple[int, int, float]) -> list[Comparison]:
    return [Comparison(OrderedPair(i, j), math.copysign(1, v), math.tanh(v / 2), v) for i, j, v in values]


def line(slope: float, noise: float, spread: float) -> GradeLine:
    return GradeLine(slope, Pooled(SlotBias(0.0, 0.0, 9), Noise(noise, 9), spread))


def test_two_responses_by_hand() -> None:
    # The grades 1 and 0 predict strengths 1 and -1 (slope 2), and a comparison says that they are equal: it is 2 below
    # what was predicted. With noise as wide as the spread, [[2, -1], [-1, 2]] has the inverse [[2, 1], [1, 2]] / 3, so
    # the posterior moves by -2/3 and 2/3, and three quarters of it count.
    games = games_of(compared((0, 1, 0.0)), 2, "logit")
    strengths, covariance = graded_strengths(games, np.array([1.0, 0.0]), line(2.0, 1.0, 1.0))
    assert strengths == pytest.approx([0.5, -0.5])
    # along (1, -1) / sqrt 2 the posterior has variance 1/3, and the quarter of its mean that does not count adds
    # .25^2 of that mean's variance, 1 - 1/3: .375 in all, .375 / 2 for each
    assert covariance == pytest.approx(np.array([[1, -1], [-1, 1]]) * 0.1875)


def test_comparisons_that_say_nothing_leave_the_grades() -> None:
    games = games_of(compared((0, 1, -9.0), (1, 2, -9.0)), 3, "logit")
    for told in (line(2.0, 1.0, 0.0), line(2.0, 1e9, 1.0)):
        strengths, _ = graded_strengths(games, np.array([0.9, 0.5, 0.1]), told)
        assert strengths == pytest.approx([0.8, 0.0, -0.8], abs=1e-6)


def test_comparisons_without_noise_are_fitted() -> None:
    games = games_of(compared((0, 1, 3.0), (1, 0, -3.0)), 2, "logit")
    strengths, _ = graded_strengths(games, np.array([0.0, 1.0]), line(2.0, 0.0, 1.0))
    assert strengths == pytest.approx([-1 + 0.75 * 2.5, 1 - 0.75 * 2.5])


def test_a_response_without_a_grade_changes_nothing() -> None:
    told, pairs = line(2.0, 1.0, 1.0), compared((0, 1, 0.5), (1, 0, 0.5))
    two = graded_strengths(games_of(pairs, 2, "logit"), np.array([1.0, 0.0]), told)
    three = graded_strengths(games_of(pairs, 3, "logit"), np.array([1.0, 0.0, np.nan]), told)
    assert three[0] == pytest.approx([*two[0], 0.0])
    assert three[1][:2, :2] == pytest.approx(two[1])
    assert three[1][2] == pytest.approx([0.0, 0.0, 0.0])
    assert centred(np.array([np.nan, np.nan])).tolist() == [0.0, 0.0]


def test_items_of_a_stack_are_as_they_are_alone() -> None:
    told, rng = line(3.0, 0.8, 0.5), np.random.default_rng(0)
    games = [games_of(compared((0, 1, 1.0), (2, 1, -0.5 * n)), 3, "logit") for n in range(4)]
    grades = rng.random((4, 3))
    stack = graded_strengths(Games(*(np.stack(each) for each in zip(*games, strict=True))), grades, told)
    for n, each in enumerate(games):
        alone = graded_strengths(each, grades[n], told)
        assert stack[0][n] == pytest.approx(alone[0])
        assert stack[1][n] == pytest.approx(alone[1])


def simulated(
    items: int, slope: float, spread: float, noise: float, bias: float
) -> tuple[list[Games], list[np.ndarray]]:
    """Full round robins of five responses whose strengths lie around slope * grade."""
    rng, games, grades = np.random.default_rng(3), list[Games](), list[np.ndarray]()
    for _ in range(items):
        grade = rng.random(5)
        strength = slope * grade + spread * rng.standard_normal(5)
        said = [
            (i, j, float(strength[i] - strength[j] + bias + noise * rng.standard_normal()))
            for i, j in permutations(range(5), 2)
        ]
        games.append(games_of(compared(*said), 5, "logit"))
        grades.append(grade)
    return games, grades


def test_the_line_is_found_again() -> None:
    found = grade_line(*simulated(400, slope=6.0, spread=0.7, noise=1.2, bias=0.4))
    assert found.slope == pytest.approx(6.0, abs=0.25)
    assert found.left.spread == pytest.approx(0.7, abs=0.06)
    assert found.left.noise.sd == pytest.approx(1.2, abs=0.04)
    assert found.left.bias.value == pytest.approx(0.4, abs=0.06)
    assert found.ridge == pytest.approx((1.2 / 0.7) ** 2, rel=0.2)


def test_grades_that_comparisons_contradict_count_for_nothing() -> None:
    assert grade_line(*simulated(100, slope=-6.0, spread=0.7, noise=1.2, bias=0.0)).slope == 0.0


def test_without_a_comparison_the_grades_decide() -> None:
    found = grade_line([games_of([], 3, "logit")], [np.array([0.1, 0.9, 0.5])])
    assert found.slope == 1.0
    strengths, _ = graded_strengths(games_of([], 3, "logit"), np.array([0.1, 0.9, 0.5]), found)
    assert strengths == pytest.approx([-0.4, 0.4, 0.0])
