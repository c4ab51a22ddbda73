"""From many comparisons to an order: strengths, ranks and win rates with intervals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import Resampling, cluster_profile, clusters_of, error_of, row_kinds, share
from dikast.audit.statistics.paired_comparison.bradley_terry import Games, Meetings, Model, Strengths, fit_players
from dikast.audit.statistics.paired_comparison.drawn_strengths import fit_draws
from dikast.core.confidence import Interval, wilson

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]

WinRule = Literal["half", "wins", "decided"]
WIN_RULES: Mapping[WinRule, str] = {
    "half": "wins and half the ties, of all games",
    "wins": "wins, of all games: a tie is no win",
    "decided": "wins, of the games that were won or lost",
}
PRIOR = 0.1  # games against an average player, for those whom separation leaves without a finite strength
BY_PRIOR = "only the prior makes it finite"
ANCHOR = "the anchor, by definition"
_SAME = 1e-9  # nats: strengths nearer than this are equal
MOST_DRAWS = 500  # fits; ranks and strengths need fewer draws than a tail probability


class WinRate(NamedTuple):
    """A win rate and its standard error."""

    rate: Estimate
    error: float


def win_rate(worth: ArrayLike, rule: WinRule, level: float = 0.95, cluster: Codes | None = None) -> WinRate:
    """Win rate under a named tie rule (WIN_RULES), with the standard error of a mean of independent games.

    worth (n,): 1 won, .5 tied, 0 lost. The interval is that of a `share`. With `cluster` (n,) the error is that of
    cluster sums.
    """
    given = np.asarray(worth, np.float64)
    kept = given != 0.5 if rule == "decided" else np.ones(len(given), bool)
    values = np.where(given == 0.5, 0.0, given) if rule == "wins" else given
    values, inside = values[kept], None if cluster is None else cluster[kept]
    n = len(values)
    if n == 0:
        return WinRate(Estimate(math.nan, 0, level=level, note="no games"), math.nan)
    error = error_of((values - values.mean()) / n, inside).error
    return WinRate(share(values, level, inside), error)


@dataclass(frozen=True, slots=True, eq=False)
class Bouts:
    """Games one by one: player codes (n,), outcome (0 first, 1 second, 2 tie), weight, covariates (n, k).

    `unit` (n,) says which games are drawn together: both orders of a pair, or all games on one prompt. `copies` draws
    each unit of weight by itself, as some boards do: their intervals come out too narrow. `n`: how many games these
    are, where that is not their number (a soft preference is a part of a win and a part of a loss).
    """

    names: Sequence[str]
    first: Codes
    second: Codes
    outcome: Codes
    weight: Floats
    covariates: Floats
    unit: Codes | None = None
    copies: bool = False
    n: int = 0

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
    `played` (players,) counts what is drawn together (games, or units of games) by player; a player without any has no
    strength and no rank. `prior` games against an average player were given where separation needs it: `fit.touched`,
    and in a share of the draws `needed` (players,). Only players of one league (`leagues` (players,)) are compared: in
    another, no game says who is better; `games` counts the games of the league of each player (players,). `reach`
    (players, 2) is the lowest and the highest strength that the record of a touched player allows (`_reach`), and
    `beaten[i, j]` whether touched i beat touched j, or those in between, more often than chance allows (`_beaten`).
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
    played: Codes
    needed: Floats
    leagues: Codes
    games: Codes
    reach: Floats
    beaten: Masks

    def strength(self, player: int) -> Estimate:
        """Log-odds against the anchor, or against the average player of the league.

        The anchor's own is 0 by definition and has no interval. Where all draws are alike (every game a tie) the
        interval is Wilson's of the player's games. A strength that only the prior makes finite has none.
        """
        if not self.played[player]:
            return Estimate(math.nan, 0, level=self.how.level, note="no game with a verdict")
        if self.anchor is not None and self.leagues[player] != self.leagues[self.anchor]:
            return Estimate(math.nan, 0, level=self.how.level, note="no games lead to the anchor")
        shift = 0.0 if self.anchor is None else self.fit.strength[self.anchor]
        moved = 0.0 if self.anchor is None else self.draws[:, self.anchor]
        if player == self.anchor:
            return Estimate(0.0, int(self.games[player]), level=self.how.level, note=ANCHOR)
        value, drawn = self.fit.strength[player] - shift, self.draws[:, player] - moved
        found = self._estimate(value, drawn, n=int(self.games[player]))
        if self._by_prior(player):
            return replace(found, low=math.nan, high=math.nan, note=BY_PRIOR)
        if math.isnan(value) or np.ptp(drawn) > _SAME:
            return found
        n = int(self.played[player])
        ends = [_logit(each) for each in wilson(n / (1 + math.exp(-value)), n, self.how.level)]
        return replace(found, low=ends[0], high=ends[1], method="Wilson, games of the player")

    def chance(self, player: int) -> Estimate:
        """The chance to beat the anchor (or the average player), ties aside and covariates equal."""
        found = self.strength(player)
        value, low, high = (
            1 / (1 + math.exp(-each)) if not math.isnan(each) else math.nan
            for each in (found.value, found.low, found.high)
        )
        return Estimate(value, found.n, low, high, self.how.level, found.method, note=found.note)

    def effect(self, covariate: int) -> Estimate:
        """What one unit of a covariate adds to the log-odds."""
        found = self._estimate(self.fit.effects[covariate], self.drawn_effects[:, covariate])
        if not math.isnan(found.value):
            return found
        return Estimate(math.nan, self.n, level=self.how.level, note="it decides every game: no finite effect")

    @property
    def tie(self) -> Estimate:
        """Davidson's tie parameter nu: with 1, equal players tie one game in three. NaN in the other model."""
        return self._estimate(math.exp(self.fit.tie), np.exp(self.drawn_ties))

    def rank(self, player: int) -> Estimate:
        """The rank in the league, from 1, with its interval; equal strengths share the better one.

        The interval is of bootstrap draws among players whose strengths the data determine. A player whom the prior
        touched may stand wherever its record allows (`reach`), in its own interval and in those of the others.
        """
        mine = self.fit.strength[player]
        if math.isnan(mine):
            return Estimate(math.nan, 0, level=self.how.level, note="no game with a verdict")
        touched = np.zeros(len(self.names), bool) if self.fit.touched is None else self.fit.touched
        league = (self.leagues == self.leagues[player]) & ~np.isnan(self.fit.strength)
        value = 1 + float((self.fit.strength[league] > mine + _SAME).sum())
        if touched[player]:
            others = np.flatnonzero(league & (np.arange(len(league)) != player))
            low, high = self.reach[player]
            ends = np.array([self._ends(int(each)) for each in others]).reshape(-1, 2)
            above = (ends[:, 0] > high) | self.beaten[others, player]
            maybe = (ends[:, 1] > low) & ~self.beaten[player, others]
            place = Interval(1.0 + float(above.sum()), 1.0 + float(maybe.sum()))
            return replace(self._ranked(value, place, player), method="from its record", note=BY_PRIOR)
        drawn, draws = self.draws[:, [player]], self.draws[:, league & ~touched]
        best = 1.0 + (draws > drawn + _SAME).sum(1)
        worst = (draws >= drawn - _SAME).sum(1).astype(np.float64)
        absent = np.isnan(drawn[:, 0])
        best[absent], worst[absent] = math.nan, math.nan
        alike = bool(np.nanmax(np.ptp(draws, axis=0), initial=0) <= _SAME) and bool((best == worst).all())
        first, last = [self.how.interval(each, point=not alike) for each in (best, worst)]
        low, high = self._ends(player)
        others = self.reach[league & touched]
        known = not (math.isnan(first.low) or math.isnan(last.high))  # else it may have any rank
        place = Interval(
            math.floor(first.low) + float((others[:, 0] > high).sum()) if known else 1.0,
            math.ceil(last.high) + float((others[:, 1] > low).sum()) if known else float(league.sum()),
        )
        return self._ranked(value, place, player)

    def _ends(self, player: int) -> Interval:
        """The ends of a strength: of its draws, or of what the record of a touched player allows."""
        if self._touched(player):
            return Interval(*self.reach[player])
        low, high = self.how.interval(self.draws[:, player])
        value = self.fit.strength[player]  # draws that are all alike have no interval
        return Interval(value if math.isnan(low) else low, value if math.isnan(high) else high)

    def _ranked(self, value: float, place: Interval, player: int) -> Estimate:
        method = f"bootstrap, {len(self.draws)} draws"
        inside = min(max(value, place.low), place.high)
        return Estimate(inside, int(self.games[player]), *place, self.how.level, method, whole=True)

    def prior_told(self, player: int) -> str:
        """Whether a prior made the strength finite: always, by way of the anchor, in a share of draws, nowhere ("")."""
        if self._touched(player):
            return "only by prior"
        if self.played[player] and self._by_prior(player) and self.leagues[player] == self.leagues[self.anchor or 0]:
            return "only by the anchor's"
        return f"in {self.needed[player]:.1%} of draws" if self.needed[player] > 0 else ""

    def _touched(self, player: int) -> bool:
        return self.fit.touched is not None and bool(self.fit.touched[player])

    def _by_prior(self, player: int) -> bool:
        """Whether only a prior makes the strength finite, or that of the anchor that it is relative to."""
        return self._touched(player) or (self.anchor is not None and self._touched(self.anchor))

    def _estimate(self, value: float, drawn: Floats, *, n: int | None = None) -> Estimate:
        interval = self.how.interval(drawn) if len(drawn) else (math.nan, math.nan)
        n = self.n if n is None else n
        return Estimate(float(value), n, *interval, self.how.level, f"bootstrap, {len(drawn)} draws")


