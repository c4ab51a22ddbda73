"""`dikast.audit`, `report` and `prove`: verbs that measure, as functions, with the flags of the verbs as keywords."""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dikast.audit.panel_audit import audit_source
from dikast.audit.plan import AuditPlan, Column
from dikast.audit.rendering import Audit
from dikast.audit.tables.column_file import read_columns
from dikast.core.checking import Mistakes
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.records import write_records
from dikast.core.records.rows_in_memory import rows_in
from dikast.core.runs.run import Run
from dikast.core.scale import Scale
from dikast.core.text import Located
from dikast.engines.base import Engine
from dikast.judging.run_options import MediaOptions, ProbedFormatOptions, ReplyOptions, SpendOptions
from dikast.judging.watching import Watcher
from dikast.probes.judge_proof import Proof
from dikast.probes.probe_options import ProveOptions
from dikast.surface.commands.audit_command import completed, recognised
from dikast.surface.commands.report_command import written_report
from dikast.surface.judge_runs import probed_judge, tell_columns
from dikast.surface.keywords import ROWS, filled, named_rows, show_keywords, told_in_keywords
from dikast.surface.prove_page import prove_judge
from dikast.surface.report.report_file import Written
from dikast.surface.report.report_options import ReportOptions

_REPORT = {"report": ReportOptions, "media": MediaOptions}
_PROOF = {"formats": ProbedFormatOptions, "asked": ProveOptions, "replies": ReplyOptions, "spend": SpendOptions}


@told_in_keywords
def audit(
    source: Any,
    *,
    scale: str | Scale = "",
    parse: str = "",
    columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> Audit:
    """How far verdicts can be trusted; `dikast audit` as a function, with its flags as keywords.

    source: a `Run`, the path of a run folder or of a file, or rows in memory (see `grade`). columns: derived columns as
    the configuration spells them, `{"overall": {"mean": ["clarity", "accuracy"]}}`. Raises UserError or DataError for
    what cannot be used, all mistakes in keywords at once.
    """
    given, derived = _given(lambda: filled({"plan": AuditPlan}, options, ("file",)), columns)
    with _file_of(source) as file:
        asked = completed(AuditPlan(**{**given["plan"], "file": file}), derived, str(scale), parse)
        plan, told = recognised(asked)
        tell_columns(ROWS if _is_rows(source) else str(file), told and f"columns {told}")
        found = audit_source(plan)
    if _is_rows(source):
        return dataclasses.replace(found, source=ROWS, plan={**found.plan, "file": ROWS})
    return found


@told_in_keywords
def report(
    runs: Any,
    out: str | Path | Sequence[str | Path] = (),
    *,
    columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> Written:
    """Write the results of runs as pages or numbers; `dikast report` as a function, with its flags as keywords.

    runs: a `Run`, the path of a run folder or of a file of verdicts, or a list of these, the others being compared
    with the first; the folder of an alignment, or folders of benches; or rows of verdicts in memory (see `audit`). out:
    files to write, whose endings say in which form (.html, .md, .json, .xml for JUnit); none for the numbers alone.
    columns: derived columns, as of `audit`.
    Returns the files, the `gates` that `fail_under` and `fail_over` set, each with `met`, and every figure in
    `numbers`. Raises UserError for what cannot be used, before anything is written.
    """
    given, derived = _given(lambda: filled(_REPORT, options, ("runs", "out")), columns)
    several = isinstance(runs, list | tuple) and runs and not any(map(_is_rows, runs))
    sources = [Path(each.folder if isinstance(each, Run) else each) for each in runs] if several else None
    files = [Path(each) for each in ([out] if isinstance(out, str | Path) else out)]
    with _file_of(sources[0] if sources else runs) as first, MediaOptions(**given["media"]).held():
        told = ReportOptions(runs=(first, *(sources or [])[1:]), out=tuple(files), **given["report"])
        return written_report(told, derived)


@told_in_keywords
def prove(judge: str | Engine, *, out: str | Path | None = None, watch: Watcher | None = None, **options: Any) -> Proof:
    """What a judge can do on items with exact gold; `dikast prove` as a function, with its flags as keywords.

    judge: a spec or an engine. out: the folder for the items, the runs, `prove.json` and `prove.html`, which an
    interrupted call goes on with; without one nothing is kept. watch: called with the progress. Returns a verdict for
    each ability (`proof["counts"].told`, `.found` with its interval). Raises UserError for what cannot be used,
    and RunError where a server never answers.
    """
    given = filled(_PROOF, options, ("format", "dry_run"))
    told = {name: kind(**given[name]) for name, kind in _PROOF.items()}
    asks = probed_judge(judge, told["formats"], told["replies"], told["spend"])
    with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
        folder = Path(out).expanduser() if out is not None else Path(scratch)
        return prove_judge(asks, folder, told["asked"], told["replies"].seed, name=asks.engine.name, watch=watch)


show_keywords(audit, {"plan": AuditPlan}, ("file", "scale", "columns", "replies", "unscaled"))
show_keywords(report, _REPORT, ("runs", "out"))
show_keywords(prove, _PROOF, ("dry_run",))


def _given(
    options: Callable[[], dict[str, dict[str, Any]]], columns: Mapping[str, Any] | None
) -> tuple[dict[str, dict[str, Any]], list[Column]]:
    """The options by group, and the derived columns; UserError reports all mistakes in both."""
    mistakes = Mistakes(Located({"columns": columns or {}}, "columns"))
    given = mistakes.of(options)
    derived, wrong = read_columns(mistakes.document)
    mistakes += map(UserError, wrong)
    mistakes.raise_all()
    return given or {}, derived


def _is_rows(source: Any) -> bool:
    return not isinstance(source, Run | str | Path)


@contextmanager
def _file_of(source: Any) -> Iterator[Path]:
    """The run folder or file of a source; rows in memory are in a file while the block lasts, and errors name them."""
    if not _is_rows(source):
        yield source.folder if isinstance(source, Run) else Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="dikast-") as folder:
        file = Path(folder, f"{ROWS}.jsonl")
        if not write_records(file, map(_record, rows_in(source))):
            raise UserError("no verdicts: there are no rows")
        with named_rows(file):
            yield file


def _record(row: Any) -> dict[str, Any]:
    if isinstance(row, Item):
        raise UserError("an audit needs verdicts: give rows with scores, or a Run")
    return dict(row)
