"""Mutual information of a surface feature and the score, compared with shuffled scores."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.correlation import pearson
from dikast.audit.statistics.intervals import fisher

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Information:
    """Mutual information of a feature and the score, in bits, from `n` observations.

    `null` is its mean and `null_high` its 95 % quantile over `draws` shuffles of the scores; `p` is the share of
    shuffles, the observed order included, with at least as much information. `r` is Pearson's correlation with its
    Fisher interval at 95 %. NaN if the feature or the score is constant.
    """

    feature: str
    n: int
    bits: float
    null: float
    null_high: float
    p: float
    r: float
    r_low: float
    r_high: float
    draws: int

    @property
    def excess(self) -> float:
        """Bits above the mean of the shuffles."""
        return self.bits - self.null

    def to_dict(self) -> dict[str, Any]:
        """As JSON; NaN becomes null when it is written."""
        return {**asdict(self), "excess": self.excess}


def information(
    feature: str, values: ArrayLike, scores: ArrayLike, *, bins: int = 8, draws: int = 200, seed: int = 0
) -> Information:
    """Plug-in mutual information of `values` (n,), in at most `bins` quantile bins, and `scores` (n,).

    The plug-in estimate is biased upwards for few observations; the shuffles have the same bias, so compare it with
    `null`.
    """
    x, y = np.asarray(values, np.float64), np.asarray(scores, np.float64)
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    n = len(x)
    r = pearson(x, y)
    interval = fisher(r, n)
    codes, labels = cut(x, bins), np.unique(y, return_inverse=True)[1].astype(np.int64)
    if n < 2 or not codes.any() or not labels.any():
        nan = math.nan
        return Information(feature, n, nan, nan, nan, nan, r, interval.low, interval.high, draws)
    rng = np.random.default_rng(seed)
    found = mutual_information(codes, labels)
    null = np.array([mutual_information(codes, rng.permutation(labels)) for _ in range(draws)])
    p = (1 + int((null >= found - 1e-12).sum())) / (1 + draws)
    high = float(np.quantile(null, 0.95))
    return Information(feature, n, found, float(null.mean()), high, p, r, interval.low, interval.high, draws)


def cut(values: NDArray[np.float64], bins: int) -> Codes:
    """Quantile bins as codes from 0: at most `bins` classes of about equal count; equal values share a class."""
    if not len(values):
        return np.zeros(0, np.int64)
    edges = np.unique(np.quantile(values, np.arange(1, bins) / bins))
    codes = np.searchsorted(edges, values, side="right")
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def mutual_information(a: Codes, b: Codes) -> float:
    """Of two arrays (n,) of codes from 0, in bits: sum of p(a, b) log2 p(a, b) / p(a) p(b)."""
    width = int(b.max()) + 1
    joint = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width) / len(a)
    outer = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    there = joint > 0
    return max(0.0, float((joint[there] * np.log2(joint[there] / outer[there])).sum()))
