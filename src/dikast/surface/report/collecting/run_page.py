"""A run as a page shows it."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Audit
from dikast.audit.results import Accuracy
from dikast.core.item import Item
from dikast.core.runs.judge_lock import engine_of
from dikast.surface.report.by_length import LengthGroup
from dikast.surface.report.contents import Thumbs
from dikast.surface.report.queue import Entry
from dikast.surface.report.rankings import Rankings


@dataclass(slots=True)
class RunPage:
    """One run, ready to be shown. `missing` says in words what the run lacks, what follows from that, and what
    the judge noted.
    """

    folder: Path
    name: str
    kind: str = "absolute"
    lock: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    audit: Audit | None = None
    missing: list[str] = field(default_factory=list)
    labels: dict[str, tuple[int, int]] = field(default_factory=dict)  # label (of pairs: joint) -> verdicts, gold
    length: Estimate | None = None  # slope of the error on length
    length_alone: float = math.nan  # how strongly the length of a response alone agrees with gold, 0 to 1
    texts: int = 0  # how many different texts were judged of rows with gold, 0 where that is not known
    by_length: tuple[LengthGroup, ...] = ()
    shifts: dict[str, int] = field(default_factory=dict)  # of pairs: towards the first slot (-1 to 1) -> pairs
    goodness: bool = False  # rows lie on several scales, or gold on another than scores: figures are of goodness
    entries: list[Entry] = field(default_factory=list)  # the queue
    sample: list[Entry] = field(default_factory=list)  # of the other rows, drawn by `seed`
    seed: int = 0
    others: Callable[[Thumbs], Iterator[Entry]] | None = None  # reads the rows that are in neither, where asked for
    queued: list[Item] = field(default_factory=list)  # the items of the queue, each once, in its order
    one_order: bool = False  # each pair was asked in one order
    panel: bool = False  # the joint verdict of several judges, whose runs have pages of their own
    gaps: bool = True  # rows have an order of their own: by gaps from gold, or how certain they are
    rows: int = 0
    differing: int = 0  # rows without a verdict, or with another than gold
    failed: int = 0  # rows without a verdict
    planned: int = 0  # questions of the run, 0 where that is not known
    answered: int = 0  # those with an answer, a verdict or not
    ranked: Rankings | None = None
    damaged: str = ""  # what is wrong with the folder, and the cure
    apart: bool = False  # it shares no item with the run that it stands beside
    compared_with: str = ""  # the name of the run that this one is compared with, in pairs of the same items

    @property
    def judge(self) -> str:
        """The judge as it was asked for."""
        return str(self.summary.get("judge") or engine_of(self.lock) or self.lock.get("judge", "unknown judge"))

    @property
    def unfinished(self) -> bool:
        """Whether questions that were planned have no answer yet."""
        return self.planned > self.answered

    @property
    def pairwise(self) -> bool:
        """Whether verdicts are choices between two responses."""
        return self.kind == "pairwise"

    @property
    def unit(self) -> str:
        """What verdicts are of: a pair has one if both of its orders have."""
        return "pairs" if self.pairwise else "questions"

    @property
    def chosen(self) -> bool:
        """Whether choices are compared with gold: verdicts of pairs, or what follows from two graded responses."""
        return self.pairwise or (self.audit is not None and self.audit.result(Accuracy) is not None)
