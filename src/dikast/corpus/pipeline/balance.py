"""Balancing a set by leaving groups of rows out: shares of topics and families, correlation of length and score."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.audit.statistics.correlation import correlation_of_sums

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
_CHANCE = 1.96  # standard errors: the 95 % limit of a correlation that is zero
_ENOUGH = 1000  # rows from which on a correlation due to chance can be removed by leaving a few out
_MOST_DROPPED = 0.5


def capped(members: Sequence[Sequence[int]], sizes: Numbers, share: float, *, seed: int) -> Flags:
    """Which groups to keep, a mask (groups,), so that no class has more than `share` of the rows.

    members: the classes of each group; a group of several counts as a fraction for each. sizes: rows of each group.
    Groups of the largest class are dropped until it fits, those of this class alone first, otherwise at random. With
    fewer than 1 / `share` classes all are made equally large. All groups are kept if none would be left.
    """
    kept = np.ones(len(members), bool)
    classes = max((each for group in members for each in group), default=-1) + 1
    if not classes or share >= 1:
        return kept
    rows, waiting = np.zeros(classes), [[] for _ in range(classes)]  # type: tuple[Floats, list[list[int]]]
    for number in np.random.default_rng(seed).permutation(len(members)).tolist():
        for each in members[number]:
            rows[each] += sizes[number] / len(members[number])
            waiting[each].append(number)
    for each in waiting:
        each.sort(key=lambda number: -len(members[number]))
    limit = max(share, 1 / int((rows > 0).sum()))
    while True:
        worst = int(rows.argmax())
        if rows.sum() <= 1e-9:
            return np.ones(len(members), bool)
        if rows[worst] <= limit * rows.sum() + 1e-9 or not waiting[worst]:
            return kept
        number = waiting[worst].pop()
        if kept[number]:
            kept[number] = False
            for each in members[number]:
                rows[each] -= sizes[number] / len(members[number])


def shares(members: Sequence[Sequence[int]], sizes: Numbers, classes: int) -> Floats:
    """The share of rows of each class, (classes,); a group of several classes counts as a fraction for each."""
    rows = np.zeros(classes)
    for group, size in zip(members, sizes.tolist(), strict=True):
        for each in group:
            rows[each] += size / len(group)
    return np.asarray(rows / max(1.0, float(rows.sum())), np.float64)


def uncorrelated(groups: Numbers, length: Floats, score: Floats, bound: float) -> tuple[Flags, dict[str, Any]]:
    """Which groups to keep so that |r| of length and score is at most `bound`, a mask (groups,); and figures.

    groups: the group of each row, (rows,), from 0; length, score: (rows,), NaN for rows that have none. For fewer than
    1,000 rows the bound is at least what chance alone gives (1.96 / sqrt(rows)). The groups that contribute most to the
    correlation are dropped first, at most half of them; the figures say whether the bound was reached.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    kept, known = np.ones(n_groups, bool), np.isfinite(length) & np.isfinite(score)
    g, x, y = groups[known], length[known], score[known]
    if len(x):
        x, y = x - x.mean(), y - y.mean()
    sums = _sums(g, x, y, n_groups)
    before = float(correlation_of_sums(sums.sum(axis=1)))
    limit = float(_limits(len(x), bound))
    told: dict[str, Any] = {"rows": len(x), "bound": limit, "r_before": before, "r": before, "dropped_groups": 0}
    if math.isnan(before) or abs(before) <= limit:
        return kept, {**told, "reached": True}
    order = np.argsort(-math.copysign(1, before) * sums[5], kind="stable")[: int(n_groups * _MOST_DROPPED)]
    # what is left is added up from the last group, since differences would keep the rounding of what was dropped
    last_first = np.column_stack([np.delete(sums, order, axis=1).sum(axis=1), sums[:, order[::-1]]])
    left = np.cumsum(last_first, axis=1)[:, -2::-1]
    after = correlation_of_sums(left)
    good = np.flatnonzero(np.abs(after) <= _limits(left[0], bound))
    n = int(good[0]) + 1 if len(good) else int(np.nanargmin(np.abs(after))) + 1 if np.isfinite(after).any() else 0
    kept[order[:n]] = False
    if n:
        told |= {"rows": int(left[0][n - 1]), "r": float(after[n - 1]), "dropped_groups": n}
    told["bound"] = float(_limits(told["rows"], bound))
    return kept, {**told, "reached": bool(len(good))}


def _limits(rows: Floats | int, bound: float) -> Floats:
    chance = _CHANCE / np.sqrt(np.maximum(1, rows))
    return np.asarray(np.where(np.asarray(rows) < _ENOUGH, np.maximum(bound, chance), bound))


def _sums(groups: Numbers, x: Floats, y: Floats, n: int) -> Floats:
    """For each group (6, n): number of rows, and the sums of x, y, x^2, y^2, x y."""
    return np.stack([np.bincount(groups, weights=each, minlength=n) for each in (x * 0 + 1, x, y, x * x, y * y, x * y)])
