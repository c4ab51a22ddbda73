"""Means over slices: every slice has equal weight, whatever its size; correlations also through Fisher's z."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.sections.slices import Slices
from dikast.audit.statistics.agreement import BY_ROW, range_of
from dikast.audit.statistics.building_blocks.linearised import ORDER, Linear, linear_pearson, linear_spearman
from dikast.audit.statistics.concordance import by_item
from dikast.audit.statistics.intervals import error_of, kept_within, mean_estimate
from dikast.audit.tables.choices import Share
from dikast.audit.tables.columns import rows_by
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import Paired
from dikast.audit.tables.scored import Scored
from dikast.core.confidence import t_of, z_of
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_CORRELATIONS: Mapping[str, Callable[[Floats, Floats], Linear]] = {
    "pearson": linear_pearson,
    "spearman": linear_spearman,
    "kendall_tau_b": lambda score, gold: ORDER["kendall_tau_b"](by_item(score, gold)),
}


def mean_over(
    slices: Sequence[Linear],
    rows: Sequence[Codes],
    level: float,
    cluster: Codes | None = None,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """The mean of the statistic over its slices, except those in which it is undefined; n is the number of slices.

    The interval is that of these slices, their rows resampled (not of other slices like them): from what each row adds
    (`rows` are the indices (n,) that `parts` belong to), summed within clusters where there are any. No end lies
    outside `within`, the values that the statistic can have.
    """
    known = [i for i, each in enumerate(slices) if not math.isnan(each.value)]
    dropped = len(slices) - len(known)
    if not known:
        return Estimate(math.nan, 0, level=level, dropped=dropped, note="undefined in every slice")
    value = math.fsum(slices[i].value for i in known) / len(known)
    parts = np.concatenate([slices[i].parts for i in known]) / len(known)
    at = np.concatenate([rows[i] for i in known])
    found = error_of(parts, None if cluster is None else cluster[at])
    if not found.error > 0 or any(len(rows[i]) < 4 for i in known):
        note = "a slice has fewer than 4 rows" if found.error > 0 else "no row moves it"
        return Estimate(value, len(known), level=level, dropped=dropped, note=note)
    half = (z_of(level) if cluster is None else t_of(level, found.groups - 1)) * found.error
    return kept_within(Estimate(value, len(known), value - half, value + half, level, "linearised", dropped), within)


def fisher_mean_over(
    slices: Sequence[Linear], rows: Sequence[Codes], level: float, cluster: Codes | None = None
) -> Estimate:
    """The same on Fisher's z: the tanh of the mean of the atanh of correlations; undefined where one is 1 or -1.

    Source: Silver & Dunlap 1987, "Averaging correlation coefficients: should Fisher's z transformation be used?"
    """
    known = [each.value for each in slices if not math.isnan(each.value)]
    if any(abs(value) >= 1 for value in known):
        note = "a correlation of 1 has no Fisher's z"
        return Estimate(math.nan, len(known), level=level, dropped=len(slices) - len(known), note=note)
    z = [Linear(math.nan if math.isnan(r) else math.atanh(r), parts / (1 - r**2)) for r, parts in slices]
    found = mean_over(z, rows, level, cluster)
    value, low, high = (math.tanh(each) for each in (found.value, found.low, found.high))
    return Estimate(value, found.n, low, high, level, found.method, found.dropped, found.note)


def scores_table(codes: Codes, names: Sequence[str], given: Scored, level: float, by: str) -> Table:
    """Means over slices of scores against gold."""
    rows = rows_by(np.where(given.paired, codes, -1), len(names))
    cells: list[list[Cell]] = []
    for name, statistic in _CORRELATIONS.items():
        slices = [statistic(given.score_for(name)[at], given.gold[at]) for at in rows]
        mean = mean_over(slices, rows, level, given.cluster, (-1.0, 1.0))
        cells.append([name, mean.n, mean, fisher_mean_over(slices, rows, level, given.cluster)])
    for name in (each for each in BY_ROW if each in given.kinds):
        slices = [_mean(BY_ROW[name](given.score[at], given.gold[at])) for at in rows]
        mean = mean_over(slices, rows, level, given.cluster, range_of(name, given.bounds))
        cells.append([name, mean.n, mean, None])
    return _table(by, len(names), ("statistic", "slices", "mean", "mean (Fisher's z)"), cells, given.unit)


def pairs_table(codes: Codes, names: Sequence[str], given: Paired, shares: Mapping[str, Share], by: str) -> Table:
    """Means over slices of shares of pairs."""
    cells: list[list[Cell]] = []
    for name, share in shares.items():
        rows = rows_by(np.where(share.counts, codes, -1), len(names))
        mean = mean_over([_mean(share.worth[at]) for at in rows], rows, given.level, given.cluster, (0.0, 1.0))
        cells.append([name, mean.n, mean])
    return _table(by, len(names), ("statistic", "slices", "mean"), cells)


def _mean(values: ArrayLike) -> Linear:
    found = np.asarray(values, np.float64)
    if len(found) == 0:
        return Linear(math.nan, found)
    return Linear(float(found.mean()), (found - found.mean()) / len(found))


def _table(by: str, slices: int, columns: Sequence[str], cells: list[list[Cell]], unit: str = "") -> Table:
    lost = {str(row[0]): slices - int(n) for row in cells if isinstance(n := row[1], int) and n < slices}
    undefined = ", ".join(f"{name} in {count}" for name, count in lost.items())
    return table(
        f"over {by}",
        f"Means over {counted(slices, 'slice')} by {by}, each weighted equally{unit}",
        columns,
        cells,
        "intervals: for these slices, with their rows resampled; they do not extend to other slices",
        f"undefined in some slices, which are left out: {undefined}" if undefined else "",
    )


def columns_table(data: Data, groups: Slices) -> Table:
    """Means of any numeric columns, in each slice if there are slices."""
    how, cluster = data.plan.resampling, data.words.get("cluster")
    codes, names = groups[0][0] if groups else (np.zeros(len(data), np.int64), ["all"])
    rows: list[list[Cell]] = []
    for (i, column), (code, name) in itertools.product(enumerate(data.plan.means), enumerate(names)):
        mine = codes == code
        known = mine & ~np.isnan(data.numbers[f"mean {i}"])
        inside = cluster.codes[known] if cluster is not None else None
        found = mean_estimate(data.numbers[f"mean {i}"][known], how.level, inside, dropped=int((mine & ~known).sum()))
        rows.append([f"{name}: {column}" if groups else column, found.n, found])
    return table("means", "Means", ("column", "n", "mean"), rows)
