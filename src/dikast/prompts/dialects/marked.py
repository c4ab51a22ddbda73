"""Verdicts after a marker: our own `Verdict: LABEL` and the bracketed `[RESULT] LABEL`."""

import re
from collections.abc import Iterator
from functools import lru_cache

from dikast.prompts.dialects.label import read_label, rest_after
from dikast.prompts.parsed import Reading, Stated, Target

_BEFORE = re.compile(r"(?:^|[\n\r])[\s*_`~#>|+•(\"'-]{0,24}+(?:(?:my|final|overall|the)\s{1,3}+){0,2}$", re.I)
_LOOK_BACK = 80
_WHOLE = re.compile(r"[\s*_`~\"'(\[#>]{0,40}+")


def read_verdict(text: str, target: Target) -> Reading:
    """The last `MARKER LABEL`; MARKER is the format's own, in any case at a line's start, else verbatim."""
    marker = target.marker or "Verdict:"
    return _last(text, _places(text, marker), target, marker)


def read_bracketed(text: str, target: Target) -> Reading:
    """The last `[RESULT] LABEL`; failing any, a closing `Result: LABEL`, `Score: LABEL` or `score of LABEL`."""
    strong = [match for match in _BRACKETED.finditer(text)]
    if strong:
        places = [(m.start(), m.end(), _at_line_start(text, m.start())) for m in strong]
        return _last(text, places, target, "[RESULT]")
    reading = _last(text, _closing(text), target, "[RESULT]", closing=True)
    return reading if reading.stated else _last(text, [], target, "[RESULT]")


_BRACKETED = re.compile(
    r"\[\s{0,2}+(?:RESULT|SCORE)\s{0,2}+(?:\][*_`\s]{0,6}+:?|:)|\[\s?(?:RESULT|RESPONSE)\s?\]\(", re.I
)
_CLOSING = re.compile(
    r"(?:^|\n)[ \t*_`#>-]{0,12}+(?:(?:final|overall|the)\s{1,3}+){0,2}(?:result|score|rating)[*_`]{0,4}+:"
    r"|(?<!\w)score\s{1,3}of(?!\w)|(?:^|\n)[ \t*_`]{0,6}+\[(?:response|score)(?=\s)",
    re.I,
)


def _closing(text: str) -> Iterator[tuple[int, int, bool]]:
    for match in _CLOSING.finditer(text, max(0, len(text) - 400)):
        yield match.start(), match.end(), False


_BRIDGE = re.compile(r"(?<!\w)overall\s{1,3}+score\s{1,3}+is(?!\w)", re.I)


def read_bridge(text: str, target: Target) -> Reading:
    """The last `[RESULT] LABEL`; failing any, the sentence that leads to it: `So the overall score is LABEL.`"""
    reading = read_bracketed(text, target)
    if reading.stated is not None:
        return reading
    bridge = _last(text, [(m.start(), m.end(), False) for m in _BRIDGE.finditer(text)], target, "the bridge sentence")
    return bridge if bridge.stated is not None else reading


@lru_cache(maxsize=64)
def _marker(marker: str) -> re.Pattern[str]:
    """The marker's words, with markdown allowed between its last word and its colon."""
    core = marker.rstrip(": ")
    words = r"\s{1,3}+".join(map(re.escape, core.split()))
    edge = r"(?<!\w)" if core[:1].isalnum() else ""
    colon = r"[ \t*_`]{0,8}+[:：]" if marker.rstrip().endswith(":") else ""
    return re.compile(f"{edge}{words}{colon}", re.I)


def _places(text: str, marker: str) -> list[tuple[int, int, bool]]:
    """Where the marker stands: begin, end, and whether it opens its line. Inside a line it must be spelt exactly."""
    found = []
    for match in _marker(marker).finditer(text):
        opens = _at_line_start(text, match.start())
        if opens or match[0] == marker:
            found.append((match.start(), match.end(), opens))
    return found


def _at_line_start(text: str, at: int) -> bool:
    return _BEFORE.search(text[max(0, at - _LOOK_BACK) : at] if at >= _LOOK_BACK else "\n" + text[:at]) is not None


def _last(
    text: str,
    places: "list[tuple[int, int, bool]] | Iterator[tuple[int, int, bool]]",
    target: Target,
    marker: str,
    *,
    closing: bool = False,
) -> Reading:
    """The last place that states something. Echoes of the choices are passed over, and so are mentions in a line."""
    for start, end, opens in reversed(list(places)):
        found = read_label(text, end, target)
        if closing and rest_after(text, found.end).strip():
            continue
        if found.kind in ("label", "off_scale"):
            return Reading(Stated(found.label, found.said, start, found.end))
        if found.kind == "unreadable" and opens and not found.said.startswith(("(", "<", "{", "[")):
            what = f"{found.said!r}" if found.said else "nothing"
            return Reading(None, f"{marker} is followed by {what}, which is not one of {target}")
    whole = alone(text, target)
    return Reading(whole) if whole else Reading(None, f"no {marker} in the reply")


def alone(text: str, target: Target) -> Stated | None:
    """A reply that is nothing but a label: the verdict, though its marker is missing."""
    begin = _WHOLE.match(text)
    if len(text) > 400 or begin is None:
        return None
    found = read_label(text, begin.end(), target, next_line=False)
    if found.kind not in ("label", "off_scale") or rest_after(text, found.end).strip():
        return None
    return Stated(found.label, found.said, 0, len(text))
