"""The card: every probe's result in one table, for people and for machines."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dikast.audit.report import Cell, Table, table
from dikast.probes.measure import Result


@dataclass(frozen=True, slots=True)
class Card:
    """What the probes found about a judge, from `calls` questions of items chosen with `seed`."""

    judge: str
    calls: int
    seed: int
    results: tuple[Result, ...]

    @property
    def sound(self) -> bool:
        """Whether no probe failed."""
        return all(each.result != "fail" for each in self.results)

    def __getitem__(self, probe: str) -> Result:
        return next(each for each in self.results if each.probe == probe)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are null."""
        return {
            "judge": self.judge,
            "calls": self.calls,
            "seed": self.seed,
            "counts": dict(Counter(each.result for each in self.results)),
            "probes": [_plain(each) for each in self.results],
        }

    def table(self) -> Table:
        """The card as a table, faults first."""
        order = {"fail": 0, "unclear": 1, "pass": 2, "measured": 3, "not run": 4}
        rows: list[list[Cell]] = [
            [
                each.probe,
                each.result,
                each.effect,
                each.unit,
                "" if math.isnan(each.due) else f"{each.due:.2f}",
                each.effect.n,
                each.lost,
                "" if math.isnan(each.p_holm) else f"{each.p_holm:.4f}",
                "" if math.isnan(each.seen) else f"{each.seen:.2f}",
                each.note or each.about,
            ]
            for each in sorted(self.results, key=lambda each: order[each.result])
        ]
        return table(
            "probes",
            f"Probes of {self.judge}: {self.calls:,} calls",
            ("probe", "result", "effect", "unit", "due", "n", "lost", "p (Holm)", "would see", "what"),
            rows,
            "effects are in levels of a five-level scale; due: what gold calls for, half of which must show",
            "would see: the least effect that is seen 9 times in 10 at this n; lost: sets with an answer missing",
            "fail: p (Holm over the card) below .05; unclear: an effect of 1 could have been missed",
        )

    def to_markdown(self) -> str:
        """The table as Markdown."""
        found = self.table()
        lines = [f"# {found.title}", "", "| " + " | ".join(found.columns) + " |", "|" + "---|" * len(found.columns)]
        for cells in found.rows:
            shown = [format(cell, ".2f") if hasattr(cell, "half_width") else str(cell) for cell in cells]
            lines.append("| " + " | ".join(shown) + " |")
        return "\n".join([*lines, "", *(f"- {note}" for note in found.notes)]) + "\n"


def faults(results: Sequence[Result]) -> list[str]:
    """The names of the probes that failed."""
    return [each.probe for each in results if each.result == "fail"]


def _plain(result: Result) -> dict[str, Any]:
    numbers = {
        name: None if math.isnan(value) else value
        for name, value in (("p", result.p), ("p_holm", result.p_holm), ("would_see", result.seen), ("due", result.due))
    }
    words = {name: getattr(result, name) for name in ("probe", "about", "result", "unit", "side", "note", "lost")}
    return {**words, "effect": result.effect.to_dict(), **numbers}
