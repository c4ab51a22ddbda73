"""From many comparisons to an order: strengths, ranks and win rates with intervals; cycles."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.bradley_terry import Games, Meetings, Model, Strengths, bradley_terry
from dikast.audit.estimate import Estimate
from dikast.audit.intervals import ALIKE, Resampling, cluster_profile, error_of, row_kinds, share, t_of, z_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

WinRule = Literal["half", "wins", "decided"]
WIN_RULES: Mapping[WinRule, str] = {
    "half": "wins and half the ties, of all games",
    "wins": "wins, of all games: a tie is no win",
    "decided": "wins, of the games that are no ties",
}
_MOST_DRAWS = 500  # fits; ranks and strengths need fewer draws than a tail probability


class WinRate(NamedTuple):
    """A win rate and its standard error."""

    rate: Estimate
    error: float


def win_rate(worth: ArrayLike, rule: WinRule, level: float = 0.95, cluster: Codes | None = None) -> WinRate:
    """Win rate under a named tie rule (WIN_RULES), with the standard error of a mean of independent games.

    worth (n,): 1 won, .5 tied, 0 lost. The interval is normal: rate +/- z times the error, kept within [0, 1]; if all
    games ended alike, Wilson's. With `cluster` (n,) the error is that of cluster sums, the interval Student's.
    """
    given = np.asarray(worth, np.float64)
    kept = given != 0.5 if rule == "decided" else np.ones(len(given), bool)
    values = np.where(given == 0.5, 0.0, given) if rule == "wins" else given
    values, inside = values[kept], None if cluster is None else cluster[kept]
    n = len(values)
    if n == 0:
        return WinRate(Estimate(math.nan, 0, level=level, note="no games"), math.nan)
    mean = float(values.mean())
    found = error_of((values - mean) / n, inside)
    if not found.error > ALIKE:
        return WinRate(share(values, level, inside), found.error)
    half = (z_of(level) if cluster is None else t_of(level, found.groups - 1)) * found.error
    method = "normal" if cluster is None else "Student, by cluster"
    return WinRate(Estimate(mean, n, max(0.0, mean - half), min(1.0, mean + half), level, method), found.error)


@dataclass(frozen=True, slots=True, eq=False)
class Bouts:
    """Games one by one: player codes (n,), outcome (0 first, 1 second, 2 tie), weight, covariates (n, k).

    `unit` (n,) says which games are drawn together: both orders of a pair, or all games on one prompt. `copies` draws
    each unit of weight by itself, as some boards do: their intervals come out too narrow.
    """

    names: Sequence[str]
    first: Codes
    second: Codes
    outcome: Codes
    weight: Floats
    covariates: Floats
    unit: Codes | None = None
    copies: bool = False

    def games(self) -> Games:
        """The aggregate."""
        return Games.of(
            self.first,
            self.second,
            self.outcome,
            players=len(self.names),
            weights=self.weight,
            covariates=self.covariates,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Strengths (nats, mean 0), ranks (1 is best) and chances to beat the anchor, each with draws (B, players).

    `drawn_effects` (B, k) are draws of the effects of the covariates, `drawn_ties` (B,) of Davidson's log nu.
    """

    fit: Strengths
    names: Sequence[str]
    draws: Floats
    drawn_effects: Floats
    drawn_ties: Floats
    anchor: int | None
    prior: float
    how: Resampling
    n: int

    def strength(self, player: int) -> Estimate:
        """Log-odds against the anchor, or against the average player."""
        shift = 0.0 if self.anchor is None else self.fit.strength[self.anchor]
        moved = 0.0 if self.anchor is None else self.draws[:, self.anchor]
        known = player == self.anchor  # 0 by definition
        return self._told(self.fit.strength[player] - shift, self.draws[:, player] - moved, point=known)

    def chance(self, player: int) -> Estimate:
        """The chance to beat the anchor (or the average player), ties aside and covariates equal."""
        found = self.strength(player)
        value, low, high = (
            1 / (1 + math.exp(-each)) if not math.isnan(each) else math.nan
            for each in (found.value, found.low, found.high)
        )
        return Estimate(value, self.n, low, high, self.how.level, found.method)

    def effect(self, covariate: int) -> Estimate:
        """What one unit of a covariate adds to the log-odds."""
        return self._told(self.fit.effects[covariate], self.drawn_effects[:, covariate])

    @property
    def tie(self) -> Estimate:
        """Davidson's tie parameter nu: with 1, equal players tie one game in three. NaN in the other model."""
        return self._told(math.exp(self.fit.tie), np.exp(self.drawn_ties))

    def rank(self, player: int) -> Estimate:
        """The rank, from 1, with its bootstrap interval."""
        value = 1 + float((self.fit.strength > self.fit.strength[player]).sum())
        drawn = 1.0 + (self.draws > self.draws[:, [player]]).sum(1)
        drawn[np.isnan(self.draws[:, player])] = math.nan
        value = value if not math.isnan(self.fit.strength[player]) else math.nan
        found = self._told(value, drawn, point=bool(np.ptp(self.draws, axis=0).max(initial=0) > 1e-9))
        if math.isnan(found.low):
            return found
        return replace(found, low=float(math.floor(found.low)), high=float(math.ceil(found.high)))

    def _told(self, value: float, drawn: Floats, *, point: bool = False) -> Estimate:
        interval = self.how.interval(drawn, point=point) if len(drawn) else (math.nan, math.nan)
        return Estimate(float(value), self.n, *interval, self.how.level, f"bootstrap, {len(drawn)} draws")


