"""Active order: questions where the judge is uncertain come earlier, each with a known probability of being labelled.

Each question has a weight w, larger where the judge is less certain, and a random number u between 0 and 1; questions
are asked in the order of u / w. If the next one to be asked has the priority t, a question had the probability min(1, w
t) of being asked, and estimates weighted by its inverse are unbiased, whenever labelling stops. Source: Duffield, Lund
& Thorup 2007, "Priority sampling for estimation of arbitrary subset sums".
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dikast.annotation.labelling_questions import WORTH, ToLabel, verdicts_on
from dikast.audit.tables.run_rows import ORDERS
from dikast.core.errors import UserError

# of the least and the most uncertain question: narrow, so that a judge whose certainty says nothing costs little
WEIGHTS = (0.75, 1.25)


class Priority(NamedTuple):
    """Of one question: its weight (1 on average), and its place in the order, `draw` / `weight`, least first."""

    weight: float
    place: float


def priorities_of(
    keys: Iterable[str], spread: Mapping[str, float], seed: int, weights: tuple[float, float] = WEIGHTS
) -> dict[str, Priority]:
    """The priority of each question; `spread`: the judge's uncertainty by key (questions without one weigh 1)."""
    ordered = sorted(spread.values())
    least, most = weights
    draw = random.Random(f"{seed} active order")
    found = {}
    for key in keys:
        weight = 1.0
        if key in spread:
            rank = (bisect_left(ordered, spread[key]) + bisect_right(ordered, spread[key])) / 2 / len(ordered)
            weight = least + (most - least) * rank
        found[key] = Priority(weight, draw.random() / weight)
    return found


def uncertainty_of(run: Path, questions: Sequence[ToLabel]) -> dict[str, float]:
    """The standard deviation of what a run says of each question, from 0 to 1, by key: of the score of the response, or
    of the share that the first of a pair earns, from the probabilities of labels; of a pair without, from both orders.

    UserError if no question has any, or the judge is certain of all.
    """
    found = {}
    for question, row in verdicts_on(run, questions):
        scale, given = question.rubric.scale, row["distribution"]
        if question.kind == "pairwise":
            orders = [row[order] for order in ORDERS if order in row]
            found[question.key] = _deviation(WORTH, given or {each: orders.count(each) for each in orders})
        elif given:
            found[question.key] = _deviation(
                {label: scale.goodness(scale.value(label)) for label in scale.labels}, given
            )
    if not any(found.values()):
        raise UserError(
            f"--order active: {run} has no label probabilities on these items to tell how certain its judge is:"
            " judge them with one that scores labels, or leave out --order"
        )
    return found


def chances(
    priorities: Mapping[str, Priority], asked: Iterable[tuple[int, str]], reached: Mapping[int, float]
) -> dict[str, float]:
    """The probability with which each asked question was chosen.

    asked: rater and question of each label; reached: by rater, the place of the first question that is not asked yet,
    infinite when all are. Of several raters' answers the one that had come furthest counts.
    """
    found: dict[str, float] = {}
    for rater, key in asked:
        chance = min(1.0, priorities[key].weight * reached.get(rater, math.inf))
        found[key] = max(chance, found.get(key, 0.0))
    return found


def _deviation(values: Mapping[str, float], given: Mapping[str, float]) -> float:
    worth = [(values[label], share) for label, share in given.items() if label in values]
    total = math.fsum(share for _, share in worth)
    if total <= 0:
        return 0.0
    mean = math.fsum(value * share for value, share in worth) / total
    return math.sqrt(math.fsum(share * (value - mean) ** 2 for value, share in worth) / total)
