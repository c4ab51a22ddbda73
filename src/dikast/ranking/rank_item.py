"""Ranking the responses of one item, without a folder."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.rubric import Sheet
from dikast.core.text import counted
from dikast.core.verdict import Usage, Verdict
from dikast.judging.joining import join_samples
from dikast.judging.judge import Judge
from dikast.judging.label_scores import combine_samples
from dikast.judging.task import Shape
from dikast.ranking.comparisons import Comparison, Floats, OrderedPair, Values
from dikast.ranking.contestants import Contestants, contestants_of
from dikast.ranking.item_ranking import Ranking, ranking_of
from dikast.ranking.rank_file import check_values
from dikast.ranking.rank_options import RankOptions
from dikast.ranking.schedules import schedule_named
from dikast.ranking.tournament import Tournament


class Round(NamedTuple):
    """A round of questions about an item: its single responses (`each`), or pairs."""

    item: Item
    shape: Shape


def rank_item(judge: Judge, item: Item, schedule_name: str, values: Values | None = None) -> Ranking:
    """Rank an item's responses. `values` None: logits if every verdict has probabilities, else verdicts.

    UserError for fewer than two different responses, or fewer than the schedule needs.
    """
    rounds = rank_rounds(judge, item, schedule_name, values)
    try:
        asked = next(rounds)
        while True:
            format = judge.format if asked.shape == "each" else judge.compare_format
            asked = rounds.send(list(judge.answer(judge.tasks([item], asked.shape), format)))
    except StopIteration as end:
        ranking: Ranking = end.value
        return ranking


def rank_rounds(
    judge: Judge, item: Item, schedule_name: str, values: Values | None = None
) -> Generator[Round, Sequence[Verdict], Ranking]:
    """The rounds of `rank_item` as a generator, for callers who ask in their own way and send back all verdicts."""
    schedule = schedule_named(schedule_name)
    if values is not None:
        check_values(judge, RankOptions(values=values))
    found, rubric = contestants_of(item), item.rubric or judge.rubric
    if isinstance(rubric, Sheet):
        raise UserError("ranking takes one criterion, and this rubric is a sheet of several")
    if len(found.inside) < schedule.least:
        raise UserError(
            f"item {item.id!r} has {counted(len(found.inside), 'different response')}, empty ones left out; the "
            f"schedule {schedule.name} needs {schedule.least}"
        )
    if told := schedule.too_many(len(found.inside)):
        raise UserError(f"item {item.id!r}: {told}")
    graded = (yield Round(item, "each")) if schedule.grades else ()
    grades = _grades(judge, item, found, graded) if schedule.grades else None
    grading = sum((verdict.usage for verdict in graded), Usage())
    tournament = Tournament(judge.settings.sampling.seed, values)
    tournament.enter(item.id, len(found.inside), schedule, grades)
    tournament.contests[item.id].grading = grading
    while pairs := tournament.draw().get(item.id):
        shown = [(found.inside[pair.first], found.inside[pair.second]) for pair in pairs]
        tournament.note({item.id: _compared(found, (yield Round(item, lambda item, shown=shown: shown)))})  # type: ignore[misc]
    return ranking_of(item.id, found, tournament)


def _compared(found: Contestants, verdicts: Sequence[Verdict]) -> list[Comparison]:
    place = {response: i for i, response in enumerate(found.inside)}
    groups: dict[tuple[int, ...], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.question.responses, []).append(verdict)
    said = []
    for group in groups.values():
        one = Comparison.of(combine_samples(sorted(group, key=lambda each: each.question.sample), None))
        pair = OrderedPair(place[one.pair.first], place[one.pair.second])
        said.append(replace(one, pair=pair))
    return said


def _grades(judge: Judge, item: Item, found: Contestants, verdicts: Sequence[Verdict]) -> Floats:
    goodness = {}
    rubric = item.rubric or judge.rubric
    assert rubric is not None
    assert not isinstance(rubric, Sheet)
    rubrics = {verdict.hashes.rubric: rubric for verdict in verdicts if verdict.hashes is not None}
    for verdict in join_samples(verdicts, judge.samples, rubrics):
        value = verdict.expected if verdict.expected is not None else verdict.score
        if value is not None:
            goodness[verdict.question.responses[0]] = rubric.scale.goodness(value)
    return np.array([goodness.get(i, np.nan) for i in found.inside])
