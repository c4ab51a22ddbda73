"""Results of the labels so far: agreement of raters, repeats, known labels, and how many more are needed."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from dikast.annotation.label_store import SKIPPED, Labelled
from dikast.annotation.labelling_questions import MARKS, ToLabel
from dikast.annotation.marks import box_alike, span_alike
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import clusters_of, pooled_share, share
from dikast.audit.statistics.ppi import mean_of_labels, ppi_mean
from dikast.audit.statistics.sample_size import labels_for_width
from dikast.core.text import counted

_WORTH = {"a": 1.0, "tie": 0.5, "b": 0.0}


def worth(question: ToLabel, value: str) -> float:
    """A label from 0 to 1: its position on the scale; for two things side by side, the share that the first one earns;
    1 for a claim that is right, or if there was nothing to mark.
    """
    if question.paired:
        return _WORTH[value]
    if question.kind == "claims":
        return float(value == "right")
    if question.kind in MARKS:
        return float(value == "[]")
    return question.rubric.scale.goodness(question.rubric.scale.value(value))


def label_alike(question: ToLabel, one: str, other: str) -> float:
    """The agreement of two labels: 1 or 0, and for marks the intersection as a share of the union."""
    if question.kind in MARKS:
        return (span_alike if question.kind == "spans" else box_alike)(one, other)
    return float(one == other)


def progress(
    questions: Mapping[str, ToLabel], labels: Sequence[Labelled], judged: Mapping[str, float] | None = None
) -> dict[str, Estimate]:
    """The figures of the owner's page; `judged`: a judge's score of each question, from 0 to 1, for PPI++."""
    by_question: dict[str, dict[str, str]] = defaultdict(dict)
    again: list[float] = []
    right: list[bool] = []
    for each in labels:
        if each.value == SKIPPED:
            continue
        if each.kind == "item":
            by_question[each.question][each.rater] = each.value
    for each in labels:
        if each.value == SKIPPED:
            continue
        if each.kind == "repeat" and each.rater in by_question[each.question]:
            again.append(label_alike(questions[each.question], by_question[each.question][each.rater], each.value))
        if each.kind == "item" and questions[each.question].known:
            right.append(questions[each.question].known == each.value)
    pairs = [
        [label_alike(questions[key], one, two) for one, two in combinations(given.values(), 2)]
        for key, given in by_question.items()
    ]
    alike, many = np.array([sum(each) for each in pairs], float), np.array([len(each) for each in pairs], float)
    found = {
        "raters agree": pooled_share(alike, many, 0.95)
        if many.any()
        else share([], 0.95, note="no question has two labels"),
        "same label again (repeats)": share(np.array(again, float), 0.95),
        "same as the known label": share(np.array(right, float), 0.95),
    }
    found["mean (0 to 1)"] = _mean(questions, by_question, judged)
    return found


def _mean(
    questions: Mapping[str, ToLabel], given: Mapping[str, Mapping[str, str]], judged: Mapping[str, float] | None
) -> Estimate:
    known = [key for key, each in given.items() if each]
    gold = [float(np.mean([worth(questions[key], value) for value in given[key].values()])) for key in known]
    items = {name: i for i, name in enumerate(dict.fromkeys(each.item.id for each in questions.values()))}
    code = {key: items[each.item.id] for key, each in questions.items()}
    if judged is not None and (both := [(y, key) for y, key in zip(gold, known, strict=True) if key in judged]):
        rest = [key for key in judged if key in questions and key not in given]
        cluster = clusters_of(np.array([code[key] for _, key in both] + [code[key] for key in rest], np.int64))
        y, f = [y for y, _ in both], [judged[key] for _, key in both]
        return ppi_mean(y, f, [judged[key] for key in rest], 0.95, cluster, within=(0, 1))
    by_item = clusters_of(np.array([code[key] for key in known], np.int64)) if known else None
    return mean_of_labels(gold, 0.95, by_item, within=(0, 1))


def stop_rule(found: Estimate, aim: float, left: int) -> str:
    """How many more labelled questions would narrow the interval to +/- aim, at the present variance; `left` are those
    without a label.
    """
    if math.isnan(found.low) or not found.half_width > 0:
        return f"too few labels to estimate how many narrow the interval to ±{aim:g}"
    due = labels_for_width(found.half_width, found.n, aim) - found.n
    if due <= 0:
        return f"enough: the interval is ±{found.half_width:.3f}, and ±{aim:g} was asked for"
    if due > left:
        told = f"±{aim:g} would take labels on {counted(int(due), 'more question')}, and {left:,} are left"
        return f"{told}: the interval is ±{found.half_width:.3f}"
    return f"labels on {counted(int(due), 'more question')} bring the interval from ±{found.half_width:.3f} to ±{aim:g}"