def _logit(chance: float) -> float:
    return math.log(chance / (1 - chance)) if 0 < chance < 1 else math.nan


def covariates_known_apart(bouts: Bouts) -> bool:
    """Whether games tell the effects of covariates from the strengths of the players: one whose responses are always
    longer by the same cannot be told from a better one, and there is no strength with the length held equal.
    """
    n, players = len(bouts.first), len(bouts.names)
    sides = np.zeros((n, players))
    sides[np.arange(n), bouts.first] += 1
    sides[np.arange(n), bouts.second] -= 1
    extra = np.asarray(bouts.covariates, np.float64).reshape(n, -1)
    rank = np.linalg.matrix_rank
    whole = np.column_stack([sides, extra])
    return bool(rank(whole.T @ whole) == rank(sides.T @ sides) + extra.shape[1])


def rank_players(bouts: Bouts, how: Resampling, *, model: Model = "bradley-terry", anchor: str = "") -> Ranking:
    """Fit strengths (`fit_players`) and draw games (or units) anew for intervals, each draw fitted in the same way.

    Strengths have mean 0 over the players of a league that no prior touched. ValueError for an unknown anchor.
    """
    games = bouts.games()
    leagues = games.leagues
    fit = fit_players(games, model=model, prior=PRIOR, leagues=leagues)
    place = list(bouts.names).index(anchor) if anchor else None
    few = Resampling(min(how.draws, MOST_DRAWS), how.level, how.seed)
    open_ended = bool(np.isnan(fit.strength).all())  # a covariate decides every game: there is nothing to draw
    redrawn = iter(()) if open_ended else _redrawn(bouts, few)
    fits = fit_draws(redrawn, model=model, prior=PRIOR, start=fit, leagues=leagues) or [fit]
    draws = np.array([each.strength for each in fits]).reshape(-1, len(bouts.names))
    centre = ~np.isnan(fit.strength) & (True if fit.touched is None else ~fit.touched)
    for league in np.unique(leagues[centre]):
        inside = leagues == league
        draws[:, inside] -= np.nan_to_num(_nan_mean(draws[:, inside & centre]))[:, None]
    effects = np.array([each.effects for each in fits]).reshape(len(fits), -1)
    ties = np.array([each.tie for each in fits])
    nobody = np.zeros(len(bouts.names), bool)
    needed = np.mean([nobody if each.touched is None else each.touched for each in fits], axis=0)
    n, played, prior = bouts.n or len(bouts.first), _units_of(bouts), 0.0 if fit.touched is None else PRIOR
    several = len(np.unique(leagues[played > 0])) > 1
    of_league = _units_by(bouts, leagues)[leagues] if several else np.full(len(leagues), n)
    reach, beaten = _reach(bouts, fit, played, how.level), _beaten(bouts, fit, how.level)
    return Ranking(
        fit, bouts.names, draws, effects, ties, place, prior, few, n, played, needed, leagues, of_league, reach, beaten
    )  # fmt: skip


