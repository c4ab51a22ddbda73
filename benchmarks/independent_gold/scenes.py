"""Reading claims about scenes back from English, and looking them up in a scene graph."""

import re
from collections.abc import Mapping
from typing import Any

Said = tuple[str, tuple[str, ...], Any]  # kind, subject, what is said of it

_WHEEL = ["red", "orange", "yellow", "green", "teal", "blue", "purple", "pink"]
_SIZES = ["small", "medium", "large"]
_TEXTURES = ["plain", "striped", "dotted"]
_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_ACROSS, _DOWN = ["left", "centre", "right"], ["top", "middle", "bottom"]
_S = "(circle|square|triangle|diamond|cross|star|ring|heart)"
_SS = "(circles|squares|triangles|diamonds|crosses|stars|rings|hearts)"
_C, _Z, _T = (f"({'|'.join(words)})" for words in (_WHEEL, _SIZES, _TEXTURES))
_N = f"({'|'.join(_NUMBERS)})"
_P = "(top left|top right|bottom left|bottom right|top|bottom|left|right|centre)"
_D = "(left of|right of|above|below)"


def _one(word: str) -> str:
    return {"crosses": "cross"}.get(word, word.removesuffix("s") if word != "cross" else word)


def _property(kind: str, values: str) -> list[tuple[str, str, str]]:
    forms = (f"(?:look, )?the {_S} is {values}", f"the {kind} of the {_S} is {values}", f"{_S}: {values}")
    turned = (f"{values} is the {kind} of the {_S}", f"we note {values} for the {_S}")
    return [(kind, form, "sv") for form in forms] + [(kind, form, "vs") for form in turned]


# kind, pattern, what its groups are in order: s subject, v value, plus c and d for pairs
_PATTERNS = [
    *_property("colour", _C), *_property("size", _Z), *_property("texture", _T),
    *[("exists", p, "vs") for p in (
        f"(?:look, )?there is an? {_C} {_S}", f"an? {_C} {_S} is present", f"seen: {_C} {_S}",
        f"in the picture is an? {_C} {_S}", f"we note one {_C} {_S}")],
    *[("shape", p, "sv") for p in (
        f"(?:look, )?the {_C} thing is a {_S}", f"the shape of the {_C} thing is {_S}", f"{_C} thing: {_S}")],
    *[("shape", p, "vs") for p in (f"a {_S} is what the {_C} thing is", f"we note {_S} for the {_C} thing")],
    *[("position", p, "sv") for p in (
        f"(?:look, )?the {_S} is at the {_P}", f"the place of the {_S} is the {_P}", f"{_S}: {_P}")],
    *[("position", p, "vs") for p in (f"at the {_P} is the {_S}", f"we note the {_P} for the {_S}")],
    *[("relation", p, "svt") for p in (
        f"(?:look, )?the {_S} is {_D} the {_S}", f"the place of the {_S} is {_D} the {_S}", f"{_S}: {_D} the {_S}",
        f"we note the {_S} {_D} the {_S}")],
    ("relation", f"{_D} the {_S} is the {_S}", "vts"),
    *[("count", p, "vs") for p in (
        f"(?:look, )?there are {_N} {_SS}", f"{_N} is the number of {_SS}", f"we note {_N} {_SS}")],
    *[("count", p, "sv") for p in (f"the number of {_SS} is {_N}", f"{_SS}: {_N}")],
    *[("binding", p, "svtw") for p in (
        f"(?:look, )?the {_S} is {_C} and the {_S} is {_C}", f"{_S}: {_C}, {_S}: {_C}")],
    ("binding", f"the colours of the {_S} and the {_S} are {_C} and {_C}", "stvw"),
    ("binding", f"{_C} and {_C} are the {_S} and the {_S}", "vwst"),
    ("binding", f"we note {_C} for the {_S} and {_C} for the {_S}", "vswt"),
    *[("more", p, "st") for p in (
        f"(?:look, )?there are more {_SS} than {_SS}", f"the number of {_SS} is above that of {_SS}",
        f"{_SS}: more than {_SS}", f"more {_SS} than {_SS} are there", f"we note more {_SS} than {_SS}")],
    *[("larger", p, "st") for p in (
        f"(?:look, )?the {_S} is larger than the {_S}", f"the size of the {_S} is above that of the {_S}",
        f"{_S}: larger than the {_S}", f"we note the {_S} larger than the {_S}")],
    ("larger", f"larger than the {_S} is the {_S}", "ts"),
    *[("sure", p, "sv") for p in (
        f"(?:look, )?a {_S} is surely in the {_P} corner", f"we note surely a {_S} in the {_P} corner")],
    *[("sure", p, "vs") for p in (
        f"the {_P} corner surely holds a {_S}", f"{_P} corner: surely a {_S}", f"in the {_P} corner is surely a {_S}")],
]  # fmt: skip
_COMPILED = [(kind, re.compile(pattern), order) for kind, pattern, order in _PATTERNS]
_ABSENT = 9


