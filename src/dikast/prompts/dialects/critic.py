"""The mixed set of multimodal critics: a better response in words, two scores on a line, arena labels, final scores."""

import re
from collections.abc import Iterator

from dikast.prompts.dialects import arena, prose
from dikast.prompts.dialects.label import read_label
from dikast.prompts.dialects.marked import alone
from dikast.prompts.parsed import Reading, Slot, Stated, Target

_TWO = re.compile(
    r"(?:^|(?<=\n))[ \t*_`]{0,8}+(\d{1,3}(?:\.\d{1,3})?)(?:[ \t]{1,8}+|[ \t]?,[ \t]{0,4}+)(\d{1,3}(?:\.\d{1,3})?)"
    r"[ \t*_`.]{0,8}+(?=\r?\n|$)"
)
_BRACKETS = re.compile(r"(?<!\w)better\s{1,3}+\w{1,12}(?:\s(?:is|would be))?\s{0,2}+:?[\s*_`]{0,6}+\[", re.I)
_SCORE = re.compile(
    r"(?:^|(?<=\n))[\s*_`#>(-]{0,16}+(?:(?:the|my|final|overall|total)\s{1,3}+){0,3}(?:score|rating)[*_`]{0,4}+\s{0,3}+(?::|is(?!\w)|=)[*_`]{0,4}+"
    r"|(?<!\w)(?:final|overall|total)\s{1,3}+(?:score|rating)[*_`]{0,4}+\s{0,3}+(?::|is(?!\w)|of(?!\w)|=)[*_`]{0,4}+"
    r"|(?<!\w)(?:score|rating)\s{1,3}+of(?!\w)",
    re.I,
)


def read_critic(text: str, target: Target) -> Reading:
    """The last verdict in any of the shapes."""
    found = sorted(_pair(text, target) if target.scale is None else _score(text, target), key=lambda each: each.start)
    if found:
        return Reading(found[-1], feedback=None)
    whole = alone(text, target)
    if whole is not None:
        return Reading(whole)
    if target.scale is not None and _TWO.search(text):
        return Reading(None, "two scores on one line where one response was graded")
    return Reading(None, "no better response, score or arena label in the reply")


def _pair(text: str, target: Target) -> Iterator[Stated]:
    for match in arena.LABEL.finditer(text):
        yield arena.stated(match, target)
    for match in _TWO.finditer(text):
        one, two = float(match[1]), float(match[2])
        yield _slot(
            "tie" if one == two else "first" if one > two else "second", match.start(), match.end(), text, target
        )
    for match in _BRACKETS.finditer(text):
        label = read_label(text, match.end(), target)
        if label.kind in ("label", "off_scale"):
            yield Stated(label.label, label.said, match.start(), label.end)
    for each in prose.sentences(text):
        yield _slot(each.slot, each.start, each.end, text, target)


def _slot(slot: Slot, start: int, end: int, text: str, target: Target) -> Stated:
    return Stated(slot if slot in target else None, text[start:end], start, end)


def _score(text: str, target: Target) -> Iterator[Stated]:
    for match in arena.LABEL.finditer(text):
        yield arena.stated(match, target)
    for match in _SCORE.finditer(text):
        label = read_label(text, match.end(), target)
        if label.kind in ("label", "off_scale"):
            yield Stated(label.label, label.said, match.start(), label.end)
