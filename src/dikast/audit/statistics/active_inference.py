"""Active statistical inference: a mean from labels that were chosen with known, unequal probabilities."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.intervals import clusters_of, error_of, kept_within, t_of
from dikast.audit.statistics.ppi import ANY

Codes = NDArray[np.int64]


def active_mean(
    gold: ArrayLike,
    judged: ArrayLike,
    chance: ArrayLike,
    unlabelled: ArrayLike,
    level: float = 0.95,
    cluster: Codes | None = None,
    *,
    within: tuple[float, float] = ANY,
) -> Estimate:
    """The mean of gold over all items, from verdicts on all and labels on some that were chosen with unequal chances.

    gold, judged, chance (n,): label, verdict and probability (0 < p <= 1) of being chosen of the labelled items;
    unlabelled (N,): verdicts of the others. Each item adds its prediction a + b f, and a labelled one (y - a - b f) / p
    besides; a and b are those that make the variance of the choice least, sum of (1 - p) / p^2 (y - a - b f)^2. As n
    grows the estimate is unbiased whatever the judge's errors; where every p is 1 it is the mean of the labels. The
    interval is Student's with k - 2 degrees of freedom, where k <= n is the effective number of labels, (sum w)^2 / sum
    w^2 for the weights w = (1 - p) / p^2; with `cluster` (n + N,), codes of the labelled rows and then of the others,
    the variance is that of cluster sums, and k is at most the number of clusters with a label.
    Neither the value nor an end lies outside `within`. Raises ValueError for a chance outside (0, 1].
    Source: Zrnic & Candes 2024, "Active Statistical Inference" (2403.03208), the mean; departures: the intercept a,
    Student's quantile, and the effective number of labels.
    """
    y, f, p, rest = (np.asarray(each, np.float64) for each in (gold, judged, chance, unlabelled))
    n, total = len(y), len(y) + len(rest)
    if not ((p > 0) & (p <= 1)).all():
        raise ValueError("the probability of being chosen lies above 0 and is at most 1")
    if n < 3:
        return undefined(n, "needs at least three labels", level=level)
    weight = (1 - p) / p**2
    a, b = _line(y, f, weight)
    parts = np.concatenate([a + b * f + (y - a - b * f) / p, a + b * rest])
    value = float(parts.mean())
    method, note = f"active inference, {len(rest):,} unlabelled", f"weight {b:.3f}"
    effective = float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else float(n)
    free = effective - 2
    if cluster is None:
        error = math.sqrt(float(np.var(parts, ddof=1)) / total)
    else:
        error, free = error_of((parts - value) / total, cluster).error, min(free, clusters_of(cluster[:n]).max() - 1.0)
        method += ", by cluster"
    if free < 1:
        return Estimate(value, n, level=level, method=method, note="too few labels for an interval")
    error *= math.sqrt((free + 2) / free)  # two coefficients are fitted
    half = t_of(level, free) * error
    return kept_within(Estimate(value, n, value - half, value + half, level, method, note=note), within)


def _line(y: NDArray[np.float64], f: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """Intercept and slope of the weighted least squares line; 0 and 0 without weight, slope 0 where f is constant."""
    if not weight.any():
        return 0.0, 0.0
    middle_y, middle_f = np.average(y, weights=weight), np.average(f, weights=weight)
    spread = float(np.sum(weight * (f - middle_f) ** 2))
    slope = float(np.sum(weight * (f - middle_f) * (y - middle_y))) / spread if spread > 1e-12 else 0.0
    return float(middle_y - slope * middle_f), slope
