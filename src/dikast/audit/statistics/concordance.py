"""Kendall's tau and related statistics: concordant and discordant pairs in O(n log^2 n), in numpy, with exact handling
of ties.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.building_blocks.weights import over

Floats = NDArray[np.float64]
Numbers = float | Floats
_MOST_CELLS = 10_000


class Order(NamedTuple):
    """What statistics of order are made of: how the pairs of observations fall, for one sample or for many tables."""

    net: Numbers  # concordant minus discordant pairs
    untied_first: Numbers  # pairs that the first variable tells apart
    untied_second: Numbers
    n: Numbers  # observations
    values: Numbers  # distinct values that occur, in the variable with fewer


def tau_b(order: Order) -> Floats:
    """Kendall's tau-b (Kendall 1945): net pairs over the geometric mean of the untied ones."""
    return over(order.net, np.sqrt(order.untied_first * order.untied_second))


def tau_c(order: Order) -> Floats:
    """Kendall's tau-c (Stuart 1953), for scales with different numbers of values.

    2m(C - D) / (n^2 (m - 1)) where m is the smaller number of distinct values that occur.
    """
    return over(2 * order.values * order.net, order.n**2 * (order.values - 1))


def ordered(order: Order) -> Floats:
    """Share of pairs with different gold, the second variable, that scores order the right way; a tie counts half.

    It is (Somers' d + 1) / 2, and the area under the ROC curve where gold has two values.
    """
    return over(order.net + order.untied_second, 2 * order.untied_second)


def kendall_tau_b(score: ArrayLike, gold: ArrayLike) -> float:
    """Kendall's tau-b of two arrays (n,), in [-1, 1]; NaN where one is constant."""
    return float(tau_b(order_of(score, gold)))


def kendall_tau_c(score: ArrayLike, gold: ArrayLike) -> float:
    """Kendall's (Stuart's) tau-c of two arrays (n,)."""
    return float(tau_c(order_of(score, gold)))


def order_of(first: ArrayLike, second: ArrayLike) -> Order:
    """The order of two arrays (n,)."""
    x, y = _codes(first), _codes(second)
    n, most_x, most_y = len(x), int(x.max(initial=0)) + 1, int(y.max(initial=0)) + 1
    if most_x * most_y <= _MOST_CELLS:
        return order_of_tables(np.bincount(x * most_y + y, minlength=most_x * most_y).reshape(most_x, most_y))
    total = n * (n - 1) / 2
    tied_x, tied_y, tied_both = (_pairs_within(each) for each in (x, y, _codes(x * most_y + y)))
    untied = total - tied_x - tied_y + tied_both
    net = 2 * float(_dominated(x, y).sum()) - untied
    return Order(net, total - tied_x, total - tied_y, n, min(most_x, most_y))


def order_of_tables(table: ArrayLike) -> Order:
    """The order of tables (..., K, L) of counts, both variables rising."""
    counts = np.asarray(table, np.float64)
    rows, columns, total = counts.sum(-1), counts.sum(-2), counts.sum((-2, -1))
    untied_x, untied_y = ((total**2 - (each**2).sum(-1)) / 2 for each in (rows, columns))
    values = np.minimum((rows > 0).sum(-1), (columns > 0).sum(-1)).astype(np.float64)
    return Order(_below(counts) - _below(counts[..., ::-1]), untied_x, untied_y, total, values)


def _below(table: Floats) -> Floats:
    """Pairs of observations of which one lies below the other in both variables."""
    below = np.cumsum(np.cumsum(table, -2), -1)  # (..., K, L): all with a score and a gold at most this
    less = np.zeros_like(table)
    less[..., 1:, 1:] = below[..., :-1, :-1]
    return np.asarray((table * less).sum((-2, -1)))


class ByItem(NamedTuple):
    """How the partners of each observation (n,) fall, and the order of all pairs, which is half of their sums."""

    net: Floats  # concordant minus discordant partners
    untied_first: Floats  # partners with another value of the first variable
    untied_second: Floats
    order: Order


def by_item(first: ArrayLike, second: ArrayLike) -> ByItem:
    """The partners of each of n observations, given as two arrays (n,)."""
    x, y = _codes(first), _codes(second)
    sizes = np.bincount(x), np.bincount(y)
    net = _net_by_item(x, y)
    free_x, free_y = (len(x) - size[codes].astype(np.float64) for size, codes in zip(sizes, (x, y), strict=True))
    order = Order(net.sum() / 2, free_x.sum() / 2, free_y.sum() / 2, len(x), min(map(len, sizes)))
    return ByItem(net, free_x, free_y, order)


def _net_by_item(x: NDArray[np.int64], y: NDArray[np.int64]) -> Floats:
    if len(x) and (int(x.max()) + 1) * (int(y.max()) + 1) <= _MOST_CELLS:
        return _concordance_by_cell(x, y)
    down_x, down_y = x.max(initial=0) - x, y.max(initial=0) - y
    concordant = _dominated(x, y) + _dominated(down_x, down_y)
    discordant = _dominated(x, down_y) + _dominated(down_x, y)
    return (concordant - discordant).astype(np.float64)


def _concordance_by_cell(x: NDArray[np.int64], y: NDArray[np.int64]) -> Floats:
    """The same from the table of counts: with few distinct values every row of a cell has the same partners."""
    shape = (int(x.max()) + 1, int(y.max()) + 1)
    below = np.zeros((shape[0] + 1, shape[1] + 1))
    below[1:, 1:] = np.bincount(x * shape[1] + y, minlength=shape[0] * shape[1]).reshape(shape).cumsum(0).cumsum(1)
    low, up_x, up_y, total = below[:-1, :-1], below[1:, -1:], below[-1:, 1:], below[-1, -1]
    concordant = low + (total - up_x - up_y + below[1:, 1:])  # below in both, or above in both
    discordant = (below[:-1, -1:] - below[:-1, 1:]) + (below[-1:, :-1] - below[1:, :-1])
    return np.asarray((concordant - discordant)[x, y])


def _codes(values: ArrayLike) -> NDArray[np.int64]:
    return np.unique(np.asarray(values), return_inverse=True)[1].astype(np.int64).ravel()


def _pairs_within(codes: NDArray[np.int64]) -> float:
    sizes = np.bincount(codes).astype(np.float64)
    return float((sizes * (sizes - 1) / 2).sum())


def _dominated(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each i the number of j with x_j < x_i and y_j < y_i.

    In the order of rising x and, within a tie, falling y, these are the earlier entries with a smaller y: counted by
    merging blocks of doubling size, each level one sort.
    """
    n = len(x)
    order = np.lexsort((-y, x))
    y = y[order]
    position = np.arange(n)
    counts = np.zeros(n, np.int64)
    width = 1
    while width < n:
        block = position // (2 * width)
        right = (position // width) % 2 == 1
        # right halves come before left halves at equal y, so that only strictly smaller ones are counted
        merged = np.lexsort((~right, y, block))
        left_so_far = np.cumsum(~right[merged])
        starts = np.searchsorted(block[merged], np.arange(block[-1] + 1))
        before = np.concatenate(([0], left_so_far))[starts]
        inner = left_so_far - before[block[merged]]
        chosen = right[merged]
        counts[merged[chosen]] += inner[chosen]
        width *= 2
    out = np.empty(n, np.int64)
    out[order] = counts
    return out
