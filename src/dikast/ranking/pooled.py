"""Estimates pooled over all items of a run: slot bias, and the noise of a comparison."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dikast.ranking.comparisons import Floats, Games, fit_strengths, laplacian, signed, stacks_of

_TIMES = 3  # iterations that alternate between variances and bias
ENOUGH = 50  # degrees of freedom of the noise from which on its ratio to the spread is known
_SMALL = 1e-6  # nats: noise below this counts as none


class Noise(NamedTuple):
    """Standard deviation of a comparison's noise, in units of its value, with its degrees of freedom."""

    sd: float
    free: int


UNKNOWN = Noise(math.nan, 0)


class SlotBias(NamedTuple):
    """The advantage of the response shown first, in units of the value; NaN without comparisons.

    `error` is its standard error, `n` the number of comparisons.
    """

    value: float
    error: float
    n: int

    @property
    def shrunk(self) -> float:
        """The bias to correct for: shrunk towards 0 by its error (positive-part James-Stein), 0 if unknown."""
        if not self.error > 0:
            return self.value if self.error == 0 else 0.0
        return self.value * max(0.0, 1.0 - (self.error / self.value) ** 2) if self.value else 0.0


class Pooled(NamedTuple):
    """Slot bias, noise, and the spread: standard deviation of strengths between responses of an item."""

    bias: SlotBias
    noise: Noise
    spread: float


def pool(contests: Sequence[Games]) -> Pooled:
    """Estimates from all items, taking strengths as random between responses.

    The bias is the generalised least squares mean of the values whose covariance within an item is
    noise^2 I + spread^2 X X', where X is the item's design; comparisons with balanced orders weigh most. The noise is
    the pooled residual of least squares within items. If designs leave no residual (knockout), half of the variance of
    the values is used as noise for the bias only, and `noise` is NaN.
    """
    by_size: dict[int, list[Games]] = {}
    for each in contests:
        if each.n:
            by_size.setdefault(len(each.counts), []).append(each)
    stacks = [stack for games in by_size.values() for stack in stacks_of(games)]
    n = sum(int(games.n.sum()) for games in stacks)
    if n == 0:
        return Pooled(SlotBias(math.nan, math.nan, 0), UNKNOWN, math.nan)
    bias = math.fsum(float(games.sums.sum()) for games in stacks) / n
    for _ in range(_TIMES):
        noise, spread = _variances(stacks, bias)
        total = math.fsum(float(g.squares.sum() - 2 * bias * g.sums.sum()) for g in stacks) / n + bias * bias
        half = math.sqrt(max(total, 0.0) / 2)
        known = noise.sd >= 0
        bias, error = _mean(stacks, noise.sd if known else half, spread if known else half / math.sqrt(2))
    return Pooled(SlotBias(bias, error, n), noise, spread)


def _variances(stacks: Sequence[Games], bias: float) -> tuple[Noise, float]:
    """Noise and spread, given the bias; one degree of freedom goes to the bias."""
    left = free = squares = unit = inside = 0.0
    for games in stacks:
        found = fit_strengths(games, bias)
        left += float(found.left.sum())
        free += float((games.n - found.rank).sum())
        squares += float((found.strengths**2).sum())
        unit += float(np.trace(found.covariance, axis1=-2, axis2=-1).sum())
        inside += float(found.rank.sum())
    free -= free > 0
    variance = left / free if free > 0 else math.nan
    spread = math.sqrt(max((squares - (0.0 if math.isnan(variance) else variance) * unit) / inside, 0.0))
    noise = Noise(math.sqrt(variance), int(free))
    return (
        _likeliest(stacks, bias, noise, spread)
        if free >= ENOUGH and noise.sd > _SMALL and spread > 0
        else (noise, spread)
    )


def _likeliest(stacks: Sequence[Games], bias: float, noise: Noise, spread: float) -> tuple[Noise, float]:
    """Noise and spread of maximum likelihood, given the bias, where their ratio is within 20 times the one given.

    Where pairs follow the answers so far, least squares understate the noise and overstate the spread of strengths; the
    likelihood is the same as if pairs had been drawn beforehand.
    """
    from scipy.optimize import minimize_scalar

    n = sum(float(games.n.sum()) for games in stacks)
    total, known, pulled = 0.0, list[Floats](), list[Floats]()
    for games in stacks:
        values, vectors = np.linalg.eigh(laplacian(games))
        along = np.einsum("...ij,...i->...j", vectors, signed(games.sums - bias * games.counts))
        total += float(games.squares.sum() - 2 * bias * games.sums.sum()) + bias * bias * float(games.n.sum())
        known.append(np.clip(values, 0.0, None).ravel())
        pulled.append(along.ravel() ** 2)
    # the eigenvalues of X'X, and the squares of X'(y - bias) along their vectors
    value, square = np.concatenate(known), np.concatenate(pulled)

    def left(ridge: float) -> float:
        return max(total - float((square / (value + ridge)).sum()), _SMALL)

    def unlikely(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        return (n - 1) * math.log(left(ridge)) + float(np.log1p(value / ridge).sum())

    about = 2 * math.log(noise.sd / spread)
    found = minimize_scalar(unlikely, bounds=(about - 2 * math.log(20), about + 2 * math.log(20)), method="bounded")
    ridge = math.exp(float(found.x))
    sd = math.sqrt(left(ridge) / (n - 1))
    return Noise(sd, noise.free), sd / math.sqrt(ridge)


def _mean(stacks: Sequence[Games], noise: float, spread: float) -> tuple[float, float]:
    """The bias and its standard error for these standard deviations.

    By Woodbury's identity the weights are (1 - X (X'X + r I)^-1 X' 1) / noise^2, with r = noise^2 / spread^2.
    """
    if not noise > _SMALL:  # noiseless values: any comparison in both orders gives the bias
        noise = _SMALL
    top = bottom = 0.0
    for games in stacks:
        sums, n = games.sums.sum((-1, -2)), games.n
        if spread > 0:
            ridge = laplacian(games) + (noise / spread) ** 2 * np.eye(games.counts.shape[-1])
            solved = np.linalg.solve(ridge, signed(games.counts)[..., None])[..., 0]
            sums = sums - np.einsum("...i,...i->...", solved, signed(games.sums))
            n = n - np.einsum("...i,...i->...", solved, signed(games.counts))
        top, bottom = top + float(sums.sum()), bottom + float(n.sum())
    return top / bottom, 0.0 if noise == _SMALL else noise / math.sqrt(bottom)
