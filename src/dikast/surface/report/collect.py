"""What the report of a run shows: its lock and summary, its audit, and the verdicts most worth reading."""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dikast.audit.audit import audit_file
from dikast.audit.estimate import Estimate
from dikast.audit.panel_audit import asked_in_one_order, panel_audit
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit
from dikast.audit.results import Accuracy
from dikast.audit.tables.record_rows import GoldOfItems, Rows, gold_by_item
from dikast.audit.tables.row_scales import check_same_scale
from dikast.audit.tables.run_rows import (
    JOINT,
    LABELS,
    LENGTH,
    ORDERS,
    RunRows,
    gold_scale_of,
    has_gold,
    kept_metadata,
)
from dikast.benches.scorecard import BENCH
from dikast.core.canonical import read_json
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.records.files import KINDS
from dikast.core.rubric import Rubric
from dikast.core.runs.judge_lock import damaged_lock, engine_of, kind_of, read_lock
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import GOLD, KEYS, LOCK, RUBRICS, SUMMARY, VERDICTS
from dikast.core.runs.schema import SummaryForm, misfit
from dikast.core.scale import Scale
from dikast.core.text import counted, in_shell, nearest
from dikast.core.verdict import DISAGREE, Usage
from dikast.judging.notes import notes_of
from dikast.surface.report.by_length import LengthGroup, Measured, by_length, slope_on_length
from dikast.surface.report.contents import JudgedItems, Thumbs
from dikast.surface.report.gaps import Scales, slot_shift, worth_of
from dikast.surface.report.queue import Entry, Queue, RowReader
from dikast.surface.report.rankings import Rankings, rankings
from dikast.surface.report.report_options import Asked

SYSTEMS = ("system_a", "system_b")  # the columns of a run that name whose responses a pair has
MOST_LABELS = 30  # bars in a histogram of labels
MOST_LENGTHS = 20_000  # rows whose response is measured, for the slope on length


@dataclass(slots=True)
class RunPage:
    """One run, ready to be shown. `missing` says in words what the run lacks, what follows from that, and what
    the judge noted.
    """

    folder: Path
    name: str
    kind: str = "absolute"
    lock: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    audit: Audit | None = None
    missing: list[str] = field(default_factory=list)
    labels: dict[str, tuple[int, int]] = field(default_factory=dict)  # label (of pairs: joint) -> verdicts, gold
    length: Estimate | None = None  # slope of the error on length
    by_length: tuple[LengthGroup, ...] = ()
    shifts: dict[str, int] = field(default_factory=dict)  # of pairs: towards the first slot (-1 to 1) -> pairs
    goodness: bool = False  # rows lie on several scales, or gold on another than scores: figures are of goodness
    entries: list[Entry] = field(default_factory=list)  # the queue
    sample: list[Entry] = field(default_factory=list)  # of the other rows, drawn by `seed`
    seed: int = 0
    others: Callable[[Thumbs], Iterator[Entry]] | None = None  # reads the rows that are in neither, where asked for
    queued: list[Item] = field(default_factory=list)  # the items of the queue, each once, in its order
    one_order: bool = False  # each pair was asked in one order
    panel: bool = False  # the joint verdict of several judges, whose runs have pages of their own
    rows: int = 0
    differing: int = 0  # rows without a verdict, or with another than gold
    failed: int = 0  # rows without a verdict
    planned: int = 0  # questions of the run, 0 where that is not known
    answered: int = 0  # those with an answer, a verdict or not
    ranked: Rankings | None = None
    damaged: str = ""  # where the verdicts cannot be read, and the cure
    compared_with: str = ""  # the name of the run that this one is compared with, in pairs of the same items

    @property
    def judge(self) -> str:
        """The judge as it was asked for."""
        return str(self.summary.get("judge") or engine_of(self.lock) or self.lock.get("judge", "unknown judge"))

    @property
    def unfinished(self) -> bool:
        """Whether questions that were planned have no answer yet."""
        return self.planned > self.answered

    @property
    def pairwise(self) -> bool:
        """Whether verdicts are choices between two responses."""
        return self.kind == "pairwise"

    @property
    def chosen(self) -> bool:
        """Whether choices are compared with gold: verdicts of pairs, or what follows from two graded responses."""
        return self.pairwise or (self.audit is not None and self.audit.result(Accuracy) is not None)


