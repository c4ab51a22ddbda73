"""Proving a judge: ask the items of every ability and decide on each; a second run asks only what is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.audit.rendering import Cell, Table, table
from dikast.core.errors import RunError
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.verdict import Verdict
from dikast.judging.joining import join_orders
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, grade_file
from dikast.judging.run_plan import Source
from dikast.judging.watching import Watcher
from dikast.probes.abilities import BAR, TOLERANCE, Ability, Agreement, abilities


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof of a judge: a verdict for each ability, and its agreement with gold. `calls` counts the questions."""

    judge: str
    calls: int
    abilities: tuple[Ability, ...]
    agreement: Agreement
    items: tuple[Item, ...]
    verdicts: Mapping[str, Verdict]  # verdicts on single responses, by item

    def __getitem__(self, ability: str) -> Ability:
        return next(each for each in self.abilities if each.name == ability)

    def __repr__(self) -> str:
        told = ", ".join(f"{each.name}: {each.told}" for each in self.abilities)
        return f"<Proof of {self.judge} ({self.calls:,} calls): {told}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that were asked about, in the order in which their first items stand."""
        return tuple(dict.fromkeys(item.meta["domain"] for item in self.items))

    @property
    def split(self) -> str:
        """The split of the items."""
        return str(self.items[0].meta["split"])

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are null."""
        found = [each.to_dict() for each in self.abilities]
        plain = {"judge": self.judge, "calls": self.calls, "domains": self.domains, "split": self.split}
        return {**plain, "abilities": found, "agreement": self.agreement.to_dict()}

    def table(self) -> Table:
        """One line for each verdict."""
        rows: list[list[Cell]] = [
            [each.name, each.told, each.found, _floor(each), each.found.n, each.lost] for each in self.abilities
        ]
        gold = self.agreement
        floor = f"{gold.ignoring:z.2f}"
        return table(
            "abilities",
            f"What {self.judge} can do: {self.calls:,} calls about {', '.join(self.domains)} (split {self.split})",
            ("ability", "verdict", "found", "floor", "sets", "lost"),
            rows,
            f"Agreement with gold (Pearson): {gold.gold:.2f} (n {gold.gold.n:,}); a score that counts wrong claims and"
            f" ignores the rubric has {floor} on the same items" + (f" ({gold.gold.note})" if gold.gold.note else ""),
            f"Centred by response (several rubrics each): {gold.centred:.2f} (n {gold.centred.n:,}); a judge that"
            " ignores the rubric has 0" + (f" ({gold.centred.note})" if gold.centred.note else ""),
            f"The same with an interval over the {gold.combinations:,} combinations of aspects that these rubrics"
            f" weigh: {gold.over_rubrics:.2f}",
            f"Shares of right orders, ties half: yes if the interval lies above {BAR}, partly if above the floor, no if"
            f" it holds the floor and ends below {BAR}, else cannot tell",
            "Changes of goodness (0 worst, 1 best): yes (resists) if the interval lies within"
            f" {TOLERANCE['resists length']} of 0 ({TOLERANCE['resists order']} for order), no if beyond",
            *(f"{each.name}: {each.note}" for each in self.abilities if each.note),
        )


def prove(judge: Judge, files: Sequence[Path], out: Path, *, name: str = "", watch: Watcher | None = None) -> Proof:
    """Ask `files` (single responses, pairs), keep one run folder for each under `out`, and measure the abilities.

    RunError if the engine gave up; its answers are kept.
    """
    singles, pairs = files
    for done in (
        grade_file(judge, Source(str(singles)), out / "singles", watch=watch),
        compare_file(judge, Source(str(pairs)), out / "pairs", watch=watch),
    ):
        if "gave_up" in done:
            raise RunError(str(done["gave_up"]))
    items = [item for file in files for item in read_items(file)]
    verdicts = list(current_verdicts(out / "singles"))
    preferences = list(join_orders(iter(current_verdicts(out / "pairs")), judge.samples, both_orders=True))
    found, agreement = abilities(items, verdicts, preferences, skipped=_skipped(judge))
    calls = sum(len(item.responses) for item in items)
    by_item = {verdict.question.item: verdict for verdict in verdicts}
    return Proof(name or judge.engine.name, calls, tuple(found), agreement, tuple(items), by_item)


def _skipped(judge: Judge) -> dict[str, str]:
    if "reference" in judge.format.to_dict()["user"]:
        return {}
    return {"follows references": "the format shows the judge no reference"}


def _floor(each: Ability) -> str:
    return "" if each.told == "not asked" else f"{each.floor:.2f}"
