"""What the report of a run shows: its lock and summary, its audit, and the verdicts most worth reading."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dikast.audit.audit import audit_file
from dikast.audit.panel_audit import asked_in_one_order, panel_audit
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit
from dikast.audit.tables.record_rows import GoldOfItems, Rows, gold_by_item
from dikast.audit.tables.row_scales import check_same_scale
from dikast.audit.tables.run_rows import (
    LENGTH,
    RunRows,
    gold_scale_of,
    has_gold,
    kept_metadata,
)
from dikast.benches.scorecard import BENCH
from dikast.core.errors import DataError, UserError
from dikast.core.records.files import KINDS
from dikast.core.runs.current_verdicts import current_records, decoded_once
from dikast.core.runs.folder_fault import fault_of
from dikast.core.runs.judge_lock import check_version, kind_of, read_lock
from dikast.core.runs.rubrics import written_rubrics
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import AGAIN, GOLD, LOCK, SUMMARY, VERDICTS
from dikast.core.runs.schema import summary_of
from dikast.core.scale import Scale
from dikast.core.text import counted, in_shell, nearest
from dikast.core.verdict import Usage
from dikast.judging.notes import notes_of
from dikast.surface.report.by_length import by_length, length_alone, slope_on_length
from dikast.surface.report.collecting.row_counts import RowCounts, gold_columns
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.contents import JudgedItems, Thumbs
from dikast.surface.report.queue import RowReader
from dikast.surface.report.rankings import rankings
from dikast.surface.report.report_options import Asked

Watch = Callable[[Rows], Callable[[Mapping[str, Any]], None]]
SYSTEMS = ("system_a", "system_b")  # the columns of a run that name whose responses a pair has


@decoded_once()
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
    page = RunPage(folder, folder.resolve().name, lock=read_lock(folder) or {}, summary=summary_of(folder) or {})
    check_version(folder)
    page.kind = kind_of(page.summary, page.lock)
    page.damaged = fault_of(folder)
    page.missing += [page.damaged] if page.damaged else []
    _say_notes(page)
    _say_what_is_old(page)
    if not (folder / VERDICTS).is_file() or (folder / VERDICTS).stat().st_size == 0:
        if not page.damaged:
            page.missing.append("the run is empty: nothing has been answered yet; run the command that made it again")
        return page
    counts: RowCounts | None = None

    def watch(rows: Rows) -> Callable[[Mapping[str, Any]], None]:
        nonlocal counts
        assert isinstance(rows, RunRows)
        counts = RowCounts.of(page, asked, rows)
        return counts.add

    try:
        page.audit = _audited(page, asked.plan, rival if rival is not None and _alike(page, rival) else None, watch)
    except (DataError, UserError, OSError) as error:
        options = asked.plan.gold or asked.plan.gold_file is not None or asked.plan.by
        if options or _is_gone(folder, error):
            raise  # a mistake in the options is reported as `dikast audit` does
        page.missing.append(f"no audit: {error}")
        if isinstance(error, DataError) and error.line is not None and Path(error.path or "").name == VERDICTS:
            page.damaged = f"{VERDICTS} is damaged at line {error.line}; `dikast doctor {in_shell(folder)} --repair`"
            page.damaged += " moves the line aside, and its question is asked again"
        elif isinstance(error, DataError) and Path(error.path or "").parent == folder:
            page.damaged = page.damaged or str(error)
    try:
        page.ranked = rankings(folder, page.summary, page.audit)
    except DataError as error:
        page.missing.append(f"no rankings: {error}")
    try:
        _read(page, asked, counts if page.audit is not None else None)
    except (DataError, UserError, OSError) as error:
        if _is_gone(folder, error):
            raise
        page.missing.append(f"no queue: {error}")
    return page


def _is_gone(folder: Path, error: Exception) -> bool:
    """Whether the run was removed or moved while it was read: nothing is damaged then, and there is no page."""
    return isinstance(error, OSError) and not (folder / VERDICTS).exists()


def collect_panel(folder: Path, asked: Asked) -> RunPage:
    """A panel as one page: its judges beside their joint verdict, without a queue. Raises as `collect`."""
    run = Run(folder)
    summary = {**_spent(run), "judge": "joint verdict of its judges"}
    page = RunPage(folder, f"panel of {len(run.runs)}", summary=summary)
    if (gone := len(run.summary.get("judges") or ()) - len(run.runs)) > 0:
        page.damaged = f"{counted(gone, 'judge')} of the panel {'has' if gone == 1 else 'have'} no finished run in it; "
        page.damaged += AGAIN
        page.missing.append(page.damaged)
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
    if page.kind != kind_of(summary_of(other) or {}, read_lock(other) or {}):
        return False
    try:
        check_same_scale(page.folder, other)
    except UserError as error:
        page.missing.append(f"not compared in pairs: {error}")
        return False
    return True


def _audited(page: RunPage, asked: AuditPlan, rival: Path | None, watch: Watch) -> Audit:
    """The audit of a run, in pairs with `rival`; by itself, which is said, where they have no row in common."""
    plan = _planned(page, asked, rival)
    if rival is None or plan.rival == asked.rival:
        return _of_plan(plan, asked, watch)
    try:
        return _of_plan(plan, asked, watch)
    except (DataError, UserError) as error:
        audit = _of_plan(dataclasses.replace(plan, rival=asked.rival), asked, watch)
        page.apart = _items_of(page.folder).isdisjoint(_items_of(rival))
        why = "they share no items, so each run stands by itself" if page.apart else str(error)
        page.missing.append(f"not compared in pairs with {rival.resolve().name}: {why}")
        return audit


def _of_plan(plan: AuditPlan, asked: AuditPlan, watch: Watch) -> Audit:
    """The audit of a plan; without its systems where they cannot be used."""
    try:
        return audit_file(plan, watch)
    except UserError:
        if plan.first == asked.first:
            raise
        return audit_file(dataclasses.replace(plan, first=asked.first, second=asked.second), watch)


def _items_of(folder: Path) -> set[str]:
    """The ids of the items of a run that have an answer; none where its verdicts are damaged."""
    try:
        return {record["question"]["item"] for record in current_records(folder)}
    except DataError:
        return set()


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


def _say_notes(page: RunPage) -> None:
    unfinished = itertools.chain.from_iterable(notes_of(page.folder).values())
    page.missing.extend(map(str, page.summary.get("notes", ()) if page.summary else unfinished))


def _say_what_is_old(page: RunPage) -> None:
    made = (page.lock.get("versions") or {}).get("dikast")
    if not page.lock and not page.damaged:
        page.missing.append(f"{LOCK} is missing: the judge is unknown")
    elif page.lock and made != version("dikast"):
        page.missing.append(f"written by dikast {made}, read by {version('dikast')}: fields may have changed")
    if not (page.folder / SUMMARY).exists():
        page.missing.append("summary.json is missing: the run has not finished; run the command that made it again")


def _read(page: RunPage, asked: Asked, counts: "RowCounts | None") -> None:
    """Fill the page from its rows, as counted while the audit read them or in a pass of their own; read the items."""
    if counts is None:
        gold, gold_scale = _gold(page.folder, asked.plan), _gold_scale(page.folder, asked.plan)
        rows = RunRows(str(page.folder), gold=gold, gold_scale=gold_scale)
        counts = RowCounts.of(page, asked, rows)
        for row, _ in rows:
            counts.add(row)
    counts.tell(page)
    queued, sample, rest = counts.queue.rows(), counts.queue.sample(), counts.queue.rest()
    items = JudgedItems.of(page.folder, page.lock, asked.items, cure="name the file that was judged with --items")
    found = items.contents({row["item"] for row in (*queued, *sample)} | {each.item for each in counts.measured})
    reading = RowReader(page.folder, page.lock, written_rubrics(page.folder), asked.redact)
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
    page.length_alone = length_alone(counts.measured, found)
    page.texts = found.different((each.item, each.responses) for each in counts.measured if not math.isnan(each.gold))
    within = (0.0, 1.0) if page.pairwise else counts.scales.ends
    page.by_length = by_length(counts.measured, found, level, within)


def _gold_scale(folder: Path, plan: AuditPlan) -> Scale | None:
    """The scale of gold that the run wrote down, where gold is the run's."""
    return gold_scale_of(folder) if plan.gold_file is None else None


def _gold(folder: Path, plan: AuditPlan) -> GoldOfItems:
    path = plan.gold_file or folder / GOLD
    if not (plan.gold_file or has_gold(folder)):
        return GoldOfItems()
    return gold_by_item(path, gold_columns(plan)[:1], plan.key[0] if plan.key else "")
