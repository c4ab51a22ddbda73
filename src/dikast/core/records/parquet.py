"""Parquet, by the extra `parquet`: rows in small batches, and columns that hold JSON where a type cannot say it."""

import base64
import itertools
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import orjson

from dikast.core.errors import DataError, require

JSON_FIELD = {b"dikast": b"json"}  # metadata of a text column whose cells are JSON
_KINDS = {str: "text", int: "whole", float: "float", bool: "truth", type(None): "null"}
_ROWS = 256  # a batch; rows with images inside can be megabytes each


def rows_of(path: str) -> Iterator[dict[str, Any]]:
    """Each row as JSON values: NaN is null, bytes are data URLs, times ISO 8601; structs leave out their nulls."""
    pq = require("pyarrow.parquet", "parquet")
    arrow = require("pyarrow", "parquet")
    if not os.path.exists(path):
        raise DataError("cannot be opened: No such file or directory; mend the path", path=path)
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            encoded = {field.name for field in schema if (field.metadata or {}).get(b"dikast") == b"json"}
            for batch in file.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist():
                    yield {key: _cell(value, key in encoded) for key, value in row.items()}
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"not a sound Parquet file ({reason}): write or download it again", path=path) from None


def _cell(value: Any, encoded: bool) -> Any:
    return orjson.loads(value) if encoded and value is not None else _plain(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, dict):  # a struct has all its keys in every row
        return {str(key): _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return "data:application/octet-stream;base64," + base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal | timedelta) else repr(value)


def write_rows(path: str, rows: Iterable[bytes]) -> int:
    """Write JSON objects, given as JSON; returns how many.

    The columns and their types are known only at the end, so the rows wait in a file beside `path` meanwhile. Text,
    whole numbers of 64 bits, floats and booleans become columns of that type; any other or mixed column becomes JSON.
    """
    pq = require("pyarrow.parquet", "parquet")
    columns, n = Columns(), 0
    with tempfile.TemporaryFile(dir=os.path.dirname(path) or ".") as waiting:
        for row in rows:
            n += 1
            waiting.write(row + b"\n")
            columns.see(orjson.loads(row))
        waiting.seek(0)
        with pq.ParquetWriter(path, columns.schema(), compression="zstd") as writer:
            while batch := [orjson.loads(line) for line in itertools.islice(waiting, _ROWS)]:
                writer.write_table(columns.table(batch))
    return n


class Columns:
    """The columns of rows that are JSON objects: first `see` all of them, then make tables of some."""

    def __init__(self) -> None:
        self._kinds: dict[str, set[str]] = {}

    def see(self, row: Mapping[str, Any]) -> None:
        """Note what stands in each column."""
        for key, value in row.items():
            self._kinds.setdefault(key, set()).add(_kind(value))

    def schema(self) -> Any:
        """The Arrow schema that holds all that was seen."""
        arrow = require("pyarrow", "parquet")
        types = {key: _column_type(found - {"null"}, arrow) for key, found in self._kinds.items()}
        return arrow.schema(
            [
                arrow.field(key, native or arrow.string(), metadata=None if native else JSON_FIELD)
                for key, native in types.items()
            ]
        )

    def table(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """An Arrow table of `rows`, each of which was seen."""
        arrow, schema = require("pyarrow", "parquet"), self.schema()
        columns = [
            arrow.array([_stored(row.get(field.name), field.metadata is not None) for row in rows], field.type)
            for field in schema
        ]
        return arrow.Table.from_arrays(columns, schema=schema)


def _kind(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return "large"
    return _KINDS.get(type(value), "other")


def _column_type(kinds: set[str], arrow: Any) -> Any:
    """The Arrow type that holds all `kinds`, or None where only JSON does."""
    makers = {"text": arrow.string, "whole": arrow.int64, "float": arrow.float64, "truth": arrow.bool_}
    kind = kinds.pop() if len(kinds) == 1 else "other"
    return makers[kind]() if kind in makers else None


def _stored(value: Any, encode: bool) -> Any:
    return orjson.dumps(value).decode() if encode and value is not None else value
