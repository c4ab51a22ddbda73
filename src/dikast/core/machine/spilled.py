"""Values that may outgrow memory: most of them lie in temporary files, which the system writes out as it needs room.

Temporary files are in the system's folder for them (`TMPDIR`), have no name, and vanish with the process.
"""

import errno
import mmap
import os
import sys
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

HELD = 1 << 23  # bytes that are held in memory before a file takes them
_BLOCK = 1 << 16  # numbers that are held in memory before a file takes them
_PARTS = 64  # of which each is grouped alone


def zeros(code: Literal["B", "I", "Q"], n: int) -> "memoryview[int]":
    """`n` whole numbers, all 0, of the size that `code` names as in `array`."""
    size = n * array(code).itemsize
    if size <= HELD:
        return memoryview(bytearray(size)).cast(code)
    with _naming_the_folder(), tempfile.TemporaryFile() as file:
        return memoryview(_mapped(file, size)).cast(code)


def sorted_keys(blocks: Iterable[bytes], width: int) -> "np.ndarray[Any, Any]":
    """Keys of `width` bytes each, which the blocks hold one after the other, in order."""
    import numpy as np

    with _naming_the_folder(), tempfile.SpooledTemporaryFile(HELD) as file:
        for block in blocks:
            file.write(block)
        if (size := file.tell()) <= HELD:
            file.seek(0)
            keys = np.zeros(size // width, f"S{width}")
            file.readinto(keys.view(np.uint8).data)
        else:
            keys = np.frombuffer(_mapped(file, size), f"S{width}")
    keys.sort()
    return keys


def _mapped(file: IO[bytes], size: int) -> mmap.mmap:
    """The first `size` bytes of a file; they stay when it is closed. OSError where there is no room for them."""
    if sys.platform == "linux":  # else a full disk would kill the process at a later write
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
    return mmap.mmap(file.fileno(), size)


@contextmanager
def _naming_the_folder() -> Iterator[None]:
    """Where there is no room, the error names the folder of temporary files."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error


class GroupedNumbers:
    """Numbers, each of a group that has a name; `code` is their type as in `array`."""

    def __init__(self, code: str) -> None:
        self._code, self._spilled = code, 0
        self._groups, self._numbers = array("q"), array(code)
        self._file: IO[bytes] | None = None
        self._blocks: list[tuple[int, list[int]]] = []  # where each begins in the file, and where its parts end

    def __len__(self) -> int:
        return self._spilled + len(self._numbers)

    def add(self, group: str, number: float) -> None:
        """Note one number."""
        self._groups.append(hash(group))
        self._numbers.append(number)  # type: ignore[arg-type]  # whole where the code is of whole numbers
        if len(self._numbers) == _BLOCK:
            with _naming_the_folder():
                self._spill()

    def __iter__(self) -> "Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]":
        """Groups (k,) as whole numbers and numbers (k,), in at most 64 parts; no group is in two of them."""
        import numpy as np

        if self._file is not None and self._numbers:
            with _naming_the_folder():
                self._spill()
        kinds = np.dtype(np.int64), np.dtype(self._code)
        if self._file is None:
            if self._numbers:
                yield np.array(self._groups, kinds[0]), np.array(self._numbers, kinds[1])
            return
        for part in range(_PARTS):
            groups: list[np.ndarray[Any, Any]] = []
            numbers: list[np.ndarray[Any, Any]] = []
            for start, ends in self._blocks:
                first, end = (ends[part - 1] if part else 0), ends[part]
                for found, kind, at in ((groups, kinds[0], start), (numbers, kinds[1], start + 8 * ends[-1])):
                    self._file.seek(at + first * kind.itemsize)
                    found.append(np.frombuffer(self._file.read((end - first) * kind.itemsize), kind))
            yield np.concatenate(groups), np.concatenate(numbers)

    def _spill(self) -> None:
        """Write what is held as one block, in the order of its parts, so that each part is read alone."""
        import numpy as np

        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as this is used
            weakref.finalize(self, self._file.close)
        groups = np.array(self._groups, np.int64)
        parts = groups.view(np.uint64) % np.uint64(_PARTS)
        order = np.argsort(parts, kind="stable")
        start = self._file.seek(0, 2)
        self._file.write(groups[order].tobytes())
        self._file.write(np.array(self._numbers, self._code)[order].tobytes())
        self._blocks.append((start, np.bincount(parts.astype(np.int64), minlength=_PARTS).cumsum().tolist()))
        self._spilled += len(self._numbers)
        del self._groups[:], self._numbers[:]
