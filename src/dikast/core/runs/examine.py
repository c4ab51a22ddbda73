"""Finding damage in an output folder, and repairing it without discarding anything."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dikast.core.canonical import read_json
from dikast.core.errors import DataError, RunError
from dikast.core.output_folder import lock, move, refuse_links
from dikast.core.runs.current_verdicts import is_in, load_keys
from dikast.core.runs.judge_lock import newer, unreadable
from dikast.core.runs.lines import open_line, seal
from dikast.core.runs.opening import UNCHECKED, checksums_are_gone
from dikast.core.runs.rubrics import scales_of
from dikast.core.runs.run_files import (
    AGAIN,
    CHECKSUMS,
    COMBINED,
    GOLD,
    KEYS,
    LOCK,
    META,
    NOTES,
    PREFERENCES,
    RANKINGS,
    RUBRICS,
    SHEETS,
    SUMMARY,
    TOTALS,
    VERDICTS,
    changed_files,
    checksum,
    record,
    recorded,
    refuse_special,
)
from dikast.core.text import counted
from dikast.core.verdict import Status, verdict_from

DAMAGED = "verdicts.damaged.jsonl"
REPAIR = "`dikast doctor FOLDER --repair`"
LineCheck = Callable[[bytes, Path, int], object]  # raises DataError for a damaged line
_FILES = (KEYS, RUBRICS, GOLD, META, SHEETS, LOCK, NOTES, SUMMARY, COMBINED, PREFERENCES, TOTALS, RANKINGS)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem that was found. `line` is None for what concerns a whole file."""

    file: str
    line: int | None
    what: str
    cure: str

    def __str__(self) -> str:
        where = self.file + (f":{self.line}" if self.line is not None else "")
        return f"{where}: {self.what}" + (f"\n    -> {self.cure}" if self.cure else "")


