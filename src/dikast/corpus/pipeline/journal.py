"""The journal of a stage: one line for each finished task, written at once, so that a kill loses no written answer.

Each line ends with a checksum (`core.runs.lines`); lines written by earlier versions have none.
"""

import os
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from dikast.core.errors import DataError, RunError
from dikast.core.output_folder import check_in_place, identity_of, lock
from dikast.core.runs.lines import open_record, seal_record, with_line_break
from dikast.core.runs.run_files import changed_files, remove, write_checked
from dikast.core.text import in_shell

ERROR = "error"  # no answer: the next run asks again


class Journal:
    """Opens a stage's file for appending; an incomplete last line is cut off and its task asked again.

    Use it as a context manager. One process writes at a time; RunError if another does. DataError for a damaged line.
    It holds 8 bytes for each finished task; that any of a million new tasks is taken for one of a million finished ones
    has probability 5e-8. A journal that is removed or replaced while it is open is a RunError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab+")
        except OSError as error:
            raise RunError(f"{path}: cannot write here ({error.strerror}); choose another --out") from error
        try:
            if not lock(self._file, path):
                raise RunError(f"{path}: another process is building here; wait for it or choose another --out")
            self._done = self._repair()
            self._asked = np.zeros(len(self._done), bool)
            self.identity = identity_of(self._file.fileno())
        except BaseException:
            self._file.close()
            raise

    def _repair(self) -> NDArray[np.uint64]:
        whole, found = 0, array("Q")
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                os.ftruncate(self._file.fileno(), whole)
                if (mended := with_line_break(line)) is None:
                    break
                self._file.write(mended)  # only its line break was missing
                self._file.flush()
                line = mended
            whole += len(line)
            record = parsed(line, self.path, number)
            if record["status"] != ERROR:
                found.append(_digest(record["key"]))
        return np.sort(np.array(found, np.uint64))

    def has(self, key: str) -> bool:
        """Whether an earlier run finished the task with this key, which is then known to be asked."""
        digest = np.uint64(_digest(key))
        at = int(self._done.searchsorted(digest))
        found = at < len(self._done) and bool(self._done[at] == digest)
        if found:
            self._asked[at] = True
        return found

    def leave_unasked(self) -> list[dict[str, Any]]:
        """Once all tasks went through `has`: the finished ones that were not among them, which `finished` leaves out.

        They belong to answers of an earlier stage that were lost and are others now. Their keys are kept in a file
        beside the journal, made anew by each run; the answers stay in the journal.
        """
        left = set(self._done[~self._asked].tolist())
        beside = _beside(self.path)
        remove(beside, beside.parent)
        if not left:
            return []
        found = [record for _, record in _settled(self._file, self.path) if _digest(record["key"]) in left]
        write_checked(beside, orjson.dumps([record["key"] for record in found]))
        return found

    def check_in_place(self) -> None:
        """RunError where the journal is no longer at its path."""
        check_in_place(self.path, self.identity)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what a full disk left in the buffer; `append` has reported it
            self._file.close()

    def append(self, record: dict[str, Any]) -> None:
        """Append one finished task in a single write."""
        self.check_in_place()
        try:
            self._file.write(seal_record(record))
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"{self.path}: writing failed ({error.strerror}); what was answered before is kept"
            ) from error


def finished(path: Path) -> Iterator[dict[str, Any]]:
    """The finished tasks of a stage in the order of the recipe, in whatever order they were answered.

    A task that failed first and was answered later counts once; one that only failed, or that the last run did not ask
    (`Journal.leave_unasked`), is left out. If answers came out of order, 8 bytes and 4 for each
    component of the place are held in memory for each task.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        last: list[int] = []
        ordered, unasked = True, _unasked(path)
        for _, record in _settled(file, path, unasked):
            ordered, last = ordered and last <= record["at"], record["at"]
        if ordered:
            yield from (record for _, record in _settled(file, path, unasked))
            return
        for start in _starts(file, path, unasked):
            file.seek(start)
            yield parsed(file.readline(), path)


def _beside(path: Path) -> Path:
    return path.with_suffix(".unasked.json")


def _unasked(path: Path) -> frozenset[str]:
    """The keys of finished tasks that the last run did not ask."""
    beside = _beside(path)
    if not beside.exists():
        return frozenset()
    if changed_files(beside.parent, beside.name):
        raise DataError("is damaged: remove it, and run the build again", path=str(beside))
    return frozenset(orjson.loads(beside.read_bytes()))


def _settled(file: BinaryIO, path: Path, unasked: frozenset[str] = frozenset()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each answered task with the offset of its line; an incomplete last line is left out."""
    file.seek(0)
    offset = 0
    for number, line in enumerate(file, 1):
        record = parsed(line, path, number) if line.endswith(b"\n") else None
        if record is not None and record["status"] != ERROR and record["key"] not in unasked:
            yield offset, record
        offset += len(line)


def _starts(file: BinaryIO, path: Path, unasked: frozenset[str]) -> Iterator[int]:
    """The offsets of the tasks' lines, in the order of their places."""
    starts, places, width = array("q"), array("i"), 1
    for offset, record in _settled(file, path, unasked):
        width = len(record["at"])
        starts.append(offset)
        places.extend(record["at"])
    order = np.lexsort(np.array(places, np.int32).reshape(-1, width).T[::-1])
    yield from (starts[i] for i in order)


def accepted(path: Path) -> Iterator[dict[str, Any]]:
    """The accepted records of a stage in the order of the recipe."""
    for record in finished(path):
        if record["status"] == "ok":
            yield from record["made"]


def _digest(key: str) -> int:
    return int(key[:16], 16)


def parsed(line: bytes, path: Path, number: int | None = None) -> dict[str, Any]:
    """The task on a line of a journal; DataError, with the cure, if the line has changed since it was written."""
    try:
        record = open_record(line)
        if not {"key", "at", "status"} <= record.keys():
            raise ValueError("not a finished task")
        places = isinstance(record["at"], list) and all(type(each) is int for each in record["at"])
        made = record["status"] != "ok" or isinstance(record.get("made"), list)
        if not (isinstance(record["key"], str) and places and made):
            raise ValueError("fields of a finished task with values of other kinds")
        _digest(record["key"])
    except ValueError as error:
        command = f"`dikast doctor {in_shell(path.parent)} --repair`"
        cure = f"{command} moves the line to a file beside it, and its task is asked again"
        raise DataError(f"a damaged record ({error}): {cure}", path=str(path), line=number) from None
    return record
