"""What a page counts of the rows of its run: labels, differences from gold, the queue, what was asked."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dikast.audit.plan import AuditPlan
from dikast.audit.tables.run_rows import JOINT, LABELS, ORDERS, RunRows
from dikast.core.runs.rubrics import written_rubrics
from dikast.core.runs.run_files import KEYS
from dikast.core.text import counted
from dikast.core.verdict import DISAGREE
from dikast.surface.report.by_length import Measured
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.gaps import Scales, slot_shift, worth_of
from dikast.surface.report.queue import Queue
from dikast.surface.report.report_options import Asked

MOST_LABELS = 30  # bars in a histogram of labels
MOST_LENGTHS = 20_000  # rows whose response is measured, for the slope on length


@dataclass(slots=True)
class RowCounts:
    """What a page counts of the rows of its run, each seen once: labels, differences from gold, and the queue."""

    pairwise: bool
    gold: str  # the column of gold, "" where there is none
    scales: Scales
    queue: Queue
    read: RunRows
    said: Counter[str] = field(default_factory=Counter)
    true: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    answers: int = 0
    differing: int = 0
    failed: int = 0
    joined: bool = False  # several samples have one verdict, whose label is what counts
    split: bool = False  # some pair was asked in both orders
    measured: list[Measured] = field(default_factory=list)
    shifts: Counter[int] = field(default_factory=Counter)  # of pairs, in fifths

    @classmethod
    def of(cls, page: RunPage, asked: Asked, rows: RunRows) -> "RowCounts":
        """Empty counts for the rows of a page."""
        rubrics = written_rubrics(page.folder)
        scales = Scales({name: rubric.scale for name, rubric in rubrics.items()}, rows.gold_scale)
        column = gold_columns(asked.plan)[0]
        return cls(
            page.pairwise,
            column if column in rows.gold else "",
            scales,
            Queue(
                asked.queue, has_gold=bool(rows.gold), sample=asked.sample, seed=asked.plan.seed, keep_rest=asked.rest
            ),
            rows,
        )

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row."""
        gold = row.get(self.gold)
        if row["sample"] == JOINT:
            if not self.joined:
                self.said, self.true, self.joined = Counter(), Counter(), True
            self._label(row, gold)
            return
        self.rows += 1
        self.answers += sum(order in row for order in ORDERS) if self.pairwise else 1
        self.split |= "swapped" in row
        apart = self.scales.both(row, gold)
        self.differing += self.queue.offer(row, gold, apart)
        self.failed += row.get("status") != "ok"
        self._label(row, gold)
        if (shift := slot_shift(row)) is not None:
            self.shifts[round(5 * shift)] += 1
        if len(self.measured) >= MOST_LENGTHS:
            return
        if self.pairwise:
            self.measured.append(Measured(row["item"], (row["first"], row["second"]), worth_of(row.get("choice")),
                                          worth_of(gold)))  # fmt: skip
        elif apart is not None:
            values = apart if self.scales.goodness else (row["score"], gold)
            self.measured.append(Measured(row["item"], (row.get("response", 0),), *values))
        elif isinstance(row.get("score"), int | float) and not self.scales.goodness:
            self.measured.append(Measured(row["item"], (row.get("response", 0),), row["score"], math.nan))

    def _label(self, row: Mapping[str, Any], gold: Any) -> None:
        """Count the label of a verdict (of a pair, the joint one) and its gold."""
        label = self.scales.name(row.get("choice", row.get("label")), row)
        if label is not None and row["status"] == "ok":
            self.said[label] += 1
        if (label := self.scales.name(gold, row, gold=True)) is not None:
            self.true[label] += 1

    def tell(self, page: RunPage) -> None:
        """Put the counts on the page, and say there what the run has not asked yet."""
        page.rows, page.differing, page.failed = self.rows, self.differing, self.failed
        page.goodness = self.scales.goodness and not page.pairwise
        page.one_order = page.pairwise and not self.split
        page.shifts = {f"{k / 5:+g}" if k else "0": self.shifts[k] for k in range(-5, 6)} if self.shifts else {}
        outcomes = {*LABELS, DISAGREE} if self.split else set()  # those of both orders, also where none is there
        names = sorted(outcomes | set(self.said) | set(self.true), key=_in_order)
        page.labels = {name: (self.said[name], self.true[name]) for name in names} if len(names) <= MOST_LABELS else {}
        due = page.folder / KEYS
        page.planned = due.stat().st_size // 33 if due.exists() else 0
        page.answered = self.answers + self.read.asked_once
        if self.read.asked_once:
            page.missing.append(
                f"{counted(self.read.asked_once, 'pair')} that the ranking asked in one order only left out"
            )
        if page.unfinished:
            page.missing.append(f"unfinished: {page.answered:,} of {page.planned:,} questions have an answer")


def gold_columns(plan: AuditPlan) -> list[str]:
    """The names of the columns of gold."""
    return [name.partition("@")[0] for name in plan.gold] or ["gold"]


def _in_order(label: str) -> tuple[int, float, str]:
    try:
        return (0, float(label), label)
    except ValueError:
        return (1, 0.0, label)
