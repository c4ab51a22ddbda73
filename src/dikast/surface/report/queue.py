"""The verdicts most worth a person's time: the largest gaps from gold first, then those without a verdict; and a random
sample of the others.
"""

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.rubric import Rubric
from dikast.core.runs.as_judged import is_as_judged
from dikast.core.runs.current_verdicts import records_at
from dikast.core.text import one_line
from dikast.surface.report.contents import Contents, ExactPrompts, Thumb, Thumbs, clipped
from dikast.surface.report.gaps import doubt_of, gap_of

FAILED_SHARE = 4  # one place in this many of a full queue is reserved for failed verdicts


@dataclass(frozen=True, slots=True)
class Said:
    """What the judge said in one order of a pair, or of a response."""

    shown: str  # "" for a response; "A first", "B first" for a pair
    status: str
    label: str
    reason: str
    feedback: str
    raw: str
    distribution: Mapping[str, float]
    expected: float | None
    mass: float | None
    marker: str
    attempts: int
    claims: tuple[Mapping[str, str], ...] = ()
    earlier: tuple[tuple[str, str, str], ...] = ()  # attempts before the last: how, why it failed, the reply
    prompt: str = ""  # as it was sent, or why it is not known


@dataclass(slots=True)
class Entry:
    """One row of the queue. `gap` is a share of the scale, 0 to 1, NaN without gold or without a verdict."""

    anchor: str
    item: str
    criterion: str
    sample: int
    response: int | None
    gap: float
    status: str
    verdict: str  # of a pair, one an order: "a / b"
    gold: str
    joint: str = ""  # of a pair, what its orders say together
    said: list[Said] = field(default_factory=list)
    pictures: list[Thumb] = field(default_factory=list)
    instruction: list[tuple[str, str]] = field(default_factory=list)
    context: str = ""
    reference: str = ""
    responses: list[tuple[str, str, list[Thumb]]] = field(default_factory=list)
    rubric: Rubric | None = None

    @property
    def told(self) -> str:
        """What was said: of a pair the joint verdict, with that of each order behind it."""
        if len(self.said) > 1:
            return f"{self.joint or 'no verdict'} ({self.verdict})"
        return f"{self.verdict} (one order)" if self.said and self.said[0].shown else self.verdict

    @property
    def preview(self) -> str:
        """What the row is about, in a line: the last turn of its instruction, and its first response."""
        asked = self.instruction[-1][1] if self.instruction else ""
        return " → ".join(one_line(each, 160) for each in (asked, *(each[1] for each in self.responses[:1])) if each)

    @property
    def claims(self) -> list[Mapping[str, str]]:
        """The claims of all verdicts, those of the first order first."""
        return [claim for said in self.said for claim in said.claims]

    @property
    def labels(self) -> frozenset[str]:
        """The labels that were given."""
        return frozenset(said.label for said in self.said)

    @property
    def search(self) -> str:
        """What the page's search looks through."""
        texts = [self.item, self.criterion, self.status, *(text for _, text in self.instruction)]
        texts += [text for _, text, _ in self.responses] + [said.feedback for said in self.said]
        return " ".join(texts).casefold()[:4000]


