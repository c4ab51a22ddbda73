"""Strengths of many draws of the same meetings at once, as a bootstrap needs them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dikast.audit.statistics.paired_comparison.bradley_terry import (
    FARTHEST_TIE,
    LONGEST_STEP,
    MOST_STEPS,
    SMALLEST_STEP,
    Games,
    Model,
    Strengths,
    begin_at,
    centred,
    fit_players,
    settled_effects,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_AT_ONCE = 1_000_000  # numbers in an array of a batch, 8 MB: meetings, or a matrix of players, times draws
_MOST_PLAYERS = 300  # beyond, the draws' matrices are larger than what the batch saves


def fit_draws(
    draws: Iterator[Games], *, model: Model, prior: float, start: Strengths, leagues: Codes
) -> list[Strengths]:
    """`fit_players` of each draw, in their order; all have the meetings (i, j, covariates) of the first.

    Newton's method steps for many draws together. A draw that needs more than its plain steps (somebody never won or
    never lost, no tie or nothing but ties, a covariate that decides its games, a step that has to be shortened) is
    fitted by itself. Both end where a step is below 1e-10 nats.
    """
    first = next(draws, None)
    if first is None:
        return []
    met = np.bincount(np.concatenate([first.i, first.j]), minlength=first.players) > 0
    every = chain([first], draws)
    if met.all():
        return _fit_met(every, model, prior, start, leagues)
    place = np.cumsum(met) - 1  # somebody without a game changes nothing for the others
    games = (replace(each, players=int(met.sum()), i=place[each.i], j=place[each.j]) for each in every)
    known = replace(start, strength=start.strength[met], touched=None)
    fits = _fit_met(games, model, prior, known, np.unique(leagues[met], return_inverse=True)[1])
    return [
        replace(
            each,
            strength=_spread(each.strength, met, math.nan),
            touched=None if each.touched is None else _spread(each.touched, met, False),
        )
        for each in fits
    ]


def _spread(values: NDArray[Any], met: NDArray[np.bool_], other: Any) -> NDArray[Any]:
    """What each of those who have games is given, and `other` to those who have none (players,)."""
    found = np.full(len(met), other, values.dtype)
    found[met] = values
    return found


def _fit_met(draws: Iterator[Games], model: Model, prior: float, start: Strengths, leagues: Codes) -> list[Strengths]:
    """As `fit_draws`, of at least one draw, where each player has a game."""
    found: list[Strengths] = []
    first = next(draws)
    pending, size = [first], max(1, _AT_ONCE // max(1, len(first.i), first.players**2))
    while pending:
        pending += islice(draws, size - len(pending))
        together = _together(pending, model, start, leagues) if len(pending) > 1 else [None]
        found += [
            fit_players(games, model=model, prior=prior, start=start, leagues=leagues) if each is None else each
            for games, each in zip(pending, together, strict=True)
        ]
        pending = list(islice(draws, 1))
    return found


def _together(draws: Sequence[Games], model: Model, start: Strengths, leagues: Codes) -> list[Strengths | None]:
    """The strengths of each draw that plain steps find, None for the others."""
    found: list[Strengths | None] = [None] * len(draws)
    wins, losses, ties = (
        np.column_stack([getattr(each, name) for each in draws]) for name in ("wins", "losses", "ties")
    )
    plain = np.flatnonzero(_one_group_a_league(draws[0], wins, losses, ties, leagues))
    if model == "davidson":
        plain = plain[ties[:, plain].any(0) & (wins + losses)[:, plain].any(0)]
    if not len(plain):
        return found
    batch = _Batch.of(draws[0], wins[:, plain], losses[:, plain], ties[:, plain], davidson=model == "davidson")
    theta, converged = _stepped(batch, np.tile(begin_at(draws[0], model, start)[:, None], len(plain)), leagues)
    players, k = draws[0].players, draws[0].covariates.shape[1]
    everyone = np.ones(players, bool)
    for at, own in zip(plain[converged], theta.T[converged], strict=True):
        tie = float(own[-1]) if model == "davidson" else math.nan
        if settled_effects(draws[at], own).all() and not abs(tie) > FARTHEST_TIE:
            strength = centred(own[:players], everyone, leagues)
            found[at] = Strengths(strength, own[players : players + k], tie, converged=True)
    return found


def _one_group_a_league(games: Games, wins: Floats, losses: Floats, ties: Floats, leagues: Codes) -> NDArray[np.bool_]:
    """In which draws a chain of wins or ties leads from every player to every other one of the league (b,)."""
    players = games.players
    if players > _MOST_PLAYERS or np.bincount(leagues)[leagues].min(initial=2) < 2:
        return np.zeros(wins.shape[1], bool)
    reach = np.zeros((wins.shape[1], players, players), np.float32)
    reach[:, np.arange(players), np.arange(players)] = 1
    for beaten, i, j in ((wins + ties, games.i, games.j), (losses + ties, games.j, games.i)):
        for pair in np.unique(i * players + j):
            a, b = divmod(int(pair), players)
            reach[:, a, b] = (beaten[(i == a) & (j == b)] > 0).any(0)
    for _ in range(math.ceil(math.log2(max(players, 2)))):
        reach = np.minimum(reach @ reach, 1)
    return np.asarray(((reach > 0) == (leagues[:, None] == leagues)).all((1, 2)))


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Games of b draws of m meetings: what was won (m, b), and the sparse matrices that sum over meetings.

    `sides` (m, d) is what each of the d parameters adds to the log-odds of a meeting, `products` (d * d, m) its
    products by twos.
    """

    sides: "csr_array"
    products: "csr_array"
    ahead: Floats  # wins less losses
    ties: Floats
    n: Floats
    davidson: bool

    @classmethod
    def of(cls, games: Games, wins: Floats, losses: Floats, ties: Floats, *, davidson: bool) -> "_Batch":
        from scipy.sparse import coo_array

        m, k = games.covariates.shape
        ones, size = np.ones(m), games.players + k
        columns = np.column_stack([games.i, games.j, *np.tile(np.arange(games.players, size)[:, None], m)])
        values = np.column_stack([ones, -ones, games.covariates])
        rows = np.arange(m)[:, None]
        sides = coo_array((values.ravel(), (np.broadcast_to(rows, values.shape).ravel(), columns.ravel())), (m, size))
        pairs = columns[:, :, None] * size + columns[:, None, :]
        products = values[:, :, None] * values[:, None, :]
        across = np.broadcast_to(rows[:, :, None], products.shape).ravel()
        summed = coo_array((products.ravel(), (pairs.ravel(), across)), (size * size, m))
        return cls(sides.tocsr(), summed.tocsr(), wins - losses, ties, wins + losses + ties, davidson)

    def among(self, chosen: NDArray[Any]) -> "_Batch":
        """The chosen draws only."""
        return replace(self, ahead=self.ahead[:, chosen], ties=self.ties[:, chosen], n=self.n[:, chosen])

    def likelihood(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Log-likelihoods (b,), gradients (d, b) and minus the Hessians (b, d, d) at parameters (d, b)."""
        size = self.sides.shape[1]
        eta = np.clip(self.sides @ theta[:size], -500, 500)
        if not self.davidson:
            p = 1 / (1 + np.exp(-eta))
            won = (self.ahead + self.n) / 2
            value = (won * eta - self.n * (eta - np.log(p))).sum(0)
            gradient, bend = self.sides.T @ (won - self.n * p), self.n * p * (1 - p)
            return value, gradient, (self.products @ bend).T.reshape(-1, size, size)
        nu, up = np.exp(theta[-1]), np.exp(eta / 2)
        down = 1 / up
        total = up + down + nu
        slope, tie_share = (up - down) / (2 * total), nu / total
        value = (self.ahead * eta / 2 - self.n * np.log(total)).sum(0) + self.ties.sum(0) * theta[-1]
        bend = self.n * ((up + down) / (4 * total) - slope**2)
        last = self.ties.sum(0) - (self.n * tie_share).sum(0)
        gradient = np.vstack([self.sides.T @ (self.ahead / 2 - self.n * slope), last])
        hessian = np.zeros((len(nu), size + 1, size + 1))
        hessian[:, :size, :size] = (self.products @ bend).T.reshape(-1, size, size)
        mixed = (self.sides.T @ (-self.n * slope * tie_share)).T
        hessian[:, size, :size], hessian[:, :size, size] = mixed, mixed
        hessian[:, size, size] = (self.n * tie_share * (1 - tie_share)).sum(0)
        return value, gradient, hessian


def _stepped(batch: _Batch, theta: Floats, leagues: Codes) -> tuple[Floats, NDArray[np.bool_]]:
    """Newton's method from parameters (d, b): where it ends, and for which draws plain steps led there (b,)."""
    players = len(leagues)
    shift = np.zeros((len(theta), len(theta)))  # strengths are known up to a shift of a league only
    shift[:players, :players] = (leagues[:, None] == leagues) / players
    converged, active = np.zeros(theta.shape[1], bool), np.arange(theta.shape[1])
    value, gradient, hessian = batch.likelihood(theta)
    for _ in range(MOST_STEPS):
        try:
            step = np.linalg.solve(hessian + shift, gradient.T[:, :, None])[:, :, 0].T
        except np.linalg.LinAlgError:  # a covariate that the games of one of the draws say nothing about
            break
        longest = np.abs(step).max(0)
        converged[active[longest < SMALLEST_STEP]] = True
        moving = longest >= SMALLEST_STEP
        active, batch, step, longest = active[moving], batch.among(moving), step[:, moving], longest[moving]
        if not len(active):
            break
        theta[:, active] += np.minimum(1.0, LONGEST_STEP / longest) * step
        before = value[moving]
        value, gradient, hessian = batch.likelihood(theta[:, active])
        plain = value >= before - 1e-12 * np.abs(before)
        active, batch = active[plain], batch.among(plain)
        value, gradient, hessian = value[plain], gradient[:, plain], hessian[plain]
    return theta, converged
