"""The order of an item's responses, with its uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dikast.core.confidence import LEVEL, t_of
from dikast.ranking.comparisons import Comparison, Floats, Games, Values, fit_strengths, games_of, groups_of
from dikast.ranking.pooled import Noise

_DIGITS = 9
_NEAR = 10**-_DIGITS  # rewards closer than this are equal
_DRAWS = 4000


@dataclass(frozen=True, slots=True)
class Ordered:
    """The order of k responses by comparisons, best first; responses without a comparison to the others are not in it.

    `rewards` is 2k times the strength of least squares: for a full round robin without a missing verdict exactly the
    reward of LLaVA-Critic (Xiong et al. 2024, section 4.2), for any other schedule its estimate, by grades too for
    `graded`. `low` and `high` are its 95 % intervals and `best` the probability of being the best, from the noise
    between comparisons; systematic errors of the judge are not included.
    They are None if the noise is unknown, as are the values of a response that is not in the order. `ranks` are from 1;
    equal rewards share one. Of `triples` of responses with all three preferences, `cycles` are cyclic (a over b over c
    over a).
    """

    order: tuple[int, ...]
    ranks: tuple[int | None, ...]
    rewards: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    best: tuple[float | None, ...]
    cycles: int
    triples: int


def order_of(
    comparisons: Sequence[Comparison], k: int, kind: Values, bias: float, noise: Noise, spread: float = math.inf
) -> Ordered:
    """Order k responses by the comparisons that have a value of this kind, corrected for the slot bias.

    If the comparisons form several unconnected groups, only the largest is ordered (of equal ones that of the smallest
    index): rewards of different groups cannot be compared.
    """
    games = games_of(comparisons, k, kind)
    found = fit_strengths(games, bias)
    return ordered_by(found.strengths, found.covariance, connected(games), games, bias, noise, spread=spread)


def connected(games: Games) -> list[int]:
    """The largest group of responses that comparisons connect, of equal ones that of the smallest index."""
    return max(groups_of(games), key=len) if games.n else []


def ordered_by(
    strengths: Floats, covariance: Floats, inside: Sequence[int], games: Games, bias: float, noise: Noise,
    *, spread: float = math.inf,
) -> Ordered:  # fmt: skip
    """The order of the responses `inside` by their strengths (k,), whose `covariance` is for noise of variance 1.

    spread: the standard deviation of the strengths, for the probability of being best; infinite if it is in them.
    """
    k = len(strengths)
    rewards = 2 * k * strengths
    order = sorted(inside, key=lambda i: (-round(float(rewards[i]), _DIGITS), i))
    ranks: dict[int, int] = {}
    for place, i in enumerate(order):
        tied = place > 0 and rewards[order[place - 1]] - rewards[i] <= _NEAR
        ranks[i] = ranks[order[place - 1]] if tied else place + 1
    half = best = None
    if noise.free > 0 and inside:
        variances = np.clip(np.diag(covariance), 0, None)
        half = 2 * k * t_of(LEVEL, noise.free) * noise.sd * np.sqrt(variances)
        best = _best(strengths, covariance, inside, noise, spread)
    cycles, triples = cycles_of(games, bias)

    def shown(values: Floats | None) -> tuple[float | None, ...]:
        return tuple(float(values[i]) if values is not None and i in ranks else None for i in range(k))

    return Ordered(
        tuple(order), tuple(ranks.get(i) for i in range(k)), shown(rewards),
        shown(None if half is None else rewards - half), shown(None if half is None else rewards + half),
        shown(best), cycles, triples,
    )  # fmt: skip


def _best(strengths: Floats, covariance: Floats, inside: Sequence[int], noise: Noise, spread: float) -> Floats:
    """The probability (k,) of having the greatest strength, from seeded draws of the posterior, a multivariate t.

    The prior is normal with the spread: of many noisy strengths the greatest is overestimated.
    """
    at = list(inside)
    values, vectors = np.linalg.eigh(covariance[np.ix_(at, at)])
    values = np.clip(values, 0, None)
    shrunk = 1 / (1 + (noise.sd / spread) ** 2 * values) if spread > 0 else np.zeros(len(at))
    centre = (strengths[at] @ vectors) * shrunk
    rng = np.random.default_rng(0)
    sd = noise.sd * np.sqrt(noise.free / rng.chisquare(noise.free, (_DRAWS, 1)))
    drawn = (centre + sd * rng.standard_normal((_DRAWS, len(at))) * np.sqrt(values * shrunk)) @ vectors.T
    top = drawn >= drawn.max(1, keepdims=True) - _NEAR
    shares = np.zeros(len(strengths))
    shares[at] = (top / top.sum(1, keepdims=True)).mean(0)
    return shares


def cycles_of(games: Games, bias: float) -> tuple[int, int]:
    """The number of cyclic triples of responses, and of triples with all three preferences.

    The preference in a pair is the sign of its mean value over the orders that were asked, corrected for bias.
    """
    net, asked = games.sums - bias * games.counts, games.counts > 0
    net, asked = net - net.T, (asked | asked.T).astype(np.float64)
    before = ((net > _NEAR) & (asked > 0)).astype(np.float64)  # exact: whole numbers far below 2^53
    return round(np.trace(before @ before @ before) / 3), round(np.trace(asked @ asked @ asked) / 6)