def _reach(bouts: Bouts, fit: Strengths, played: Codes, level: float) -> Floats:
    """The lowest and the highest strength (players, 2) at which the record of a touched player is likely enough.

    A player that won all its games has no highest one; at the lowest, winning them all has the probability
    (1 - level) / 2. The other way round for one that lost all. Any strength is possible for other touched players, and
    where an opponent was touched, too. NaN for players that were not touched. Games of a unit count as one together.
    The probability is that of Bradley-Terry, whatever the model of `fit`: games are won or lost, covariates equal.
    """
    from scipy.optimize import brentq

    reach = np.full((len(bouts.names), 2), math.nan)
    if fit.touched is None or np.isnan(fit.strength).all():
        return reach
    rare = math.log((1 - level) / 2)
    for player in np.flatnonzero(fit.touched):
        reach[player] = -math.inf, math.inf
        second = bouts.second == player
        mine = ((bouts.first == player) | second) & (bouts.first != bouts.second) & (bouts.weight > 0)
        outcome, others = bouts.outcome[mine], np.where(second, bouts.first, bouts.second)[mine]
        won = outcome == second[mine]  # 0: the first won, 1: the second
        if not len(won) or (outcome == 2).any() or won.min() != won.max() or fit.touched[others].any():
            continue
        sign, each, against = (1 if won[0] else -1), played[player] / len(won), fit.strength[others]
        excess = partial(_log_chance, against=against, sign=sign, each=each, less=rare)
        far = 50.0 + float(np.abs(against).max())
        reach[player, 0 if won[0] else 1] = brentq(excess, -far, far)
    return reach


