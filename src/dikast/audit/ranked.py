"""The ranking of players from pairwise verdicts: the board, with counts, win rates, strengths and rank intervals."""

import numpy as np
from numpy.typing import NDArray

from dikast.audit.columns import Words
from dikast.audit.estimate import Estimate
from dikast.audit.intervals import Resampling, bootstrap_kinds, clusters_of
from dikast.audit.load import Data
from dikast.audit.paired import WRONG, Paired
from dikast.audit.pairs import FIRST, NONE, SECOND, TIE
from dikast.audit.ranking import (
    WIN_RULES,
    Bouts,
    Ranking,
    cycles_by_chance,
    cyclic_triples,
    rank_players,
    win_matrix,
    win_rate,
)
from dikast.audit.report import Cell, Table, table
from dikast.audit.weighted import weighted_mean
from dikast.core.errors import UserError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def ranking_tables(data: Data, given: Paired) -> list[Table]:
    """The board, the same with covariates held equal where there are any, and the share of cycles."""
    names, first, second = _players(data)
    bouts = _bouts(data, given, names, first, second)
    if not len(bouts.first):
        raise UserError("no pair has both players and a verdict: there is nothing to rank")
    anchor = data.plan.anchor or (data.plan.first[1:] if data.plan.first.startswith("=") else "")
    if anchor and anchor not in names:
        raise UserError(f"--anchor {anchor}: no such player; there are {', '.join(sorted(names)[:30])}")
    how = data.plan.resampling
    plain = Bouts(
        names, bouts.first, bouts.second, bouts.outcome, bouts.weight, bouts.covariates[:, :0], bouts.unit, bouts.copies
    )
    ranking = rank_players(plain, how, anchor=anchor)
    controlled = rank_players(bouts, how, anchor=anchor) if bouts.covariates.shape[1] else None
    tables = [_board(data, given, names, first, second, ranking, controlled)]
    tables.append(_counts(given, names, first, second, how))
    davidson, games = rank_players(plain, how, model="davidson", anchor=anchor), plain.games()
    rows: list[list[Cell]] = [
        ["cyclic triples", cyclic_triples(win_matrix(games))],
        ["cyclic triples if the strengths were all", cycles_by_chance(games, ranking.fit, how)],
        ["Davidson tie parameter", davidson.tie],
        ["largest shift of strength, Davidson against half ties", _largest(davidson, ranking)],
    ]
    if controlled is not None:
        rows += [[f"effect of {name}", controlled.effect(i)] for i, name in enumerate(_effects(data))]
    tables.append(table("ranking checks", "Checks of the ranking", ("check", "value"), rows, _prior_note(ranking)))
    return tables


def _largest(davidson: Ranking, ranking: Ranking) -> Estimate:
    value = float(np.abs(davidson.fit.strength - ranking.fit.strength).max())
    return Estimate(value, ranking.n, level=ranking.how.level, note="the largest of many; a check, not a finding")


def _prior_note(ranking: Ranking) -> str:
    if not ranking.prior:
        return ""
    return f"somebody never lost or never won: everyone was given {ranking.prior:g} games against an average player"


def _effects(data: Data) -> list[str]:
    found = [name.partition("@")[0] for name in data.plan.covariates]
    found += ["length"] if data.plan.length else []
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
        codes = np.array([index.setdefault(name, len(index)) for name in words.names] or [0], np.int64)
        columns.append(np.where(words.codes >= 0, codes[words.codes], -1))
    return list(index), columns[0], columns[1]


def _bouts(data: Data, given: Paired, names: list[str], first: Codes, second: Codes) -> Bouts:
    """One game for each order that has a verdict; the unscored never count here."""
    orders = [(given.choice, 1.0)] + ([(given.swapped, -1.0)] if given.swapped is not None else [])
    extra = [data.numbers[f"covariate {i}"] for i in range(len(data.plan.covariates))]
    if "length" in data.numbers:  # squashed, as in length-controlled AlpacaEval, so that extremes do not rule
        length = data.numbers["length"]
        spread = float(np.nanstd(length)) or 1.0
        extra.append(np.tanh(length / spread))
    parts = []
    for choice, slot in orders:
        if choice is None:
            continue
        usable = given.scored & (first >= 0) & (second >= 0) & (choice != NONE) & (choice != WRONG)
        for each in extra:
            usable &= ~np.isnan(each)
        at = np.flatnonzero(usable)
        # covariates favour the first player; columns are told as second less first
        rows = [-each[at] for each in extra] + ([np.full(len(at), slot)] if len(orders) > 1 else [])
        weight = np.where(given.strong[at], data.plan.strong, 1.0)
        parts.append((at, choice[at], weight, np.column_stack(rows) if rows else np.zeros((len(at), 0))))
    at, outcome, weight, covariates = (np.concatenate(each) for each in zip(*parts, strict=True))
    unit = given.cluster[at] if given.cluster is not None else at if len(orders) > 1 else None
    copies = data.plan.strong_as == "copies"
    return Bouts(names, first[at], second[at], outcome, weight, covariates, unit, copies)


