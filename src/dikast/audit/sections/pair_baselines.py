"""The audit of pairs: the judge between baselines (one side always, at random) and ceiling (people)."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Table, table
from dikast.audit.results import Baseline, Baselines, Role
from dikast.audit.statistics.building_blocks.contingency import Cells
from dikast.audit.statistics.building_blocks.weights import TableStatistic
from dikast.audit.statistics.intervals import bootstrap_tables, pooled_share
from dikast.audit.tables import choices as pairs
from dikast.audit.tables.choices import FIRST, NONE, SECOND, TIE, TieRule
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import Paired, read_column

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_N_OF = {"all": "n", "no_gold_ties": "n (no_gold_ties)"}


def baselines_table(data: Data, given: Paired) -> Table:
    """The judge between baselines and ceiling, three-way and where gold is decided.

    Baselines are of the pairs that the judge has a verdict on, like its own figure; without a judge, of all with gold.
    """
    rules: tuple[TieRule, ...] = ("all", "no_gold_ties")
    judged = given.gold if given.final is None else np.where(given.final == NONE, NONE, given.gold)

    def row(key: str, role: Role, label: str, view: Codes, gold: Codes) -> Baseline:
        found = {str(rule): given.estimate(pairs.accuracy(view, gold, rule)) for rule in rules}
        return Baseline(key, role, label, found)

    rows = []
    if given.final is not None:
        rows.append(row("judge", "judge", "judge", given.final, given.gold))
    rows.extend(_rater_rows(given, rules))
    for role, label in (("retest", "the judge asked again (test-retest)"), ("earlier", "the judge in the earlier run")):
        if role in data.words and given.final is not None:
            again = read_column(data, role, getattr(data.plan, role)).codes
            once = given.final
            if role == "retest" and "retested" in data.words:  # of a run with several samples, the first of them
                once = read_column(data, "retested", "retest").codes
            rows.append(row(role, "other", label, again, once))
    for code, name in enumerate(pairs.NAMES):
        label = f"a judge that always says {name}"
        rows.append(row(f"constant_{name}", "floor", label, np.full(len(judged), code, np.int64), judged))
    if given.final is not None:
        label = "a judge that draws its labels at random"
        rows.append(Baseline("random", "floor", label, _at_random(given, rules)))
    if "length" in data.numbers:
        extra = data.numbers["length"]
        longer = np.where(np.isnan(extra), NONE, np.where(extra == 0, TIE, np.where(extra > 0, SECOND, FIRST)))
        rows.append(row("longer", "other", "the longer response", longer, judged))
    note = "no human ceiling: give more than one --gold" if len(given.raters) < 2 else ""
    if len(given.raters) > 1 and not any(each.role == "ceiling" for each in rows):
        note = "no human ceiling: no pair was rated by two"
    cells = [[row.label, *itertools.chain(*(_with_n(row.statistics.get(rule)) for rule in rules))] for row in rows]
    title, result = "The judge between baselines and ceiling", Baselines(tuple(rows))
    columns = ("who", *itertools.chain(*((_N_OF[rule], rule) for rule in rules)))
    told = (
        "n: pairs with gold and, but for rater against rater, a verdict of the judge; no_gold_ties: those whose "
        "gold is no tie; at random: drawn by the judge's shares of labels among the same pairs, in each order by itself"
    )
    return table("beside", title, columns, cells, told, note, result=result, one_order=given.one_order)


def _with_n(found: Estimate | None) -> tuple[int | None, Estimate | None]:
    return (None, None) if found is None else (found.n, found)


def _at_random(given: Paired, rules: Sequence[TieRule]) -> dict[str, Estimate]:
    """A judge that draws labels with the same shares, in each order by itself and of all pairs alike: its expected
    accuracy.

    Shares are those among the pairs that the rule counts, which are also those that `n` counts.
    """
    if given.final is None:
        return {}
    two = given.choice is not None and given.swapped is not None
    orders = [given.choice, given.swapped] if two else [given.final]
    found = {}
    for rule in rules:
        due = (given.gold != NONE) & (given.final != NONE) & ((rule == "all") | (given.gold != TIE))
        if not due.any():
            continue
        said, asked = np.unique([each[due] for each in orders if each is not None], axis=1, return_inverse=True)
        cells = Cells.of(asked.ravel(), given.gold[due])
        chance = _by_chance(said, lambda a, b: pairs.joint(a, b, given.two_games) if two else a, cells.y)
        draws = bootstrap_tables(cells, {"": chance}, given.how, given.clusters(due))[""]
        ends = given.how.interval(draws, groups=_groups(given.clusters(due), int(due.sum())))
        value = float(chance(cells.table, cells.x, cells.y))
        method = "expected under independence; bootstrap"
        found[str(rule)] = Estimate(value, int(due.sum()), *ends, given.level, method)
    return found


def _by_chance(said: Codes, joint: Callable[[Codes, Codes], Codes], gold: Floats) -> TableStatistic:
    """How often labels drawn by their shares in each order are `gold` (L) drawn by its own.

    said: what is said in each order (rows) by the verdicts of the tables (columns, K).
    """
    (first, of_first), (last, of_last) = (np.unique(each, return_inverse=True) for each in (said[0], said[-1]))
    a, b = np.meshgrid(first, last, indexing="ij")
    worth = (joint(a, b)[..., None] == gold).astype(np.float64)
    one, two = np.eye(len(first))[of_first.ravel()], np.eye(len(last))[of_last.ravel()]

    def statistic(tables: Floats, x: Floats, y: Floats) -> Floats:
        verdicts, golds = tables.sum(-1), tables.sum(-2)
        hits = np.einsum("...i,...j,...l,ijl->...", verdicts @ one, verdicts @ two, golds, worth)
        total = verdicts.sum(-1) ** 2 * golds.sum(-1)
        return np.asarray(np.divide(hits, total, out=np.full(total.shape, np.nan), where=total > 0))

    return statistic


def _groups(cluster: Codes | None, rows: int) -> int:
    return rows if cluster is None else int(cluster.max(initial=0)) + 1


def _rater_rows(given: Paired, rules: Sequence[TieRule]) -> list[Baseline]:
    if len(given.raters) < 2:
        return []
    codes = [np.where(np.isnan(each), NONE, each).astype(np.int64) for each in given.raters]
    rows: list[Baseline] = []
    kinds: tuple[tuple[str, Role, str], ...] = (
        ("raters", "ceiling", "one rater against another (ceiling)"),
        ("judge_rater", "other", "judge against one rater"),
    )
    for key, role, label in kinds:
        found: dict[str, Estimate] = {}
        for rule in rules:
            if role == "ceiling":
                shares = [
                    pairs.accuracy(a, b, rule) for i, a in enumerate(codes) for j, b in enumerate(codes) if i != j
                ]
            elif given.final is not None:
                shares = [pairs.accuracy(given.final, each, rule) for each in codes]
            else:
                continue
            worth, counts = (
                np.array([s.worth * s.counts for s in shares]).sum(0),
                np.array([s.counts for s in shares]).sum(0),
            )
            found[rule] = pooled_share(worth, counts.astype(np.float64), given.level, given.cluster)
        if found and found[rules[0]].n:
            rows.append(Baseline(key, role, label, found))
    return rows
