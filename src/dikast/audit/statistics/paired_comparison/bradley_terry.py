"""Strengths from comparisons: Bradley-Terry and Davidson, with weights, ties and covariates.

Games are aggregated first (who met whom, how often each won), so the cost of a fit does not depend on their number.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.statistics.intervals import row_kinds

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Model = Literal["bradley-terry", "davidson"]
MOST_STEPS = 100
FARTHEST_TIE = 25.0  # |log nu|; beyond, all games are ties or none is, and strengths grow with it without end
LONGEST_STEP = 5.0  # nats; far from the maximum, Newton's step may leave the range of floats
SMALLEST_STEP = 1e-10
_MOST_EFFECT = 25.0  # nats; beyond, a covariate and strengths grow together without end, whatever a few games say
_OPEN = 1e-6  # share of its variance that a game must keep beside a covariate; below, the covariate decides it


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

        Games of a player against itself carry no information and are left out.
        """
        meetings = Meetings.of(first, second, outcome, players=players, covariates=covariates)
        return meetings.games(np.ones(len(meetings.side)) if weights is None else np.asarray(weights, np.float64))

    @property
    def groups(self) -> Codes:
        """The group of each player (players,): within one a chain of wins or ties leads from everyone to everyone."""
        beats = [(self.i, self.j, self.wins + self.ties), (self.j, self.i, self.losses + self.ties)]
        rows, columns, weight = (np.concatenate(each) for each in zip(*beats, strict=True))
        return _components(self.players, rows, columns, weight, directed=True)

    @property
    def leagues(self) -> Codes:
        """The league of each player (players,): within one, games lead from everyone to everyone, whoever won them."""
        return _components(self.players, self.i, self.j, self.wins + self.losses + self.ties, directed=False)

    @property
    def connected(self) -> bool:
        """Whether a finite, unique order exists: all players are in one group (Ford 1957)."""
        return not self.groups.any()

    @property
    def played(self) -> Floats:
        """The weight of the games of each player (players,)."""
        n = self.wins + self.losses + self.ties
        return np.asarray(np.bincount(self.i, n, self.players) + np.bincount(self.j, n, self.players))

    def among(self, chosen: NDArray[np.bool_]) -> "Games":
        """The chosen meetings (m,) only."""
        return Games(
            self.players, self.i[chosen], self.j[chosen], self.wins[chosen], self.losses[chosen], self.ties[chosen],
            self.covariates[chosen],
        )  # fmt: skip


