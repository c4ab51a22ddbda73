"""Which verdicts of a run folder count.

Those of the current configuration (`keys.txt`), once each: the first answer to a question, or the failed call where
nothing answered it. A last line without a line break (a run that is being written, or was killed) is ignored.
"""

import itertools
from array import array
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from dikast.core.errors import DataError
from dikast.core.machine.spilled import sorted_keys, zeros
from dikast.core.runs.lines import open_line, whole_lines, with_line_break
from dikast.core.runs.opening import tell_reader
from dikast.core.runs.rubrics import scales_of
from dikast.core.runs.run_files import KEYS, VERDICTS, check
from dikast.core.scale import Scale
from dikast.core.verdict import Status, Verdict, verdict_from

if TYPE_CHECKING:
    import numpy as np

_BLOCK = 1024
_SMALL = 8_000_000  # bytes of verdicts whose records may be held in memory, about 50 MB of them
_WIDTH = 32  # hexadecimal digits of a key
_HELD = 10_000  # records in memory while they are put in order
_RETRY = Status.ENGINE_ERROR  # statuses without an answer, which are asked again by the next run


class RunReader:
    """The records of a run that count, each with its line number; what was left out is counted while iterating.

    `stale` lines are of another configuration, `repeated` ones answer a question a second time. Raises DataError with
    file and line for a damaged record.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / VERDICTS
        self.stale = self.repeated = 0
        if not self.path.exists():
            raise DataError(f"this is not a run: it has no {VERDICTS}", path=str(folder))

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        self.stale = self.repeated = 0
        tell_reader(self.folder)
        check(self.folder, KEYS)
        keys = load_keys(self.folder)
        seen = _Seen(keys)
        failed: dict[str, int] = {}  # the line of each; their records, which may be all, are read again at the end
        records = all_records(self.folder)
        while block := list(itertools.islice(records, _BLOCK)):
            for (record, line), place in zip(block, seen.places([r["key"] for r, _ in block]), strict=True):
                key = record["key"]
                if place is None:
                    self.stale += 1
                elif seen.answered(place):
                    self.repeated += 1
                elif record["status"] == _RETRY:
                    self.repeated += key in failed
                    failed[key] = line
                else:
                    self.repeated += failed.pop(key, None) is not None
                    seen.mark(place)
                    yield record, line
        if failed:
            yield from records_at(self.folder, set(failed.values()))


class _Seen:
    """Which of the current keys were answered: a byte a key where they are listed, a set where they are not."""

    def __init__(self, keys: "np.ndarray[Any, Any] | None") -> None:
        self._keys = keys
        self._marks = zeros("B", 0 if keys is None else len(keys))
        self._names: set[str] = set()

    def places(self, names: list[str]) -> list[Any]:
        """The position of each name, None for one that is not current."""
        if self._keys is None:
            return list(names)
        if not len(self._keys):
            return [None] * len(names)
        wanted, at = _find([name.encode() for name in names], self._keys)
        return [place if same else None for place, same in zip(at.tolist(), wanted, strict=True)]

    def answered(self, place: Any) -> bool:
        return place in self._names if self._keys is None else bool(self._marks[place])

    def mark(self, place: Any) -> None:
        if self._keys is None:
            self._names.add(place)
        else:
            self._marks[place] = 1


class _Decoded:
    """Records that are decoded as far as a reader has come, and kept for the next one; no reader changes them."""

    def __init__(self, records: Iterator[tuple[dict[str, Any], int]]) -> None:
        self._left = records
        self._known: list[tuple[dict[str, Any], int]] = []
        self._damage: DataError | None = None  # where it ends, for each reader that comes so far

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        for place in itertools.count():
            if place == len(self._known):
                try:
                    found = next(self._left, None)
                except DataError as error:
                    self._damage = error
                if self._damage is not None:
                    raise self._damage
                if found is None:
                    return
                self._known.append(found)
            yield self._known[place]


_small: ContextVar[dict[tuple[Any, ...], _Decoded] | None] = ContextVar("_small", default=None)


@contextmanager
def decoded_once() -> Iterator[None]:
    """Inside, the verdicts of a run of at most 8 MB are decoded once, however often and by whom they are read.

    An audit reads a run to learn what it asked, and then its rows; a report reads again what it shows of them.
    """
    if _small.get() is not None:
        yield
        return
    token = _small.set({})
    try:
        yield
    finally:
        _small.reset(token)


def all_records(folder: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Every whole record of a run folder in order, with its line number; DataError for a damaged one."""
    path, held = folder / VERDICTS, _small.get()
    about = path.stat()
    if held is None or about.st_size > _SMALL:
        return _decoded(folder)
    key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
    return iter(held.setdefault(key, _Decoded(_decoded(folder))))


