"""Text images (the domain `plates`): words and numbers on coloured plates, and a small table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dikast.worlds.domains.protocol import Claim, ClaimFinding, Draft, Picture, Slot, State
from dikast.worlds.domains.text_only import percent_off
from dikast.worlds.domains.vocabulary import COLOURS
from dikast.worlds.drawing.raster import INK, RGB, fill, finish, write_text
from dikast.worlds.sampling.rng import Stream

_CONSONANTS, _VOWELS = "BDFGKLMNPRSTVZ", "AEIOU"
ROWS, COLUMNS = "123", "ABC"
_TEMPLATES: dict[str, tuple[str, ...]] = {
    "reading": (
        "The {a} plate says {c}.",
        "The word on the {a} plate is {c}.",
        "{a} plate: {c}.",
        "Look, the {a} plate says {c}.",
        "{c} is the word on the {a} plate.",
        "We note {c} for the {a} plate.",
    ),
    "cell": (
        "Row {a}, column {b} holds {c}.",
        "The cell in row {a}, column {b} is {c}.",
        "Row {a}, column {b}: {c}.",
        "Look, row {a}, column {b} holds {c}.",
        "{c} is in row {a}, column {b}.",
        "We note {c} for row {a}, column {b}.",
    ),
}
_TEMPLATES["number"] = tuple(text.replace("word", "number") for text in _TEMPLATES["reading"])


@dataclass(slots=True)
class Document:
    """Plates (colour, text) in reading order, and the rows of a table. The rest is decoration."""

    plates: list[tuple[str, str]] = field(default_factory=list)
    table: list[list[int]] = field(default_factory=list)
    noise: int = 0
    overlay: str = ""
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """The document as JSON."""
        value = {name: getattr(self, name) for name in self.__slots__}
        return {**value, "plates": [list(plate) for plate in self.plates]}


def edit_distance(a: str, b: str) -> int:
    """The number of insertions, deletions and substitutions that turn `a` into `b` (Levenshtein 1966)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


