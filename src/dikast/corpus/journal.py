"""A stage's memory: one line for each finished task, written whole, so that a kill loses nothing that was answered."""

import fcntl
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

ERROR = "error"  # no answer was given: asked again by the next run


class Journal:
    """Opens a stage's file for appending; a torn last line is cut off, its task is asked anew.

    Use as a context manager. One process at a time writes. Of what earlier runs finished 8 bytes a task are held in
    memory; that one of a million new tasks is taken for one of a million finished ones has odds of 5e-8.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab+")
        except OSError as error:
            raise RunError(f"{path}: cannot write here ({error.strerror}); choose another --out") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise RunError(f"{path}: another process is building here; wait for it or choose another --out") from error
        try:
            self._done = self._repair()
        except BaseException:
            self._file.close()
            raise

    def _repair(self) -> NDArray[np.uint64]:
        whole, found = 0, array("Q")
        self._file.seek(0)
        for line in self._file:
            if not line.endswith(b"\n"):
                os.ftruncate(self._file.fileno(), whole)
                break
            whole += len(line)
            record = _parsed(line, self.path)
            if record["status"] != ERROR:
                found.append(_digest(record["key"]))
        return np.sort(np.array(found, np.uint64))

    def has(self, key: str) -> bool:
        """Whether an earlier run finished the task of this key."""
        digest = np.uint64(_digest(key))
        at = int(self._done.searchsorted(digest))
        return at < len(self._done) and bool(self._done[at] == digest)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what a full disk left in the buffer; `append` has told of it
            self._file.close()

    def append(self, record: dict[str, Any]) -> None:
        """Write one finished task in one write."""
        try:
            self._file.write(orjson.dumps(record) + b"\n")
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"{self.path}: writing failed ({error.strerror}); what was answered before is kept"
            ) from error


def finished(path: Path) -> Iterator[dict[str, Any]]:
    """The finished tasks of a stage in the order of the recipe, whatever order they were answered in.

    A task that failed first and was answered later counts once, one that only failed is left out. Where answers came
    out of order, 8 bytes and 4 for each part of the place are held in memory for each task.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        last: list[int] = []
        ordered = True
        for _, record in _settled(file, path):
            ordered, last = ordered and last <= record["at"], record["at"]
        if ordered:
            yield from (record for _, record in _settled(file, path))
            return
        for start in _starts(file, path):
            file.seek(start)
            yield _parsed(file.readline(), path)


def _settled(file: BinaryIO, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each task that was answered, with where its line begins; a torn last line is left out."""
    file.seek(0)
    offset = 0
    for line in file:
        if line.endswith(b"\n") and (record := _parsed(line, path))["status"] != ERROR:
            yield offset, record
        offset += len(line)


def _starts(file: BinaryIO, path: Path) -> Iterator[int]:
    """Where the lines of the tasks begin, in the order of their places."""
    starts, places, width = array("q"), array("i"), 1
    for offset, record in _settled(file, path):
        width = len(record["at"])
        starts.append(offset)
        places.extend(record["at"])
    order = np.lexsort(np.array(places, np.int32).reshape(-1, width).T[::-1])
    yield from (starts[i] for i in order)


def accepted(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a stage that were accepted, in the order of the recipe."""
    for record in finished(path):
        if record["status"] == "ok":
            yield from record["made"]


def _digest(key: str) -> int:
    return int(key[:16], 16)


def _parsed(line: bytes, path: Path) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
        if not isinstance(record, dict) or not {"key", "at", "status"} <= record.keys():
            raise ValueError("not a finished task")
        places = isinstance(record["at"], list) and all(type(each) is int for each in record["at"])
        made = record["status"] != "ok" or isinstance(record.get("made"), list)
        if not (isinstance(record["key"], str) and places and made):
            raise ValueError("fields of a finished task with values of other kinds")
        _digest(record["key"])
    except ValueError as error:
        cure = "remove this line (its task is then asked again) or restore the file"
        raise DataError(f"a damaged record ({error}): {cure}", path=str(path)) from None
    return record