class SceneReader:
    """Reads and checks claims against one scene graph (the JSON form)."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self.things, self.grid = graph["things"], graph["grid"]
        self.covers = [tuple(cell) for cell in graph["covers"]]

    def read(self, sentence: str) -> Said:
        """What a sentence claims. ValueError when it claims nothing known."""
        for kind, pattern, order in _COMPILED:
            if match := pattern.fullmatch(sentence):
                return _said(kind, dict(zip(order, match.groups(), strict=True)))
        raise ValueError(f"no reading of {sentence!r}")

    def off(self, kind: str, subject: tuple[str, ...], said: Any) -> tuple[str, int]:
        """The aspect a claim is about and by how much it is off, 0 if true."""
        aspect = {"exists": "existence", "more": "comparison", "larger": "comparison", "sure": "certainty"}.get(
            kind, kind
        )
        return aspect, getattr(self, f"_off_{kind}")(subject, said)

    def left_out(self, claims: list[Said]) -> int:
        """Things that no claim names by shape or by colour."""
        named: set[str] = set()
        for kind, subject, said in claims:
            named.update(subject)
            if kind in ("shape", "more", "larger"):
                named.update([said] if isinstance(said, str) else said)
        shapes = {s for s in named if re.fullmatch(_S, s)}
        hues = {subject[0] for kind, subject, _ in claims if kind == "shape"}
        return len([t for t in self.things if t["shape"] not in shapes and t["colour"] not in hues])

    def _named(self, shape: str) -> list[Mapping[str, Any]]:
        return [t for t in self.things if t["shape"] == shape]

    def _least(self, offs: list[int]) -> int:
        return min(offs) if offs else _ABSENT

    def _off_colour(self, subject: tuple[str, ...], said: str) -> int:
        offs = []
        for thing in self._named(subject[0]):
            d = (_WHEEL.index(thing["colour"]) - _WHEEL.index(said)) % 8
            offs.append(d if d <= 4 else 8 - d)
        return self._least(offs)

    def _off_size(self, subject: tuple[str, ...], said: str) -> int:
        return self._least([abs(_SIZES.index(t["size"]) - _SIZES.index(said)) for t in self._named(subject[0])])

    def _off_texture(self, subject: tuple[str, ...], said: str) -> int:
        return self._least([0 if t["texture"] == said else 1 for t in self._named(subject[0])])

    def _off_exists(self, subject: tuple[str, ...], said: str) -> int:
        hues = [t["colour"] for t in self._named(subject[0])]
        return 0 if said in hues else 1 if hues else 2

    def _off_shape(self, subject: tuple[str, ...], said: str) -> int:
        return self._least([0 if t["shape"] == said else 1 for t in self.things if t["colour"] == subject[0]])

    def _off_position(self, subject: tuple[str, ...], said: str) -> int:
        column = next((i for i, word in enumerate(_ACROSS) if i != 1 and word in said), 1)
        row = next((i for i, word in enumerate(_DOWN) if word in said), 1)
        offs = []
        for t in self._named(subject[0]):
            x, y = (0 if at == 0 else 2 if at + 1 == self.grid else 1 for at in (t["col"], t["row"]))
            offs.append(abs(x - column) + abs(y - row))
        return self._least(offs)

    def _off_relation(self, subject: tuple[str, ...], said: str) -> int:
        axis, sign = {"left of": ("col", 1), "right of": ("col", -1), "above": ("row", 1), "below": ("row", -1)}[said]
        offs = []
        for a in self._named(subject[0]):
            for b in self._named(subject[1]):
                lead = sign * (b[axis] - a[axis])
                offs.append(0 if lead > 0 else 1 - lead)
        return self._least(offs)

    def _off_count(self, subject: tuple[str, ...], said: int) -> int:
        return abs(len(self._named(subject[0])) - said)

    def _off_binding(self, subject: tuple[str, ...], said: tuple[str, str]) -> int:
        first, second = (
            [int(t["colour"] != hue) for t in self._named(s)] for s, hue in zip(subject, said, strict=True)
        )
        return min(first) + min(second) if first and second else _ABSENT

    def _off_more(self, subject: tuple[str, ...], said: tuple[str, str]) -> int:
        a, b = (len(self._named(shape)) for shape in said)
        return _ABSENT if a == b == 0 else 0 if a > b else b - a + 1

    def _off_larger(self, subject: tuple[str, ...], said: tuple[str, str]) -> int:
        ours, theirs = ([_SIZES.index(t["size"]) for t in self._named(shape)] for shape in said)
        return max(0, min(theirs) - max(ours) + 1) if ours and theirs else _ABSENT

    def _off_sure(self, subject: tuple[str, ...], said: Any) -> int:
        corner, shape = subject
        cell = (self.grid - 1 if "right" in corner else 0, self.grid - 1 if "bottom" in corner else 0)
        return 0 if any((t["col"], t["row"]) == cell for t in self._named(shape)) else 1


def _said(kind: str, g: dict[str, str]) -> Said:
    if kind == "count":
        return kind, (_one(g["s"]),), _NUMBERS.index(g["v"])
    if kind == "relation":
        return kind, (g["s"], g["t"]), g["v"]
    if kind == "binding":
        return kind, (g["s"], g["t"]), (g["v"], g["w"])
    if kind in ("more", "larger"):
        pair = (_one(g["s"]), _one(g["t"])) if kind == "more" else (g["s"], g["t"])
        return kind, tuple(sorted(pair)), pair
    if kind == "sure":
        return kind, (g["v"], g["s"]), None
    return kind, (g["s"],), g["v"]
