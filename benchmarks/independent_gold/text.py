"""Reading claims about notes back from English, and looking them up in the notes."""

import re
from collections.abc import Mapping
from typing import Any

_NAME, _N, _L = r"(ann|bob|cleo|dan|eve|finn|gus|hana)", r"(\d+)", r"([k-t]|w)"
_KEYS = {
    "city": ("lives in", "oslo|rome|lima|cairo|paris"),
    "pet": ("keeps a", "cat|dog|parrot|snake|horse"),
    "drink": ("drinks", "tea|coffee|milk|juice|water"),
}
_WEEK = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_E, _D = "(market|concert|meeting|exam|match|picnic|parade|lecture)", f"({'|'.join(_WEEK)})"
_W = "(fig|kiwi|lemon|mango|olive|pear|plum|rice)"


def _patterns() -> list[tuple[str, str, str, str]]:
    found = []
    for key, (verb, values) in _KEYS.items():
        v = f"({values})"
        found += [
            ("fact", key, p, "sv")
            for p in (f"(?:look, )?{_NAME} {verb} {v}", f"the {key} of {_NAME} is {v}", f"{_NAME}: {v}")
        ]
        found += [("fact", key, p, "vs") for p in (f"{v} is the {key} of {_NAME}", f"we note {v} for {_NAME}")]
    found += [
        ("age", "age", p, "sv")
        for p in (f"(?:look, )?{_NAME} is {_N} years old", f"the age of {_NAME} is {_N}", f"{_NAME}: {_N} years")
    ]
    found += [("age", "age", p, "vs") for p in (f"{_N} is the age of {_NAME}", f"we note {_N} years for {_NAME}")]
    for kind, noun, sign in (("plus", "sum", r"\+"), ("minus", "difference", "-")):
        both = f"{_L} {kind} {_L}"
        found += [
            (kind, "", p, "stv")
            for p in (f"(?:look, )?{both} is {_N}", f"the {noun} of {_L} and {_L} is {_N}", f"{_L} {sign} {_L}: {_N}")
        ]
        found += [(kind, "", p, "vst") for p in (f"{_N} is the {noun} of {_L} and {_L}", f"we note {_N} for {both}")]
    found += [
        ("place", "", p, "sv")
        for p in (
            f"(?:look, )?the word {_W} is at place {_N}",
            f"the place of the word {_W} is {_N}",
            f"{_W}: place {_N}",
        )
    ]
    found += [
        ("place", "", p, "vs") for p in (f"at place {_N} is the word {_W}", f"we note place {_N} for the word {_W}")
    ]
    found += [
        ("day", "", p, "sv") for p in (f"(?:look, )?the {_E} is on {_D}", f"the day of the {_E} is {_D}", f"{_E}: {_D}")
    ]
    found += [("day", "", p, "vs") for p in (f"{_D} is the day of the {_E}", f"we note {_D} for the {_E}")]
    return found


_COMPILED = [(kind, key, re.compile(p), order) for kind, key, p, order in _patterns()]
Said = tuple[str, tuple[str, ...], Any]


class TextReader:
    """Reads and checks claims against one set of notes (the JSON form)."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self.graph = graph

    def read(self, sentence: str) -> Said:
        """What a sentence claims. ValueError when it claims nothing known."""
        for kind, key, pattern, order in _COMPILED:
            if match := pattern.fullmatch(sentence):
                g = dict(zip(order, match.groups(), strict=True))
                if kind in ("fact", "age"):
                    subject: tuple[str, ...] = (g["s"].capitalize(), key)
                elif kind in ("place", "day"):
                    subject = (g["s"],)
                else:
                    subject = (g["s"].upper(), g["t"].upper())
                return kind, subject, g["v"] if kind in ("fact", "day") else int(g["v"])
        raise ValueError(f"no reading of {sentence!r}")

    def off(self, kind: str, subject: tuple[str, ...], said: Any) -> tuple[str, int]:
        """The aspect a claim is about and by how much it is off, 0 if true."""
        graph = self.graph
        if kind in ("fact", "age"):
            true = graph["people"].get(subject[0], {}).get(subject[1])
            if kind == "fact":
                return "fact", 9 if true is None else int(true.lower() != said)
        elif kind == "day":
            true = graph.get("days", {}).get(subject[0])
            return "day", 9 if true is None else abs(_WEEK.index(true.lower()) - _WEEK.index(said))
        elif kind == "place":
            places = [i for i, word in enumerate(_edited(graph), 1) if word == subject[0]]
            return "list", abs(places[0] - said) if places else 99
        else:
            a, b = (graph["numbers"].get(letter) for letter in subject)
            true = None if a is None or b is None else a + b if kind == "plus" else a - b
        aspect = "number" if kind == "age" else "sum"
        if true is None:
            return aspect, 99
        return aspect, 0 if said == true else max(1, int(100 * abs(said - true) / true + 0.5))

    def left_out(self, claims: list[Said]) -> int:
        """Nothing is asked to be complete."""
        return 0


def _edited(graph: Mapping[str, Any]) -> list[str]:
    """The list after its edit, worked out from the list before."""
    given, edit = list(graph["given"]), graph["edit"]
    if edit.startswith("Reverse"):
        given.reverse()
    elif edit.startswith("Move"):
        given.append(given.pop(0))
    elif edit.startswith("Drop"):
        given.pop()
    return given