def _decoded(folder: Path) -> Iterator[tuple[dict[str, Any], int]]:
    path, scales = folder / VERDICTS, _Scales(folder)
    for number, raw in whole_lines(path):
        yield open_line(raw, path=str(path), line=number, scales=scales)[0], number


def records_at(folder: Path, lines: Collection[int]) -> Iterator[tuple[dict[str, Any], int]]:
    """The records on these lines, with their numbers; others are passed over undecoded. DataError as `all_records`."""
    path, scales = folder / VERDICTS, _Scales(folder)
    if _small.get() is not None and path.stat().st_size <= _SMALL:
        yield from (each for each in all_records(folder) if each[1] in lines)
        return
    for number, raw in whole_lines(path):
        if number in lines:
            yield open_line(raw, path=str(path), line=number, scales=scales)[0], number


def current_records(folder: Path) -> Iterator[dict[str, Any]]:
    """The records that count."""
    for record, _ in RunReader(folder):
        yield record


def current_verdicts(folder: Path) -> Iterator[Verdict]:
    """As `current_records`, as values."""
    for record, line in RunReader(folder):
        yield _value(record, folder / VERDICTS, line)


def _value(record: dict[str, Any], path: Path, line: int) -> Verdict:
    try:
        return verdict_from(record)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"a record of another version: {error}", path=str(path), line=line) from error


def verdicts_in_order(folder: Path) -> Iterator[Verdict]:
    """As `current_verdicts`, in the order of the questions, whichever answers came first.

    Up to 10,000 questions their records are held in memory. Of more, 80 bytes for each question and 8 for each line
    are, and each line is decoded twice.
    """
    import numpy as np

    if not (folder / KEYS).exists():
        yield from current_verdicts(folder)
        return
    keys = np.fromfile(folder / KEYS, dtype="S33").astype("S32")
    order = np.argsort(keys, kind="stable")
    keys, lines, reader = keys[order], np.zeros(len(keys), np.int64), RunReader(folder)
    held: dict[int, dict[str, Any]] = {}
    for record, line in reader:
        lines[order[np.searchsorted(keys, record["key"].encode())]] = line
        if len(keys) <= _HELD:
            held[line] = record
    if len(keys) <= _HELD:
        yield from (_value(held.pop(line), reader.path, line) for line in lines[lines > 0].tolist())
        return
    scales, starts = _Scales(folder), array("q", [0])
    with reader.path.open("rb") as file:
        for raw in file:
            starts.append(starts[-1] + len(raw))
        for line in lines[lines > 0].tolist():
            file.seek(starts[line - 1])
            raw = file.readline()
            whole = raw if raw.endswith(b"\n") else with_line_break(raw) or raw
            yield _value(open_line(whole, path=str(reader.path), line=line, scales=scales)[0], reader.path, line)


def answered(folder: Path) -> "np.ndarray[Any, Any]":
    """The keys that need not be asked again, sorted, as an array of 32-byte strings."""
    return sorted_keys(
        (record["key"].encode() for record, _ in all_records(folder) if record["status"] != _RETRY), _WIDTH
    )


def is_in(keys: list[bytes], known: "np.ndarray[Any, Any] | None") -> list[bool]:
    """For each key whether it is among the sorted `known`; none are if it is None."""
    if known is None or not len(known) or not keys:
        return [False] * len(keys)
    return _find(keys, known)[0]


def _find(keys: list[bytes], known: "np.ndarray[Any, Any]") -> tuple[list[bool], "np.ndarray[Any, Any]"]:
    """Whether each key is among the sorted `known`, and where it would be."""
    import numpy as np

    wanted = np.array(keys, dtype="S32")
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: list[bool] = (known[at] == wanted).tolist()
    return found, at


def load_keys(folder: Path) -> "np.ndarray[Any, Any] | None":
    """The keys of the run's current configuration, sorted; None when the run has not been planned."""
    import numpy as np

    def blocks(file: BinaryIO) -> Iterator[bytes]:
        while block := file.read(_BLOCK * (_WIDTH + 1)):  # a line break after each
            block = block[: len(block) // (_WIDTH + 1) * (_WIDTH + 1)]
            yield np.frombuffer(block, f"S{_WIDTH + 1}").astype(f"S{_WIDTH}").tobytes()

    path = folder / KEYS
    if not path.exists():
        return None
    with path.open("rb") as file:
        return sorted_keys(blocks(file), _WIDTH)


class _Scales(Mapping[str, Scale]):
    """The scales of a run's rubrics by hash, read when a line first needs them; none where they cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, Scale] | None = None

    def _read(self) -> dict[str, Scale]:
        if self._found is None:
            self._found = scales_of(self._folder)
        return self._found

    def __getitem__(self, name: str) -> Scale:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())