def rank_players(bouts: Bouts, how: Resampling, *, model: Model = "bradley-terry", anchor: str = "") -> Ranking:
    """Fit strengths and draw games (or units) anew for intervals.

    If somebody never lost or two groups never met, no finite order exists; then everyone gets a tenth of a game
    against an average player (`prior`), which the table must say. KeyError for an unknown anchor.
    """
    games = bouts.games()
    prior = 0.0 if games.connected else 0.1
    fit = bradley_terry(games, model=model, prior=prior)
    place = list(bouts.names).index(anchor) if anchor else None
    few = Resampling(min(how.draws, _MOST_DRAWS), how.level, how.seed)
    fits = [bradley_terry(each, model=model, prior=prior, start=fit) for each in _redrawn(bouts, few)]
    draws = np.array([each.strength for each in fits]).reshape(-1, len(bouts.names))
    effects = np.array([each.effects for each in fits]).reshape(len(fits), -1)
    ties = np.array([each.tie for each in fits])
    return Ranking(fit, bouts.names, draws, effects, ties, place, prior, few, len(bouts.first))


def _redrawn(bouts: Bouts, how: Resampling) -> Iterator[Games]:
    """Bootstrap samples of the aggregate: kinds of games are counted once, and only counts are drawn."""
    kinds = row_kinds(bouts.first, bouts.second, bouts.outcome, bouts.weight, *bouts.covariates.T)
    at = kinds.sample
    meetings = Meetings.of(
        bouts.first[at], bouts.second[at], bouts.outcome[at], players=len(bouts.names), covariates=bouts.covariates[at]
    )
    weight, rng = bouts.weight[at], how.rng()
    shares = None if bouts.unit is None else cluster_profile(bouts.unit, kinds)
    sizes = kinds.sizes * weight if bouts.copies else kinds.sizes.astype(np.float64)
    for _ in range(how.draws):
        if shares is not None:
            units = shares.shape[0]
            drawn = np.bincount(rng.integers(0, units, units), minlength=units) @ shares
        else:
            drawn = rng.multinomial(round(sizes.sum()), sizes / sizes.sum()).astype(np.float64)
        yield meetings.games(drawn if bouts.copies and shares is None else drawn * weight)


def cyclic_triples(wins: ArrayLike) -> Estimate:
    """Share of triples of players that beat each other in a circle, among triples where each pair has a majority.

    wins: (players, players), wins[i, j] how often i beat j (half for ties). No interval: games drawn anew make circles
    of their own; `cycles_by_chance` is what to compare with. A random tournament has one quarter.
    """
    given = np.asarray(wins, np.float64)
    ahead = (given > given.T).astype(np.float64)
    decided = ahead + ahead.T
    triples = float(np.trace(decided @ decided @ decided)) / 6
    cycles = float(np.trace(ahead @ ahead @ ahead)) / 3
    note = "redrawn games make circles of their own: compare with the next row"
    return Estimate(cycles / triples if triples else math.nan, round(triples), note=note)


def cycles_by_chance(games: Games, fit: Strengths, how: Resampling) -> Estimate:
    """The share of cyclic triples if there were none in truth: games drawn from the fitted strengths, ties as they are.

    The value is the mean of the draws, the interval holds `how.level` of them: more cycles than that are no accident.
    """
    gap = fit.strength[games.i] - fit.strength[games.j] + games.covariates @ fit.effects
    decided, ties = np.round(games.wins + games.losses).astype(np.int64), games.ties
    if not np.isfinite(gap).all():
        return Estimate(math.nan, 0, level=how.level, note="no finite strengths")
    rng, found, chance = how.rng(), [], 1 / (1 + np.exp(-gap))
    for _ in range(min(how.draws, _MOST_DRAWS)):
        won = rng.binomial(decided, chance).astype(np.float64)
        drawn = Games(games.players, games.i, games.j, won, decided - won, ties, games.covariates)
        found.append(cyclic_triples(win_matrix(drawn)).value)
    draws = np.array(found)
    known = draws[~np.isnan(draws)]
    interval = how.interval(draws, point=True)
    value = float(known.mean()) if len(known) else math.nan
    return Estimate(value, len(draws), *interval, how.level, f"{len(draws)} tournaments drawn from the strengths")


def win_matrix(games: Games) -> Floats:
    """How often each player (row) beat each other (column), ties half, (players, players)."""
    matrix = np.zeros((games.players, games.players))
    np.add.at(matrix, (games.i, games.j), games.wins + games.ties / 2)
    np.add.at(matrix, (games.j, games.i), games.losses + games.ties / 2)
    return matrix
