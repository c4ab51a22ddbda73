import math

import numpy as np
import pytest
from scipy import stats

from dikast.audit.statistics.against_gold.measures import MEASURES, difference, mean_over_pairs, measure
from dikast.audit.statistics.building_blocks.contingency import Cells
from dikast.audit.statistics.building_blocks.linearised import order_interval
from dikast.audit.statistics.building_blocks.weights import mean_of
from dikast.audit.statistics.concordance import kendall_tau_b
from dikast.audit.statistics.correlation import pearson, spearman, weighted_pearson, weighted_spearman
from dikast.audit.statistics.intervals import (
    Resampling,
    bootstrap,
    bootstrap_tables,
    clusters_of,
    fisher,
    holding,
    mean_estimate,
    merged,
    row_kinds,
)
from dikast.core.confidence import Interval, wilson

HOW = Resampling(400, seed=3)


def sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, 0.6 * x + rng.normal(size=n)


def test_fisher_by_hand() -> None:
    # r = .5, n = 28: atanh .5 = .5493, 1.96 / sqrt(25) = .3920; tanh(.1573) = .1560, tanh(.9413) = .7357
    found = fisher(0.5, 28)
    assert math.isclose(found.low, 0.1560, abs_tol=5e-4)
    assert math.isclose(found.high, 0.7357, abs_tol=5e-4)
    assert all(map(math.isnan, fisher(0.5, 3)))
    assert all(map(math.isnan, fisher(1.0, 50)))
    assert all(map(math.isnan, fisher(1 - 2e-16, 50)))  # a perfect correlation but for rounding: no [1.0000, 1.0000]
    assert all(map(math.isnan, fisher(math.nan, 50)))


def test_an_interval_holds_its_own_estimate() -> None:
    # a judge that is always right on equally many of each label: tau-c is 1, and below 1 in every draw whose margins
    # are unequal, which is nearly all of them
    gold = np.repeat([1.0, 2, 3, 4, 5], 4)
    found = measure(gold, gold, ["kendall_tau_c"], Resampling(200))["kendall_tau_c"]
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0.8 < found.low < 1
    assert holding(0.5, Interval(0.2, 0.4)) == Interval(0.2, 0.5)
    assert holding(0.5, Interval(0.4, 0.6)) == Interval(0.4, 0.6)
    assert all(map(math.isnan, holding(0.5, Interval(math.nan, math.nan))))


def test_wilson_against_scipy() -> None:
    for hits, n in ((0, 10), (3, 10), (10, 10), (321, 1000)):
        theirs = stats.binomtest(hits, n).proportion_ci(method="wilson")
        assert np.allclose(wilson(hits, n), (theirs.low, theirs.high), atol=1e-9)
    assert all(map(math.isnan, wilson(0, 0)))


def test_weights_give_what_copies_give() -> None:
    x, y = np.array([1.0, 2, 2, 5, 3]), np.array([2.0, 1, 4, 4, 3])
    weights = np.array([[2, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 3, 0, 2, 0]])
    for row in weights:
        copied = np.repeat(x, row), np.repeat(y, row)
        one = row[None, :].astype(float)
        assert math.isclose(float(weighted_pearson(x, y)(one)[0]), pearson(*copied))
        assert math.isclose(float(weighted_spearman(x, y)(one)[0]), spearman(*copied))
        assert math.isclose(float(mean_of(x)(one)[0]), copied[0].mean())
    constant = np.array([[0.0, 2, 3, 0, 0]])  # only the rows with x = 2
    assert math.isnan(float(weighted_pearson(x, y)(constant)[0]))


def test_bootstrap_spreads_as_the_theory_says() -> None:
    x, _ = sample(400)
    drawn = bootstrap(mean_of(x), 400, Resampling(4000, seed=1))
    assert math.isclose(drawn.std(), x.std() / 20, rel_tol=0.05)
    grouped = np.repeat(np.arange(40), 10)
    level = np.repeat(np.random.default_rng(2).normal(size=40), 10)  # ten equal rows: as good as forty rows
    clustered = bootstrap(mean_of(level), 400, Resampling(4000, seed=1), cluster=grouped)
    assert math.isclose(clustered.std(), level.std() / math.sqrt(40), rel_tol=0.05)


