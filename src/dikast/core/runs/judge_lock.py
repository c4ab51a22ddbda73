"""The lock of a run folder (`judge.lock.json`) as its readers see it: its content, and the version that wrote it."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dikast.core.canonical import read_json
from dikast.core.errors import DataError, is_machine_error
from dikast.core.runs.run_files import AGAIN, LOCK, refuse_special
from dikast.core.runs.schema import LockForm, misfit

SCHEMA = 1  # of the run folder; raised when an older version could misread it
NAMES_OF = 7  # of the table of column names with which the run's items are read; raised when it gains names


def read_lock(out: Path) -> dict[str, Any] | None:
    """The lock of a run folder, None when there is none (or it cannot be read, or is not a lock).

    DataError where a pipe or a device lies in the folder, of which this file is the first that is read.
    """
    refuse_special(out)
    try:
        value = read_json((out / LOCK).read_bytes())
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and is_machine_error(error):
            raise
        return None
    return value if not misfit(LockForm)(value) else None


def damaged_lock(out: Path) -> DataError | None:
    """Why the lock of a run folder cannot be read, with the cure; None where it can, and where there is none."""
    if read_lock(out) is not None or not (out / LOCK).exists():
        return None
    return DataError(f"not the lock of a run, or damaged; {AGAIN}", path=str(out / LOCK))


def names_version(out: Path) -> int:
    """With which table of column names a run's folder reads items, or a panel's (`records.arranging.Arrangement`)."""
    lock = next((found for each in (out, *sorted(out.glob("*/"))) if (found := read_lock(each)) is not None), None)
    if lock is None:
        return NAMES_OF
    names = lock.get("names", 1) if lock.get("ids") == "content" else 0
    return min(names, NAMES_OF) if type(names) is int else 1


def check_version(out: Path) -> None:
    """Raise DataError when the folder was written by a version of Dikast that this one may misread."""
    if (told := unreadable(out)) is not None:
        raise told


def unreadable(out: Path) -> DataError | None:
    """Why this version may misread a run folder, with the cure; None where it does not."""
    lock = read_lock(out)
    schema = lock.get("schema", 1) if lock is not None else 1
    if type(schema) is int and schema <= SCHEMA:
        return None
    return DataError(
        f"the run folder has version {schema!r}, and this Dikast reads up to {SCHEMA}: update Dikast, or choose"
        " another --out",
        path=str(out / LOCK),
        line=_line(out / LOCK, "schema"),
        field="schema",
    )


def newer(out: Path) -> DataError | None:
    """A caveat if a newer Dikast wrote the run folder; None otherwise."""
    versions = (read_lock(out) or {}).get("versions")
    wrote = versions.get("dikast") if isinstance(versions, dict) else None
    own = version("dikast")
    if not isinstance(wrote, str) or _release(wrote) <= _release(own):
        return None
    return DataError(
        f"Dikast {wrote} wrote this run, and this is {own}, which reads it but may judge and count in another way:"
        " update Dikast",
        path=str(out / LOCK),
        line=_line(out / LOCK, "dikast"),
        field="versions.dikast",
    )


def _line(path: Path, key: str) -> int | None:
    """The line of a member of the lock, counted from 1."""
    lines = path.read_text("utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.lstrip().startswith(f'"{key}":')), None)


def _release(text: str) -> list[int]:
    found = re.match(r"\d+(\.\d+)*", text)
    numbers = [int(each) for each in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def kind_of(summary: Mapping[str, Any], lock: Mapping[str, Any]) -> str:
    """The kind of a run: `absolute`, `pairwise`, `from-absolute` or `panel`; replays of earlier versions called
    themselves `replay`, and are of the kind in their lock.
    """
    told = summary.get("kind")
    way = lock.get("way")
    asked = way.get("kind") if isinstance(way, Mapping) else None
    return str(told if told and told != "replay" else asked or "absolute")


def engine_of(lock: Mapping[str, Any]) -> str:
    """The name of the judge if the lock has no spec: its engine and model."""
    engine = (lock.get("identity") or {}).get("engine") or {}
    if not isinstance(engine, Mapping):
        return ""
    return " ".join(str(engine[name]) for name in ("engine", "model", "kind") if engine.get(name))
