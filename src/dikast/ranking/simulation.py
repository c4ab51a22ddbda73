"""Simulated tournaments under a judge with known errors: how often a schedule finds the best response."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from dikast.audit.statistics.concordance import kendall_tau_b
from dikast.core.errors import UserError
from dikast.core.text import counted, hint
from dikast.judging.summary import Rate
from dikast.ranking.comparisons import Comparison, Floats, OrderedPair, Values
from dikast.ranking.schedules import SCHEDULES, Schedule
from dikast.ranking.tournament import Tournament

Read = Literal["logit", "verdict", "vote"]  # probabilities, the likelier response, a response drawn by its probability
Goal = Literal["best", "best-and-worst", "order"]
GOALS: dict[Goal, str] = {
    "best": "share of items whose best response comes first",
    "best-and-worst": "share of items whose best response comes first and whose worst comes last",
    "order": "mean of Kendall's tau with the true order",
}


_PILOT = 40  # items of the pilot that tells how comparisons follow grades


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """A judge of responses whose quality is standard normal.

    It sees quality + systematic * (an error of its own about each response, always the same); when it compares it sees
    compared * (a second such error) more. A comparison of i and j, shown in this order, has the logit
    gain * (seen_i - seen_j) + bias + noise * (fresh error); a grade is seen + graded * (fresh error), and infinite
    `graded` means that there are none. All errors are standard normal; gain, bias and noise are in nats. UserError for
    a NaN, for other infinite ones, and for negative sizes of errors.
    """

    gain: float
    bias: float
    noise: float
    systematic: float
    graded: float = 0.8
    compared: float = 0.0

    def __post_init__(self) -> None:
        for name in ("gain", "bias", "noise", "systematic", "graded", "compared"):
            value, error = getattr(self, name), name not in ("gain", "bias")
            if not (math.isfinite(value) or (name == "graded" and value == math.inf)) or (error and value < 0):
                raise UserError(f"JudgeModel: {name} is a number{' of 0 or more' if error else ''}, got {value!r}")


class Simulated(NamedTuple):
    """The result of a schedule: each of `GOALS`, the number of items, and the calls per item."""

    goals: Mapping[Goal, Rate]
    calls: float


def simulate(
    schedule: Schedule, k: int, judge: JudgeModel, *, read: Read = "logit", items: int = 2000, seed: int = 0
) -> Simulated:
    """Play the schedule on so many items with k responses each.

    The same seed draws the same items and errors, whatever the schedule, so that schedules differ by their merits. A
    schedule that fits grades has a pilot besides, which is not counted. UserError for fewer than one item, a `read`
    that is not known, and a k that the schedule does not take.
    """
    check_sizes(k, items, read)
    if k < schedule.least:
        raise UserError(f"k={k}: the schedule {schedule.name} needs {counted(schedule.least, 'response')}")
    rng, n = np.random.default_rng([seed, k]), items + _PILOT
    quality = rng.standard_normal((n, k))
    seen = quality + judge.systematic * rng.standard_normal((n, k))
    compared = seen + judge.compared * rng.standard_normal((n, k))
    errors = rng.standard_normal((n, k, k))
    grades = seen + judge.graded * rng.standard_normal((n, k)) if schedule.grades else None
    values: Values = "logit" if read == "logit" else "verdict"
    tournament = Tournament(seed, values)
    for at in range(n if schedule.grades == "fitted" else items):
        own = schedule if at < items else SCHEDULES["full"]
        tournament.enter(str(at), k, own, None if grades is None else grades[at])
    calls = items * k if schedule.grades else 0
    while pairs := tournament.draw():
        found = {}
        for item, drawn in pairs.items():
            at = int(item)
            found[item] = [_compared(judge, compared[at], pair, errors[at][pair], read, rng) for pair in drawn]
            calls += len(drawn) if at < items else 0
        tournament.note(found)
    strengths = tournament.strengths([str(at) for at in range(items)])
    orders = [
        with_duel(grades[at], strengths[str(at)])
        if grades is not None and schedule.grades == "first"
        else np.lexsort((np.arange(k), -strengths[str(at)])).tolist()
        for at in range(items)
    ]
    return Simulated(_goals(orders, quality[:items]), calls / items)


def check_sizes(k: int, items: int, read: str) -> None:
    """UserError, naming the argument, for what cannot be simulated."""
    for name, value, least in (("k", k, 2), ("items", items, 1)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise UserError(f"{name}={value!r}: expected a whole number of at least {least}")
    if read not in get_args(Read):
        raise UserError(f"read={read!r}: {hint(str(read), get_args(Read))}")


def _compared(
    judge: JudgeModel, seen: Floats, pair: OrderedPair, error: float, read: Read, rng: np.random.Generator
) -> Comparison:
    logit = judge.gain * float(seen[pair.first] - seen[pair.second]) + judge.bias + judge.noise * error
    if read == "vote":
        verdict = 1.0 if rng.random() < 1 / (1 + math.exp(-logit)) else -1.0
    else:
        verdict = math.copysign(1.0, logit)
    return Comparison(pair, verdict, math.tanh(logit / 2), logit)


def with_duel(grades: Floats, strengths: Floats) -> tuple[int, ...]:
    """The order by grades (k,), the two of the duel by its result; equal ones by their index, NaN last."""
    order = np.lexsort((np.arange(len(grades)), -grades)).tolist()
    met = sorted((i for i in order if strengths[i]), key=lambda i: -strengths[i])
    return (*met, *(i for i in order if not strengths[i]))


def _goals(orders: Sequence[Sequence[int]], quality: Floats) -> dict[Goal, Rate]:
    best = [order[0] == truth.argmax() for order, truth in zip(orders, quality, strict=True)]
    worst = [order[-1] == truth.argmin() for order, truth in zip(orders, quality, strict=True)]
    taus = [
        kendall_tau_b(range(len(order), 0, -1), truth[list(order)])
        for order, truth in zip(orders, quality, strict=True)
    ]
    n = len(orders)
    return {
        "best": Rate.share(sum(best), n),
        "best-and-worst": Rate.share(sum(a and b for a, b in zip(best, worst, strict=True)), n),
        "order": Rate.mean(taus),
    }
