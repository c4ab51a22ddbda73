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
_PART = 1 << 18  # numbers that are grouped together


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
        """Groups (k,) as whole numbers and numbers (k,), in parts of bounded size; no group is in two of them."""
        import numpy as np

        several = 1 + len(self) // _PART
        for part in range(several if self._spilled else 0):
            chosen = [(groups[at], numbers[at]) for groups, numbers, at in self._blocks(part, several)]
            yield np.concatenate([each for each, _ in chosen]), np.concatenate([each for _, each in chosen])
        if not self._spilled and self._numbers:
            yield np.array(self._groups), np.array(self._numbers)

    def _blocks(self, part: int, of: int) -> "Iterator[tuple[Any, Any, Any]]":
        import numpy as np

        def split(groups: Any, numbers: Any) -> tuple[Any, Any, Any]:
            return groups, numbers, groups.view(np.uint64) % np.uint64(of) == part

        kinds = np.dtype(np.int64), np.dtype(self._code)
        assert self._file is not None
        self._file.seek(0)
        for _ in range(self._spilled // _BLOCK):
            groups, numbers = (np.frombuffer(self._file.read(_BLOCK * kind.itemsize), kind) for kind in kinds)
            yield split(groups, numbers)
        if self._numbers:
            yield split(np.array(self._groups), np.array(self._numbers))

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as this is used
            weakref.finalize(self, self._file.close)
        self._file.seek(0, 2)
        self._file.write(self._groups.tobytes())
        self._file.write(self._numbers.tobytes())
        self._spilled += len(self._numbers)
        del self._groups[:], self._numbers[:]