def collect(folder: Path, asked: Asked, rival: Path | None = None) -> RunPage:
    """Read one run folder. Whatever is missing or damaged is said in `missing`.

    Raises UserError for a folder that is no run, and where columns of gold or slices were named that cannot be used.

    `rival` is another run on the same items, to be compared with in pairs; one of another kind (scores, choices) only
    stands beside it.
    """
    if not folder.is_dir():
        if near := nearest(str(folder)):
            raise DataError(f"cannot be opened: No such file or directory; did you mean {near!r}?", path=str(folder))
        if folder.suffix and folder.suffix.lower() in KINDS:
            raise DataError("cannot be opened: No such file or directory; fix the path", path=str(folder))
        raise UserError(f"{folder}: there is no such run folder; `dikast grade --out {in_shell(folder)}` creates one")
    if not (folder / VERDICTS).exists() and not (folder / LOCK).exists():
        inner = sorted(each.parent.name for each in folder.glob(f"*/{VERDICTS}"))
        hint = f"; run folders inside it: {', '.join(inner[:10])}" if inner else ""
        benches = sorted({each.parts[-3] for each in folder.glob(f"*/*/{BENCH}")})
        hint = hint or (f"; folders of benches inside it: {', '.join(benches[:10])}" if benches else "")
        raise UserError(f"{folder}: not a run folder: it holds no {VERDICTS}{hint}")
    page = RunPage(folder, folder.resolve().name, lock=read_lock(folder) or {}, summary=_summary(folder))
    page.kind = kind_of(page.summary, page.lock)
    if (damaged := damaged_lock(folder)) is not None:
        page.missing.append(str(damaged))
    _say_notes(page)
    _say_what_is_old(page)
    if not (folder / VERDICTS).exists() or (folder / VERDICTS).stat().st_size == 0:
        page.missing.append("the run is empty: nothing has been answered yet; run the command that made it again")
        return page
    counts: _Counts | None = None

    def watch(rows: Rows) -> Callable[[Mapping[str, Any]], None]:
        nonlocal counts
        assert isinstance(rows, RunRows)
        counts = _Counts.of(page, asked, rows)
        return counts.add

    try:
        plan = _planned(page, asked.plan, rival if rival is not None and _alike(page, rival) else None)
        try:
            page.audit = audit_file(plan, watch)
        except UserError:
            if plan.first == asked.plan.first:
                raise
            page.audit = audit_file(dataclasses.replace(plan, first=asked.plan.first, second=asked.plan.second), watch)
    except (DataError, UserError) as error:
        if asked.plan.gold or asked.plan.gold_file is not None or asked.plan.by:
            raise  # a mistake in the options, reported as `dikast audit` does
        page.missing.append(f"no audit: {error}")
        if isinstance(error, DataError) and error.line is not None and Path(error.path or "").name == VERDICTS:
            page.damaged = f"{VERDICTS} is damaged at line {error.line}; `dikast doctor {in_shell(folder)} --repair`"
            page.damaged += " moves the line aside, and its question is asked again"
    try:
        page.ranked = rankings(folder, page.summary, page.audit)
    except DataError as error:
        page.missing.append(f"no rankings: {error}")
    try:
        _read(page, asked, counts if page.audit is not None else None)
    except (DataError, UserError) as error:
        page.missing.append(f"no queue: {error}")
    return page


def collect_panel(folder: Path, asked: Asked) -> RunPage:
    """A panel as one page: its judges beside their joint verdict, without a queue. Raises as `collect`."""
    run = Run(folder)
    summary = {**_spent(run), "judge": "joint verdict of its judges"}
    page = RunPage(folder, f"panel of {len(run.runs)}", summary=summary)
    page.kind = "pairwise" if run.runs and run.runs[0].kind in ("pairwise", "from-absolute") else "absolute"
    page.audit = panel_audit(dataclasses.replace(asked.plan, file=folder))
    page.rows = page.audit.rows
    page.panel, page.one_order = True, page.pairwise and asked_in_one_order(run)
    return page


def _spent(panel: Run) -> Mapping[str, Any]:
    """What the judges of a panel have spent together; nothing where one of them does not say."""
    summaries = [run.summary for run in panel.runs]
    if not all(each.get("usage") for each in summaries):
        return {}
    spent = [dataclasses.asdict(Usage()) | each["usage"] for each in summaries]
    costs = [each.pop("cost") for each in spent]
    usage = {name: sum(each.get(name) or 0 for each in spent) for name in spent[0]}
    usage["cost"] = None if None in costs else sum(costs)
    return {"usage": usage, "verdicts": sum(each.get("verdicts") or 0 for each in summaries)}


