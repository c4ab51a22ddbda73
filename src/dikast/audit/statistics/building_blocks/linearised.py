"""Statistics that are no function of a small table, linearised: what each row adds, summed within clusters.

`parts` (n,) of an estimate sum to 0; its variance is the sum of their squares, or of the squares of cluster sums (the
infinitesimal jackknife). Cheap at any n, and the way clusters enter statistics that have no other interval.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.building_blocks.weights import Groups
from dikast.audit.statistics.concordance import ByItem, by_item, ordered, tau_b, tau_c
from dikast.audit.statistics.correlation import mid_ranks, pearson, spearman
from dikast.audit.statistics.intervals import error_of
from dikast.core.confidence import UNDEFINED, Interval, t_of, z_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class Linear(NamedTuple):
    """A statistic and what each row (n,) adds to it, to first order."""

    value: float
    parts: Floats


def linear_pearson(x: ArrayLike, y: ArrayLike) -> Linear:
    """Pearson's correlation; NaN where a side is constant."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n = len(a)
    if math.isnan(r := pearson(a, b)):
        return Linear(r, np.zeros(n))
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    return Linear(r, (a * b - r * (a * a + b * b) / 2) / n)


def linear_spearman(x: ArrayLike, y: ArrayLike) -> Linear:
    """Spearman's correlation: Pearson's of mid-ranks, each row moving the ranks of the others too; NaN if constant."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n = len(a)
    if math.isnan(r := spearman(a, b)):
        return Linear(r, np.zeros(n))
    rank_a, over_a = _ranked(a)
    rank_b, over_b = _ranked(b)
    both, own_a, own_b = (float(each.mean()) for each in (rank_a * rank_b, rank_a**2, rank_b**2))
    moved = rank_a * rank_b + over_a(rank_b) + over_b(rank_a) - 3 * both
    moved_a, moved_b = (rank**2 + 2 * over(rank) - 3 * own for rank, over, own in (
        (rank_a, over_a, own_a), (rank_b, over_b, own_b),
    ))  # fmt: skip
    scale = math.sqrt(own_a * own_b)
    return Linear(r, (moved / scale - r / 2 * (moved_a / own_a + moved_b / own_b)) / n)


def _ranked(values: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Mid-ranks (n,) as shares minus one half, and what each row adds to a mean of `weights` (n,) over those
    above it.
    """
    groups, n = Groups(values), len(values)
    codes, count = groups.codes, len(groups.distinct)
    rank = (mid_ranks(np.bincount(codes)) - 0.5)[codes] / n - 0.5

    def over(weights: Floats) -> Floats:
        mine = np.bincount(codes, weights, count)
        above = mine.sum() - np.cumsum(mine)
        return np.asarray(((above + mine / 2)[codes] - mine.sum() / 2) / n)

    return rank, over


def _tau_b(given: ByItem) -> Linear:
    """Kendall's tau-b: a ratio of U-statistics."""
    net, free_x, free_y, order = given
    tau, n = float(tau_b(order)), len(net)
    if math.isnan(tau):
        return Linear(tau, np.zeros(n))
    scale = math.sqrt(free_x.mean() * free_y.mean())
    return Linear(tau, 2 * (net / scale - tau * (free_x / free_x.mean() + free_y / free_y.mean()) / 2) / n)


def _tau_c(given: ByItem) -> Linear:
    """Kendall's tau-c, the number of distinct values held fixed."""
    net, *_, order = given
    tau, n = float(tau_c(order)), len(net)
    if math.isnan(tau):
        return Linear(tau, np.zeros(n))
    net = net * order.values / (n * (order.values - 1))
    return Linear(tau, 2 * (net - net.mean()) / n)


def _ordered_pairs(given: ByItem) -> Linear:
    """Share of pairs with different gold in the right order, ties of the score a half: (Somers' d + 1) / 2."""
    net, _, free, order = given
    share = float(ordered(order))
    if math.isnan(share):
        return Linear(share, np.zeros(len(net)))
    return Linear(share, (net - (2 * share - 1) * free) / free.sum())


# of score (first) and gold (second)
ORDER: Mapping[str, Callable[[ByItem], Linear]] = {
    "kendall_tau_b": _tau_b,
    "kendall_tau_c": _tau_c,
    "ordered_pairs": _ordered_pairs,
}


def squashed_interval(found: Linear, level: float, cluster: Codes | None = None, *, least: float = -1.0) -> Interval:
    """An interval that stays within [`least`, 1]: normal in atanh of the statistic, after putting it on [-1, 1]."""
    wide = 2 / (1 - least)
    value, parts = (found.value - least) * wide - 1, found.parts * wide
    if len(parts) < 4 or not abs(value) < 1:
        return UNDEFINED
    given = error_of(parts, cluster)
    if not given.error > 0:
        return UNDEFINED
    times = z_of(level) if cluster is None else t_of(level, given.groups - 1)
    half = times * given.error / (1 - value**2)
    low, high = (math.tanh(math.atanh(value) + sign * half) for sign in (-1, 1))
    return Interval((low + 1) / wide + least, (high + 1) / wide + least)


def order_interval(name: str, x: ArrayLike, y: ArrayLike, level: float, cluster: Codes | None = None) -> Interval:
    """The interval of one of ORDER."""
    return squashed_interval(ORDER[name](by_item(x, y)), level, cluster, least=0.0 if name == "ordered_pairs" else -1.0)
