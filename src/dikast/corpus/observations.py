"""Feedback data as observations: the graded responses and the preference of each record, and their text features."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError
from dikast.core.item import Item, item_from
from dikast.core.part import text_of
from dikast.core.records.files import folder_of
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.corpus.convert import records_of
from dikast.corpus.schemas.public_schema import asked, gold_of, plain

_WORD = re.compile(r"\w+")
_LIST = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s", re.M)
FEATURES = (
    "words", "characters", "lines", "list items", "words a sentence", "distinct words", "digits", "capitals", "markup",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Graded:
    """One response with its gold score (None if gold gives none) and the feedback on it."""

    response: str
    score: float | None
    feedback: str


@dataclass(frozen=True, slots=True)
class Observed:
    """One record as the checks see it. `line` is its line number in the file."""

    line: int
    item: Item
    instruction: str
    responses: tuple[Graded, ...]
    preference: str
    feedback: str

    @property
    def rubric(self) -> Rubric | None:
        """The record's rubric if it has exactly one, else None."""
        return self.item.rubric if isinstance(self.item.rubric, Rubric) else None

    @property
    def scale(self) -> Scale | None:
        """The rubric's scale."""
        return self.rubric.scale if self.rubric else None

    @property
    def texts(self) -> Iterator[tuple[str, str, str]]:
        """What contamination is looked for in: kind of text, what it is called in messages, and the text."""
        yield "instruction", "instruction", self.instruction
        for i, each in enumerate(self.responses):
            yield "response", f"response {i}", each.response
        if self.rubric is not None:
            yield "rubric", "rubric", self.rubric.criterion

    @property
    def key(self) -> str:
        """Fingerprint of the instruction, its images and the rubric."""
        images = [image.source for image in self.item.images]
        return fingerprint([self.instruction, images, self.rubric.hash if self.rubric else ""])


def observations(path: str | Path, from_: str = "") -> Iterator[Observed]:
    """The records of a file of any known schema, in bounded memory."""
    for record, line in records_of(path, from_):
        try:
            item = item_from(record, path=str(path), line=line, root=folder_of(str(path)))
        except DataError as error:
            if error.path:
                raise
            raise DataError(str(error), path=str(path), line=line) from None
        yield observed(item, line)


def observed(item: Item, line: int) -> Observed:
    """The observation of one item."""
    gold = gold_of(item)
    parts: list[Any] = list(gold.get("responses") or [])
    scores: list[Any] = list(gold.get("scores") or [])
    graded = []
    for i, response in enumerate(item.responses):
        own: Mapping[str, Any] = gold if len(item.responses) == 1 else parts[i] if i < len(parts) else {}
        score = own.get("score", scores[i] if i < len(scores) else None)
        graded.append(Graded(text_of(response), _value(score, own.get("label"), item), str(own.get("feedback") or "")))
    preference = gold.get("preference") if len(item.responses) == 2 else None
    whole = str(gold.get("feedback") or "") if len(item.responses) == 2 else ""
    said = preference if preference in ("a", "b", "tie") else ""
    return Observed(line, item, asked(item), tuple(graded), said, whole)


def _value(score: Any, label: Any, item: Item) -> float | None:
    if isinstance(score, int | float) and not isinstance(score, bool):
        return float(score)
    rubric = item.rubric
    found = rubric.scale.match(str(score if label is None else label)) if isinstance(rubric, Rubric) else None
    return rubric.scale.value(found) if found is not None and isinstance(rubric, Rubric) else None


def words_of(text: str) -> list[str]:
    """The words of a text: runs of letters and digits, case-folded."""
    return _WORD.findall(text.casefold())


def features_of(text: str) -> tuple[float, ...]:
    """The surface features of a text in the order of FEATURES; digits, capitals, markup as shares of all characters."""
    words, n = words_of(text), max(1, len(text))
    sentences = max(1, sum(text.count(mark) for mark in ".!?"))
    return (
        float(len(words)), float(len(text)), float(text.count("\n") + 1), float(len(_LIST.findall(text))),
        len(words) / sentences, len(set(words)) / max(1, len(words)), sum(map(str.isdigit, text)) / n,
        sum(map(str.isupper, text)) / n, sum(text.count(mark) for mark in "*_`#|") / n,
    )  # fmt: skip


def goodness(observation: Observed, score: float) -> float:
    """The score rescaled to 0 (worst) to 1 (best); the score itself if no scale is known."""
    scale = observation.scale
    return scale.goodness(score) if scale is not None else score


def label_of(score: float) -> str:
    """A score as a label of a histogram."""
    return str(plain(score))


Floats = NDArray[np.float64]
