"""Verdicts as classes: accuracy, macro precision, recall and F1, and Cohen's kappa, each with its interval."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.against_gold.measures import MEASURES
from dikast.audit.statistics.building_blocks.contingency import Cells
from dikast.audit.statistics.building_blocks.weights import TableStatistic
from dikast.audit.statistics.intervals import Resampling, bootstrap_tables, share

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def _macro(table: Floats, of: Floats, x: Floats) -> Floats:
    """Mean over the labels that occur of the hits as a share of `of` (..., K); a label never said has precision 0.

    A label whose value in `x` is NaN is no class.
    """
    occurs = ((table.sum(-1) + table.sum(-2)) > 0) & ~np.isnan(x)
    of = np.where(np.isnan(x), 0, of)
    hits = np.diagonal(table, axis1=-2, axis2=-1)
    shares = np.divide(hits, of, out=np.zeros(of.shape), where=of > 0)
    count = occurs.sum(-1)
    return np.asarray(np.divide(shares.sum(-1), count, out=np.full(count.shape, math.nan), where=count > 0))


def macro_precision(table: Floats, x: Floats, y: Floats) -> Floats:
    """Mean over labels of how often the label was right when it was given."""
    del y
    return _macro(table, table.sum(-1), x)


def macro_recall(table: Floats, x: Floats, y: Floats) -> Floats:
    """Mean over labels of how often the label was given when gold has it."""
    del y
    return _macro(table, table.sum(-2), x)


def macro_f1(table: Floats, x: Floats, y: Floats) -> Floats:
    """Mean over labels of the harmonic mean of precision and recall."""
    del y
    return _macro(table, (table.sum(-1) + table.sum(-2)) / 2, x)


CLASSES: Mapping[str, TableStatistic] = {
    "accuracy": MEASURES["exact"].table,
    "macro_precision": macro_precision,
    "macro_recall": macro_recall,
    "macro_f1": macro_f1,
    "cohen_kappa": MEASURES["cohen_kappa"].table,
}


def class_estimates(
    said: ArrayLike,
    gold: ArrayLike,
    how: Resampling,
    cluster: Codes | None = None,
    *,
    outside: Sequence[float] = (),
) -> dict[str, Estimate]:
    """Each of CLASSES for two arrays (n,) of labels; `cluster` holds codes from 0.

    Labels that are `outside` are always wrong but no classes: macro means are over the others.
    """
    a, b = np.asarray(said, np.float64), np.asarray(gold, np.float64)
    if len(a) == 0:
        return {name: Estimate(math.nan, 0, level=how.level) for name in CLASSES}
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    row, column = codes.ravel()[: len(a)].astype(np.int64), codes.ravel()[len(a) :].astype(np.int64)
    cells = Cells(np.where(np.isin(values, outside), np.nan, values), values, row, column)
    draws = bootstrap_tables(cells, CLASSES, how, cluster)
    found, method = {}, f"bootstrap, {how.draws:,} draws"
    for name, statistic in CLASSES.items():
        value = float(statistic(cells.table, cells.x, cells.y))
        if name == "accuracy":
            found[name] = share(a == b, how.level, cluster)
        else:
            found[name] = Estimate(value, len(a), *how.interval(draws[name]), how.level, method)
    return found