def _components(players: int, rows: Codes, columns: Codes, weight: Floats, *, directed: bool) -> Codes:
    """Which strong component of a graph each player is in, or weak where no edge has a direction (players,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((weight, (rows, columns)), shape=(players, players)).tocsr()
    graph.eliminate_zeros()
    return np.asarray(connected_components(graph, directed=directed, connection="strong")[1], np.int64)


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
    """`strength` (players,) in nats, mean 0 in each league; `effects` (k,) of the covariates; `tie`: log nu or NaN.

    NaN throughout if the games do not determine a finite order. `touched` (players,) says whose strength a prior made
    finite, None for nobody's.
    """

    strength: Floats
    effects: Floats
    tie: float
    converged: bool
    touched: NDArray[np.bool_] | None = None
    settled: NDArray[np.bool_] | None = None  # (k,) which covariates leave games open, None where all do


def bradley_terry(
    games: Games, *, model: Model = "bradley-terry", prior: float = 0.0, start: "Strengths | None" = None
) -> Strengths:
    """Maximum-likelihood strengths by Newton's method.

    `bradley-terry`: P(i beats j) = sigmoid(s_i - s_j + z b), a tie counts as half a win for each (Bradley & Terry
    1952). `davidson`: ties have a likelihood of their own, nu sqrt(p_i p_j) (Davidson 1970). `prior` adds that many
    games against an average player to everyone, half won: with it an order exists even if somebody never lost.
    """
    if prior == 0 and not games.connected:
        return _unknown(games)
    everyone = np.ones(games.players, bool)
    fit = _maximum(games, begin_at(games, model, start), everyone, model, np.full(games.players, prior))
    return _read(fit, games, model, everyone, everyone if prior else ~everyone)


def fit_players(
    games: Games, *, model: Model = "bradley-terry", prior: float = 0.1,
    start: "Strengths | None" = None, leagues: Codes | None = None,
) -> Strengths:  # fmt: skip
    """Maximum likelihood for everyone whose strength is determined, and `prior` for those whose is not.

    Strengths compare players of one league (`leagues` (players,), by default `games.leagues`), and no others. In each,
    the largest group in which a chain of wins or ties leads from everyone to everyone has finite strengths, with mean
    0, from the games among its members: in the limit of maximum likelihood no other game says anything about them. The
    others (`touched`: they never won, never lost, or never met the group) are then fitted with these strengths fixed
    and `prior` games, half won, against a player of strength 0. Where no two players are in a group, everyone is
    touched. Players without a game have no strength (NaN) and move nobody.

    A covariate that decides every game in which it is not 0 has no finite effect (NaN). In the limit these games carry
    no information about anything else, so the others are fitted without them.
    """
    leagues = games.leagues if leagues is None else leagues
    fit = _fit_players(games, model, prior, start, leagues)
    if fit.settled is None or fit.settled.all():
        return fit
    effects, free = np.full(len(fit.settled), math.nan), fit.settled
    left = (games.covariates[:, ~free] == 0).all(1)
    if not free.any() or not left.any():
        return _unknown(games)
    open_games = replace(games.among(left), covariates=games.covariates[np.ix_(left, free)])
    rest = fit_players(open_games, model=model, prior=prior, leagues=leagues)
    effects[free] = rest.effects
    return replace(rest, effects=effects)


def _fit_players(games: Games, model: Model, prior: float, start: "Strengths | None", leagues: Codes) -> Strengths:
    met = games.played > 0
    if not met.any():
        return _unknown(games)
    if model == "davidson" and not (games.ties.any() and (games.wins + games.losses).any()):
        tie = math.nan if games.ties.any() else -math.inf  # without a tie nu is 0; with nothing else it has no bound
        return replace(fit_players(games, prior=prior, start=start, leagues=leagues), tie=tie)
    core = _cores(games, met, leagues)
    touched, theta = met & ~core, begin_at(games, model, start)
    theta[: games.players][touched] = 0.0
    found, nobody = _Maximum(theta, True), np.zeros(games.players)
    if core.any():
        found = _maximum(games.among(core[games.i] & core[games.j]), theta, core, model, nobody, leagues=leagues)
        found.theta[: games.players] = centred(found.theta[: games.players], core, leagues)
    if touched.any():
        outside = games.among(touched[games.i] | touched[games.j])
        rest = _maximum(outside, found.theta, touched, model, np.where(touched, prior, 0.0), alone=bool(core.any()))
        found = _Maximum(rest.theta, found.converged and rest.converged)
    has_core = np.bincount(leagues, core)[leagues] > 0
    return _read(found, games, model, met, touched, centre=core | (met & ~has_core), leagues=leagues)


def _cores(games: Games, met: NDArray[np.bool_], leagues: Codes) -> NDArray[np.bool_]:
    """Who is in the largest group of its league (players,), of two players or more (most games if equal)."""
    groups, core = games.groups, np.zeros(games.players, bool)
    sizes, heaviest = np.bincount(groups, met), np.bincount(groups, games.played)
    for league in np.unique(leagues[met]):
        inside = np.unique(groups[met & (leagues == league)])
        best = inside[np.lexsort((-heaviest[inside], -sizes[inside]))[0]]
        if sizes[best] > 1:
            core |= met & (groups == best)
    return core


def centred(strength: Floats, centre: NDArray[np.bool_], leagues: Codes) -> Floats:
    """Strengths (players,) minus the mean of the `centre` of each league."""
    count = np.bincount(leagues, centre)
    total = np.bincount(leagues, np.where(centre, strength, 0.0))
    mean = np.divide(total, count, out=np.zeros(len(count)), where=count > 0)
    return np.asarray(strength - mean[leagues])


class _Maximum(NamedTuple):
    theta: Floats
    converged: bool


def _unknown(games: Games) -> Strengths:
    nan = np.full(games.players, math.nan)
    return Strengths(nan, np.full(games.covariates.shape[1], math.nan), math.nan, converged=False)


def begin_at(games: Games, model: Model, start: "Strengths | None") -> Floats:
    """Where Newton's method begins: strengths (players,), effects, and log nu of Davidson's model."""
    players, effects = games.players, games.covariates.shape[1]
    theta = np.zeros(players + effects + (model == "davidson"))
    if start is not None:
        theta[:players], theta[players : players + effects] = start.strength, start.effects
        if model == "davidson":
            theta[-1] = start.tie
    return np.nan_to_num(theta, nan=0.0, posinf=0.0, neginf=0.0)


def _maximum(
    games: Games, theta: Floats, members: NDArray[np.bool_], model: Model, prior: Floats,
    *, alone: bool = False, leagues: Codes | None = None,
) -> _Maximum:  # fmt: skip
    """Newton's method on the strengths of `members` (players,) and all else there is; `alone` moves nothing else."""
    davidson = model == "davidson"
    free = np.flatnonzero(np.concatenate([members, np.full(len(theta) - len(members), not alone)]))
    count, loose = int(members.sum()), not alone and not prior.any()
    shift = np.zeros((len(free), len(free)))  # without a prior, strengths are known up to a shift of a league only
    among = (np.zeros(len(members), np.int64) if leagues is None else leagues)[members]
    shift[:count, :count] = loose * (among[:, None] == among) / max(count, 1)
    value, gradient, hessian = _likelihood(games, theta, davidson, prior)
    for _ in range(MOST_STEPS):
        step = np.zeros(len(theta))
        step[free] = _solved(hessian[np.ix_(free, free)] + shift, gradient[free])
        longest = float(np.abs(step).max(initial=0))
        if longest < SMALLEST_STEP:
            return _Maximum(theta, True)
        size = min(1.0, LONGEST_STEP / longest)
        while True:
            tried = theta + size * step
            new, new_gradient, new_hessian = _likelihood(games, tried, davidson, prior)
            if new >= value - 1e-12 * abs(value) or size < 1e-6:
                break
            size /= 2
        theta, value, gradient, hessian = tried, new, new_gradient, new_hessian
    return _Maximum(theta, False)


