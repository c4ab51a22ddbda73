"""What is wrong with a run folder, and mending what can be mended without throwing anything away."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from dikast.core.errors import DataError, RunError
from dikast.core.runs.files import KEYS, LOCK, VERDICTS, changed_files
from dikast.core.runs.lines import open_line, seal
from dikast.core.runs.reading import is_in, load_keys
from dikast.core.runs.rubrics import scales_of
from dikast.core.verdict import Status, verdict_from

DAMAGED = "verdicts.damaged.jsonl"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that was found. `line` is None for what concerns a whole file."""

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
    `unsealed` (of a version before checksums) lines pass the checks of their content only. `stale` lines are of
    another configuration, `repeated` ones answer a question a second time; both count for nothing and do no harm.
    """

    lines: int
    verified: int
    rewritten: int
    unsealed: int
    stale: int
    repeated: int
    problems: tuple[Problem, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing needs mending."""
        return not self.problems


def examine_run(folder: Path) -> Health:
    """Check every file of a run folder; reads only. Raises DataError for a folder that is no run."""
    path = folder / VERDICTS
    if not path.is_file():
        raise DataError(f"this is not a run: it has no {VERDICTS}", path=str(folder))
    again = "run the same command again: it writes the file anew and asks nothing twice"
    problems: list[Problem] = []
    try:
        problems += [Problem(name, None, what, again) for name, what in changed_files(folder).items()]
        orjson.loads((folder / LOCK).read_bytes())
    except FileNotFoundError:
        problems.append(Problem(LOCK, None, "the file is missing", again))
    except DataError as error:
        problems.append(Problem(Path(error.path).name, None, "the file is damaged", "remove it, then " + again))
    except (OSError, ValueError):
        problems.append(Problem(LOCK, None, "the file is not JSON", again))
    seals = {"verified": 0, "rewritten": 0, "unsealed": 0}
    keys = load_keys(folder) if (folder / KEYS).is_file() else None
    scales = scales_of(folder)
    lines = stale = repeated = 0
    answered: set[str] = set()
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.endswith(b"\n"):
                what = "the last line is torn: the run was killed, or is going on"
                problems.append(Problem(VERDICTS, number, what, "run the same command again"))
                break
            lines += 1
            try:
                record, state = open_line(raw, path=VERDICTS, line=number, scales=scales)
            except DataError as error:
                told = str(error).removeprefix(f"{VERDICTS}:{number}: ").split(": `dikast doctor")[0]
                problems.append(Problem(VERDICTS, number, told, "`dikast doctor RUN --repair`"))
                continue
            seals[state] += 1
            if keys is not None and not is_in([record["key"].encode()], keys)[0]:
                stale += 1
            elif record["status"] != Status.ENGINE_ERROR:
                repeated += record["key"] in answered
                answered.add(record["key"])
    return Health(lines, seals["verified"], seals["rewritten"], seals["unsealed"], stale, repeated, tuple(problems))


def repair_run(folder: Path) -> int:
    """Move damaged lines of `verdicts.jsonl` to `verdicts.damaged.jsonl` and seal rewritten ones; returns how many.

    The next run asks their questions again. Raises RunError when another process is writing, or the disk refuses.
    """
    path, part = folder / VERDICTS, folder / f"{VERDICTS}.part"
    if not path.is_file():
        raise DataError(f"this is not a run: it has no {VERDICTS}", path=str(folder))
    scales, moved = scales_of(folder), 0
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with part.open("wb") as whole, (folder / DAMAGED).open("ab") as aside:
                for number, raw in enumerate(file, 1):
                    try:
                        record, state = open_line(raw, path=VERDICTS, line=number, scales=scales)
                        whole.write(seal(verdict_from(record)) if state == "rewritten" else raw)
                    except (DataError, KeyError, TypeError, ValueError):
                        moved += 1
                        aside.write(raw if raw.endswith(b"\n") else raw + b"\n")
                for each in (aside, whole):  # what was moved is on the disk before it leaves its old place
                    each.flush()
                    os.fsync(each.fileno())
            part.replace(path)
    except BlockingIOError as error:
        raise RunError(f"{folder}: another process is writing to this run; wait for it") from error
    except OSError as error:
        part.unlink(missing_ok=True)
        raise RunError(f"{folder}: cannot repair ({error.strerror}); nothing was changed") from error
    if not (folder / DAMAGED).stat().st_size:
        (folder / DAMAGED).unlink()
    return moved
