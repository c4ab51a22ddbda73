"""Splits a rendered prompt at its headings: lines that begin with `###` and whose title ends with a colon."""

import re
from typing import Any

from dikast.core.errors import DataError

_HEADING = re.compile(r"^###\s?(?P<title>[^\n:]{1,60}?)\s?:[ \t]*(?P<rest>[^\n]*)$", re.M)
_LEVEL = re.compile(r"^Score\s(?P<label>\d{1,3})\s?:\s?(?P<text>.*?)\s*(?=^Score\s\d{1,3}\s?:|\Z)", re.M | re.S)
_ORDER = ("instruction", "response", "reference", "rubric", "feedback")


def sections(prompt: str) -> dict[str, str]:
    """The text under each heading, by its role: instruction, response, reference, rubric, feedback.

    A heading inside a response is part of the response: the first heading for `instruction` counts, the next one for
    `response` after it, and for the other roles the last one in the prompt.
    """
    found = [(_role(match["title"]), match) for match in _HEADING.finditer(prompt)]
    frame: list[tuple[str, re.Match[str]]] = []
    for role in _ORDER:
        after = frame[-1][1].end() if frame else 0
        fits = [match for name, match in found if name == role and match.start() >= after]
        if fits:
            frame.append((role, fits[0] if role in ("instruction", "response") else fits[-1]))
    frame = [each for i, each in enumerate(frame) if i == 0 or each[1].start() > frame[i - 1][1].start()]
    ends = [*(match.start() for _, match in frame[1:]), len(prompt)][: len(frame)]
    return {
        role: (match["rest"] + prompt[match.end() : end]).strip()
        for (role, match), end in zip(frame, ends, strict=True)
    }


def fields_of(prompt: str) -> dict[str, Any]:
    """Instruction, response, reference and rubric of a rendered absolute prompt, as an item's JSON fields.

    DataError if the prompt has no headings for its instruction, response and rubric.
    """
    parts = sections(prompt)
    missing = [role for role in ("instruction", "response", "rubric") if role not in parts]
    if missing:
        raise DataError(f"the prompt has no '###' heading for {', '.join(missing)}", field="instruction")
    fields: dict[str, Any] = {"instruction": parts["instruction"], "response": parts["response"]}
    if "reference" in parts:
        fields["reference"] = parts["reference"]
    fields["rubric"] = rubric_of(parts["rubric"])
    return fields


def rubric_of(text: str) -> dict[str, Any]:
    """The criterion, without surrounding brackets, and its `Score N:` levels."""
    levels = {match["label"]: match["text"] for match in _LEVEL.finditer(text)}
    first = next(_LEVEL.finditer(text), None)
    criterion = (text[: first.start()] if first else text).strip()
    if criterion.startswith("[") and criterion.endswith("]"):
        criterion = criterion[1:-1].strip()
    low, high = (min(map(int, levels)), max(map(int, levels))) if len(levels) > 1 else (1, 5)
    levels = {label: told for label, told in levels.items() if told}
    return {"criterion": criterion, "scale": f"{low}-{high}", "levels": levels}


def _role(title: str) -> str:
    words = title.casefold()
    return next((role for role in ("reference", "rubric", "feedback", "instruction", "response") if role in words), "")