def _beaten(bouts: Bouts, fit: Strengths, level: float) -> Masks:
    """Whether one touched player (row) won every game against another (column), so many that equal players would do so
    with a probability of at most (1 - level) / 2, or so beat one who is ahead of the other; not where such games go
    round in a circle. Games of a unit count as one together.
    """
    beaten = np.zeros((len(bouts.names), len(bouts.names)), bool)
    if fit.touched is None:
        return beaten
    for i, j in permutations(np.flatnonzero(fit.touched), 2):
        met = ((bouts.first == i) & (bouts.second == j)) | ((bouts.first == j) & (bouts.second == i))
        met &= bouts.weight > 0
        won = bouts.outcome[met] == (bouts.first[met] == j)  # 0: the first won, 1: the second
        times = met.sum() if bouts.unit is None else len(np.unique(bouts.unit[met]))
        beaten[i, j] = bool(won.all()) and 0.5**times <= (1 - level) / 2
    for between in np.flatnonzero(fit.touched):
        beaten |= beaten[:, [between]] & beaten[between]
    return beaten & ~beaten.T


def _log_chance(strength: float, *, against: Floats, sign: int, each: float, less: float) -> float:
    """The log-probability of winning (or, with sign -1, losing) every game, each counted `each` times, less `less`."""
    return float(-each * np.logaddexp(0, -sign * (strength - against)).sum()) - less


def _nan_mean(values: Floats) -> Floats:
    """The mean of each row over what is known; NaN of nothing."""
    known = ~np.isnan(values)
    count = known.sum(1)
    total = np.where(known, values, 0).sum(1)
    return np.asarray(np.divide(total, count, out=np.full(len(values), math.nan), where=count > 0))


def _units_of(bouts: Bouts) -> Codes:
    """How many games, or units of games, each player has (players,)."""
    return _units_by(bouts, np.arange(len(bouts.names)))


def _units_by(bouts: Bouts, of: Codes) -> Codes:
    """How many games, or units of games, the players of each kind have; `of` (players,) is the kind of each player."""
    unit = np.arange(len(bouts.first)) if bouts.unit is None else clusters_of(bouts.unit)
    real = bouts.first != bouts.second
    pairs = np.concatenate([np.column_stack([of[each[real]], unit[real]]) for each in (bouts.first, bouts.second)])
    return np.bincount(np.unique(pairs, axis=0)[:, 0], minlength=int(of.max(initial=0)) + 1).astype(np.int64)


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