def test_tables_rows_and_counts_draw_alike() -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(1, 6, 500).astype(float)
    y = np.clip(x + rng.integers(-1, 2, 500), 1.0, 5.0).astype(float)
    how = Resampling(3000, seed=5)
    tables = bootstrap_tables(Cells.of(x, y), {"pearson": MEASURES["pearson"].table}, how)["pearson"]
    rows = bootstrap(weighted_pearson(x, y), 500, how)
    (kept_x, kept_y), counts = merged(x, y)
    kinds = bootstrap(weighted_pearson(kept_x, kept_y), len(kept_x), how, counts=counts)
    assert np.allclose([tables.std(), kinds.std()], rows.std(), rtol=0.06)
    codes = np.repeat(np.arange(100), 5)
    by_table = bootstrap_tables(Cells.of(x, y), {"p": MEASURES["pearson"].table}, how, codes)["p"]
    by_row = bootstrap(weighted_pearson(x, y), 500, how, cluster=codes)
    assert math.isclose(by_table.std(), by_row.std(), rel_tol=0.06)


def test_equal_seeds_give_equal_draws() -> None:
    x, y = sample(50)
    assert np.array_equal(bootstrap(weighted_pearson(x, y), 50, HOW), bootstrap(weighted_pearson(x, y), 50, HOW))
    other = Resampling(400, seed=4)
    assert not np.array_equal(bootstrap(weighted_pearson(x, y), 50, HOW), bootstrap(weighted_pearson(x, y), 50, other))


def test_an_interval_of_mostly_undefined_draws_is_undefined() -> None:
    draws = np.array([0.1] * 80 + [math.nan] * 20)
    assert all(map(math.isnan, HOW.interval(draws)))
    assert HOW.interval(np.array([0.1, 0.2] * 48 + [math.nan] * 4)) == (0.1, 0.2)


def test_draws_that_are_all_alike_are_no_interval_but_for_ranks() -> None:
    draws = np.full(100, 0.1)
    assert all(map(math.isnan, HOW.interval(draws)))
    assert HOW.interval(draws, point=True) == (0.1, 0.1)


def test_a_level_is_a_share() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Resampling(level=95)


def test_row_kinds_by_hand() -> None:
    kinds = row_kinds(np.array([1.0, 2, 1, 1]), np.array([5.0, 5, 5, 6]))
    assert kinds.place.tolist() == [0, 2, 0, 1]
    assert kinds.sizes.tolist() == [2, 1, 1]
    assert kinds.sample.tolist() == [0, 3, 1]


def test_rows_without_a_cluster_are_their_own() -> None:
    assert len(np.unique(clusters_of(np.array([0, 0, -1, 1, -1])))) == 4


def test_mean_by_hand() -> None:
    found = mean_estimate([1, 2, 3, 4], 0.95)
    # mean 2.5, standard deviation sqrt(5/3), error .6455, Student's t(3) 3.1824: half 2.0543
    assert math.isclose(found.value, 2.5)
    assert math.isclose(found.half_width, 3.18245 * math.sqrt(5 / 3) / 2, rel_tol=1e-5)
    assert math.isnan(mean_estimate([], 0.95).value)
    assert math.isnan(mean_estimate([1.0], 0.95).low)
    # two clusters of equal rows: the means of the clusters are 1 and 3, error 1
    clustered = mean_estimate([1, 1, 3, 3], 0.95, np.array([0, 0, 1, 1]))
    assert math.isclose(clustered.half_width, 12.7062 * 1, rel_tol=1e-4)


def test_tau_interval_is_as_wide_as_the_bootstrap() -> None:
    x, y = sample(150, seed=7)
    rng = np.random.default_rng(8)
    drawn = [kendall_tau_b(x[at], y[at]) for at in rng.integers(0, 150, (600, 150))]
    found = order_interval("kendall_tau_b", x, y, 0.95)
    assert math.isclose(found.high - found.low, np.quantile(drawn, 0.975) - np.quantile(drawn, 0.025), rel_tol=0.12)
    assert all(map(math.isnan, order_interval("kendall_tau_b", [1, 1, 1, 1], [1, 2, 3, 4], 0.95)))


def test_continuous_and_discrete_intervals_agree() -> None:
    x, y = sample(600)
    names = ["pearson", "spearman", "kendall_tau_b", "mae", "bias"]
    exact = measure(x, y, names, Resampling(1500))
    coarse = measure(np.round(x, 1), np.round(y, 1), names, Resampling(1500))
    for name in names:
        assert math.isclose(exact[name].half_width, coarse[name].half_width, rel_tol=0.12), name


