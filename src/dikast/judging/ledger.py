"""The ledger of a run folder: `verdicts.jsonl`, append-only, one finished verdict a line.

A line is handed to the operating system in one write as soon as it exists, so killing the process loses nothing that
was written. A last line torn by a crash is cut off when the folder is opened again; its question is asked again, since
its answer was never fully written. One process at a time writes, held by an advisory lock.
"""

import errno
import os
import stat
from pathlib import Path
from types import TracebackType

from dikast.core.errors import RunError
from dikast.core.output_folder import identity_of, lock, make_folder, refuse_links
from dikast.core.runs.lines import seal, with_line_break
from dikast.core.runs.run_files import VERDICTS
from dikast.core.verdict import Verdict


class Ledger:
    """Opens a run folder for writing. Use as a context manager; raises RunError when the folder cannot be used,
    UserError where a file of it is a link to one elsewhere.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / VERDICTS
        self.repaired = 0  # bytes of a torn last line that were cut off
        try:
            make_folder(folder)
            refuse_links(folder)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(f"{folder}: cannot write here ({error.strerror}); choose another --out") from error
        if not stat.S_ISREG(os.fstat(self._file).st_mode):  # a pipe or a device would be read for ever
            os.close(self._file)
            raise RunError(f"{self.path} is not a regular file; choose another --out")
        try:
            if not lock(self._file, folder):
                raise RunError(f"{folder}: another process is writing to this run; wait for it or choose another --out")
        except RunError:
            os.close(self._file)
            raise
        self._identity = identity_of(self._file)
        self._end = self._repair()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Flush to disk and release the folder."""
        if self._file >= 0:
            try:
                os.fsync(self._file)
            finally:
                os.close(self._file)
                self._file = -1

    def append(self, verdict: Verdict) -> None:
        """Write one verdict. When the disk is full the folder is left whole and RunError says what is kept.

        A folder that was removed or replaced meanwhile is a RunError too: continuing would pay for answers that are
        lost.
        """
        self.append_lines(seal(verdict))

    def append_lines(self, lines: bytes) -> None:
        """Write whole lines of verdicts that are sealed already; raises as `append`, and keeps those that fitted."""
        written = 0
        self._check_still_there()
        try:
            while written < len(lines):
                written += os.pwrite(self._file, lines[written:], self._end + written)
        except OSError as error:
            self._end += lines.rfind(b"\n", 0, written) + 1
            os.ftruncate(self._file, self._end)  # freeing space works on a full disk
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            why = "no space is left" if full else f"writing failed: {error.strerror}"
            raise RunError(
                f"{self.path}: {why}. Everything answered before is kept; make room and run the same command again."
            ) from error
        self._end += len(lines)

    def _check_still_there(self) -> None:
        if identity_of(self.path) != self._identity:
            raise RunError(
                f"{self.folder}: the run folder was removed or replaced while it was being written; the run stops here."
                " Put the folder back and run the same command again."
            )

    def _repair(self) -> int:
        """Cut a last line that has no line break off; returns the length of the complete lines.

        A last line that only lost its line break is kept.
        """
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
            torn = os.pread(self._file, size - end, end)
            if (whole := with_line_break(torn)) is not None:
                os.pwrite(self._file, whole, end)
                os.ftruncate(self._file, end + len(whole))
                return end + len(whole)
            self.repaired = size - end
            os.ftruncate(self._file, end)
        return end