def _alike(page: RunPage, other: Path) -> bool:
    """Whether two runs can be compared in pairs; that their scales differ is said."""
    if other.is_file():
        return False
    if page.kind != kind_of(_summary(other), read_lock(other) or {}):
        return False
    try:
        check_same_scale(page.folder, other)
    except UserError as error:
        page.missing.append(f"not compared in pairs: {error}")
        return False
    return True


def _planned(page: RunPage, plan: AuditPlan, rival: Path | None) -> AuditPlan:
    plan = dataclasses.replace(plan, file=page.folder)
    if page.pairwise and not (plan.first or plan.second):
        kept = kept_metadata(page.folder).values()
        if len({each for about in kept for each in about.get("systems", ()) if each}) > 1:  # then there are winners
            length = plan.length or (LENGTH if any("lengths" in about for about in kept) else "")
            plan = dataclasses.replace(plan, first=SYSTEMS[0], second=SYSTEMS[1], length=length)
    if not plan.gold and plan.gold_file is None and not has_gold(page.folder):
        page.missing.append("no gold: agreement, calibration and gaps are unknown; name it with --gold-file")
        return dataclasses.replace(plan, by=())
    if rival is not None:
        column = "choice" if page.pairwise else plan.score or "score"
        plan = dataclasses.replace(plan, rival=f"{column}@{rival}")
    return plan


def _summary(folder: Path) -> Mapping[str, Any]:
    try:
        value = read_json((folder / SUMMARY).read_bytes())
    except (OSError, ValueError):
        return {}
    return value if not misfit(SummaryForm)(value) else {}


def _say_notes(page: RunPage) -> None:
    unfinished = itertools.chain.from_iterable(notes_of(page.folder).values())
    page.missing.extend(map(str, page.summary.get("notes", ()) if page.summary else unfinished))


def _say_what_is_old(page: RunPage) -> None:
    made = (page.lock.get("versions") or {}).get("dikast")
    if not page.lock:
        page.missing.append("judge.lock.json is missing or damaged: the judge is unknown")
    elif made != version("dikast"):
        page.missing.append(f"written by dikast {made}, read by {version('dikast')}: fields may have changed")
    if not page.summary:
        page.missing.append("summary.json is missing: the run has not finished; run the command that made it again")


def _read(page: RunPage, asked: Asked, counts: "_Counts | None") -> None:
    """Fill the page from its rows, as counted while the audit read them or in a pass of their own; read the items."""
    if counts is None:
        gold, gold_scale = _gold(page.folder, asked.plan), _gold_scale(page.folder, asked.plan)
        rows = RunRows(str(page.folder), gold=gold, gold_scale=gold_scale)
        counts = _Counts.of(page, asked, rows)
        for row, _ in rows:
            counts.add(row)
    counts.tell(page)
    queued, sample, rest = counts.queue.rows(), counts.queue.sample(), counts.queue.rest()
    items = JudgedItems.of(page.folder, page.lock, asked.items, cure="name the file that was judged with --items")
    found = items.contents({row["item"] for row in (*queued, *sample)} | {each.item for each in counts.measured})
    reading = RowReader(page.folder, page.lock, _rubrics(page.folder), asked.redact)
    thumbs = Thumbs(asked.pictures, page.lock)
    shown = list(reading.entries([*queued, *sample], found, thumbs))
    if found.told and not asked.redact:
        page.missing.append(found.told)
    page.entries, page.sample, page.seed = shown[: len(queued)], shown[len(queued) :], asked.plan.seed
    page.others = partial(reading.streamed, rest, items) if rest else None
    ids = dict.fromkeys(entry.item for entry in page.entries)
    page.queued = [found.items[item] for item in ids if item in found.items and item not in found.changed]
    level = asked.plan.resampling.level
    page.length = slope_on_length(counts.measured, found, level)
    within = (0.0, 1.0) if page.pairwise else counts.scales.ends
    page.by_length = by_length(counts.measured, found, level, within)


