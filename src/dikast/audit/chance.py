"""What agreement chance alone gives: scores and golds with the shares they have, paired at random."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.exact import NEAR
from dikast.audit.intervals import mean_estimate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def _equal(values: Floats, others: Floats) -> Floats:
    """Share of `others` (rising) that equal each of `values`."""
    return (np.searchsorted(others, values, "right") - np.searchsorted(others, values, "left")) / len(others)


def _near(values: Floats, others: Floats) -> Floats:
    far = 1 + NEAR
    return (np.searchsorted(others, values + far, "right") - np.searchsorted(others, values - far, "left")) / len(
        others
    )


def _distance(values: Floats, others: Floats) -> Floats:
    """Mean distance of each of `values` to `others` (rising), by sums of what lies below."""
    place, total = np.searchsorted(others, values), np.concatenate([[0.0], np.cumsum(others)])
    below, above = total[place], total[-1] - total[place]
    return np.asarray((values * place - below + above - values * (len(others) - place)) / len(others))


CHANCE: Mapping[str, Callable[[Floats, Floats], Floats]] = {"exact": _equal, "within_1": _near, "mae": _distance}


def by_chance(name: str, score: ArrayLike, gold: ArrayLike, level: float, cluster: Codes | None = None) -> Estimate:
    """A mean (one of CHANCE) over all pairs of a score and a gold, with the interval of that U-statistic.

    Each row moves it by its score's mean over all golds and its gold's mean over all scores.
    """
    x, y = np.asarray(score, np.float64), np.asarray(gold, np.float64)
    if len(x) == 0:
        return Estimate(float("nan"), 0, level=level)
    by_score, by_gold = CHANCE[name](x, np.sort(y)), CHANCE[name](y, np.sort(x))
    value = float(by_score.mean())
    found = mean_estimate(by_score + by_gold - value, level, cluster)
    limits = (0.0, np.inf if name == "mae" else 1.0)
    low, high = np.clip([found.low, found.high], *limits)
    return replace(found, value=value, low=float(low), high=float(high), method="expected under independence")