@dataclass(frozen=True, slots=True)
class Health:
    """What an examination of a run folder found.

    `lines` whole lines in `verdicts.jsonl`, of which `verified` by their checksum; `rewritten` by another program and
    `unsealed` (of a version before checksums) lines pass the checks of their content only. `stale` lines are of another
    configuration, `repeated` ones answer a question a second time; both are ignored and harmless. `files` have a
    checksum of their own.
    """

    lines: int
    files: int
    verified: int
    rewritten: int
    unsealed: int
    stale: int
    repeated: int
    problems: tuple[Problem, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing needs repair."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Part:
    """One output folder that was checked inside another: what kind it is, and how much of it has a checksum."""

    path: str
    kind: str
    lines: int
    files: int

    def __str__(self) -> str:
        return f"{self.path}: {self.kind}, {counted(self.lines, 'line')} and {counted(self.files, 'file')}"


@dataclass(frozen=True, slots=True)
class Examined:
    """What an examination of another folder found: `lines` of journals or logs and `files` with a checksum.

    `parts` are the output folders in it, by their path from it, for a folder that is none itself.
    """

    kind: str
    lines: int
    files: int
    problems: tuple[Problem, ...]
    parts: tuple[Part, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing needs repair."""
        return not self.problems


def examine_files(folder: Path, cure: str = AGAIN, root: Path | None = None) -> tuple[int, list[Problem]]:
    """How many files of a folder have a checksum, and those that differ from it; names are relative to `root`."""
    place = "" if root is None or root == folder else f"{folder.relative_to(root)}/"
    try:
        problems = [Problem(place + name, None, what, cure) for name, what in changed_files(folder).items()]
        return len(recorded(folder)), problems
    except DataError:
        return 0, [Problem(place + CHECKSUMS, None, "the file is damaged", f"{REPAIR}, or remove it and {cure}")]


def examine_lines(paths: Iterable[Path], check: LineCheck, cure: str, root: Path) -> tuple[int, list[Problem]]:
    """How many whole lines journals or logs hold, and what is wrong with them."""
    problems, lines = list[Problem](), 0
    for path in paths:
        name = str(path.relative_to(root))
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    what = "the last line is torn: the process was killed, or is going on"
                    problems.append(Problem(name, number, what, "run the command that made it again"))
                    break
                lines += 1
                try:
                    check(raw, path, number)
                except DataError as error:
                    problems.append(Problem(name, number, _bare(error, path, number), cure))
    return lines, problems


def repair_lines(folder: Path, paths: Iterable[Path], check: LineCheck) -> int:
    """Move damaged lines of the journals or logs of a folder to files beside them; returns how many."""
    moved = 0
    for path in paths:

        def keep(raw: bytes, number: int, path: Path = path) -> bytes:
            check(raw, path, number)
            return raw

        moved += set_aside(path, keep)
    if (folder / CHECKSUMS).exists():
        record_anew(folder)
    return moved


def _bare(error: DataError, path: Path, number: int) -> str:
    """The message of an error without the place and the cure, which are shown separately."""
    return str(error).removeprefix(f"{path}:{number}: ").removeprefix(f"{path}: ").split(": `dikast doctor")[0]


def set_aside(path: Path, keep: Callable[[bytes, int], bytes]) -> int:
    """Move the lines of a file for which `keep` raises to `NAME.damaged.jsonl` in the same folder; returns how many.

    The others are written as `keep` returns them. RunError when another process is writing, or the disk refuses.
    """
    part, aside, moved = path.with_name(f"{path.name}.part"), damaged(path), 0
    refuse_links(path.parent)
    try:
        with path.open("rb") as file:
            if not lock(file, path.parent):
                raise RunError(f"{path.parent}: another process is writing to this run; wait for it")
            with part.open("wb") as whole, aside.open("ab") as apart:
                for number, raw in enumerate(file, 1):
                    try:
                        whole.write(keep(raw, number))
                    except (DataError, KeyError, TypeError, ValueError):
                        moved += 1
                        apart.write(raw if raw.endswith(b"\n") else raw + b"\n")
                for each in (apart, whole):  # moved lines are on the disk before they are removed from their old place
                    each.flush()
                    os.fsync(each.fileno())
            move(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise RunError(f"{path.parent}: cannot repair ({error.strerror}); nothing was changed") from error
    if not aside.stat().st_size:
        aside.unlink()
    return moved


def damaged(path: Path) -> Path:
    """Where the damaged lines of a file are moved."""
    return path.with_name(f"{path.stem}.damaged{path.suffix}")


def record_anew(folder: Path, *names: str) -> bool:
    """Record the checksums of files as they are where the record is gone or damaged, which is then moved aside."""
    try:
        recorded(folder)
        if (folder / CHECKSUMS).exists():
            return False
    except DataError:
        move(folder / CHECKSUMS, damaged(folder / CHECKSUMS))
    record(folder, {name: checksum(folder / name) for name in names if (folder / name).is_file()})
    return True


def examine_run(folder: Path) -> Health:
    """Check every file of a run folder; reads only. Raises DataError for a folder that is no run."""
    path = folder / VERDICTS
    refuse_special(folder)
    if not path.is_file():
        raise DataError(f"this is not a run: it has no {VERDICTS}", path=str(folder))
    files, problems = examine_files(folder)
    try:
        read_json((folder / LOCK).read_bytes())
    except FileNotFoundError:
        if (folder / KEYS).exists():  # a folder that a server keeps has neither plan nor lock
            problems.append(Problem(LOCK, None, "the file is missing", AGAIN))
    except (OSError, ValueError):
        problems.append(Problem(LOCK, None, "the file is not JSON", AGAIN))
    for found in (unreadable(folder), newer(folder)):
        if found is not None:
            what, _, cure = str(found).partition(f"field {found.field!r}: ")[2].rpartition(": ")
            problems.append(Problem(LOCK, found.line, f"field {found.field!r}: {what}", cure))
    if checksums_are_gone(folder):
        problems.append(Problem(CHECKSUMS, None, UNCHECKED, f"run the command that made it again, or {REPAIR}"))
    seals = {"verified": 0, "rewritten": 0, "unsealed": 0}
    keys = load_keys(folder) if (folder / KEYS).is_file() else None
    scales = scales_of(folder)
    lines = stale = repeated = 0
    answered, failed = set[str](), set[str]()
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.endswith(b"\n"):
                what = "the last line is torn: the run was killed, or is going on"
                problems.append(Problem(VERDICTS, number, what, "run the command that made it again"))
                break
            lines += 1
            try:
                record, state = open_line(raw, path=VERDICTS, line=number, scales=scales)
            except DataError as error:
                told = str(error).removeprefix(f"{VERDICTS}:{number}: ").split(": `dikast doctor")[0]
                problems.append(Problem(VERDICTS, number, told, REPAIR))
                continue
            seals[state] += 1
            if keys is not None and not is_in([record["key"].encode()], keys)[0]:
                stale += 1
            elif record["status"] != Status.ENGINE_ERROR:
                repeated += record["key"] in answered
                answered.add(record["key"])
            else:
                failed.add(record["key"])
    if keys is not None and (gone := _counted(folder, len(keys)) - len(answered | failed)) > 0:
        told = f"{counted(gone, 'verdict')} that {SUMMARY} counts {'is' if gone == 1 else 'are'} not in it"
        cure = "restore the file, or run the command that made it again, which asks their questions"
        problems.append(Problem(VERDICTS, None, told, cure))
    return Health(
        lines, files, seals["verified"], seals["rewritten"], seals["unsealed"], stale, repeated, tuple(problems)
    )


def _counted(folder: Path, questions: int) -> int:
    """How many verdicts the summary of a run counts; 0 where it is that of other questions, or cannot be read.

    Also 0 where a repair moved lines aside after it was written: what is missing then was told before the repair.
    """
    summary, aside = folder / SUMMARY, damaged(folder / VERDICTS)
    try:
        if aside.is_file() and aside.stat().st_mtime_ns > summary.stat().st_mtime_ns:
            return 0
        told = read_json(summary.read_bytes())
        return int(told["verdicts"]) if told["questions"] == questions else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def repair_run(folder: Path) -> int:
    """Move damaged lines of `verdicts.jsonl` to `verdicts.damaged.jsonl` and seal rewritten ones; returns how many.

    The next run asks their questions again. Checksums that are gone or damaged are recorded again from the files as
    they are. Raises RunError when another process is writing, or the disk refuses.
    """
    path = folder / VERDICTS
    if not path.is_file():
        raise DataError(f"this is not a run: it has no {VERDICTS}", path=str(folder))
    scales = scales_of(folder)

    def keep(raw: bytes, number: int) -> bytes:
        record, state = open_line(raw, path=VERDICTS, line=number, scales=scales)
        return seal(verdict_from(record)) if state == "rewritten" else raw

    moved = set_aside(path, keep)
    if checksums_are_gone(folder) or (folder / CHECKSUMS).exists():
        record_anew(folder, *_FILES)
    return moved
