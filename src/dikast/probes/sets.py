"""The sets of items that each probe compares, derived from the ids of the asked items.

The id of a changed item is `ID~VARIANT`. A folder of probes stores nothing else about sets, so a folder written by any
version can be read and resumed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.probes.catalogue import DROP, STEPS, Probe
from dikast.probes.changes import gold_value, has_pictures

BASE = "base"
SET = "set"  # the variant of items of the standard suite that are asked unchanged
Part = Literal["absolute", "reversed", "pairs"]
PARTS: tuple[Part, ...] = ("absolute", "reversed", "pairs")


@dataclass(frozen=True, slots=True)
class Set:
    """Items that one probe compares, in the order of the comparison: the original first.

    `due` is the change from the first to the second that gold calls for, in levels (0: none); without gold (`by_gold`
    is False) the minimum required change.
    """

    name: str
    asks: tuple[tuple[Part, str], ...]
    due: float = 0.0
    by_gold: bool = True


@dataclass(slots=True)
class Asked:
    """Items by part and id, in the order in which they are asked."""

    absolute: dict[str, Item] = field(default_factory=dict)
    reversed: dict[str, Item] = field(default_factory=dict)
    pairs: dict[str, Item] = field(default_factory=dict)

    def of(self, part: Part) -> dict[str, Item]:
        """The items of one part."""
        return {"absolute": self.absolute, "reversed": self.reversed, "pairs": self.pairs}[part]

    @property
    def calls(self) -> int:
        """Questions in all; a pair is two."""
        return len(self.absolute) + len(self.reversed) + 2 * len(self.pairs)


def sets_of(probe: Probe, asked: Asked) -> list[Set]:
    """The sets of a probe among what was asked."""
    if probe.derived:
        return []
    if probe.name == "position":
        return [Set(id, (("pairs", id),)) for id in asked.pairs]
    if probe.name == "level-order":
        return [Set(_stem(id), (("absolute", id), ("reversed", id))) for id in asked.reversed if id in asked.absolute]
    if probe.name == "absolute-pairwise":
        return [
            Set(stem, (("pairs", f"{stem}~pair"), ("absolute", f"{stem}~side0"), ("absolute", f"{stem}~side1")))
            for stem in _stems(asked.absolute, "side1")
            if f"{stem}~pair" in asked.pairs and f"{stem}~side0" in asked.absolute
        ]
    if probe.name == "dose-response":
        return _ladders(asked.absolute)
    if probe.name == "rubric-contrast":
        return _twos(asked.absolute, "first", "second", in_values=True)
    if probe.name == "rubric-direction":
        return _directions(asked.absolute)
    if probe.name.startswith("image-") and not probe.makes:
        return _evidence(probe.name, asked.absolute)
    if len(probe.makes) == 2:
        return _made_twos(probe, asked.absolute)
    return _made(probe, asked.absolute)


def due_of(first: Item, second: Item, *, in_values: bool) -> float:
    """The change from first to second that gold calls for, in levels: of goodness, or of plain values."""
    found = [_gold_share(item, in_values=in_values) for item in (first, second)]
    return 0.0 if found[0] is None or found[1] is None else STEPS * (found[1] - found[0])


def gold_goodness(item: Item) -> float | None:
    """The goodness of the response by gold, 0 worst to 1 best."""
    return _gold_share(item, in_values=False)


def _gold_share(item: Item, *, in_values: bool) -> float | None:
    if not isinstance(item.rubric, Rubric):
        return None
    value, scale = gold_value(item.gold, item.rubric), item.rubric.scale
    if value is None:
        return None
    return (value - scale.low) / (scale.high - scale.low) if in_values else scale.goodness(value)


def _made(probe: Probe, items: Mapping[str, Item]) -> list[Set]:
    """Sets of an original and its changed item; of master keys, the key and the original that it stands for."""
    found = []
    for name, _ in probe.makes:
        for stem in _stems(items, name):
            base, changed = f"{stem}~{BASE}", f"{stem}~{name}"
            if base in items:
                found.append(Set(stem, (("absolute", base), ("absolute", changed))))
    return found


def _made_twos(probe: Probe, items: Mapping[str, Item]) -> list[Set]:
    names = [name for name, _ in probe.makes]
    found = []
    for stem in _stems(items, names[0]):
        ids = [f"{stem}~{name}" for name in names]
        if all(id in items for id in ids):
            due = due_of(items[ids[0]], items[ids[1]], in_values=False) if probe.side == "down" else 0.0
            found.append(Set(stem, (("absolute", ids[0]), ("absolute", ids[1])), due))
    return found


def _directions(items: Mapping[str, Item]) -> list[Set]:
    """The plain value must move to the other end of the scale if its direction is reversed."""
    found = []
    for stem in _stems(items, "rubric-inversion"):
        ids = f"{stem}~{BASE}", f"{stem}~rubric-inversion"
        if ids[0] in items and (due := due_of(items[ids[0]], items[ids[1]], in_values=True)):
            found.append(Set(stem, (("absolute", ids[0]), ("absolute", ids[1])), due))
    return found


def _evidence(probe: str, items: Mapping[str, Item]) -> list[Set]:
    if probe == "image-blanked":
        found = _twos(items, BASE, "blank")
    elif probe == "image-swapped":
        found = _twos(items, BASE, "swapped")
    else:
        found = []
    found = [each for each in found if has_pictures(items[each.asks[0][1]])]
    for stem in _stems(items, probe):
        changed = f"{stem}~{probe}"
        first = f"{stem}~{SET}" if f"{stem}~{SET}" in items else f"{stem}~{BASE}"
        if first in items:
            by_gold = items[changed].gold is not None
            due = due_of(items[first], items[changed], in_values=False) if by_gold else -DROP
            found.append(Set(stem, (("absolute", first), ("absolute", changed)), due, by_gold))
    return [each for each in found if each.due]


def _twos(items: Mapping[str, Item], first: str, second: str, *, in_values: bool = False) -> list[Set]:
    """Sets of the standard suite: `NAME-first~set` and `NAME-second~set`."""
    found = []
    for stem in _stems(items, SET):
        if not stem.endswith(f"-{second}"):
            continue
        name = stem.removesuffix(f"-{second}")
        ids = f"{name}-{first}~{SET}", f"{name}-{second}~{SET}"
        if ids[0] in items and (due := due_of(items[ids[0]], items[ids[1]], in_values=in_values)):
            found.append(Set(name, (("absolute", ids[0]), ("absolute", ids[1])), due))
    return found


def _ladders(items: Mapping[str, Item]) -> list[Set]:
    """The first and the last rung that were asked of each ladder, `NAME-off3~set`."""
    rungs: dict[str, list[tuple[int, str]]] = {}
    for stem in _stems(items, SET):
        name, _, rung = stem.rpartition("-off")
        if name and rung.isdigit():
            rungs.setdefault(name, []).append((int(rung), f"{stem}~{SET}"))
    found = []
    for name, each in rungs.items():
        first, last = min(each)[1], max(each)[1]
        if first != last and (due := due_of(items[first], items[last], in_values=False)):
            found.append(Set(name, (("absolute", first), ("absolute", last)), due))
    return found


def _stem(id: str) -> str:
    return id.rsplit("~", 1)[0]


def _stems(ids: Iterable[str], variant: str) -> list[str]:
    return [id.removesuffix(f"~{variant}") for id in ids if id.endswith(f"~{variant}")]
