"""Reading claims about plates and tables back from English, and looking them up in the document."""

import re
from collections.abc import Mapping
from typing import Any

_C, _W, _N = "(red|orange|yellow|green|teal|blue|purple|pink)", "([a-z]{4})", r"(\d+)"
_AT = "row ([1-3]), column ([a-c])"
_PATTERNS = [
    ("cell", f"(?:look, )?{_AT} holds {_N}", "rcv"),
    ("cell", f"the cell in {_AT} is {_N}", "rcv"),
    ("cell", f"{_AT}: {_N}", "rcv"),
    ("cell", f"{_N} is in {_AT}", "vrc"),
    ("cell", f"we note {_N} for {_AT}", "vrc"),
]
for _kind, _noun, _value in (("number", "number", _N), ("reading", "word", _W)):
    _PATTERNS += [
        (_kind, f"(?:look, )?the {_C} plate says {_value}", "sv"),
        (_kind, f"the {_noun} on the {_C} plate is {_value}", "sv"),
        (_kind, f"{_C} plate: {_value}", "sv"),
        (_kind, f"{_value} is the {_noun} on the {_C} plate", "vs"),
        (_kind, f"we note {_value} for the {_C} plate", "vs"),
    ]
_COMPILED = [(kind, re.compile(pattern), order) for kind, pattern, order in _PATTERNS]
Said = tuple[str, tuple[str, ...], Any]


class TextImageReader:
    """Reads and checks claims against one document (the JSON form)."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self.plates = {colour: text for colour, text in graph["plates"]}
        self.table = graph["table"]

    def read(self, sentence: str) -> Said:
        """What a sentence claims. ValueError when it claims nothing known."""
        for kind, pattern, order in _COMPILED:
            if match := pattern.fullmatch(sentence):
                g = dict(zip(order, match.groups(), strict=True))
                subject = (g["r"], g["c"].upper()) if kind == "cell" else (g["s"],)
                return kind, subject, g["v"].upper() if kind == "reading" else int(g["v"])
        raise ValueError(f"no reading of {sentence!r}")

    def off(self, kind: str, subject: tuple[str, ...], said: Any) -> tuple[str, int]:
        """The aspect a claim is about and by how much it is off, 0 if true."""
        if kind == "cell":
            true = self.table[int(subject[0]) - 1]["ABC".find(subject[1])] if self.table else None
        else:
            true = self.plates.get(subject[0])
            if true is not None and true.isnumeric() != (kind == "number"):
                true = None
        if true is None:
            return kind, 99
        if kind == "reading":
            return kind, _letters(said, true)
        return kind, 0 if said == int(true) else max(1, int(100 * abs(said - int(true)) / int(true) + 0.5))

    def left_out(self, claims: list[Said]) -> int:
        """Nothing is asked to be complete."""
        return 0


def _letters(a: str, b: str) -> int:
    """Levenshtein's distance, by its recursion."""
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return _letters(a[1:], b[1:])
    return 1 + min(_letters(a[1:], b), _letters(a, b[1:]), _letters(a[1:], b[1:]))
