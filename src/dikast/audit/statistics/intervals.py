"""Confidence intervals: Fisher's for correlations, Wilson's for rates, and the bootstrap (rows or clusters) otherwise.

Bootstrap draws are weights, never copies: identical observations are merged first, so a draw is one multinomial over
the distinct ones. With clusters (items that share a prompt or a scene) whole clusters are drawn.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.building_blocks.contingency import Cells
from dikast.audit.statistics.building_blocks.weights import TableStatistic, Weighted
from dikast.core.confidence import ALIKE, UNDEFINED, Interval, t_of, wilson, wilson_of_groups, z_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
EVERY_DRAW_ALIKE = "every draw alike"
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

    def interval(self, draws: Floats, *, point: bool = False, groups: int = 0) -> Interval:
        """The percentile interval; draws in which the statistic was undefined are left out.

        Of few independent `groups` (rows or clusters) it is too narrow, as a normal interval is beside Student's: where
        their number is given, the percentiles are those that make it as wide (Hesterberg 2015, section 5.3).

        NaN ends if it was undefined in more than a tenth of them: the sample is too thin to say. Likewise if all are
        alike, unless the statistic may honestly be known to a `point` (a rank): the bootstrap of a judge that was right
        ten times out of ten has width 0, which does not mean certainty.
        """
        known = draws[~np.isnan(draws)]
        if len(known) < 0.9 * len(draws):
            return UNDEFINED
        tail = _expanded(self.level, groups) if groups > 1 else (1 - self.level) / 2
        low, high = np.quantile(known, [tail, 1 - tail])
        return Interval(float(low), float(high)) if point or high - low > 1e-12 else UNDEFINED

    def why_none(self, draws: Floats, *, groups: int = 0) -> str:
        """Why `interval` gives none of these draws, where it does not."""
        if groups == 1:
            return "all rows are of one cluster"
        if int(np.isnan(draws).sum()) > 0.1 * len(draws):
            return "undefined in more than a tenth of the draws, where all scores or all gold are equal"
        return EVERY_DRAW_ALIKE


def _expanded(level: float, groups: int) -> float:
    from scipy.special import ndtr

    return float(ndtr(-math.sqrt(groups / (groups - 1)) * t_of(level, groups - 1)))


def holding(value: float, ends: Interval) -> Interval:
    """The interval drawn out to its own estimate, where all draws lie on one side of it.

    Such as tau-c, whose maximum of 1 takes margins that few samples have.
    """
    return Interval(min(ends.low, value), max(ends.high, value))


def fisher(r: float, n: int, level: float = 0.95) -> Interval:
    """Fisher's interval of a Pearson correlation: normal in atanh r with variance 1/(n - 3).

    It applies to independent, roughly bivariate normal observations; otherwise use the bootstrap. None of a perfect
    correlation, that is, within rounding of 1 or -1.
    """
    if n <= 3 or not abs(r) < 1 - ALIKE:
        return UNDEFINED
    half = z_of(level) / math.sqrt(n - 3)
    return Interval(math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half))


def rate(hits: float, n: int, level: float = 0.95, *, dropped: int = 0, note: str = "") -> Estimate:
    """A share of independent observations with Wilson's interval; NaN of none."""
    value = hits / n if n else float("nan")
    return Estimate(value, n, *wilson(hits, n, level), level, "Wilson", dropped, note)


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


def bootstrap_kinds(
    make: Callable[..., Weighted], columns: Sequence[Floats], how: Resampling, cluster: NDArray[np.int64] | None = None
) -> Floats:
    """Draws of a statistic of rows: `make(*columns)` is its function of weights. Equal rows are merged first."""
    kinds = row_kinds(*columns)
    statistic = make(*(column[kinds.sample] for column in columns))
    if cluster is None:
        return bootstrap(statistic, len(kinds.sample), how, counts=kinds.sizes)
    return bootstrap_profiles(statistic, cluster_profile(cluster, kinds), how)


def merged(*columns: Floats) -> tuple[list[Floats], NDArray[np.int64]]:
    """Distinct rows of several columns (n,), and how often each occurs."""
    kinds = row_kinds(*columns)
    return [column[kinds.sample] for column in columns], kinds.sizes


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


