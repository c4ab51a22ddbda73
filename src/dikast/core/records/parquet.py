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
WRITING: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}  # how Parquet files are written
_ROWS = 16  # a batch, as fast as one of 256; rows with images inside can be megabytes each
_WRITTEN = 256  # rows of a row group that is written
_MOST_SHARED = 64 * 2**20  # of a column with a dictionary: each row may repeat a value of this size
_MOST_UNPACKED, _MOST_RATIO = 256 * 2**20, 200  # of a column in a row group; data beyond both limits is refused
_MOST_VALUES, _VALUES_A_BYTE = 2**24, 1000  # the same of lists, whose rows no batch divides


def rows_of(path: str) -> Iterator[dict[str, Any]]:
    """Each row as JSON values: NaN is null, bytes are data URLs, times ISO 8601; structs leave out their nulls."""
    pq = require("pyarrow.parquet", "parquet")
    arrow = require("pyarrow", "parquet")
    if not os.path.exists(path):
        raise DataError("cannot be opened: No such file or directory; fix the path", path=path)
    done = 0
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            encoded = {field.name for field in schema if (field.metadata or {}).get(b"dikast") == b"json"}
            for batch in file.iter_batches(batch_size=_batch_rows(file, path)):
                rows = [{key: _cell(value, key in encoded) for key, value in row.items()} for row in batch.to_pylist()]
                yield from rows
                done += len(rows)
    except (arrow.ArrowException, OSError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[
            0
        ]  # ValueError: text that is not, JSON that is not
        told = f"not a sound Parquet file ({reason}, after {done:,} rows): write or download it again"
        raise DataError(told, path=path) from None


def _batch_rows(file: Any, path: str) -> int:
    """How many rows to unpack at once, so that little data that stands for much cannot fill the memory.

    A few bytes can stand for gigabytes: as a compressed page, as a dictionary whose one value every row repeats, or as
    a list of one repeated value. DataError if the column's metadata show that.
    """
    rows, found = _ROWS, file.metadata
    for group, number in itertools.product(range(found.num_row_groups), range(found.num_columns)):
        column = found.row_group(group).column(number)
        packed, unpacked, values = column.total_compressed_size, column.total_uncompressed_size, column.num_values
        in_lists = file.schema.column(number).max_repetition_level > 0
        if (unpacked > _MOST_UNPACKED and unpacked > _MOST_RATIO * packed) or (
            in_lists and values > _MOST_VALUES and values > _VALUES_A_BYTE * packed
        ):
            raise DataError(
                f"row group {group + 1}: {packed:,} bytes would unpack to {unpacked:,} and {values:,} values, which no"
                " data does: leave this column out, or write the file again without compression if you trust it",
                path=path, field=column.path_in_schema,
            )  # fmt: skip
        if column.has_dictionary_page and unpacked > _MOST_SHARED:
            rows = 1
    return rows


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

    The columns and their types are known only at the end, so the rows are first written to a temporary file next to
    `path`. Text, whole numbers of 64 bits, floats and booleans become columns of that type; any other or mixed column
    becomes JSON.
    """
    pq = require("pyarrow.parquet", "parquet")
    columns, n = Columns(), 0
    with tempfile.TemporaryFile(dir=os.path.dirname(path) or ".") as waiting:
        for row in rows:
            n += 1
            waiting.write(row + b"\n")
            columns.see(orjson.loads(row))
        waiting.seek(0)
        with pq.ParquetWriter(path, columns.schema(), **WRITING) as writer:
            while batch := [orjson.loads(line) for line in itertools.islice(waiting, _WRITTEN)]:
                writer.write_table(columns.table(batch))
    return n


class Columns:
    """The columns of rows that are JSON objects: first `see` all of them, then make tables of some."""

    def __init__(self) -> None:
        self._kinds: dict[str, set[str]] = {}

    def see(self, row: Mapping[str, Any]) -> None:
        """Note the types in each column."""
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
