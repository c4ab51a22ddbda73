"""Results of the labels so far: agreement of raters, repeats, known labels, and how many more are needed."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.annotation.label_store import SKIPPED, Labelled
from dikast.annotation.labelling_questions import MARKS, WORTH, ToLabel
from dikast.annotation.marks import box_alike, span_alike
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import clusters_of, pooled_share, share
from dikast.audit.statistics.ppi import active_mean, mean_of_labels, ppi_mean
from dikast.audit.statistics.sample_size import labels_for_width
from dikast.core.text import counted

Codes = NDArray[np.int64]


def worth(question: ToLabel, value: str) -> float:
    """A label from 0 to 1: its position on the scale; for two things side by side, the share that the first one earns;
    1 for a claim that is right, or if there was nothing to mark.
    """
    if question.paired:
        return WORTH[value]
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
    questions: Mapping[str, ToLabel],
    labels: Sequence[Labelled],
    judged: Mapping[str, float] | None = None,
    chances: Mapping[str, float] | None = None,
) -> dict[str, Estimate]:
    """The figures of the owner's page; `judged`: a judge's score of each question, from 0 to 1, for PPI++; `chances`:
    with an active order, the probability with which each labelled question was chosen.

    Intervals draw whole items, since the claims of a response, its criteria and its raters are not independent.
    """
    by_question: dict[str, dict[str, str]] = defaultdict(dict)
    code = _items_of(questions)
    again: list[tuple[float, int]] = []
    right: list[tuple[float, int]] = []
    for each in labels:
        if each.value == SKIPPED:
            continue
        if each.kind == "item":
            by_question[each.question][each.rater] = each.value
    for each in labels:
        if each.value == SKIPPED:
            continue
        if each.kind == "repeat" and each.rater in by_question[each.question]:
            alike = label_alike(questions[each.question], by_question[each.question][each.rater], each.value)
            again.append((alike, code[each.question]))
        if each.kind == "item" and questions[each.question].known:
            right.append((float(questions[each.question].known == each.value), code[each.question]))
    pairs = {
        key: [label_alike(questions[key], one, two) for one, two in combinations(given.values(), 2)]
        for key, given in by_question.items()
    }
    agreeing, many = ([float(count(each)) for each in pairs.values()] for count in (sum, len))
    found = {
        "raters agree": pooled_share(agreeing, many, 0.95, _alone([code[key] for key in pairs]))
        if any(many)
        else share([], 0.95, note="no question has two labels"),
        "same label again (repeats)": _share(again),
        "same as the known label": _share(right),
    }
    practised = {each.question for each in labels if each.kind == "training"}
    asked = {key: each for key, each in questions.items() if key not in practised}
    found["mean (0 to 1)"] = _mean(asked, by_question, judged, chances)
    return found


def _items_of(questions: Mapping[str, ToLabel]) -> dict[str, int]:
    """The item of each question, as codes."""
    items = {name: i for i, name in enumerate(dict.fromkeys(each.item.id for each in questions.values()))}
    return {key: items[each.item.id] for key, each in questions.items()}


def _alone(codes: Sequence[int]) -> Codes | None:
    """Clusters (n,) of the codes, None where each row is one of its own."""
    return None if len(set(codes)) == len(codes) else clusters_of(np.array(codes, np.int64))


def _share(found: Sequence[tuple[float, int]]) -> Estimate:
    return share([worth for worth, _ in found], 0.95, _alone([code for _, code in found]))


def _mean(
    questions: Mapping[str, ToLabel],
    given: Mapping[str, Mapping[str, str]],
    judged: Mapping[str, float] | None,
    chances: Mapping[str, float] | None,
) -> Estimate:
    known = [key for key, each in given.items() if each]
    gold = [float(np.mean([worth(questions[key], value) for value in given[key].values()])) for key in known]
    code = _items_of(questions)
    if judged is not None and (both := [(y, key) for y, key in zip(gold, known, strict=True) if key in judged]):
        rest = [key for key in judged if key in questions and key not in given]
        cluster = clusters_of(np.array([code[key] for _, key in both] + [code[key] for key in rest], np.int64))
        y, f = [y for y, _ in both], [judged[key] for _, key in both]
        others = [judged[key] for key in rest]
        if chances:
            return active_mean(y, f, [chances[key] for _, key in both], others, 0.95, cluster, within=(0, 1))
        return ppi_mean(y, f, others, 0.95, cluster, within=(0, 1))
    by_item = clusters_of(np.array([code[key] for key in known], np.int64)) if known else None
    return mean_of_labels(gold, 0.95, by_item, within=(0, 1))


class Left(NamedTuple):
    """How many units have a label, have an open question, and have that and no label: items where some hold several
    questions, else questions.
    """

    unit: str
    labelled: int
    left: int
    new: int


def left_to_label(
    questions: Mapping[str, ToLabel],
    labels: Sequence[Labelled],
    due: Collection[str],
    judged: Mapping[str, float] | None = None,
) -> Left:
    """What the stop rule counts; `due`: questions that a rater has yet to answer.

    As in the mean of `progress`, questions that are not `judged` do not count, unless all labels are of such.
    """
    code = _items_of(questions)
    done = {each.question for each in labels if each.kind == "item" and each.value != SKIPPED}
    usable = set(code)
    if judged is not None and not done.isdisjoint(judged):
        usable.intersection_update(judged)
    labelled, left = ({code[key] for key in usable.intersection(each)} for each in (done, set(due) - done))
    unit = "question" if len(set(code.values())) == len(code) else "item"
    return Left(unit, len(labelled), len(left), len(left - labelled))


def stop_rule(found: Estimate, aim: float, left: Left) -> str:
    """How many more labelled questions would narrow the interval to +/- aim, at the present variance.

    Where items hold several questions, the interval is that of whole items, and it is items that narrow it.
    """
    if math.isnan(found.low) or not found.half_width > 0:
        return f"too few labels to estimate how many narrow the interval to ±{aim:g}"
    due = labels_for_width(found.half_width, left.labelled, aim) - left.labelled
    if due <= 0:
        return f"enough: the interval is ±{found.half_width:.3f}, and ±{aim:g} was asked for"
    more = f"labels on {counted(int(due), f'more {left.unit}')}"
    if due > left.new:
        told = f"{left.left:,} {'is' if left.left == 1 else 'are'} left"
        if left.left > left.new:
            verb = "has" if left.new == 1 else "have"
            told = f"{left.new:,} {verb} no label yet, {left.left - left.new:,} labels on some of their questions only"
        return f"±{aim:g} would take {more}, and {told}: the interval is ±{found.half_width:.3f}"
    return f"{more} bring the interval from ±{found.half_width:.3f} to ±{aim:g}"
