"""The questions for raters: a grade, the better of two, a finding on a claim, marks in a text or on a picture."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from dikast.audit.tables.run_rows import RunRows
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.gold import gold_of_pair, gold_of_response, lies_on
from dikast.core.item import Item
from dikast.core.media import load_image, sample_video
from dikast.core.part import REMOTE, text_of
from dikast.core.records import read_items
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.current_verdicts import RunReader

Kind = Literal["absolute", "pairwise", "claims", "spans", "boxes", "feedback"]
MARKS = ("spans", "boxes")  # kinds whose answer is a list of marks, not a label
CHOICES = ("a", "b", "tie")
FINDINGS = ("right", "wrong", "unclear")
WORTH = {"a": 1.0, "tie": 0.5, "b": 0.0}  # the share that the first of two earns
_MOST_TOLD = 5
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")  # between two sentences


@dataclass(frozen=True, slots=True)
class ToLabel:
    """One thing to label. `responses` are one index or two; `known` is the known label, "" for none.

    `about` is the claim that is asked about, as the `number`th of its response, or the two feedbacks to compare.
    """

    key: str
    item: Item
    rubric: Rubric
    responses: tuple[int, ...]
    known: str = ""
    kind: Kind = "absolute"
    about: tuple[str, ...] = ()
    number: int = 0

    @property
    def labels(self) -> tuple[str, ...]:
        """The possible answers; none if the answer is a list of marks."""
        if self.kind in MARKS:
            return ()
        return CHOICES if self.paired else FINDINGS if self.kind == "claims" else self.rubric.scale.labels

    @property
    def claim(self) -> str:
        """The claim that is asked about, "" for other questions."""
        return self.about[0] if self.kind == "claims" else ""

    @property
    def paired(self) -> bool:
        """Whether two things are shown side by side, in random order."""
        return self.kind in ("pairwise", "feedback")


def is_answer(question: ToLabel, value: object) -> bool:
    """Whether a stored label is one that the question has."""
    if question.kind not in MARKS:
        return value in question.labels
    try:
        marks = orjson.loads(value) if isinstance(value, str) else None
    except ValueError:
        return False
    width = 2 if question.kind == "spans" else 5
    return isinstance(marks, list) and all(
        isinstance(each, list) and len(each) == width and all(isinstance(n, int | float) for n in each)
        for each in marks
    )


def read_questions(
    path: str, columns: dict[str, str], rubric: Rubric | Sheet, kind: Kind, feedback: Sequence[Path] = ()
) -> list[ToLabel]:
    """The questions of an items file, in its order; `feedback`: the two runs whose feedback is compared.

    UserError for items that cannot be shown.
    """
    assert kind in get_args(Kind)
    said = [feedback_of(each) for each in feedback]
    found: list[ToLabel] = []
    wrong: list[str] = []
    for item in read_items(path, columns=columns):
        given = item.rubric or rubric
        wrong += _unshown(item)
        criteria = list(given) if isinstance(given, Sheet) and kind not in ("claims", "spans", "boxes") else [given]
        for criterion in criteria:
            one = next(iter(criterion)) if isinstance(criterion, Sheet) else criterion
            found += _questions(item, one, kind, said)
    if wrong:
        more = f"; and {len(wrong) - _MOST_TOLD:,} more" if len(wrong) > _MOST_TOLD else ""
        raise UserError("these cannot be shown to people: " + "; ".join(wrong[:_MOST_TOLD]) + more)
    if not found:
        both = " on which both runs have feedback" if feedback else ""
        raise UserError(f"{path}: there is nothing to label{both}")
    return found


def _questions(
    item: Item, rubric: Rubric, kind: Kind, said: Sequence[Mapping[tuple[str, str, int], str]]
) -> Iterator[ToLabel]:
    for responses in _places(item, kind):
        base = [item.id, rubric.to_dict(), list(responses)]  # the key of the first two kinds, as in earlier versions
        if kind in ("absolute", "pairwise"):
            yield ToLabel(fingerprint(base), item, rubric, responses, known_label(item, rubric, responses), kind)
        elif kind == "claims":
            for number, (claim, known) in enumerate(claims_of(item, responses[0])):
                key = fingerprint([*base, kind, number, claim])
                yield ToLabel(key, item, rubric, responses, known, kind, (claim,), number)
        elif kind == "feedback":
            both = tuple(each.get((item.id, rubric.name, responses[0]), "") for each in said)
            if all(both):
                yield ToLabel(fingerprint([*base, kind, *both]), item, rubric, responses, "", kind, both)
        else:
            yield ToLabel(fingerprint([*base, kind]), item, rubric, responses, "", kind)


def claims_of(item: Item, response: int) -> list[tuple[str, str]]:
    """The claims of a response, each with its known finding ("" for none): those of its gold or of the column `claims`
    where there are any, else its sentences.
    """
    gold = item.gold if isinstance(item.gold, Mapping) else {}
    parts = gold.get("responses")
    if len(item.responses) > 1 and isinstance(parts, list) and response < len(parts):
        gold = parts[response] if isinstance(parts[response], Mapping) else {}
    listed: Any = gold.get("claims") or item.meta.get("claims")
    if isinstance(listed, list) and len(item.responses) > 1 and all(isinstance(each, list) for each in listed):
        listed = listed[response] if response < len(listed) else []
    if isinstance(listed, list) and listed:
        rows = [each if isinstance(each, Mapping) else {"text": each} for each in listed]
        found = [(str(row.get("text") or ""), str(row.get("verdict") or "")) for row in rows]
        return [(text, known if known in FINDINGS else "") for text, known in found if text.strip()]
    text = text_of(item.responses[response])
    return [(each.strip(), "") for each in _BREAK.split(text) if each.strip()]


def verdicts_on(run: Path, questions: Sequence[ToLabel]) -> Iterator[tuple[ToLabel, Mapping[str, Any]]]:
    """Each question with the row of a run's verdict on its pair, or on the response that it is about, by its criterion;
    rows as `RunRows` gives them, without those that failed and those of further samples. None of feedback.
    """
    places: dict[tuple[str, str, tuple[int, ...]], list[ToLabel]] = {}
    for each in questions:
        if each.kind != "feedback":
            places.setdefault((each.item.id, each.rubric.name, each.responses), []).append(each)
    for row, _ in RunRows(str(run)):
        responses = (row["first"], row["second"]) if "first" in row else (row["response"],)
        if row["status"] == "ok" and not row["sample"]:
            for question in places.get((row["item"], row["criterion"], responses), ()):
                yield question, row


def feedback_of(run: Path) -> dict[tuple[str, str, int], str]:
    """The feedback of a run of grades, by item, criterion and response; UserError where it wrote none."""
    found = {}
    for record, _ in RunReader(run):
        asked = record["question"]
        places = asked.get("responses") or [0]
        if len(places) == 1 and not asked.get("sample") and (text := str(record.get("feedback") or "").strip()):
            found[asked["item"], asked["criterion"], places[0]] = text
    if not found:
        raise UserError(f"--feedback {run}: its verdicts have no feedback")
    return found


def _places(item: Item, kind: Kind) -> Sequence[tuple[int, ...]]:
    n = len(item.responses)
    if kind != "pairwise":
        if not n:
            raise UserError(f"{item.origin}: item {item.id!r} has no response to grade; name its column with --map")
        return [(i,) for i in range(n)]
    if n < 2:
        raise UserError(f"{item.origin}: item {item.id!r} has {n} response(s), and a pair needs two; leave out --pairs")
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def known_label(item: Item, rubric: Rubric, responses: tuple[int, ...]) -> str:
    """The known label of a question, from gold in any of its forms; "" where gold gives none of the labels."""
    if len(responses) == 2:
        better = gold_of_pair(item.gold, rubric.name, responses, rubric.scale)
        return better if better in CHOICES else ""
    gold = gold_of_response(item.gold, rubric.name, responses[0])
    if isinstance(gold, str):
        return rubric.scale.match(gold) or ""
    usable = isinstance(gold, int | float) and not isinstance(gold, bool) and lies_on(gold, rubric.scale)
    return (rubric.scale.label(gold) or "") if usable else ""


def _unshown(item: Item) -> list[str]:
    told = []
    for video in item.videos:
        if "://" in video.source or video.source.startswith("data:"):
            told.append(f"{item.origin}: a clip is a web address or a data URL: save it as a file first")
            continue
        try:
            sample_video(video, 1)
        except (DataError, OSError) as error:
            told.append(f"{item.origin}: {error}")
    for image in item.images:
        if image.source.startswith(REMOTE):
            told.append(f"{item.origin}: {image.name} is a web address; download it first")
            continue
        try:
            load_image(image)
        except (DataError, OSError) as error:
            told.append(f"{item.origin}: {error}")
    return told
