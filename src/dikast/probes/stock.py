"""The stock of candidate items: for each probe the sets that it could compare, in the order of use."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.part import Image, Text, Video, text_of
from dikast.core.rubric import Rubric
from dikast.probes.catalogue import Probe, removed
from dikast.probes.changes import Change, Subject, gold_value, has_pictures
from dikast.probes.sets import BASE, SET, Part, due_of


@dataclass(frozen=True, slots=True)
class Want:
    """One item that a set needs; `make` makes it when it is asked."""

    part: Part
    id: str
    make: Callable[[], Item]


Candidate = tuple[Want, ...]


class Stock:
    """The candidate items, grouped by use, in an order that depends on the seed."""

    def __init__(self, items: Iterable[Item], rubric: Rubric | None, folder: str, seed: int) -> None:
        self.folder, self._seed, self._rng = folder, seed, np.random.default_rng(seed)
        self._single: list[Item] = []
        self._many: list[Item] = []
        self._sets: dict[str, dict[str, list[Item]]] = {}
        for item in items:
            self._take(item, rubric)
        if not self._single:
            self._single = [replace(item, responses=item.responses[:1], gold=_score(item, 0)) for item in self._many]
        self.subjects = self._subjects()
        self.pairs = [self._many[i] for i in self._rng.permutation(len(self._many))]

    def _take(self, item: Item, rubric: Rubric | None) -> None:
        if rubric is not None and item.rubric is None:
            item = replace(item, rubric=rubric)
        if not isinstance(item.rubric, Rubric):
            raise UserError(f"{item.origin or item.id}: a probe takes one criterion: name a rubric with --rubric")
        suite, name = item.meta.get("suite"), item.meta.get("set")
        if suite is not None:
            self._sets.setdefault(str(suite), {}).setdefault(str(name), []).append(item)
        changed = suite is not None and not item.id.endswith("-base")
        if len(item.responses) > 1 and not item.id.endswith("-swapped"):
            self._many.append(item)
        elif len(item.responses) == 1 and not changed and suite in (None, "edits", "evidence"):
            self._single.append(item)

    def _subjects(self) -> list[Subject]:
        """Items with a response in words; missing references are made from gold claims."""
        spoken = [item for item in self._single if item.responses and text_of(item.responses[0]).strip()]
        order = [spoken[i] for i in self._rng.permutation(len(spoken))]
        told = [replace(item, reference=item.reference or _reference(item)) for item in order]
        others = told[1:] + told[:1]
        return [Subject(item, _rubric(item), other) for item, other in zip(told, others, strict=True)]

    def candidates(self, probe: Probe) -> list[Candidate]:
        """The sets that a probe could compare; if gold says how much must change, the largest changes first."""
        if probe.name in ("position", "absolute-pairwise"):
            return [self._pair(item, sides=probe.name != "position") for item in self.pairs]
        if probe.name == "level-order":
            told = [subject for subject in self.subjects if subject.rubric.levels]
            return [(_base(each), replace(_base(each), part="reversed")) for each in told]
        if probe.name in ("lenience", "run-order"):
            return [(_base(each),) for each in self.subjects if probe.name == "run-order" or _gold(each) is not None]
        if probe.derived:
            return []
        if probe.name == "rubric-contrast":
            return self._twos(self._sets.get("contrast", {}), "first", "second", in_values=True)
        if probe.name == "dose-response":
            return self._ladders()
        if probe.name.startswith("image-") and not probe.makes:
            return self._evidence(probe.name)
        return [made for i, subject in enumerate(self.subjects) if (made := self._made(probe, subject, i))]

    def _made(self, probe: Probe, subject: Subject, i: int) -> Candidate | None:
        if probe.name == "master-keys":
            makes: Sequence[tuple[str, Change]] = (probe.makes[i % len(probe.makes)],)
        else:
            makes = probe.makes
        wants = [] if len(makes) == 2 else [_base(subject)]
        for name, change in makes:
            if probe.name == "image-text":  # the image is drawn when it is asked
                if not has_pictures(subject.item):
                    return None
                wants.append(Want("absolute", f"{subject.item.id}~{name}", partial(_changed, change, subject, name)))
                continue
            item = change(subject)
            if item is None or (probe.name == "rubric-direction" and not due_of(subject.item, item, in_values=True)):
                return None
            wants.append(_want(item, subject.item.id, name))
        return tuple(wants)

    def _pair(self, item: Item, *, sides: bool) -> Candidate:
        two = replace(item, responses=item.responses[:2])
        wants = [Want("pairs", f"{item.id}~pair", partial(named, two, f"{item.id}~pair"))]
        if sides:
            for k in (0, 1):
                one = replace(two, responses=(two.responses[k],), gold=_score(item, k))
                wants.append(_want(one, item.id, f"side{k}"))
        return tuple(wants)

    def _twos(self, sets: Mapping[str, Sequence[Item]], first: str, second: str, *, in_values: bool) -> list[Candidate]:
        found = []
        for name in self._shuffled(sets):
            by = {item.id.rsplit("-", 1)[1]: item for item in sets[name]}
            if first in by and second in by:
                due = due_of(by[first], by[second], in_values=in_values)
                if due:
                    found.append((abs(due), (_as_is(by[first]), _as_is(by[second]))))
        return [wants for _, wants in sorted(found, key=lambda each: -each[0])]

    def _evidence(self, probe: str) -> list[Candidate]:
        evidence = {name: items for name, items in self._sets.get("evidence", {}).items() if has_pictures(items[0])}
        if not evidence:
            return self._own_evidence(probe)
        if probe == "image-swapped":
            return self._twos(evidence, BASE, "swapped", in_values=False)
        blank = self._twos(evidence, BASE, "blank", in_values=False)
        if probe == "image-blanked":
            return blank
        found: list[Candidate] = []
        for base, other in blank:
            stem = base.id.removesuffix(f"~{SET}")
            make = partial(_without_picture, removed(self.folder)[probe], base, other, f"{stem}~{probe}")
            found.append((base, Want("absolute", f"{stem}~{probe}", make)))
        return found

    def _own_evidence(self, probe: str) -> list[Candidate]:
        """For items without gold for a changed image."""
        found: list[Candidate] = []
        for subject in self.subjects:
            if not has_pictures(subject.item):
                continue
            change = _with_pictures_of if probe == "image-swapped" else removed(self.folder)[probe]
            if probe == "image-swapped" and change(subject) is None:
                continue
            id = f"{subject.item.id}~{probe}"
            found.append((_base(subject), Want("absolute", id, partial(_ungraded, change, subject, probe))))
        return found

    def _ladders(self) -> list[Candidate]:
        """The first and the last rung of each ladder; every operator gets its turn before any gets a second."""
        kinds = sorted(name for name in self._sets if name.startswith("ladder-"))
        rounds = itertools.zip_longest(*([(kind, name) for name in sorted(self._sets[kind])] for kind in kinds))
        found: list[Candidate] = []
        for kind, name in (pair for each in rounds for pair in each if pair is not None):
            rungs = sorted(self._sets[kind][name], key=lambda item: int(item.id.rsplit("-off", 1)[1]))
            if len(rungs) > 1 and due_of(rungs[0], rungs[-1], in_values=False):
                found.append((_as_is(rungs[0]), _as_is(rungs[-1])))
        return found

    def _shuffled(self, sets: Mapping[str, Sequence[Item]]) -> list[str]:
        """The names in the same order for all probes of these sets, so that they share their originals."""
        names = sorted(sets)
        return [names[i] for i in np.random.default_rng(self._seed).permutation(len(names))]


def named(item: Item, id: str) -> Item:
    """The item under another id, without its metadata."""
    return replace(item, id=id, meta={})


def _want(item: Item, id: str, variant: str) -> Want:
    return Want("absolute", f"{id}~{variant}", partial(named, item, f"{id}~{variant}"))


def _base(subject: Subject) -> Want:
    return _want(subject.item, subject.item.id, BASE)


def _as_is(item: Item) -> Want:
    return _want(item, item.id, SET)


def _changed(change: Change, subject: Subject, variant: str) -> Item:
    item = change(subject)
    assert item is not None
    return named(item, f"{subject.item.id}~{variant}")


def _ungraded(change: Change, subject: Subject, variant: str) -> Item:
    return replace(_changed(change, subject, variant), gold=None)


def _without_picture(change: Change, base: Want, blank: Want, id: str) -> Item:
    item = base.make()
    changed = change(Subject(item, _rubric(item), item))
    assert changed is not None
    return replace(named(changed, id), gold=blank.make().gold)


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


def _rubric(item: Item) -> Rubric:
    assert isinstance(item.rubric, Rubric)
    return item.rubric


def _gold(subject: Subject) -> float | None:
    return gold_value(subject.item.gold, subject.rubric)


def _score(item: Item, k: int) -> Any:
    gold = item.gold
    if isinstance(gold, Mapping):
        gold = gold.get("scores")
    return gold[k] if isinstance(gold, list | tuple) and k < len(gold) else None


def _reference(item: Item) -> tuple[Text, ...] | None:
    """The correct answer by the gold claims."""
    claims = item.gold.get("claims") if isinstance(item.gold, Mapping) else None
    said = [str(c["text"] if c.get("verdict") == "right" else c.get("correction", "")) for c in claims or []]
    said = [each.strip().rstrip(".") for each in said if each.strip()]
    return (Text(". ".join(each[0].upper() + each[1:] for each in said) + "."),) if said else None
