"""Agreement of raters beyond chance: Cohen's, Fleiss' and Krippendorff's coefficients, intraclass correlation."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]


def cohen_kappa(
    first: ArrayLike, second: ArrayLike, *, weights: Literal["none", "linear", "quadratic"] = "none"
) -> float:
    """Agreement of two raters beyond chance, at most 1; NaN if chance alone explains everything.

    first, second: arrays (n,) of ratings of the same items. With weights, the values must be numbers: a disagreement
    costs its distance, or its square. Sources: Cohen 1960, "A coefficient of agreement for nominal scales"; Cohen 1968,
    "Weighted kappa". Distances are those of the values, which for 1, 2, 3... are those of the ranks.
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"two raters of the same items are due, got shapes {a.shape} and {b.shape}")
    if len(a) == 0:
        return math.nan
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    table = np.zeros((len(values), len(values)))
    np.add.at(table, (codes[: len(a)], codes[len(a) :]), 1 / len(a))
    if weights == "none":
        cost = 1 - np.eye(len(values))
    else:
        distance = np.abs(np.subtract.outer(values.astype(np.float64), values.astype(np.float64)))
        cost = distance if weights == "linear" else distance**2
    expected = float(table.sum(1) @ cost @ table.sum(0))
    return 1 - float((table * cost).sum()) / expected if expected > 0 else math.nan


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
    """Krippendorff's alpha: 1 less observed over expected disagreement; any number of raters, NaN where one is missing.

    ratings: (raters, items) numbers. Items with fewer than two ratings say nothing and are left out. NaN when only one
    value occurs. The differences: nominal 0 or 1; interval (c - k)^2; ordinal the squared count of ratings from c to k,
    those at the ends halved. Source: Krippendorff 2011, "Computing Krippendorff's alpha-reliability".
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
        middle = np.cumsum(frequency) - frequency / 2
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
    if raters < 2 or items < 2 or np.ptp(given) == 0:
        return math.nan
    grand = given.mean()
    between_items = raters * float(((given.mean(0) - grand) ** 2).sum()) / (items - 1)
    between_raters = items * float(((given.mean(1) - grand) ** 2).sum()) / (raters - 1)
    rest = given - given.mean(0) - given.mean(1)[:, None] + grand
    residual = float((rest**2).sum()) / ((raters - 1) * (items - 1))
    bottom = between_items + (raters - 1) * residual + raters * (between_raters - residual) / items
    return (between_items - residual) / bottom if bottom > 0 else math.nan
