"""Judging a file of items into a run folder; an interrupted run resumes.

A run is two passes over the items. The first reads and checks every record, works out the key of every question and
writes the plan (`keys.txt`, `rubrics.jsonl`, `gold.jsonl`, `sheets.jsonl`, `judge.lock.json`), so that a mistake on
the last line is reported before the first question is asked. The second asks what has no answer yet and appends it to
`verdicts.jsonl`. Running again resumes: answered questions are found by their keys, so none is asked twice.
"""

import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson

from dikast.core.errors import DataError, UserError, told_once
from dikast.core.gold import GoldCheck
from dikast.core.item import Item
from dikast.core.records import Arrangement
from dikast.core.records.sources import forget
from dikast.core.rubric import Sheet
from dikast.core.runs.current_verdicts import answered, current_records, current_verdicts, is_in
from dikast.core.runs.judge_lock import check_version, names_version, read_lock
from dikast.core.runs.last_verdict import recorded_at, told_at
from dikast.core.runs.opening import tell_writer
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run_files import KEYS, RANKINGS, SUMMARY, VERDICTS, remove, write_checked
from dikast.judging.by_workers import Spreading, judged_by_workers, keyed, unanswered
from dikast.judging.derived_verdicts import DERIVED, Way, by_scores, derive, way_fields, way_of
from dikast.judging.judge import Judge, resample_rounds
from dikast.judging.ledger import Ledger
from dikast.judging.notes import EngineNotes, work_in_all, work_of
from dikast.judging.pair_orders import EqualRule
from dikast.judging.run_plan import AsPlanned, Count, Plan, PlanFiles, SameItems, Source, plan_files
from dikast.judging.settling import never_sent
from dikast.judging.summary import Tally
from dikast.judging.task import Shape, Task
from dikast.judging.watching import RunningTotal, Watched, Watcher
from dikast.judging.write_judge_lock import write_lock

_CHUNK = 1024
_MOST_ERRORS = 20


def grade_file(
    judge: Judge,
    source: Source | str | Path,
    out: str | Path | None,
    *,
    dry_run: bool = False,
    watch: Watcher | None = None,
) -> dict[str, Any]:
    """Grade every response of every item into the folder `out`; returns what `summary.json` holds.

    `source` is a file of items, or a `Source` where columns are mapped or only some items are taken.
    With `dry_run` nothing is written or asked, and the plan is returned. Raises UserError for items that cannot be
    read (all mistakes at once), RunError when the folder cannot be written.
    """
    return _judged(FileRun(judge, source, out, "each", watch, dry_run=dry_run))


def _judged(run: "FileRun") -> dict[str, Any]:
    """Ask every question as often as the judge has samples, unless the run is dry; returns as `grade_file`."""
    with run:
        plan, samples = run.plan(range(run.judge.samples)), range(run.judge.samples)
        if run.dry_run:
            return plan.summary()
        run.ask(samples, plan)
        return run.finish(plan)


def compare_file(
    judge: Judge,
    source: Source | str | Path,
    out: str | Path | None,
    *,
    both_orders: bool = True,
    dry_run: bool = False,
    watch: Watcher | None = None,
) -> dict[str, Any]:
    """Compare every pair of responses of every item into `out`, by default in both orders.

    Beside the verdicts, `preferences.jsonl` holds one line a pair. Returns and raises as `grade_file`.
    """
    shape: Shape = "both-orders" if both_orders else "pairs"
    return _judged(FileRun(judge, source, out, shape, watch, dry_run=dry_run))


