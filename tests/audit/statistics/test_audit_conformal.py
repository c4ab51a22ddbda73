import math

import numpy as np
from scipy import stats

from dikast.audit.statistics import conformal
from dikast.audit.statistics.correlation import spearman
from dikast.audit.statistics.equating import equate


def test_quantile_by_hand() -> None:
    # n = 9, level .8: the 8th smallest; n = 4, level .9: the 5th of four does not exist
    assert conformal.conformal_quantile(np.arange(1, 10), 0.8) == 8
    assert conformal.conformal_quantile([1, 2, 3, 4], 0.9) == math.inf
    assert conformal.conformal_quantile([], 0.5) == math.inf
    assert conformal.conformal_quantile(np.arange(1, 10), 0.9) == 9


def test_coverage_is_what_the_finite_sample_theory_says() -> None:
    # with 100 calibration scores the coverage of a fresh one, averaged over calibrations, is 91/101
    rng = np.random.default_rng(0)
    covered = [stats.norm.cdf(conformal.conformal_quantile(rng.normal(size=100), 0.9)) for _ in range(2000)]
    assert math.isclose(np.mean(covered), 91 / 101, abs_tol=0.003)
    assert math.isclose(np.std(covered), stats.beta(91, 10).std(), rel_tol=0.1)


def test_intervals_end_with_the_scale() -> None:
    found = conformal.score_intervals([1.2, 3, 4.9], 0.5, 1, 5)
    assert np.allclose(found.low, [1, 2.5, 4.4])
    assert np.allclose(found.high, [1.7, 3.5, 5])


def test_set_masses_by_hand() -> None:
    # mode is the third label (.5); then .2 above, .15 below, .1, .05
    p = np.array([[0.05, 0.15, 0.5, 0.2, 0.1]])
    assert np.allclose(conformal.set_masses(p), [[1, 0.85, 0.5, 0.7, 0.95]])
    assert conformal.ordinal_sets(p, 0.85).tolist() == [[False, True, True, True, False]]
    assert conformal.ordinal_sets(p, 0.1).tolist() == [[False, False, True, False, False]]


def test_sets_are_contiguous_and_cover() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 2, 5, 2, 1], 3000)  # gold is seldom the last label to come in, where all sets would be whole
    gold = (p.cumsum(1) < rng.random((3000, 1))).sum(1).clip(max=4)
    masses = conformal.set_masses(p)
    threshold = conformal.conformal_quantile(masses[np.arange(1500), gold[:1500]], 0.9)
    sets = conformal.ordinal_sets(p[1500:], threshold)
    assert 0.87 < sets[np.arange(1500), gold[1500:]].mean() < 0.93
    jumps = np.abs(np.diff(np.pad(sets.astype(int), ((0, 0), (1, 1))), axis=1)).sum(1)
    assert (jumps == 2).all()


def test_accuracy_against_coverage_by_hand() -> None:
    right = np.array([True, False, True, False])
    found = conformal.accuracy_coverage([0.9, 0.2, 0.8, 0.4], (1.0, 0.5))
    assert [(len(each.rows), int(right[each.rows].sum())) for each in found] == [(4, 2), (2, 2)]


def test_equating_by_hand() -> None:
    linear = equate([1, 3], [10, 30], "linear")
    assert np.allclose(linear([1, 2, 3, 4]), [10, 20, 30, 40])
    # thirds on both sides: the labels map one to one
    thirds = equate([1, 2, 3], [2, 4, 10])
    assert np.allclose(thirds([1, 2, 3]), [2, 4, 10])
    assert np.allclose(thirds([1.5]), [3])


def test_one_to_ten_becomes_one_to_five_and_keeps_the_order() -> None:
    rng = np.random.default_rng(2)
    latent = rng.normal(size=4000)
    ten = np.clip(np.round(7.5 + 1.2 * latent), 1, 10)  # the scale is used at its top, as judges do
    five = np.clip(np.round(3 + latent + 0.3 * rng.normal(size=4000)), 1, 5)
    learnt = equate(ten[:2000], five[:2000])
    mapped = learnt(ten[2000:])
    assert math.isclose(spearman(mapped, five[2000:]), spearman(ten[2000:], five[2000:]), abs_tol=0.02)
    assert math.isclose(mapped.mean(), five[2000:].mean(), abs_tol=0.06)
    assert np.mean(np.abs(mapped - five[2000:])) < np.mean(np.abs(ten[2000:] / 2 - five[2000:]))
