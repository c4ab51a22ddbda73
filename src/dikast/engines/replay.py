"""Recorded replies instead of a model: the same judge again, offline."""

import gzip
import shutil
import tempfile
import threading
import weakref
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

import numpy as np

from dikast.core.canonical import canonical_json, read_json
from dikast.core.errors import DataError, EngineError, UserError
from dikast.core.runs.lines import open_line
from dikast.core.runs.run_files import VERDICTS
from dikast.core.verdict import Marker, logprobs_from
from dikast.engines.base import Closing, Completion, Request

_LONGEST = 64 * 2**20  # bytes; a longer line is no record
_FOLLOW_UPS = ("continue", "constrain")  # a judge's follow-ups have the key of the question and `/` and this
_NOT_ASKED = ("engine_error", "bad_item")  # statuses of verdicts without a reply


class RecordedReply(NamedTuple):
    """A recorded reply: a completion without its key."""

    text: str
    finish: str = "stop"
    refusal: str = ""
    label_logprobs: Mapping[str, float] | None = None
    marker: Marker | None = None
    unread: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one question: its key, or its subject, or both, and the reply to each way of asking.

    The plain question is `ask`; follow-ups of a judge are `continue` and `constrain`. `criterion` None fits any.
    `failed` says why there are no replies.
    """

    key: str | None
    item: str | None
    responses: tuple[int, ...]
    criterion: str | None
    sample: int
    replies: Mapping[str, RecordedReply]
    failed: str = ""

    def names(self) -> list[tuple[str, str]]:
        """The names by which it can be looked up, the most certain first."""
        question = [("question", question_of(self.item, self.responses, self.criterion, self.sample))]
        return ([("key", self.key)] if self.key is not None else []) + (question if self.item is not None else [])


class _Place(NamedTuple):
    offset: int
    length: int


class ReplayEngine(Closing):
    """Answers from a JSONL file (plain or .gz) or a run folder; one line a reply, see `docs/mocks.md`.

    A request is looked up by its key, then by what `about` says it concerns. What was not recorded is an EngineError
    `not_recorded`; a question that was recorded under several keys is `ambiguous`. Only positions are held in memory
    (20 bytes a name, at most two names a line); a .gz file is unpacked into a temporary one. Raises UserError for a
    file that cannot be read, DataError with the line for a record that is ambiguous or occurs twice.
    """

    def __init__(self, target: str) -> None:
        path = Path(target)
        self._is_run = path.is_dir()
        self._path = path / VERDICTS if path.is_dir() else path
        self.name = f"replay:{target}"
        self._file = _opened(self._path)
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._digest = ""
        self._index()

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers one request at a time, in order."""
        for request in requests:
            if self._file.closed:
                raise UserError(f"{self.name}: this engine is closed; open it again")
            try:
                yield self._reply(request)
            except EngineError as error:
                yield Completion(request.key, finish="error", error=error)

    def identity(self) -> Mapping[str, Any]:
        """The hash of the recorded bytes, unpacked; not where they lie."""
        return {"engine": "replay", "content": self._digest}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def versions(self) -> Mapping[str, str]:
        """Nothing but the package itself."""
        return {}

    def _reply(self, request: Request) -> Completion:
        key, slash, how = request.key.rpartition("/")
        asked = how if slash and how in _FOLLOW_UPS else "ask"
        about = request.about
        names = [("key", request.key if asked == "ask" else key)]
        if "item" in about:
            responses, sample = tuple(about.get("responses", (0,))), int(about.get("sample", 0))
            for criterion in (about.get("criterion"), None):
                names.append(("question", question_of(str(about["item"]), responses, criterion, sample)))
        for name in names:
            found = [(place, record) for place, record in self._find(name) if name in record.names()]
            if self._is_run:
                found = _once(found)
            if len(found) > 1:
                lines = " and ".join(str(self._line(place.offset)) for place, _ in found[:2])
                told = f"{self._path}: lines {lines} both answer {_request_name(request)}: keep one, or ask by key"
                raise EngineError(told, kind="ambiguous")
            if found:
                return self._spoken(request, found[0][1], asked)
        raise EngineError(f"{self._path} holds no reply for {_request_name(request)}", kind="not_recorded")

    def _spoken(self, request: Request, record: Record, how: str) -> Completion:
        if how not in record.replies:
            why = record.failed or f"it was not asked in the way {how!r}"
            raise EngineError(f"{self._path} holds no reply for {_request_name(request)}: {why}", kind="not_recorded")
        reply = record.replies[how]
        read = reply.label_logprobs
        if read is None or request.readout is None or not read.keys() >= set(request.readout.labels):
            return Completion(request.key, reply.text, reply.finish, refusal=reply.refusal, unread=reply.unread)
        read = {label: read[label] for label in request.readout.labels}
        return Completion(request.key, reply.text, reply.finish, read, reply.marker, reply.refusal)

    def _index(self) -> None:
        hashes, offsets, lengths = array("Q"), array("Q"), array("I")
        digest = blake2b(digest_size=16)
        at = 0
        for number, raw in _lines(self._file, self._path):
            digest.update(raw)
            if raw.strip() and (record := self._record(raw, number)) is not None:
                for name in record.names():
                    hashes.append(_hash(name))
                    offsets.append(at)
                    lengths.append(len(raw))
            at += len(raw)
        self._digest = digest.hexdigest()
        unsorted = np.frombuffer(hashes, np.uint64) if hashes else np.zeros(0, np.uint64)
        order = np.argsort(unsorted, kind="stable")
        self._hashes = unsorted[order]
        self._offsets = np.array(offsets, np.uint64)[order]
        self._lengths = np.array(lengths, np.uint32)[order]
        self._refuse_twins()

    def _record(self, raw: bytes, number: int) -> Record | None:
        if self._is_run:
            if not raw.endswith(b"\n"):
                return None  # the last line of a run that was killed
            if b',"crc":"' in raw:
                open_line(raw, path=str(self._path), line=number)  # a changed line does not count as a recorded reply
        try:
            return record_from(read_json(raw), path=str(self._path), line=number)
        except ValueError as error:
            raise DataError(f"not a JSON object: {error}", path=str(self._path), line=number) from None

    def _refuse_twins(self) -> None:
        """DataError for two lines with one key, or two without key on one question, since the reply is ambiguous."""
        for i in np.flatnonzero(self._hashes[1:] == self._hashes[:-1]).tolist():
            first, second = (self._read(self._place(j)) for j in (i, i + 1))
            shared = [name for name in first.names() if name in second.names()]
            keyed = first.key is not None and second.key is not None
            if self._is_run and first.key == second.key:
                continue  # a failed call and the answer after it, or a repeated line: one question
            if any(kind == "key" or not keyed for kind, _ in shared):
                lines = sorted(self._line(self._place(j).offset) for j in (i, i + 1))
                raise DataError(
                    f"answers the same as line {lines[0]} ({shared[0][1]}): keep one of the two",
                    path=str(self._path),
                    line=lines[1],
                )

    def _find(self, name: tuple[str, str]) -> Iterator[tuple[_Place, Record]]:
        low, high = (int(np.searchsorted(self._hashes, np.uint64(_hash(name)), side)) for side in _SIDES)
        for i in range(low, high):
            place = self._place(i)
            yield place, self._read(place)

    def _place(self, i: int) -> _Place:
        return _Place(int(self._offsets[i]), int(self._lengths[i]))

    def _read(self, place: _Place) -> Record:
        with self._lock:
            self._file.seek(place.offset)
            raw = self._file.read(place.length)
        try:
            return record_from(read_json(raw), path=str(self._path), line=None)
        except (ValueError, DataError):
            raise EngineError(f"{self._path} changed while it was replayed: open it again", kind="changed") from None

    def _line(self, offset: int) -> int:
        with self._lock:
            self._file.seek(0)
            line, left = 1, offset
            while left and (chunk := self._file.read(min(left, 2**20))):
                line += chunk.count(b"\n")
                left -= len(chunk)
        return line


