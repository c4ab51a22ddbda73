"""The run folder's memory: `verdicts.jsonl`, append-only, one finished verdict a line.

A line is handed to the operating system in one write as soon as it exists, so killing the process loses nothing that
was written. A last line torn by a crash is cut off when the folder is opened again; its question is asked anew, since
its answer had never been written whole. One process at a time writes, held by an advisory lock.
"""

import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import orjson

from dikast.core.errors import DataError, RunError
from dikast.core.verdict import Status, Verdict, verdict_from

if TYPE_CHECKING:
    import numpy as np

VERDICTS = "verdicts.jsonl"
KEYS = "keys.txt"
_KEY_AT = slice(8, 40)  # a line starts with {"key":" and 32 hexadecimal digits
_RETRY = (Status.ENGINE_ERROR,)  # no answer was given, so running again asks again


class Ledger:
    """Opens a run folder for writing. Use as a context manager; raises RunError when the folder cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / VERDICTS
        self.repaired = 0  # bytes of a torn last line that were cut off
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(f"{folder}: cannot write here ({error.strerror}); choose another --out") from error
        if not stat.S_ISREG(os.fstat(self._file).st_mode):  # a pipe or a device would be read for ever
            os.close(self._file)
            raise RunError(f"{self.path} is not a regular file; choose another --out")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                why = "another process is writing to this run; wait for it or choose another --out"
            else:
                why = f"the file system cannot lock files ({error.strerror}); choose an --out on another"
            raise RunError(f"{folder}: {why}") from error
        self._end = self._repair()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Flush to the disk itself and let the folder go."""
        if self._file >= 0:
            try:
                os.fsync(self._file)
            finally:
                os.close(self._file)
                self._file = -1

    def append(self, verdict: Verdict) -> None:
        """Write one verdict. When the disk is full the folder is left whole and RunError says what is kept."""
        line = orjson.dumps(verdict) + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.pwrite(self._file, line[written:], self._end + written)
        except OSError as error:
            os.ftruncate(self._file, self._end)  # freeing space works on a full disk
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            why = "no space is left" if full else f"writing failed: {error.strerror}"
            raise RunError(
                f"{self.path}: {why}. Everything answered before is kept; make room and run the same command again."
            ) from error
        self._end += len(line)

    def _repair(self) -> int:
        """Cut a last line that has no line break off; returns the length of what is whole."""
        size = os.fstat(self._file).st_size
        end, step = size, 1 << 20
        while end > 0:
            start = max(0, end - step)
            at = os.pread(self._file, end - start, start).rfind(b"\n")
            if at >= 0:
                end = start + at + 1
                break
            end = start
        if end < size:
            self.repaired = size - end
            os.ftruncate(self._file, end)
        return end


def answered(folder: Path) -> "np.ndarray[Any, Any]":
    """The keys that need not be asked again, sorted, as an array of 32-byte strings (32 MB a million)."""
    import numpy as np

    path, done = folder / VERDICTS, bytearray()
    for number, line in _lines(path):
        if _record(line, path, number)["status"] not in _RETRY:
            done += line[_KEY_AT]
    keys = np.frombuffer(done, dtype="S32")
    keys.sort()
    return keys


def is_in(keys: list[bytes], known: "np.ndarray[Any, Any] | None") -> list[bool]:
    """For each key whether it is among the sorted `known`; None knows nothing."""
    import numpy as np

    if known is None or not len(known) or not keys:
        return [False] * len(keys)
    wanted = np.array(keys, dtype="S32")
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: list[bool] = (known[at] == wanted).tolist()
    return found


def load_keys(folder: Path) -> "np.ndarray[Any, Any] | None":
    """The keys of the run's current configuration, sorted; None when the run has not been planned."""
    import numpy as np

    path = folder / KEYS
    if not path.exists():
        return None
    lines = np.fromfile(path, dtype="S33")  # 32 hexadecimal digits and a line break
    keys = lines.astype("S32")
    keys.sort()
    return keys


def current_records(folder: Path) -> Iterator[dict[str, Any]]:
    """The records that count: of the current configuration, and the answer rather than the failure before it."""
    path, keys = folder / VERDICTS, load_keys(folder)
    if not path.exists():
        raise DataError(f"this is not a run: it has no {VERDICTS}", path=str(folder))
    failed: dict[str, dict[str, Any]] = {}
    lines = _lines(path)
    while block := list(itertools.islice(lines, 1024)):  # lines, not records: what lives long is dear to collect
        counts = is_in([line[_KEY_AT] for _, line in block], keys) if keys is not None else [True] * len(block)
        for (number, line), counted in zip(block, counts, strict=True):
            record = _record(line, path, number)
            if not counted:
                continue
            if record["status"] in _RETRY:
                failed[record["key"]] = record
            else:
                failed.pop(record["key"], None)
                yield record
    yield from failed.values()


def current_verdicts(folder: Path) -> Iterator[Verdict]:
    """As `current_records`, as values."""
    for record in current_records(folder):
        try:
            yield verdict_from(record)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"a record of another version: {error}", path=str(folder / VERDICTS)) from error


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines; a torn last one is not there."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield number, line


def _record(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
        if not isinstance(record, dict) or len(record["key"]) != 32 or "status" not in record:
            raise ValueError("not a verdict")
    except (ValueError, KeyError, TypeError) as error:
        cure = "remove this line (its question is then asked again) or restore the file"
        raise DataError(f"a damaged record ({error}): {cure}", path=str(path), line=number) from None
    return record


def write_whole(path: Path, data: bytes) -> None:
    """Write a small file so that readers see the old content or the new, never a part."""
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
