"""The mixed set of multimodal critics: a better response in words, two scores on a line, arena labels, final scores."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from dikast.prompts.dialects import arena, prose
from dikast.prompts.dialects.label import read_one_of, read_whole
from dikast.prompts.dialects.marked import alone
from dikast.prompts.dialects.statements import Sentence
from dikast.prompts.parsed import Reading, Slot, Stated, Target

_TWO = re.compile(  # of a text that begins with a line break
    r"\n[ \t*_`]{0,8}+(\d{1,3}(?:\.\d{1,3})?)(?:[ \t]{1,8}+|[ \t]?,[ \t]{0,4}+)(\d{1,3}(?:\.\d{1,3})?)"
    r"[ \t*_`.]{0,8}+(?=\r?\n|$)"
)
_BEFORE_BRACKET = re.compile(
    r"(?<!\w)(?:the\s)?better\s{1,3}+\w{1,12}(?:\s(?:is|would be))?\s{0,2}+:?[\s*_`]{0,6}+\Z", re.I
)
_LOOK_BACK = 60
_SCORE = re.compile(
    r"(?:^|(?<=\n))[\s*_`#>(-]{0,16}+(?:(?:the|my|final|overall|total)\s{1,3}+){0,3}(?:score|rating)[*_`]{0,4}+\s{0,3}+(?::|is(?!\w)|=)[*_`]{0,4}+"
    r"|(?<!\w)(?:final|overall|total)\s{1,3}+(?:score|rating)[*_`]{0,4}+\s{0,3}+(?::|is(?!\w)|of(?!\w)|=)[*_`]{0,4}+"
    r"|(?<!\w)(?:score|rating)\s{1,3}+of(?!\w)",
    re.I,
)


def read_critic(text: str, target: Target) -> Reading:
    """The last verdict in any of the shapes; for a pair weighed with the sentences of the reply as `prose` does."""
    if target.scale is None:
        labels = sorted(_labels(text), key=lambda each: each.start)
        starts = [each.start for each in labels]
        words = [
            each
            for each in prose.sentences(text)  # except those that are a part of a label
            if (at := bisect_right(starts, each.start)) == 0 or labels[at - 1].end <= each.start
        ]
        said = sorted([*labels, *words], key=lambda each: (each.start, each.end))
        if said:
            return replace(prose.weigh(text, said, target), feedback=None)
    else:
        found = sorted(_scores(text, target), key=lambda each: each.start)
        if found:
            return Reading(found[-1], earlier=tuple(found[:-1]))
    whole = alone(text, target)
    if whole is not None:
        return Reading(whole)
    if target.scale is not None and _TWO.search(f"\n{text}"):
        return Reading(None, "two scores on one line where one response was graded")
    return Reading(None, "no better response, score or arena label in the reply")


def read_second_score(text: str, target: Target) -> Reading:
    """The second of two scores on a line: of prompts that have a reference graded before the response."""
    if target.scale is None:
        return Reading(None, "two scores grade a reference and one response, and no pair")
    found = []
    for match in _TWO.finditer(f"\n{text}"):
        label = read_whole(match[2], target)
        if label.kind in ("label", "off_scale"):
            found.append(Stated(label.label, label.said, match.start(2) - 1, match.end(2) - 1))
    if not found:
        return Reading(None, "no line with two scores, of the reference and of the response")
    return Reading(found[-1], earlier=tuple(found[:-1]))


def first_score(text: str) -> float | None:
    """The reference's score on the line whose second score `read_second_score` takes; None where there is none."""
    found = list(_TWO.finditer(f"\n{text}"))
    return float(found[-1][1]) if found else None


def _labels(text: str) -> Iterator[Sentence]:
    """Labels of a pair that are not sentences: two scores on a line, and the better response in brackets."""
    for match in _TWO.finditer(f"\n{text}"):
        one, two = float(match[1]), float(match[2])
        slot: Slot = "tie" if one == two else "first" if one > two else "second"
        yield Sentence(slot, match.start(), match.end() - 1, "label")
    for bracket in re.finditer(r"\[", text):
        at = max(0, bracket.start() - _LOOK_BACK)
        before = _BEFORE_BRACKET.search(text[at : bracket.start()])
        read = read_one_of(text, bracket.end(), Target()) if before else None
        if before and read and read.kind == "label":
            yield Sentence(read.label, at + before.start(), read.end, "label")  # type: ignore[arg-type]  # a pair's labels are slots


def _scores(text: str, target: Target) -> Iterator[Stated]:
    yield from arena.labels(text, target)
    for match in _SCORE.finditer(text):
        label = read_one_of(text, match.end(), target)
        if label.kind in ("label", "off_scale"):
            yield Stated(label.label, label.said, match.start(), label.end)
