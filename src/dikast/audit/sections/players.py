"""The ranking of players from pairwise verdicts: the board, with counts, win rates, strengths and rank intervals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import PlayerRanking, PlayerRecord, Players, RankedPlayer
from dikast.audit.sections.head_to_head import played_table
from dikast.audit.statistics.building_blocks.exact_means import settled
from dikast.audit.statistics.intervals import Resampling, bounded_mean
from dikast.audit.statistics.paired_comparison.cycles import cycles_by_chance, cyclic_triples, win_matrix
from dikast.audit.statistics.paired_comparison.ranking import (
    PRIOR,
    WIN_RULES,
    Bouts,
    Ranking,
    WinRate,
    WinRule,
    covariates_known_apart,
    rank_players,
    win_rate,
)
from dikast.audit.tables.choices import DISAGREE, FIRST, NONE, ONE_ORDER, SECOND, TIE, Share
from dikast.audit.tables.columns import Words
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import Paired
from dikast.audit.tables.soft_preferences import NEAREST, softened
from dikast.core.confidence import ALIKE
from dikast.core.errors import UserError
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]


class NothingToRankError(UserError):
    """No game with a verdict distinguishes the players, or the anchor played none."""


def ranking_tables(data: Data, given: Paired) -> list[Table]:
    """The board, the same controlled for covariates where there are any, and the share of cycles."""
    names, first, second = _players(data)
    data.notes += _no_games(first, second)
    bouts = _bouts(data, given, names, first, second)
    if not len(bouts.first):
        raise NothingToRankError("no pair has both players and a verdict: there is nothing to rank")
    anchor = data.plan.anchor or (data.plan.first[1:] if data.plan.first.startswith("=") else "")
    if anchor and anchor not in names:
        raise UserError(f"--anchor {anchor}: no such player; there are {', '.join(sorted(names)[:30])}")
    how = data.plan.resampling
    ranking = rank_players(bouts, how, anchor=anchor)
    if anchor and not ranking.played[names.index(anchor)]:
        raise NothingToRankError(
            f"--anchor {anchor}: it has no game with a verdict; leave --anchor out or name another player"
        )
    by_order, length = _bouts_by_order(data, given, names, first, second), "length" in data.numbers
    if by_order is not None and length and not covariates_known_apart(by_order):
        by_order, length = _bouts_by_order(data, given, names, first, second, length=False), False
    controlled = None if by_order is None else rank_players(by_order, how, anchor=anchor)
    effects = _effects(data, length=length)
    tables = [_board(data, given, names, ranking, controlled, effects)]
    tables.append(_counts(given, names, first, second, how))
    tables += [met] if (met := played_table(given, names, first, second)) is not None else []
    tables.append(_checks(data, given, bouts, ranking, controlled, anchor, effects))
    told = given.unscored_told((first >= 0) & (second >= 0) & (first != second)) if given.unscored == TIE else ""
    return (
        [replace(each, notes=(*each.notes, told if each.name in _COUNTED else _RANKED)) for each in tables]
        if told
        else tables
    )


_COUNTED = ("players", "head to head")  # tables that count games, by the rule for pairs without a verdict
_RANKED = "pairs without a verdict are no games here (--unscored tie counts them as ties in the other tables)"


def _checks(
    data: Data,
    given: Paired,
    bouts: Bouts,
    ranking: Ranking,
    controlled: Ranking | None,
    anchor: str,
    effects: Sequence[str],
) -> Table:
    games, how = bouts.games(), data.plan.resampling
    expected, as_many = cycles_by_chance(games, ranking.fit, how)
    rows: list[list[Cell]] = [
        ["cyclic triples", cyclic_triples(win_matrix(games))],
        ["cyclic triples expected from the strengths alone", expected],
        ["as many cyclic triples or more, from the strengths alone", as_many],
    ]
    if data.plan.soft:
        rows.append(["Davidson tie parameter", undefined(ranking.n, "soft preferences have no ties", level=how.level)])
    elif (games.wins + games.losses).any():
        davidson = rank_players(bouts, how, model="davidson", anchor=anchor)
        rows.append(["Davidson tie parameter", davidson.tie])
        rows.append(["largest shift of strength, Davidson against half ties", _largest(davidson, ranking)])
    else:
        nothing = undefined(ranking.n, "no game was decided", level=how.level)
        rows.append(["Davidson tie parameter", nothing])
    if controlled is not None:
        rows += [[f"effect of {name}", controlled.effect(i)] for i, name in enumerate(effects)]
    note = "effects: from one game for each order of each pair" if data.plan.swapped and controlled is not None else ""
    both = given.may_disagree and not data.plan.soft
    return table(
        "ranking checks", "Checks of the ranking", ("check", "value"), rows, note,
        "Davidson tie parameter: of ties and of orders that disagree" if both else "",
        "shift of strength: in strengths against the average player, also with --anchor" if anchor else "",
        one_order=given.one_order,
    )  # fmt: skip


def _largest(davidson: Ranking, ranking: Ranking) -> Estimate:
    apart = np.abs(davidson.fit.strength - ranking.fit.strength)
    if np.isnan(apart).all():
        return undefined(ranking.n, "no finite strengths with ties of their own", level=ranking.how.level)
    value = float(np.nanmax(apart))
    return Estimate(value, ranking.n, level=ranking.how.level, note="the largest of many; a check, not a finding")


def _effects(data: Data, *, length: bool) -> list[str]:
    found = [name.partition("@")[0] for name in data.plan.covariates]
    found += ["length"] if length else []
    return [*found, "being shown first"] if data.plan.swapped else found


def _players(data: Data) -> tuple[list[str], Codes, Codes]:
    """Names, and codes of the first and the second player of each row (-1 where missing)."""
    index: dict[str, int] = {}
    columns = []
    for role in ("first", "second"):
        given = getattr(data.plan, role)
        words = Words(np.zeros(len(data), np.int64), [given[1:]]) if given.startswith("=") else data.words.get(role)
        if words is None:
            raise UserError("a ranking needs both players: --first and --second, each a column or =NAME")
        codes = np.full(len(words.names) + 1, -1, np.int64)  # the last one is for rows without a name
        for code in np.unique(words.codes[words.codes >= 0]):  # players occur only in rows that --where keeps
            codes[code] = index.setdefault(words.names[code], len(index))
        columns.append(codes[words.codes])
    return list(index), columns[0], columns[1]


def _bouts(data: Data, given: Paired, names: list[str], first: Codes, second: Codes) -> Bouts:
    """One game for each pair with a verdict, by its joint outcome: orders that disagree are half a win for each."""
    outcome = np.full(len(data), NONE) if given.final is None else given.final
    at = np.flatnonzero(_played(data, given, first, second))
    found = Bouts(
        names, first[at], second[at], np.where(outcome == DISAGREE, TIE, outcome)[at], _weights(data, given, at),
        np.zeros((len(at), 0)), None if given.cluster is None else given.cluster[at], data.plan.strong_as == "copies",
    )  # fmt: skip
    return found if given.softly is None else softened(found, given.softly[at])


def _bouts_by_order(
    data: Data, given: Paired, names: list[str], first: Codes, second: Codes, *, length: bool = True
) -> Bouts | None:
    """One game for each order of the same pairs, with covariates (who was shown first among them); None without any.

    `length`: whether the length of responses is one, where it is known.
    """
    extra = [data.numbers[f"covariate {i}"] for i in range(len(data.plan.covariates))]
    if length and "length" in data.numbers:  # tanh, as in length-controlled AlpacaEval: extremes do not dominate
        longer = data.numbers["length"]
        spread = float(np.nanstd(longer)) or 1.0
        extra.append(np.tanh(longer / spread))
    orders = [(given.choice, 1.0), (given.swapped, -1.0)] if given.swapped is not None else [(given.choice, 0.0)]
    if not extra and len(orders) < 2:
        return None
    usable = _played(data, given, first, second) & ~np.isnan(np.array([np.zeros(len(data)), *extra])).any(0)
    at = np.flatnonzero(usable)
    if not len(at):
        return None
    # covariates favour the first player; columns are given as second minus first
    parts = [
        np.column_stack([np.zeros((len(at), 0)), *(-each[at] for each in extra), *([slots] if len(orders) > 1 else [])])
        for slots in (np.full(len(at), slot) for _, slot in orders)
    ]
    games, many = np.tile(at, len(orders)), len(orders) > 1
    outcome = np.concatenate([choice[at] for choice, _ in orders if choice is not None])
    unit = given.cluster[games] if given.cluster is not None else games if many else None
    copies = data.plan.strong_as == "copies"
    weight = _weights(data, given, games)
    found = Bouts(names, first[games], second[games], outcome, weight, np.concatenate(parts), unit, copies)
    return softened(found, np.concatenate([each[at] for each in given.soft])) if given.soft else found


def _played(data: Data, given: Paired, first: Codes, second: Codes) -> Masks:
    """Pairs (n,) that are games: two different players, and a verdict, whatever --unscored says, that counts."""
    counts = given.scored if data.plan.strong > 0 else given.scored & ~given.strong
    return np.asarray(counts & (first >= 0) & (second >= 0) & (first != second))


def _no_games(first: Codes, second: Codes) -> Iterator[str]:
    """Which pairs (n,) are no games, whatever their verdict."""
    unknown = (first < 0) | (second < 0)
    if itself := int((~unknown & (first == second)).sum()):
        yield f"{counted(itself, 'pair')} of a player with itself: not in the ranking, nor in games and win rates"
    if lost := int(unknown.sum()):
        yield f"{counted(lost, 'pair')} without the name of a player: not in the ranking, nor in games and win rates"


def _weights(data: Data, given: Paired, at: Codes) -> Floats:
    return np.where(given.strong[at], data.plan.strong, 1.0)


def _board(
    data: Data, given: Paired, names: list[str], ranking: Ranking, controlled: Ranking | None, effects: Sequence[str]
) -> Table:
    touched = any(map(ranking.prior_told, range(len(names))))
    groups = _groups(ranking)
    strength = settled(np.nan_to_num(ranking.fit.strength, nan=-np.inf))
    order = np.lexsort((-strength, np.where(groups > 0, groups, len(names) + 1)))
    players = {
        names[code]: RankedPlayer(
            ranking.chance(code),
            ranking.strength(code),
            ranking.rank(code),
            None if controlled is None else controlled.chance(code),
            ranking.prior_told(code),
            int(groups[code]) or None,
        )
        for code in order
    }
    anchor = None if ranking.anchor is None else names[ranking.anchor]
    several = int(groups.max()) > 1
    rows: list[list[Cell]] = []
    for name, each in players.items():
        row: list[Cell] = [name, *([each.group] if several else []), each.beats_anchor, each.strength, each.rank]
        rows.append(row + [each.controlled] * (controlled is not None) + [each.prior] * touched)
    against = anchor or "the average player" + (" of the group" if several else "")
    columns = ["player", *(["group"] if several else []), "beats anchor", "strength", "rank"]
    equal_lead = None
    if controlled is not None and "length" in effects and len(order) > 1:
        equal_lead = replace(controlled, anchor=int(order[1])).chance(int(order[0]))
    result = PlayerRanking(anchor, players, () if controlled is None else tuple(effects), equal_lead)
    columns += [*([f"{result.held} controlled"] if controlled is not None else []), *(["prior"] if touched else [])]
    idle = [name for code, name in enumerate(names) if not ranking.played[code]]
    joint = not given.one_order
    games = counted(ranking.n, "pair" if joint else "game")
    apart = f" in {int(groups.max())} groups that never met" if several else ""
    return table(
        "ranking",
        f"Bradley-Terry ranking of {counted(len(names) - len(idle), 'player')}{apart} from {games}",
        columns,
        rows,
        f"beats anchor: the probability of beating {against}, a tie being half a win; strength: its log-odds",
        _GROUPS_TOLD if several else "",
        "a soft preference p counts as p of a win and 1 - p of a loss" if given.soft else "",
        ONE_ORDER if given.one_order else _disagreement_told(given) if given.may_disagree and not given.soft else "",
        _slot_told(given) if given.one_order else "",
        _LENGTH_TOLD if "length" in data.numbers and "length" not in effects else "",
        f"no game with a verdict, so no strength and no rank: {', '.join(idle)}" if idle else "",
        _prior_told(ranking.how.level) if touched else "",
        _strong_told(given, data.plan.strong),
        f"intervals: {ranking.how.draws} draws of {'pairs' if joint else 'games'}"
        + (", copies of strong verdicts drawn one by one" if data.plan.strong_as == "copies" else ""),
        result=result,
        one_order=given.one_order,
    )


def _strong_told(given: Paired, weight: float) -> str:
    if weight == 1:
        return ""
    if not given.strong.any():
        return f"--strong {weight:g} changes nothing: no verdict is strong (spelt A>>B or B>>A)"
    told, final = f"a strong verdict counts {weight:g} times", given.final
    split = 0 if final is None else int((given.strong & (final == DISAGREE)).sum())
    if not split:
        return told
    return f"{told}, and half-won games too, where both orders are strong but disagree ({counted(split, 'pair')})"


def _groups(ranking: Ranking) -> Codes:
    """Players who met, directly or through others, counted from 1 (the largest group first); 0 without a game."""
    sizes = np.bincount(ranking.leagues, ranking.played > 0)
    order = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
    return np.where(ranking.played > 0, order[ranking.leagues] + 1, 0).astype(np.int64)


_LENGTH_TOLD = "length is not held equal: its effect cannot be told from the players' strengths"
_GROUPS_TOLD = (
    "group: players who met, directly or through others; no game says how players of two groups compare, so "
    "strengths and ranks are those within the group"
)


def _slot_told(given: Paired) -> str:
    """How often the first response won where each pair was judged in one order, so that its slot may be why."""
    final = given.final if given.final is not None else np.zeros(0, np.int64)
    won = given.estimate(Share((final == FIRST).astype(np.float64), given.scored))
    return (
        f"the first response won {won:.4f} of {counted(won.n, 'pair')}: strengths and ranks may be those of positions, "
        "whatever their intervals; judge both orders to know"
    )


def _disagreement_told(given: Paired) -> str:
    final = given.final if given.final is not None else np.zeros(0, np.int64)
    found = given.estimate(
        Share((final == DISAGREE).astype(np.float64), np.isin(final, (FIRST, SECOND, TIE, DISAGREE)))
    )
    return f"a pair whose orders disagree is half a win for each: {found:.4f} of {counted(found.n, 'pair')}"


def _prior_told(level: float) -> str:
    return (
        "prior: players that never won, never lost, or met the others only in such games have no finite strength (in "
        f"the data, or in that share of draws), so each was given {PRIOR:g} games, half of them won, against an average"
        " player; the other players are not affected, and a strength that exists only because of the prior has no "
        "interval; the interval of its rank leaves out only strengths at which winning (or losing) all its games has a "
        f"probability below {50 * (1 - level):g} %"
    )


def _counts(given: Paired, names: list[str], first: Codes, second: Codes, how: Resampling) -> Table:
    """Games of each player by joint outcome, win rates under each rule, and the mean grade."""
    final = given.final if given.final is not None else np.full(len(first), NONE)
    split = final == DISAGREE
    worth = np.select([final == FIRST, final == SECOND, (final == TIE) | split], [1.0, 0.0, 0.5], np.nan)
    both = given.may_disagree
    outcomes = ("strong wins", "wins", "ties", "losses", "strong losses", *(["disagree"] if both else []))
    rows: list[list[Cell]] = []
    records: dict[str, PlayerRecord] = {}
    games = (first >= 0) & (second >= 0) & (first != second)
    for code, name in enumerate(names):
        as_first, as_second = games & (first == code), games & (second == code)
        mine = np.where(as_second, 1 - worth, worth)  # what the player got of each row: nothing without a verdict
        played = (as_first | as_second) & ~np.isnan(mine)
        got, strong, codes = mine[played], given.strong[played], given.clusters(played)
        counts = [int(((got == each) & (strong == hard)).sum()) for each, hard in _OUTCOMES]
        disagree = int(split[played].sum())
        counts[2] = int((got == 0.5).sum()) - disagree
        told = dict(zip(outcomes, [*counts, *([disagree] if both else [])], strict=True))
        row: list[Cell] = [name, len(got), *told.values()]
        rates: dict[str, Estimate] = {}
        for rule in WIN_RULES:
            found = win_rate(got, rule, how.level, codes)
            rates[rule] = found.rate
            row.append(found.rate)
            if rule == "half":
                row.append(found.error if found.error > ALIKE else None)
        if given.softly is not None:
            worth_of_soft = np.where(as_second, 1 - given.softly, given.softly)
            found = _soft_rate(worth_of_soft, as_first | as_second, given)
            rates["soft"] = found.rate
            row += [found.rate, found.error if found.error > ALIKE else None]
        graded_as = bounded_mean((got * 2 - 1) * np.where(strong, 1, 0.5), how.level, codes)
        records[name] = PlayerRecord(len(got), told, rates, graded_as)
        rows.append([*row, graded_as])
    soft = ("win rate (soft)", "s.e. (soft)") if given.soft else ()
    shown = ("win rate (half)", "s.e.", "share won", "win rate (decided)", *soft, "mean grade")
    notes = [f"{_RATES[rule]}: {text}" for rule, text in WIN_RULES.items()]
    if given.soft:
        notes.append("win rate (soft): the mean preference, of pairs with a verdict; in the other columns " + NEAREST)
    if both:
        notes.append(
            "games are pairs, by the joint verdict of both orders; orders that disagree count as a tie in rates"
        )
    elif given.one_order:
        notes.append(ONE_ORDER)
    grade_told = "mean grade: +1 strong win, +.5 win, 0 tie, -.5 loss, -1 strong loss"
    columns = ("player", "games", *outcomes, *shown)
    result = Players(records)
    return table("players", "Players", columns, rows, *notes, grade_told, result=result, one_order=given.one_order)


def _soft_rate(worth: Floats, rows: Masks, given: Paired) -> WinRate:
    """The mean preference (n,) for a player in the rows with a verdict, and its standard error."""
    known = rows & ~np.isnan(worth)
    return win_rate(worth[known], "half", given.level, given.clusters(known))


_RATES: Mapping[WinRule, str] = {  # ties are not won, which does not make them losses
    "half": "win rate (half)",
    "wins": "share won",
    "decided": "win rate (decided)",
}
_OUTCOMES = ((1.0, True), (1.0, False), (0.5, False), (0.0, False), (0.0, True))