def test_many_continuous_rows_are_drawn_from_bins() -> None:
    x, y = sample(30_000)
    found = measure(x, y, ["pearson", "kendall_tau_b"], Resampling(600))
    expected = fisher(found["pearson"].value, 30_000)
    assert math.isclose(found["pearson"].low, expected.low, abs_tol=0.004)
    assert math.isclose(found["pearson"].value, pearson(x, y))
    assert found["kendall_tau_b"].low < found["kendall_tau_b"].value < found["kendall_tau_b"].high


def test_a_paired_difference_is_narrower_than_two_intervals() -> None:
    rng = np.random.default_rng(9)
    gold = rng.integers(1, 6, 400).astype(float)
    first = np.clip(gold + rng.integers(-1, 2, 400), 1.0, 5.0).astype(float)
    second = np.where(rng.random(400) < 0.9, first, rng.integers(1, 6, 400)).astype(float)
    less = difference(first, second, gold, ["pearson", "exact"], HOW)
    alone = measure(first, gold, ["pearson", "exact"], HOW)
    assert less["exact"].half_width < alone["exact"].half_width
    assert math.isclose(less["exact"].value, np.mean(first == gold) - np.mean(second == gold))
    same = difference(first, first, gold, ["pearson"], HOW)["pearson"]
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_the_mean_over_rater_pairs() -> None:
    raters = np.array([[1.0, 2, 3, 4, 5, 1], [1, 2, 3, 5, 4, 2], [2, 1, 3, 4, 5, 1]])
    pairs = [(1, 0), (2, 0), (2, 1)]
    found = mean_over_pairs(raters, pairs, ["pearson"], HOW)["pearson"]
    assert math.isclose(found.value, np.mean([pearson(raters[i], raters[j]) for i, j in pairs]))
    assert found.low <= found.value <= found.high


def test_clusters_of_few_kinds_draw_as_rows_do() -> None:
    rng = np.random.default_rng(10)
    cluster = np.repeat(np.arange(120), 5)
    gold = np.clip(np.round(3 + rng.normal(size=120))[cluster] + rng.integers(-1, 2, 600), 1, 5).astype(float)
    first = np.clip(gold + rng.integers(-1, 2, 600), 1, 5).astype(float)
    second = np.clip(gold + rng.integers(-2, 3, 600), 1, 5).astype(float)
    found = difference(first, second, gold, ["pearson"], Resampling(2000), cluster)["pearson"]
    how = Resampling(2000, seed=9)
    one = bootstrap(weighted_pearson(first, gold), 600, how, cluster=cluster)
    two = bootstrap(weighted_pearson(second, gold), 600, how, cluster=cluster)
    assert math.isclose(found.half_width, 1.96 * (one - two).std(), rel_tol=0.1)


def test_few_pairs_are_called_few() -> None:
    found = measure(np.array([1.0, 2, 3]), np.array([1.0, 3, 2]), ["pearson"], HOW)["pearson"]
    assert found.note == "only 3 pairs"
    assert "every score is 2" in measure(np.full(9, 2.0), np.arange(9.0), ["pearson"], HOW)["pearson"].note


def test_percentiles_of_few_groups_by_hand() -> None:
    # of 10 rows Student's quantile is 2.2622; times sqrt(10/9) it is 2.3846, which the normal has at .00855 and .99145
    draws = np.linspace(0, 1, 100_001)
    found = Resampling(100_001).interval(draws, groups=10)
    assert math.isclose(found.low, 0.00855, abs_tol=1e-4)
    assert math.isclose(found.high, 0.99145, abs_tol=1e-4)
    many = Resampling(100_001).interval(draws, groups=1_000_000)
    assert math.isclose(many.low, 0.025, abs_tol=1e-4)
    assert math.isclose(Resampling(100_001).interval(draws).low, 0.025, abs_tol=1e-4)


@pytest.mark.parametrize(
    ("score", "gold", "cluster", "why"),
    [
        ([1, 2, 3] * 20, [2, 4, 6] * 20, None, "every draw alike"),
        ([3] * 59 + [4], [1, 2, 3] * 20, None, "undefined in more than a tenth of the draws"),
        ([1, 2, 3] * 20, [1, 3, 2] * 20, [0] * 60, "all rows are of one cluster"),
        ([1, 2], [1, 2], None, "only 2 pairs"),
    ],
)
def test_an_agreement_without_an_interval_says_why(
    score: list[float], gold: list[float], cluster: list[int] | None, why: str
) -> None:
    codes = None if cluster is None else np.array(cluster)
    found = measure(np.array(score, float), np.array(gold, float), ["pearson"], Resampling(200), codes)["pearson"]
    assert math.isnan(found.low)
    assert found.note.startswith(why), found.note
