import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dikast.audit.statistics.against_gold.measures import MEASURES
from dikast.audit.statistics.agreement import BY_ROW, within
from dikast.audit.statistics.concordance import (
    by_item,
    kendall_tau_b,
    kendall_tau_c,
    order_of,
)
from dikast.audit.statistics.correlation import mid_ranks, pearson, spearman

SCORES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=40)


def test_correlations_by_hand() -> None:
    score, gold = [1, 2, 3, 4], [2, 1, 4, 3]
    # deviations -1.5 -.5 .5 1.5 and -.5 -1.5 1.5 .5: sum of products .75 + .75 + .75 + .75 = 3, both sums of squares 5
    assert math.isclose(pearson(score, gold), 3 / 5)
    assert math.isclose(spearman(score, gold), 3 / 5)  # the values are their own ranks
    # of 6 pairs (1,2) and (3,4) are discordant: (4 - 2) / 6
    assert math.isclose(kendall_tau_b(score, gold), 2 / 6)
    # tau-c with m = 4: 2 * 4 * (4 - 2) / (16 * 3)
    assert math.isclose(kendall_tau_c(score, gold), 16 / 48)


def test_tau_b_with_ties_by_hand() -> None:
    # pairs: (1,1)-(1,2) tied in score; (1,1)-(2,2) concordant; (1,2)-(2,2) tied in gold
    # untied in score 2, untied in gold 2: tau-b = 1 / sqrt(2 * 2)
    assert math.isclose(kendall_tau_b([1, 1, 2], [1, 2, 2]), 1 / 2)
    # (1,1)-(2,2) twice concordant; (1,1)-(1,2) tied first; (1,2)-(2,2) twice tied second; (2,2)-(2,2) tied in both:
    # net 2, untied in the first 2 + 2, in the second 2 + 1, of 4 observations with 2 values in each
    assert order_of([1, 1, 2, 2], [1, 2, 2, 2]) == (2, 4, 3, 4, 2)


def test_order_of_many_values_is_that_of_their_table() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 150, (2, 400))  # more cells than a table is made for
    concordant = sum(np.sign(x[i] - x[:i]) @ np.sign(y[i] - y[:i]) for i in range(400))
    untied = [sum((each[i] != each[:i]).sum() for i in range(400)) for each in (x, y)]
    assert order_of(x, y) == (concordant, *untied, 400, min(len(set(x)), len(set(y))))


def test_rates_and_errors_by_hand() -> None:
    score, gold = [1, 2, 3, 5], [1, 3, 5, 4]  # differences 0, -1, -2, +1
    found = {name: each(score, gold).mean() for name, each in BY_ROW.items()}
    assert found == {"exact": 1 / 4, "within_1": 3 / 4, "mae": 4 / 4, "bias": -2 / 4}
    assert within(score, gold, 2).mean() == 1


@pytest.mark.parametrize("function", [pearson, spearman, kendall_tau_b, kendall_tau_c])
def test_a_constant_column_is_undefined_not_zero(function) -> None:  # type: ignore[no-untyped-def]
    assert math.isnan(function([3, 3, 3], [1, 2, 3]))
    assert math.isnan(function([1, 2, 3], [4, 4, 4]))
    assert math.isnan(function([], []))
    assert math.isnan(function([1], [1]))


def test_nothing_has_no_rate() -> None:
    nothing = np.array([])
    assert all(math.isnan(each.value(nothing, nothing)) for each in MEASURES.values())


def test_failures_must_be_left_out_first() -> None:
    with pytest.raises(ValueError, match="finite"):
        pearson([1, math.nan], [1, 2])
    with pytest.raises(ValueError, match="same length"):
        spearman([1, 2], [1])


def test_pearson_of_large_offsets() -> None:
    x = np.array([1.0, 2, 3, 4]) + 1e9
    assert math.isclose(pearson(x, [1, 2, 3, 4]), 1)


@settings(max_examples=80, deadline=None)
@given(SCORES)
def test_against_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T
    if len(set(x)) < 2 or len(set(y)) < 2:
        return
    assert math.isclose(pearson(x, y), stats.pearsonr(x, y).statistic, abs_tol=1e-9)
    assert math.isclose(spearman(x, y), stats.spearmanr(x, y).statistic, abs_tol=1e-9)
    assert math.isclose(kendall_tau_b(x, y), stats.kendalltau(x, y).statistic, abs_tol=1e-9)
    assert math.isclose(kendall_tau_c(x, y), stats.kendalltau(x, y, variant="c").statistic, abs_tol=1e-9)
    _, codes, sizes = np.unique(x, return_inverse=True, return_counts=True)
    assert np.array_equal(mid_ranks(sizes)[codes], stats.rankdata(x))


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_partners_of_each_item_by_counting(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    found = by_item(x, y)
    assert np.array_equal(found.net, signs.sum(1))
    assert np.array_equal(found.untied_first, (np.subtract.outer(x, x) != 0).sum(1))
    assert np.array_equal(found.untied_second, (np.subtract.outer(y, y) != 0).sum(1))
    assert found.order == order_of(x, y)
