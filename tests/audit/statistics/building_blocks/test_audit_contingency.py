import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import audit_oracles as oracles
from dikast.audit.statistics.against_gold.measures import MEASURES
from dikast.audit.statistics.agreement import discrimination
from dikast.audit.statistics.building_blocks.contingency import Cells

PAIRS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=2, max_size=40)


@settings(max_examples=80, deadline=None)
@given(PAIRS)
def test_tables_against_fractions(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    cells = Cells.of(x, y)
    due = oracles.headlines([Fraction(a) for a, _ in pairs], [Fraction(b) for _, b in pairs])
    for name in MEASURES:
        found = float(MEASURES[name].table(cells.table, cells.x, cells.y))
        assert found == pytest.approx(due[name], rel=1e-12, abs=1e-12, nan_ok=True), name


def test_many_tables_at_once_and_empty_ones() -> None:
    tables = np.array([[[5.0, 0], [0, 5]], [[0, 5], [5, 0]], [[10, 0], [0, 0]], [[0, 0], [0, 0]]])
    x = y = np.array([1.0, 2])
    for name in ("pearson", "spearman", "kendall_tau_b", "kendall_tau_c", "quadratic_kappa"):
        found = MEASURES[name].table(tables, x, y)
        assert found[:2].tolist() == [1, -1], name
        assert np.isnan(found[2:]).all(), name  # constant, and nothing at all
    assert MEASURES["exact"].table(tables, x, y)[:3].tolist() == [1, 0, 1]
    assert math.isnan(MEASURES["exact"].table(tables, x, y)[3])


def test_a_side_that_a_draw_leaves_constant_is_undefined() -> None:
    # 1e-16 of variance is rounding: without a look at each side it gave a correlation of noise
    gold = np.array([0.1] * 99 + [0.7])
    weights = np.ones((1, 100))
    weights[0, 99] = 0
    score = np.random.default_rng(0).normal(size=100)
    for name in ("pearson", "spearman"):
        statistic = MEASURES[name].weighted
        assert statistic is not None
        assert math.isnan(float(statistic(score, gold)(weights)[0])), name


def test_discrimination_by_hand() -> None:
    # four labels used alike: 1; one label: 0; halves over two of four: (1 - 1/2) / (1 - 1/4)
    counts = np.array([[3.0, 3, 3, 3], [12, 0, 0, 0], [6, 6, 0, 0]])
    assert np.allclose(discrimination(counts, 4), [1, 0, (1 / 2) / (3 / 4)])


def test_ordered_pairs_are_the_area_under_the_curve() -> None:
    rng = np.random.default_rng(1)
    gold, score = rng.integers(0, 2, 60), rng.integers(1, 6, 60).astype(float)
    assert math.isclose(MEASURES["ordered_pairs"].value(score, gold.astype(float)), roc_auc_score(gold, score))
