"""Verdicts in a JSON object, also fenced, with prose around it, or slightly broken."""

import json
import re
from collections.abc import Iterator
from typing import Any

from dikast.prompts.dialects.label import read_whole
from dikast.prompts.parsed import Reading, Stated, Target

_VERDICT = ("verdict", "score", "rating", "result", "label", "winner", "preference", "choice")
_FEEDBACK = ("feedback", "reason", "reasoning", "explanation", "rationale", "assessment", "justification")
_MOST_FAILURES = 300  # beginnings of objects that turn out to be none, before giving up
_BROKEN = re.compile(
    r"[\"'](?:verdict|score)[\"']\s{0,4}+:\s{0,4}+[\"']?(?P<said>[^\"'{},\n]{1,60}+)[\"']?\s{0,8}+,?\s{0,8}+\}\s{0,8}+(?:```|$)",
    re.I,
)


def read_json(text: str, target: Target) -> Reading:
    """The last object with a verdict in it; of keys that stand twice in an object the last one counts."""
    last: tuple[int, int, dict[str, Any]] | None = None
    seen = False
    for start, end, value in _objects(text):
        seen = True
        if _first(value, _VERDICT) is not None:
            last = (start, end, value)
    if last is not None:
        start, end, value = last
        said = _first(value, _VERDICT)
        feedback = _first(value, _FEEDBACK)
        return _stated(said, start, end, target, feedback if isinstance(feedback, str) else "")
    broken = max(_BROKEN.finditer(text), key=re.Match.start, default=None)
    if broken is not None and not seen:
        return _stated(broken["said"], broken.start(), broken.end(), target, text[: broken.start()].strip(" \n{,"))
    return Reading(None, "the JSON object has no key 'verdict'" if seen else "no JSON object in the reply")


def _stated(said: object, start: int, end: int, target: Target, feedback: str) -> Reading:
    if not isinstance(said, str):
        return Reading(
            None, f"the verdict in the JSON object is {type(said).__name__}, not one label", feedback=feedback
        )
    found = read_whole(said, target)
    return Reading(Stated(found.label, said[:60], start, end), feedback=feedback.strip())


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Outermost objects in order, numbers kept as they are spelt."""
    decoder = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
    at, failures = text.find("{"), 0
    while at >= 0 and failures < _MOST_FAILURES:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            failures += 1
            end = at + 1
        else:
            yield at, end, value
        at = text.find("{", end)


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    folded = {key.strip().casefold(): each for key, each in value.items()}
    return next((folded[key] for key in keys if folded.get(key) is not None), None)
