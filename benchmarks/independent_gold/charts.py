"""Reading claims about charts back from English, and looking them up in the chart's values."""

import re
from collections.abc import Mapping
from typing import Any

_A, _N, _E = "([a-h])", r"(\d+)", "(highest|lowest)"
_PATTERNS = [
    *[("value", p, "sv") for p in (
        f"(?:look, )?the value of {_A} is {_N}", f"for {_A} the chart shows {_N}", f"{_A}: {_N}")],
    *[("value", p, "vs") for p in (f"{_N} is the value of {_A}", f"we note {_N} for {_A}")],
    *[("order", p, "st") for p in (
        f"(?:look, )?the value of {_A} is above {_A}", f"for {_A} the chart shows more than for {_A}",
        f"{_A}: above {_A}", f"we note {_A} above {_A}")],
    ("order", f"above {_A} is the value of {_A}", "ts"),
    ("extreme", f"(?:look, )?the {_E} value is {_A}", "ev"),
    *[("extreme", p, "ve") for p in (
        f"for {_A} the chart shows the {_E} value", f"{_A}: {_E}",
        f"{_A} is the {_E} value", f"we note {_A} as the {_E}")],
]  # fmt: skip
_COMPILED = [(kind, re.compile(pattern), order) for kind, pattern, order in _PATTERNS]
Said = tuple[str, tuple[str, ...], Any]


class ChartReader:
    """Reads and checks claims against one chart (the JSON form)."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self.values: Mapping[str, int] = graph["values"]

    def read(self, sentence: str) -> Said:
        """What a sentence claims. ValueError when it claims nothing known."""
        for kind, pattern, order in _COMPILED:
            if match := pattern.fullmatch(sentence):
                g = dict(zip(order, match.groups(), strict=True))
                if kind == "order":
                    pair = (g["s"].upper(), g["t"].upper())
                    return kind, tuple(sorted(pair)), pair
                if kind == "extreme":
                    return kind, (g["e"],), g["v"].upper()
                return kind, (g["s"].upper(),), int(g["v"])
        raise ValueError(f"no reading of {sentence!r}")

    def off(self, kind: str, subject: tuple[str, ...], said: Any) -> tuple[str, int]:
        """The aspect a claim is about and by how much it is off, 0 if true."""
        if kind == "order":
            known = said[0] in self.values and said[1] in self.values
            return kind, 99 if not known else int(not self.values[said[0]] > self.values[said[1]])
        if kind == "extreme":
            sign = 1 if subject[0] == "highest" else -1
            rivals = [sign * n for letter, n in self.values.items() if letter != said]
            return kind, int(said not in self.values or not all(sign * self.values[said] > n for n in rivals))
        true = self.values.get(subject[0])
        if true is None:
            return kind, 99
        return kind, 0 if said == true else max(1, int(100 * abs(said - true) / true + 0.5))

    def left_out(self, claims: list[Said]) -> int:
        """Nothing is asked to be complete."""
        return 0