def _read(
    found: _Maximum,
    games: Games,
    model: Model,
    known: NDArray[np.bool_],
    touched: NDArray[np.bool_],
    centre: NDArray[np.bool_] | None = None,
    leagues: Codes | None = None,
) -> Strengths:
    players, k = games.players, games.covariates.shape[1]
    leagues = np.zeros(players, np.int64) if leagues is None else leagues
    strength = centred(found.theta[:players], known if centre is None else centre, leagues)
    strength[~known] = math.nan
    effects = found.theta[players : players + k]
    settled = settled_effects(games, found.theta)
    if not settled.all():
        strength, effects = np.full(players, math.nan), np.full(k, math.nan)
    tie = float(found.theta[-1]) if model == "davidson" else math.nan
    if abs(tie) > FARTHEST_TIE:
        strength, effects, tie = np.full(players, math.nan), np.full(k, math.nan), math.nan
    alone = touched if touched.any() else None
    return Strengths(strength, effects, tie, found.converged, alone, None if settled.all() else settled)


def settled_effects(games: Games, theta: Floats) -> NDArray[np.bool_]:
    """Which covariates (k,) leave any of their games open; one that decides all of them has no finite effect."""
    players, k = games.players, games.covariates.shape[1]
    if k == 0:
        return np.ones(0, bool)
    n = games.wins + games.losses + games.ties
    z = games.covariates
    p = 1 / (1 + np.exp(-np.clip(theta[games.i] - theta[games.j] + z @ theta[players : players + k], -700, 700)))
    weight = n[:, None] * z**2
    left, all_of_it = (weight * (p * (1 - p))[:, None]).sum(0), weight.sum(0)
    finite = np.abs(z).max(0, initial=0.0) * np.abs(theta[players : players + k]) <= _MOST_EFFECT
    return np.asarray(((left > _OPEN * all_of_it) & finite) | (all_of_it <= 0))


def _solved(hessian: Floats, gradient: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(hessian, gradient), np.float64)
    except np.linalg.LinAlgError:  # a covariate that the games say nothing about
        return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0], np.float64)


def _likelihood(games: Games, theta: Floats, davidson: bool, prior: Floats) -> tuple[float, Floats, Floats]:
    """Log-likelihood, its gradient, and minus its Hessian."""
    players, k = games.players, games.covariates.shape[1]
    eta = np.clip(theta[games.i] - theta[games.j] + games.covariates @ theta[players : players + k], -500, 500)
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
    if prior.any():
        s = theta[:players]
        p = 1 / (1 + np.exp(-s))
        value += float((prior * (s / 2 - np.logaddexp(0, s))).sum())
        gradient[:players] += prior * (0.5 - p)
        hessian[np.arange(players), np.arange(players)] += prior * p * (1 - p)
    return value, gradient, hessian
