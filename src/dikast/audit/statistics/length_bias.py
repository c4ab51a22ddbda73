"""Length bias (verbosity bias): the error of scores against the length of the judged response."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate, undefined


def length_slope(
    score: ArrayLike,
    gold: ArrayLike,
    length: ArrayLike,
    level: float = 0.95,
    cluster: NDArray[np.int64] | None = None,
) -> Estimate:
    """By how many units of the scale the error (score minus gold) rises when the response is twice as long.

    score, gold, length: arrays (n,), lengths above 0 in any unit. The least-squares slope of the error on log2 length;
    the interval is normal with the heteroscedasticity-robust variance (White 1980), summed over clusters where they are
    given (codes from 0). 0 says that length alone moves nothing: gold may well depend on it.
    """
    x = np.log2(np.asarray(length, np.float64))
    error = np.asarray(score, np.float64) - np.asarray(gold, np.float64)
    n = len(x)
    if n < 3 or np.ptp(x) == 0:
        return undefined(n, "fewer than 3 responses" if n < 3 else "all responses are equally long", level=level)
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ error) / spread
    parts = centred * (error - error.mean() - slope * centred) / spread
    if cluster is not None:
        parts = np.bincount(cluster, parts)
    groups = len(parts)
    if groups < 3:
        return Estimate(slope, n, level=level, note="fewer than 3 clusters")
    from scipy.special import ndtri

    half = float(ndtri((1 + level) / 2)) * math.sqrt(groups / (groups - 1) * float(parts @ parts))
    return Estimate(slope, n, slope - half, slope + half, level, "least squares, robust variance")
