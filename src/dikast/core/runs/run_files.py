"""Files of output folders (runs, builds, training, models), written whole and with a checksum each.

The checksums are in the folder's `checksums.json`, by path from the folder. `verdicts.jsonl`, journals and logs are
append-only and carry a checksum in each of their lines instead (`core.runs.lines`).
"""

import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from dikast.core.errors import DataError, is_machine_error, machine_error
from dikast.core.output_folder import move, replacing

VERDICTS = "verdicts.jsonl"
KEYS = "keys.txt"
RUBRICS = "rubrics.jsonl"
GOLD = "gold.jsonl"
META = "meta.jsonl"
SHEETS = "sheets.jsonl"
LOCK = "judge.lock.json"
NOTES = "notes.json"
SUMMARY = "summary.json"
COMBINED = "combined.jsonl"
PREFERENCES = "preferences.jsonl"
TOTALS = "totals.jsonl"
RANKINGS = "rankings.jsonl"
CHECKSUMS = "checksums.json"
AGAIN = "run the command that made it again: it writes the file again and asks nothing twice"
SERVED = "restore a copy of it; `dikast serve` would begin again with another --out"
KEPT = (
    "`dikast serve` keeps this folder, and it is no run yet: `dikast grade ITEMS --out FOLDER` with the server's judge"
    " and rubric makes one of it, and asks nothing twice"
)
_CHUNK = 1 << 20


