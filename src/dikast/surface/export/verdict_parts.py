"""Parquet files of a run's verdicts as they stand in `verdicts.jsonl`, also while the run is still writing it."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import UserError, require
from dikast.core.output_folder import one_writer, replacing
from dikast.core.records.parquet import JSON_FIELD, WRITING
from dikast.core.runs.lines import open_line, whole_lines
from dikast.core.runs.run_files import VERDICTS

_LINES = 1 << 16  # verdicts of a part
_BATCH = 1024
_SOURCE = b"dikast.lines"  # metadata of a part: the BLAKE2b of the lines that it holds
_JSON = ("distribution", "claims")


def write_verdict_parts(run: Path, folder: Path) -> int:
    """Write each 65,536 lines of verdicts as `verdicts-00000.parquet`, ...; returns how many rows the parts have.

    Parts whose lines have not changed are kept, so a second call adds what has come since; the last part is shorter
    until its lines are complete. Memory is the lines of one part. UserError for a folder that is no run of one judge.
    """
    if not (run / VERDICTS).is_file():
        raise UserError(f"{run}: has no {VERDICTS}: name the run folder of one judge")
    rows = number = 0
    with one_writer(folder, "exporting"):
        lines = whole_lines(run / VERDICTS)
        while block := list(itertools.islice(lines, _LINES)):
            part = folder / f"verdicts-{number:05d}.parquet"
            source = hashlib.blake2b(b"".join(raw for _, raw in block), digest_size=16).hexdigest().encode()
            if _source_of(part) != source:
                _write(part, block, source, str(run / VERDICTS))
            rows, number = rows + len(block), number + 1
        for left in folder.glob("verdicts-*.parquet"):  # of a file that was longer, before its repair
            if left.name >= f"verdicts-{number:05d}.parquet" and _source_of(left):
                left.unlink()
    return rows


def _source_of(part: Path) -> bytes | None:
    """The fingerprint of the lines in a part; None where there is no such part."""
    if not part.is_file():
        return None
    parquet = require("pyarrow.parquet", "parquet")
    arrow = require("pyarrow", "parquet")
    try:
        found: bytes | None = (parquet.read_schema(part).metadata or {}).get(_SOURCE)
    except (arrow.ArrowException, OSError):  # it is written again
        return b""
    if found is None:
        raise UserError(f"{part}: was not written by `dikast export`: name another folder")
    return found


def _write(part: Path, block: Sequence[tuple[int, bytes]], source: bytes, path: str) -> None:
    parquet = require("pyarrow.parquet", "parquet")
    arrow = require("pyarrow", "parquet")
    schema = _schema(arrow).with_metadata({_SOURCE: source})
    with replacing(str(part)) as temporary, parquet.ParquetWriter(temporary, schema, **WRITING) as writer:
        rows = _rows(block, path)
        while batch := list(itertools.islice(rows, _BATCH)):
            writer.write_table(arrow.Table.from_pylist(batch, schema=schema))


def _rows(block: Sequence[tuple[int, bytes]], path: str) -> Iterator[dict[str, Any]]:
    for number, raw in block:
        record, _ = open_line(raw, path=path, line=number)
        hashes = record["hashes"] or {}
        row = {**record, **hashes, **record["usage"], "item_hash": hashes.get("item"), **record["question"]}
        yield row | {name: orjson.dumps(row[name]).decode() if row[name] else None for name in _JSON}


def _schema(arrow: Any) -> Any:
    """The columns: those of a verdict's line, with its question and its usage taken apart, without its attempts."""
    text, number, whole = arrow.string(), arrow.float64(), arrow.int64()
    types = {
        "key": text, "item": text, "criterion": text, "responses": arrow.list_(whole), "sample": whole, "status": text,
        "reason": text, "label": text, "score": number, "expected": number, "distribution": text, "mass": number,
        "marker": text, "conflict": arrow.bool_(), "feedback": text, "raw": text, "claims": text, "server": text,
        "tokens_in": whole, "tokens_cached": whole, "tokens_out": whole, "seconds": number, "cost": number,
        "judge": text, "format": text, "rubric": text, "item_hash": text,
    }  # fmt: skip
    fields = [arrow.field(name, type, metadata=JSON_FIELD if name in _JSON else None) for name, type in types.items()]
    return arrow.schema(fields)
