"""Comparisons of an item's responses, and their least-squares strengths.

A comparison shows response `first` before response `second`. Its value says by how much the first is preferred; it is
modelled as value = strength[first] - strength[second] + slot bias + noise, and fitted by least squares. Logits are
clipped at 27.6 nats (`judging.label_scores.logit`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.core.verdict import Usage, Verdict
from dikast.judging.label_scores import logit

Floats = NDArray[np.float64]
Values = Literal["logit", "probability", "verdict"]
VALUES: dict[Values, str] = {
    "logit": "ln p(first) - ln p(second), in nats",
    "probability": "p(first) - p(second), from -1 to 1",
    "verdict": "1 where the first is preferred, -1 where the second is, 0 for a tie",
}
_ZERO = 1e-9  # an eigenvalue, or a share of a sum of squares, below this is rounding error
_TOGETHER = 2**22  # numbers in a stack of items
_WORTH = {"a": 1.0, "b": -1.0, "tie": 0.0}  # value of a choice for the response of the smaller index


class OrderedPair(NamedTuple):
    """Two responses by their index, in the order in which they are shown."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of one order of a pair. NaN: no verdict, or no probabilities for `logit` and `probability`.

    `usage` is what its verdict cost, all samples together.
    """

    pair: OrderedPair
    verdict: float = math.nan
    probability: float = math.nan
    logit: float = math.nan
    usage: Usage = field(default_factory=Usage, compare=False)

    @classmethod
    def of(cls, verdict: Verdict) -> "Comparison":
        """From a verdict on a pair, whose choices `a` and `b` are the responses of the lower and higher index."""
        pair = OrderedPair(*verdict.question.responses)
        if verdict.label is None:
            return cls(pair, usage=verdict.usage)
        sign = 1.0 if pair.first < pair.second else -1.0
        read = verdict.distribution
        return cls(
            pair,
            sign * _WORTH[verdict.label] + 0.0,
            sign * (read["a"] - read["b"]) if read else math.nan,
            sign * logit(read, "a", "b") if read else math.nan,
            verdict.usage,
        )

    def value(self, kind: Values) -> float:
        """The value of a kind; NaN if there is none."""
        return float(getattr(self, kind))


class Games(NamedTuple):
    """Sums over the comparisons of an item that have a value, or over a stack of items (n, k, k).

    counts (k, k): how many comparisons show the row's response first and the column's second; sums (k, k): the sums of
    their values; squares: the sum of all squared values.
    """

    counts: Floats
    sums: Floats
    squares: Floats

    @property
    def n(self) -> Floats:
        """The number of comparisons of each item."""
        return np.asarray(self.counts.sum((-1, -2)))


def games_of(comparisons: Sequence[Comparison], k: int, kind: Values) -> Games:
    """The comparisons of an item that have a value of this kind."""
    counts, sums, squares = np.zeros((k, k)), np.zeros((k, k)), 0.0
    for each in comparisons:
        if not math.isnan(value := each.value(kind)):
            counts[each.pair] += 1
            sums[each.pair] += value
            squares += value * value
    return Games(counts, sums, np.array(squares))


def position_bias(games: Games) -> float | None:
    """The mean advantage of the response shown first over the pairs of an item that have a value in both orders.

    In units of the value; None without such a pair. A preference for a response cancels between the two orders.
    """
    both = (games.counts > 0) & (games.counts.T > 0)
    if not both.any():
        return None
    return float((games.sums[both] / games.counts[both]).mean())


def stacks_of(games: Sequence[Games]) -> Iterator[Games]:
    """Items with the same number of responses as stacks, several where one would take much memory."""
    step = max(_TOGETHER // len(games[0].counts) ** 2, 1)
    for at in range(0, len(games), step):
        yield Games(*(np.stack(each) for each in zip(*games[at : at + step], strict=True)))


class Fit(NamedTuple):
    """Strengths (k,) that sum to 0 within each group of responses that comparisons connect; or a stack of them.

    `covariance` (k, k) is that of the strengths for noise of variance 1, `rank` the number of strengths that are free:
    k minus the number of groups. `left` is the residual sum of squares.
    """

    strengths: Floats
    covariance: Floats
    rank: Floats
    left: Floats


def fit_strengths(games: Games, bias: float = 0.0) -> Fit:
    """Least squares of `value - bias = strength[first] - strength[second]`, of an item or of a stack of items."""
    values, vectors = np.linalg.eigh(laplacian(games))
    inside = values > _ZERO
    inverse = np.where(inside, 1.0 / np.where(inside, values, 1.0), 0.0)
    covariance = (vectors * inverse[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    pulled = signed(games.sums - bias * games.counts)
    strengths = np.einsum("...ij,...j->...i", covariance, pulled)
    total = games.squares - 2 * bias * games.sums.sum((-1, -2)) + bias * bias * games.n
    left = total - np.einsum("...i,...i->...", strengths, pulled)
    return Fit(strengths, covariance, inside.sum(-1), np.where(left > _ZERO * np.abs(total), left, 0.0))


def laplacian(games: Games) -> Floats:
    """X'X of the design X (a row a comparison, 1 for the response shown first, -1 for the other)."""
    met = games.counts + np.swapaxes(games.counts, -1, -2)
    return np.asarray(met.sum(-1)[..., None] * np.eye(met.shape[-1]) - met)


def signed(values: Floats) -> Floats:
    """X'y from sums (k, k) of y by the response shown first and second."""
    return np.asarray(values.sum(-1) - values.sum(-2))


def groups_of(games: Games) -> list[list[int]]:
    """The connected components of an item's responses under the comparisons; groups by their first index."""
    met = (games.counts + games.counts.T > 0) | np.eye(len(games.counts), dtype=bool)
    for _ in range(len(met).bit_length()):
        met = met @ met
    return [list(group) for group in dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in met)]
