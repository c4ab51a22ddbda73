"""Means of the units that an official figure counts, by group and over groups, with intervals of whole clusters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.intervals import error_of, kept_within, mean_estimate, share
from dikast.core.confidence import ALIKE, t_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
Bounds = tuple[float, float]
SHARE: Bounds = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class OfficialFigure:
    """One official figure; `groups` has it for each group, and `rule` says how failures and groups were counted.

    `ours` has the figure of each group as Dikast counts it, by the rule for that. `pooled`: the value is of all rows
    where the authors print groups of them, each by itself, so that it is no figure of theirs.
    `answered` is the figure of the answered rows alone, all rows alike, and `bounds` what it had been with the worst
    and the best verdicts for the missing ones; None where the audit has both.
    """

    name: str
    value: Estimate
    groups: dict[str, Estimate]
    rule: str
    answered: Estimate | None = None
    bounds: Bounds | None = None
    ours: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    pooled: bool = False

    @property
    def title(self) -> str:
        """The name, and whose figure it is."""
        return f"{'pooled' if self.pooled else 'official'}: {self.name}"


@dataclass(frozen=True, slots=True)
class Units:
    """The points of each unit (n,), which units count, the group and the cluster of each, and how means are told.

    A unit is a row, an item or a group of pairs; rows of one item (its criteria or responses) are a cluster.
    """

    worth: Floats
    counts: Masks
    group: Sequence[str] | None
    cluster: Codes | None
    level: float
    bounds: Bounds

    def mean(self, chosen: Masks | None = None) -> Estimate:
        """The mean of the chosen units (n,), of all by default; those that do not count are dropped."""
        mine = np.ones(len(self.worth), bool) if chosen is None else chosen
        known, dropped = mine & self.counts, int((mine & ~self.counts).sum())
        cluster = None if self.cluster is None else self.cluster[known]
        if not known.any():
            return undefined(0, "undefined: no rows", level=self.level, dropped=dropped)
        if self.bounds == SHARE:
            return share(self.worth[known], self.level, cluster, dropped=dropped)
        return mean_estimate(self.worth[known], self.level, cluster, dropped=dropped, within=self.bounds)

    def by_group(self, group: Sequence[str]) -> dict[str, Estimate]:
        """The mean of the units of each group; `group` (n,) names it."""
        names, place = np.unique(np.array(group, dtype=str), return_inverse=True)
        return {str(name): self.mean(place == code) for code, name in enumerate(names)}

    def percent(self, of: Floats, chosen: Masks | None = None) -> Estimate:
        """The sum over the chosen units in percent of the sum of `of` (n,), with the interval of a linearised ratio."""
        mine = np.ones(len(self.worth), bool) if chosen is None else chosen
        if not mine.any() or (whole := float(of[mine].mean())) <= 0:
            return undefined(int(mine.sum()), "undefined: nothing to be a share of", level=self.level)
        value = 100 * float(self.worth[mine].mean()) / whole
        cluster = None if self.cluster is None else self.cluster[mine]
        moved = mean_estimate(100 * self.worth[mine] / whole - value * of[mine] / whole, self.level, cluster)
        return replace(moved, value=value, low=value + moved.low, high=value + moved.high)

    def over_groups(self, groups: Mapping[str, Estimate], weights: Mapping[str, float]) -> Estimate:
        """The weighted mean of the means of groups, of all that `weights` names.

        Groups that share clusters (the criteria of a sheet, several models' responses to one prompt) are not
        independent, so that the error of clustered rows is that of whole clusters. Where no cluster differs from the
        others the ends are those of groups that move together, the widest that theirs allow.
        """
        found = mean_of({name: groups[name] for name in weights}, weights, self.level, self.bounds)
        if self.cluster is None or self.group is None or math.isnan(found.value):
            return found
        mine = np.array([name in weights for name in self.group]) & self.counts
        whole = sum(weights.values())
        share_of = {name: weight / whole / groups[name].n for name, weight in weights.items()}
        values, places = {name: each.value for name, each in groups.items()}, np.flatnonzero(mine)
        named = [self.group[int(i)] for i in places]
        middle, moved = (np.array([each[name] for name in named]) for each in (values, share_of))
        parts = (self.worth[places] - middle) * moved
        error, method = error_of(parts, self.cluster[places]), f"of {len(weights)} means, by cluster"
        if error.groups < 2 or error.error <= ALIKE:
            ends = [[getattr(groups[name], end) for name in weights] for end in ("low", "high")]
            shares = np.array(list(weights.values())) / whole
            low, high = (float(shares @ np.array(each)) for each in ends)
        else:
            half = t_of(self.level, error.groups - 1) * error.error
            low, high = found.value - half, found.value + half
        return kept_within(replace(found, low=low, high=high, method=method), self.bounds)


def joined_clusters(unit: Codes, cluster: Codes) -> Codes:
    """The cluster of each unit (u,), from the unit and the cluster of each of its rows (n,).

    Units that share a cluster, directly or through others, are one.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    units, clusters = int(unit.max()) + 1, int(cluster.max()) + 1
    met = coo_matrix((np.ones(len(unit)), (unit, units + cluster)), shape=(units + clusters,) * 2)
    return np.asarray(connected_components(met, directed=False)[1][:units], np.int64)


def mean_of(parts: Mapping[str, Estimate], weights: Mapping[str, float], level: float, bounds: Bounds) -> Estimate:
    """The weighted mean of independent means.

    Each half of its interval adds theirs in quadrature (Zou & Donner 2008), so that groups near 0 or 1, whose
    intervals are lopsided, do not lend it an end that is too near.
    """
    found = list(parts.values())
    n, dropped = sum(each.n for each in found), sum(each.dropped for each in found)
    if not found or any(math.isnan(each.value) for each in found):
        return undefined(n, "undefined: a group has no rows", level=level, dropped=dropped)
    weight = np.array([weights[name] for name in parts])
    weight = weight / weight.sum()
    value = float(weight @ np.array([each.value for each in found]))
    below, above = (
        math.sqrt(float(weight**2 @ np.array([(each.value - end) ** 2 for each, end in zip(found, ends, strict=True)])))
        for ends in ([each.low for each in found], [each.high for each in found])
    )
    method = f"of {len(found)} independent means"
    return kept_within(Estimate(value, n, value - below, value + above, level, method, dropped), bounds)


def group_shares(
    groups: Mapping[str, Estimate], inside: Sequence[str], weights: Mapping[str, float]
) -> dict[str, float]:
    """The share of each group in the mean of its section: by its rows, each as often as the authors' `weights` say.

    Rows are counted, so that a sample of them weighs its groups as the whole bench does. Empty where no group has rows.
    """
    by_rows = {name: groups[name].n * weights.get(name, 1.0) for name in inside if name in groups}
    whole = sum(by_rows.values())
    return {name: n / whole for name, n in by_rows.items()} if whole else {}