class Queue:
    """Keeps the rows with the largest gaps of those offered, and a uniform random sample of the others."""

    def __init__(self, most: int, *, has_gold: bool, sample: int = 0, seed: int = 0, keep_rest: bool = False) -> None:
        self._most, self._sample, self._has_gold = most, sample, has_gold
        self._count = itertools.count()
        self._draw = random.Random(seed)
        self._gaps: list[tuple[float, int, dict[str, Any]]] = []
        self._failed: list[tuple[float, int, dict[str, Any]]] = []
        self._drawn: list[tuple[float, int, dict[str, Any]]] = []  # enough to leave out those with a place elsewhere
        self._every: list[dict[str, Any]] | None = [] if keep_rest else None

    def offer(self, row: Mapping[str, Any], gold: Any, apart: tuple[float, float] | None) -> bool:
        """Take a row into account; True if it has no verdict, or another than its gold.

        apart: the goodness of its score and of its gold, None where one is not known.
        """
        kept = kept_of(row, gold)
        failed = row.get("status") != "ok"
        gap = math.nan if failed else gap_of(row, gold, apart)
        kept["gap"] = gap
        number = next(self._count)
        if self._sample:
            _push(self._drawn, self._draw.random(), number, kept, self._most + self._sample)
        if self._every is not None:
            self._every.append(kept)
        if failed:
            _push(self._failed, 0.0, number, kept, self._most)
            return True
        weight = gap if not math.isnan(gap) else -1.0 if self._has_gold else doubt_of(row) - 2.0
        _push(self._gaps, weight, number, kept, self._most)
        return gap > 0

    def rows(self) -> list[dict[str, Any]]:
        """Those of the queue, in order."""
        gaps, failed = _sorted(self._gaps), _sorted(self._failed)
        room = max(self._most - len(gaps), self._most // FAILED_SHARE)
        failed = failed[:room]
        return gaps[: self._most - len(failed)] + failed

    def sample(self) -> list[dict[str, Any]]:
        """Those drawn from the rows that are not in the queue, in the order of the draw: the first of them are a random
        sample too, where no more fit on a page.
        """
        queued = {id(row) for row in self.rows()}
        drawn = [each for each in sorted(self._drawn, key=_place, reverse=True) if id(each[2]) not in queued]
        return [row for *_, row in drawn[: self._sample]]

    def rest(self) -> list[dict[str, Any]]:
        """Those that are neither in the queue nor in the sample, where they are kept."""
        shown = {id(row) for row in (*self.rows(), *self.sample())}
        return [row for row in self._every or () if id(row) not in shown]


def _push(heap: list[tuple[float, int, dict[str, Any]]], weight: float, number: int, row: dict[str, Any],
          most: int) -> None:  # fmt: skip
    entry = (weight, -number, row)  # of entries with equal weights, the one read first is kept
    if len(heap) < most:
        heapq.heappush(heap, entry)
    elif heap and entry[:2] > heap[0][:2]:
        heapq.heapreplace(heap, entry)


def _place(entry: tuple[float, int, dict[str, Any]]) -> tuple[float, int]:
    return entry[:2]


def _sorted(heap: list[tuple[float, int, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for *_, row in sorted(heap, key=_place, reverse=True)]


@dataclass(frozen=True, slots=True)
class RowReader:
    """What rows are read in full with: run, lock and rubrics. `redact` leaves out all texts and pictures; `at_once` is
    how many of the rows beyond a page are read at a time.
    """

    folder: Path
    lock: Mapping[str, Any]
    rubrics: Mapping[str, Rubric]
    redact: bool
    at_once: int = 10_000

    def entries(self, rows: Sequence[Mapping[str, Any]], contents: Contents, thumbs: Thumbs) -> Iterator[Entry]:
        """The rows with what was asked and what was said, in their order."""
        prompts = ExactPrompts(self.lock)
        wanted = {at for row in rows for at in row["lines"]}
        verdicts = {line: verdict for verdict, line in records_at(self.folder, wanted)}
        for row in rows:
            item = None if self.redact else contents.items.get(row["item"])
            said = [verdicts[at] for at in row["lines"]]
            prompt = no_prompt if item is None else partial(prompts.of, item)
            entry = entry_of(row, said, self.rubrics, prompt, redact=self.redact)
            if item is not None and not is_as_judged(item, said):
                contents.changed.add(item.id)
            elif item is not None:
                add_texts(entry, item, place_of(row)[3], thumbs)
            yield entry

    def streamed(self, rows: Sequence[Mapping[str, Any]], items: Iterable[Item], thumbs: Thumbs) -> Iterator[Entry]:
        """Many rows in the order of their items, which are read once; rows whose item is not there come last."""
        waiting: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            waiting.setdefault(row["item"], []).append(row)
        found, some = Contents(), list[Mapping[str, Any]]()
        for item in items:
            if mine := waiting.pop(item.id, None):
                found.items[item.id] = item
                some += mine
            if len(some) >= self.at_once:
                yield from self.entries(some, found, thumbs)
                found, some = Contents(), []
        some += itertools.chain.from_iterable(waiting.values())
        for start in range(0, len(some), self.at_once):
            yield from self.entries(some[start : start + self.at_once], found, thumbs)


def no_prompt(verdict: Mapping[str, Any], rubric: Rubric) -> str:
    """What is known of a prompt without its item."""
    return ""


def kept_of(row: Mapping[str, Any], gold: Any) -> dict[str, Any]:
    """The part of a row that is kept until `entry_of` reads it in full; `lines` are the line numbers of its
    verdicts.
    """
    kept = {
        name: row.get(name)
        for name in ("item", "criterion", "sample", "response", "first", "second", "rubric", "choice")
    }
    kept["gold"], kept["gap"] = gold, math.nan
    kept["lines"] = [row[name] for name in ("line", "line_shown", "line_swapped") if name in row]
    return kept


def anchor_of(row: Mapping[str, Any]) -> str:
    """The name of a row in addresses: the same for the same question in every run."""
    item, criterion, sample, responses = place_of(row)
    return "v-" + fingerprint([item, criterion, sample, *responses])[:12]


def entry_of(
    row: Mapping[str, Any],
    verdicts: Sequence[Mapping[str, Any]],
    rubrics: Mapping[str, Rubric],
    prompt: Callable[[Mapping[str, Any], Rubric], str] = no_prompt,
    *,
    redact: bool = False,
) -> Entry:
    """A row of `kept_of` with what its verdicts say, without the texts of its item (`add_texts`). `prompt` renders what
    a verdict was asked with.
    """
    verdicts = sorted(verdicts, key=lambda each: each["question"].get("responses") or [0])
    rubric = None if redact else rubrics.get(str(row["rubric"]))
    said = [_said(each, "" if rubric is None else prompt(each, rubric), redact=redact) for each in verdicts]
    gold = row["gold"]
    return Entry(
        anchor=anchor_of(row),
        item=str(row["item"]),
        criterion=str(row["criterion"]),
        sample=row["sample"] or 0,
        response=row["response"],
        gap=row["gap"],
        status=next((each.status for each in said if each.status != "ok"), "ok"),
        verdict=" / ".join(each.label or "none" for each in said),
        gold="" if gold is None else f"{gold:g}" if isinstance(gold, int | float) else str(gold),
        joint="" if row["first"] is None or len(said) < 2 else str(row["choice"] or ""),
        said=said,
        rubric=rubric,
    )


def place_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Item, criterion, sample and responses of a row."""
    if row["first"] is not None:
        responses: tuple[int, ...] = (row["first"], row["second"])
    else:
        responses = (row["response"] or 0,)
    return row["item"], row["criterion"], row["sample"], responses


def _said(verdict: Mapping[str, Any], prompt: str, *, redact: bool) -> Said:
    responses = verdict["question"].get("responses") or [0]
    shown = "" if len(responses) < 2 else "A shown first" if responses[0] < responses[1] else "B shown first"
    claims = tuple({str(k): str(v) for k, v in claim.items()} for claim in verdict.get("claims") or [])
    return Said(
        shown=shown,
        status=verdict["status"],
        label=verdict.get("label") or "",
        reason=clipped(verdict.get("reason") or "") if not redact else "",
        feedback=clipped(verdict.get("feedback") or "") if not redact else "",
        raw=clipped(verdict.get("raw") or "") if not redact else "",
        distribution=verdict.get("distribution") or {},
        expected=verdict.get("expected"),
        mass=verdict.get("mass"),
        marker=verdict.get("marker") or "",
        attempts=len(verdict.get("attempts") or []),
        claims=() if redact else claims,
        earlier=() if redact else _earlier(verdict),
        prompt=clipped(prompt),
    )


def _earlier(verdict: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """The attempts before the one that settled the verdict."""
    told = [
        [str(each.get(name) or "") for name in ("how", "reason", "status", "raw")]
        for each in (verdict.get("attempts") or [])[:-1]
    ]
    return tuple((how, reason or status, clipped(raw)) for how, reason, status, raw in told)


def add_texts(entry: Entry, item: Item, shown: Sequence[int], thumbs: Thumbs) -> None:
    """Put the texts and pictures of an item into an entry; `shown` are the responses that it is about."""
    for turn in item.instruction:
        entry.instruction.append((turn.role, clipped(text_of(turn.content))))
        entry.pictures += thumbs.of(turn.content)
    if item.context is not None:
        entry.context = clipped(text_of(item.context))
        entry.pictures += thumbs.of(item.context)
    if item.reference is not None:
        entry.reference = clipped(text_of(item.reference))
    for name, index in zip("AB" if len(shown) == 2 else ("",), shown, strict=False):
        if index < len(item.responses):
            content = item.responses[index]
            title = f"Response {name}".strip() + (f" ({index})" if len(item.responses) > len(shown) else "")
            entry.responses.append((title, clipped(text_of(content)), thumbs.of(content)))
