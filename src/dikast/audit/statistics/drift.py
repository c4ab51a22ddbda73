"""Drift: whether a judge has changed between two runs on the same anchor items."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.building_blocks.weights import mean_of
from dikast.audit.statistics.intervals import Resampling, bootstrap, bootstrap_kinds, clusters_of, share
from dikast.audit.statistics.rater_agreement import icc_2_1, weighted_icc

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_BETS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.7])


@dataclass(frozen=True, slots=True)
class Drift:
    """What changed from `earlier` to `later` on the anchors that both runs scored.

    `shift`: mean of later minus earlier. `changed`: share of anchors with another score. `icc`: how alike the runs are.
    `evidence` is an e-value against "no shift": under that hypothesis its mean is at most 1, so 20 is as rare as p =
    .05, and it may be looked at after every anchor (clusters enter by their mean). `lost` and `gained` count anchors
    scored in one run only.
    """

    shift: Estimate
    changed: Estimate
    icc: Estimate
    evidence: float
    lost: int
    gained: int

    @property
    def shifted(self) -> bool:
        """Whether the interval of the shift excludes 0."""
        return self.shift.low > 0 or self.shift.high < 0


def drift(
    earlier: ArrayLike,
    later: ArrayLike,
    *,
    how: Resampling | None = None,
    cluster: Codes | None = None,
    span: float | None = None,
) -> Drift:
    """Compare two runs, arrays (n,) in the same order, NaN where a run has no score.

    `span` is the largest difference the scale allows (for the e-value); by default the largest that is seen.
    """
    how = how or Resampling()
    a, b = np.asarray(earlier, np.float64), np.asarray(later, np.float64)
    both = ~np.isnan(a) & ~np.isnan(b)
    lost, gained = int((~np.isnan(a) & np.isnan(b)).sum()), int((np.isnan(a) & ~np.isnan(b)).sum())
    difference = (b - a)[both]
    n, codes = len(difference), None if cluster is None else clusters_of(cluster[both])
    changed = share(difference != 0, how.level, codes, dropped=lost + gained)
    if n < 2:
        nothing = undefined(n, "needs two anchors scored in both runs", level=how.level, dropped=lost + gained)
        return Drift(nothing, changed, nothing, math.nan, lost, gained)
    drawn = bootstrap(mean_of(difference), n, how, cluster=codes)
    method = "paired bootstrap" + ("" if cluster is None else " of clusters")
    shift = Estimate(float(difference.mean()), n, *how.interval(drawn), how.level, method, lost + gained)
    groups = n if codes is None else int(codes.max()) + 1
    icc = Estimate(
        icc_2_1(np.vstack([a[both], b[both]])),
        n,
        *how.interval(bootstrap_kinds(weighted_icc, [a[both], b[both]], how, codes), groups=groups),
        how.level,
        method,
        lost + gained,
    )
    widest = span or float(np.abs(difference).max()) or 1.0
    each = difference if codes is None else np.bincount(codes, difference) / np.bincount(codes)
    return Drift(shift, changed, icc, e_value(each / widest), lost, gained)


def e_value(differences: ArrayLike) -> float:
    """Evidence against a mean of 0 of independent differences in [-1, 1], by betting on both signs.

    The mean, over stakes and signs, of the products of 1 + stake * difference (Waudby-Smith & Ramdas 2024): under the
    hypothesis its expectation is 1 whatever the distribution.
    """
    given = np.asarray(differences, np.float64)
    if len(given) == 0 or (np.abs(given) > 1 + 1e-9).any():
        return math.nan
    stakes = np.concatenate([_BETS, -_BETS])
    logs = np.log1p(np.outer(stakes, given)).sum(1)
    most = logs.max()
    return float(np.exp(min(most, 700.0)) * np.exp(logs - most).mean())
