"""Which comparisons help most to choose the best response, or the best and the worst."""

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dikast.ranking.comparisons import Floats, Games, OrderedPair, laplacian

_DIGITS = 9  # gains that are equal in so many are equal
_NOISE = 0.45  # assumed noise of a comparison, in standard deviations of strength within an item
_BEYOND = 0.63  # the same beside grades, and the spread around what they predict: a correlation of .78
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)  # of the expectation over a standard normal
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@lru_cache(maxsize=64)
def _pairs(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The lower and the higher response of each pair."""
    first, second = np.triu_indices(k, 1)
    return first, second


def most_informative(
    strengths: Floats, asked: Collection[OrderedPair], want: int, signs: Sequence[int], *, graded: bool = False
) -> list[tuple[int, int]]:
    """The `want` pairs (i < j) with the largest knowledge gradient among those with an order that was not asked.

    strengths (k,): least squares from the comparisons `asked`; `graded`: posterior means by grades too, in any unit,
    around what the grades predict. The knowledge gradient of a comparison is by how much it is expected to raise the
    highest posterior mean (sign 1), or to lower the lowest (sign -1), summed over `signs`. The prior of strengths is
    normal with their spread (or around the grades), and the noise is assumed in proportion to it: an error by a factor
    of two costs less than .01 of the share of best responses. Several pairs are chosen one after the other as if those
    before had left the means as they are. Source: Frazier, Powell & Dayanik 2009, "The Knowledge-Gradient Policy for
    Correlated Normal Beliefs".
    """
    k = len(strengths)
    counts = np.zeros((k, k))
    for pair in asked:
        counts[pair] += 1
    known = laplacian(Games(counts, counts, counts.sum()))
    covariance = np.linalg.inv(known + (1.0 if graded else _NOISE**2) * np.eye(k))  # in units of the noise
    strengths = strengths - strengths.mean()
    spread = float(np.sqrt(strengths @ strengths / (k - 1)))
    mean = np.zeros(k)
    if spread > 0:
        mean = strengths / (_BEYOND * spread) if graded else covariance @ known @ strengths / (_NOISE * spread)
    first, second = _pairs(k)
    pairs, left = np.arange(len(first)), 2 - (counts + counts.T)[first, second]
    found = []
    for _ in range(want):
        across = covariance[:, first] - covariance[:, second]  # (k, pairs): of each strength with the difference
        moved = across / np.sqrt(1 + across[first, pairs] - across[second, pairs])
        after = mean[:, None, None] + moved[..., None] * _NODES  # (k, pairs, nodes): means, by what the answer may be
        gain = sum(sign * (after.max(0) if sign > 0 else after.min(0)) @ _WEIGHTS for sign in signs)
        at = int(np.where(left > 0, gain.round(_DIGITS), -np.inf).argmax())  # of equal ones the first, on any machine
        covariance = covariance - np.outer(moved[:, at], moved[:, at])
        left[at] -= 1
        found.append((int(first[at]), int(second[at])))
    return found
