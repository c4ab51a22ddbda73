"""Which items are changed how, under a budget of calls: written as files that any run of a judge can read."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dikast.core.errors import UserError
from dikast.core.item import Item, item_to
from dikast.core.media import resolved
from dikast.core.part import Image, Text, Video, text_of
from dikast.core.rubric import Rubric
from dikast.probes.catalogue import DROP, Probe, catalogue, removed
from dikast.probes.changes import MASTER_KEYS, Subject, gold_value

BASE = "base"
LEAST = 10  # subjects; with fewer a probe is not run
STEPS = 4.0  # levels between worst and best, on the five-level scale that effects are told on


@dataclass(frozen=True, slots=True)
class Ask:
    """One changed item and where its answer belongs: the probe, the set it is compared in, and its place there.

    `expected` is the change that gold calls for from the first of the set to the second, in levels (0: none is due).
    """

    probe: str
    set: str
    variant: str
    item: Item
    expected: float = 0.0


@dataclass(slots=True)
class ProbePlan:
    """What is asked. `absolute`, `reversed` (levels listed from the top) and `pairs` are graded and compared."""

    probes: list[Probe]
    absolute: list[Ask] = field(default_factory=list)
    reversed: list[Ask] = field(default_factory=list)
    pairs: list[Ask] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # probe -> why it is not run

    @property
    def calls(self) -> int:
        """Questions in all; a pair is two."""
        return len(self.absolute) + len(self.reversed) + 2 * len(self.pairs)


def plan(
    items: Iterable[Item],
    rubric: Rubric | None,
    folder: Path,
    *,
    calls: int = 2000,
    seed: int = 0,
    only: Sequence[str] = (),
) -> ProbePlan:
    """Choose subjects and change them, within `calls`.

    Items of the standing suite of the worlds bring sets whose gold says what must change; of other items the first
    response is the subject, and pairs are the items with several responses. Raises UserError when nothing can be asked.
    """
    probes = catalogue(str(folder / "images"))
    if unknown := set(only) - {probe.name for probe in probes}:
        raise UserError(
            f"there is no probe {', '.join(sorted(unknown))}: there are {', '.join(p.name for p in probes)}"
        )
    probes = [probe for probe in probes if not only or probe.name in only]
    rng = np.random.default_rng(seed)
    stock = _Stock(items, rubric)
    n = _subjects(probes, calls)
    found = ProbePlan(probes)
    base = stock.subjects(rng, n)
    pairs = [stock.many[i] for i in rng.permutation(len(stock.many))]  # probes of pairs take the first of the same
    for subject in base:
        found.absolute.append(Ask(BASE, subject.item.id, BASE, _named(subject.item, BASE)))
    for probe in probes:
        most = max(1, round(n * probe.share))
        if probe.name == "level-order":
            asks = [Ask(probe.name, s.item.id, "top-down", _named(s.item, BASE)) for s in base if s.rubric.levels]
            found.reversed += asks
        elif probe.name in ("position", "absolute-pairwise"):
            asks = _pairs(probe, pairs[:most], found)
        elif probe.name == "master-keys":
            asks = [_master_key(probe, subject, i) for i, subject in enumerate(base[:most])]
            found.absolute += asks
        elif probe.makes:
            asks = _variants(probe, base[:most])
            found.absolute += asks
        else:
            asks = _sets(probe, stock, rng, most, base, str(folder / "images"))
            found.absolute += asks
        fit = len({ask.set for ask in asks})
        if fit < LEAST:
            found.skipped[probe.name] = f"{fit} sets of items fit, {LEAST} are needed"
    if not found.calls:
        raise UserError("there is nothing to ask: items with a response are needed")
    return found


def _subjects(probes: Sequence[Probe], calls: int) -> int:
    """How many base subjects the calls allow."""
    cost = 1.0
    for probe in probes:
        sets = {"rubric-contrast": 2.0, "position": 2.0, "absolute-pairwise": 2.0, "dose-response": 1.0}
        each = 1 if probe.name == "master-keys" else len(probe.makes) or sets.get(probe.name, 1.0)
        cost += probe.share * each
    return max(LEAST, int(calls / cost))


class _Stock:
    """The items to draw from, sorted by what they are good for."""

    def __init__(self, items: Iterable[Item], rubric: Rubric | None) -> None:
        self._rubric = rubric
        self.single: list[Item] = []
        self.many: list[Item] = []
        self.sets: dict[str, dict[str, list[Item]]] = {}
        for item in items:
            if rubric is not None and item.rubric is None:
                item = replace(item, rubric=rubric)
            if not isinstance(item.rubric, Rubric):
                raise UserError(f"{item.origin or item.id}: a probe takes one criterion: name a rubric with --rubric")
            suite, name = item.meta.get("suite"), item.meta.get("set")
            if suite is not None:
                self.sets.setdefault(str(suite), {}).setdefault(str(name), []).append(item)
            changed = suite is not None and not item.id.endswith("-base")
            if len(item.responses) > 1 and not item.id.endswith("-swapped"):
                self.many.append(item)
            elif len(item.responses) == 1 and not changed and suite in (None, "edits", "evidence"):
                self.single.append(item)
        if not self.single:
            self.single = [replace(item, responses=item.responses[:1], gold=_first(item)) for item in self.many]

    def subjects(self, rng: np.random.Generator, n: int) -> list[Subject]:
        """At most n, with references made of gold claims where there are none; evidence sets first, for their gold."""
        spoken = [item for item in self.single if item.responses and text_of(item.responses[0]).strip()]
        order = [spoken[i] for i in rng.permutation(len(spoken))][:n]
        told = [replace(item, reference=item.reference or _reference(item)) for item in order]
        others = told[1:] + told[:1]
        return [Subject(item, _rubric(item), other) for item, other in zip(told, others, strict=True)]


def _pairs(probe: Probe, chosen: Sequence[Item], found: ProbePlan) -> list[Ask]:
    asked = {ask.set for ask in found.pairs}
    asks = []
    for item in chosen:
        two = replace(item, responses=item.responses[:2])
        asks.append(Ask(probe.name, item.id, "pair", _named(two, "pair")))
        if item.id not in asked:
            found.pairs.append(asks[-1])
        if probe.name == "absolute-pairwise":
            for k in (0, 1):
                one = replace(two, responses=(two.responses[k],), gold=_score(item, k))
                found.absolute.append(Ask(probe.name, item.id, f"side{k}", _named(one, f"side{k}")))
    return asks


def _variants(probe: Probe, base: Sequence[Subject]) -> list[Ask]:
    asks = []
    for subject in base:
        made = [(name, change(subject)) for name, change in probe.makes]
        if all(item is not None for _, item in made):
            for name, item in made:
                assert item is not None
                asks.append(Ask(probe.name, subject.item.id, name, _named(item, name)))
    return asks


def _master_key(probe: Probe, subject: Subject, i: int) -> Ask:
    name, change = probe.makes[i % len(MASTER_KEYS)]
    item = change(subject)
    assert item is not None
    return Ask(probe.name, subject.item.id, name, _named(item, name))


def _sets(
    probe: Probe, stock: _Stock, rng: np.random.Generator, most: int, base: Sequence[Subject], folder: str
) -> list[Ask]:
    if probe.name == "rubric-contrast":
        return _suite_sets(probe, stock.sets.get("contrast", {}), rng, most, ("first", "second"))
    if probe.name == "dose-response":
        return _ladders(probe, stock, rng, most)
    evidence = stock.sets.get("evidence", {})
    if not evidence:
        return _evidence_of(probe, base[:most], folder)
    if probe.name == "image-swapped":
        return _suite_sets(probe, evidence, rng, most, ("base", "swapped"))
    blank = _suite_sets(probe, evidence, rng, most, ("base", "blank"))
    if probe.name == "image-blanked":
        return [ask for ask in blank if _pictured(ask)]
    change = removed(folder)[probe.name]
    asks = []
    for one, other in zip(blank[::2], blank[1::2], strict=True):
        changed = change(Subject(one.item, _rubric(one.item), one.item))
        if changed is not None:
            asks += [one, replace(other, variant="changed", item=_renamed(changed, probe.name, other.item.gold))]
    return asks


def _evidence_of(probe: Probe, base: Sequence[Subject], folder: str) -> list[Ask]:
    """Of items that bring no gold for a changed picture: it must cost at least DROP."""
    asks = []
    for subject in base:
        change = _with_pictures_of if probe.name == "image-swapped" else removed(folder)[probe.name]
        changed = change(subject)
        if changed is not None:
            gone = replace(changed, gold=None) if changed.gold is not None else changed
            asks.append(Ask(probe.name, subject.item.id, "changed", _named(gone, probe.name), -DROP))
    return asks


def _with_pictures_of(subject: Subject) -> Item | None:
    mine = [part for turn in subject.item.instruction for part in turn.content if isinstance(part, Image | Video)]
    theirs = [part for turn in subject.other.instruction for part in turn.content if isinstance(part, Image | Video)]
    if not mine or len(mine) != len(theirs):
        return None
    swap = dict(zip(map(id, mine), theirs, strict=True))
    turns = [
        replace(turn, content=tuple(swap.get(id(part), part) for part in turn.content))
        for turn in subject.item.instruction
    ]
    return replace(subject.item, instruction=tuple(turns))


def _suite_sets(
    probe: Probe, sets: Mapping[str, Sequence[Item]], rng: np.random.Generator, most: int, variants: tuple[str, str]
) -> list[Ask]:
    names = sorted(sets)
    asks: list[Ask] = []
    for name in [names[i] for i in rng.permutation(len(names))]:
        by = {item.id.rsplit("-", 1)[1]: item for item in sets[name]}
        if not all(variant in by for variant in variants) or len(asks) >= 2 * most:
            continue
        first, second = (by[variant] for variant in variants)
        if probe.name.startswith("image") and not any(
            isinstance(p, Image | Video) for t in first.instruction for p in t.content
        ):
            continue
        due = _due(first, second, in_values=probe.name == "rubric-contrast")
        if due == 0:
            continue
        asks += [
            Ask(probe.name, name, variant, _named(item, "set"), due)
            for variant, item in zip(variants, (first, second), strict=True)
        ]
    return asks


def _ladders(probe: Probe, stock: _Stock, rng: np.random.Generator, most: int) -> list[Ask]:
    """The first and the last rung of each ladder; every operator gets its turn before any gets a second."""
    kinds = sorted(name for name in stock.sets if name.startswith("ladder-"))
    rounds = itertools.zip_longest(*([(kind, name) for name in sorted(stock.sets[kind])] for kind in kinds))
    asks: list[Ask] = []
    for kind, name in (pair for each in rounds for pair in each if pair is not None):
        rungs = sorted(stock.sets[kind][name], key=lambda item: int(item.id.rsplit("-off", 1)[1]))
        due = _due(rungs[0], rungs[-1], in_values=False)
        if len(rungs) < 2 or due == 0 or len(asks) >= most:
            continue
        for variant, item in (("none", rungs[0]), ("most", rungs[-1])):
            asks.append(Ask(probe.name, f"{kind}/{name}", variant, _named(item, "set"), due))
    return asks


def _due(first: Item, second: Item, *, in_values: bool) -> float:
    """The change from first to second that gold calls for, in levels: of goodness, or of plain values."""
    found = []
    for item in (first, second):
        rubric = _rubric(item)
        value = gold_value(item.gold, rubric)
        if value is None:
            return 0.0
        scale = rubric.scale
        share = (value - scale.low) / (scale.high - scale.low) if in_values else scale.goodness(value)
        found.append(STEPS * share)
    return found[1] - found[0]


def _pictured(ask: Ask) -> bool:
    return any(isinstance(part, Image | Video) for turn in ask.item.instruction for part in turn.content)


def _rubric(item: Item) -> Rubric:
    assert isinstance(item.rubric, Rubric)
    return item.rubric


def _first(item: Item) -> Any:
    return _score(item, 0)


def _score(item: Item, k: int) -> Any:
    gold = item.gold
    if isinstance(gold, Mapping):
        gold = gold.get("scores")
    return gold[k] if isinstance(gold, list | tuple) and k < len(gold) else None


def _reference(item: Item) -> tuple[Text, ...] | None:
    """What the gold claims say is right, as an answer."""
    claims = item.gold.get("claims") if isinstance(item.gold, Mapping) else None
    said = [str(c["text"] if c.get("verdict") == "right" else c.get("correction", "")) for c in claims or []]
    said = [each.strip().rstrip(".") for each in said if each.strip()]
    return (Text(". ".join(each[0].upper() + each[1:] for each in said) + "."),) if said else None


def _named(item: Item, variant: str) -> Item:
    return replace(item, id=f"{item.id}~{variant}", meta={})


def _renamed(item: Item, variant: str, gold: Any) -> Item:
    return replace(item, id=f"{item.id.rsplit('~', 1)[0]}~{variant}", gold=gold, meta={})


def record(item: Item) -> dict[str, Any]:
    """The JSON form of an item whose pictures are named by their whole paths."""

    def whole(part: Any) -> Any:
        if isinstance(part, Image):
            return Image(
                resolved(part) if part.source.startswith(("http", "data:")) else str(Path(resolved(part)).resolve())
            )
        if isinstance(part, Video):
            return replace(part, frames=tuple(map(whole, part.frames)))
        return part

    def content(parts: Any) -> Any:
        return None if parts is None else tuple(map(whole, parts))

    turns = tuple(replace(turn, content=content(turn.content)) for turn in item.instruction)
    moved = replace(
        item,
        instruction=turns,
        responses=tuple(map(content, item.responses)),
        reference=content(item.reference),
        context=content(item.context),
    )
    return item_to(moved)
