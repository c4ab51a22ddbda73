"""Agreement within groups of rows: of one response under several rubrics, what the rubric changes.

A judge that gives each group one score has 0 (or half of the orders) here by construction.
"""

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.correlation import pearson, weighted_pearson
from dikast.audit.statistics.intervals import Resampling, bootstrap, rate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_ROUNDING = 1e-9  # a difference of scores that counts as none
ONE_SCORE = "each group has one score"


def less_group_means(values: Floats, group: Codes) -> Floats:
    """Each value minus the mean of its group (codes from 0 without gaps)."""
    sizes = np.bincount(group)
    return values - (np.bincount(group, values) / sizes)[group]


def agreement_within(
    score: Floats, gold: Floats, group: Codes, how: Resampling, cluster: Codes | None = None
) -> Estimate:
    """Pearson's correlation after subtracting each group's mean from both, with an interval over whole groups.

    cluster: codes (from 0 without gaps) of what is drawn instead, such as the phrases by which rubrics name what they
    weigh, for an interval over other phrases. 0 where each group has one score; NaN where gold is alike within each
    group, or fewer than three rows are left.
    """
    x, y = less_group_means(score, group), less_group_means(gold, group)
    if len(x) < 3 or np.abs(y).max() < _ROUNDING:
        return Estimate(math.nan, len(x), note="gold is alike within each group" if len(x) >= 3 else "too few answers")
    if np.abs(x).max() < _ROUNDING:
        return Estimate(0.0, len(x), note=ONE_SCORE)
    drawn = group if cluster is None else cluster
    draws = bootstrap(weighted_pearson(x, y), len(x), how, cluster=drawn)
    low, high = how.interval(draws, groups=int(drawn.max()) + 1)
    method = f"bootstrap over {'groups' if cluster is None else 'clusters'}"
    return Estimate(pearson(x, y), len(x), low, high, how.level, method)


def right_orders(score: Floats, gold: Floats, group: Codes) -> tuple[Estimate, int]:
    """The share of contrasts (two rows of a group whose gold differs) in the right order, ties half; and how many.

    Each group counts once.
    """
    shares, many = [], 0
    for each in np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1]):
        pairs = [(a, b) for a, b in combinations(each, 2) if gold[a] != gold[b]]
        if pairs:
            signs = [math.copysign(1, gold[a] - gold[b]) * _sign(score[a] - score[b]) for a, b in pairs]
            shares.append(0.5 + 0.5 * math.fsum(signs) / len(pairs))
            many += len(pairs)
    return rate(math.fsum(shares), len(shares)), many


def _sign(difference: float) -> float:
    return 0.0 if abs(difference) < _ROUNDING else math.copysign(1, difference)


def most_without(gold: Floats, group: Codes) -> float:
    """The correlation of gold with each group's mean of gold: the maximum for a judge that gives each group
    one score.
    """
    means = gold - less_group_means(gold, group)
    return pearson(means, gold) if len(gold) > 2 else math.nan