def write_whole(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a small file so that readers see the old content or the new, never a part of either.

    The caller holds the folder. `sync` as in `replacing`.
    """
    with replacing(str(path), held=True, sync=sync) as temporary, open(temporary, "wb") as file:
        file.write(data)


def write_checked(path: Path, data: bytes) -> None:
    """As `write_whole`, and the file's checksum is recorded in its folder."""
    record(path.parent, {path.name: f"{zlib.crc32(data):08x}"})
    write_whole(path, data)


def put_in_place(parts: Mapping[Path, Path], folder: Path | None = None) -> None:
    """Rename finished `.part` files to their final paths; the checksums go to `folder`, else to their own. OSError."""
    if parts:
        folder = folder or next(iter(parts.values())).parent
        record(folder, {str(path.relative_to(folder)): checksum(part) for part, path in parts.items()})
    for part, path in parts.items():
        move(part, path)


@contextmanager
def written_together(*paths: Path, sums: Path | None = None) -> Iterator[list[Path]]:
    """Temporary paths beside files of one folder, which they replace if the block ends without an error.

    The checksums go to the folder `sums`, else to their own. After an error the temporary files are removed. The caller
    holds the folder, and tells of an OSError.
    """
    parts = {path.with_name(f"{path.name}.part"): path for path in paths}
    try:
        yield list(parts)
        put_in_place(parts, sums)
    finally:
        for part in parts:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def record(folder: Path, sums: Mapping[str, str]) -> None:
    """Record the checksums of files that are about to be replaced.

    The previous checksum stays valid together with the new one, so a run killed before it renames the file is whole.
    """
    known = recorded(folder)
    changed = {
        name: [new, *(old for old in _current(folder / name, known.get(name, [])) if old != new)]
        for name, new in sums.items()
        if known.get(name, [])[:1] != [new]
    }
    if changed:
        value = {**known, **changed}
        write_whole(folder / CHECKSUMS, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def _current(path: Path, sums: list[str]) -> list[str]:
    """Of a file's recorded checksums the one it has: the older one where a kill came before the file was replaced."""
    if len(sums) > 1 and path.is_file() and (found := checksum(path)) in sums:
        return [found]
    return sums[:1]


def record_all(folder: Path) -> None:
    """Record the checksums of all files in a folder that is written and not yet in its place, in its subfolders too."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUMS)
    record(folder, {str(path.relative_to(folder)): checksum(path) for path in found})


def remove(path: Path, folder: Path | None = None) -> None:
    """Delete a file, if it is there, and its checksum in `folder`, else its own."""
    path.unlink(missing_ok=True)
    folder = folder or path.parent
    known = recorded(folder)
    if known.pop(str(path.relative_to(folder)), None) is not None:
        write_whole(folder / CHECKSUMS, orjson.dumps(known, option=orjson.OPT_INDENT_2) + b"\n")


def forget_missing(folder: Path) -> None:
    """Drop the checksums of files that are not there, once that has been reported: needed files are written again."""
    known = recorded(folder)
    there = {name: sums for name, sums in known.items() if (folder / name).exists()}
    if len(there) < len(known):
        write_whole(folder / CHECKSUMS, orjson.dumps(there, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def cure_of(folder: Path) -> str:
    """What to do about a damaged file of a run folder: one that a server keeps has no command that writes it again."""
    return SERVED if is_kept(folder) else AGAIN


def is_kept(folder: Path) -> bool:
    """Whether a server keeps the folder: it has verdicts, and no file that a run writes before it asks."""
    return (folder / VERDICTS).exists() and not any((folder / name).exists() for name in (LOCK, KEYS, GOLD, SUMMARY))


def refuse_special(folder: Path) -> None:
    """DataError where a pipe or a device lies in a folder, or a link to one: reading it may never end.

    The files of a folder that somebody else made are opened by their names, whatever they are.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            mode = entry.stat().st_mode if not entry.is_file(follow_symlinks=False) else stat.S_IFREG
        except OSError:  # a link to nothing
            continue
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise DataError("a pipe or a device in the place of a file, which is not read: remove it", path=entry.path)


def check(folder: Path, *names: str) -> None:
    """Raise DataError where one of the files is not as it was written. Folders without checksums are not checked."""
    for name, problem in changed_files(folder, *names).items():
        raise DataError(f"{problem}; {cure_of(folder)}", path=str(folder / name))


def check_made(path: Path) -> None:
    """Raise DataError where a file of items that Dikast wrote has changed since; others are not checked.

    Its checksum is in its folder or in the one above.
    """
    for folder in (path.parent, path.parent.parent):
        name = str(path.relative_to(folder))
        for problem in changed_files(folder, name).values() if (folder / CHECKSUMS).is_file() else ():
            cure = "restore it, or recreate it with the command that made it; edit copies in other folders"
            raise DataError(f"{problem}; {cure}", path=str(path))


def check_model(folder: Path) -> None:
    """Raise DataError where a file of a model's folder has changed since it was written; the card may be edited."""
    found = changed_files(folder)
    found.pop("README.md", None)
    for name, problem in found.items():
        cure = f"write or copy the model again; if you changed the file yourself, remove {folder / CHECKSUMS}"
        raise DataError(f"{problem}; {cure}", path=str(folder / name))


def changed_files(folder: Path, *names: str) -> dict[str, str]:
    """The files that are missing or differ from their recorded checksum, and how; all recorded ones without `names`."""
    refuse_special(folder)
    known, found = recorded(folder), {}
    for name in names or known:
        if name not in known:
            continue
        if not (folder / name).exists():
            found[name] = "the file is missing, although it was written"
        elif not (folder / name).is_file():
            found[name] = "this is not a file any more: remove it"
        elif checksum(folder / name) not in known[name]:
            found[name] = "the file has changed since it was written (checksum)"
    return found


def checksum(path: Path) -> str:
    """CRC-32 of a file's bytes, as 8 hexadecimal digits."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            value = zlib.crc32(block, value)
    return f"{value:08x}"


def _inside(name: str) -> bool:
    """Whether a name stays below its folder: recorded files may be removed and written again."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def recorded(folder: Path) -> dict[str, list[str]]:
    """The checksums of a folder's files: the newest, then the one before; DataError where the record is damaged."""
    path = folder / CHECKSUMS
    try:
        value: Any = orjson.loads(path.read_bytes()) if path.is_file() or not path.exists() else None
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and is_machine_error(error):
            raise machine_error(error) from error
        value = None
    whole = isinstance(value, dict) and all(
        _inside(name) and isinstance(sums, list) and sums and all(isinstance(each, str) for each in sums)
        for name, sums in value.items()
    )
    if not whole:
        raise DataError("the file is damaged; remove it, and run the command that made it again", path=str(path))
    return dict(value)
