"""Intervals: Fisher's for correlations, Wilson's for rates, and the bootstrap, by row or by cluster, for the rest.

Bootstrap draws are weights, never copies: identical observations are merged first, so a draw is one multinomial over
the distinct ones. With clusters (items that share a prompt or a scene) whole clusters are drawn.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.concordance import concordance_by_item, untied_by_item
from dikast.audit.contingency import Cells, TableStatistic
from dikast.audit.estimate import UNDEFINED, Estimate, Interval

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Weighted = Callable[[Floats], Floats]
_BATCH = 4_000_000  # weights held at once: 32 MB


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals are drawn. `level` in (0, 1); equal `seed`s give equal intervals."""

    draws: int = 2000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"the level of an interval lies between 0 and 1, got {self.level}")
        if self.draws < 1:
            raise ValueError(f"at least one bootstrap draw is needed, got {self.draws}")

    def rng(self) -> np.random.Generator:
        """A fresh generator: every interval of an audit is drawn from the same stream, so rows can be compared."""
        return np.random.default_rng(self.seed)

    def interval(self, draws: Floats, *, point: bool = False) -> Interval:
        """The percentile interval; draws in which the statistic was undefined are left out.

        NaN ends if it was undefined in more than a tenth of them: the sample is too thin to say. Likewise if all are
        alike, unless the statistic may honestly be known to a `point` (a rank): the bootstrap of a judge that was right
        ten times of ten has width 0, and that is no certainty.
        """
        known = draws[~np.isnan(draws)]
        if len(known) < 0.9 * len(draws):
            return UNDEFINED
        low, high = np.quantile(known, [(1 - self.level) / 2, (1 + self.level) / 2])
        return Interval(float(low), float(high)) if point or high - low > 1e-12 else UNDEFINED


def z_of(level: float) -> float:
    """The two-sided normal quantile, 1.96 at .95."""
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def fisher(r: float, n: int, level: float = 0.95) -> Interval:
    """Fisher's interval of a Pearson correlation: normal in atanh r with variance 1/(n - 3).

    It applies to independent, roughly bivariate normal observations; otherwise the bootstrap is the honest one.
    """
    if n <= 3 or not abs(r) < 1:
        return UNDEFINED
    half = z_of(level) / math.sqrt(n - 3)
    return Interval(math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half))


