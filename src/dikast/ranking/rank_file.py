"""Ranking the responses of every item of a file into a run folder, resumably.

The comparisons are a run as of `compare`, asked round by round; answered questions are found by their key, so an
interrupted run resumes in its round. `rankings.jsonl` holds a line for each item.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from dikast.core.errors import DataError, UserError
from dikast.core.gold import gold_number, gold_of_response, own_scale, stated
from dikast.core.item import Item
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.runs.run_files import RANKINGS, write_checked
from dikast.core.scale import Scale
from dikast.core.text import counted
from dikast.core.verdict import Usage, Verdict
from dikast.engines.wrapper import found_in
from dikast.judging.judge import Judge
from dikast.judging.judge_file import FileRun
from dikast.judging.label_scores import combine_samples
from dikast.judging.run_plan import Plan, Source
from dikast.judging.watching import Watcher
from dikast.ranking.comparisons import Comparison, Floats, OrderedPair
from dikast.ranking.contestants import Contestants, contestants_of
from dikast.ranking.item_ranking import ranking_of
from dikast.ranking.planning import SchedulePlan, budget_beside, draw_pilot, judge_of, plan
from dikast.ranking.rank_options import RankOptions
from dikast.ranking.rank_summary import Ranked, ranking_summary
from dikast.ranking.schedules import SCHEDULES, Schedule
from dikast.ranking.tournament import Tournament

GRADES = "grades"  # the folder of the grades, inside the run's
_GRADED = tuple(name for name, each in SCHEDULES.items() if each.grades)
_SHOWN = 3  # items named in a note


def rank_file(
    judge: Judge,
    source: Source | str | Path,
    out: str | Path | None,
    how: RankOptions | None = None,
    *,
    dry_run: bool = False,
    watch: Watcher | None = None,
) -> dict[str, Any]:
    """Rank the responses of every item into the folder `out`; returns what `summary.json` holds.

    Items with fewer than two different responses are reported and skipped. Raises UserError for items that cannot be
    read (all mistakes at once), for a judge without probabilities if `values` needs them, and for items with fewer
    responses than the schedule needs. A dry run plans the first round, since later ones depend on its verdicts.
    """
    how = how or RankOptions()
    check_values(judge, how)
    if how.comparisons is not None and how.schedule != "auto":
        raise UserError(
            f"--comparisons bounds what --schedule auto may choose; the schedule {how.schedule} has its own"
        )
    if how.schedule in _GRADED and str(source.path if isinstance(source, Source) else source) == "-":
        raise UserError(
            f"--schedule {how.schedule} reads the items again for the grades: give it a file, not standard input"
        )
    with FileRun(judge, source, out, lambda item: (), watch, schedule=how.schedule, dry_run=dry_run) as run:
        return _FileRanking(run, how).ranked()


def check_values(judge: Judge, how: RankOptions) -> None:
    """UserError for values that the judge is known not to provide."""
    if how.values not in ("logit", "probability"):
        return
    if why := found_in(judge.engine, "cannot", {}).get("logprobs"):
        raise UserError(f"{judge.engine.name} {why.partition(':')[0]}: rank with --values verdict")
    if judge.settings.read == "never":
        raise UserError(f"--values {how.values} needs probabilities, which --read never does not read")


class _FileRanking:
    """One run of `rank_file`: plans, asks and reads round by round."""

    def __init__(self, run: FileRun, how: RankOptions) -> None:
        self.run, self.how = run, how
        self.tournament = Tournament(run.judge.settings.sampling.seed, None if how.values == "auto" else how.values)
        self.contestants: dict[str, Contestants] = {}
        self.gold: dict[str, tuple[float | None, ...]] = {}  # goodness by response
        self.skipped: dict[str, str] = {}  # items that cannot be ranked, and why
        self.wrong: dict[str, DataError] = {}  # mistakes in items, which stop the run
        self.grades: dict[str, Floats] = {}
        self.grading: dict[str, Usage] = {}  # what the grades of an item cost
        self.planned: Plan | None = None
        self.notes: list[str] = []
        self.graded: dict[str, Any] = {}  # the summary of the grades

    def ranked(self) -> dict[str, Any]:
        """Enter the items, play all rounds, write the rankings and the summary."""
        for item in self.run.items(lambda error: None):  # mistakes are reported by the plan
            self._enter(item)
        self._round({})  # checks everything, and starts the plan
        auto = self.how.schedule == "auto"
        pilot, rest = self._shares() if auto else (list(self.contestants), [])
        if self.how.schedule in _GRADED:
            self._grade(pilot)
        elif rest and self._may_grade:
            least = SCHEDULES["graded"].least
            if many := [item for item in pilot if len(self.contestants[item].inside) >= least]:
                self._grade(many)
        self._play(pilot, lambda k: SCHEDULES["full" if auto else self.how.schedule])
        chosen: dict[int, SchedulePlan] = {}
        if rest and not self._stopped:
            chosen = self._chosen(rest) if pilot else {}
            starting = {k for k, each in chosen.items() if each.schedule in _GRADED}
            if starting:
                self._grade([item for item, each in self.contestants.items() if len(each.inside) in starting])
        if rest and not self._stopped:
            self._play(rest, lambda k: self._planned(k, chosen))
        assert self.planned is not None
        notes = dict.fromkeys((*self.planned.notes, *self._skipped_notes(), *self.notes))
        whole = replace(self.planned, items=len(self.contestants) + len(self.skipped), notes=tuple(notes))
        if self.run.dry_run:
            return whole.summary()
        lines = [self._line(item) for item in self.contestants if item in self.tournament.contests]
        write_checked(self.run.out / RANKINGS, written(lines))
        told: dict[str, Any] = {"schedule": self.how.schedule, "values": self.how.values}
        if auto:
            told |= {"goal": self.how.goal, "pilot": len(pilot)}
            told |= {"chosen": {str(k): each.schedule for k, each in chosen.items()}}
        told |= ranking_summary(lines, self.tournament, self.skipped)
        return self.run.finish(whole, ranking={**told, **({"grades": self.graded} if self.graded else {})})

    @property
    def _stopped(self) -> bool:
        return self.run.dry_run or bool(self.run.gave_up)

    @property
    def _may_grade(self) -> bool:
        """Whether the pilot of `auto` is graded: not from standard input, which is read once, nor in a folder whose
        pilot was compared without.
        """
        run = self.run
        if str(run.source.path) == "-":
            return False
        return run.known is None or not len(run.known) or (run.out / GRADES).exists()

    def _enter(self, item: Item) -> None:
        """Find the responses of an item that are compared, and their gold."""
        found, rubric = contestants_of(item), item.rubric or self.run.judge.rubric
        first = SCHEDULES["full" if self.how.schedule == "auto" else self.how.schedule]  # `full` is the pilot's
        least = first.least
        most, needed = self.how.comparisons, len(found.inside) - 1
        if isinstance(rubric, Sheet):
            told = f"ranking takes one criterion, and item {item.id!r} is judged by a sheet of several"
            self.wrong[item.id] = DataError(told, path=item.origin, field="rubric")
        elif len(found.inside) < 2:
            one = len(item.responses) == 1
            self.skipped[item.id] = (
                "one response" if one else "no two different responses" if item.responses else "none"
            )
        elif len(found.inside) < least:
            told = (
                f"the schedule {self.how.schedule} needs {least} different responses, item {item.id!r} has "
                f"{len(found.inside)}: use full, half or knockout"
            )
            self.wrong[item.id] = DataError(told, path=item.origin, field="responses")
        elif told := first.too_many(needed + 1):
            self.wrong[item.id] = DataError(f"item {item.id!r}: {told}", path=item.origin, field="responses")
        elif most is not None and most < needed:
            told = f"--comparisons {most} is too few to rank the {needed + 1} responses of item {item.id!r}"
            self.wrong[item.id] = DataError(f"{told}: allow at least {needed}", path=item.origin, field="responses")
        else:
            self.contestants[item.id] = found
            if rubric is not None and (gold := _gold(item, rubric, self.run.judge.equate)) is not None:
                self.gold[item.id] = gold

    def _shares(self) -> tuple[list[str], list[str]]:
        """The items of the pilot, and the rest."""
        items = list(self.contestants)
        sizes = {item: len(found.inside) for item, found in self.contestants.items()}
        if pilot := draw_pilot(sizes, self.run.judge.settings.sampling.seed):
            measured = set(pilot)
            return pilot, [item for item in items if item not in measured]
        few = f"{counted(len(items), 'item')} {'is' if len(items) == 1 else 'are'} too few"
        if self.how.comparisons is not None:
            self.notes.append(f"{few} for a pilot: compared within --comparisons")
            return [], items
        self.notes.append(f"{few} for a pilot: all pairs are compared in both orders")
        return items, []

    def _chosen(self, rest: Sequence[str]) -> dict[int, SchedulePlan]:
        """The schedule for each number of responses, chosen from the pilot."""
        contests = self.tournament.contests
        kinds = [self.tournament.read(item) for item in contests]
        kind = max(dict.fromkeys(kinds), key=kinds.count)
        played = [contest.played for item, contest in contests.items() if self.tournament.read(item) == kind]
        found: dict[int, SchedulePlan] = {}
        try:
            line = self.tournament.grade_line(kind) if self.grades else None
            judge, read = judge_of(played, self.tournament.pooled(kind), kind, line)
            sizes = [Counter(len(self.contestants[item].inside) for item in each) for each in (rest, contests)]
            for k in sorted(sizes[0]):
                beside = budget_beside(k, sizes[0][k] + sizes[1][k], sizes[1][k], graded=bool(self.grades))
                most = beside if self.how.comparisons is None else self.how.comparisons
                found[k] = plan(self.how.goal, k, judge, budget=most, read=read)
                self.notes.append(found[k].in_words)
        except UserError as error:
            names = dict.fromkeys(self._unplanned(len(self.contestants[item].inside)) for item in rest)
            self.notes.append(f"{error}; the rest is compared by the schedule {' or '.join(names)}")
        return found

    def _planned(self, k: int, chosen: Mapping[int, SchedulePlan]) -> Schedule:
        """The schedule of the rest for k responses."""
        return chosen[k].chosen if k in chosen else SCHEDULES[self._unplanned(k)]

    def _unplanned(self, k: int) -> str:
        """The schedule if a pilot shows no difference between responses, within the given bound."""
        most = self.how.comparisons
        return "half" if most is None or SCHEDULES["half"].calls(k) <= most else "knockout"

    def _grade(self, items: Sequence[str]) -> None:
        """Grade every response of these items alone, in a folder inside the run's."""
        run, samples = self.run, range(self.run.judge.samples)
        folder = None if run.dry_run else run.out / GRADES
        with FileRun(run.judge, run.source, folder, "each", run.watch, dry_run=run.dry_run) as graded:
            only = set(items)
            planned = graded.plan(samples, only=only, anew=True)
            if run.dry_run:
                self._add(planned)
                return
            graded.ask(samples, planned, only=only)
            summary = graded.finish(planned)
            run.gave_up = graded.gave_up
            rubrics = graded.way().rubrics
        self.graded = {name: summary[name] for name in ("verdicts", "status", "failure_rate", "usage")}
        goodness: dict[tuple[str, int], float] = {}
        for (item, (response,)), one in _joined(current_verdicts(run.out / GRADES), rubrics).items():
            self.grading[item] = self.grading.get(item, Usage()) + one.usage
            value = one.expected if one.expected is not None else one.score
            if value is not None and one.hashes is not None:
                goodness[item, response] = rubrics[one.hashes.rubric].scale.goodness(value)
        for item in items:
            inside = self.contestants[item].inside
            self.grades[item] = np.array([goodness.get((item, i), np.nan) for i in inside])

    def _play(self, items: Sequence[str], schedule_of: Callable[[int], Schedule]) -> None:
        """Play these items' contests to the end, or until the engine gives up."""
        for item in items:
            k = len(self.contestants[item].inside)
            self.tournament.enter(item, k, schedule_of(k), self.grades.get(item))
            self.tournament.contests[item].grading = self.grading.get(item, Usage())
        while not self._stopped and (pairs := self.tournament.draw()):
            self._round(pairs)
        if self.run.dry_run:
            self._round(self.tournament.draw())

    def _round(self, pairs: Mapping[str, list[OrderedPair]]) -> None:
        """Plan and ask the pairs of a round, and pass the results to the tournament."""
        run, samples = self.run, range(self.run.judge.samples)
        shown = {item: [self._shown(item, pair) for pair in each] for item, each in pairs.items()}

        def pairs_of(item: Item) -> Sequence[tuple[int, int]]:
            if item.id in self.wrong:
                raise self.wrong[item.id]
            return shown.get(item.id, ())

        run.shape = pairs_of
        only = None if self.planned is None else set(pairs)
        planned = run.plan(samples, only=only)
        self._add(planned)
        if pairs and not run.dry_run:
            run.ask(samples, planned, only=only)
            self.tournament.note(self._said({item: set(each) for item, each in shown.items()}))

    def _add(self, planned: Plan) -> None:
        """Add what a round asks to what is planned in all."""
        before = self.planned
        self.planned = planned if before is None else replace(
            planned, questions=before.questions + planned.questions, answered=before.answered + planned.answered,
            unaskable=before.unaskable + planned.unaskable, tokens_in=before.tokens_in + planned.tokens_in,
            tokens_out=before.tokens_out + planned.tokens_out, notes=(*before.notes, *planned.notes),
            cost=None if planned.cost is None else planned.cost + (before.cost or 0.0),
        )  # fmt: skip

    def _shown(self, item: str, pair: OrderedPair) -> tuple[int, int]:
        inside = self.contestants[item].inside
        return inside[pair.first], inside[pair.second]

    def _said(self, asked: Mapping[str, set[tuple[int, int]]]) -> dict[str, list[Comparison]]:
        """The results of the verdicts on these pairs, by item, with contestants in place of responses."""
        mine = (v for v in current_verdicts(self.run.out) if v.question.responses in asked.get(v.question.item, ()))
        return comparisons_of(mine, self.contestants)

    def _line(self, item: str) -> Ranked:
        return Ranked(ranking_of(item, self.contestants[item], self.tournament), self.gold.get(item))

    def _skipped_notes(self) -> Iterator[str]:
        for why in dict.fromkeys(self.skipped.values()):
            names = [item for item, each in self.skipped.items() if each == why]
            more = ", ..." * (len(names) > _SHOWN)
            yield f"{len(names):,} of the items skipped, {why}: {', '.join(map(repr, names[:_SHOWN]))}{more}"


