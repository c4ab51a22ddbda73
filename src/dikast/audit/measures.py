"""The headline statistics of scores against gold, each with an interval; and two judges on the same items, paired."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dikast.audit import agreement, contingency
from dikast.audit.concordance import pair_counts
from dikast.audit.contingency import Cells, TableStatistic
from dikast.audit.estimate import UNDEFINED, Estimate, Interval
from dikast.audit.exact import NEAR
from dikast.audit.intervals import (
    Resampling,
    Weighted,
    bootstrap,
    bootstrap_profiles,
    bootstrap_tables,
    cluster_profile,
    row_kinds,
    wilson,
)
from dikast.audit.linear import ORDER, order_interval
from dikast.audit.weighted import (
    weighted_cohen_kappa,
    weighted_mean,
    weighted_pearson,
    weighted_quadratic_kappa,
    weighted_spearman,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
FEW = 10  # pairs; below, figures are given but called what they are
_MOST_CELLS = 2500  # above, scores are treated as continuous
_FEW_VALUES = 50
_MANY = 20_000  # rows; above, intervals of continuous scores are drawn from bins


@dataclass(frozen=True, slots=True)
class Measure:
    """One statistic: of tables (discrete scores) and of arrays; `better` says which way is good."""

    table: TableStatistic
    value: Callable[[Floats, Floats], float]
    better: Literal["high", "low", "zero"] = "high"
    shared_scale: bool = True  # score and gold must be on one scale
    weighted: Callable[[Floats, Floats], Weighted] | None = None


def _equal(x: Floats, y: Floats) -> Weighted:
    return weighted_mean(x == y)


def _near(x: Floats, y: Floats) -> Weighted:
    return weighted_mean(np.abs(x - y) <= 1 + NEAR)


def _distance(x: Floats, y: Floats) -> Weighted:
    return weighted_mean(np.abs(x - y))


def _difference(x: Floats, y: Floats) -> Weighted:
    return weighted_mean(x - y)


def _kappa(quadratic: bool) -> Callable[[Floats, Floats], float]:
    function = contingency.quadratic_kappa if quadratic else contingency.cohen_kappa

    def value(x: Floats, y: Floats) -> float:
        cells = Cells.of(x, y)
        return float(function(cells.table, cells.x, cells.y))

    return value


def ordered_pairs(x: Floats, y: Floats) -> float:
    """Share of pairs with different gold whose scores stand in the right order; a tie in score counts half."""
    counts = pair_counts(x, y)
    decided = counts.concordant + counts.discordant + counts.tied_first
    return (counts.concordant + counts.tied_first / 2) / decided if decided else math.nan


MEASURES: Mapping[str, Measure] = {
    "pearson": Measure(contingency.pearson, agreement.pearson, shared_scale=False, weighted=weighted_pearson),
    "spearman": Measure(contingency.spearman, agreement.spearman, shared_scale=False, weighted=weighted_spearman),
    "kendall_tau_b": Measure(contingency.tau_b, agreement.kendall_tau_b, shared_scale=False),
    "kendall_tau_c": Measure(contingency.tau_c, agreement.kendall_tau_c, shared_scale=False),
    "ordered_pairs": Measure(contingency.pair_accuracy, ordered_pairs, shared_scale=False),
    "exact": Measure(contingency.exact, agreement.exact_agreement, weighted=_equal),
    "within_1": Measure(contingency.within_one, agreement.within, weighted=_near),
    "mae": Measure(contingency.mae, agreement.mean_absolute_error, "low", weighted=_distance),
    "bias": Measure(contingency.bias, agreement.bias, "zero", weighted=_difference),
    "cohen_kappa": Measure(contingency.cohen_kappa, _kappa(False), weighted=weighted_cohen_kappa),
    "quadratic_kappa": Measure(contingency.quadratic_kappa, _kappa(True), weighted=weighted_quadratic_kappa),
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
    """Each statistic with its interval. Arrays (n,), finite; `cluster` (n,) codes from 0 of what is drawn together.

    `dropped` says how many rows had to be left out before, and is only passed on.
    """
    n = len(score)
    cells = Cells.of(score, gold)
    discrete = 0 < cells.size <= _MOST_CELLS
    note = f"only {n} pairs" if n < FEW else ""
    groups = n if cluster is None else int(cluster.max(initial=0)) + 1
    intervals: dict[str, Interval] = {}
    method = f"bootstrap, {how.draws:,} draws" + (" of clusters" if cluster is not None else "")
    if discrete and n > 1:
        draws = bootstrap_tables(cells, {name: MEASURES[name].table for name in names}, how, cluster)
        intervals = {name: how.interval(each, groups=groups) for name, each in draws.items()}
    coarse = _coarse_deviations(score, gold, names, how, cluster) if not discrete and n > _MANY else None
    found: dict[str, Estimate] = {}
    for name in names:
        each, label = MEASURES[name], method
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
            rate = name in ("exact", "within_1")
            interval, label = (wilson(value * groups, groups, how.level), "Wilson") if rate else (UNDEFINED, "none")
        if math.isnan(value):
            found[name] = Estimate(value, n, level=how.level, dropped=dropped, note=_why(score, gold))
        else:
            found[name] = Estimate(value, n, *interval, how.level, label, dropped, note)
    return found


def _coarse_deviations(
    score: Floats, gold: Floats, names: Sequence[str], how: Resampling, cluster: Codes | None
) -> dict[str, Floats]:
    """Draws less value of each statistic on scores put into bins: how much it varies, at a cost free of n."""
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
        return "undefined: fewer than two pairs"
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

    For raters against raters, and for one judge against each rater.
    """
    values = {name: float(np.mean([MEASURES[name].value(columns[i], columns[j]) for i, j in pairs])) for name in names}
    draws = _joint(columns, pairs, [1 / len(pairs)] * len(pairs), names, how, cluster)
    n = columns.shape[1]
    return {name: _joint_estimate(values[name], draws.get(name), n, how) for name in names}


