"""Verdicts after a marker: Dikast's own `Verdict: LABEL` and the bracketed `[RESULT] LABEL`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from dikast.prompts.dialects.label import ends_line, read_before, read_label, rest_after
from dikast.prompts.parsed import Reading, Stated, Target

# What may precede a marker at the start of its line, except a quoting `>`: quoted text is not the judge's own.
_BEFORE = re.compile(r"[\n\r][\s*_`~#|+•(\"'“-]{0,24}+(?:(?:my|final|overall|the)\s{1,3}+){0,2}$", re.I)
_QUOTED_LINE = re.compile(r"\n[ \t]{0,8}+>[^\n]{0,80}+$")
_QUOTES = "\"'“‘«`("
_LOOK_BACK = 80
_EARLIER = 200  # verdicts before the one that counts that are compared with it
_LEADING = re.compile(r"[\s*_`~\"'(\[#>]{0,40}+")


@dataclass(frozen=True, slots=True)
class Place:
    """A marker, `text[start:end]`. `opens`: it opens its line. `last`: only the reply's end may follow its label."""

    start: int
    end: int
    opens: bool
    last: bool = False


def read_verdict(text: str, target: Target) -> Reading:
    """The last `MARKER LABEL`; MARKER is the format's own, in any case at a line's start, else verbatim."""
    marker = target.marker or "Verdict:"
    return _last(text, _places(text, marker), target, marker)


def read_bracketed(text: str, target: Target) -> Reading:
    """The last `[RESULT] LABEL`; failing any, a closing `Result: LABEL`, `Score: LABEL` or `score of LABEL`."""
    strong = [Place(m.start(), m.end(), _opens_line(text, m.start())) for m in _BRACKETED.finditer(text)]
    return _last(text, strong or list(_closing(text, target)), target, "[RESULT]")


_BRACKETED = re.compile(
    r"\[\s{0,2}+(?:RESULT|SCORE)\s{0,2}+(?:\][*_` \t]{0,6}+:?|:)|\[\s?(?:RESULT|RESPONSE)\s?\]\(", re.I
)
_CLOSING = re.compile(
    r"(?:^|\n)[ \t*_`#>-]{0,12}+(?:(?:final|overall|the)\s{1,3}+){0,2}(?:result|score|rating)[*_`]{0,4}+:"
    r"|(?<!\w)score\s{1,3}of(?!\w)|(?:^|\n)[ \t*_`]{0,6}+\[response(?=\s)|\[score(?=\s)",
    re.I,
)


def _closing(text: str, target: Target) -> Iterator[Place]:
    for match in _CLOSING.finditer(text, max(0, len(text) - 400)):
        if target.scale is None or not match[0].casefold().endswith("[response"):
            yield Place(match.start(), match.end(), opens=False, last=True)


_BRIDGE = re.compile(r"(?<!\w)overall\s{1,3}+score\s{1,3}+is(?!\w)", re.I)


def read_bridge(text: str, target: Target) -> Reading:
    """The last `[RESULT] LABEL`; without `[RESULT]`, the sentence that leads to it: `So the overall score is LABEL.`"""
    reading = read_bracketed(text, target)
    bridges = [Place(m.start(), m.end(), opens=False) for m in _BRIDGE.finditer(text)]
    if reading.stated is None:
        last = next(reversed(list(_BRACKETED.finditer(text))), None)
        if last is not None and bridges and bridges[-1].start < last.start() and rest_after(text, last.end()).strip():
            return reading  # other words stand where the verdict is due
        bridge = _last(text, bridges, target, "the bridge sentence")
        return bridge if bridge.stated is not None else reading
    found = [(place.start, read_before(text, place.end, reading.stated.start, target)) for place in bridges]
    led = (Stated(each.label, each.said, start, each.end) for start, each in found if each.label is not None)
    return replace(reading, earlier=(*reading.earlier, *led))


@lru_cache(maxsize=64)
def _marker(marker: str) -> re.Pattern[str]:
    """The marker's words, with markdown allowed between its last word and its colon."""
    core = marker.rstrip(": ")
    words = r"\s{1,3}+".join(map(re.escape, core.split()))
    edge = r"(?<![\w\\])" if core[:1].isalnum() else ""
    colon = r"[ \t*_`]{0,8}+[:：]" if marker.rstrip().endswith(":") else ""
    return re.compile(f"{edge}{words}{colon}", re.I)


def _places(text: str, marker: str) -> list[Place]:
    """The places where the marker begins a line, in any case, or is inside one, spelt exactly and followed by
    the end.
    """
    found = []
    for match in _marker(marker).finditer(text):
        if _QUOTED_LINE.search(_before(text, match.start())):
            continue
        if _opens_line(text, match.start()):
            found.append(Place(match.start(), match.end(), opens=True))
        elif match[0] == marker and text[match.start() - 1] not in _QUOTES:
            found.append(Place(match.start(), match.end(), opens=False, last=True))
    return found


def _opens_line(text: str, at: int) -> bool:
    return _BEFORE.search(_before(text, at)) is not None


def _before(text: str, at: int) -> str:
    """The last stretch before a place; the text begins with a line break for this purpose."""
    return text[at - _LOOK_BACK : at] if at >= _LOOK_BACK else "\n" + text[:at]


def _last(text: str, places: list[Place], target: Target, marker: str) -> Reading:
    """The last place with a statement.

    Echoes of the choices and mentions inside a line are skipped. Statements before it are in the reading's `earlier`.
    """
    there = marker.casefold() in text.casefold()
    stated: list[Stated] = []  # from the last to the first
    following = len(text)
    reason = f"{marker} stands in the reply, but not with its verdict" if there else f"no {marker} in the reply"
    for place in reversed(places):
        found = read_label(text, place.end, target)
        quoted = place.start > 0 and text[place.start - 1] in _QUOTES
        if found.kind in ("label", "off_scale"):
            if place.last and rest_after(text, found.end).strip():
                continue
            if quoted and not ends_line(text, found.end):
                continue
            stated.append(Stated(found.label, found.said, place.start, found.end))
            following = place.start
            continue
        if len(stated) > _EARLIER:
            break
        if stated:
            before = read_before(text, place.end, following, target)
            if before.label is not None:
                stated.append(Stated(before.label, before.said, place.start, before.end))
            following = place.start
            continue
        if found.kind == "echo" or found.said.startswith(("(", "<", "{", "[")):
            reason = f"{marker} only repeats the choices: {found.said!r}"
        elif place.opens and not quoted:
            what = f"{found.said!r}" if found.said else "nothing"
            return Reading(None, f"{marker} is followed by {what}, which is not one of {target}")
    if stated:
        return Reading(stated[0], earlier=tuple(stated[1:]))
    whole = alone(text, target)
    return Reading(whole) if whole else Reading(None, reason)


def alone(text: str, target: Target) -> Stated | None:
    """A reply that consists of a label alone: it is the verdict, although its marker is missing."""
    begin = _LEADING.match(text)
    if len(text) > 400 or begin is None:
        return None
    found = read_label(text, begin.end(), target, next_line=False)
    if found.kind not in ("label", "off_scale") or rest_after(text, found.end).strip():
        return None
    return Stated(found.label, found.said, 0, len(text))
