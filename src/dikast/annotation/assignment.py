"""Assignment of questions to raters: overlapping raters, repeated questions, practice questions first."""

import random
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from dikast.annotation.active_order import Priority
from dikast.annotation.labelling_questions import ToLabel
from dikast.core.errors import UserError

TaskKind = Literal["training", "item", "repeat"]


class RaterTask(NamedTuple):
    """One question as shown to one rater: `swapped` shows the second response of a pair first."""

    question: str
    kind: TaskKind
    swapped: bool


def assign(
    questions: Sequence[ToLabel],
    raters: int,
    *,
    overlap: int,
    repeats: float,
    training: int,
    seed: int,
    priorities: Mapping[str, Priority] | None = None,
) -> list[list[RaterTask]]:
    """The tasks of each rater, in order.

    `overlap` raters get each question, in rotation; a share `repeats` of a rater's own questions is repeated in the
    second half of the work; the first `training` questions with a known label come first for everybody. Each rater has
    a random order, or that of `priorities`. The same arguments give the same tasks. UserError for impossible arguments.
    """
    if not 1 <= overlap <= raters:
        raise UserError(f"--overlap {overlap}: write a number from 1 to the {raters} raters")
    shown = [each for each in questions if each.known][:training]
    if len(shown) < training:
        raise UserError(f"--training {training}: only {len(shown)} questions have a known label (the column gold)")
    taught = {each.key for each in shown}
    rest = [each for each in questions if each.key not in taught]
    if not rest:
        raise UserError(f"--training {training}: no question is left to label")
    random.Random(f"{seed} questions").shuffle(rest)
    mine: list[list[ToLabel]] = [[] for _ in range(raters)]
    for number, question in enumerate(rest):
        for turn in range(overlap):
            mine[(number * overlap + turn) % raters].append(question)
    found = []
    for rater, own in enumerate(mine):
        draw = random.Random(f"{seed} rater {rater}")
        draw.shuffle(own)
        if priorities:
            own.sort(key=lambda each: priorities[each.key].place)
        tasks: list[tuple[ToLabel, TaskKind]] = [(each, "item") for each in own]
        half = len(own) // 2
        for question in draw.sample(own[:half], min(half, round(repeats * len(own)))):
            tasks.insert(draw.randint(half + 1, len(tasks)), (question, "repeat"))
        whole = [*((each, "training") for each in shown), *tasks]
        found.append([RaterTask(each.key, kind, each.paired and draw.random() < 0.5) for each, kind in whole])
    return found
