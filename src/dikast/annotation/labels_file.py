"""The labels as the audit reads them (`labels.csv`), and the log of all events (`trail.csv`)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dikast.annotation.label_store import SKIPPED, LabelStore
from dikast.annotation.labelling_questions import ToLabel
from dikast.core.records import write_records

LABELS, TRAIL = "labels.csv", "trail.csv"


def write_labels(folder: Path, store: LabelStore, questions: Mapping[str, ToLabel]) -> int:
    """Write both files; returns the number of labels without practice, repeats and skips.

    `labels.csv` has one row per labelled question: `item`, `criterion`, `response_index` (of pairs `response_a` and
    `response_b`), `gold`, and a column `human_NAME` for each rater. `gold` is the mean of scores, and of pairs what
    most raters chose ("" where no choice has most). Ids that a spreadsheet would run as a formula have an apostrophe in
    front, which the audit knows.
    """
    raters = list(store.counts())
    given: dict[str, dict[str, str]] = {}
    for each in store.labels():
        if each.kind == "item" and each.value != SKIPPED:
            given.setdefault(each.question, {})[each.rater] = each.value
    rows = (_row(questions[key], said, raters) for key, said in given.items())
    write_records(folder / LABELS, rows, escape_formulas=True)
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
