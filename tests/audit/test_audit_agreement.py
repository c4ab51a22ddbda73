import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import precision_recall_fscore_support

from dikast.audit import agreement as a
from dikast.audit.concordance import concordance_by_item, pair_counts, untied_by_item

SCORES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=40)


def test_correlations_by_hand() -> None:
    score, gold = [1, 2, 3, 4], [2, 1, 4, 3]
    # deviations -1.5 -.5 .5 1.5 and -.5 -1.5 1.5 .5: sum of products .75 + .75 + .75 + .75 = 3, both sums of squares 5
    assert math.isclose(a.pearson(score, gold), 3 / 5)
    assert math.isclose(a.spearman(score, gold), 3 / 5)  # the values are their own ranks
    # of 6 pairs (1,2) and (3,4) are discordant: (4 - 2) / 6
    assert math.isclose(a.kendall_tau_b(score, gold), 2 / 6)
    # tau-c with m = 4: 2 * 4 * (4 - 2) / (16 * 3)
    assert math.isclose(a.kendall_tau_c(score, gold), 16 / 48)


def test_tau_b_with_ties_by_hand() -> None:
    # pairs: (1,1)-(1,2) tied in score; (1,1)-(2,2) concordant; (1,2)-(2,2) tied in gold
    # untied in score 2, untied in gold 2: tau-b = 1 / sqrt(2 * 2)
    assert math.isclose(a.kendall_tau_b([1, 1, 2], [1, 2, 2]), 1 / 2)
    counts = pair_counts([1, 1, 2, 2], [1, 2, 2, 2])
    # (1,1)-(2,2) twice concordant; (1,1)-(1,2) tied first; (1,2)-(2,2) twice tied second; (2,2)-(2,2) tied in both
    assert counts == (2, 0, 1, 2, 1)


def test_rates_and_errors_by_hand() -> None:
    score, gold = [1, 2, 3, 5], [1, 3, 5, 4]  # differences 0, -1, -2, +1
    assert a.exact_agreement(score, gold) == 1 / 4
    assert a.within(score, gold) == 3 / 4
    assert a.within(score, gold, 2) == 1
    assert a.mean_absolute_error(score, gold) == 4 / 4
    assert a.bias(score, gold) == -2 / 4


def test_confusion_and_classes_by_hand() -> None:
    table = a.confusion([1, 1, 2, 2, 2], [1, 2, 2, 2, 3], [1, 2, 3])
    assert table.tolist() == [[1, 0, 0], [1, 2, 0], [0, 1, 0]]
    found = a.class_scores(table)
    # precision 1/2, 2/3, 0; recall 1, 2/3, 0; F1 2/3, 2/3, 0
    assert math.isclose(found.accuracy, 3 / 5)
    assert math.isclose(found.macro_precision, (1 / 2 + 2 / 3) / 3)
    assert math.isclose(found.macro_recall, (1 + 2 / 3) / 3)
    assert math.isclose(found.macro_f1, (2 / 3 + 2 / 3) / 3)
    with pytest.raises(ValueError, match="off the labels"):
        a.confusion([7], [1], [1, 2])


@pytest.mark.parametrize("function", [a.pearson, a.spearman, a.kendall_tau_b, a.kendall_tau_c])
def test_a_constant_column_is_undefined_not_zero(function) -> None:  # type: ignore[no-untyped-def]
    assert math.isnan(function([3, 3, 3], [1, 2, 3]))
    assert math.isnan(function([1, 2, 3], [4, 4, 4]))
    assert math.isnan(function([], []))
    assert math.isnan(function([1], [1]))


def test_nothing_has_no_rate() -> None:
    for function in (a.exact_agreement, a.within, a.mean_absolute_error, a.bias):
        assert math.isnan(function([], []))
    assert all(map(math.isnan, a.class_scores(np.zeros((2, 2)))))


def test_failures_must_be_left_out_first() -> None:
    with pytest.raises(ValueError, match="finite"):
        a.pearson([1, math.nan], [1, 2])
    with pytest.raises(ValueError, match="same length"):
        a.bias([1, 2], [1])


def test_pearson_of_large_offsets() -> None:
    x = np.array([1.0, 2, 3, 4]) + 1e9
    assert math.isclose(a.pearson(x, [1, 2, 3, 4]), 1)


@settings(max_examples=80, deadline=None)
@given(SCORES)
def test_against_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T
    if len(set(x)) < 2 or len(set(y)) < 2:
        return
    assert math.isclose(a.pearson(x, y), stats.pearsonr(x, y).statistic, abs_tol=1e-9)
    assert math.isclose(a.spearman(x, y), stats.spearmanr(x, y).statistic, abs_tol=1e-9)
    assert math.isclose(a.kendall_tau_b(x, y), stats.kendalltau(x, y).statistic, abs_tol=1e-9)
    assert math.isclose(a.kendall_tau_c(x, y), stats.kendalltau(x, y, variant="c").statistic, abs_tol=1e-9)
    assert np.array_equal(a.mid_ranks(x), stats.rankdata(x))
    labels = np.arange(1, 6)
    found = a.class_scores(a.confusion(x, y, labels))
    precision, recall, f1, _ = precision_recall_fscore_support(y, x, average="macro", zero_division=0)
    assert np.allclose(found[1:], (precision, recall, f1))


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_partners_of_each_item_by_counting(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    assert np.array_equal(concordance_by_item(x, y), signs.sum(1))
    assert np.array_equal(untied_by_item(x), (np.subtract.outer(x, x) != 0).sum(1))
