"""Which rows of long tables and figures a page holds: of slices the worst, of others the first."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table
from dikast.audit.results import Slices
from dikast.surface.report.figures import Row

DRAWN, TABLED = 40, 200  # slices in a figure; rows of a table
_AGREEMENT = ("pearson", "exact", "both together", "as shown")
_FORESTS = (*_AGREEMENT, "mean score", "disagree", "first wins")


class Sliced(NamedTuple):
    """A table of slices and a statistic of it, its slices in order; `told` where not all are drawn."""

    table: Table
    title: str
    column: str
    rows: list[Row]
    told: str


class TableRows(NamedTuple):
    """The rows of a table that a page holds; `told` where these are not all."""

    rows: Sequence[Sequence[Cell]]
    told: str


def slices(tables: Iterable[Table]) -> Iterator[Sliced]:
    """Each table of slices with its first statistic as rows of a forest plot."""
    for table in tables:
        if isinstance(table.result, Slices) and table.result.statistics:
            column, rows, order = _ordered(table.result)
            what = "Agreement by slice" if column in _AGREEMENT else "Slices"
            told = f"drawn are the first {DRAWN} of {len(rows):,} slices" if len(rows) > DRAWN else ""
            yield Sliced(table, f"{what} ({table.title}): {column}, {order} first", column, rows, told)


def table_rows(table: Table) -> TableRows:
    """At most TABLED rows, in the order of the table."""
    if len(table.rows) <= TABLED:
        return TableRows(table.rows, "")
    every = f"of {len(table.rows):,} rows; all are in the report as JSON (--out NAME.json)"
    if isinstance(table.result, Slices) and table.result.statistics:
        column, rows, order = _ordered(table.result)
        kept = {row.name for row in rows[:TABLED]}
        shown = [cells for cells in table.rows if str(cells[0]) in kept]
        return TableRows(shown, f"shown are the {len(shown)} with the {order} {column} {every}")
    return TableRows(table.rows[:TABLED], f"shown are the first {TABLED} {every}")


def _ordered(found: Slices) -> tuple[str, list[Row], str]:
    """A statistic that most slices have, each slice with it, and which come first; undefined ones come last."""
    columns = [name for name in (*_FORESTS, *found.statistics) if name in found.statistics]
    column = next((name for name in columns if _known(found.statistics[name].values()) >= 0.5), columns[0])
    rows = [Row(name, each.value, each.low, each.high, each.n) for name, each in found.statistics[column].items()]
    order = "worst" if column in _AGREEMENT else "highest" if column == "disagree" else "lowest"
    sign = -1 if order == "highest" else 1
    return column, sorted(rows, key=lambda row: (math.isnan(row.value), sign * row.value)), order


def _known(found: Collection[Estimate]) -> float:
    """The share of estimates that have a value."""
    return sum(math.isfinite(each.value) for each in found) / len(found)
