"""Inter-rater agreement, of any number of raters: Fleiss' kappa, Krippendorff's alpha, intraclass correlation."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.building_blocks.weights import ROUNDING, Weighted, centred, over
from dikast.audit.statistics.correlation import mid_ranks

Floats = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]


def fleiss_kappa(ratings: ArrayLike) -> float:
    """Agreement of a fixed number of raters, nominal labels, beyond chance; NaN if only one label occurs.

    ratings: (raters, items) codes or numbers, none missing. Source: Fleiss 1971, "Measuring nominal scale agreement
    among many raters".
    """
    given = np.asarray(ratings)
    raters, items = given.shape
    if raters < 2 or items == 0:
        return math.nan
    values, codes = np.unique(given, return_inverse=True)
    codes = codes.reshape(given.shape)
    counts = np.zeros((items, len(values)))
    for row in codes:
        counts[np.arange(items), row] += 1
    observed = float(((counts * (counts - 1)).sum(1) / (raters * (raters - 1))).mean())
    expected = float(((counts.sum(0) / counts.sum()) ** 2).sum())
    return (observed - expected) / (1 - expected) if len(values) > 1 else math.nan


def krippendorff_alpha(ratings: ArrayLike, level: Level) -> float:
    """Krippendorff's alpha: 1 minus observed over expected disagreement; any number of raters, NaN where one is
    missing.

    ratings: (raters, items) numbers. Items with fewer than two ratings are left out. NaN when only one value occurs.
    The differences: nominal 0 or 1; interval (c - k)^2; ordinal the squared count of ratings from c to k, those at the
    ends halved. Source: Krippendorff 2011, "Computing Krippendorff's alpha-reliability".
    """
    given = np.asarray(ratings, np.float64)
    present = ~np.isnan(given)
    used = present.sum(0) >= 2
    given, present = given[:, used], present[:, used]
    if not present.any():
        return math.nan
    values, flat = np.unique(given[present], return_inverse=True)
    if len(values) < 2:
        return math.nan
    items = np.broadcast_to(np.arange(given.shape[1]), given.shape)[present]
    return _alpha(flat.astype(np.int64), items, present.sum(0), values, level)


def _alpha(
    codes: NDArray[np.int64], items: NDArray[np.intp], sizes: NDArray[np.int64], values: Floats, level: Level
) -> float:
    total = len(codes)
    frequency = np.bincount(codes, minlength=len(values)).astype(np.float64)
    if level == "interval":  # closed form: no table, so continuous ratings are fine
        number = values[codes]
        sums, squares = np.bincount(items, number), np.bincount(items, number**2)
        observed = float((2 * (sizes * squares - sums**2) / (sizes - 1)).sum()) / total
        expected = 2 * float(total * (number**2).sum() - number.sum() ** 2) / (total * (total - 1))
        return 1 - observed / expected
    pairs = np.zeros((len(values), len(values)))
    by_item = np.zeros((len(sizes), len(values)))
    np.add.at(by_item, (items, codes), 1)
    weight = 1 / (sizes - 1)
    pairs = (by_item * weight[:, None]).T @ by_item
    pairs[np.diag_indices(len(values))] -= (by_item * weight[:, None]).sum(0)
    if level == "nominal":
        distance = 1 - np.eye(len(values))
    else:
        middle = mid_ranks(frequency)
        distance = np.subtract.outer(middle, middle) ** 2
    observed = float((pairs * distance).sum()) / total
    expected = float(frequency @ distance @ frequency) / (total * (total - 1))
    return 1 - observed / expected


def icc_2_1(ratings: ArrayLike) -> float:
    """Intraclass correlation ICC(2,1): two-way random effects, absolute agreement, one rater.

    ratings: (raters, items) numbers, none missing. NaN without variation or with fewer than two raters or items.
    Source: Shrout & Fleiss 1979, "Intraclass correlations: uses in assessing rater reliability".
    """
    given = np.asarray(ratings, np.float64)
    raters, items = given.shape
    return float(weighted_icc(*given)(np.ones((1, items)))[0]) if raters > 1 and items > 1 else math.nan


def weighted_icc(*raters: ArrayLike) -> Weighted:
    """ICC(2,1) of complete ratings, one array (n,) a rater, as a function of weights (b, n).

    Sums of squares come from moments, all times raters times items, so that those of whole numbers are exact.
    """
    count = len(raters)
    given = centred(np.concatenate([np.asarray(each, np.float64) for each in raters])).reshape(count, -1)
    features = np.column_stack([np.ones(given.shape[1]), *given, given.sum(0) ** 2, (given**2).sum(0)])

    def statistic(weights: Floats) -> Floats:
        total, *sums, squared_sums, squares = (weights @ features).T
        by_rater = np.array(sums)
        correction = by_rater.sum(0) ** 2
        every = count * total * squares - correction
        items, between = total * squared_sums - correction, count * (by_rater**2).sum(0) - correction
        rest = (every - items - between) / ((count - 1) * (total - 1))
        items, between = items / (total - 1), between / (count - 1)
        bottom = items + (count - 1) * rest + count * (between - rest) / total
        return over(items - rest, np.where(every > ROUNDING * count * total * squares, bottom, 0.0))

    return statistic