def mean_estimate(
    values: ArrayLike,
    level: float,
    cluster: NDArray[np.int64] | None = None,
    *,
    dropped: int = 0,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """A mean (n,) with Student's interval; with `cluster` the variance is that of whole clusters (linearised ratio).

    No end lies outside `within`, the values that the mean can have.
    """
    given = np.asarray(values, np.float64)
    n = len(given)
    if n == 0:
        return Estimate(math.nan, 0, level=level, dropped=dropped, note="no observations")
    mean = float(given.mean())
    found = error_of((given - mean) / n, cluster)
    groups = None if cluster is None else found.groups
    if found.groups < 2:
        note = "one row" if cluster is None else "one cluster"
        return Estimate(mean, n, level=level, dropped=dropped, note=note, groups=groups)
    if np.ptp(given) == 0:
        return Estimate(mean, n, level=level, dropped=dropped, note="all rows alike", groups=groups)
    if found.error < ALIKE:
        return Estimate(mean, n, level=level, dropped=dropped, note="all clusters alike", groups=groups)
    half = t_of(level, found.groups - 1) * found.error
    method = "Student" if cluster is None else "Student, by cluster"
    return kept_within(Estimate(mean, n, mean - half, mean + half, level, method, dropped, groups=groups), within)


def kept_within(found: Estimate, bounds: tuple[float, float]) -> Estimate:
    """The estimate with its value and both ends cut to the values that it can have.

    Values outside are impossible, so cutting does not change the coverage. An interval wholly outside is undefined.
    """
    value, low, high = (float(np.clip(each, *bounds)) for each in (found.value, found.low, found.high))
    if low < high or not found.low < found.high:
        return replace(found, value=value, low=low, high=high)
    return replace(found, value=value, low=math.nan, high=math.nan, note="the whole interval lies off the scale")


class Error(NamedTuple):
    """A standard error, and how many independent groups (rows, or clusters) it was learnt from."""

    error: float
    groups: int


def error_of(parts: Floats, cluster: NDArray[np.int64] | None = None) -> Error:
    """The standard error of a linearised estimate: `parts` (n,) sum to 0 and say what each row moves it by.

    Rows of a cluster are summed first; -1 is a cluster of its own.
    """
    sums = parts if cluster is None else np.bincount(clusters_of(cluster), parts)
    groups = len(sums)
    return Error(math.sqrt(groups / (groups - 1) * float(sums @ sums)) if groups > 1 else math.nan, groups)


def share(
    worth: ArrayLike, level: float, cluster: NDArray[np.int64] | None = None, *, dropped: int = 0, note: str = ""
) -> Estimate:
    """The mean of values in [0, 1] (n,) with Wilson's interval: the one interval of a rate, on every surface.

    Independent zeros and ones are counted. With other values (ties of a half), or `cluster` (-1 is a cluster of its
    own), Wilson's formula takes the number of independent rows that would have the same standard error, and Student's
    quantile for the groups it was learnt from (Korn & Graubard 1998): unlike value +/- error it holds its level for
    few games and near 0 and 1. Where all groups are alike, each counts once.
    """
    given = np.asarray(worth, np.float64)
    n = len(given)
    if n == 0:
        return Estimate(math.nan, 0, level=level, dropped=dropped, note=note or "no observations")
    value = float(given.sum()) / n
    if cluster is None and np.isin(given, (0, 1)).all():
        return Estimate(value, n, *wilson(float(given.sum()), n, level), level, "Wilson", dropped, note)
    return _effective(value, n, (given - given.mean()) / n, level, cluster, dropped=dropped, note=note)


def pooled_share(
    worth: ArrayLike, counts: ArrayLike, level: float, cluster: NDArray[np.int64] | None = None
) -> Estimate:
    """The sum of `worth` (n,) over that of `counts`, each from 0 to its count, with the interval of a `share`.

    Such as the pairs of raters of each item that agree, of all its pairs; rows that count nothing are left out.
    """
    given, many = np.asarray(worth, np.float64), np.asarray(counts, np.float64)
    due = many > 0
    given, many, cluster = given[due], many[due], None if cluster is None else cluster[due]
    if len(given) == 0 or np.ptp(many) == 0:
        return share(given / many, level, cluster)
    value = float(given.sum() / many.sum())
    return _effective(value, len(given), (given - value * many) / many.sum(), level, cluster)


def _effective(
    value: float, n: int, parts: Floats, level: float, cluster: NDArray[np.int64] | None, **told: Any
) -> Estimate:
    """A share of `n` rows that each move by `parts` (n,), with the interval that the docstring of `share` names."""
    codes = None if cluster is None else clusters_of(cluster)
    found = error_of(parts, codes)
    told["groups"] = None if codes is None else found.groups
    error = found.error if np.ptp(parts) > 0 else 0.0
    if codes is None:
        least, method = n, "Wilson, effective n" if error > ALIKE else "Wilson"
    else:
        least, method = 0, "Wilson, by cluster" if error > ALIKE else "Wilson, clusters counted"
    # without clusters no values in [0, 1] vary more than zeros and ones
    ends = wilson_of_groups(value, error, found.groups, level, least=least)
    return Estimate(value, n, *ends, level, method, **told)


def bounded_mean(
    values: ArrayLike,
    level: float,
    cluster: NDArray[np.int64] | None = None,
    *,
    dropped: int = 0,
    within: tuple[float, float] = (-1.0, 1.0),
) -> Estimate:
    """The mean of values within two bounds, with the interval of a `share` drawn out between them."""
    low, high = within
    found = share((np.asarray(values, np.float64) - low) / (high - low), level, cluster, dropped=dropped)
    value, *ends = (low + (high - low) * each for each in (found.value, found.low, found.high))
    return replace(found, value=value, low=ends[0], high=ends[1])


def clusters_of(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Codes from 0 without gaps; rows without a cluster (-1) are each one of their own."""
    alone = codes < 0
    named = np.where(alone, codes.max(initial=0) + 1 + np.cumsum(alone), codes)
    return np.unique(named, return_inverse=True)[1].astype(np.int64).ravel()
