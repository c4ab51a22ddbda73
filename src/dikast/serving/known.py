"""A cache of verdicts: the run folder of a server."""

import os
from pathlib import Path

import orjson

from dikast.core.errors import DataError, RunError
from dikast.core.rubric import Rubric
from dikast.core.runs.judge_lock import check_version
from dikast.core.runs.lines import open_line
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run_files import RUBRICS, VERDICTS, changed_files, write_checked
from dikast.core.verdict import Status, Verdict, verdict_from
from dikast.judging.ledger import Ledger

_NO_ANSWER = Status.ENGINE_ERROR  # asked again


class KnownVerdicts:
    """A ledger with an index from keys to offsets; about 150 bytes of memory per verdict. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._ledger = Ledger(folder)
        try:
            check_version(folder)
            self._path = folder / VERDICTS
            self._places: dict[bytes, int] = {}
            self._end = 0
            with self._path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    record, _ = open_line(line, path=str(self._path), line=number)
                    if record["status"] != _NO_ANSWER:
                        self._places.setdefault(bytes.fromhex(record["key"]), self._end)
                    self._end += len(line)
            self._rubrics, self._told = _rubrics(folder)
            self._file = os.open(self._path, os.O_RDONLY)
        except BaseException:
            self._ledger.close()
            raise

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Verdict | None:
        """The verdict with a key."""
        at = self._places.get(bytes.fromhex(key))
        if at is None:
            return None
        line, size = b"", 1 << 14
        while not line.endswith(b"\n"):
            line = os.pread(self._file, size, at)
            cut, whole = line.find(b"\n"), len(line) < size
            line, size = (line[: cut + 1], size) if cut >= 0 or whole else (b"", size * 4)
            if whole:
                break
        try:
            record, _ = open_line(line, path=str(self._path), line=0)
            if record["key"] != key:
                raise DataError("another verdict is in its place", path=str(self._path))
        except DataError:
            told = "a verdict in it has changed since it was written: stop the server, then"
            raise RunError(f"{self._path}: {told} `dikast doctor FOLDER --repair`, and start it again") from None
        return verdict_from(record)

    def add(self, verdict: Verdict, rubric: Rubric) -> None:
        """Append a verdict if its key is new, and its rubric on first use."""
        name = bytes.fromhex(verdict.key)
        if name in self._places:
            return
        assert verdict.hashes is not None
        if verdict.hashes.rubric not in self._told:
            self._told.add(verdict.hashes.rubric)
            self._rubrics += orjson.dumps({"hash": verdict.hashes.rubric, "rubric": rubric.to_dict()}) + b"\n"
            write_checked(self._path.with_name(RUBRICS), self._rubrics)
        self._ledger.append(verdict)
        if verdict.status is not _NO_ANSWER:
            self._places[name] = self._end
        self._end = self._path.stat().st_size

    def close(self) -> None:
        """Flush to disk (fsync)."""
        os.close(self._file)
        self._ledger.close()


def _rubrics(folder: Path) -> tuple[bytes, set[str]]:
    """The file of rubrics as it is, and the hashes of those in it. DataError where it is damaged."""
    for problem in changed_files(folder, RUBRICS).values():
        raise DataError(
            f"{problem}; restore a copy of it, or name another folder with --out", path=str(folder / RUBRICS)
        )
    if not (folder / RUBRICS).exists():
        return b"", set()
    return (folder / RUBRICS).read_bytes(), set(load_rubrics(folder))