@dataclass(slots=True)
class _Counts:
    """What a page counts of the rows of its run, each seen once: labels, differences from gold, and the queue."""

    pairwise: bool
    gold: str  # the column of gold, "" where there is none
    scales: Scales
    queue: Queue
    read: RunRows
    said: Counter[str] = field(default_factory=Counter)
    true: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    answers: int = 0
    differing: int = 0
    failed: int = 0
    joined: bool = False  # several samples have one verdict, whose label is what counts
    split: bool = False  # some pair was asked in both orders
    measured: list[Measured] = field(default_factory=list)
    shifts: Counter[int] = field(default_factory=Counter)  # of pairs, in fifths

    @classmethod
    def of(cls, page: RunPage, asked: Asked, rows: RunRows) -> "_Counts":
        """Empty counts for the rows of a page."""
        rubrics = _rubrics(page.folder)
        scales = Scales({name: rubric.scale for name, rubric in rubrics.items()}, rows.gold_scale)
        column = _gold_columns(asked.plan)[0]
        return cls(
            page.pairwise,
            column if column in rows.gold else "",
            scales,
            Queue(
                asked.queue, has_gold=bool(rows.gold), sample=asked.sample, seed=asked.plan.seed, keep_rest=asked.rest
            ),
            rows,
        )

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row."""
        gold = row.get(self.gold)
        if row["sample"] == JOINT:
            if not self.joined:
                self.said, self.true, self.joined = Counter(), Counter(), True
            self._label(row, gold)
            return
        self.rows += 1
        self.answers += sum(order in row for order in ORDERS) if self.pairwise else 1
        self.split |= "swapped" in row
        apart = self.scales.both(row, gold)
        self.differing += self.queue.offer(row, gold, apart)
        self.failed += row.get("status") != "ok"
        self._label(row, gold)
        if (shift := slot_shift(row)) is not None:
            self.shifts[round(5 * shift)] += 1
        if len(self.measured) >= MOST_LENGTHS:
            return
        if self.pairwise:
            self.measured.append(Measured(row["item"], (row["first"], row["second"]), worth_of(row.get("choice")),
                                          worth_of(gold)))  # fmt: skip
        elif apart is not None:
            values = apart if self.scales.goodness else (row["score"], gold)
            self.measured.append(Measured(row["item"], (row.get("response", 0),), *values))
        elif isinstance(row.get("score"), int | float) and not self.scales.goodness:
            self.measured.append(Measured(row["item"], (row.get("response", 0),), row["score"], math.nan))

    def _label(self, row: Mapping[str, Any], gold: Any) -> None:
        """Count the label of a verdict (of a pair, the joint one) and its gold."""
        label = self.scales.name(row.get("choice", row.get("label")), row)
        if label is not None and row["status"] == "ok":
            self.said[label] += 1
        if (label := self.scales.name(gold, row, gold=True)) is not None:
            self.true[label] += 1

    def tell(self, page: RunPage) -> None:
        """Put the counts on the page, and say there what the run has not asked yet."""
        page.rows, page.differing, page.failed = self.rows, self.differing, self.failed
        page.goodness = self.scales.goodness and not page.pairwise
        page.one_order = page.pairwise and not self.split
        page.shifts = {f"{k / 5:+g}" if k else "0": self.shifts[k] for k in range(-5, 6)} if self.shifts else {}
        outcomes = {*LABELS, DISAGREE} if self.split else set()  # those of both orders, also where none is there
        names = sorted(outcomes | set(self.said) | set(self.true), key=_in_order)
        page.labels = {name: (self.said[name], self.true[name]) for name in names} if len(names) <= MOST_LABELS else {}
        due = page.folder / KEYS
        page.planned = due.stat().st_size // 33 if due.exists() else 0
        page.answered = self.answers + self.read.asked_once
        if self.read.asked_once:
            page.missing.append(
                f"{counted(self.read.asked_once, 'pair')} that the ranking asked in one order only left out"
            )
        if page.unfinished:
            page.missing.append(f"unfinished: {page.answered:,} of {page.planned:,} questions have an answer")


def _gold_scale(folder: Path, plan: AuditPlan) -> Scale | None:
    """The scale of gold that the run wrote down, where gold is the run's."""
    return gold_scale_of(folder) if plan.gold_file is None else None


def _gold(folder: Path, plan: AuditPlan) -> GoldOfItems:
    path = plan.gold_file or folder / GOLD
    if not (plan.gold_file or has_gold(folder)):
        return GoldOfItems()
    return gold_by_item(path, _gold_columns(plan)[:1], plan.key[0] if plan.key else "")


def _gold_columns(plan: AuditPlan) -> list[str]:
    return [name.partition("@")[0] for name in plan.gold] or ["gold"]


def _rubrics(folder: Path) -> dict[str, Rubric]:
    """Hash -> rubric, of those the run wrote down."""
    return load_rubrics(folder) if (folder / RUBRICS).exists() else {}


def _in_order(label: str) -> tuple[int, float, str]:
    try:
        return (0, float(label), label)
    except ValueError:
        return (1, 0.0, label)
