"""Rows as Arrow tables, data frames and Parquet: typed by what the columns hold."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from dikast.core.errors import require
from dikast.core.records.parquet import JSON_FIELD, WRITING
from dikast.core.runs.table_columns import CONTENT

_BATCH = 1024
_WHOLE = 2**63


class Types:
    """The Arrow types of rows: first `see` all of them, then make tables of some.

    Whole numbers and fractions in one column are floats, objects of numbers (distributions) structs with a field a key,
    a column without any value is text, and whatever else no type holds is JSON text, marked as such. Columns of content
    that hold texts beside lists have a list in every row: of parts, or of turns where one is a conversation.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._kinds: dict[str, set[str]] = {column: set() for column in columns}
        self._fields: dict[str, dict[str, None]] = {}
        self._spoken: set[str] = set()  # columns in which a conversation stands

    def see(self, row: Mapping[str, Any]) -> None:
        """Note the types in each column."""
        for column, value in row.items():
            if value is None:
                continue
            kind = _kind(value)
            self._kinds[column].add(kind)
            if column in CONTENT and _is_talk(value):
                self._spoken.add(column)
            if kind == "numbers":
                self._fields.setdefault(column, {}).update(dict.fromkeys(value))

    @property
    def schema(self) -> Any:
        """The Arrow schema that holds all that was seen."""
        arrow = require("pyarrow", "parquet")
        plain = {
            frozenset({"text"}): arrow.string(), frozenset({"truth"}): arrow.bool_(),
            frozenset({"whole"}): arrow.int64(), frozenset({"float"}): arrow.float64(),
            frozenset({"whole", "float"}): arrow.float64(), frozenset(): arrow.string(),
        }  # fmt: skip
        fields = []
        for column, kinds in self._kinds.items():
            if kinds == {"numbers"}:
                found = arrow.struct([(name, arrow.float64()) for name in self._fields[column]])
            else:
                found = plain.get(frozenset(kinds))
            fields.append(arrow.field(column, found or arrow.string(), metadata=None if found else JSON_FIELD))
        return arrow.schema(fields)

    def tables(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
        """Arrow tables of up to 1,024 of the rows, each of which was seen."""
        arrow, schema = require("pyarrow", "parquet"), self.schema
        left = iter(rows)
        while batch := list(itertools.islice(left, _BATCH)):
            columns = []
            for field in schema:
                values = [row.get(field.name) for row in batch]
                if field.metadata is not None:
                    if field.name in CONTENT:
                        values = [_in_list(value, turns=field.name in self._spoken) for value in values]
                    values = [None if value is None else orjson.dumps(value).decode() for value in values]
                columns.append(arrow.array(values, field.type))
            yield arrow.Table.from_arrays(columns, schema=schema)


def _is_talk(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) and "role" in each for each in value)


def _in_list(value: Any, *, turns: bool) -> Any:
    """Content as a list of parts, or of turns; None and other values as they are."""
    parts = [{"type": "text", "text": value}] if isinstance(value, str) and not turns else value
    parts = [parts] if isinstance(parts, dict) else parts
    return [{"role": "user", "content": parts}] if turns and value is not None and not _is_talk(value) else parts


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole" if -_WHOLE <= value < _WHOLE else "other"
    if isinstance(value, dict):
        return "numbers" if value and all(_is_number(each) for each in value.values()) else "other"
    return "text" if isinstance(value, str) else "float" if isinstance(value, float) else "other"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_arrow(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Any:
    """All rows, which are iterated twice, as one `pyarrow.Table`. MissingExtra without pyarrow."""
    arrow = require("pyarrow", "parquet")
    types = _seen(columns, rows)
    return arrow.Table.from_batches(
        [batch for table in types.tables(rows) for batch in table.to_batches()], schema=types.schema
    )


def write_parquet(
    columns: Iterable[str],
    rows: Iterable[Mapping[str, Any]],
    path_of: Callable[[Mapping[str, Any]], str],
) -> dict[str, int]:
    """Write rows, which are iterated twice, to the Parquet files that `path_of` names; returns the rows of each.

    All files have the same schema. Memory is a batch for each file.
    """
    parquet = require("pyarrow.parquet", "parquet")
    types, writers, counts = _seen(columns, rows), dict[str, Any](), dict[str, int]()
    waiting: dict[str, list[Mapping[str, Any]]] = {}

    def flush(path: str) -> None:
        if path not in writers:
            writers[path] = parquet.ParquetWriter(path, types.schema, **WRITING)
        for table in types.tables(waiting.pop(path, ())):
            writers[path].write_table(table)

    try:
        for row in rows:
            path = path_of(row)
            counts[path] = counts.get(path, 0) + 1
            waiting.setdefault(path, []).append(row)
            if len(waiting[path]) == _BATCH:
                flush(path)
        for path in list(waiting):
            flush(path)
        if not counts:
            flush(path_of({}))
    finally:
        for writer in writers.values():
            writer.close()
    return counts


def _seen(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Types:
    types = Types(columns)
    for row in rows:
        types.see(row)
    return types
