"""What is known of each run folder without reading its verdicts: judge, data, progress, faults."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.runs.folder_fault import fault_of
from dikast.core.runs.judge_lock import engine_of, kind_of, read_lock
from dikast.core.runs.last_verdict import last_verdict, moment
from dikast.core.runs.rubrics import readable_rubrics
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import KEYS, LOCK, SUMMARY, VERDICTS
from dikast.core.runs.schema import summary_of
from dikast.core.text import counted, listing
from dikast.core.verdict import DISAGREE, Status

_MOST = 3  # criteria whose means are shown
DEEPEST = 6  # folders below the one that is shown
LIVE_SECONDS = 60.0  # an unfinished run counts as being written for this long after its last verdict
UNREAD = "not read yet"
STATES = ("finished", "being written", "unfinished", "damaged")
_WATCHED = (VERDICTS, SUMMARY, LOCK, KEYS)
_SKIPPED = ("frames", "cache")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run folder. `path` is from the folder that is shown; `why` says what is wrong with a damaged one.

    `planned` and `answered` count questions, `failed` those without a verdict (None where no summary counts them: its
    rows do), `written` is when the last verdict was, in seconds since 1970: as the run has `recorded` it, else by the
    date of its file.
    """

    path: str
    state: str
    kind: str = "absolute"
    judge: str = ""
    data: str = ""
    rubric: str = ""
    format: str = ""
    planned: int = 0
    answered: int = 0
    failed: int | None = None
    figure: str = ""
    cost: float | None = None
    written: float = 0.0
    why: str = ""
    judge_hash: str = ""
    format_hash: str = ""
    lock: Mapping[str, Any] = field(default_factory=dict, repr=False)
    recorded: bool = False


def found_runs(folder: Path) -> Iterator[tuple[str, str]]:
    """The run folders in a folder, by name, each with a signature that changes when it is written."""
    yield from _found(folder, "", 0)


def signature_of(root: Path, path: str) -> str | None:
    """The signature of one run folder; None where it is none (any more)."""
    return next((signature for _, signature in _found(root / path, path, DEEPEST)), None)


def written_at(signature: str) -> float:
    """The date of the verdicts of a signature, or of its mark, in seconds since 1970; 0 without any."""
    told = signature.split(" ")[_WATCHED.index(VERDICTS)].partition(".")[0]
    return int(told) / 1e9 if told != "-" else 0.0


def _found(folder: Path, path: str, depth: int) -> Iterator[tuple[str, str]]:
    inner, marks = [], dict[str, str]()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in _WATCHED:
                    told = entry.stat()
                    marks[entry.name] = f"{told.st_mtime_ns}.{told.st_size}"
                elif (
                    not entry.name.startswith(".")
                    and entry.name not in _SKIPPED
                    and entry.is_dir(follow_symlinks=False)
                ):
                    inner.append(entry.name)
    except OSError:
        return
    if VERDICTS in marks or LOCK in marks or (SUMMARY in marks and _is_panel(folder)):
        yield path or ".", " ".join(marks.get(name, "-") for name in _WATCHED)
    if depth < DEEPEST:
        for name in sorted(inner):
            yield from _found(folder / name, f"{path}/{name}" if path else name, depth + 1)


def _is_panel(folder: Path) -> bool:
    summary = summary_of(folder)
    return summary is not None and summary.get("kind") == "panel"


def verdicts_mark(signature: str) -> str:
    """Of a signature what changes with verdicts or with which of them count."""
    parts = signature.split(" ")
    return f"{parts[_WATCHED.index(VERDICTS)]} {parts[_WATCHED.index(KEYS)]}"


def state_now(state: str, written: float, now: float) -> str:
    """`being written` for an unfinished run whose last verdict is less than a minute old, else its state.

    A verdict from the future is of a machine whose clock is wrong, and says as little as an old one.
    """
    return "being written" if state == "unfinished" and abs(now - written) < LIVE_SECONDS else state


def read_facts(root: Path, path: str) -> RunFacts:
    """Read one run's lock and summary; faults are reported in the result, not raised."""
    folder = root / path
    try:
        return _read(folder, path)
    except (OSError, UserError) as error:
        return RunFacts(path, "damaged", why=str(error))
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # fields that the forms leave open
        told = f"{LOCK} or {SUMMARY} holds what no run writes ({error!r:.200}): run the command that made it again"
        return RunFacts(path, "damaged", why=told)


