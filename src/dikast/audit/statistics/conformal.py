"""Conformal intervals and label sets, which contain gold with a stated probability; abstaining."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.building_blocks.exact_means import settled

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def conformal_quantile(scores: ArrayLike, level: float) -> float:
    """The ceil((n + 1) level)-th smallest conformity score; infinite when n is too small to promise `level`.

    A fresh exchangeable score is at most this with a chance of at least `level` (Vovk et al. 2005).
    """
    given = np.asarray(scores, np.float64)
    place = max(1, math.ceil((len(given) + 1) * level - 1e-12))
    return float(np.partition(given, place - 1)[place - 1]) if place <= len(given) else math.inf


class ScoreInterval(NamedTuple):
    """Both ends (n,) of the interval for each row, within the scale."""

    low: Floats
    high: Floats


def score_intervals(centre: ArrayLike, radius: ArrayLike, low: float, high: float) -> ScoreInterval:
    """Centre +/- radius, cut to the scale, since scores beyond it are impossible."""
    c, r = np.asarray(centre, np.float64), np.asarray(radius, np.float64)
    return ScoreInterval(np.maximum(c - r, low), np.minimum(c + r, high))


def set_masses(probabilities: ArrayLike) -> Floats:
    """For each row and label (n, K) the mass of the smallest contiguous set, grown from the mode, that holds the label.

    The set starts at the likeliest label and takes the likelier of its two neighbours until the label is in.
    """
    p = settled(probabilities, 1)  # what is equal but for rounding is equal
    n, labels = p.shape
    rows = np.arange(n)
    low = high = p.argmax(1)
    mass = p[rows, low]
    out = np.empty((n, labels))
    out[rows, low] = mass
    padded = np.concatenate([np.full((n, 1), -1.0), p, np.full((n, 1), -1.0)], axis=1)
    for _ in range(labels - 1):
        below, above = padded[rows, low], padded[rows, high + 2]
        down = below > above
        low, high = np.where(down, low - 1, low), np.where(down, high, high + 1)
        taken = np.where(down, low, high)
        mass = mass + p[rows, taken]
        out[rows, taken] = mass
    return settled(out, 1)


def ordinal_sets(probabilities: ArrayLike, threshold: float) -> NDArray[np.bool_]:
    """Which labels (n, K) are in each row's contiguous set: those whose smallest set has mass up to `threshold`.

    With the threshold from `conformal_quantile` of `set_masses` at gold on other rows, gold is in the set with the
    stated chance. The likeliest label is always in, so no set is empty.
    """
    masses = set_masses(probabilities)
    found = masses <= threshold
    found[np.arange(len(masses)), settled(probabilities, 1).argmax(1)] = True
    return np.asarray(found)


class Selective(NamedTuple):
    """The share `coverage` of rows on which the judge is most confident: `rows` indexes them."""

    coverage: float
    rows: Codes


def accuracy_coverage(
    confidence: ArrayLike, coverages: tuple[float, ...] = (1.0, 0.8, 0.6, 0.4, 0.2)
) -> list[Selective]:
    """Selective verdicts: the rows on which the judge is most confident, at several coverages.

    Equal confidences are taken together, so that the order of rows decides nothing and more may be covered. None of no
    rows.
    """
    sure = np.asarray(confidence, np.float64)
    falling = -np.sort(-sure)
    return [
        Selective(coverage, np.flatnonzero(sure >= falling[max(round(coverage * len(sure)), 1) - 1]))
        for coverage in coverages
        if len(sure)
    ]
