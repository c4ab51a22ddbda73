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
_QUALIFYING = re.compile(
    "final|overall|total|my|the|revised|corrected|actual|updated|adjusted|new|better|best|preferred"
)
_ALSO = frozenset(
    (*_VERDICT, "grade", "judgment", "judgement", "decision", "overall", "final", "preferred", "better", "best")
)
_LOST = frozenset(("loser", "worse", "worst", "rejected"))
_OF_ONE = re.compile(
    r"(?:(?:score|rating|grade|points)s?[ _-]?(?:of|for)?[ _-]?)?(?:response|answer|assistant)?[ _-]?"
    r"(?P<which>a|b|1|2|first|second)(?:[ _-]?(?:score|rating|grade|points))?",
    re.I,
)
_KEY_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_SAID_BEFORE = "said before"
_MOST_FAILURES = 300  # openings that turn out not to be objects, before giving up
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
        if _verdict(value) is not None:
            found.append((start, end, value))
    if found:
        start, end, value = found[-1]
        said = _verdict(value)
        feedback = _first(value, _FEEDBACK)
        feedback = feedback if isinstance(feedback, str) else ""
        reading = _stated(said, start, end, target, feedback)
        label = reading.stated.label if reading.stated else None
        if label is not None and (other := _against(value, label, target)):
            return replace(reading, stated=None, reason=f"the JSON object gives two verdicts: {said!r} and {other!r}")
        return replace(reading, earlier=tuple(_others(found, target)), remarks=_behind(value))
    broken = max(_BROKEN.finditer(text), key=re.Match.start, default=None)
    if broken is not None and not seen:
        begin = text.find("{") if text.count("{", 0, broken.start()) == 1 else broken.start()
        return _stated(broken["said"], begin, broken.end(), target, text[: broken.start()].strip(" \n{,"))
    return Reading(None, "the JSON object has no key 'verdict'" if seen else "no JSON object in the reply")


def _stated(said: object, start: int, end: int, target: Target, feedback: str) -> Reading:
    if not isinstance(said, str):
        return Reading(
            None, f"the verdict in the JSON object is {type(said).__name__}, not one label", feedback=feedback
        )
    found = read_whole(said, target)
    return Reading(Stated(found.label, said[:60], start, end), feedback=feedback.strip())


def _verdict(value: dict[str, Any]) -> Any:
    """The value of the verdict's key; of a qualified one ("final_verdict") if there is no plain one."""
    plain = _first(value, _VERDICT)
    return plain if plain is not None else next((each for key, each in value.items() if _speaks(key)), None)


def _speaks(key: str) -> bool:
    """Whether the key is one of a verdict on the whole: "score", "final_verdict", "overallScore"."""
    words = [word.casefold() for word in _KEY_WORDS.findall(key)]
    return bool(words) and words[-1] in _ALSO and all(map(_QUALIFYING.fullmatch, words[:-1]))


def _against(value: dict[str, Any], label: str, target: Target) -> str:
    """A key of the object that states another verdict than `label`; "" if none does."""
    scores: dict[str, float] = {}
    for key, each in value.items():
        if isinstance(each, dict):
            if (_speaks(key) or key.casefold() in ("scores", "ratings", "revised")) and (
                other := _against(each, label, target)
            ):
                return f"{key}: {other}"
            continue
        read = read_whole(each, target).label if isinstance(each, str) else None
        if read is not None and ((_speaks(key) and read != label) or (key.casefold() in _LOST and read == label)):
            return f"{key}: {each}"
        if target.scale is None and (one := _OF_ONE.fullmatch(key.strip())) and _is_number(each):
            scores["first" if one["which"].casefold() in ("a", "1", "first") else "second"] = float(each)
    if len(scores) == 2 and scores["first"] != scores["second"] and label != max(scores, key=lambda slot: scores[slot]):
        return f"scores {scores['first']:g} and {scores['second']:g}"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"-?\d{1,9}(?:\.\d{1,9})?", value) is not None


def _behind(value: dict[str, Any]) -> str:
    """The texts of the keys after the verdict."""
    keys = list(value)
    last = max((i for i, key in enumerate(keys) if _speaks(key)), default=len(keys))
    return "\n".join(each for key in keys[last + 1 :] if isinstance(each := value[key], str))


def _others(found: list[tuple[int, int, dict[str, Any]]], target: Target) -> Iterator[Stated]:
    """Labels in other objects, or earlier values of the same key in the last one."""
    for start, end, value in found:
        for said in (*value.get(_SAID_BEFORE, ()), _verdict(value)):
            label = read_whole(said, target).label if isinstance(said, str) else None
            if label is not None:
                yield Stated(label, said[:60], start, end)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose last value for a key counts; earlier values of the verdict's key are kept too."""
    value = dict(pairs)
    if len(value) < len(pairs):
        last = {key: i for i, (key, _) in enumerate(pairs)}
        before = [each for i, (key, each) in enumerate(pairs) if i < last[key] and _speaks(key)]
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
