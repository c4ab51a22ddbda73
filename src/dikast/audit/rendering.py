"""Tables of estimates as an audit's output: for the terminal, JSON and notebooks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from dikast.audit.estimate import Estimate
from dikast.audit.results import SCHEMA, Result, Slices, plain
from dikast.core.text import counted, listing

ONE_ORDER_NAME = ", in one order"  # of a title: each pair was judged in one order
_NAMED = 6  # figures without an interval that a note lists
Cell = Estimate | str | int | float | None
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under `columns`; the first cell of a row is its name. `notes` are caveats.

    `result` holds the same numbers as typed values, for programs; `one_order` says that they are of verdicts in one
    order of each pair, as the title does.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    result: Result | None = None
    one_order: bool = False

    def __getitem__(self, row: str) -> dict[str, Cell]:
        """The cells of the row of that name, by column."""
        for cells in self.rows:
            if cells[0] == row:
                return dict(zip(self.columns, cells, strict=True))
        raise KeyError(f"table {self.name!r} has no row {row!r}: it has {[cells[0] for cells in self.rows]}")

    def estimate(self, row: str, column: str = "value") -> Estimate:
        """The estimate in a cell."""
        cell = self[row][column]
        if not isinstance(cell, Estimate):
            raise TypeError(f"{self.name}/{row}/{column} holds {cell!r}, not an estimate")
        return cell

    def __repr__(self) -> str:
        return f"<Table {self.name!r}: {counted(len(self.rows), 'row')}, {self.title}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        head = "".join(f'<th style="text-align:left">{escape(each)}</th>' for each in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td style=text-align:left>{escape(shown(cell))}</td>' for cell in cells)}</tr>"
            for cells in self.rows
        )
        notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in self.notes)
        return f"<div><p>{escape(self.title)}</p><table><tr>{head}</tr>{body}</table>{notes}</div>"

    def to_dict(self) -> dict[str, Any]:
        """JSON values: a list of rows by column name."""
        rows = [dict(zip(self.columns, map(plain, cells), strict=True)) for cells in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Audit:
    """The complete result of an audit of `source`.

    `rows` counts the records read, `tables` start with failures; `notes` count dropped, unmatched and duplicate rows.
    `plan` holds the settings (columns, rules, draws, seed), as JSON values. `repeats`: a column that seems to name the
    items, and how many values the rows share; None where there is none, or rows of one value are drawn together.
    """

    source: str
    rows: int
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    plan: dict[str, Any]
    repeats: tuple[str, int] | None = None

    def __repr__(self) -> str:
        names = ", ".join(table.name for table in self.tables)
        return f"<Audit of {self.source}: {counted(self.rows, 'row')}, tables {names}>"

    def _repr_html_(self) -> str:
        """As notebooks show it: every table, its notes below it."""
        found = [f"<p>{escape(note)}</p>" for note in self.notes]
        for table in self.tables:
            found.append(table._repr_html_())
        return f"<div><b>{escape(repr(self))}</b>{''.join(found)}</div>"

    def __getitem__(self, name: str) -> Table:
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"this audit has no table {name!r}: it has {[table.name for table in self.tables]}")

    def __contains__(self, name: object) -> bool:
        return any(table.name == name for table in self.tables)

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def result(self, kind: type[R], table: str = "") -> R | None:
        """The typed result of that kind, of the table of that name or of the first that has one; None without."""
        found = (each.result for each in self.tables if table in ("", each.name))
        return next((each for each in found if isinstance(each, kind)), None)

    def to_dict(self) -> dict[str, Any]:
        """JSON values, the form that `dikast audit --json` prints."""
        return {
            "schema": SCHEMA,
            "source": self.source,
            "rows": self.rows,
            "notes": list(self.notes),
            "plan": self.plan,
            "tables": {table.name: table.to_dict() for table in self.tables},
            "results": {table.name: plain(table.result) for table in self.tables if table.result is not None},
        }


def shown(cell: Cell, digits: int = 4, *, compact: bool = False) -> str:
    """A cell as text for people; `compact` prints an interval as ± half its length where the value is its middle."""
    if cell is None:
        return ""
    if isinstance(cell, Estimate):
        if cell.whole:
            return f"{cell:.0f}"
        if compact and math.isfinite(cell.half_width):
            if abs((cell.low + cell.high) / 2 - cell.value) > 0.5 * 10.0 ** (1 - digits):  # visible where printed
                return f"{cell.value:z.{digits}f} [{cell.low:z.{digits - 1}f}, {cell.high:z.{digits - 1}f}]"
            return f"{cell.value:z.{digits}f} ±{cell.half_width:z.{digits - 1}f}"
        return format(cell, f".{digits}f")
    if isinstance(cell, float):
        if math.isnan(cell):
            return "undefined"
        return f"{cell:,.0f}" if cell.is_integer() and abs(cell) >= 1000 else f"{cell:z.{digits}f}"
    return str(cell)


def table(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *notes: str,
    result: Result | None = None,
    one_order: bool = False,
) -> Table:
    """A Table from lists; empty notes are left out, estimates that are undefined or have no interval are named."""
    told = [note for note in notes if note] + _without_interval(columns, rows)
    title += ONE_ORDER_NAME if one_order else ""
    return Table(name, title, tuple(columns), tuple(map(tuple, rows)), tuple(told), result, one_order)


def by_slice(by: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Slices:
    """The estimates of a table with one row a slice."""
    found: dict[str, dict[str, Estimate]] = {}
    for cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            if isinstance(cell, Estimate):
                found.setdefault(column, {})[str(cells[0])] = cell
    return Slices(by, found)


def _without_interval(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for cells in rows:
        many = sum(isinstance(cell, Estimate) for cell in cells) > 1
        for column, cell in zip(columns, cells, strict=True):
            if not isinstance(cell, Estimate) or not math.isnan(cell.low):
                continue
            label = f"{cells[0]} / {column}" if many else str(cells[0])
            if math.isfinite(cell.value):
                reason = f"no interval ({cell.note or 'too few rows, or every draw alike'})"
            elif cell.note:
                reason = f"undefined ({cell.note.removeprefix('undefined: ')})"
            else:
                continue
            by_reason.setdefault(reason, []).append(label)
    return [f"{reason}: {listing(names, _NAMED)}" for reason, names in by_reason.items()]
