import itertools
import math

import numpy as np
import pytest

from dikast.audit.statistics.against_gold import bounds as searched
from dikast.audit.statistics.against_gold.bounds import bounds, share_bounds
from dikast.audit.statistics.against_gold.measures import MEASURES

LABELS = np.array([1.0, 2, 3, 4, 5])


def test_rates_by_hand() -> None:
    score, gold, unscored = np.array([1.0, 2, 3]), np.array([1.0, 2, 5]), np.array([4.0])
    # exact: 2 of 3; the fourth right or wrong: 2/4 .. 3/4
    found = bounds(score, gold, unscored, LABELS, MEASURES["exact"].table)
    assert found == (0.5, 0.75)
    # errors 0, 0, 2 and 0 .. 3 (1 for 4): worst 5/4, best 2/4
    assert bounds(score, gold, unscored, LABELS, MEASURES["mae"].table, "low") == (5 / 4, 2 / 4)
    # bias sums -2 and -3 .. +1: -5/4 .. -1/4, worst the one farther from 0
    assert bounds(score, gold, unscored, LABELS, MEASURES["bias"].table, "zero") == (-5 / 4, -1 / 4)


def test_without_unscored_the_bounds_are_the_value() -> None:
    found = bounds(np.array([1.0, 2, 3]), np.array([1.0, 3, 2]), np.array([]), LABELS, MEASURES["pearson"].table)
    assert math.isclose(found.worst, 0.5)
    assert found.worst == found.best


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall_tau_b", "quadratic_kappa", "exact", "bias"])
@pytest.mark.parametrize("seed", range(4))
def test_against_brute_force(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold = rng.integers(1, 6, 25).astype(float)
    score = np.clip(gold + rng.integers(-1, 2, 25), 1.0, 5.0).astype(float)
    unscored = np.array([1.0, 3, 4, 5])  # distinct, so every assignment is within reach
    value = MEASURES[name].value
    every = [
        value(np.concatenate([score, given]), np.concatenate([gold, unscored]))
        for given in itertools.product(LABELS, repeat=4)
    ]
    found = bounds(score, gold, unscored, LABELS, MEASURES[name].table)
    assert math.isclose(found.worst, min(every), abs_tol=1e-9)
    assert math.isclose(found.best, max(every), abs_tol=1e-9)


@pytest.mark.parametrize("name", ["pearson", "spearman", "quadratic_kappa"])
@pytest.mark.parametrize("most", [5_000, 0])  # all ways tried, and searched
def test_unscored_rows_of_equal_gold_may_get_different_scores(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searched, "_MOST_WAYS", most)
    score, value = np.array([1.0, 2, 2, 2]), MEASURES[name].value
    gold, unscored = np.array([1.0, 2, 2, 3]), np.array([2.0, 2, 2])
    every = [
        value(np.concatenate([score, given]), np.concatenate([gold, unscored]))
        for given in itertools.product(LABELS, repeat=3)
    ]
    found = bounds(score, gold, unscored, LABELS, MEASURES[name].table)
    assert math.isclose(found.worst, min(every), abs_tol=1e-9)
    assert math.isclose(found.best, max(every), abs_tol=1e-9)


def test_continuous_scores_and_many_gold_values() -> None:
    rng = np.random.default_rng(0)
    gold = rng.normal(3, 1, 300)
    score = np.clip(gold + rng.normal(0, 0.5, 300), 1, 5)
    unscored = rng.normal(3, 1, 80)
    found = bounds(score, gold, unscored, LABELS, MEASURES["pearson"].table)
    value = MEASURES["pearson"].value

    def filled(chosen: np.ndarray) -> float:
        return value(np.concatenate([score, chosen]), np.concatenate([gold, unscored]))

    nearest = np.abs(unscored[:, None] - LABELS[None, :]).argmin(1)
    assert math.isclose(found.best, filled(LABELS[nearest]), abs_tol=0.02)
    assert math.isclose(found.worst, filled(np.where(unscored > 3, 1.0, 5.0)), abs_tol=0.02)
    assert found.worst < value(score, gold) < found.best


@pytest.mark.parametrize("name", ["pearson", "mae"])
def test_few_labels_of_a_long_scale_are_tried_and_the_same_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, labels, table = np.random.default_rng(2), np.arange(101.0), MEASURES[name].table
    gold = rng.integers(0, 101, 30).astype(float)
    score = np.clip(np.round(gold + rng.normal(0, 15, 30)), 0, 100)
    few = bounds(score, gold, gold[:4], labels, table)
    monkeypatch.setattr(searched, "_MOST_LABELS", 101)
    assert few == pytest.approx(bounds(score, gold, gold[:4], labels, table), abs=1e-3)


def test_shares_whose_unknown_rows_may_be_left_out() -> None:
    # 3 of 4 known; three rows can be right or left out, one wrong or left out: 3/5 at worst, 6/7 at best
    worth = np.array([[1.0, 1, 1, 0], [0, 0, 0, 0]])
    counts = np.array([[True, True, True, True], [False, False, False, False]])
    assert share_bounds(3, 4, worth, counts) == (3 / 5, 6 / 7)
    assert share_bounds(0, 0, worth[:, 3:], counts[:, 3:]) == (0, 0)  # nothing is known, and it counts at all only once


@pytest.mark.parametrize("seed", range(30))
def test_shares_against_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    worth, counts = rng.choice([0, 0.5, 1], (3, 5)), rng.random((3, 5)) < 0.6
    n = int(rng.integers(0, 6))
    hits = float(rng.integers(0, n + 1))
    every = []
    for given in itertools.product(range(3), repeat=5):
        counted, earned = counts[given, range(5)], worth[given, range(5)]
        if n + counted.sum():
            every.append((hits + earned[counted].sum()) / (n + counted.sum()))
    assert share_bounds(hits, n, worth, counts) == pytest.approx((min(every), max(every)))
