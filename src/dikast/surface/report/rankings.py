"""What a run of rankings found: how many items have an order, by how many comparisons, and how good it is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Audit
from dikast.audit.statistics.intervals import share
from dikast.core.runs.run_files import RANKINGS
from dikast.core.runs.schema import RankingLine, derived_lines
from dikast.core.text import counted

SURE = 0.95  # probability of being the best from which a best response is clear
_NARROWING = ("where", "cluster", "gold_file")  # what an audit may be asked that the run's summary does not know


@dataclass(frozen=True, slots=True)
class Rankings:
    """The orders of a run. `first` is how often the first response is the best by gold (None: no such gold), `chance`
    how often one drawn at random would be; `clear` is how often the first response is the best with a probability of
    `SURE`, by the noise of the judge's own comparisons, among the items where that is known.
    """

    items: int
    ranked: int
    skipped: int
    comparisons: int
    cycles: Estimate | None
    first: Estimate | None
    chance: float
    clear: Estimate

    @property
    def unordered(self) -> float:
        """The share of the items with two different responses that have no order."""
        due = self.items - self.skipped
        return (due - self.ranked) / due if due > 0 else 0.0

    @property
    def told(self) -> str:
        """Items, comparisons and cycles in a sentence."""
        said = (
            f"{self.ranked:,} of {counted(self.items, 'item')} are ranked, by {counted(self.comparisons, 'comparison')}"
        )
        if self.cycles is None or math.isnan(self.cycles.value):
            return f"{said}."
        ends = "" if math.isnan(self.cycles.low) else f" [{self.cycles.low:.1%}, {self.cycles.high:.1%}]"
        return f"{said}; {self.cycles.value:.1%}{ends} of the {self.cycles.n:,} triples of responses are cyclic."


def rankings(folder: Path, summary: Mapping[str, Any], audit: Audit | None) -> Rankings | None:
    """The rankings of a run, None for a run of none, or one that has not finished.

    DataError where `rankings.jsonl` is damaged. Agreement with gold is what `dikast rank` has printed, unless the audit
    is of some of the rows, by clusters or of another level: then it is the audit's.
    """
    told = summary.get("ranking")
    if not isinstance(told, Mapping):
        return None
    found = [
        line["best"][line["order"][0]] for line, _ in derived_lines(folder, RANKINGS, RankingLine) if line["order"]
    ]
    known = [best >= SURE for best in found if best is not None]
    first, chance = _by_gold(told, audit)
    level = audit.plan["resampling"]["level"] if audit is not None else 0.95
    skipped = told.get("skipped")
    return Rankings(
        _count(told, "items"), _count(told, "ranked"),
        sum(_count(skipped, why) for why in skipped) if isinstance(skipped, Mapping) else 0,
        _count(told, "comparisons"), _rate(told.get("cycles")), first, chance,
        share(known, level, dropped=len(found) - len(known)),
    )  # fmt: skip


def _by_gold(told: Mapping[str, Any], audit: Audit | None) -> tuple[Estimate | None, float]:
    gold = told.get("gold")
    first = _rate(gold.get("first_is_best")) if isinstance(gold, Mapping) else None
    if audit is None or not isinstance(gold, Mapping) or first is None:
        return None, math.nan
    chance = _number(gold.get("at_random"))
    if audit.plan["resampling"]["level"] == first.level and not any(audit.plan.get(name) for name in _NARROWING):
        return (None if math.isnan(chance) else first), chance
    if "rankings" not in audit:
        return None, math.nan
    rows = {str(row[0]): row[1] for row in audit["rankings"].rows}
    found, by_audit = rows["best response found"], rows["best response found by a random order"]
    assert isinstance(found, Estimate)
    assert isinstance(by_audit, float)
    return found, by_audit


def _count(told: Mapping[str, Any], name: str) -> int:
    found = told.get(name)
    return found if isinstance(found, int) else 0


def _rate(told: Any) -> Estimate | None:
    """A rate of `summary.json`; None where it has none."""
    if not isinstance(told, Mapping) or math.isnan(value := _number(told.get("value"))):
        return None
    low, high, level = (_number(told.get(name)) for name in ("low", "high", "level"))
    return Estimate(value, _count(told, "n"), low, high, level)


def _number(found: Any) -> float:
    """A number of `summary.json`, NaN where there is none: people may have changed it."""
    return float(found) if isinstance(found, int | float) else math.nan
