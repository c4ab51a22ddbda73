"""What an audit found: named tables of estimates, and what was left out and why."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dikast.audit.estimate import Estimate

_NAMED = 6  # figures without an interval that a note lists
Cell = Estimate | str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under `columns`; the first cell of a row is its name. `notes` say what to mind."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

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

    def to_dict(self) -> dict[str, Any]:
        """JSON values: a list of rows by column name."""
        rows = [dict(zip(self.columns, map(_plain, cells), strict=True)) for cells in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything that was found out about the verdicts in `source`.

    `rows` counts the records read, `tables` come failures first; `notes` count what was dropped, unmatched or
    duplicated. `plan` holds the choices that led here (columns, rules, draws, seed), as JSON values.
    """

    source: str
    rows: int
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    plan: dict[str, Any]

    def __getitem__(self, name: str) -> Table:
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"this audit has no table {name!r}: it has {[table.name for table in self.tables]}")

    def __contains__(self, name: object) -> bool:
        return any(table.name == name for table in self.tables)

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def to_dict(self) -> dict[str, Any]:
        """JSON values, the form that `dikast audit --json` prints."""
        return {
            "source": self.source,
            "rows": self.rows,
            "notes": list(self.notes),
            "plan": self.plan,
            "tables": {table.name: table.to_dict() for table in self.tables},
        }


def shown(cell: Cell, digits: int = 4, *, compact: bool = False) -> str:
    """A cell as text for people; `compact` tells an interval as half its length."""
    if cell is None:
        return ""
    if isinstance(cell, Estimate):
        if all(each.is_integer() for each in (cell.value, cell.low, cell.high)) and cell.value >= 1:
            return f"{cell:.0f}"  # a rank
        if compact and math.isfinite(cell.half_width):
            return f"{cell.value:.{digits}f} ±{cell.half_width:.{digits - 1}f}"
        return format(cell, f".{digits}f")
    if isinstance(cell, float):
        if math.isnan(cell):
            return "undefined"
        return f"{cell:,.0f}" if cell.is_integer() and abs(cell) >= 1000 else f"{cell:.{digits}f}"
    return str(cell)


def counted(n: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def table(name: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], *notes: str) -> Table:
    """A Table from lists; empty notes are left out, and every estimate without an interval is named with its reason."""
    told = [note for note in notes if note] + _without_interval(columns, rows)
    return Table(name, title, tuple(columns), tuple(map(tuple, rows)), tuple(told))


def _without_interval(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for cells in rows:
        many = sum(isinstance(cell, Estimate) for cell in cells) > 1
        for column, cell in zip(columns, cells, strict=True):
            if isinstance(cell, Estimate) and math.isfinite(cell.value) and math.isnan(cell.low):
                label = f"{cells[0]} / {column}" if many else str(cells[0])
                by_reason.setdefault(cell.note or "too few rows, or every draw alike", []).append(label)
    return [
        f"no interval ({reason}): {', '.join(names[:_NAMED])}"
        + (f" and {len(names) - _NAMED} more" * (len(names) > _NAMED))
        for reason, names in by_reason.items()
    ]


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Estimate):
        return cell.to_dict()
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    return cell
