"""Which part of a set is about sensitive or biased content, explicitly or implicitly."""

from collections.abc import Iterator
from typing import Any

Record = dict[str, Any]
EXPLICIT, IMPLICIT = "explicit", "implicit"


def sensitive_at(number: int, part: float) -> str:
    """`explicit`, `implicit` or "" for entry `number`, if the share `part` is sensitive and evenly spread."""
    before, after = int(number * part + 1e-9), int((number + 1) * part + 1e-9)
    return (EXPLICIT, IMPLICIT)[before % 2] if after > before else ""


def mistakes_of(part: float, world: str) -> Iterator[tuple[str, str]]:
    """The mistake in a recipe's key `sensitive`, if its teacher is a world."""
    if part and world:
        yield "sensitive", "a world has no sensitive or biased content: leave out 'sensitive', or name an engine"


def hard_of(told: str) -> dict[str, bool]:
    """The variables of a prompt for an entry that is `explicit`, `implicit` or ""."""
    return {EXPLICIT: told == EXPLICIT, IMPLICIT: told == IMPLICIT}


def mark_of(told: str | None) -> Record:
    """What `meta` says of an entry that is `explicit`, `implicit` or ""."""
    return {"sensitive": told} if told else {}