def compare_file_by_scores(
    judge: Judge,
    source: Source | str | Path,
    out: str | Path | None,
    *,
    equal: EqualRule = "tie",
    dry_run: bool = False,
    watch: Watcher | None = None,
) -> dict[str, Any]:
    """Grade both responses of every item and prefer the better score; `equal` names the rule for equal scores.

    With the rule `resample` only pairs that are still equal are asked again. Returns and raises as `grade_file`.
    """
    rounds = resample_rounds(equal, judge.settings.sampling)
    with FileRun(judge, source, out, "each", watch, equal=equal, dry_run=dry_run) as run:
        plan = run.plan(range(1))
        if dry_run:
            return plan.summary()
        run.ask(range(1), plan)
        for sample in rounds[1:]:
            so_far = by_scores(current_verdicts(run.out), run.way())
            equals = {preference.item for preference in so_far if preference.choice == "tie"}
            if not equals:
                break
            extra = run.plan(range(sample, sample + 1), only=equals)
            run.ask(range(sample, sample + 1), extra, only=equals)
        return run.finish(plan)


def check_readable_twice(source: Source) -> None:
    """UserError for a pipe or a device, before it is opened: opening one may wait for ever."""
    if source.path != "-" and (path := Path(source.path)).exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path} is not a regular file, and items are read twice: pipe them in and use -")


