"""What a report says first: what was judged, when, by whom, by which rubric, and the prompt."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from dikast.core.rubric import Rubric
from dikast.core.runs.judge_lock import read_lock
from dikast.core.runs.last_verdict import LastVerdict, last_verdict
from dikast.core.runs.rubrics import readable_rubrics
from dikast.core.runs.run import Run
from dikast.core.text import counted
from dikast.surface.report.collecting.run_page import RunPage

_MOST_RUBRICS = 5


class Subject(NamedTuple):
    """What a report is about. `rubrics` are at most five, `more` counts the others; `prompt` is "" if not known."""

    data: str
    rows: str
    date: str
    judge: str
    rubrics: tuple[Rubric, ...]
    more: int
    prompt: str


def subject(page: RunPage, *, redacted: bool) -> Subject:
    """What the page of a run is about; `redacted` leaves out the words of rubrics and prompt."""
    folder, lock = page.folder, page.lock
    if page.panel and (judges := Run(folder).runs):  # its judges have seen the same items
        folder, lock = judges[0].folder, read_lock(judges[0].folder) or {}
    source = str(lock.get("items") or "") if folder.is_dir() else folder.name
    found = {} if redacted else readable_rubrics(folder)
    named = list({each.name: each for each in found.values()}.values())
    prompt = "" if redacted else prompt_of(page.lock.get("format"))
    data = "standard input" if source == "-" else source.rstrip("/").rsplit("/", 1)[-1] or "unknown"
    return Subject(data, _rows(page), judged_on(page.folder), page.judge, tuple(named[:_MOST_RUBRICS]),
                   max(0, len(named) - _MOST_RUBRICS), prompt)  # fmt: skip


def _rows(page: RunPage) -> str:
    what = "pair" if page.pairwise else "row" if page.folder.is_file() else "response"
    items = page.summary.get("items")
    told = counted(page.rows, what)
    return f"{told} of {counted(items, 'item')}" if isinstance(items, int) and items != page.rows else told


def judged_on(path: Path) -> str:
    """The day of the last verdict of a run or a panel, in UTC, or of a file of verdicts; "" where nothing tells."""
    found = last_verdict(path)
    return "" if found is None else day_of(found)


def day_of(found: LastVerdict) -> str:
    """The day in UTC; "file of" a day where only the date of a file is known, which copying may have changed."""
    at = datetime.fromtimestamp(found.at, UTC)
    return f"{'' if found.recorded else 'file of '}{at.day} {at:%B %Y}"


def prompt_of(told: Any) -> str:
    """The prompt that a lock's `format` tells; "" where it tells none."""
    parts = [told.get(name) for name in ("system", "user")] if isinstance(told, Mapping) else []
    return "\n\n".join(each for each in parts if isinstance(each, str) and each.strip())
