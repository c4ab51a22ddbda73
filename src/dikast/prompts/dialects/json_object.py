"""Verdicts in a JSON object, also fenced, with prose around it, or slightly broken."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dikast.prompts.dialects.label import read_whole
from dikast.prompts.parsed import Reading, Stated, Target

_VERDICT = ("verdict", "score", "rating", "result", "label", "winner", "preference", "choice")
_FEEDBACK = ("feedback", "reason", "reasoning", "explanation", "rationale", "assessment", "justification")
_SAID_BEFORE = "said before"
_MOST_FAILURES = 300  # beginnings of objects that turn out to be none, before giving up
_BROKEN = re.compile(
    r"[\"'](?:verdict|score)[\"']\s{0,4}+:\s{0,4}+[\"']?(?P<said>[^\"'{},\n]{1,60}+)[\"']?\s{0,8}+,?\s{0,8}+\}\s{0,8}+(?:```|$)",
    re.I,
)


def read_json(text: str, target: Target) -> Reading:
    """The last object with a verdict in it; of keys that occur twice in an object the last one counts."""
    found: list[tuple[int, int, dict[str, Any]]] = []
    seen = False
    for start, end, value in _objects(text):
        seen = True
        if _first(value, _VERDICT) is not None:
            found.append((start, end, value))
    if found:
        start, end, value = found[-1]
        said = _first(value, _VERDICT)
        feedback = _first(value, _FEEDBACK)
        feedback = feedback if isinstance(feedback, str) else ""
        reading = _stated(said, start, end, target, feedback)
        keys = [key.strip().casefold() for key in value]
        behind = keys and keys[-1] in _FEEDBACK
        return replace(reading, earlier=tuple(_others(found, target)), remarks=feedback if behind else "")
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


def _others(found: list[tuple[int, int, dict[str, Any]]], target: Target) -> Iterator[Stated]:
    """Labels that other objects give, or other keys of the last object, or the same key said there before."""
    for start, end, value in found:
        told = [each for key, each in value.items() if key.strip().casefold() in _VERDICT]
        for said in (*value.get(_SAID_BEFORE, ()), *told):
            label = read_whole(said, target).label if isinstance(said, str) else None
            if label is not None:
                yield Stated(label, said[:60], start, end)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose last value for a key counts; earlier values of the verdict's key are kept too."""
    value = dict(pairs)
    if len(value) < len(pairs):
        last = {key: i for i, (key, _) in enumerate(pairs)}
        before = [each for i, (key, each) in enumerate(pairs) if i < last[key] and key.strip().casefold() in _VERDICT]
        value[_SAID_BEFORE] = before
    return value


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Outermost objects in order, numbers kept as they are spelt."""
    decoder = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, object_pairs_hook=_object)
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