def _once(found: list[tuple[_Place, Record]]) -> list[tuple[_Place, Record]]:
    """Of records with one key the first answer, or the first failure where there is none, as a run counts them."""
    kept: dict[str | None, tuple[_Place, Record]] = {}
    for place, record in sorted(found, key=lambda each: each[0].offset):
        if record.key not in kept or (kept[record.key][1].failed and not record.failed):
            kept[record.key] = (place, record)
    return list(kept.values())


_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


def question_of(item: str | None, responses: tuple[int, ...], criterion: str | None, sample: int) -> str:
    """One text for a question, to look it up and to name it in messages."""
    return canonical_json([item, list(responses), criterion, sample]).decode()


def record_from(value: object, *, path: str, line: int | None) -> Record:
    """Read one recorded reply, or one verdict of a run; DataError names the field that is missing or wrong."""

    def wrong(message: str, field: str) -> DataError:
        return DataError(message, path=path, line=line, field=field)

    if not isinstance(value, dict):
        raise DataError("a record is an object with 'key' or 'item', and 'reply' or 'raw'", path=path, line=line)
    asked = value.get("question", value)
    asked = asked if isinstance(asked, dict) else {}
    key, item, criterion = value.get("key"), asked.get("item"), asked.get("criterion")
    for field, text in (("key", key), ("item", item), ("criterion", criterion)):
        if text is not None and not isinstance(text, str):
            raise wrong(f"expected text, got {text!r}", field)
    if key is None and item is None:
        raise wrong("a record needs a 'key', or an 'item' with 'responses', 'criterion' and 'sample'", "key")
    responses, sample = asked.get("responses", [0]), asked.get("sample", 0)
    if not isinstance(responses, list) or not all(type(each) is int for each in responses):
        raise wrong(f"expected a list of the responses shown, counted from 0, got {responses!r}", "responses")
    if type(sample) is not int:
        raise wrong(f"expected a whole number, got {sample!r}", "sample")
    spoken = "reply" if "reply" in value else "raw"
    if not isinstance(value.get(spoken), str):
        raise wrong("a record needs the reply as text, in 'reply' or 'raw'", spoken)
    status = value.get("status")
    unasked = f"it is recorded as {status}: {value.get('reason', '')}" if status in _NOT_ASKED else ""
    return Record(key, item, tuple(responses), criterion, sample, _replies(value, value[spoken], unasked), unasked)


