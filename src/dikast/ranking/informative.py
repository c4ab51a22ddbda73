"""Which comparisons help most to choose the best responses, or the best and the worst, of many items together."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dikast.ranking.comparisons import Floats

_DIGITS = 9  # gains that are equal in so many are equal
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)  # of the expectation over a standard normal
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_TOGETHER = 2**21  # numbers that are worked on at once


@lru_cache(maxsize=64)
def pairs_of(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The lower and the higher response of each pair."""
    first, second = np.triu_indices(k, 1)
    return first, second


@dataclass(slots=True)
class Belief:
    """What is believed of the strengths of an item's responses: normal, in units of a comparison's noise.

    `mean` (k,), `covariance` (k, k); `left` (pairs,): how many of the two orders of each pair may still be asked.
    """

    mean: Floats
    covariance: Floats
    left: Floats

    def ask(self, pair: int, moved: Floats) -> None:
        """Count a comparison of the pair as asked, with the answer that was expected."""
        self.covariance = self.covariance - np.outer(moved, moved)
        self.left[pair] -= 1


def most_informative(
    beliefs: Sequence[Belief], want: int, signs: Sequence[int], each: int
) -> Iterator[tuple[int, int, int]]:
    """The `want` pairs with the largest knowledge gradient, at most `each` of an item: (item, i, j), with i < j.

    The knowledge gradient of a comparison is by how much it is expected to raise the highest posterior mean of its item
    (sign 1), or to lower the lowest (sign -1), summed over `signs`. Items must be in the same unit. Pairs are chosen
    one after the other as if those before had left the means as they are; only orders that may still be asked count.
    Source: Frazier, Powell & Dayanik 2009, "The Knowledge-Gradient Policy for Correlated Normal Beliefs".
    """
    waiting = []  # the best pair of each item: what it loses, how many the item has got, the item, the pair, its moves
    sizes: dict[int, list[int]] = {}
    for at, one in enumerate(beliefs):
        sizes.setdefault(len(one.mean), []).append(at)
    for k, items in sizes.items():
        step = max(_TOGETHER // (k**3 * len(_NODES)), 1)
        for begin in range(0, len(items), step):
            some = items[begin : begin + step]
            for at, (gain, pair, moved) in zip(some, _best([beliefs[i] for i in some], signs), strict=True):
                waiting.append((-gain, 0, at, pair, moved))
    waiting = [one for one in waiting if np.isfinite(one[0])]
    heapq.heapify(waiting)  # no two are equal in the first three
    while waiting and want:
        _, got, at, pair, moved = heapq.heappop(waiting)
        one, want = beliefs[at], want - 1
        first, second = pairs_of(len(one.mean))
        yield at, int(first[pair]), int(second[pair])
        one.ask(pair, moved)
        if got + 1 < each and one.left.any():
            ((gain, pair, moved),) = _best([one], signs)
            heapq.heappush(waiting, (-gain, got + 1, at, pair, moved))


def _best(beliefs: Sequence[Belief], signs: Sequence[int]) -> Iterator[tuple[float, int, Floats]]:
    """The best pair of each item: its gain (-inf: none is left), its number, and how far its answer moves the means."""
    mean, covariance = np.stack([one.mean for one in beliefs]), np.stack([one.covariance for one in beliefs])
    first, second = pairs_of(mean.shape[-1])
    at = np.arange(len(first))
    across = covariance[:, :, first] - covariance[:, :, second]  # (n, k, pairs): of each strength with the difference
    moved = across / np.sqrt(1 + across[:, first, at] - across[:, second, at])[:, None]
    after = mean[..., None, None] + moved[..., None] * _NODES  # (n, k, pairs, nodes): means, by what the answer may be
    gain = sum(
        (after.max(1) @ _WEIGHTS - mean.max(1)[:, None])
        if sign > 0
        else (mean.min(1)[:, None] - after.min(1) @ _WEIGHTS)
        for sign in signs
    )
    gain = np.where(np.stack([one.left for one in beliefs]) > 0, np.round(gain, _DIGITS), -np.inf)
    best = gain.argmax(1)  # of equal ones the first, on any machine
    for i, pair in enumerate(best.tolist()):
        yield float(gain[i, pair]), pair, moved[i, :, pair]