def _board(
    data: Data,
    given: Paired,
    names: list[str],
    first: Codes,
    second: Codes,
    ranking: Ranking,
    controlled: Ranking | None,
) -> Table:
    rows: list[list[Cell]] = []
    for code in np.argsort(-np.nan_to_num(ranking.fit.strength, nan=-np.inf), kind="stable"):
        row: list[Cell] = [names[code], ranking.chance(code), ranking.strength(code), ranking.rank(code)]
        rows.append([*row, controlled.chance(code)] if controlled is not None else row)
    against = names[ranking.anchor] if ranking.anchor is not None else "the average player"
    columns = ("player", "beats anchor", "strength", "rank", *(["covariates equal"] if controlled is not None else []))
    return table(
        "ranking",
        f"Bradley-Terry ranking of {len(names)} players from {ranking.n:,} games",
        columns,
        rows,
        f"beats anchor: the chance to beat {against}, a tie being half a win; strength: its log-odds",
        f"a strong verdict counts {data.plan.strong:g} times" if data.plan.strong != 1 else "",
        f"intervals: {ranking.how.draws} draws of games"
        + (", copies of strong verdicts drawn one by one" if data.plan.strong_as == "copies" else ""),
    )


def _counts(given: Paired, names: list[str], first: Codes, second: Codes, how: Resampling) -> Table:
    """Games of each player by outcome, win rates under each rule, and the mean grade."""
    choice = given.choice if given.choice is not None else np.full(len(first), NONE)
    lost_all = choice == WRONG
    worth = np.select([choice == FIRST, choice == SECOND, choice == TIE], [1.0, 0.0, 0.5], np.nan)
    rows: list[list[Cell]] = []
    for code, name in enumerate(names):
        as_first, as_second = first == code, (second == code) & (first != code)
        mine = np.where(as_second, 1 - worth, worth)  # what the player got of each row
        mine = np.where(lost_all, 0.0, mine)
        played = (as_first | as_second) & ~np.isnan(mine)
        got, strong, codes = mine[played], given.strong[played], given.clusters(played)
        counts = [int(((got == each) & (strong == hard) & ~lost_all[played]).sum()) for each, hard in _OUTCOMES]
        counts[2] = int((got == 0.5).sum())
        row: list[Cell] = [name, len(got), *counts]
        for rule in WIN_RULES:
            found = win_rate(got, rule, how.level, codes)
            row.append(found.rate)
            if rule == "half":
                row.append(found.error)
        graded = ~lost_all[played]
        grade = (got[graded] * 2 - 1) * np.where(strong[graded], 1, 0.5)
        rows.append([*row, _grade(grade, how, None if codes is None else clusters_of(codes[graded]))])
    outcomes = ("strong wins", "wins", "ties", "losses", "strong losses")
    rates = ("win rate (half)", "s.e.", "win rate (wins)", "win rate (decided)", "mean grade")
    notes = [f"win rate ({rule}): {text}" for rule, text in WIN_RULES.items()]
    grade_told = "mean grade: +1 strong win, +.5 win, 0 tie, -.5 loss, -1 strong loss"
    return table("players", "Players", ("player", "games", *outcomes, *rates), rows, *notes, grade_told)


_OUTCOMES = ((1.0, True), (1.0, False), (0.5, False), (0.0, False), (0.0, True))


def _grade(values: Floats, how: Resampling, cluster: Codes | None) -> Estimate:
    if len(values) == 0:
        return Estimate(float("nan"), 0, level=how.level)
    draws = bootstrap_kinds(weighted_mean, [values], how, cluster)
    return Estimate(float(values.mean()), len(values), *how.interval(draws), how.level, "bootstrap")