def _replies(value: Mapping[str, Any], text: str, unasked: str) -> dict[str, RecordedReply]:
    """The first reply to each way of asking; a record without attempts answers the plain question."""
    found: dict[str, RecordedReply] = {}
    attempts = value.get("attempts")
    for attempt in attempts if isinstance(attempts, list) else ():
        if isinstance(attempt, dict) and attempt.get("status") not in _NOT_ASKED:
            found.setdefault(
                str(attempt.get("how", "ask")),
                _said(attempt, str(attempt.get("raw", "")), str(attempt.get("finish") or "stop")),
            )
    finish = "length" if value.get("finish") == "length" else "stop"  # other tools use other words for it
    return found or ({} if unasked else {"ask": _said(value, text, finish)})


def _said(value: Mapping[str, Any], text: str, finish: str) -> RecordedReply:
    read = value.get("label_logprobs")
    return RecordedReply(
        text,
        finish,
        str(value.get("refusal") or ""),
        logprobs_from(read) if isinstance(read, dict) else None,
        cast(Marker, value["marker"]) if value.get("marker") in ("own", "forced") else None,
        str(value.get("unread") or ""),
    )


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb") if path.suffix != ".gz" else _unpacked(path)
    except (OSError, EOFError, zlib.error) as error:
        hint = "; name a run folder or a file of replies"
        if path.name == VERDICTS:
            hint = f": a run folder holds {VERDICTS}"
        raise UserError(f"replay:{path}: {getattr(error, 'strerror', None) or error}{hint}") from error


def _unpacked(path: Path) -> IO[bytes]:
    spool = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the engine
    try:
        with gzip.open(path, "rb") as packed:
            shutil.copyfileobj(packed, spool)
    except BaseException:
        spool.close()
        raise
    spool.seek(0)
    return cast(IO[bytes], spool)


def _lines(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    while raw := file.readline(_LONGEST + 1):
        number += 1
        if len(raw) > _LONGEST:
            raise DataError(
                f"the line is longer than {_LONGEST >> 20} MiB: this is not a record", path=str(path), line=number
            )
        yield number, raw


def _hash(name: tuple[str, str]) -> int:
    return int.from_bytes(blake2b(repr(name).encode(), digest_size=8).digest(), "little")


def _request_name(request: Request) -> str:
    about = request.about
    if "item" not in about:
        return f"key {request.key!r}"
    parts = [f"responses {list(about.get('responses', (0,)))}", f"criterion {about.get('criterion')!r}"]
    return f"item {about['item']!r} ({', '.join(parts)}, sample {about.get('sample', 0)}) or key {request.key!r}"
