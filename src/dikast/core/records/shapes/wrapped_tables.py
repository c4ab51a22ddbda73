"""Tables inside one JSON object: its rows under a name, or its columns."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dikast.core.errors import DataError
from dikast.core.item import NAMES, plain_name

_BY_COLUMNS = "a table by its columns or its index: write a list of records (in pandas to_json(orient='records'))"
_WRAPPERS = ("data", "rows", "records", "items", "examples", "instances", "samples", "results")  # around a table
_LISTS = ("responses", "images", "image_paths")  # columns whose cells may be lists of text
_OF_THE_HUB = {"row_idx", "row", "truncated_cells"}  # what stands around each row in a page of the Hub's viewer
_NAMES = {name for field, names in NAMES.items() if field != "id" for name in names}


class Table(NamedTuple):
    """The rows of a table, and where jq finds them (`data.rows[]`); "" for columns."""

    rows: list[dict[str, Any]]
    inside: str = ""


def table_in(value: dict[str, Any], path: str = "", line: int | None = None) -> Table | None:
    """The table that an object is, None for one that is a record. DataError, with the cure, where it is a table in a
    form that is not read, or holds several.
    """
    found = [each for key in _WRAPPERS if (each := _wrapped(value, key)) is not None]
    if found:
        if len(found) == 1 and not any(plain_name(key) in _NAMES for key in value):
            return _without_numbers(found[0], path)
        cures = " or ".join(f"jq -c '.{each.inside}' FILE > OTHER.jsonl" for each in found)
        names = " and ".join(repr(each.inside.removesuffix("[]")) for each in found)
        raise DataError(
            f"one object, whose {names} could be the records: write those alone ({cures})", path=path, line=line
        )
    if {"columns", "data"} <= value.keys() and all(isinstance(value[name], list) for name in ("columns", "data")):
        raise DataError(_BY_COLUMNS, path=path, line=line)
    if value and all(isinstance(each, dict) for each in value.values()):
        inner = [*value, *next(iter(value.values()))]
        if any(name.isdigit() for name in inner):
            raise DataError(_BY_COLUMNS, path=path, line=line)
    for inside in (value, *(value[key] for key in _WRAPPERS if isinstance(value.get(key), dict))):
        if (rows := rows_by_columns(inside, path)) is not None:
            return Table(rows)
    return None


def records_in_members(value: Mapping[str, Any]) -> str:
    """What to say of an object whose members are the records, under names of their own; "" for any other."""
    for key in ("", *_WRAPPERS):
        inside = value.get(key) if key else value
        if isinstance(inside, dict) and _are_records(inside):
            made = f".{key} | to_entries[] | {{id: .key}} + .value"
            told = f"one object with a member for each record: write a record a line (jq -c '{made}' FILE >"
            return f"{told} OTHER.jsonl)"
    return ""


def _wrapped(value: Mapping[str, Any], key: str) -> Table | None:
    rows, inside = value.get(key), key
    while isinstance(rows, dict) and (within := next((name for name in _WRAPPERS if name in rows), "")):
        rows, inside = rows[within], f"{inside}.{within}"
    if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
        return Table(rows, f"{inside}[]")
    return None


def _without_numbers(table: Table, path: str) -> Table:
    """The table; of a page of the Hub's viewer without what stands around each row."""
    if not all(isinstance(row.get("row"), dict) and row.keys() <= _OF_THE_HUB for row in table.rows):
        return table
    if cut := next((row["truncated_cells"] for row in table.rows if row.get("truncated_cells")), None):
        told = f"a page of the Hub's viewer, in which cells are cut short ({', '.join(map(str, cut))})"
        raise DataError(f"{told}: give the data set itself (hf://datasets/ORG/NAME)", path=path)
    return Table([row["row"] for row in table.rows], f"{table.inside}.row")


def _are_records(value: Mapping[str, Any]) -> bool:
    """Whether the members of an object, under names of their own, are records with a usual name in common."""
    if len(value) < 2 or not all(isinstance(each, dict) for each in value.values()):
        return False
    if any(plain_name(key) in _NAMES for key in value):
        return False
    return bool(set.intersection(*({plain_name(key) for key in each} for each in value.values())) & _NAMES)


def rows_by_columns(value: Mapping[Any, Any], path: str = "") -> list[dict[Any, Any]] | None:
    """The rows of a table that is given by its columns, a list each; None for what is one record."""
    columns = [list(each) for each in value.values() if isinstance(each, list | tuple)]
    plain = all(each is None or isinstance(each, str | int | float) for column in columns for each in column)
    if not plain or len(columns) < max(2, len(value)) or any(name in _LISTS for name in value):
        return None
    if len({*map(len, columns)}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in zip(value, columns, strict=True))
        raise DataError(f"the columns of a table have different lengths: {lengths}", path=path)
    return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
