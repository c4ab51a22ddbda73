"""Head-to-head results: every two systems on the pairs or prompts that both answered, also by order."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import HeadToHead, Meeting
from dikast.audit.statistics.intervals import share
from dikast.audit.tables.choices import DISAGREE, FIRST, SECOND, TIE, Share
from dikast.audit.tables.paired import Paired
from dikast.audit.tables.soft_preferences import NEAREST

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
MOST_SYSTEMS = 100  # every two of them are compared
_MOST_ROWS = 45  # of the table: every two of ten; all are in the result
_ORDERS = ("shown first", "shown second")


def played_table(given: Paired, names: Sequence[str], first: Codes, second: Codes) -> Table | None:
    """Players in pairs, from the joint verdict (a tie and orders that disagree are half a win) and from each order.

    first, second (n,): the players of each pair as codes into `names`, -1 where one is not known. None for too many.
    """
    final = given.final
    if final is None or len(names) > MOST_SYSTEMS:
        return None
    met = [_met(given, final, names, first, second, i, j) for i, j in itertools.combinations(range(len(names)), 2)]
    met.sort(key=lambda each: (-each.rate.n, each.first, each.second))
    found = [each for each in met if each.rate.n]
    return _meetings_table(
        found,
        "the pairs of both",
        may_disagree=given.may_disagree,
        one_order=given.one_order,
        soft=NEAREST if given.soft else "",
    )


def _met(given: Paired, final: Codes, names: Sequence[str], first: Codes, second: Codes, one: int, two: int) -> Meeting:
    straight, turned = (first == one) & (second == two), (first == two) & (second == one)
    nobody = np.zeros(len(first), bool)

    def earned(*views: tuple[Codes | None, Masks, Masks]) -> Estimate:
        """What `one` earned in each view: the codes, and the pairs in which it is the first and the second response."""
        worth, rows = [np.zeros(0)], [np.zeros(0, np.int64)]
        for view, as_first, as_second in views:
            if view is None:
                continue
            won = np.select([view == FIRST, view == SECOND, (view == TIE) | (view == DISAGREE)], [1.0, 0.0, 0.5], -1.0)
            for at in (np.flatnonzero(as_first & (won >= 0)), np.flatnonzero(as_second & (won >= 0))):
                worth.append(np.where(as_first[at], won[at], 1 - won[at]))
                rows.append(at)
        at = np.concatenate(rows)
        cluster = None if given.cluster is None else given.cluster[at]
        return share(np.concatenate(worth), given.level, cluster, note="" if len(at) else "no pair of both")

    rate = earned((final, straight, turned))
    true = earned((given.gold, straight, turned))
    gold = true if true.n else None
    lost = tuple(earned(*views) for views in _decided_against(given, final, straight, turned))
    if given.swapped is None:
        return Meeting(names[one], names[two], rate, (), None, gold, lost)
    # the first response of a pair stands first as shown, and second in the swapped order
    before = earned((given.choice, straight, nobody), (given.swapped, nobody, turned))
    after = earned((given.choice, nobody, turned), (given.swapped, straight, nobody))
    split = Share((final == DISAGREE).astype(np.float64), np.isin(final, (FIRST, SECOND, TIE, DISAGREE)))
    return Meeting(names[one], names[two], rate, (before, after), given.estimate(split, straight | turned), gold, lost)


def _decided_against(
    given: Paired, final: Codes, straight: Masks, turned: Masks
) -> Iterator[tuple[tuple[Codes, Masks, Masks], ...]]:
    """Views in which one player loses, then wins, every pair without a verdict; none where all of its pairs have one.

    Where it is the first response (`straight`), and where it is the second (`turned`).
    """
    absent = ~given.scored
    if (absent & (straight | turned)).any():
        for at_first, at_second in ((SECOND, FIRST), (FIRST, SECOND)):
            view = np.where(absent, np.where(straight, at_first, at_second), final)
            yield ((view, straight, turned),)


def scored_table(scores: Floats, place: Codes, names: Sequence[str], level: float) -> Table:
    """Systems in pairs, by their scores (questions, systems) on the same questions; `place` (questions,): prompts."""
    met = []
    for one, two in itertools.combinations(range(len(names)), 2):
        both = ~np.isnan(scores[:, [one, two]]).any(1)
        a, b = scores[both, one], scores[both, two]
        worth = np.where(a > b, 1.0, np.where(a < b, 0.0, 0.5))
        met.append(Meeting(names[one], names[two], share(worth, level, place[both], note=""), (), None))
    return _meetings_table([each for each in met if each.rate.n], "the prompts of both")


def _meetings_table(
    met: list[Meeting], what: str, *, may_disagree: bool = False, one_order: bool = False, soft: str = ""
) -> Table:
    both = any(each.orders for each in met)
    rows = list(_rows(met[:_MOST_ROWS], both=both))
    columns = ("first", "second", "n", "first wins", *([f"first wins, {each}" for each in _ORDERS] if both else []))
    more = f"the {_MOST_ROWS} with most games; all {len(met):,} are in --json" if len(met) > _MOST_ROWS else ""
    told = f"first wins: the share of {what} that the first wins; a tie is half a win"
    told += ", as are orders that disagree" if may_disagree else ""
    told += (
        f"; {' and '.join(_ORDERS)}: of the pairs with a verdict in that order, which may be more than n"
        if both
        else ""
    )
    return table(
        "head to head", "Head to head", (*columns, *(["disagree"] if both else [])), rows, told, more, soft,
        result=HeadToHead(tuple(met)), one_order=one_order,
    )  # fmt: skip


def _rows(met: Sequence[Meeting], *, both: bool) -> Iterator[list[Cell]]:
    for each in met:
        more: list[Cell] = [*(each.orders or (None, None)), each.disagree] if both else []
        yield [each.first, each.second, each.rate.n, each.rate, *more]
