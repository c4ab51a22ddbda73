"""The share of a set that is about sensitive or biased content: openly, or by implication."""

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]
EXPLICIT, IMPLICIT = "explicit", "implicit"


def sensitive_at(number: int, part: float) -> str:
    """What thing `number` of a row is when the share `part` is sensitive, evenly spread: explicit, implicit, or ""."""
    before, after = int(number * part + 1e-9), int((number + 1) * part + 1e-9)
    return (EXPLICIT, IMPLICIT)[before % 2] if after > before else ""


def hard_of(told: str) -> dict[str, bool]:
    """What a prompt is told."""
    return {EXPLICIT: told == EXPLICIT, IMPLICIT: told == IMPLICIT}


def marked(read: Callable[[str], list[Record]], rubric: Record) -> Callable[[str], list[Record]]:
    """Records that say in their `meta` what their rubric is about, where it is sensitive."""
    told = rubric["lineage"].get("sensitive")
    return (lambda text: [{**each, "meta": {"sensitive": told}} for each in read(text)]) if told else read
