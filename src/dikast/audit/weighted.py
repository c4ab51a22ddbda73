"""Statistics as functions of weights (b, n) on the rows: what the bootstrap draws."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.contingency import discrimination
from dikast.audit.intervals import Weighted

Floats = NDArray[np.float64]


def weighted_pearson(x: ArrayLike, y: ArrayLike) -> Weighted:
    """Pearson's correlation as a function of weights (b, n), for `bootstrap`."""
    given_x, given_y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    # centred first, so that the moments below do not cancel
    dx, dy = given_x - given_x.mean(), given_y - given_y.mean()
    features = np.column_stack([np.ones_like(dx), dx, dy, dx * dx, dy * dy, dx * dy])

    def statistic(weights: Floats) -> Floats:
        total, sx, sy, sxx, syy, sxy = (weights @ features).T
        return _correlation(total, sx, sy, sxx, syy, sxy)

    return statistic


def weighted_spearman(x: ArrayLike, y: ArrayLike) -> Weighted:
    """Spearman's correlation as a function of weights (b, n): ranks are taken anew in every draw."""
    codes_x, codes_y = (np.unique(np.asarray(each), return_inverse=True)[1].ravel() for each in (x, y))

    def statistic(weights: Floats) -> Floats:
        rx, ry = _weighted_ranks(weights, codes_x), _weighted_ranks(weights, codes_y)
        total = weights.sum(1)
        middle = (total[:, None] + 1) / 2
        rx, ry = rx - middle, ry - middle
        moments = [(weights * each).sum(1) for each in (rx, ry, rx * rx, ry * ry, rx * ry)]
        return _correlation(total, *moments)

    return statistic


def weighted_mean(values: ArrayLike) -> Weighted:
    """The mean as a function of weights (b, n)."""
    given = np.asarray(values, np.float64)

    def statistic(weights: Floats) -> Floats:
        return np.asarray((weights @ given) / weights.sum(1))

    return statistic


def _correlation(total: Floats, sx: Floats, sy: Floats, sxx: Floats, syy: Floats, sxy: Floats) -> Floats:
    vx, vy = sxx - sx**2 / total, syy - sy**2 / total
    scale = np.sqrt(np.maximum(vx, 0) * np.maximum(vy, 0))
    flat = scale <= 1e-12 * np.sqrt(np.maximum(sxx * syy, 1e-300))
    return np.asarray(np.divide(sxy - sx * sy / total, scale, out=np.full_like(scale, np.nan), where=~flat))


def _weighted_ranks(weights: Floats, codes: NDArray[np.int64]) -> Floats:
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sizes = np.add.reduceat(weights[:, order], starts, axis=1)
    middle = np.cumsum(sizes, 1) - (sizes - 1) / 2
    return np.asarray(middle[:, codes])


def weighted_quadratic_kappa(x: ArrayLike, y: ArrayLike) -> Weighted:
    """Cohen's kappa with squared distances, from moments: scores may be continuous."""
    given_x, given_y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    dx, dy = given_x - given_x.mean(), given_y - given_x.mean()
    features = np.column_stack([np.ones_like(dx), dx, dy, dx * dx, dy * dy, (dx - dy) ** 2])

    def statistic(weights: Floats) -> Floats:
        total, sx, sy, sxx, syy, apart = (weights @ features).T
        spread = sxx + syy
        chance = (spread - 2 * sx * sy / total) / total
        flat = chance * total <= 1e-12 * spread  # all alike but for rounding
        return 1 - _over(apart / total, np.where(flat, 0.0, chance))

    return statistic


def weighted_cohen_kappa(x: ArrayLike, y: ArrayLike) -> Weighted:
    """Cohen's kappa of any number of labels; only labels that both raters use can agree by chance."""
    from scipy.sparse import csc_array

    a, b = np.asarray(x), np.asarray(y)
    shared = np.intersect1d(a, b)
    one, two = (csc_array((given[:, None] == shared[None, :]).astype(np.float64)) for given in (a, b))
    same = (a == b).astype(np.float64)

    def statistic(weights: Floats) -> Floats:
        total = weights.sum(1)
        chance = (np.asarray(weights @ one) * np.asarray(weights @ two)).sum(1) / total**2
        return 1 - _over(1 - weights @ same / total, 1 - chance)

    return statistic


def weighted_icc(*raters: ArrayLike) -> Weighted:
    """ICC(2,1) (see `raters.icc_2_1`) of complete ratings, one array (n,) a rater, from moments."""
    given = np.array([np.asarray(each, np.float64) for each in raters])
    given = given - given.mean()
    count = len(given)
    features = np.column_stack([np.ones(given.shape[1]), *given, given.sum(0) ** 2, (given**2).sum(0)])

    def statistic(weights: Floats) -> Floats:
        total, *sums, squared_sums, squares = (weights @ features).T
        by_rater = np.array(sums)
        correction = by_rater.sum(0) ** 2 / (count * total)
        items = squared_sums / count - correction
        between = (by_rater**2).sum(0) / total - correction
        rest = (squares - correction - items - between) / ((count - 1) * (total - 1))
        items, between = items / (total - 1), between / (count - 1)
        bottom = items + (count - 1) * rest + count * (between - rest) / total
        return _over(items - rest, np.where(squares - correction > 1e-9 * squares, bottom, 0.0))

    return statistic


def weighted_discrimination(scores: ArrayLike, labels: int) -> Weighted:
    """Ferguson's delta (see `contingency.discrimination`) of scores on a scale of `labels` values."""
    onehot = (np.asarray(scores)[:, None] == np.unique(np.asarray(scores))[None, :]).astype(np.float64)

    def statistic(weights: Floats) -> Floats:
        return np.asarray(discrimination(weights @ onehot, labels))

    return statistic


def _over(top: Floats, bottom: Floats) -> Floats:
    return np.asarray(np.divide(top, bottom, out=np.full_like(bottom, np.nan), where=bottom > 0))