def _read(folder: Path, path: str) -> RunFacts:
    lock, summary = read_lock(folder), summary_of(folder)
    verdicts, keys = folder / VERDICTS, folder / KEYS
    told = verdicts.stat() if verdicts.is_file() else None
    kind = kind_of(summary or {}, lock or {})
    if kind == "panel" and summary is not None:
        return _read_panel(folder, path, summary)
    planned = keys.stat().st_size // 33 if keys.exists() else 0
    failed: int | None
    done, failed = _counts(summary)
    if summary is None or done < planned:
        done, failed = max(done, _lines(verdicts) if told else 0), None
    why = fault_of(folder)
    state = "damaged" if why else "finished" if summary is not None and done >= planned else "unfinished"
    usage, said = (summary or {}).get("usage") or {}, lock or {}
    at = moment(summary) if state == "finished" else None
    recorded, written = at is not None, at if at is not None else told.st_mtime if told else 0.0
    form = said.get("format") if isinstance(said.get("format"), Mapping) else {}
    source = str(said.get("items") or "")
    return RunFacts(
        path, state, kind, str((summary or {}).get("judge") or engine_of(said)),
        "standard input" if source == "-" else source.rstrip("/").rsplit("/", 1)[-1], _rubric_names(folder, said),
        str((form or {}).get("name", "")), planned or done, min(done, planned) if planned else done, failed,
        figure_of(summary), usage.get("cost"), written, why, str(said.get("judge", "")),
        str((form or {}).get("hash", "")), said, recorded,
    )  # fmt: skip


def _read_panel(folder: Path, path: str, summary: Mapping[str, Any]) -> RunFacts:
    """A panel: what its judges read, and by which rubrics and formats."""
    each = [_read(run.folder, path) for run in Run(folder).runs]
    data, rubric, form = (
        ", ".join(dict.fromkeys(told for facts in each if (told := getattr(facts, name))))
        for name in ("data", "rubric", "format")
    )
    judges, last = "; ".join(map(str, summary.get("judges") or ())), last_verdict(folder)
    return RunFacts(
        path, "finished", "panel", judges, data, rubric, form, figure=_unanimous(summary),
        written=last.at if last else 0.0, recorded=last is not None and last.recorded,
    )  # fmt: skip


def _unanimous(summary: Mapping[str, Any]) -> str:
    """How often all judges of a panel said the same."""
    judges, found = len(summary.get("judges") or ()), summary.get("unanimous")
    if not isinstance(found, Mapping) or found.get("value") is None:
        return f"panel of {judges}"
    ends = f" [{found['low']:.1%}, {found['high']:.1%}]" if found.get("low") is not None else ""
    return f"panel of {judges}: unanimous {found['value']:.1%}{ends} (n = {found.get('n', 0):,})"


def in_one_order(folder: Path) -> bool:
    """Whether a run asked each pair in one order."""
    way = (read_lock(folder) or {}).get("way")
    return isinstance(way, Mapping) and way.get("both_orders") is False


def _counts(summary: Mapping[str, Any] | None) -> tuple[int, int]:
    """Questions that were answered, and those without a verdict."""
    status = (summary or {}).get("status") or {}
    return sum(status.values()), sum(n for name, n in status.items() if name != Status.OK)


def _rubric_names(folder: Path, lock: Mapping[str, Any]) -> str:
    rubric = lock.get("rubric")
    if isinstance(rubric, Mapping) and rubric.get("name"):
        return str(rubric["name"])
    names = list(dict.fromkeys(each.name for each in readable_rubrics(folder).values()))
    return listing(names, 3)


def figure_of(summary: Mapping[str, Any] | None) -> str:
    """What the run says in short: the mean of each criterion with interval and n, or how often each choice was made."""
    if summary is None:
        return ""
    if isinstance(ranking := summary.get("ranking"), Mapping):
        return f"{ranking.get('ranked', 0):,} of {counted(ranking.get('items', 0), 'item')} ranked"
    told = summary.get("preferences") or {}
    if isinstance(choices := told.get("choices"), Mapping):
        alone = told.get("one_order") or summary.get("kind") == "from-absolute"  # no orders that could disagree
        said = {name: count for name, count in choices.items() if name != DISAGREE or not alone}
        counts = ", ".join(f"{name} {count:,}" for name, count in said.items())
        return f"in one order: {counts}" if told.get("one_order") else counts
    means = [mean for each in (summary.get("criteria") or {}).items() if (mean := _mean(*each))]
    more = f"; {len(means) - _MOST:,} more" if len(means) > _MOST else ""
    return "; ".join(means[:_MOST]) + more


def _mean(name: str, told: Any) -> str:
    for key, unit in (("mean_score", ""), ("mean_goodness", " of goodness")):
        mean = told.get(key) if isinstance(told, Mapping) else None
        if isinstance(mean, Mapping) and isinstance(mean.get("value"), int | float):
            ends = f" [{mean['low']:.2f}, {mean['high']:.2f}]" if mean.get("low") is not None else ""
            return f"{name} {mean['value']:.2f}{ends}{unit} (n = {mean.get('n', 0):,})"
    return ""


def _lines(path: Path) -> int:
    """Whole lines of a file."""
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
