"""Judging a file of items into a run folder, resumably.

A run is two passes over the items. The first reads and checks every record, works out the key of every question and
writes the plan (`keys.txt`, `rubrics.jsonl`, `gold.jsonl`, `judge.lock.json`), so that a mistake on the last line is
told before the first question is asked. The second asks what has no answer yet and appends it to `verdicts.jsonl`.
"""

import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.item import Item
from dikast.core.rubric import Sheet
from dikast.core.verdict import Preference, Status, Verdict
from dikast.judging.judge import Judge, join_orders, resample_rounds
from dikast.judging.ledger import VERDICTS, Ledger, current_records, current_verdicts, is_in, write_whole
from dikast.judging.lock import write_lock
from dikast.judging.plan import Count, Plan, PlanFiles, Source
from dikast.judging.preference import EqualRule, from_scores
from dikast.judging.summary import Tally, preference_summary
from dikast.judging.task import Shape, Task

_CHUNK = 1024
_MOST_ERRORS = 20


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, after each verdict."""

    done: int
    total: int
    failed: int
    seconds: float


Watcher = Callable[[Progress], None]


def grade_file(
    judge: Judge, source: Source, out: Path | None, *, dry_run: bool = False, watch: Watcher | None = None
) -> dict[str, Any]:
    """Grade every response of every item into the folder `out`; returns what `summary.json` holds.

    With `dry_run` nothing is written or asked, and the plan is returned. Raises UserError for items that cannot be
    read (all mistakes at once), RunError when the folder cannot be written.
    """
    with _Run(judge, source, out, "each", watch, dry_run=dry_run) as run:
        plan = run.plan(range(judge.samples))
        if dry_run:
            return plan.summary()
        run.ask(range(judge.samples), plan)
        return run.finish(plan, {"kind": "absolute"})


def compare_file(
    judge: Judge,
    source: Source,
    out: Path | None,
    *,
    both_orders: bool = True,
    dry_run: bool = False,
    watch: Watcher | None = None,
) -> dict[str, Any]:
    """Compare every pair of responses of every item into `out`, by default in both orders.

    Beside the verdicts, `preferences.jsonl` holds one line a pair. Returns and raises as `grade_file`.
    """
    shape: Shape = "both-orders" if both_orders else "pairs"
    with _Run(judge, source, out, shape, watch, dry_run=dry_run) as run:
        plan = run.plan(range(judge.samples))
        if dry_run:
            return plan.summary()
        run.ask(range(judge.samples), plan)
        joined = join_orders(current_verdicts(run.out), judge.samples, both_orders=both_orders)
        preferences = write_preferences(run.out, joined)
        return run.finish(plan, {"kind": "pairwise", "both_orders": both_orders, "preferences": preferences})


def compare_file_by_scores(
    judge: Judge,
    source: Source,
    out: Path | None,
    *,
    equal: EqualRule = "tie",
    dry_run: bool = False,
    watch: Watcher | None = None,
) -> dict[str, Any]:
    """Grade both responses of every item and prefer the better score; `equal` names the rule for equal scores.

    With the rule `resample` only pairs that are still equal are asked again. Returns and raises as `grade_file`.
    """
    rounds = resample_rounds(equal, judge.settings.sampling)
    with _Run(judge, source, out, "each", watch, pairs=True, dry_run=dry_run) as run:
        plan = run.plan(range(1))
        if dry_run:
            return plan.summary()
        run.ask(range(1), plan)
        for sample in rounds[1:]:
            equals = {preference.item for preference in _by_scores(run, equal) if preference.choice == "tie"}
            if not equals:
                break
            extra = run.plan(range(sample, sample + 1), only=equals)
            run.ask(range(sample, sample + 1), extra, only=equals)
        preferences = write_preferences(run.out, _by_scores(run, equal))
        return run.finish(plan, {"kind": "from-absolute", "equal": equal, "preferences": preferences})


class _Run:
    """One run over a file, as a context: it holds the folder, and items from standard input, which are read twice."""

    def __init__(
        self,
        judge: Judge,
        source: Source,
        out: Path | None,
        shape: Shape,
        watch: Watcher | None,
        *,
        pairs: bool = False,
        dry_run: bool = False,
    ) -> None:
        self.judge, self.source, self.shape, self.watch, self.pairs = judge, source, shape, watch, pairs
        if out is None and not dry_run:
            raise UserError("a run needs a folder for its verdicts")
        self.out = out or Path()
        self.format = judge.format if shape == "each" else judge.compare_format
        self.dry_run, self.began, self.asked = dry_run, time.monotonic(), 0
        self.ledger: Ledger | None = None
        self.known: Any = None  # sorted keys of what was answered before this run
        self._stack = ExitStack()

    def __enter__(self) -> "_Run":
        if not self.dry_run or (self.out / VERDICTS).exists():
            self.ledger = self._stack.enter_context(Ledger(self.out))
            self.known = self.ledger.answered()
        if self.source.path == "-":
            path = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="dikast-"))) / "stdin.jsonl"
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            self.source = Source(str(path), self.source.columns, self.source.limit)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def plan(self, samples: range, *, only: set[str] | None = None) -> Plan:
        """Read all items, check them, and write the plan; with `only`, add the questions of these items to it."""
        if self.dry_run:
            return _plan(self, samples, only, None)
        with PlanFiles(self.out, add=only is not None) as plans:
            plan = _plan(self, samples, only, plans)
        if only is None:
            write_lock(self.out, self.judge, self.format, self.source.path)
        return plan

    def tasks(self, items: Iterator[Item], samples: range, only: set[str] | None) -> Iterator[Task]:
        """The questions about the items, or about those whose id is in `only`."""
        for item in items:
            if only is None or item.id in only:
                if self.pairs:
                    _check_pair(item, self.judge)
                yield from self.judge.tasks(iter((item,)), self.shape, samples=samples)

    def ask(self, samples: range, plan: Plan, *, only: set[str] | None = None) -> None:
        """Ask what has no answer yet, and append each verdict as it comes."""
        if not plan.missing:
            return
        assert self.ledger is not None
        failed, done, began = 0, plan.answered, time.monotonic()
        tasks = _unanswered(self.tasks(self.source.items(), samples, only), self.known)
        for verdict in self.judge.answer(tasks, self.format):
            self.ledger.append(verdict)
            done += 1
            self.asked += 1
            failed += verdict.status is not Status.OK
            if self.watch is not None:
                self.watch(Progress(done, plan.questions, failed, time.monotonic() - began))

    def finish(self, plan: Plan, extra: dict[str, Any]) -> dict[str, Any]:
        """Count what the folder holds now, and write `summary.json`."""
        tally = Tally()
        for record in current_records(self.out):
            tally.add(record)
        summary = {
            **extra,
            "judge": self.judge.engine.name,
            "format": self.format.name,
            "items": plan.items,
            "questions": plan.questions,
            "answered_before": plan.answered,
            "asked": self.asked,
            **tally.summary(),
            "seconds": time.monotonic() - self.began,
        }
        write_whole(self.out / "summary.json", orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
        return summary


def _plan(run: _Run, samples: range, only: set[str] | None, plans: PlanFiles | None) -> Plan:
    """Count the questions, collecting mistakes in the items and telling them all at once (at most 20)."""
    errors: list[DataError] = []

    def note(error: DataError) -> None:
        errors.append(error)
        if len(errors) == _MOST_ERRORS:
            raise _all_told(errors, more=True)

    count, items = Count(run.judge, run.format, run.known, estimate=run.dry_run), 0
    for item in run.source.items(note):
        items += 1
        if plans is not None:
            plans.item(item)
        try:
            for task in run.tasks(iter((item,)), samples, only):
                count.add(task)
                if plans is not None:
                    plans.task(task)
        except DataError as error:
            note(error)
    if errors:
        raise _all_told(errors, more=False)
    if items == 0:
        raise DataError("no items: the file has no records", path=run.source.path)
    return count.plan(items)


def _all_told(errors: list[DataError], *, more: bool) -> UserError:
    if len(errors) == 1 and not more:
        return errors[0]
    lines = "\n".join(f"  {error}" for error in errors)
    return UserError(f"{len(errors)}{'+' * more} records cannot be used; nothing was asked:\n{lines}")


def _unanswered(tasks: Iterator[Task], known: Any) -> Iterator[Task]:
    while block := list(itertools.islice(tasks, _CHUNK)):
        for task, answered in zip(block, is_in([task.key.encode() for task in block], known), strict=True):
            if not answered:
                yield task


def _check_pair(item: Item, judge: Judge) -> None:
    if len(item.responses) != 2 or isinstance(item.rubric or judge.rubric, Sheet):
        raise DataError(
            f"comparing by scores takes two responses and one criterion; item {item.id!r} has"
            f" {len(item.responses)} responses",
            path=item.origin,
            field="responses",
        )


def _by_scores(run: _Run, equal: EqualRule) -> Iterator[Preference]:
    """Preferences from the graded verdicts in the folder, in the order of the items."""
    graded: dict[str, list[Verdict]] = {}
    for verdict in current_verdicts(run.out):
        graded.setdefault(verdict.question.item, []).append(verdict)
    for item in run.source.items():
        verdicts = sorted(graded.get(item.id, ()), key=lambda v: (v.question.sample, v.question.responses))
        rubric = item.rubric or run.judge.rubric
        if not verdicts or rubric is None or isinstance(rubric, Sheet):
            continue
        yield from_scores(verdicts[::2], verdicts[1::2], rubric.scale, equal=equal)


def write_preferences(out: Path, preferences: Iterator[Preference]) -> dict[str, Any]:
    """Write `preferences.jsonl` (orders by key, the verdicts themselves are in `verdicts.jsonl`) and sum it up."""
    part = out / "preferences.jsonl.part"

    def written() -> Iterator[Preference]:
        with part.open("wb") as file:
            for preference in preferences:
                value = {**asdict(preference), "orders": [order.key for order in preference.orders]}
                file.write(orjson.dumps(value) + b"\n")
                yield preference

    try:
        summary = preference_summary(written())
        part.replace(out / "preferences.jsonl")
    except OSError as error:
        raise RunError(f"{part}: cannot write ({error.strerror}); the verdicts are kept") from error
    return summary
