"""A stage's memory: one line for each finished task, written whole, so that a kill loses nothing that was answered."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from dikast.core.errors import DataError, RunError

ERROR = "error"  # no answer was given: asked again by the next run


class Journal:
    """Opens a stage's file for appending; a torn last line is cut off, its task is asked anew.

    Use as a context manager. One process at a time writes. Keys of finished tasks are held in memory, about 100 bytes
    each.
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
        self.done: set[str] = set()
        self._repair()

    def _repair(self) -> None:
        whole = 0
        self._file.seek(0)
        for line in self._file:
            if not line.endswith(b"\n"):
                os.ftruncate(self._file.fileno(), whole)
                break
            whole += len(line)
            record = _parsed(line, self.path)
            if record["status"] != ERROR:
                self.done.add(record["key"])

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        if record["status"] != ERROR:
            self.done.add(record["key"])


def finished(path: Path) -> Iterator[dict[str, Any]]:
    """The finished tasks of a stage in the order of the recipe, whatever order they were answered in.

    Only places and offsets are held in memory. A task that failed first and was answered later counts once.
    """
    at: dict[str, tuple[list[int], int]] = {}
    offset = 0
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                record = _parsed(line, path)
                at[record["key"]] = (record["at"], offset)
            offset += len(line)
        for _, start in sorted(at.values()):
            file.seek(start)
            yield _parsed(file.readline(), path)


def accepted(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a stage that were accepted, in the order of the recipe."""
    for record in finished(path):
        if record["status"] == "ok":
            yield from record["made"]


def _parsed(line: bytes, path: Path) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
        if not isinstance(record, dict) or not {"key", "at", "status"} <= record.keys():
            raise ValueError("not a finished task")
    except ValueError as error:
        cure = "remove this line (its task is then asked again) or restore the file"
        raise DataError(f"a damaged record ({error}): {cure}", path=str(path)) from None
    return record