class FileRun:
    """One run over a file, as a context: it holds the folder, and items from standard input, which are read twice."""

    def __init__(
        self,
        judge: Judge,
        source: Source | str | Path,
        out: str | Path | None,
        shape: Shape,
        watch: Watcher | None,
        *,
        equal: EqualRule | None = None,
        schedule: str = "",
        dry_run: bool = False,
    ) -> None:
        self.judge, self.shape, self.watch, self.pairs = judge, shape, watch, equal is not None
        self.source = source if isinstance(source, Source) else Source(str(source))
        self.told = way_fields(shape, equal, schedule)
        self.reading = Arrangement()
        self._same = SameItems(self.source.path)
        self._begin = 0  # where the keys of the last plan begin
        self.sheets: dict[str, Sheet] = {}  # of the items that bring their own
        if out is None and not dry_run:
            raise UserError("a run needs a folder for its verdicts")
        self.has_folder, self.out = out is not None, Path(out or "")
        self.format = judge.format if shape == "each" else judge.compare_format
        self.dry_run, self.began, self.asked = dry_run, time.monotonic(), 0
        self.ledger: Ledger | None = None
        self.gave_up = ""  # why the rest was not asked
        self.work: dict[str, int] = {}
        self.known: Any = None  # sorted keys of what was answered before this run
        self._stack = ExitStack()

    def __enter__(self) -> "FileRun":
        with self._stack:  # closes what was opened when a later step fails
            if self.source.path != "-":
                check_readable_twice(self.source)
                forget()
                # a file that is not there leaves no folder behind
                next(self.source.items(lambda _: None, self._reading()), None)
            if not self.dry_run:
                self.ledger = self._stack.enter_context(Ledger(self.out))
            if self.has_folder and (self.out / VERDICTS).exists():
                check_version(self.out)
                was = (read_lock(self.out) or {}).get("identity", {}).get("engine")
                if isinstance(was, Mapping):
                    self.judge.go_on_as(was)
                if not self.dry_run:
                    tell_writer(self.out)
                self.known = answered(self.out)
            if self.source.path == "-":
                self._keep_stdin()
            self._stack = self._stack.pop_all()
        return self

    def _keep_stdin(self) -> None:
        """Put what standard input holds in its own place, so that it can be read from the top again."""
        kept = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed by the stack
        shutil.copyfileobj(sys.stdin.buffer, kept)
        kept.flush()
        self._stack.callback(setattr, sys, "stdin", sys.stdin)
        sys.stdin = self._stack.enter_context(open(kept.fileno(), closefd=False))  # noqa: SIM115

    def items(self, on_error: Callable[[DataError], None] | None = None) -> Iterator[Item]:
        """The items from the top."""
        self.reading = self._reading()
        if self.source.path == "-":
            sys.stdin.buffer.seek(0)
        self._same.check()
        return self.source.items(on_error, self.reading)

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _reading(self) -> Arrangement:
        return Arrangement(names_version(self.out)) if self.has_folder else Arrangement()

    def plan(self, samples: range, *, only: set[str] | None = None, anew: bool = False) -> Plan:
        """Read and check all items, and write the plan; with `only`, add these items to it, or plan them `anew`."""
        anew = anew or only is None
        if self.dry_run:
            return _plan(self, samples, only, None)
        self._begin = 0 if anew else (self.out / KEYS).stat().st_size
        with plan_files(self.out, self.judge.equate, add=not anew) as plans:
            plan = _plan(self, samples, only, plans)
        if anew:
            write_lock(self.out, self.judge, self.format, self.source, self.told, self.reading.names)
        return plan

    def tasks(self, items: Iterator[Item], samples: range, only: set[str] | None) -> Iterator[Task]:
        """The questions about the items, or about those whose id is in `only`."""
        for item in items:
            if only is None or item.id in only:
                if isinstance(item.rubric, Sheet):
                    self.sheets[item.id] = item.rubric
                if self.pairs:
                    _check_pair(item, self.judge)
                yield from self.judge.tasks_of(item, self.shape, samples=samples)

    def ask(self, samples: range, plan: Plan, *, only: set[str] | None = None) -> None:
        """Ask what has no answer yet, and append each verdict as it comes."""
        if not plan.missing:
            return
        assert self.ledger is not None
        engine = self.judge.engine
        notes, watched, before = EngineNotes(self.out, engine), Watched(self.watch, engine, plan), work_of(engine)
        watched.tell()
        if hasattr(engine, "spread") and not callable(self.shape) and only is None:
            self._ask_workers(samples, notes, watched)
        else:
            planned = AsPlanned(self.out, self._begin)
            self._ask_engine(planned.of(self.tasks(self.items(), samples, only)), notes, watched)
            planned.check(self.source.path)
        self.work = work_in_all(self.work, work_of(engine, before))
        if why := watched.gave_up:
            left = plan.questions - watched.done
            more = f" ({left:,} question{'s were' if left > 1 else ' was'} not asked)" if left else ""
            self.gave_up = f"{engine.name}: {why}{more}; then {watched.again}"

    def _ask_engine(self, tasks: Iterator[Task], notes: EngineNotes, watched: Watched) -> None:
        assert self.ledger is not None
        for verdict in self.judge.answer(watched.counted(_unanswered(tasks, self.known)), self.format):
            notes.keep()
            if never_sent(verdict):  # asked by the next run
                watched.unsent = watched.unsent or verdict.reason
                continue
            self.ledger.append(verdict)
            self.asked += 1
            watched.count(1, RunningTotal.of(verdict))

    def _ask_workers(self, samples: range, notes: EngineNotes, watched: Watched) -> None:
        """Have the workers of a cluster judge, and append the lines of their verdicts."""
        assert self.ledger is not None
        judge, shape, engine = self.judge, self.shape, cast(Spreading, self.judge.engine)
        items = keyed(self.items(), self.out / KEYS, judge, shape, samples, self.known)
        items = watched.counted(items, unanswered)
        for batch in judged_by_workers(engine, judge, self.format, shape, samples, items):
            notes.keep()
            watched.unsent = watched.unsent or batch.unsent
            self.ledger.append_lines(b"".join(batch.lines))
            self.asked += len(batch.lines)
            watched.count(len(batch.lines), batch.total)
        if watched.unsent:
            self._same.check()

    def way(self) -> Way:
        """How this run judges, once it is planned."""
        shared = self.judge.rubric if isinstance(self.judge.rubric, Sheet) else None
        return way_of(self.told, self.judge.samples, load_rubrics(self.out), shared, self.sheets)

    def finish(self, plan: Plan, **more: Any) -> dict[str, Any]:
        """Count what the folder holds now, join samples and pairs, and write `summary.json`, with `more` in it."""
        tally, samples = Tally(load_rubrics(self.out)), self.judge.samples
        for record in current_records(self.out):
            tally.add(record)
        derived = {}
        if samples > 1 or self.told["kind"] != "absolute" or self.sheets or isinstance(self.judge.rubric, Sheet):
            derived = derive(current_verdicts(self.out), self.way(), self.out)
        for key, name in DERIVED.items():
            if key not in derived:  # of an earlier run in this folder, of another kind
                remove(self.out / name)
        if not self.told.get("schedule"):
            remove(self.out / RANKINGS)
        notes = [*EngineNotes(self.out, self.judge.engine).told, *plan.notes]
        summary = {
            **self.told,
            **derived,
            **more,
            "judge": self.judge.engine.name,
            **({"notes": notes} if notes else {}),
            **({"gave_up": self.gave_up} if self.gave_up else {}),
            "format": self.format.name,
            "items": plan.items,
            "questions": plan.questions,
            "answered_before": plan.answered,
            "asked": self.asked,
            **tally.summary(),
            **({"work": self.work} if self.work else {}),
            **told_at(time.time() if self.asked else recorded_at(self.out)),
            "seconds": time.monotonic() - self.began,
        }
        write_checked(self.out / SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
        return summary


def _plan(run: FileRun, samples: range, only: set[str] | None, plans: PlanFiles | None) -> Plan:
    """Count the questions, collecting mistakes in the items and telling them all at once (at most 20)."""
    errors: list[DataError] = []

    def note(error: DataError) -> None:
        errors.append(error)
        if len(errors) == _MOST_ERRORS:
            check_responses()
            raise _all_mistakes(errors, more=True)

    count, items, short = Count(run.judge, run.format, run.known, estimate=run.dry_run), 0, 0
    gold = GoldCheck(run.judge.equate, run.pairs, run.source.gold_cures, run.source.gold_named, run.judge.reads_gold)
    needed = 2 if run.pairs or run.shape != "each" else 1
    if run.format.verbatim:  # its prompts were rendered elsewhere, with the responses inside
        needed = 0

    def check_responses() -> None:
        if items and short == items and run.reading.columns:
            raise DataError(
                run.reading.lacking(needed),
                path=run.source.path,
            )

    for item in run.items(note):
        items += 1
        short += len(item.responses) < needed
        if plans is not None:
            plans.item(item, item.rubric or run.judge.rubric)
        try:
            for task in run.tasks(iter((item,)), samples, only):
                gold.look(item, task.rubric, task.question.responses)
                count.add(task)
                if plans is not None:
                    plans.task(task)
        except DataError as error:
            note(error)
    check_responses()
    count.tell_unreadable(items, run.source.path)
    if (off := gold.error()) is not None:
        errors.append(off)
    if errors:
        raise _all_mistakes(errors, more=False)
    if items == 0:
        raise DataError("no items: the file has no records", path=run.source.path)
    if plans is not None and gold.guess_is_off:
        plans.forget_gold()
    return replace(count.plan(items), notes=(*_reading_notes(run.reading), *gold.notes()))


def _reading_notes(reading: Arrangement) -> Iterator[str]:
    if reading.mapped or any(reading.numbers.values()):
        yield f"columns: {reading.mapping_line().removeprefix('columns ')}"
    if equal := reading.equal_items_note():
        yield equal


def _all_mistakes(errors: list[DataError], *, more: bool) -> UserError:
    if len(errors) == 1 and not more:
        return errors[0]
    lines = "\n".join(f"  {told}" for told in told_once(errors))
    return UserError(f"{len(errors)}{'+' * more} records cannot be used; nothing was asked:\n{lines}")


def _unanswered(tasks: Iterator[Task], known: Any) -> Iterator[Task]:
    while block := list(itertools.islice(tasks, _CHUNK)):
        for task, there in zip(block, is_in([task.key.encode() for task in block], known), strict=True):
            if not there:
                yield task


def _check_pair(item: Item, judge: Judge) -> None:
    if len(item.responses) != 2:
        told = f"comparing by scores takes two responses, item {item.id!r} has {len(item.responses)}"
        raise DataError(told, path=item.origin, field="responses")
    if isinstance(item.rubric or judge.rubric, Sheet):
        told = f"comparing by scores takes one criterion, and item {item.id!r} is graded by a sheet of several"
        raise DataError(told, path=item.origin, field="rubric")
