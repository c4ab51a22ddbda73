"""One scale in terms of another: scores of the same or like items on 1-10 and on 1-5 made comparable."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.correlation import mid_ranks

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Equating:
    """A rising map from one scale to another through knots; linear between them, and along the end pieces beyond."""

    at: Floats
    to: Floats

    def __call__(self, scores: ArrayLike) -> Floats:
        """Scores (n,) of the source scale on the target scale."""
        given = np.asarray(scores, np.float64)
        inside = np.interp(given, self.at, self.to)
        if len(self.at) < 2:
            return inside
        first = (self.to[1] - self.to[0]) / (self.at[1] - self.at[0])
        last = (self.to[-1] - self.to[-2]) / (self.at[-1] - self.at[-2])
        below = np.minimum(given - self.at[0], 0) * first
        return np.asarray(inside + below + np.maximum(given - self.at[-1], 0) * last)


def equate(
    source: ArrayLike, target: ArrayLike, method: Literal["equipercentile", "linear"] = "equipercentile"
) -> Equating:
    """Learn the map from scores of anchor items on two scales (not necessarily the same items, but alike ones).

    `equipercentile`: equal mid-percentile ranks, interpolated (Kolen & Brennan 2014, chapter 2); `linear`: equal mean
    and standard deviation. ValueError when a side is constant.
    """
    x, y = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if len(x) == 0 or len(y) == 0 or np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError("anchor scores must differ among themselves on both scales")
    if method == "linear":
        slope = y.std() / x.std()
        at = np.array([x.min(), x.max()])
        return Equating(at, y.mean() + slope * (at - x.mean()))
    values_x, rank_x = _mid_percentiles(x)
    values_y, rank_y = _mid_percentiles(y)
    return Equating(values_x, np.interp(rank_x, rank_y, values_y))


def _mid_percentiles(values: Floats) -> tuple[Floats, Floats]:
    distinct, counts = np.unique(values, return_counts=True)
    return distinct, (mid_ranks(counts) - 0.5) / len(values)
