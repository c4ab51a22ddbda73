"""The order of one item's responses as it is returned and written down."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dikast.ranking.comparisons import Floats, Values, position_bias
from dikast.ranking.contestants import Contestants
from dikast.ranking.item_order import Ordered
from dikast.ranking.simulation import with_duel
from dikast.ranking.tournament import Contest, Tournament

_T = float | int | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of an item's responses, best first, by their index; see `Ordered` for what the numbers mean.

    `schedule` names the schedule of pairs and `values` the value of a comparison. `grades` (goodness from 0 to 1, None
    without a verdict) are those of the responses where they were graded; after a duel there are no rewards. Of
    `comparisons`, `missing` have no verdict, or no probabilities if these are needed. `left_out` maps each response
    that was not compared to `empty`, or to the index it repeats, whose rank and reward it gets. A response that no
    verdict connects with the others, or that has no grade where the schedule begins with grades, is not in `order`.
    `position_bias` is the mean advantage of the first slot over the item's pairs that were asked in both orders, in
    units of the values (nats for logits); None without such a pair. `tokens_in` and `tokens_out` are those of all
    comparisons and grades; None if unknown (the replay of a run that did not count them). `reason` says why there is no
    order at all.
    """

    item: str
    schedule: str
    values: Values
    order: tuple[int, ...]
    ranks: tuple[int | None, ...]
    rewards: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    best: tuple[float | None, ...]
    cycles: int
    triples: int
    comparisons: int
    missing: int
    left_out: dict[int, int | str]
    grades: tuple[float | None, ...] | None = None
    reason: str = ""
    position_bias: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None

    def __repr__(self) -> str:
        said = self.reason
        for place, i in enumerate(self.order):
            tied = place > 0 and self.ranks[i] == self.ranks[self.order[place - 1]]
            said = f"{said} {'=' if tied else '>'} {i}" if place else str(i)
        return f"<Ranking of {self.item!r}: {said} ({self.schedule}, {self.comparisons} comparisons)>"


def ranking_of(item: str, found: Contestants, tournament: Tournament) -> Ranking:
    """The ranking of an item whose contest is over."""
    contest, values = tournament.contests[item], tournament.read(item)
    grades = contest.grades
    missing = sum(math.isnan(each.value(values)) for each in contest.played)
    bias = position_bias(tournament.games(item, values))
    if grades is None or contest.schedule.grades != "first":
        ordered = tournament.ordered(item)
    else:  # one order alone would be decided by the slot bias of other items
        met = np.zeros(len(grades)) if bias is None else tournament.strengths([item])[item]
        ordered = _after_duel(contest, met, grades)
    reason = "" if ordered.order else _reason(contest, grades)
    usage = sum((each.usage for each in contest.played), contest.grading)
    size = len(found.inside) + len(found.left_out)
    at = {response: i for i, response in enumerate(found.inside)}
    same = {i: at[of] for i, of in found.left_out.items() if isinstance(of, int)}

    def spread(values: Sequence[_T], *, repeated: bool = True) -> tuple[_T, ...]:
        places = {**at, **same} if repeated else at
        return tuple(values[places[i]] if i in places else None for i in range(size))

    return Ranking(
        item, contest.schedule.name, values, tuple(found.inside[i] for i in ordered.order),
        spread(ordered.ranks), spread(ordered.rewards), spread(ordered.low), spread(ordered.high),  # type: ignore[arg-type]
        spread(ordered.best, repeated=False), ordered.cycles, ordered.triples, len(contest.played), missing,
        found.left_out, None if grades is None else spread([_known(each) for each in grades]), reason,
        bias, usage.tokens_in, usage.tokens_out,
    )  # fmt: skip


def _after_duel(contest: Contest, strengths: Floats, grades: Floats) -> Ordered:
    """The order by grades of the responses that have one, in which the duel decides between the first two.

    Where the duel lacks a verdict in either order, or is a tie, it decides nothing. There is no order before the duel.
    """
    k = len(grades)
    none: tuple[None, ...] = (None,) * k
    if not contest.played:
        return Ordered((), none, none, none, none, none, 0, 0)
    order = [i for i in with_duel(grades, strengths) if not math.isnan(grades[i])]
    ranks: dict[int, int] = {}
    for place, i in enumerate(order):
        before = order[place - 1] if place else None
        met = {0, 1} & {place} and strengths[order[0]] != strengths[order[1]]
        tied = before is not None and not met and grades[before] == grades[i]
        ranks[i] = ranks[before] if tied and before is not None else place + 1
    return Ordered(tuple(order), tuple(ranks.get(i) for i in range(k)), none, none, none, none, 0, 0)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _reason(contest: Contest, grades: Floats | None) -> str:
    if grades is not None and sum(not math.isnan(each) for each in grades) < 2:
        return "fewer than two responses have a grade"
    return "no comparison has a verdict" if contest.played else "nothing was compared"
