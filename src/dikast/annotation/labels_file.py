"""The files made of the labels: a table for the audit, items with gold for training, the log of all events."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median_low
from typing import Any

import orjson

from dikast.annotation.label_store import SKIPPED, Event, LabelStore
from dikast.annotation.labelling_questions import ToLabel, known_label
from dikast.annotation.marks import most_marked
from dikast.core.gold import LABEL_CHANCE
from dikast.core.item import Item
from dikast.core.records import write_items, write_records

LABELS, ITEMS, TRAIL = "labels.csv", "labelled.jsonl", "trail.csv"


def write_labels(folder: Path, store: LabelStore, questions: Mapping[str, ToLabel]) -> int:
    """Write the three files; returns the number of labels without practice, repeats and skips.

    `labels.csv` has one row per labelled question, in the order of the items: `item`, `criterion`, `response_index` (of
    pairs `response_a` and `response_b`), `gold`, and a column `human_NAME` for each rater. `gold` is the mean of
    scores, and for pairs the choice of most raters ("" if there is a tie). With an active order `label_chance` is the
    probability with which the question was chosen. Ids that a spreadsheet would run as a
    formula have an apostrophe in front, which the audit knows. `labelled.jsonl` has an item for each labelled question,
    with its rubric and one gold label, for `dikast train` and `dikast corpus convert`.
    """
    with store.one_moment() as now:
        raters, labels, chances, trail = list(now.counts()), now.labels(), now.chances(), now.trail()
    given: dict[str, dict[str, str]] = {}
    for each in labels:
        if each.kind == "item" and each.value != SKIPPED:
            given.setdefault(each.question, {})[each.rater] = each.value
    given = {key: given[key] for key in questions if key in given}
    rows = (_row(questions[key], said, raters, chances.get(key)) for key, said in given.items())
    write_records(folder / LABELS, rows, escape_formulas=True)
    write_items(folder / ITEMS, _taught(questions, given))
    write_records(folder / TRAIL, _trail(trail, questions), escape_formulas=True)
    return sum(map(len, given.values()))


def _row(question: ToLabel, said: Mapping[str, str], raters: Sequence[str], chance: float | None) -> dict[str, Any]:
    places = ("response_index",) if len(question.responses) == 1 else ("response_a", "response_b")
    row: dict[str, Any] = {"item": question.item.id, "criterion": question.rubric.name}
    row |= dict(zip(places, map(str, question.responses), strict=True))
    if question.kind == "claims":
        row |= {"claim": question.claim}
    row |= {"gold": _gold(question, list(said.values()))} | ({} if chance is None else {LABEL_CHANCE: f"{chance:.9g}"})
    return row | {f"human_{name}": said.get(name, "") for name in raters}


def _gold(question: ToLabel, said: Sequence[str]) -> str:
    if question.kind == "spans":
        return most_marked(said)
    if question.kind == "boxes":
        return said[0] if len(set(said)) == 1 else ""
    if question.kind == "absolute":
        values = [question.rubric.scale.value(each) for each in said]
        return said[0] if len(set(said)) == 1 else f"{sum(values) / len(values):.6g}"
    (most, count), *rest = Counter(said).most_common()
    return most if all(other < count for _, other in rest) else ""


def _taught(questions: Mapping[str, ToLabel], given: Mapping[str, Mapping[str, str]]) -> Iterator[Item]:
    """The labelled questions as items with gold; the claims of a response are one item. Beside claims and marks stands
    the score that the item came with, as a judge learns them together.
    """
    asked = {(each.item.id, each.rubric.name, each.responses) for each in questions.values()}
    count = Counter(item for item, *_ in asked)
    golds: dict[tuple[str, str, tuple[int, ...]], tuple[ToLabel, dict[str, Any]]] = {}
    for key, said in given.items():
        question = questions[key]
        gold, place = _taught_gold(question, list(said.values())), (question.item.id, question.rubric.name)
        if gold is None:
            continue
        if (before := golds.get((*place, question.responses))) is not None:  # another claim of the same response
            before[1]["claims"] += gold["claims"]
        else:
            if not {"score", "preference"} & gold.keys() and (
                label := known_label(question.item, question.rubric, question.responses)
            ):
                gold = _score(question, label) | gold
            golds[*place, question.responses] = question, gold
    for (name, criterion, places), (question, gold) in golds.items():
        name = "/".join([name, criterion, *map(str, places)]) if count[name] > 1 else name
        responses = tuple(question.item.responses[index] for index in places)
        yield replace(question.item, id=name, rubric=question.rubric, responses=responses, gold=gold, gold_from="")


def _taught_gold(question: ToLabel, said: Sequence[str]) -> dict[str, Any] | None:
    """The gold of several labels: for scores the median (the lower of two), else the label of most raters; None if
    there is a tie.
    """
    scale = question.rubric.scale
    several = {"raters": list(said)} if len(said) > 1 else {}
    if question.kind == "absolute":
        label = scale.labels[median_low(scale.labels.index(each) for each in said)]
        return {**_score(question, label), **several}
    if question.kind == "feedback" or not (agreed := _gold(question, said)):
        return None
    if question.kind == "claims":
        return {"claims": [{"text": question.claim, "verdict": agreed}]}
    return {"preference": agreed, **several} if question.kind == "pairwise" else {question.kind: orjson.loads(agreed)}


def _score(question: ToLabel, label: str) -> dict[str, Any]:
    value = question.rubric.scale.value(label)
    return {"score": int(value) if value == int(value) else value}


def _trail(trail: Sequence[Event], questions: Mapping[str, ToLabel]) -> list[dict[str, Any]]:
    rows = []
    for at, rater, task, key, kind, what, value, reason, swapped in trail:
        question = questions[key]
        rows.append({
            "time": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"), "rater": rater,
            "task": str(task), "kind": kind, "item": question.item.id,
            "claim": question.claim, "criterion": question.rubric.name,
            "responses": " ".join(map(str, question.responses)), "swapped": str(bool(swapped)).lower(),
            "what": what, "value": value, "reason": reason,
        })  # fmt: skip
    return rows
