"""The files of a run folder, written whole and with a checksum each (`checksums.json`).

`verdicts.jsonl` is append-only and carries a checksum in each of its lines instead (`core.runs.lines`).
"""

import os
import zlib
from collections.abc import Mapping
from pathlib import Path

import orjson

from dikast.core.errors import DataError, RunError

VERDICTS = "verdicts.jsonl"
KEYS = "keys.txt"
RUBRICS = "rubrics.jsonl"
GOLD = "gold.jsonl"
SHEETS = "sheets.jsonl"
LOCK = "judge.lock.json"
NOTES = "notes.json"
SUMMARY = "summary.json"
COMBINED = "combined.jsonl"
PREFERENCES = "preferences.jsonl"
TOTALS = "totals.jsonl"
CHECKSUMS = "checksums.json"
_CHUNK = 1 << 20


def write_whole(path: Path, data: bytes) -> None:
    """Write a small file so that readers see the old content or the new, never a part of either."""
    temporary = path.with_name(path.name + ".part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunError(f"{path}: cannot write ({error.strerror}); what was written before is kept") from error


def write_checked(path: Path, data: bytes) -> None:
    """As `write_whole`, for a file of a run folder: its checksum is recorded as well."""
    record(path.parent, {path.name: f"{zlib.crc32(data):08x}"})
    write_whole(path, data)


def put_in_place(parts: Mapping[Path, Path]) -> None:
    """Rename each finished `.part` file of one run folder to its final path and record the checksums. OSError."""
    if parts:
        folder = next(iter(parts.values())).parent
        record(folder, {path.name: checksum(part) for part, path in parts.items()})
    for part, path in parts.items():
        part.replace(path)


def record(folder: Path, sums: Mapping[str, str]) -> None:
    """Record the checksums of files that are about to be replaced.

    The checksum before stays valid beside the new one, so that a run killed before it renames the file is whole.
    """
    known = _recorded(folder)
    changed = {
        name: [new, *(old for old in known.get(name, [])[:1] if old != new)]
        for name, new in sums.items()
        if known.get(name, [])[:1] != [new]
    }
    if changed:
        value = {**known, **changed}
        write_whole(folder / CHECKSUMS, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def remove(path: Path) -> None:
    """Delete a file of a run folder, if it is there, and its checksum."""
    path.unlink(missing_ok=True)
    known = _recorded(path.parent)
    if known.pop(path.name, None) is not None:
        write_whole(path.parent / CHECKSUMS, orjson.dumps(known, option=orjson.OPT_INDENT_2) + b"\n")


def check(folder: Path, *names: str) -> None:
    """Raise DataError where one of the files is not as the run wrote it. Folders without checksums are not checked."""
    for name, problem in changed_files(folder, *names).items():
        cure = "run the same command again: it writes the file anew and asks nothing twice"
        raise DataError(f"{problem}; {cure}", path=str(folder / name))


def changed_files(folder: Path, *names: str) -> dict[str, str]:
    """The files that are missing or differ from their recorded checksum, and how; all recorded ones without `names`."""
    known, found = _recorded(folder), {}
    for name in names or known:
        if name not in known:
            continue
        if not (folder / name).exists():
            found[name] = "the file is missing, although the run wrote it"
        elif not (folder / name).is_file():
            found[name] = "this is not a file any more: remove it"
        elif checksum(folder / name) not in known[name]:
            found[name] = "the file has changed since the run wrote it (checksum)"
    return found


def checksum(path: Path) -> str:
    """CRC-32 of a file's bytes, as 8 hexadecimal digits."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            value = zlib.crc32(block, value)
    return f"{value:08x}"


def _recorded(folder: Path) -> dict[str, list[str]]:
    path = folder / CHECKSUMS
    try:
        value = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        value = None
    whole = isinstance(value, dict) and all(
        isinstance(sums, list) and sums and all(isinstance(each, str) for each in sums) for sums in value.values()
    )
    if not whole:
        raise DataError("the file is damaged; remove it, and run the same command again", path=str(path))
    return dict(value)
