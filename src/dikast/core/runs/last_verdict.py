"""When the last verdict of a run was given. Summaries hold it, since a copied file may have another date."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.core.runs.run_files import SUMMARY, VERDICTS

FIELD = "last_verdict"  # of `summary.json`: ISO 8601, in UTC


class LastVerdict(NamedTuple):
    """In seconds since 1970. `recorded`: the run wrote it down; otherwise it is the date of its file, which copying
    may have changed.
    """

    at: float
    recorded: bool


def last_verdict(path: Path) -> LastVerdict | None:
    """When the last verdict of a run was given, of a panel that of all its judges, of a file of verdicts its date; None
    where nothing tells.
    """
    if (at := recorded_at(path)) is not None:
        return LastVerdict(at, True)
    files = [path] if path.is_file() else [path / VERDICTS, *path.glob(f"*/{VERDICTS}")]
    dates = [each.stat().st_mtime for each in files if each.is_file()]
    return LastVerdict(max(dates), False) if dates else None


def recorded_at(folder: Path) -> float | None:
    """What the summary of a run says; None where there is none, it is damaged, or an earlier version wrote it."""
    try:
        return moment(orjson.loads((folder / SUMMARY).read_bytes()))
    except (OSError, ValueError):
        return None


def moment(summary: Any) -> float | None:
    """The time that `told_at` wrote into a summary, in seconds since 1970; None where it holds none."""
    try:
        told = datetime.fromisoformat(summary[FIELD])
    except (ValueError, LookupError, TypeError):
        return None
    return None if told.tzinfo is None else told.timestamp()


def latest(folders: Iterable[Path]) -> float | None:
    """The last of what the summaries of several runs say; None where one of them says nothing."""
    found = [recorded_at(folder) for folder in folders]
    known = [at for at in found if at is not None]
    return max(known) if found and len(known) == len(found) else None


def told_at(at: float | None) -> Mapping[str, Any]:
    """The field of a summary; none where the time is not known."""
    return {} if at is None else {FIELD: datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")}
