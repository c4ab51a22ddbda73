import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from dikast.audit import agreement, contingency
from dikast.audit.contingency import Cells
from dikast.audit.measures import MEASURES, ordered_pairs

PAIRS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=2, max_size=40)


@settings(max_examples=80, deadline=None)
@given(PAIRS)
def test_a_table_says_what_the_arrays_say(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    cells = Cells.of(x, y)
    for name, each in MEASURES.items():
        from_arrays, from_table = each.value(x, y), float(each.table(cells.table, cells.x, cells.y))
        if math.isnan(from_arrays) or math.isnan(from_table):
            assert math.isnan(from_arrays), name
            assert math.isnan(from_table), name
        else:
            assert math.isclose(from_arrays, from_table, abs_tol=1e-9), name


def test_many_tables_at_once_and_empty_ones() -> None:
    tables = np.array([[[5.0, 0], [0, 5]], [[0, 5], [5, 0]], [[10, 0], [0, 0]], [[0, 0], [0, 0]]])
    x = y = np.array([1.0, 2])
    assert contingency.pearson(tables, x, y)[:2].tolist() == [1, -1]
    assert np.isnan(contingency.pearson(tables, x, y)[2:]).all()  # constant, and nothing at all
    assert contingency.exact(tables, x, y)[:3].tolist() == [1, 0, 1]
    assert np.isnan(contingency.exact(tables, x, y)[3])


def test_discrimination_by_hand() -> None:
    # four labels used alike: 1; one label: 0; halves over two of four: (1 - 1/2) / (1 - 1/4)
    counts = np.array([[3.0, 3, 3, 3], [12, 0, 0, 0], [6, 6, 0, 0]])
    assert np.allclose(contingency.discrimination(counts, 4), [1, 0, (1 / 2) / (3 / 4)])


def test_ordered_pairs_are_the_area_under_the_curve() -> None:
    rng = np.random.default_rng(1)
    gold, score = rng.integers(0, 2, 60), rng.integers(1, 6, 60).astype(float)
    assert math.isclose(ordered_pairs(score, gold.astype(float)), roc_auc_score(gold, score))


def test_spearman_of_a_table_ranks_ties() -> None:
    x, y = np.array([1.0, 1, 2, 3]), np.array([1.0, 2, 2, 2])
    cells = Cells.of(x, y)
    assert math.isclose(float(contingency.spearman(cells.table, cells.x, cells.y)), agreement.spearman(x, y))
