"""What each headline could have been if the unscored had been anything on the scale."""

import itertools
import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.statistics.building_blocks.contingency import Cells
from dikast.audit.statistics.building_blocks.exact_means import NEAR
from dikast.audit.statistics.building_blocks.weights import TableStatistic

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]
Worth = Callable[[Floats], Floats]
_MOST_GROUPS = 40
_MOST_CELLS = 2_000
_LARGEST = 10_000_000  # cells; beyond, the correction for grouping is left out
_SWEEPS = 8
_MOST_LABELS = 25  # of a scale whose labels are all tried for a group; of a longer one fewer are
_MOST_WAYS = 5_000  # ways to score the unscored that are all tried
_SPLITS = 60  # steps in which rows of equal gold may get different scores
_MOST_TRIED = 1_000_000  # cells of all tables that one step tries


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
    allowed: Masks | None = None,
) -> Bounds:
    """Bounds of a statistic over every way to score the unscored.

    score, gold (n,): the complete cases; unscored_gold (m,): gold of the rest; labels: the values of the scale, rising;
    allowed (m, labels): which of them each of the rest could have been given, all where it is left out; rows that
    differ in it may get different scores. Unscored rows with equal gold get equal scores at first (above 40 distinct
    values, gold is grouped), and the best choice is searched group by group from several starts; then parts of the
    groups are moved. Of scales with more than 25 labels some are tried for each group, then those near the best. Up to
    5,000 ways to score them are all tried instead. For means over rows (exact,
    within 1, error, bias) that is exact; for correlations and kappa it is a search, checked against brute force in the
    tests. With many distinct scores and golds the search runs on grouped ones, and the effect of grouping on the
    complete cases is subtracted.
    """
    if len(unscored_gold) == 0:
        cells = Cells.of(score, gold)
        value = float(statistic(cells.table, cells.x, cells.y)) if len(score) else math.nan
        return Bounds(value, value)
    coarse, shift = (score, gold), 0.0
    exact = Cells.of(score, gold)
    if exact.size > _MOST_CELLS:
        coarse = _grouped(score, _MOST_GROUPS), _grouped(gold, _MOST_GROUPS)
        few = Cells.of(*coarse)
        if exact.size <= _LARGEST:
            shift = float(statistic(exact.table, exact.x, exact.y) - statistic(few.table, few.x, few.y))
    if allowed is None:
        allowed = np.ones((len(unscored_gold), len(labels)), bool)
    start = _start(*coarse, unscored_gold, labels, allowed)
    low, high = (_search(start, statistic, sign) + shift for sign in (-1, 1))
    if better == "low":
        return Bounds(high, low)
    if better == "zero":
        worst = low if abs(low) >= abs(high) else high
        return Bounds(worst, 0.0 if low <= 0 <= high else min(low, high, key=abs))
    return Bounds(low, high)


def _grouped(values: Floats, groups: int) -> Floats:
    """Each value replaced by the nearest of evenly spaced quantiles."""
    centres = np.unique(np.quantile(values, np.linspace(0, 1, groups)))
    place = np.searchsorted((centres[1:] + centres[:-1]) / 2, values)
    return np.asarray(centres[place])


class _Start(NamedTuple):
    base: Floats  # the table of complete cases: scores that occur or may be given, by gold
    scores: Floats
    golds: Floats
    sizes: Floats  # of the unscored groups
    columns: NDArray[np.int64]  # of the unscored groups
    rows: NDArray[np.int64]  # of the labels that may be given
    allowed: Masks  # which of these each group may be given


def _start(score: Floats, gold: Floats, unscored_gold: Floats, labels: Floats, allowed: Masks) -> _Start:
    distinct = np.unique(unscored_gold)
    if len(distinct) > _MOST_GROUPS:
        unscored_gold = _grouped(unscored_gold, _MOST_GROUPS)
        distinct = np.unique(unscored_gold)
    golds, scores = np.union1d(gold, distinct), np.union1d(score, labels)
    flat = np.searchsorted(scores, score) * len(golds) + np.searchsorted(golds, gold)
    base = np.bincount(flat, minlength=len(scores) * len(golds)).reshape(len(scores), len(golds)).astype(np.float64)
    groups, counts = np.unique(np.column_stack([unscored_gold, allowed]), axis=0, return_counts=True)
    columns, rows = np.searchsorted(golds, groups[:, 0]), np.searchsorted(scores, labels)
    sizes = counts.astype(np.float64)
    return _Start(base, scores, golds, sizes, columns.astype(np.int64), rows.astype(np.int64), groups[:, 1:] > 0)


