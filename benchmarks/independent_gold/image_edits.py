"""Reading what was asked to be changed in a picture back from English, and comparing the pictures before and after."""

import re
from collections.abc import Mapping
from typing import Any

_S = "(circle|square|triangle|diamond|cross|star|ring|heart)"
_P = "(top left|top right|bottom left|bottom right|top|bottom|left|right|centre)"
_VALUES = {
    "colour": "(red|orange|yellow|green|teal|blue|purple|pink)",
    "size": "(small|medium|large)",
    "texture": "(plain|striped|dotted)",
}
_C = _VALUES["colour"]
_KINDS = {"colour": "recolour", "size": "resize", "texture": "retexture", "place": "shift"}
_PATTERNS = [
    *[(_KINDS[what], p, "sv") for what, v in _VALUES.items() for p in (
        f"(?:please )?make the {_S} {v}", f"the {what} of the {_S} should become {v}", f"{_S}: now {v}")],
    *[(_KINDS[what], p, "vs") for what, v in _VALUES.items() for p in (
        f"{v} is what the {_S} should be", f"we ask for {v} for the {_S}")],
    *[("shift", p, "sv") for p in (
        f"(?:please )?move the {_S} to the {_P}", f"the place of the {_S} should become the {_P}",
        f"{_S}: to the {_P}", f"we ask for the {_S} at the {_P}")],
    ("shift", f"to the {_P} with the {_S}", "vs"),
    *[("remove", p, "s") for p in (
        f"(?:please )?remove the {_S}", f"the {_S} should be gone", f"{_S}: out", f"away with the {_S}",
        f"we ask for no {_S}")],
    *[("add", p, "vs") for p in (
        f"(?:please )?add an? {_C} {_S}", f"an? {_C} {_S} should be added", f"new: {_C} {_S}",
        f"to be added is an? {_C} {_S}", f"we ask for one more thing, an? {_C} {_S}")],
]  # fmt: skip
_COMPILED = [(kind, re.compile(pattern), order) for kind, pattern, order in _PATTERNS]
Said = tuple[str, tuple[str, ...], Any]
Seen = dict[str, dict[str, Any]]  # shape -> what it looks like and where it is


class ImageEditReader:
    """Compares two scene graphs (the JSON form)."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self.grid = graph["after"]["grid"]
        self.before, self.after = self._seen(graph["before"]), self._seen(graph["after"])

    @staticmethod
    def _seen(scene: Mapping[str, Any]) -> Seen:
        return {
            t["shape"]: {"place": (t["col"], t["row"]), **{what: t[what] for what in _VALUES}} for t in scene["things"]
        }

    def read(self, sentence: str) -> Said:
        """What a sentence asks for. ValueError when it asks for nothing known."""
        for kind, pattern, order in _COMPILED:
            if match := pattern.fullmatch(sentence):
                g = dict(zip(order, match.groups(), strict=True))
                return kind, (g["s"],), g.get("v", "gone")
        raise ValueError(f"no reading of {sentence!r}")

    def off(self, kind: str, subject: tuple[str, ...], said: Any) -> tuple[str, int]:
        """The aspect, and 0 if the change was made as asked, else 1."""
        aspect = {"remove": "removal", "add": "addition", "shift": "shift"}.get(kind, "edit")
        before, after = self.before.get(subject[0]), self.after.get(subject[0])
        if kind == "remove":
            return aspect, int(before is None or after is not None)
        if after is None:
            return aspect, 1
        if kind == "shift":
            col, row = after["place"]
            across, down = (["", "right"][col == self.grid - 1] if col else "left",
                            ["", "bottom"][row == self.grid - 1] if row else "top")  # fmt: skip
            return aspect, int((f"{down} {across}".strip() or "centre") != said)
        what = {"resize": "size", "retexture": "texture"}.get(kind, "colour")
        return aspect, int(after[what] != said)

    def left_out(self, claims: list[Said]) -> int:
        """How many things changed in what nobody asked for."""
        wanted = {(subject[0], kind) for kind, subject, _ in claims}
        n = 0
        for shape in {*self.before, *self.after}:
            before, after = self.before.get(shape), self.after.get(shape)
            if before is None or after is None:
                n += (shape, "add" if before is None else "remove") not in wanted
            else:
                n += any(before[w] != after[w] and (shape, kind) not in wanted for w, kind in _KINDS.items())
        return n
