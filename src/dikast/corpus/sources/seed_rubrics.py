"""Reading seed rubrics, and the rubric linter: faults that make a rubric hard to grade by."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError
from dikast.core.rubric import load_rubric
from dikast.core.scale import Scale
from dikast.core.text import Located, read_located
from dikast.corpus.observations import words_of

SCALE = Scale.parse("1-5")
SEEDS = Path(__file__).parent.parent / "seeds"  # those that come with Dikast: text.yaml, pictures.yaml
_JOINED = re.compile(r"\b(?:and|as well as|und|et|y)\b\s+(?P<after>\w+)", re.I)
_ASKS = re.compile(r"\b(?:is|are|does|do|how|whether|can|should|has|have)\b", re.I)
_GOOD = ("fully", "perfect", "excellent", "flawless", "complete", "every", "entirely", "outstanding", "always")
_BAD = ("no", "not", "none", "fails", "poor", "never", "nothing", "lacks", "wrong", "useless")


def lint(criterion: str, levels: dict[str, str]) -> list[str]:
    """The faults of a rubric on the scale 1-5, in words; empty for a usable rubric.

    Finds missing levels, neighbouring levels that say the same, levels whose positive and negative words run backwards,
    and a criterion that asks two questions.
    """
    found = []
    missing = [label for label in SCALE.labels if not str(levels.get(label, "")).strip()]
    if missing:
        found.append(f"no description of {', '.join(missing)}")
    off = [str(label) for label in levels if str(label) not in SCALE.labels]
    if off:
        found.append(f"{', '.join(off)} is not on the scale {SCALE}")
    told = [(label, set(words_of(str(levels[label])))) for label in SCALE.labels if levels.get(label)]
    for (low, a), (high, b) in pairwise(told):
        if a and b and len(a & b) >= 0.9 * len(a | b):
            found.append(f"the levels {low} and {high} say the same")
    if len(told) > 1 and _tone(told[0][1]) > 0 > _tone(told[-1][1]):
        found.append(f"the levels run backwards: {told[0][0]} sounds better than {told[-1][0]}")
    if len(words_of(criterion)) < 3:
        found.append("the criterion is too short to grade by")
    questions = [part for part in criterion.split("?") if part.strip()] if "?" in criterion else []
    joined = any(_ASKS.fullmatch(match["after"]) for match in _JOINED.finditer(criterion))
    if len(questions) > 1 or joined:
        found.append("the criterion asks two things: make two rubrics of it")
    return found


def _tone(words: set[str]) -> int:
    return sum(word in words for word in _GOOD) - sum(word in words for word in _BAD)


def load_seeds(path: str | Path) -> list[dict[str, Any]]:
    """Rubrics from a YAML or JSON list of `{criterion, levels}`; DataError names every bad one with its line."""
    document = read_located(str(path))
    entries = document.value.get("rubrics") if isinstance(document.value, dict) else document.value
    at: tuple[object, ...] = ("rubrics",) if isinstance(document.value, dict) else ()
    if not isinstance(entries, list) or not entries:
        raise document.error("seeds are a list of rubrics, each with 'criterion' and 'levels' 1 to 5")
    mistakes = [str(each) for i, entry in enumerate(entries) for each in _wrong(document, entry, (*at, i))]
    if mistakes:
        told = [f"{path}: {len(mistakes)} mistakes in the seed rubrics", *(f"  {each}" for each in mistakes)]
        raise DataError("\n".join(told))
    return [
        {
            "criterion": entry["criterion"].strip(),
            "levels": {str(k): str(v).strip() for k, v in entry["levels"].items()},
        }
        for entry in entries
    ]


def _wrong(document: Located, entry: Any, at: tuple[object, ...]) -> list[DataError]:
    if not isinstance(entry, dict) or not isinstance(entry.get("criterion"), str):
        return [document.error("a rubric needs a 'criterion' and 'levels'", *at)]
    levels = entry.get("levels")
    if not isinstance(levels, dict):
        return [document.error("a seed rubric must describe the levels 1 to 5", *at)]
    found = [document.error(each, *at) for each in lint(entry["criterion"], {str(k): v for k, v in levels.items()})]
    keys = [int(str(key)) for key in levels if str(key) in SCALE.labels]
    if keys != sorted(keys):
        found.append(document.error("the levels must be listed from 1 to 5", *at, "levels"))
    if not found:
        try:
            load_rubric({"criterion": entry["criterion"], "scale": "1-5", "levels": levels})
        except DataError as error:
            found.append(document.error(str(error), *at))
    return found