def _search(start: _Start, statistic: TableStatistic, sign: int) -> float:
    """The largest (sign 1) or smallest (sign -1) value found."""
    groups, count = len(start.sizes), len(start.rows)
    starts = [np.full(groups, label) for label in range(count)]
    for ends in ((0, count - 1), (count - 1, 0)):  # low gold at one end of the scale, high gold at the other
        starts.extend(np.where(np.arange(groups) < cut, *ends) for cut in range(1, groups))
    labels = start.scores[start.rows]
    starts.append(np.abs(start.golds[start.columns][:, None] - labels[None, :]).argmin(1))
    off = np.where(start.allowed, 0.0, math.inf)
    starts = [(np.abs(labels[each][:, None] - labels[None, :]) + off).argmin(1) for each in starts]

    def worth(tables: Floats) -> Floats:
        found = sign * statistic(tables, start.scores, start.golds)
        return np.where(np.isnan(found), -math.inf, found)

    if (every := _every(start)) is not None:
        best = float(worth(every).max())
        return sign * best if math.isfinite(best) else math.nan
    values = np.array([float(worth(_filled(start, chosen))) for chosen in starts])
    best = -math.inf
    for place in np.argsort(values)[::-1][:3]:
        chosen, value = starts[place].copy(), float(values[place])
        table = _filled(start, chosen)
        for _ in range(_SWEEPS):
            before = value
            for group in range(groups):
                to = [label for label in _near(int(chosen[group]), count) if start.allowed[group, label]]
                if not to:
                    continue
                tried = np.stack([_moved(table, start, group, chosen[group], label) for label in to])
                found = worth(tried)
                pick = int(found.argmax())
                if found[pick] > value + 1e-15:
                    table, value, chosen[group] = tried[pick], float(found[pick]), to[pick]
            if value <= before:
                break
        best = max(best, _split(start, table, chosen, value, worth))
    return sign * best if math.isfinite(best) else math.nan


def _near(label: int, count: int) -> list[int]:
    """The labels to try in place of one: all of a short scale; of a long one some everywhere, and more close by."""
    if count <= _MOST_LABELS:
        return list(range(count))
    everywhere = np.linspace(0, count - 1, _MOST_LABELS // 2).round().astype(int).tolist()
    close = (label + sign * step for step in (0, 1, 2, 4, 8) for sign in (-1, 1))
    return sorted({*everywhere, *(each for each in close if 0 <= each < count)})


def _every(start: _Start) -> Floats | None:
    """The tables of every way to score the unscored; None where there are too many."""
    given = [np.flatnonzero(each).tolist() for each in start.allowed]
    ways = math.prod(
        math.comb(len(each) + int(size) - 1, int(size)) for each, size in zip(given, start.sizes, strict=True)
    )
    if ways > _MOST_WAYS or ways * start.base.size > _MOST_TRIED:
        return None
    parts = [
        list(itertools.combinations_with_replacement(each, int(size)))
        for each, size in zip(given, start.sizes, strict=True)
    ]
    columns = np.repeat(start.columns, start.sizes.astype(np.int64))
    tables = np.repeat(start.base[None], ways, 0)
    for table, way in zip(tables, itertools.product(*parts), strict=True):
        np.add.at(table, (start.rows[list(itertools.chain(*way))], columns), 1)
    return tables


def _split(start: _Start, table: Floats, chosen: NDArray[np.int64], value: float, worth: Worth) -> float:
    """The value once rows of one group may get different scores: parts of a group are moved, half of it, then less."""
    groups, count = start.allowed.shape
    held = np.zeros((groups, count))  # rows of each group by the label that they were given
    held[np.arange(groups), chosen] = start.sizes
    share = 0.5
    for _ in range(_SPLITS):
        steps = np.maximum(1.0, np.floor(held * share))
        moves = [
            (group, int(old), int(new), steps[group, old])
            for group, old in np.argwhere(held > 0)
            for new in np.flatnonzero(start.allowed[group])
            if new != old
        ]
        if not moves or len(moves) * table.size > _MOST_TRIED:
            break
        tried = np.stack([_moved(table, start, group, old, new, step) for group, old, new, step in moves])
        found = worth(tried)
        pick = int(found.argmax())
        if found[pick] > value + 1e-15:
            group, old, new, step = moves[pick]
            table, value = tried[pick], float(found[pick])
            held[group, old] -= step
            held[group, new] += step
        elif steps.max(where=held > 0, initial=1.0) == 1:
            break
        else:
            share /= 2
    return value


def _filled(start: _Start, chosen: NDArray[np.int64]) -> Floats:
    table = start.base.copy()
    np.add.at(table, (start.rows[chosen], start.columns), start.sizes)
    return table


def _moved(table: Floats, start: _Start, group: int, old: int, new: int, rows: float | None = None) -> Floats:
    """The table after a group, or as many rows of it, got another label."""
    table, rows = table.copy(), start.sizes[group] if rows is None else rows
    table[start.rows[old], start.columns[group]] -= rows
    table[start.rows[new], start.columns[group]] += rows
    return table


def share_bounds(hits: float, n: int, worth: Floats, counts: Masks) -> tuple[float, float]:
    """The least and the greatest share (hits + w) / (n + c) when each unknown row takes one of its choices.

    worth: what an unknown row (column) earns by each choice (row), in [0, 1]; counts: whether the row is counted then;
    some must be. A row that some choices leave out is so wherever that moves the share further (Dinkelbach 1967).
    """

    def furthest(sign: int) -> float:
        taken, share = counts.argmax(0), math.nan
        while True:
            counted = np.take_along_axis(counts, taken[None], 0)[0]
            earned = np.take_along_axis(worth, taken[None], 0)[0][counted]
            total = n + int(counted.sum())
            further = (hits + float(earned.sum())) / total if total else share
            if sign * (further - share) <= NEAR:
                return share
            share = further
            taken = np.where(counts, sign * (worth - share), 0.0).argmax(0)

    return furthest(-1), furthest(1)
