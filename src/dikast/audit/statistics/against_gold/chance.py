"""What agreement chance alone gives: scores and golds with the shares they have, paired at random."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.against_gold.measures import MEASURES
from dikast.audit.statistics.agreement import range_of
from dikast.audit.statistics.building_blocks.contingency import Cells
from dikast.audit.statistics.building_blocks.exact_means import NEAR, settled
from dikast.audit.statistics.building_blocks.weights import TableStatistic, Weighted
from dikast.audit.statistics.intervals import Resampling, bootstrap_kinds, mean_estimate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def _equal(values: Floats, others: Floats) -> Floats:
    """Share of `others` (rising) that equal each of `values`."""
    return (np.searchsorted(others, values, "right") - np.searchsorted(others, values, "left")) / len(others)


def _near(values: Floats, others: Floats) -> Floats:
    far = 1 + NEAR
    return (np.searchsorted(others, values + far, "right") - np.searchsorted(others, values - far, "left")) / len(
        others
    )


def _distance(values: Floats, others: Floats) -> Floats:
    """Mean distance of each of `values` to `others` (rising), by sums of what lies below."""
    place, total = np.searchsorted(others, values), np.concatenate([[0.0], np.cumsum(others)])
    below, above = total[place], total[-1] - total[place]
    return np.asarray((values * place - below + above - values * (len(others) - place)) / len(others))


CHANCE: Mapping[str, Callable[[Floats, Floats], Floats]] = {"exact": _equal, "within_1": _near, "mae": _distance}


def by_chance(
    name: str,
    score: ArrayLike,
    gold: ArrayLike,
    level: float,
    cluster: Codes | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """A mean (one of CHANCE) over all pairs of a score and a gold within `bounds`, with that U-statistic's interval.

    Each row moves it by its score's mean over all golds and its gold's mean over all scores.
    """
    x, y = np.asarray(score, np.float64), np.asarray(gold, np.float64)
    if len(x) == 0:
        return Estimate(float("nan"), 0, level=level)
    by_score, by_gold = CHANCE[name](x, np.sort(y)), CHANCE[name](y, np.sort(x))
    value = float(by_score.mean())
    found = mean_estimate(by_score + by_gold - value, level, cluster)
    low, high = np.clip([found.low, found.high], *range_of(name, bounds))
    return replace(found, value=value, low=float(low), high=float(high), method="expected under independence")


_MOST_CELLS = 40_000  # beyond, the value is reported without an interval: drawing tables would take minutes
_BATCH = 4_000_000


def chance_within(
    names: Sequence[str], score: ArrayLike, gold: ArrayLike, codes: Codes, how: Resampling, cluster: Codes | None = None
) -> dict[str, Estimate]:
    """What scores and golds that are paired at random within each code (n,) can expect, of any measure.

    It is the measure of the expected table, the sum over codes of rows times columns by total: exact for what is linear
    in the table at fixed margins (correlations, kappas, means over rows), for tau but for terms of 1/n. Not 0 where
    codes differ in their mean score and their mean gold alike.
    """
    x, y, group = np.asarray(score, np.float64), np.asarray(gold, np.float64), codes.astype(np.float64)
    cells, statistics = Cells.of(x, y), {name: MEASURES[name].table for name in names}
    values = settled(_of_expected(statistics, x, y, group, cells)(np.ones((1, len(x))))[0], 1)  # 0 is 0, not -1e-17
    if len(x) < 2 or cells.size > _MOST_CELLS:
        return {name: Estimate(float(v), len(x), level=how.level) for name, v in zip(names, values, strict=True)}
    drawn = bootstrap_kinds(lambda a, b, c: _of_expected(statistics, a, b, c, cells), [x, y, group], how, cluster)
    found = {}
    for i, name in enumerate(names):
        interval = how.interval(drawn[:, i])
        found[name] = Estimate(float(values[i]), len(x), *interval, how.level, "expected within each scale")
    return found


def _of_expected(
    statistics: Mapping[str, TableStatistic], x: Floats, y: Floats, group: Floats, cells: Cells
) -> Weighted:
    """From weights (b, n) of rows to the statistics (b, len(statistics)) of their expected tables."""
    row, column = np.searchsorted(cells.x, x), np.searchsorted(cells.y, y)

    def of(weights: Floats) -> Floats:
        found, batch = [], max(1, _BATCH // cells.size)
        for start in range(0, len(weights), batch):
            mine = weights[start : start + batch]
            tables = np.zeros((len(mine), len(cells.x), len(cells.y)))
            for code in np.unique(group):
                at = group == code
                rows = mine[:, at] @ np.eye(len(cells.x))[row[at]]
                columns = mine[:, at] @ np.eye(len(cells.y))[column[at]]
                total = rows.sum(1)
                shares = np.divide(rows, total[:, None], out=np.zeros_like(rows), where=total[:, None] > 0)
                tables += shares[:, :, None] * columns[:, None, :]
            found.append(np.stack([each(tables, cells.x, cells.y) for each in statistics.values()], axis=1))
        return np.concatenate(found)

    return of