def difference(
    first: Floats, second: Floats, gold: Floats, names: Sequence[str], how: Resampling, cluster: Codes | None = None
) -> dict[str, Estimate]:
    """Each statistic of `first` less that of `second`, on the same items, drawn jointly (a paired interval)."""
    columns = np.vstack([first, second, gold])
    values = {name: MEASURES[name].value(first, gold) - MEASURES[name].value(second, gold) for name in names}
    draws = _joint(columns, [(0, 2), (1, 2)], [1, -1], names, how, cluster)
    same = bool(np.array_equal(first, second))  # then the difference is 0, and known to be
    return {name: _joint_estimate(values[name], draws.get(name), len(gold), how, point=same) for name in names}


def _joint_estimate(value: float, draws: Floats | None, n: int, how: Resampling, *, point: bool = False) -> Estimate:
    if draws is None or math.isnan(value):
        return Estimate(value, n, level=how.level)
    return Estimate(value, n, *how.interval(draws, point=point), how.level, f"paired bootstrap, {how.draws:,} draws")


def _joint(
    columns: Floats,
    pairs: Sequence[tuple[int, int]],
    signs: Sequence[float],
    names: Sequence[str],
    how: Resampling,
    cluster: Codes | None,
) -> dict[str, Floats]:
    """Draws of the signed sum over pairs: one set of weights on the distinct rows serves every pair."""
    if columns.shape[1] < 4:
        return {}
    if columns.shape[1] > _MANY:
        columns = np.vstack(_binned(*columns))
    kinds, every = row_kinds(*columns), columns
    counts: Codes | tuple[int, ...] = ()
    profile = None
    if cluster is None:
        columns, counts = columns[:, kinds.sample], kinds.sizes
    elif len(kinds.sample) * 4 < columns.shape[1]:  # far fewer kinds than rows: draw clusters, count kinds
        columns, profile = columns[:, kinds.sample], cluster_profile(cluster, kinds)
    n = columns.shape[1]
    cells = [Cells.of(columns[i], columns[j]) for i, j in pairs]
    if max(each.size for each in cells) > _MOST_CELLS and profile is None:
        chosen = kinds.sample if cluster is None else np.arange(n)
        return _joint_rows(every, chosen, pairs, signs, names, how, cluster, counts)
    found: dict[str, list[Floats]] = {name: [] for name in names}
    onehot = []
    for each in cells:
        matrix = np.zeros((n, each.size))
        matrix[np.arange(n), each.row * len(each.y) + each.column] = 1
        onehot.append(matrix)

    def statistic(weights: Floats) -> Floats:
        totals = {name: np.zeros(len(weights)) for name in names}
        for sign, each, matrix in zip(signs, cells, onehot, strict=True):
            tables = (weights @ matrix).reshape(len(weights), len(each.x), len(each.y))
            for name in names:
                totals[name] += sign * MEASURES[name].table(tables, each.x, each.y)
        for name in names:
            found[name].append(totals[name])
        return totals[names[0]]

    if profile is not None:
        bootstrap_profiles(statistic, profile, how)
    else:
        bootstrap(statistic, n, how, cluster=cluster, counts=counts)
    return {name: np.concatenate(each) for name, each in found.items()}


def _joint_rows(
    columns: Floats,
    chosen: Codes,
    pairs: Sequence[tuple[int, int]],
    signs: Sequence[float],
    names: Sequence[str],
    how: Resampling,
    cluster: Codes | None,
    counts: Codes | tuple[int, ...],
) -> dict[str, Floats]:
    """As `_joint` for continuous columns (C, n): weights on the `chosen` rows; order statistics are linearised."""

    def part(name: str, x: Floats, y: Floats) -> Weighted:
        if (maker := MEASURES[name].weighted) is not None:
            return maker(x[chosen], y[chosen])
        found = ORDER[name](x, y)
        return weighted_mean(found.value + len(x) * found.parts[chosen])

    found: dict[str, Floats] = {}
    for name in names:
        parts = [part(name, columns[i], columns[j]) for i, j in pairs]

        def statistic(weights: Floats, parts: Sequence[Weighted] = parts) -> Floats:
            return sum((sign * part(weights) for sign, part in zip(signs, parts, strict=True)), np.zeros(len(weights)))

        found[name] = bootstrap(statistic, len(chosen), how, cluster=cluster, counts=counts)
    return found
