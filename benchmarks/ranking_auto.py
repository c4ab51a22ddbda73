"""`--schedule auto` on items whose comparisons are at hand, as `dikast rank` plays it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from dikast.core.errors import UserError
from dikast.ranking.comparisons import Floats
from dikast.ranking.planning import budget_beside, draw_pilot, judge_of, plan
from dikast.ranking.schedules import SCHEDULES
from dikast.ranking.simulation import Goal
from dikast.ranking.tournament import Tournament


class ByAuto(NamedTuple):
    """The tournament of a file, the schedule of the rest, and the calls of all: comparisons and used grades."""

    tournament: Tournament
    schedule: str
    calls: int


def by_auto(
    k: int, grades: Mapping[str, Floats], play: Callable[[Tournament], Mapping[str, int]], goal: Goal, seed: int
) -> ByAuto:
    """Play a pilot in full, plan from it, and play the rest.

    grades: those of each item's responses (k,). play: plays a tournament to its end and gives the comparisons of each
    item.
    """
    tournament = Tournament(seed, "logit")
    pilot = draw_pilot(dict.fromkeys(grades, k), seed)
    for item in pilot:
        tournament.enter(item, k, SCHEDULES["full"], grades[item])
    calls = sum(play(tournament).values()) + k * len(pilot)
    played = [contest.played for contest in tournament.contests.values()]
    try:
        judge, read = judge_of(played, tournament.pooled("logit"), "logit", tournament.grade_line("logit"))
        budget = budget_beside(k, len(grades), len(pilot), graded=True)
        chosen = plan(goal, k, judge, budget=budget, read=read).chosen
    except UserError:
        chosen = SCHEDULES["half"]
    rest = [item for item in grades if item not in tournament.contests]
    for item in rest:
        tournament.enter(item, k, chosen, grades[item] if chosen.grades else None)
    calls += sum(play(tournament).values()) + (k * len(rest) if chosen.grades else 0)
    return ByAuto(tournament, chosen.name, calls)
