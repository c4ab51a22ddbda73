"""The fixed text of all prompts of a dataset, and the slots in it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dikast.core.canonical import canonical_json

_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class Misfit:
    """A row that a skeleton or a format does not reproduce: the first difference, and both texts there.

    `row` is the position of the row in the file, from 1; `offset` counts characters from the start of its prompt.
    """

    row: int
    offset: int
    expected: str
    found: str
    why: str = "the prompt differs"

    def __str__(self) -> str:
        if self.offset < 0:
            return f"row {self.row}: {self.why}"
        return (
            f"row {self.row}: {self.why} at character {self.offset}: expected {self.expected!r}, the row has"
            f" {self.found!r}"
        )


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Fixed texts and the slots between them: `literals[0]`, slot 0, `literals[1]`, ..., `literals[-1]`.

    There is one literal more than slots; only the first and the last may be empty. A slot's name is its number until it
    gets one; the slots of a rubric's levels are called `level LABEL`.
    """

    literals: tuple[str, ...]
    slots: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.literals) != len(self.slots) + 1:
            raise ValueError("a skeleton has one literal more than slots")

    @property
    def sha256(self) -> str:
        """SHA-256 of the canonical JSON list literal, slot name, literal, ..., literal."""
        woven = [self.literals[0]]
        for slot, literal in zip(self.slots, self.literals[1:], strict=True):
            woven += [slot, literal]
        return hashlib.sha256(canonical_json(woven)).hexdigest()

    def named(self, names: Mapping[str, str]) -> "Skeleton":
        """With slots renamed."""
        return Skeleton(self.literals, tuple(names.get(slot, slot) for slot in self.slots))

    def fill(self, values: Mapping[str, str]) -> str:
        """The prompt with these values in the slots."""
        parts = [self.literals[0]]
        for slot, literal in zip(self.slots, self.literals[1:], strict=True):
            parts += [values[slot], literal]
        return "".join(parts)

    def split(self, text: str, row: int = 0) -> "dict[str, str] | Misfit":
        """The text of each slot, or the first place where the prompt does not match.

        A prompt that can be parsed in two ways is a misfit too, since its slots are ambiguous.
        """
        head, tail = self.literals[0], self.literals[-1]
        if not text.startswith(head):
            return difference(head, text, row)
        if not self.slots:
            return {} if text == head else difference(head, text, row)
        left = self._leftmost(text, row)
        if isinstance(left, Misfit):
            return left
        if not text.endswith(tail) or left[-1] > len(text) - len(tail):
            at = max(left[-1], len(text) - len(tail))
            return Misfit(row, at, tail[:_EXCERPT], text[at:][:_EXCERPT], "the prompt ends differently")
        right = self._rightmost(text)
        starts = [len(head), *(at + len(each) for at, each in zip(left, self.literals[1:-1], strict=False))]
        ends = [*left[:-1], len(text) - len(tail)]
        if right != left[:-1]:
            i = next(i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)
            literal = self.literals[i + 1]
            twice = f"{literal.strip()[:_EXCERPT]!r} occurs in it more than once (also at character {right[i]})"
            why = f"{twice}, and which one is meant is unknown"
            return Misfit(row, left[i], literal[:_EXCERPT], text[left[i] :][:_EXCERPT], why)
        values: dict[str, str] = {}
        for slot, a, b in zip(self.slots, starts, ends, strict=True):
            if values.setdefault(slot, text[a:b]) != text[a:b]:
                return Misfit(row, a, values[slot][:_EXCERPT], text[a:b][:_EXCERPT], f"the slot {slot!r} differs")
        return values

    def _leftmost(self, text: str, row: int) -> "list[int] | Misfit":
        """The earliest position of each inner literal, and where the search for the last one begins."""
        at, found = len(self.literals[0]), []
        for literal in self.literals[1:-1]:
            place = text.find(literal, at)
            if place < 0:
                return _missing(literal, text, at, row)
            found.append(place)
            at = place + len(literal)
        return [*found, at]

    def _rightmost(self, text: str) -> list[int]:
        end, found = len(text) - len(self.literals[-1]), []
        for literal in reversed(self.literals[1:-1]):
            place = text.rfind(literal, 0, end)
            found.append(place)
            end = place
        return found[::-1]


def difference(expected: str, found: str, row: int, why: str = "the prompt differs") -> Misfit:
    """The first place where two texts differ."""
    shortest = min(len(expected), len(found))
    at = next((i for i in range(shortest) if expected[i] != found[i]), shortest)
    return Misfit(row, at, expected[at : at + _EXCERPT], found[at : at + _EXCERPT], why)


def _missing(literal: str, text: str, at: int, row: int) -> Misfit:
    """The position of the longest part of a missing literal."""
    low, high = 0, len(literal)
    while low < high:  # the longest prefix of the literal that the text contains
        middle = (low + high + 1) // 2
        low, high = (middle, high) if literal[:middle] in text[at:] else (low, middle - 1)
    if len(literal[:low].strip()) < 3:
        return Misfit(row, at, literal[:_EXCERPT], text[at:][:_EXCERPT], "a fixed text is missing from here on")
    place = text.find(literal[:low], at) + low
    return Misfit(row, place, literal[low:][:_EXCERPT], text[place:][:_EXCERPT])


def joined(literals: Sequence[str], slots: Sequence[str | None]) -> Skeleton:
    """A skeleton of literals and slots in turn; a slot of None joins its two literals."""
    kept, names = [literals[0]], []
    for slot, literal in zip(slots, literals[1:], strict=True):
        if slot is None:
            kept[-1] += literal
        else:
            names.append(slot)
            kept.append(literal)
    return Skeleton(tuple(kept), tuple(names))
