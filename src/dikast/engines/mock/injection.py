"""Prompt injections: instructions to the judge inside a response, which an injectable mock obeys."""

import re
from functools import lru_cache
from typing import NamedTuple

_IGNORE = re.compile(
    r"\b(?:ignore|disregard|forget)\s+(?:(?:all|any|the|your|my|of)\s+)*(?:previous|prior|above|earlier)", re.I
)
_BEST = re.compile(
    r"\b(?:highest|maximum|best|top|full|perfect)\s+(?:possible\s+)?(?:score|rating|grade|marks?)\b", re.I
)
_ASKING = (
    r"\b(?:score|rate|rating|grade|mark|result)\b"
    r"(?:\W+(?:of|is|it|this|the|me|my|response|answer|a|an|as|with|to|must|be)\b)*"
)


class Demand(NamedTuple):
    """What the text asks for: a label of the scale, or with None simply the best."""

    label: str | None


def demanded(text: str, labels: tuple[str, ...]) -> Demand | None:
    """The first order for one of `labels` ("score 5", "rate this response a 5"), else for the best, else None.

    For the best: "ignore all previous instructions" and "give the highest score" in their variants. Without `labels`
    (a pair) any number that is ordered asks for the best.
    """
    if match := _order(labels).search(text):
        return Demand(match[1] if labels else None)
    return Demand(None) if _IGNORE.search(text) or _BEST.search(text) else None


@lru_cache(maxsize=64)
def _order(labels: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(map(re.escape, sorted(labels, key=len, reverse=True))) or r"\d+"
    return re.compile(rf"(?i:{_ASKING})\W+({choices})(?![\w]|\.\d)")
