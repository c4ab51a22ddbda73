"""The card: every probe's result in one table, for people and for machines."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table, table
from dikast.core.confidence import Interval
from dikast.probes.catalogue import NOT_COVERED
from dikast.probes.outcome import ALPHA
from dikast.probes.responsiveness import FLOOR
from dikast.probes.result import NONE, Result

VERSION = 4  # version of the rules for outcomes; cards without one used the first
_ORDER = {"faulty": 0, "cannot tell": 1, "sound": 2, "measured": 3}


@dataclass(frozen=True, slots=True)
class Card:
    """The results of the probes of a judge, from `calls` questions on items chosen with `seed`."""

    judge: str
    calls: int
    seed: int
    results: tuple[Result, ...]
    gain: Estimate = NONE  # slope of answers over gold: see `dikast.probes.outcome.gain`
    bound: float = ALPHA  # level that p (Holm) must be below for a fault: see `dikast.probes.outcome.bound`

    @property
    def sound(self) -> bool:
        """Whether at least one probe found the judge sound, and none found a fault or could not tell."""
        found = {each.result for each in self.results}
        return "sound" in found and not found & {"faulty", "cannot tell"}

    @property
    def faulty(self) -> bool:
        """Whether a probe found a fault."""
        return any(each.result == "faulty" for each in self.results)

    def __getitem__(self, probe: str) -> Result:
        return next(each for each in self.results if each.probe == probe)

    @property
    def not_probed(self) -> dict[str, str]:
        """The probes that were not run, and why."""
        return {each.probe: each.note for each in self.results if each.result == "not probed"}

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are null."""
        return {
            "version": VERSION,
            "judge": self.judge,
            "calls": self.calls,
            "gain": None if math.isnan(self.gain.value) else self.gain.to_dict(),
            "bound": self.bound,
            "seed": self.seed,
            "counts": dict(Counter(each.result for each in self.results)),
            "probes": [_plain(each) for each in self.results],
            "not_probed": self.not_probed,
            "not_covered": list(NOT_COVERED),
        }

    def table(self) -> Table:
        """The card as a table, faults first."""
        run = [each for each in self.results if each.result in _ORDER]
        rows: list[list[Cell]] = [
            [
                each.probe,
                each.result,
                each.effect,
                each.unit,
                "" if math.isnan(each.deaf) else f"{each.deaf:.2f}",
                _spelt(each.faultless),
                "" if math.isnan(each.deaf_share.value) else each.deaf_share,
                each.effect.n,
                each.lost,
                "" if math.isnan(each.p_holm) else f"{each.p_holm:.4f}",
                each.about + (f" ({each.note})" if each.note else ""),
            ]
            for each in sorted(run, key=lambda each: _ORDER[each.result])
        ]
        return table(
            "probes",
            f"Probes of {self.judge}: {self.calls:,} calls",
            (
                "probe",
                "result",
                "effect",
                "unit",
                "a deaf judge",
                "a faultless judge",
                "deaf on",
                "n",
                "lost",
                "p (Holm)",
                "what",
            ),
            rows,
            self._noise(),
            "Effects are in levels of a five-level scale, with 95 % intervals; lost: sets with an answer missing.",
            "a deaf judge: what a judge that ignores the change would show; a faultless judge: what one without this"
            " fault and with the measured noise of this judge would show (95 %, tolerance included)",
            "deaf on: of items on which gold calls for a change, the share on which the judge does not respond",
            f"faulty: outside what a faultless judge would show (p, by Holm over the card, below {self.bound:.4f});"
            " sound: an effect of one level (half a level of lenience and run-order, .2 per doubling), or deafness on"
            " 40 % of items, lies outside the interval; cannot tell: neither",
            *(f"Not probed: {name} ({why})" for name, why in self.not_probed.items()),
            *(f"No probe looks for {each}" for each in NOT_COVERED),
        )

    def _noise(self) -> str:
        """A note on how strongly answers follow gold, since a judge that answers at random is insensitive to every
        change.
        """
        if math.isnan(self.gain.value):
            return "How far answers follow gold is unknown: too few unchanged items have gold"
        weak = f": it may be less than {FLOOR:g}, so no probe is reported sound" if self.gain.low < FLOOR else ""
        return (
            f"Where gold rises by a level, answers to unchanged items rise by {self.gain:.2f} (n {self.gain.n:,}){weak}"
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
    """The names of the probes that found a fault."""
    return [each.probe for each in results if each.result == "faulty"]


def _spelt(bounds: Interval) -> str:
    if math.isnan(bounds.high):
        return ""
    return f"at most {bounds.high:z.2f}" if math.isinf(bounds.low) else f"{bounds.low:z.2f} to {bounds.high:z.2f}"


def _plain(result: Result) -> dict[str, Any]:
    numbers = {
        name: value if math.isfinite(value) else None
        for name, value in (
            ("p", result.p),
            ("p_holm", result.p_holm),
            ("deaf", result.deaf),
            ("due", result.due),
            ("need", result.need),
        )
    }
    words = {name: getattr(result, name) for name in ("probe", "about", "result", "unit", "side", "note", "lost")}
    share = None if math.isnan(result.deaf_share.value) else result.deaf_share.to_dict()
    faultless = [each if math.isfinite(each) else None for each in result.faultless]
    return {**words, "effect": result.effect.to_dict(), "faultless": faultless, "deaf_share": share, **numbers}
