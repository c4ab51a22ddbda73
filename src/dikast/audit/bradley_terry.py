"""Strengths from comparisons: Bradley-Terry and Davidson, with weights, ties and covariates.

Games are aggregated first (who met whom, how often each won), so the cost of a fit does not depend on their number.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.intervals import row_kinds

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Model = Literal["bradley-terry", "davidson"]
_STEPS = 100
_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Games:
    """Aggregated comparisons (m,): players `i` and `j` (codes), weights of wins of i, wins of j, and ties.

    `covariates` (m, k) is what favours i over j besides strength, such as +1 where i was shown first.
    """

    players: int
    i: Codes
    j: Codes
    wins: Floats
    losses: Floats
    ties: Floats
    covariates: Floats

    @classmethod
    def of(
        cls, first: ArrayLike, second: ArrayLike, outcome: ArrayLike, *, players: int,
        weights: ArrayLike | None = None, covariates: ArrayLike | None = None,
    ) -> "Games":  # fmt: skip
        """From games one by one: codes (n,) of both players, outcome (n,) 0 first won, 1 second won, 2 tie.

        Games of a player against itself say nothing and are left out.
        """
        meetings = Meetings.of(first, second, outcome, players=players, covariates=covariates)
        return meetings.games(np.ones(len(meetings.side)) if weights is None else np.asarray(weights, np.float64))

    @property
    def connected(self) -> bool:
        """Whether a finite, unique order exists: from every player a chain of wins or ties leads to every other."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        beats = [(self.i, self.j, self.wins + self.ties), (self.j, self.i, self.losses + self.ties)]
        rows, columns, weight = (np.concatenate(each) for each in zip(*beats, strict=True))
        graph = coo_array((weight, (rows, columns)), shape=(self.players, self.players)).tocsr()
        graph.eliminate_zeros()
        parts, _ = connected_components(graph, directed=True, connection="strong")
        return bool(parts == 1)


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """Who met whom (m,) and, for each game (n,), which meeting it was (-1: against itself) and which side won it.

    Kept apart from the weights of the games, so that they can be drawn again and again.
    """

    players: int
    i: Codes
    j: Codes
    covariates: Floats
    row: Codes
    side: Codes

    @classmethod
    def of(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        outcome: ArrayLike,
        *,
        players: int,
        covariates: ArrayLike | None = None,
    ) -> "Meetings":
        """As `Games.of`."""
        a, b, side = (np.asarray(each, np.int64) for each in (first, second, outcome))
        if not np.isin(side, (0, 1, 2)).all():
            raise ValueError("outcomes are 0 (first won), 1 (second won) or 2 (tie)")
        extra = np.zeros((len(a), 0)) if covariates is None else np.asarray(covariates, np.float64).reshape(len(a), -1)
        turned = a > b
        i, j = np.where(turned, b, a), np.where(turned, a, b)
        side = np.where(turned & (side < 2), 1 - side, side)
        extra = np.where(turned[:, None], -extra, extra)
        kinds = row_kinds(i * players + j, *extra.T)
        return cls(
            players, i[kinds.sample], j[kinds.sample], extra[kinds.sample], np.where(i == j, -1, kinds.place), side
        )

    def games(self, weights: Floats) -> Games:
        """The aggregate when game g counts `weights[g]`."""
        real = self.row >= 0
        counts = np.bincount(self.row[real] * 3 + self.side[real], weights[real], 3 * len(self.i)).reshape(-1, 3)
        met = self.i != self.j
        wins, losses, ties = counts[met].T
        return Games(self.players, self.i[met], self.j[met], wins, losses, ties, self.covariates[met])


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """`strength` (players,) in log-odds (nats) with mean 0; `effects` (k,) of the covariates; `tie` is log nu or NaN.

    NaN throughout if the games do not determine a finite order.
    """

    strength: Floats
    effects: Floats
    tie: float
    converged: bool

    def win_probability(self, anchor: int) -> Floats:
        """The chance (players,) to beat `anchor`, ties aside and covariates equal."""
        return np.asarray(1 / (1 + np.exp(self.strength[anchor] - self.strength)))


