"""How scores agree with gold beyond their order: exact and near agreement, errors, Cohen's kappas, spread of labels.

Scores and golds are on one scale. What is called weighted is a function of weights on rows (see `weights`).
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.building_blocks.exact_means import NEAR
from dikast.audit.statistics.building_blocks.weights import ROUNDING, Groups, Weighted, centred, over, point

Floats = NDArray[np.float64]
Costs = Literal["none", "linear", "quadratic"]
_Chance = Callable[[Floats, Floats], Floats]  # from weights (b, n) and their sums (b,)


def exact(score: ArrayLike, gold: ArrayLike) -> Floats:
    """Which rows (n,) have a score equal to gold: 1 or 0."""
    return np.asarray(np.equal(score, gold), np.float64)


def within(score: ArrayLike, gold: ArrayLike, distance: float = 1.0) -> Floats:
    """Which rows (n,) have a score at most `distance` from gold (within 1e-9, for 2.2 - 1.2 is above 1): 1 or 0."""
    return (error(score, gold) <= distance + NEAR).astype(np.float64)


def error(score: ArrayLike, gold: ArrayLike) -> Floats:
    """The distance (n,) of score and gold, in units of the scale."""
    return np.abs(difference(score, gold))


def difference(score: ArrayLike, gold: ArrayLike) -> Floats:
    """Score minus gold (n,): its mean is the bias, above 0 where the judge is lenient."""
    return np.asarray(score, np.float64) - np.asarray(gold, np.float64)


def cohen_kappa(first: ArrayLike, second: ArrayLike, *, weights: Costs = "none") -> float:
    """Agreement of two raters beyond chance, at most 1; NaN if chance alone explains everything.

    first, second: arrays (n,) of ratings of the same items. With weights, the values must be numbers: a disagreement
    costs its distance, or its square. Sources: Cohen 1960, "A coefficient of agreement for nominal scales"; Cohen 1968,
    "Weighted kappa". Distances are those of the values, which for 1, 2, 3... are those of the ranks.
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"expected two raters of the same items, got shapes {a.shape} and {b.shape}")
    if weights == "none":  # labels of any kind
        a, b = np.split(np.unique(np.concatenate([a, b]), return_inverse=True)[1].ravel(), 2)
    return point(functools.partial(weighted_kappa, costs=weights), a, b)


def weighted_kappa(first: ArrayLike, second: ArrayLike, *, costs: Costs = "none") -> Weighted:
    """Cohen's kappa as a function of weights (b, n): 1 minus the mean cost over that of independent raters."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    expected = {"none": _unequal_by_chance, "linear": _distance_by_chance, "quadratic": _square_by_chance}[costs](a, b)
    cost = {"none": a != b, "linear": error(a, b), "quadratic": difference(a, b) ** 2}[costs].astype(np.float64)

    def statistic(weights: Floats) -> Floats:
        total = weights.sum(1)  # costs and chances are sums, not means: those of whole numbers are exact
        return 1 - over(total * (weights @ cost), expected(weights, total))

    return statistic


def _unequal_by_chance(a: Floats, b: Floats) -> _Chance:
    """How many of the pairs of a value of `a` and one of `b` are unequal."""
    groups = Groups(a), Groups(b)
    shared = np.intersect1d(a[~np.isnan(a)], b)
    places = [np.searchsorted(each.distinct, shared) for each in groups]

    def expected(weights: Floats, total: Floats) -> Floats:
        one, two = (each.sums(weights)[:, place] for each, place in zip(groups, places, strict=True))
        return _apart(total**2 - (one * two).sum(1), total**2)

    return expected


def _distance_by_chance(a: Floats, b: Floats) -> _Chance:
    """The summed distance of all values of `a` from all of `b`: how many lie on either side of each gap."""
    groups = Groups(a), Groups(b)
    values = np.union1d(a, b)
    below = [np.searchsorted(each.distinct, values[:-1], "right") for each in groups]

    def expected(weights: Floats, total: Floats) -> Floats:
        one, two = (
            np.pad(np.cumsum(each.sums(weights), 1), ((0, 0), (1, 0)))[:, place]
            for each, place in zip(groups, below, strict=True)
        )
        sides = one * (total[:, None] - two) + two * (total[:, None] - one)
        return _apart(sides @ np.diff(values), total**2 * float(np.ptp(values)))

    return expected


def _square_by_chance(a: Floats, b: Floats) -> _Chance:
    """The summed squared distance, from moments: scores may be continuous."""
    both = centred(np.concatenate([a, b]))
    da, db = both[: len(a)], both[len(a) :]
    features = np.column_stack([da, db, da * da + db * db])

    def expected(weights: Floats, total: Floats) -> Floats:
        one, two, squares = (weights @ features).T
        return _apart(total * squares - 2 * one * two, total * squares)

    return expected


def _apart(found: Floats, most: Floats) -> Floats:
    return np.where(found <= ROUNDING * most, 0.0, found)


def discrimination(counts: Floats, labels: int) -> Floats:
    """Ferguson's delta of label counts (..., labels): 0 when one label takes all, 1 when all are used alike."""
    total = counts.sum(-1)
    return over(total**2 - (counts**2).sum(-1), total**2 * (1 - 1 / labels))


def weighted_discrimination(scores: ArrayLike, labels: int) -> Weighted:
    """The same of scores (n,) on a scale of `labels` values, as a function of weights (b, n)."""
    groups = Groups(scores)
    return lambda weights: discrimination(groups.sums(weights), labels)


# what each row adds to a mean over rows
BY_ROW: Mapping[str, Callable[[ArrayLike, ArrayLike], Floats]] = {
    "exact": exact,
    "within_1": within,
    "mae": error,
    "bias": difference,
}


def range_of(name: str, bounds: tuple[float, float] = (-math.inf, math.inf)) -> tuple[float, float]:
    """The least and the greatest value that a mean of BY_ROW can have where scores and gold lie within `bounds`."""
    span = bounds[1] - bounds[0]
    return {"mae": (0.0, span), "bias": (-span, span)}.get(name, (0.0, 1.0))
