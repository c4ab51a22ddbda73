"""Derive every number of a run again from what was recorded, without a model, optionally with another parser."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.core.canonical import read_json
from dikast.core.checking import fit
from dikast.core.errors import DataError, UserError
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.runs.judge_lock import check_version, read_lock
from dikast.core.runs.last_verdict import recorded_at, told_at
from dikast.core.runs.rubrics import load_rubrics, load_sheets
from dikast.core.runs.run_files import (
    AGAIN,
    GOLD,
    KEPT,
    KEYS,
    LOCK,
    META,
    RUBRICS,
    SHEETS,
    SUMMARY,
    VERDICTS,
    check,
    is_kept,
    write_checked,
)
from dikast.core.runs.schema import SummaryForm, misfit
from dikast.core.verdict import Verdict
from dikast.judging.derived_verdicts import Way, derive, way_of
from dikast.judging.ledger import Ledger
from dikast.judging.settling import AskSettings, settle_again
from dikast.judging.summary import Tally
from dikast.prompts.format import Format, format_from, load_format

_COMPARED = ("status", "label", "score", "distribution", "mass", "marker", "expected", "feedback", "claims")


@dataclass
class Changes:
    """How replayed verdicts differ from the recorded ones: how many in all, and in which fields."""

    verdicts: int = 0
    changed: int = 0
    fields: dict[str, int] = field(default_factory=dict)

    def note(self, old: Verdict, new: Verdict) -> None:
        """Compare one verdict with its replay."""
        self.verdicts += 1
        different = [name for name in _COMPARED if getattr(old, name) != getattr(new, name)]
        self.changed += bool(different)
        for name in different:
            self.fields[name] = self.fields.get(name, 0) + 1


def replay(
    run: str | Path,
    *,
    format: str | Path | Format | None = None,
    out: str | Path | None = None,
    more: Callable[[Path], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Re-derive the verdicts of `run`, with its own format or another of the same kind; `out` takes a new run folder.

    Returns a summary like the run's own with `replay` counting what changed. `more` writes further files into `out` and
    returns what the summary says of them: the summary is written last, since a folder without one is started again.
    Raises UserError when `run` has no lock, or a format that is not the one it was made with would be used unasked.
    """
    run, out = Path(run), Path(out) if out is not None else None
    lock = read_lock(run)
    if lock is None:
        cure = KEPT if is_kept(run) else AGAIN
        raise UserError(f"{run}: not a run that can be replayed: it has no readable {LOCK}; {cure}")
    check_version(run)
    check(run, LOCK, GOLD)
    rubrics = load_rubrics(run)
    try:
        parser = load_format(format) if format is not None else _own_format(lock, run)
        if parser.kind != lock["format"]["kind"]:
            raise UserError(f"{run} is {lock['format']['kind']}, and the format {parser.name!r} is {parser.kind}")
        settings, way = _settings(lock), way_in(lock, run, rubrics)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"not the lock of a run ({error!r}); {AGAIN}", path=str(run / LOCK)) from error
    changes, tally = Changes(), Tally(rubrics)

    def replayed(ledger: Ledger | None) -> Iterator[Verdict]:
        for old in current_verdicts(run):
            if old.hashes is None or old.hashes.rubric not in rubrics:
                raise DataError(
                    f"the rubric of verdict {old.key} is not in {RUBRICS}: {AGAIN}", path=str(run / RUBRICS)
                )
            new = settle_again(old, rubrics[old.hashes.rubric], parser, settings)
            if format is not None and new.hashes is not None:
                new = replace(new, hashes=replace(new.hashes, format=parser.hash))
            changes.note(old, new)
            tally.add(orjson.loads(orjson.dumps(new)))
            if ledger is not None:
                ledger.append(new)
            yield new

    with ExitStack() as stack:
        ledger = stack.enter_context(_new_folder(run, out, lock, parser)) if out is not None else None
        derived = derive(replayed(ledger), way, out)
    summary = {
        **(lock.get("way") or {"kind": parser.kind}),
        "of": str(run),
        **_asked(run),
        "format": parser.name,
        "replay": {"verdicts": changes.verdicts, "changed": changes.changed, "fields": changes.fields},
        **derived,
        **tally.summary(),
        **told_at(recorded_at(run)),
    }
    if out is not None:
        summary |= more(out) if more is not None else {}
        write_checked(out / SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    return summary


def _asked(run: Path) -> dict[str, Any]:
    """Who was asked how much and what is noted of it, as a run's summary says; nothing of one that has not ended."""
    try:
        told = read_json((run / SUMMARY).read_bytes())
    except (OSError, ValueError):
        return {}
    known = {} if misfit(SummaryForm)(told) else told
    return {name: known[name] for name in ("judge", "notes", "items", "questions") if name in known}


def _new_folder(run: Path, out: Path, lock: dict[str, Any], parser: Format) -> Ledger:
    """A folder for the replayed verdicts, with all other files of a run folder."""
    ledger = begin(out, {**lock, "format": parser.to_dict(), "replay_of": str(run)}, "replay_of", "a replay goes")
    for name in (KEYS, RUBRICS, GOLD, SHEETS, META):
        if (run / name).exists():
            write_checked(out / name, (run / name).read_bytes())
    return ledger


def begin(out: Path, lock: dict[str, Any], mark: str, doing: str) -> Ledger:
    """The ledger of a new run folder that is made of others, with its lock; `lock[mark]` says of which.

    An unfinished one of the same is started again; UserError where the folder holds anything else.
    """
    verdicts = out / VERDICTS
    if (read_lock(out) or {}).get(mark) == lock[mark] and not (out / SUMMARY).exists():
        verdicts.unlink(missing_ok=True)
    if verdicts.exists() and verdicts.stat().st_size:
        raise UserError(f"{out}: already holds verdicts; {doing} to a folder of its own")
    ledger = Ledger(out)
    write_checked(out / LOCK, orjson.dumps(lock, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
    return ledger


def _own_format(lock: dict[str, Any], run: Path) -> Format:
    spelt = lock["format"]
    try:
        format = format_from(spelt, path=str(run / LOCK))
    except UserError as error:
        raise UserError(f"{error}; {AGAIN}, or name another format with --format") from error
    if format.hash != spelt["hash"]:
        raise UserError(
            f"{run / LOCK}: its format {spelt['name']!r} was read by another version of the parser;"
            f" use --format {spelt['name']} to replay with the current one"
        )
    return format


def _settings(lock: dict[str, Any]) -> AskSettings:
    known = {field.name for field in fields(AskSettings)}
    spelt = {name: value for name, value in lock["identity"]["settings"].items() if name in known}

    def wrong(told: str, *at: object) -> None:
        raise ValueError(f"{'.'.join(map(str, at))}: {told}")

    settings: AskSettings = fit(AskSettings, spelt, wrong)
    return settings


def way_in(lock: dict[str, Any], run: Path, rubrics: dict[str, Rubric]) -> Way:
    """How the run of a lock judged, with its rubrics; DataError where the lock's rubric cannot be read."""
    try:
        shared = load_rubric(lock["rubric"]) if lock["rubric"] is not None else None
    except UserError as error:
        raise DataError(f"{error}; {AGAIN}", path=str(run / LOCK), field="rubric") from error
    sheet = shared if isinstance(shared, Sheet) else None
    return way_of(lock["way"], int(lock["samples"]), rubrics, sheet, load_sheets(run, rubrics))
