"""Significance tests: McNemar, Student's t for shares, corrections for many tests (Holm, Benjamini-Yekutieli)."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.intervals import Error, clusters_of, error_of
from dikast.audit.statistics.sample_size import pairs_for_mcnemar
from dikast.core.confidence import ALIKE
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class McNemar(NamedTuple):
    """Items that only one of two judges got right of `n`, and the two-sided p-value that both are equally good."""

    only_first: int
    only_second: int
    p: float
    n: int
    clustered: bool = False


def mcnemar(first_right: ArrayLike, second_right: ArrayLike, cluster: Codes | None = None) -> McNemar:
    """Two judges on the same items: are they right equally often? Booleans (n,).

    Exact binomial test of the discordant items (McNemar 1947); p is 1 without any. With `cluster` (n,) items of a
    cluster are not independent: Student's test of the mean difference with the variance of cluster sums (as Durkalski
    et al. 2003, "Analysis of clustered matched-pair data"), at least two clusters.
    """
    from scipy.stats import binomtest

    first, second = np.asarray(first_right, bool), np.asarray(second_right, bool)
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    discordant = only_first + only_second
    if cluster is None or discordant == 0:
        p = float(binomtest(only_first, discordant).pvalue) if discordant else 1.0
        return McNemar(only_first, only_second, p, len(first), cluster is not None)
    less = first.astype(np.float64) - second
    found = error_of((less - less.mean()) / len(less), cluster)
    return McNemar(only_first, only_second, student(float(less.mean()), found), len(first), True)


def mcnemar_told(test: McNemar, names: tuple[str, str], right: str, level: float) -> str:
    """The test of the judges of these names in words, and how many items would show the difference (power .8)."""
    gain, discordant = abs(test.only_first - test.only_second), test.only_first + test.only_second
    way = "McNemar by cluster" if test.clustered else "McNemar"
    told = (
        f"{way}: only {names[0]} {right} {test.only_first:,}, only {names[1]} {test.only_second:,}, {_p_told(test.p)}"
    )
    if gain:
        needed = pairs_for_mcnemar(gain / test.n, discordant / test.n, level=1 - level)
        told += f"; detecting such a difference with power .8 takes {counted(int(needed), 'item')}"
        told += " (if independent)" if test.clustered else ""
    return told


def _p_told(p: float) -> str:
    return "p undefined (clusters are all alike)" if math.isnan(p) else f"p = {p:.4g}"


def student(value: float, given: Error) -> float:
    """Two-sided p-value of a linearised estimate against 0, with one degree of freedom less than there are groups.

    NaN if all groups are equal, since the variance is then unknown.
    """
    if not given.error > ALIKE:
        return 1.0 if given.groups > 1 and abs(value) < ALIKE else math.nan
    from scipy.special import stdtr

    return float(2 * stdtr(given.groups - 1, -abs(value) / given.error))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted so that the chance of any false alarm is kept (Holm 1979); NaN stay NaN and do not count."""
    return _step(p_values, lambda p, rank, m: p * (m - rank), np.maximum.accumulate)


def benjamini_yekutieli(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted to bound the share of false alarms under any dependence (Benjamini & Yekutieli 2001)."""

    def scaled(p: Floats, rank: NDArray[np.int64], m: int) -> Floats:
        return np.asarray(p * m * (1 / np.arange(1, m + 1)).sum() / (rank + 1))

    return _step(p_values, scaled, lambda each: np.minimum.accumulate(each[::-1])[::-1])


def _step(
    p_values: Sequence[float],
    scaled: Callable[[Floats, NDArray[np.int64], int], Floats],
    smooth: Callable[[Floats], Floats],
) -> list[float]:
    given = np.asarray(p_values, np.float64)
    known = np.flatnonzero(~np.isnan(given))
    out = np.full(len(given), np.nan)
    order = known[np.argsort(given[known], kind="stable")]
    if len(order):
        raw = scaled(given[order], np.arange(len(order)), len(order))
        out[order] = np.minimum(1.0, smooth(raw))
    return out.tolist()


def two_rates(hits_1: float, n_1: int, hits_2: float, n_2: int) -> float:
    """Two-sided p-value that two independent rates are equal (pooled normal test); NaN when a sample is empty."""
    if n_1 == 0 or n_2 == 0:
        return math.nan
    pooled = (hits_1 + hits_2) / (n_1 + n_2)
    if pooled in (0, 1):
        return 1.0
    z = (hits_1 / n_1 - hits_2 / n_2) / math.sqrt(pooled * (1 - pooled) * (1 / n_1 + 1 / n_2))
    return two_sided(z)


def two_correlations(r_1: float, n_1: int, r_2: float, n_2: int) -> float:
    """Two-sided p-value that two independent correlations are equal (Fisher's z); NaN when either is undefined."""
    if n_1 <= 3 or n_2 <= 3 or not (abs(r_1) < 1 and abs(r_2) < 1):
        return math.nan
    z = (math.atanh(r_1) - math.atanh(r_2)) / math.sqrt(1 / (n_1 - 3) + 1 / (n_2 - 3))
    return two_sided(z)


def two_sided(z: float) -> float:
    """The chance of a normal deviate at least this far from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


class Against:
    """Slices against the rest, by cluster: clusters are summed once, whatever the number of slices."""

    def __init__(self, hits: Floats, cluster: Codes) -> None:
        self.hits, self.cluster = hits, clusters_of(cluster)
        self.sums, self.sizes = np.bincount(self.cluster, hits), np.bincount(self.cluster).astype(np.float64)

    def p(self, chosen: Codes) -> float:
        """Two-sided p-value that the mean of `hits` is the same in the `chosen` rows (indices) as in all others."""
        inside, outside = len(chosen), len(self.hits) - len(chosen)
        if inside == 0 or outside == 0:
            return math.nan
        groups = len(self.sums)
        mine = np.bincount(self.cluster[chosen], self.hits[chosen], groups)
        count = np.bincount(self.cluster[chosen], minlength=groups)
        one, two = mine.sum() / inside, (self.sums.sum() - mine.sum()) / outside
        parts = (mine - one * count) / inside - (self.sums - mine - two * (self.sizes - count)) / outside
        return student(float(one - two), error_of(parts))
