"""Pearson's and Spearman's correlations. Kendall's, of pairs in order, are in `concordance`."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.building_blocks.weights import ROUNDING, Groups, Weighted, centred, over, point

Floats = NDArray[np.float64]


def pearson(score: ArrayLike, gold: ArrayLike) -> float:
    """Pearson's product-moment correlation of two arrays (n,), in [-1, 1]; NaN where one is constant."""
    return point(weighted_pearson, score, gold)


def spearman(score: ArrayLike, gold: ArrayLike) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, ties at their mean rank."""
    return point(weighted_spearman, score, gold)


def mid_ranks(sizes: ArrayLike) -> Floats:
    """The rank of each group (..., K) of tied values, given its size, from the lowest: the mean of those it spans."""
    size = np.asarray(sizes, np.float64)
    return np.asarray(np.cumsum(size, -1) - (size - 1) / 2)


def weighted_pearson(x: ArrayLike, y: ArrayLike) -> Weighted:
    """Pearson's correlation as a function of weights (b, n)."""
    dx, dy = centred(x), centred(y)
    features = np.column_stack([np.ones_like(dx), dx, dy, dx * dx, dy * dy, dx * dy])

    def statistic(weights: Floats) -> Floats:
        return correlation_of_sums((weights @ features).T)

    return statistic


def weighted_spearman(x: ArrayLike, y: ArrayLike) -> Weighted:
    """Spearman's correlation as a function of weights (b, n): ranks are taken anew in every draw."""
    groups = Groups(x), Groups(y)

    def statistic(weights: Floats) -> Floats:
        total = weights.sum(1)
        middle = (total[:, None] + 1) / 2
        rx, ry = (mid_ranks(each.sums(weights))[:, each.codes] - middle for each in groups)
        moments = [(weights * each).sum(1) for each in (rx, ry, rx * rx, ry * ry, rx * ry)]
        return correlation_of_sums(np.array([total, *moments]))

    return statistic


def correlation_of_sums(moments: Floats) -> Floats:
    """From weighted sums (6, b) of 1, x, y, x^2, y^2, xy, exact for whole numbers; NaN where x or y is constant."""
    total, sx, sy, sxx, syy, sxy = moments
    vx, vy = total * sxx - sx**2, total * syy - sy**2
    varies = (vx > ROUNDING * total * sxx) & (vy > ROUNDING * total * syy)
    scale = np.sqrt(np.maximum(vx, 0)) * np.sqrt(np.maximum(vy, 0))
    return np.clip(over(total * sxy - sx * sy, np.where(varies, scale, 0.0)), -1, 1)


def telling(values: Floats, cluster: NDArray[np.int64] | None = None) -> float:
    """By how many rows (or clusters, codes from 0) values (n,) differ from their mean, as if by each equally much.

    Kish's effective number of the shares in the variance: 3 of 100 rows that are 0 while the others are 1 count as 3.2,
    100 rows half of which are 0 as 100. NaN of values that are all alike.
    """
    apart = np.square(values - values.mean()) if len(values) else values
    parts = apart if cluster is None else np.bincount(cluster, apart)
    return float(parts.sum() ** 2 / (parts @ parts)) if parts.any() else math.nan


def rare_by_chance(one: Floats, other: Floats) -> float:
    """How many of the rows would have the rarer value of both columns if these were independent; NaN unless each column
    has two values.
    """
    counts = [np.unique(each, return_counts=True)[1] for each in (one, other)]
    if any(len(each) != 2 for each in counts):
        return math.nan
    return float(counts[0].min() * counts[1].min() / len(one))
