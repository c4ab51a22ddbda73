import math

import numpy as np

from dikast.audit.statistics.length_bias import length_slope


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
