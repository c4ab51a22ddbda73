"""The alternative annotator test (alt-test): whether the judge may replace an annotator."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.building_blocks.exact_means import settled, units_of
from dikast.audit.statistics.intervals import Resampling, bootstrap, clusters_of, error_of, mean_estimate, share
from dikast.audit.statistics.significance import benjamini_yekutieli
from dikast.core.confidence import ALIKE

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Alignment = Literal["exact", "rmse"]
LEAST = 30  # items per annotator; below, Student's test is unreliable and the row says so


@dataclass(frozen=True, slots=True)
class AgainstAnnotator:
    """The judge in place of one annotator: how often each of the two is at least as close to the others."""

    items: int
    judge: Estimate
    annotator: Estimate
    less: Estimate  # judge minus annotator, paired
    p: float
    adjusted: float
    judge_wins: bool


@dataclass(frozen=True, slots=True)
class AltTest:
    """`winning_rate` is the share of annotators the judge may replace; it passes from one half upwards.

    `advantage` is the mean chance that the judge is at least as close to the other annotators as the left-out one.
    """

    winning_rate: float
    advantage: Estimate
    epsilon: float
    annotators: tuple[AgainstAnnotator | None, ...]

    @property
    def passed(self) -> bool:
        """Whether the judge may replace annotators; False when nothing could be tested."""
        return self.winning_rate >= 0.5


def alt_test(
    judge: ArrayLike,
    annotators: ArrayLike,
    *,
    epsilon: float = 0.2,
    alignment: Alignment = "exact",
    how: Resampling | None = None,
    cluster: Codes | None = None,
    false_discovery: float = 0.05,
) -> AltTest:
    """Leave one annotator out and ask who is closer to the rest, the judge or the one left out.

    judge (n,), annotators (R, n) with R >= 3; NaN where missing. `exact`: share of the others with the same label;
    `rmse`: minus the root mean squared distance to them. For annotator j the test is that the judge's advantage is
    below the annotator's by less than `epsilon` (what an annotator costs more): one-sided Student test of the paired
    difference, adjusted by Benjamini and Yekutieli. Items count where the judge, the annotator and at least one other
    have an answer. With `cluster` (n,) errors are those of cluster sums, and clusters are drawn. Source: Calderon,
    Reichart & Dror 2025, "The alternative annotator test" (2501.10970).
    """
    f, h = np.asarray(judge, np.float64), np.asarray(annotators, np.float64)
    if h.ndim == 2 and (units := units_of(np.vstack([f, h]))) is not None:
        f, h = units.whole[0], units.whole[1:]  # only who is closer counts: distances of whole numbers tie exactly
    if h.ndim != 2 or len(h) < 3:
        raise ValueError("the alternative annotator test needs at least three annotators")
    how = how or Resampling()
    wins = [_wins(f, h, j, alignment) for j in range(len(h))]
    inside = [None if cluster is None else cluster[_usable(f, h, j)] for j in range(len(h))]
    p_values = [_one_sided(theirs - mine, epsilon, codes) for (mine, theirs), codes in zip(wins, inside, strict=True)]
    adjusted = benjamini_yekutieli(p_values)
    found: list[AgainstAnnotator | None] = []
    for (mine, theirs), p, q, codes in zip(wins, p_values, adjusted, inside, strict=True):
        told = [share(each, how.level, codes) for each in (mine, theirs)]
        less = mean_estimate(mine - theirs, how.level, codes)
        row = AgainstAnnotator(len(mine), told[0], told[1], less, p, q, q < false_discovery)
        found.append(row if len(mine) else None)
    tested = [each for each in found if each is not None and not math.isnan(each.p)]
    rate = sum(each.judge_wins for each in tested) / len(tested) if tested else math.nan
    return AltTest(rate, _advantage(f, h, alignment, how, cluster), epsilon, tuple(found))


def _usable(f: Floats, h: Floats, j: int) -> NDArray[np.bool_]:
    return np.asarray(~np.isnan(f) & ~np.isnan(h[j]) & ~np.isnan(np.delete(h, j, axis=0)).all(0))


def _wins(f: Floats, h: Floats, j: int, alignment: Alignment) -> tuple[Floats, Floats]:
    """Per usable item: whether the judge is at least as close to the others as annotator j, and the reverse."""
    others = np.delete(h, j, axis=0)
    usable = _usable(f, h, j)
    mine, theirs = settled([_closeness(each[usable], others[:, usable], alignment) for each in (f, h[j])])
    return (mine >= theirs).astype(np.float64), (theirs >= mine).astype(np.float64)


def _closeness(answer: Floats, others: Floats, alignment: Alignment) -> Floats:
    present = ~np.isnan(others)
    if alignment == "exact":
        return np.asarray(((others == answer) & present).sum(0) / present.sum(0))
    squares = np.sort(np.where(present, (others - answer) ** 2, 0), axis=0).sum(0) / present.sum(0)
    return np.asarray(-np.sqrt(squares))


def _one_sided(difference: Floats, epsilon: float, cluster: Codes | None) -> float:
    """p-value that the mean of annotator minus judge is not below epsilon."""
    n = len(difference)
    if n < 2:
        return math.nan
    from scipy.special import stdtr

    found, gap = error_of((difference - difference.mean()) / n, cluster), float(difference.mean()) - epsilon
    if found.groups < 2:
        return math.nan
    if found.error < ALIKE:  # all differences are equal, or there are too few clusters
        return math.nan if np.ptp(difference) > 0 else 0.0 if gap < 0 else 1.0
    return float(stdtr(found.groups - 1, gap / found.error))


def _advantage(f: Floats, h: Floats, alignment: Alignment, how: Resampling, cluster: Codes | None) -> Estimate:
    """The mean over annotators of the judge's advantage, items resampled."""
    worth, counts = np.zeros((len(h), len(f))), np.zeros((len(h), len(f)))
    for j in range(len(h)):
        usable = _usable(f, h, j)
        worth[j, usable], counts[j, usable] = _wins(f, h, j, alignment)[0], 1
    rated = counts.sum(1) > 0
    if not rated.any():
        return Estimate(math.nan, 0, level=how.level)
    worth, counts = worth[rated], counts[rated]

    def mean(weights: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.asarray(((weights @ worth.T) / (weights @ counts.T)).mean(1))

    value = float((worth.sum(1) / counts.sum(1)).mean())
    chosen = counts.any(0)
    worth, counts = worth[:, chosen], counts[:, chosen]
    codes = None if cluster is None else clusters_of(cluster[chosen])
    interval = how.interval(bootstrap(mean, int(chosen.sum()), how, cluster=codes))
    return Estimate(value, int(chosen.sum()), *interval, how.level, "bootstrap over items")