def comparisons_of(verdicts: Iterator[Verdict], contestants: Mapping[str, Contestants]) -> dict[str, list[Comparison]]:
    """The results of verdicts on pairs, by item, with contestants in place of responses."""
    found: dict[str, list[Comparison]] = {}
    for (item, _), one in _joined(verdicts, {}).items():
        said = Comparison.of(one)
        place = {response: i for i, response in enumerate(contestants[item].inside)}
        pair = OrderedPair(place[said.pair.first], place[said.pair.second])
        found.setdefault(item, []).append(replace(said, pair=pair))
    return found


def written(lines: Sequence[Ranked]) -> bytes:
    """The lines of `rankings.jsonl`."""
    return b"".join(orjson.dumps(asdict(each.ranking), option=orjson.OPT_NON_STR_KEYS) + b"\n" for each in lines)


def _joined(verdicts: Iterator[Verdict], rubrics: Mapping[str, Rubric]) -> dict[tuple[str, tuple[int, ...]], Verdict]:
    """Samples of one question as one verdict, by item and responses; without their texts."""
    groups: dict[tuple[str, tuple[int, ...]], list[Verdict]] = {}
    for verdict in verdicts:
        light = replace(verdict, attempts=(), raw="", feedback="")
        groups.setdefault((verdict.question.item, verdict.question.responses), []).append(light)
    found = {}
    for at, group in groups.items():
        group.sort(key=lambda each: each.question.sample)
        rubric = rubrics.get(group[0].hashes.rubric) if group[0].hashes is not None else None
        found[at] = combine_samples(group, rubric.scale if rubric is not None else None)
    return found


def _gold(item: Item, rubric: Rubric, equate: Scale | None) -> tuple[float | None, ...] | None:
    """The gold of each response as goodness if gold is a list of scores by response, else None."""
    if not isinstance(stated(item.gold, rubric.name), list | tuple):
        return None
    scale = own_scale(rubric, equate)
    values = [gold_of_response(item.gold, rubric.name, i) for i in range(len(item.responses))]
    numbers = [None if value is None else gold_number(value, scale) for value in values]
    if all(number is None for number in numbers):
        return None
    return tuple(None if number is None else scale.goodness(number) for number in numbers)
