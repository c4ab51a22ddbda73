"""A measured number beside its goal."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` in `unit`; it should lie below `goal`, where there is one."""

    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the goal is met, or there is none."""
        return self.goal is None or self.value < self.goal


def table(figures: list[Figure]) -> str:
    """The figures as aligned lines, a miss marked."""
    rows = [("figure", "measured", "goal", "", "")]
    for each in figures:
        goal = "" if each.goal is None else f"< {each.goal:g} {each.unit}".rstrip()
        value = f"{each.value:,.3g}" if each.value < 1000 else f"{each.value:,.0f}"
        rows.append((each.name, f"{value} {each.unit}".rstrip(), goal, "" if each.met else "MISSED", each.note))
    return rows_table(rows)


def rows_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as aligned lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in aligned)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as a Markdown table, the first its header."""
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest))


def write_between(page: Path, name: str, text: str) -> None:
    """Replace what stands on a page between `<!-- name -->` and `<!-- /name -->`."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    head, found, rest = page.read_text("utf-8").partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{page}: no place for {name!r}")
    page.write_text(f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}", "utf-8")
