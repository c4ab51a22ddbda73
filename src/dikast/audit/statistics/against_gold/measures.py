"""The headline statistics of scores against gold, each with an interval; and two judges on the same items, paired."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.agreement import BY_ROW, weighted_kappa
from dikast.audit.statistics.building_blocks.contingency import Cells
from dikast.audit.statistics.building_blocks.linearised import ORDER, order_interval
from dikast.audit.statistics.building_blocks.weights import Statistic, Weighted, mean_of, on_tables, point
from dikast.audit.statistics.concordance import Order, by_item, order_of, order_of_tables, ordered, tau_b, tau_c
from dikast.audit.statistics.correlation import weighted_pearson, weighted_spearman
from dikast.audit.statistics.intervals import (
    Resampling,
    bootstrap,
    bootstrap_profiles,
    bootstrap_tables,
    cluster_profile,
    holding,
    row_kinds,
    share,
)
from dikast.core.confidence import UNDEFINED, Interval
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
RATES = ("exact", "within_1")
OF_ORDER = ("spearman", "kendall_tau_b", "kendall_tau_c", "ordered_pairs")  # the same for all rising maps of scores
FEW = 10  # pairs; below, figures are given with a note that they are too few
_MOST_CELLS = 2500  # above, scores are treated as continuous
_FEW_VALUES = 50
_MANY = 20_000  # rows; above, intervals of continuous scores are drawn from bins


@dataclass(frozen=True, slots=True)
class Measure:
    """One statistic of scores and gold, made of weighted rows or of the order of pairs; `better` says what is good."""

    weighted: Statistic | None = None
    order: Callable[[Order], Floats] | None = None
    better: Literal["high", "low", "zero"] = "high"
    shared_scale: bool = True  # score and gold must be on one scale

    def value(self, score: Floats, gold: Floats) -> float:
        """Of two arrays (n,)."""
        if self.weighted is not None:
            return point(self.weighted, score, gold)
        return float(self._of(order_of(score, gold)))

    def table(self, table: Floats, x: Floats, y: Floats) -> Floats:
        """Of tables (..., K, L) of counts: score `x[k]`, gold `y[l]`."""
        return self._of(order_of_tables(table)) if self.weighted is None else on_tables(self.weighted)(table, x, y)

    def _of(self, order: Order) -> Floats:
        if self.order is None:
            raise TypeError("this measure is not one of order")
        return self.order(order)


def _mean(name: str) -> Statistic:
    return lambda score, gold: mean_of(BY_ROW[name](score, gold))


MEASURES: Mapping[str, Measure] = {
    "pearson": Measure(weighted_pearson, shared_scale=False),
    "spearman": Measure(weighted_spearman, shared_scale=False),
    "kendall_tau_b": Measure(order=tau_b, shared_scale=False),
    "kendall_tau_c": Measure(order=tau_c, shared_scale=False),
    "ordered_pairs": Measure(order=ordered, shared_scale=False),
    "exact": Measure(_mean("exact")),
    "within_1": Measure(_mean("within_1")),
    "mae": Measure(_mean("mae"), better="low"),
    "bias": Measure(_mean("bias"), better="zero"),
    "cohen_kappa": Measure(weighted_kappa),
    "quadratic_kappa": Measure(functools.partial(weighted_kappa, costs="quadratic")),
}


def measures_for(shared_scale: bool) -> list[str]:
    """The names that make sense: without a shared scale, only correlations and order."""
    return [name for name, each in MEASURES.items() if shared_scale or not each.shared_scale]


def measure(
    score: Floats,
    gold: Floats,
    names: Sequence[str],
    how: Resampling,
    cluster: Codes | None = None,
    *,
    dropped: int = 0,
) -> dict[str, Estimate]:
    """Each statistic with its interval, that of a `share` for rates.

    Arrays (n,), finite; `cluster` (n,) codes from 0 of what is drawn together. `dropped` says how many rows had to be
    left out before, and is only passed on.
    """
    n = len(score)
    cells = Cells.of(score, gold)
    discrete = 0 < cells.size <= _MOST_CELLS
    note = f"only {counted(n, 'pair')}" if n < FEW else ""
    groups = n if cluster is None else int(cluster.max(initial=0)) + 1
    intervals: dict[str, Interval] = {}
    why: dict[str, str] = {}
    method = f"bootstrap, {how.draws:,} draws" + (" of clusters" if cluster is not None else "")
    if discrete and n > 1:
        draws = bootstrap_tables(cells, {name: MEASURES[name].table for name in names}, how, cluster)
        intervals = {name: how.interval(each, groups=groups) for name, each in draws.items()}
        why = {name: how.why_none(each, groups=groups) for name, each in draws.items()}
    coarse = _coarse_deviations(score, gold, names, how, cluster) if not discrete and n > _MANY else None
    found: dict[str, Estimate] = {}
    for name in names:
        each, label, told = MEASURES[name], method, note
        if name in RATES and n:
            found[name] = share(BY_ROW[name](score, gold), how.level, cluster, dropped=dropped, note=note)
            continue
        if discrete:
            value = float(each.table(cells.table, cells.x, cells.y))
        else:
            value = each.value(score, gold)
            if coarse is not None:
                intervals[name], label = how.interval(coarse[name] + value, groups=groups), method + ", scores binned"
            else:
                intervals[name], label = _continuous(name, score, gold, how, cluster, method)
        interval = intervals.get(name, UNDEFINED)
        if math.isnan(interval.low) and not math.isnan(value):
            interval, label, told = UNDEFINED, "none", note or why.get(name, "")
        if math.isnan(value):
            found[name] = Estimate(value, n, level=how.level, dropped=dropped, note=_why(score, gold))
        else:
            found[name] = Estimate(value, n, *holding(value, interval), how.level, label, dropped, told)
    return found if cluster is None else {name: replace(each, groups=groups) for name, each in found.items()}


def _coarse_deviations(
    score: Floats, gold: Floats, names: Sequence[str], how: Resampling, cluster: Codes | None
) -> dict[str, Floats]:
    """Draws minus value of each statistic on binned scores: its variation, at a cost that does not depend on n."""
    cells = Cells.of(*_binned(score, gold))
    draws = bootstrap_tables(cells, {name: MEASURES[name].table for name in names}, how, cluster)
    return {name: draws[name] - float(MEASURES[name].table(cells.table, cells.x, cells.y)) for name in names}


def _binned(*columns: Floats) -> list[Floats]:
    """Columns with few values as they are, the others in bins, so that any two make a table of at most _MOST_CELLS."""
    few = [len(np.unique(each)) for each in columns]
    discrete = max([count for count in few if count <= _FEW_VALUES], default=0)
    bins = (
        _MOST_CELLS // discrete
        if sum(count > _FEW_VALUES for count in few) == 1 and discrete
        else math.isqrt(_MOST_CELLS)
    )
    found = []
    for column, count in zip(columns, few, strict=True):
        if count <= _FEW_VALUES:
            found.append(column)
            continue
        width = float(np.ptp(column)) / bins
        found.append(column.min() + width * (np.minimum((column - column.min()) // width, bins - 1) + 0.5))
    return found


def _continuous(
    name: str, score: Floats, gold: Floats, how: Resampling, cluster: Codes | None, method: str
) -> tuple[Interval, str]:
    maker = MEASURES[name].weighted
    if len(score) < 4:
        return Interval(math.nan, math.nan), ""
    if maker is not None:
        groups = len(score) if cluster is None else int(cluster.max(initial=0)) + 1
        return how.interval(bootstrap(maker(score, gold), len(score), how, cluster=cluster), groups=groups), method
    by = " by cluster" if cluster is not None else ""
    return order_interval(name, score, gold, how.level, cluster), "linearised" + by


def _why(score: Floats, gold: Floats) -> str:
    if len(score) < 2:
        return "undefined: fewer than two rows"
    if np.ptp(score) == 0:
        return f"undefined: every score is {score[0]:g}"
    if np.ptp(gold) == 0:
        return f"undefined: every gold is {gold[0]:g}"
    return "undefined"


def mean_over_pairs(
    columns: Floats,
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
    how: Resampling,
    cluster: Codes | None = None,
) -> dict[str, Estimate]:
    """The mean of each statistic over several pairs of columns (C, n) of the same items, drawn jointly.

    For raters against raters, and for one judge against each rater. Of one pair it is `measure`, and a mean of rates is
    the `share` of what each item has of it, so that equal figures have equal intervals.
    """
    n = columns.shape[1]
    if len(pairs) == 1:
        return measure(columns[pairs[0][0]], columns[pairs[0][1]], names, how, cluster)
    values = {name: float(np.mean([MEASURES[name].value(columns[i], columns[j]) for i, j in pairs])) for name in names}
    drawn = [name for name in names if name not in RATES]
    draws = _joint(columns, pairs, [1 / len(pairs)] * len(pairs), drawn, how, cluster)
    groups = n if cluster is None else int(cluster.max(initial=0)) + 1
    found = {name: _joint_estimate(values[name], draws.get(name), n, how, groups=groups) for name in names}
    for name in set(names) & set(RATES):
        worth = np.mean([BY_ROW[name](columns[i], columns[j]) for i, j in pairs], axis=0)
        found[name] = share(worth, how.level, cluster)
    return found if cluster is None else {name: replace(each, groups=groups) for name, each in found.items()}


def difference(
    first: Floats, second: Floats, gold: Floats, names: Sequence[str], how: Resampling, cluster: Codes | None = None
) -> dict[str, Estimate]:
    """Each statistic of `first` minus that of `second`, on the same items, drawn jointly (a paired interval)."""
    columns = np.vstack([first, second, gold])
    values = {name: MEASURES[name].value(first, gold) - MEASURES[name].value(second, gold) for name in names}
    draws = _joint(columns, [(0, 2), (1, 2)], [1, -1], names, how, cluster)
    same = bool(np.array_equal(first, second))  # then the difference is 0, and known to be
    return {name: _joint_estimate(values[name], draws.get(name), len(gold), how, point=same) for name in names}


def _joint_estimate(
    value: float, draws: Floats | None, n: int, how: Resampling, *, point: bool = False, groups: int = 0
) -> Estimate:
    if draws is None or math.isnan(value):
        return Estimate(value, n, level=how.level)
    ends = holding(value, how.interval(draws, point=point, groups=groups))
    return Estimate(value, n, *ends, how.level, f"paired bootstrap, {how.draws:,} draws")


def _joint(
    columns: Floats,
    pairs: Sequence[tuple[int, int]],
    signs: Sequence[float],
    names: Sequence[str],
    how: Resampling,
    cluster: Codes | None,
) -> dict[str, Floats]:
    """Draws of the signed sum over pairs: one set of weights on the distinct rows serves every pair and statistic."""
    if columns.shape[1] < 4:
        return {}
    if columns.shape[1] > _MANY:
        columns = np.vstack(_binned(*columns))
    kinds, n = row_kinds(*columns), columns.shape[1]
    few = cluster is not None and len(kinds.sample) * 4 < n  # far fewer kinds than rows: draw clusters, count kinds
    chosen = kinds.sample if few or cluster is None else np.arange(n)
    parts = [[_part(name, columns[i], columns[j], chosen) for i, j in pairs] for name in names]

    def statistic(weights: Floats) -> Floats:
        sums = [sum((sign * of(weights) for sign, of in zip(signs, each, strict=True)), 0.0) for each in parts]
        return np.column_stack(sums)

    if cluster is not None and few:
        drawn = bootstrap_profiles(statistic, cluster_profile(cluster, kinds), how)
    else:
        drawn = bootstrap(statistic, len(chosen), how, cluster=cluster, counts=kinds.sizes if cluster is None else ())
    return dict(zip(names, drawn.T, strict=True))


def _part(name: str, x: Floats, y: Floats, chosen: Codes) -> Weighted:
    """A statistic of two columns (n,) as a function of weights on the `chosen` rows, which stand for all kinds.

    Order is counted anew in each draw where the table is small, and linearised otherwise.
    """
    each = MEASURES[name]
    if each.weighted is not None:
        return each.weighted(x[chosen], y[chosen])
    cells = Cells.of(x[chosen], y[chosen])
    if cells.size > _MOST_CELLS:
        found = ORDER[name](by_item(x, y))
        return mean_of(found.value + len(x) * found.parts[chosen])
    onehot = np.zeros((len(chosen), cells.size))
    onehot[np.arange(len(chosen)), cells.row * len(cells.y) + cells.column] = 1
    return lambda weights: each.table((weights @ onehot).reshape(-1, len(cells.x), len(cells.y)), cells.x, cells.y)
