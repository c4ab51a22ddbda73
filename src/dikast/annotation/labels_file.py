"""What is made of the labels: a table for the audit, items with gold for training, the log of all events."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median_low
from typing import Any

from dikast.annotation.label_store import SKIPPED, LabelStore
from dikast.annotation.labelling_questions import ToLabel
from dikast.core.item import Item
from dikast.core.records import write_items, write_records

LABELS, ITEMS, TRAIL = "labels.csv", "labelled.jsonl", "trail.csv"


def write_labels(folder: Path, store: LabelStore, questions: Mapping[str, ToLabel]) -> int:
    """Write the three files; returns the number of labels without practice, repeats and skips.

    `labels.csv` has one row per labelled question, in the order of the items: `item`, `criterion`, `response_index` (of
    pairs `response_a` and `response_b`), `gold`, and a column `human_NAME` for each rater. `gold` is the mean of
    scores, and of pairs what most raters chose ("" where no choice has most). Ids that a spreadsheet would run as a
    formula have an apostrophe in front, which the audit knows. `labelled.jsonl` has an item for each labelled question,
    with its rubric and one gold label, for `dikast train` and `dikast corpus convert`.
    """
    raters = list(store.counts())
    given: dict[str, dict[str, str]] = {}
    for each in store.labels():
        if each.kind == "item" and each.value != SKIPPED:
            given.setdefault(each.question, {})[each.rater] = each.value
    given = {key: given[key] for key in questions if key in given}
    rows = (_row(questions[key], said, raters) for key, said in given.items())
    write_records(folder / LABELS, rows, escape_formulas=True)
    asked = Counter(each.item.id for each in questions.values())
    made = (
        _labelled(questions[key], list(said.values()), several=asked[questions[key].item.id] > 1)
        for key, said in given.items()
    )
    write_items(folder / ITEMS, (item for item in made if item is not None))
    write_records(folder / TRAIL, _trail(store, questions), escape_formulas=True)
    return sum(map(len, given.values()))


def _row(question: ToLabel, said: Mapping[str, str], raters: Sequence[str]) -> dict[str, Any]:
    places = ("response_index",) if len(question.responses) == 1 else ("response_a", "response_b")
    row: dict[str, Any] = {"item": question.item.id, "criterion": question.rubric.name}
    row |= dict(zip(places, map(str, question.responses), strict=True))
    return (
        row | {"gold": _gold(question, list(said.values()))} | {f"human_{name}": said.get(name, "") for name in raters}
    )


def _gold(question: ToLabel, said: Sequence[str]) -> str:
    if len(question.responses) == 1:
        values = [question.rubric.scale.value(each) for each in said]
        return said[0] if len(set(said)) == 1 else f"{sum(values) / len(values):.6g}"
    (most, count), *rest = Counter(said).most_common()
    return most if all(other < count for _, other in rest) else ""


def _labelled(question: ToLabel, said: Sequence[str], *, several: bool) -> Item | None:
    """The question as an item of its own, whose gold is a label: of scores the middle one (the lower of two), of pairs
    what most raters chose; None where no choice has most. `several`: the item has other questions too.
    """
    item, scale = question.item, question.rubric.scale
    if len(question.responses) == 1:
        value = scale.value(scale.labels[median_low(scale.labels.index(each) for each in said)])
        gold: dict[str, Any] = {"score": int(value) if value == int(value) else value}
    elif chosen := _gold(question, said):
        gold = {"preference": chosen}
    else:
        return None
    gold |= {"raters": list(said)} if len(said) > 1 else {}
    name = "/".join([item.id, question.rubric.name, *map(str, question.responses)]) if several else item.id
    responses = tuple(item.responses[index] for index in question.responses)
    return replace(item, id=name, rubric=question.rubric, responses=responses, gold=gold, gold_from="")


def _trail(store: LabelStore, questions: Mapping[str, ToLabel]) -> list[dict[str, Any]]:
    rows = []
    for at, rater, task, key, kind, what, value, reason, swapped in store.trail():
        question = questions[key]
        rows.append({
            "time": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"), "rater": rater,
            "task": str(task), "kind": kind, "item": question.item.id, "criterion": question.rubric.name,
            "responses": " ".join(map(str, question.responses)), "swapped": str(bool(swapped)).lower(),
            "what": what, "value": value, "reason": reason,
        })  # fmt: skip
    return rows