def wilson(hits: float, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a rate of independent observations (Wilson 1927)."""
    if n == 0:
        return UNDEFINED
    z, p = z_of(level), hits / n
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def bootstrap_tables(
    cells: Cells, statistics: Mapping[str, TableStatistic], how: Resampling, cluster: NDArray[np.int64] | None = None
) -> dict[str, Floats]:
    """Draws (how.draws,) of each statistic of the contingency table; `cluster` holds codes from 0."""
    shape = cells.table.shape
    found: dict[str, list[Floats]] = {name: [] for name in statistics}
    if cluster is None:
        parts, sizes = cells.table.ravel()[None, :], None
    else:
        parts = cells.tables_by(cluster, int(cluster.max(initial=0)) + 1).reshape(-1, cells.size)
        parts, sizes = np.unique(parts, axis=0, return_counts=True)
    rng = how.rng()
    for count in _batches(how.draws, max(cells.size, len(parts))):
        if sizes is None:
            total = int(parts.sum())
            drawn = rng.multinomial(total, parts[0] / total, count).astype(np.float64)
        else:
            drawn = _multinomial(rng, sizes, count) @ parts
        tables = drawn.reshape(count, *shape)
        for name, statistic in statistics.items():
            found[name].append(statistic(tables, cells.x, cells.y))
    return {name: np.concatenate(each) for name, each in found.items()}


def bootstrap(
    statistic: Weighted, n: int, how: Resampling, *, cluster: NDArray[np.int64] | None = None, counts: ArrayLike = ()
) -> Floats:
    """Draws (how.draws,) of a statistic of weighted observations: it maps weights (b, n) to values (b,).

    With `counts` (n,), observation i stands for that many equal ones. `cluster` (n,) draws whole clusters instead.
    """
    rng, found = how.rng(), []
    sizes = np.asarray(counts, np.int64) if len(np.atleast_1d(counts)) else None
    groups = n if cluster is None else int(cluster.max(initial=0)) + 1
    for count in _batches(how.draws, n):
        if cluster is not None:
            weights = _multinomial(rng, np.ones(groups, np.int64), count)[:, cluster]
        else:
            weights = _multinomial(rng, np.ones(n, np.int64) if sizes is None else sizes, count)
        found.append(statistic(weights))
    return np.concatenate(found)


class Kinds(NamedTuple):
    """Distinct rows: where the first of each kind stands, which kind each row is (n,), how often each kind occurs."""

    sample: NDArray[np.int64]
    place: NDArray[np.int64]
    sizes: NDArray[np.int64]


def row_kinds(*columns: NDArray[Any]) -> Kinds:
    """The kinds of rows of several columns (n,); NaN equals NaN. One sort a column: cheaper than sorting rows."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        codes = np.unique(codes * len(values) + place.ravel(), return_inverse=True)[1].ravel()
    _, sample, counts = np.unique(codes, return_index=True, return_counts=True)
    return Kinds(sample.astype(np.int64), codes.astype(np.int64), counts.astype(np.int64))


def cluster_profile(cluster: NDArray[np.int64], kinds: Kinds) -> "csr_array":
    """How many rows of each kind each cluster holds, (clusters, kinds), sparse."""
    from scipy.sparse import coo_array

    codes = clusters_of(cluster)
    shape = (int(codes.max(initial=0)) + 1, len(kinds.sample))
    return coo_array((np.ones(len(codes)), (codes, kinds.place)), shape=shape).tocsr()


def bootstrap_profiles(statistic: Weighted, profile: "csr_array", how: Resampling) -> Floats:
    """As `bootstrap` with clusters, when rows fall into few kinds: whole clusters are drawn, kinds are weighted."""
    rng, found, groups = how.rng(), [], profile.shape[0]
    sizes = np.ones(groups, np.int64)
    for count in _batches(how.draws, max(groups, profile.shape[1])):
        found.append(statistic(np.asarray(_multinomial(rng, sizes, count) @ profile)))
    return np.concatenate(found)


def merged(*columns: Floats) -> tuple[list[Floats], NDArray[np.int64]]:
    """Distinct rows of several columns (n,), and how often each occurs."""
    kinds = row_kinds(*columns)
    return [column[kinds.sample] for column in columns], kinds.sizes


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


def _multinomial(rng: np.random.Generator, sizes: NDArray[np.int64], count: int) -> Floats:
    """Counts (count, len(sizes)) of as many draws as there are units, each kind as likely as its share."""
    kinds, units = len(sizes), int(sizes.sum())
    if kinds == units:  # all distinct: counting drawn indices is many times faster than a multinomial
        drawn = rng.integers(0, kinds, (count, kinds), dtype=np.int32)
        drawn += (np.arange(count, dtype=np.int32) * kinds)[:, None]
        return np.bincount(drawn.ravel(), minlength=count * kinds).reshape(count, kinds).astype(np.float64)
    return rng.multinomial(units, sizes / units, count).astype(np.float64)


def _batches(draws: int, width: int) -> Iterator[int]:
    most = max(1, _BATCH // max(width, 1))
    for start in range(0, draws, most):
        yield min(most, draws - start)


def tau_interval(x: ArrayLike, y: ArrayLike, level: float, cluster: NDArray[np.int64] | None = None) -> Interval:
    """An interval for Kendall's tau-b of continuous scores, by linearising it (it is a ratio of U-statistics).

    The influence of each observation is taken from its own concordant and untied partners; variances add up over
    observations, or over clusters; the interval is normal in atanh tau.
    """
    n = len(np.asarray(x))
    if n < 4:
        return UNDEFINED
    concordant, free_x, free_y = (
        each / (n - 1) for each in (concordance_by_item(x, y), untied_by_item(x), untied_by_item(y))
    )
    ux, uy = free_x.mean(), free_y.mean()
    if ux == 0 or uy == 0:
        return UNDEFINED
    tau = float(concordant.mean() / math.sqrt(ux * uy))
    influence = 2 * (concordant / math.sqrt(ux * uy) - tau * (free_x / ux + free_y / uy) / 2)
    if cluster is not None:
        influence = np.bincount(cluster, influence)
    groups = len(influence)
    if groups < 2 or abs(tau) >= 1:
        return UNDEFINED
    half = z_of(level) * math.sqrt(groups / (groups - 1) * float((influence**2).sum())) / n / (1 - tau**2)
    return Interval(math.tanh(math.atanh(tau) - half), math.tanh(math.atanh(tau) + half))


def mean_estimate(
    values: ArrayLike, level: float, cluster: NDArray[np.int64] | None = None, *, dropped: int = 0
) -> Estimate:
    """A mean (n,) with Student's interval; with `cluster` the variance is that of whole clusters (linearised ratio)."""
    given = np.asarray(values, np.float64)
    n = len(given)
    if n == 0:
        return Estimate(math.nan, 0, level=level, dropped=dropped, note="no observations")
    mean = float(given.mean())
    parts = given - mean if cluster is None else np.bincount(cluster, given - mean)
    parts = parts if cluster is None else parts[np.bincount(cluster) > 0]
    if len(parts) < 2:
        return Estimate(mean, n, level=level, dropped=dropped, note="one cluster: no interval")
    from scipy.special import stdtrit

    error = math.sqrt(len(parts) / (len(parts) - 1) * float(parts @ parts)) / n
    if np.ptp(given) == 0:
        return Estimate(mean, n, level=level, dropped=dropped, note="all alike: no interval")
    half = float(stdtrit(len(parts) - 1, (1 + level) / 2)) * error
    method = "Student" if cluster is None else "Student, by cluster"
    return Estimate(mean, n, mean - half, mean + half, level, method, dropped)


def clusters_of(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Codes from 0 without gaps; rows without a cluster (-1) are each one of their own."""
    alone = codes < 0
    named = np.where(alone, codes.max(initial=0) + 1 + np.cumsum(alone), codes)
    return np.unique(named, return_inverse=True)[1].astype(np.int64).ravel()
