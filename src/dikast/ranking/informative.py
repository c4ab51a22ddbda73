"""Which comparisons help most to choose the best response, or the best and the worst."""

from collections.abc import Collection, Sequence

import numpy as np

from dikast.ranking.comparisons import Floats, Games, OrderedPair, laplacian

_DIGITS = 9  # gains that are equal in so many are equal
_NOISE = 0.45  # assumed noise of a comparison, in standard deviations of strength within an item
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)  # of the expectation over a standard normal
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def most_informative(
    strengths: Floats, asked: Collection[OrderedPair], want: int, signs: Sequence[int]
) -> list[tuple[int, int]]:
    """The `want` pairs (i < j) with the largest knowledge gradient among those with an order that was not asked.

    strengths (k,): least squares from the comparisons `asked`. The knowledge gradient of a comparison is by how much
    it is expected to raise the highest posterior mean (sign 1), or to lower the lowest (sign -1), summed over `signs`.
    The prior of strengths is normal with their spread, and the noise is assumed in proportion to it: an error by a
    factor of two costs less than .01 of the share of best responses. Several pairs are chosen one after the other as
    if those before had left the means as they are. Source: Frazier, Powell & Dayanik 2009, "The Knowledge-Gradient
    Policy for Correlated Normal Beliefs".
    """
    k = len(strengths)
    counts = np.zeros((k, k))
    for pair in asked:
        counts[pair] += 1
    known = laplacian(Games(counts, counts, counts.sum()))
    covariance = np.linalg.inv(known + _NOISE**2 * np.eye(k))  # in units of the noise
    spread = float(np.sqrt(strengths @ strengths / (k - 1)))
    mean = covariance @ known @ strengths / (_NOISE * spread) if spread > 0 else np.zeros(k)
    first, second = np.triu_indices(k, 1)
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