class Plates:
    """Words, numbers and a table."""

    name = "plates"
    kinds: Mapping[str, tuple[str, ...]] = {"reading": ("reading",), "number": ("number",), "cell": ("cell",)}

    def begin(self, draft: Draft) -> None:
        """Up to four plates and nine cells."""
        rng = draft.rng
        cells = [(row, column) for row in ROWS for column in COLUMNS]
        draft.budget = 99
        draft.notes = {"plates": rng.shuffled(COLOURS)[:4], "cells": rng.shuffled(cells)}

    def draw(self, draft: Draft, kind: str) -> Slot | None:
        """A slot about a plate or a cell that no other slot mentions."""
        rng, open_ = draft.rng, draft.notes["cells" if kind == "cell" else "plates"]
        if not open_:
            return None
        spot = open_.pop()
        if kind == "cell":
            universe = _around(rng)
            about = f"the cell in row {spot[0]}, column {spot[1]}"
            return Slot("cell", "cell", spot, universe, draft.stated(universe), about, f"What is in {about[4:]}?")
        values: list[State] = _words(rng) if kind == "reading" else _around(rng)
        about = f"the {'word' if kind == 'reading' else 'number'} on the {spot} plate"
        return Slot(kind, kind, (spot,), values, draft.stated(values), about, f"What is {about}?")

    def settle(self, draft: Draft, slots: list[Slot]) -> list[Slot]:
        """All slots can be right and wrong."""
        return slots

    def distance(self, slot: Slot, stated: State, state: State) -> int:
        """Edit distance for words, per cent for numbers."""
        return edit_distance(stated, state) if slot.kind == "reading" else percent_off(stated, state)

    def build(self, draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int | None) -> Document:
        """A document with these states, and with other plates and cells that no claim mentions."""
        rng = draft.rng
        plates, cells = [], {}
        for slot, state in zip(slots, states, strict=True):
            if slot.kind == "cell":
                cells[slot.subject] = state
            else:
                plates.append((slot.subject[0], str(state)))
        for colour in draft.notes["plates"][: rng.below(3)]:
            plates.append((colour, rng.pick(_words(rng)) if rng.chance(50) else str(rng.pick(_around(rng)))))
        table = []
        if cells or rng.chance(40):
            table = [[cells.get((row, column)) or 10 + rng.below(90) for column in COLUMNS] for row in ROWS]
        return Document(rng.shuffled(plates), table, rng.below(draft.rules.noise + 1), "", rng.fork())

    def claim(self, slot: Slot, stated: State) -> Claim:
        """The claim a response makes of the slot."""
        return Claim(slot.kind, slot.aspect, (*slot.subject, stated))

    def say(self, claim: Claim, voice: int) -> str:
        """The claim as a sentence."""
        args = claim.args
        text = _TEMPLATES[claim.kind][voice].format(a=args[0], b=args[1], c=args[-1])
        return text[0].upper() + text[1:]

    def measure(self, claim: Claim, graph: Document) -> ClaimFinding:
        """The truth about a claim in any document. A plate with a number has no word, and vice versa."""
        args: tuple[Any, ...] = claim.args
        if claim.kind == "cell":
            if not graph.table:
                return ClaimFinding(99, "there is no table", gone=True)
            true = graph.table[ROWS.index(args[0])][COLUMNS.index(args[1])]
            return ClaimFinding(percent_off(args[2], true), f"row {args[0]}, column {args[1]} holds {true}")
        shown = dict(graph.plates).get(args[0])
        if shown is None or shown.isdigit() == (claim.kind == "reading"):
            return ClaimFinding(
                99, f"no {args[0]} plate shows a {'word' if claim.kind == 'reading' else 'number'}", gone=True
            )
        words = f"the {args[0]} plate says {shown}"
        if claim.kind == "reading":
            return ClaimFinding(edit_distance(args[1], shown), words)
        return ClaimFinding(percent_off(args[1], int(shown)), words)

    def missed(self, claims: Sequence[Claim], graph: Document) -> int:
        """Nothing is asked to be complete here."""
        return 0

    def ask(self, draft: Draft, slots: Sequence[Slot]) -> tuple[str, str]:
        """Questions, or a plain request."""
        if draft.rng.chance(50):
            return "answer", " ".join(slot.question for slot in slots)
        return "read", draft.rng.pick(("Read what is written.", "What does the picture say?"))

    def prompt(self, graph: Document) -> str:
        """Nothing: the document is shown."""
        return ""

    def frames(self, graph: Document) -> int:
        """One."""
        return 1

    def render(self, graph: Document, size: int) -> list[Picture]:
        """Plates in two columns above a ruled table."""
        picture = np.full((size, size, 3), 250, dtype=np.int32)
        unit = max(1, size // 96)
        high = size // 5
        for i, (colour, text) in enumerate(graph.plates):
            x, y = (i % 2) * size // 2 + 1, (i // 2) * high + 1
            fill(picture, x, y, x + size // 2 - 2, y + high - 2, RGB[colour])
            wide, tall = 6 * unit * len(text) + unit, 9 * unit
            left, top = x + (size // 2 - 2 - wide) // 2, y + (high - 2 - tall) // 2
            fill(picture, left, top, left + wide, top + tall, (255, 255, 255))
            write_text(picture, text, left + unit, top + unit, unit)
        if graph.table:
            self._table(picture, graph, unit)
        if graph.overlay:
            write_text(picture, graph.overlay, 2, size - 8 * unit, unit)
        return [finish(picture, graph.noise, graph.seed)]

    def _table(self, picture: Any, graph: Document, unit: int) -> None:
        size = picture.shape[0]
        top, wide, high = 2 * size // 5 + 1, size // 4, size // 7
        for i in range(5):
            fill(picture, 0, top + i * high, 4 * wide, top + i * high + 1, (170, 170, 170))
            fill(picture, i * wide, top, i * wide + 1, top + 4 * high, (170, 170, 170))
        for j, column in enumerate(COLUMNS):
            write_text(picture, column, (j + 1) * wide + wide // 2 - 2 * unit, top + 2, unit, RGB["blue"])
        for i, row in enumerate(ROWS):
            y = top + (i + 1) * high + 2
            write_text(picture, row, wide // 2 - 2 * unit, y, unit, RGB["blue"])
            for j, n in enumerate(graph.table[i]):
                write_text(picture, str(n), (j + 1) * wide + (wide - 11 * unit) // 2, y, unit, INK)

    def to_json(self, graph: Document) -> dict[str, Any]:
        """The document as JSON."""
        return graph.to_json()


def _words(rng: Stream) -> list[State]:
    """A made-up word of four letters, two that are one letter off, and two that are far off."""

    def syllable() -> str:
        return rng.pick(_CONSONANTS) + rng.pick(_VOWELS)

    one = syllable() + syllable()
    other = one[0] + rng.pick([v for v in _VOWELS if v != one[1]]) + one[2:]
    third = rng.pick([c for c in _CONSONANTS if c != one[0]]) + one[1:]
    return list(dict.fromkeys((one, other, third, syllable() + syllable(), one[2:] + one[:2])))


def _around(rng: Stream) -> list[State]:
    """A number of two digits, some close to it and some far from it."""
    centre = 20 + rng.below(45)
    return sorted({centre, centre + 1, centre - 2, centre + centre // 2, centre - centre // 3, centre + 10})
