"""What each headline could have been if the unscored had been anything on the scale."""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.contingency import Cells, TableStatistic

Floats = NDArray[np.float64]
_MOST_GROUPS = 60
_SWEEPS = 8


class Bounds(NamedTuple):
    """The worst and the best value that scores for the unscored could give, in that order."""

    worst: float
    best: float


def bounds(
    score: Floats,
    gold: Floats,
    unscored_gold: Floats,
    labels: Floats,
    statistic: TableStatistic,
    better: Literal["high", "low", "zero"] = "high",
) -> Bounds:
    """Bounds of a statistic over every way to score the unscored.

    score, gold (n,): the complete cases; unscored_gold (m,): gold of the rest; labels: the values of the scale, rising.
    Unscored rows with equal gold get equal scores (above 60 distinct values, gold is grouped), and the best choice is
    searched group by group from several starts. For means over rows (exact, within 1, error, bias) that is exact; for
    correlations and kappa it is a search, checked against brute force in the tests.
    """
    if len(unscored_gold) == 0:
        cells = Cells.of(score, gold)
        value = float(statistic(cells.table, cells.x, cells.y)) if len(score) else math.nan
        return Bounds(value, value)
    base, golds, sizes, columns = _tables(score, gold, unscored_gold, labels)
    low = _search(base, sizes, columns, labels, golds, statistic, sign=-1)
    high = _search(base, sizes, columns, labels, golds, statistic, sign=1)
    if better == "low":
        return Bounds(high, low)
    if better == "zero":
        worst = low if abs(low) >= abs(high) else high
        return Bounds(worst, 0.0 if low <= 0 <= high else min(low, high, key=abs))
    return Bounds(low, high)


def _tables(
    score: Floats, gold: Floats, unscored_gold: Floats, labels: Floats
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """The table of complete cases over all labels, gold values, and the size and column of each unscored group."""
    distinct = np.unique(unscored_gold)
    if len(distinct) > _MOST_GROUPS:  # group by nearest of evenly spaced quantiles
        centres = np.unique(np.quantile(unscored_gold, np.linspace(0, 1, _MOST_GROUPS)))
        nearest = np.abs(unscored_gold[:, None] - centres[None, :]).argmin(1)
        unscored_gold = centres[nearest]
        distinct = np.unique(unscored_gold)
    golds = np.unique(np.concatenate([gold, distinct]))
    base = np.zeros((len(labels), len(golds)))
    np.add.at(base, (np.searchsorted(labels, score), np.searchsorted(golds, gold)), 1)
    values, counts = np.unique(unscored_gold, return_counts=True)
    return base, golds, counts.astype(np.float64), np.searchsorted(golds, values).astype(np.int64)


def _search(
    base: Floats,
    sizes: Floats,
    columns: NDArray[np.int64],
    labels: Floats,
    golds: Floats,
    statistic: TableStatistic,
    sign: int,
) -> float:
    """The largest (sign 1) or smallest (sign -1) value found."""
    groups, count = len(sizes), len(labels)
    starts = [np.full(groups, label) for label in range(count)]
    for ends in ((0, count - 1), (count - 1, 0)):  # low gold at one end of the scale, high gold at the other
        starts.extend(np.where(np.arange(groups) < cut, *ends) for cut in range(1, groups))
    starts.append(np.abs(golds[columns][:, None] - labels[None, :]).argmin(1))
    tables = np.stack([_filled(base, sizes, columns, start) for start in starts])
    values = sign * statistic(tables, labels, golds)
    if np.isnan(values).all():
        return math.nan
    best = -math.inf
    for start in np.argsort(np.where(np.isnan(values), -math.inf, values))[::-1][:3]:
        chosen, value = starts[start].copy(), float(values[start])
        for _ in range(_SWEEPS):
            before = value
            for group in range(groups):
                tried = np.stack([_moved(tables[start], sizes, columns, group, chosen[group], k) for k in range(count)])
                found = sign * statistic(tried, labels, golds)
                found = np.where(np.isnan(found), -math.inf, found)
                pick = int(found.argmax())
                if found[pick] > value + 1e-15:
                    tables[start], value, chosen[group] = tried[pick], float(found[pick]), pick
            if value <= before:
                break
        best = max(best, value)
    return sign * best if math.isfinite(best) else math.nan


def _filled(base: Floats, sizes: Floats, columns: NDArray[np.int64], chosen: NDArray[np.int64]) -> Floats:
    table = base.copy()
    np.add.at(table, (chosen, columns), sizes)
    return table


def _moved(table: Floats, sizes: Floats, columns: NDArray[np.int64], group: int, old: int, new: int) -> Floats:
    table = table.copy()
    table[old, columns[group]] -= sizes[group]
    table[new, columns[group]] += sizes[group]
    return table
