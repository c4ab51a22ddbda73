"""Concordant and discordant pairs in O(n log^2 n), in numpy, with exact handling of ties."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_MOST_CELLS = 10_000


class PairCounts(NamedTuple):
    """How the n(n-1)/2 pairs of observations fall; the five counts sum to all of them."""

    concordant: float
    discordant: float
    tied_first: float  # tied in the first variable only
    tied_second: float  # tied in the second variable only
    tied_both: float

    @property
    def tau_b(self) -> float:
        """Kendall's tau-b: ties lower the reachable maximum of neither variable; NaN if one is constant."""
        untied_first = self.concordant + self.discordant + self.tied_second
        untied_second = self.concordant + self.discordant + self.tied_first
        if untied_first == 0 or untied_second == 0:
            return math.nan
        return (self.concordant - self.discordant) / math.sqrt(untied_first * untied_second)


def pair_counts(first: ArrayLike, second: ArrayLike) -> PairCounts:
    """Count the pairs of observations (n,), (n,) by concordance."""
    x, y = _codes(first), _codes(second)
    n = len(x)
    total = n * (n - 1) / 2
    tied_x, tied_y = _pairs_within(x), _pairs_within(y)
    tied_both = _pairs_within(_codes(x * (y.max(initial=0) + 1) + y))
    concordant = float(_dominated(x, y).sum())
    untied = total - tied_x - tied_y + tied_both
    return PairCounts(concordant, untied - concordant, tied_x - tied_both, tied_y - tied_both, tied_both)


def concordance_by_item(first: ArrayLike, second: ArrayLike) -> Floats:
    """Concordant less discordant partners of each observation, (n,); the mean of these is twice the pair total / n."""
    x, y = _codes(first), _codes(second)
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


def untied_by_item(values: ArrayLike) -> Floats:
    """With how many others each observation is not tied, (n,)."""
    codes = _codes(values)
    sizes = np.bincount(codes)
    return (len(codes) - sizes[codes]).astype(np.float64)


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