def bradley_terry(
    games: Games, *, model: Model = "bradley-terry", prior: float = 0.0, start: "Strengths | None" = None
) -> Strengths:
    """Maximum-likelihood strengths by Newton's method.

    `bradley-terry`: P(i beats j) = sigmoid(s_i - s_j + z b), a tie counts as half a win for each (Bradley & Terry
    1952). `davidson`: ties have a likelihood of their own, nu sqrt(p_i p_j) (Davidson 1970). `prior` adds that many
    games against an average player to everyone, half won: with it an order exists even if somebody never lost.
    """
    if prior == 0 and not games.connected:
        nan = np.full(games.players, math.nan)
        return Strengths(nan, np.full(games.covariates.shape[1], math.nan), math.nan, converged=False)
    players, effects = games.players, games.covariates.shape[1]
    davidson = model == "davidson"
    theta = np.zeros(players + effects + davidson)
    if start is not None and np.isfinite(start.strength).all():
        theta[:players], theta[players : players + effects] = start.strength, start.effects
        if davidson:
            theta[-1] = start.tie
    value, gradient, hessian = _likelihood(games, theta, davidson, prior)
    converged = False
    for _ in range(_STEPS):
        step = _solved(hessian, gradient)
        if float(np.abs(step).max(initial=0)) < _TOLERANCE:
            converged = True
            break
        size = 1.0
        while True:
            tried = theta + size * step
            new, new_gradient, new_hessian = _likelihood(games, tried, davidson, prior)
            if new >= value - 1e-12 * abs(value) or size < 1e-6:
                break
            size /= 2
        theta, value, gradient, hessian = tried, new, new_gradient, new_hessian
    strength = theta[:players] - theta[:players].mean()
    return Strengths(
        strength, theta[players : players + effects], float(theta[-1]) if davidson else math.nan, converged
    )


def _solved(hessian: Floats, gradient: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(hessian, gradient), np.float64)
    except np.linalg.LinAlgError:  # a covariate that the games say nothing about
        return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0], np.float64)


def _likelihood(games: Games, theta: Floats, davidson: bool, prior: float) -> tuple[float, Floats, Floats]:
    """Log-likelihood, its gradient, and minus its Hessian (made regular along the shift of all strengths)."""
    players, k = games.players, games.covariates.shape[1]
    eta = theta[games.i] - theta[games.j] + games.covariates @ theta[players : players + k]
    n = games.wins + games.losses + games.ties
    if davidson:
        nu = math.exp(theta[-1])
        up, down = np.exp(eta / 2), np.exp(-eta / 2)
        total = up + down + nu
        value = float((games.wins - games.losses) @ eta / 2 + games.ties.sum() * theta[-1] - n @ np.log(total))
        slope = (up - down) / (2 * total)
        g = (games.wins - games.losses) / 2 - n * slope
        h = n * ((up + down) / (4 * total) - slope**2)
        tie_share = nu / total
    else:
        won = games.wins + games.ties / 2
        p = 1 / (1 + np.exp(-eta))
        value = float(won @ eta - n @ np.logaddexp(0, eta))
        g, h = won - n * p, n * p * (1 - p)
    size = len(theta)
    gradient, hessian = np.zeros(size), np.zeros((size, size))
    gradient[:players] = np.bincount(games.i, g, players) - np.bincount(games.j, g, players)
    flat = np.bincount(games.i * players + games.j, h, players * players).reshape(players, players)
    hessian[:players, :players] = np.diag(flat.sum(0) + flat.sum(1)) - flat - flat.T
    if k:
        z = games.covariates
        cross = np.array(
            [np.bincount(games.i, h * column, players) - np.bincount(games.j, h * column, players) for column in z.T]
        )
        hessian[players : players + k, :players], hessian[:players, players : players + k] = cross, cross.T
        hessian[players : players + k, players : players + k] = (z * h[:, None]).T @ z
        gradient[players : players + k] = z.T @ g
    if davidson:
        gradient[-1] = float(games.ties.sum() - n @ tie_share)
        hessian[-1, -1] = float(n @ (tie_share * (1 - tie_share)))
        mixed = -n * slope * tie_share
        row = np.bincount(games.i, mixed, players) - np.bincount(games.j, mixed, players)
        hessian[-1, :players] = hessian[:players, -1] = row
        if k:
            hessian[-1, players : players + k] = hessian[players : players + k, -1] = games.covariates.T @ mixed
    if prior:
        s = theta[:players]
        p = 1 / (1 + np.exp(-s))
        value += float(prior * (s / 2 - np.logaddexp(0, s)).sum())
        gradient[:players] += prior * (0.5 - p)
        hessian[np.arange(players), np.arange(players)] += prior * p * (1 - p)
    else:
        hessian[:players, :players] += 1.0 / players  # strengths are known up to a shift only
    return value, gradient, hessian
