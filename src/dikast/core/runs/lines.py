"""One verdict as one line of `verdicts.jsonl`, with a checksum; journals and logs have lines of the same kind.

A line is the verdict's JSON with one more member at the end, `"crc"`: the CRC-32, in 8 hexadecimal digits, of the
bytes of the line without that member. Lines that another program wrote again (other spacing, another order of keys)
are verified by writing them as Dikast would; where that is not possible, and for lines of versions before checksums,
the record itself is checked: its fields, its types, and its label against the scale it was judged on.
"""

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import orjson

from dikast.core.canonical import read_json
from dikast.core.errors import DataError
from dikast.core.runs.schema import misfit
from dikast.core.scale import Scale
from dikast.core.verdict import Question, Status, Verdict, verdict_from

_TAIL = b',"crc":"%08x"}\n'
_TAIL_LENGTH = 19
_ANY = ord("?")
_LIKE = b',"crc":"????????"}\n'
_SLIPS = 3  # bytes by which the end of a line may differ from that of a sealed one and still be a damaged one
_SLACK = 1e-6  # of sums of probabilities
_CHOICES = ("a", "b", "tie")
_CURE = "`dikast doctor RUN --repair` moves the line to a separate file, and its question is asked again"

_DEFAULTS: dict[str, Any] = orjson.loads(orjson.dumps(Verdict("", Question("", ""), Status.REFUSED).record()))
_ASKED = {"responses": [0], "sample": 0}

Seal = Literal["verified", "rewritten", "unsealed"]


def seal(verdict: Verdict) -> bytes:
    """The line of `verdicts.jsonl` for a verdict."""
    return seal_record(verdict.record())


def seal_record(record: Mapping[str, Any]) -> bytes:
    """The line for any record that is not empty, such as one of a build's journal or of a training log."""
    body = orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY)
    return body[:-1] + _TAIL % zlib.crc32(body)


def open_record(raw: bytes) -> dict[str, Any]:
    """The record on a line that `seal_record` wrote, or on one without a checksum, as earlier versions wrote them.

    ValueError for a line that has changed since it was written, and for one that holds no JSON object.
    """
    if is_sealed(raw):
        record: dict[str, Any] = read_json(raw)
        del record["crc"]
        return record
    if sum(a != b for a, b in zip(raw[-_TAIL_LENGTH:], _LIKE, strict=False) if b != _ANY) <= _SLIPS:
        raise ValueError("its checksum does not match: the line has changed since it was written")
    found = read_json(raw)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    sealed = found.pop("crc", None)
    if sealed is not None and sealed != f"{zlib.crc32(orjson.dumps(found)):08x}":  # another program wrote it again
        raise ValueError("its checksum does not match: the line has changed since it was written")
    return found


def is_sealed(raw: bytes) -> bool:
    """Whether a line ends with a checksum, and it fits."""
    body = raw[:-_TAIL_LENGTH]
    return bool(body) and raw.endswith(_TAIL % zlib.crc32(b"}", zlib.crc32(body)))


def open_line(
    raw: bytes, *, path: str, line: int, scales: Mapping[str, Scale] | None = None
) -> tuple[dict[str, Any], Seal]:
    """The record on a line, and how far it is verified; DataError with the cure for a line that is damaged.

    `scales` by rubric hash allow labels and scores of lines that are not verified to be checked. `rewritten` is a
    line with a checksum that another program wrote again, `unsealed` one without a checksum.
    """
    if is_sealed(raw):
        record: dict[str, Any] = read_json(raw)
        del record["crc"]
        return record, "verified"
    try:
        record = read_json(raw)
        if not isinstance(record, dict):
            raise ValueError("not an object")
        sealed = record.pop("crc", None)
        _check(record, scales or {})
        if sealed is None:
            return _whole(record), "unsealed"
        if isinstance(sealed, str) and sealed.encode() in _spellings(record):
            return record, "verified"
        if raw.startswith(b'{"key":"') or not isinstance(sealed, str):  # written as Dikast would, with changed content
            raise ValueError("its checksum does not match: the line has changed since it was written")
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"a damaged record ({_error_text(error)}): {_CURE}", path=path, line=line) from None
    return _whole(record), "rewritten"


def with_line_break(torn: bytes) -> bytes | None:
    """The whole line when a last line only lost its line break (or another byte is in its place), else None."""
    return next((line for line in (torn + b"\n", torn[:-1] + b"\n") if is_sealed(line)), None)


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers; an incomplete last one is left out."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield number, line
            elif (whole := with_line_break(line)) is not None:
                yield number, whole


def _spellings(record: dict[str, Any]) -> set[bytes]:
    """Checksums that the record would have had as Dikast writes it."""
    members = verdict_from(record).record()
    inside = b",".join(
        b'"%b":%b' % (name.encode(), orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
        for name, value in members.items()
    )
    bodies = (orjson.dumps(record), orjson.dumps(members), b"{%b}" % inside)
    return {b"%08x" % zlib.crc32(body) for body in bodies}


def _check(record: dict[str, Any], scales: Mapping[str, Scale]) -> None:
    """ValueError for a record that cannot be a verdict of this version."""
    if told := misfit(Verdict)(record):
        raise ValueError(f"the record{told}" if told.startswith(" ") else told.removeprefix("."))
    status, label, score = record["status"], record.get("label"), record.get("score")
    responses = record["question"].get("responses", [0])
    if len(record["key"]) != 32 or not record["key"].isascii():
        raise ValueError("'key' is not 32 characters of text")
    if len(responses) not in (1, 2):
        raise ValueError("'question' does not say which response or pair was asked about")
    if (label is None) is (status == Status.OK):
        raise ValueError("a verdict has either a label or a status that says why not")
    if score is not None and label is None:
        raise ValueError(f"'score' is not the number of a label: {score!r}")
    if any(
        not 0 <= share <= 1 + _SLACK
        for share in (*(record.get("distribution") or {}).values(), record.get("mass") or 0)
    ):
        raise ValueError("'distribution' and 'mass' hold probabilities")
    if record.get("conflict", False) not in ((True, False) if label is not None else (False,)):
        raise ValueError("'conflict' marks a verdict, and is true if present")
    scale = scales.get((record.get("hashes") or {}).get("rubric", ""))
    if label is not None and len(responses) > 1 and label not in _CHOICES:
        raise ValueError(f"the label {label!r} is none of a, b, tie")
    if label is not None and len(responses) == 1 and scale is not None:
        if label not in scale.labels:
            raise ValueError(f"the label {label!r} is not on the scale {scale}")
        if score != scale.value(label):
            raise ValueError(f"the score {score!r} is not that of the label {label!r} on the scale {scale}")


def _whole(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the members that it may lack, as readers expect all of them."""
    whole = _filled(record, _DEFAULTS)
    return {
        **whole,
        "question": _filled(whole["question"], _ASKED),
        "usage": _filled(whole["usage"], _DEFAULTS["usage"]),
    }


def _filled(value: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return value if value.keys() >= defaults.keys() else value | {k: v for k, v in defaults.items() if k not in value}


def _error_text(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)
