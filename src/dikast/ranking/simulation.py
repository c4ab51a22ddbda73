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
from dikast.ranking.comparisons import Comparison, Floats, OrderedPair
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
    """The result of a schedule: each of `GOALS`, the calls per item, and what its first and last response are worth.

    `gain` is the mean quality of the response placed first, in standard deviations of quality above a response drawn
    at random; `told_apart` is the share of items whose first response is better than their last.
    """

    goals: Mapping[Goal, Rate]
    calls: float
    gain: Rate
    told_apart: Rate


class Judged:
    """Items with k responses each, whose quality is known, and what the judge says of them.

    The same seed draws the same items and errors, so that schedules differ by their merits. `quality` is (items, k);
    `grades` (items, k) is None where the judge gives none.
    """

    def __init__(self, k: int, judge: JudgeModel, items: int, read: Read, seed: int, *, graded: bool = True) -> None:
        self._judge, self._read, self._rng = judge, read, np.random.default_rng([seed, k])
        self.quality: Floats = self._rng.standard_normal((items, k))
        seen = self.quality + judge.systematic * self._rng.standard_normal((items, k))
        self._compared = seen + judge.compared * self._rng.standard_normal((items, k))
        self._errors = self._rng.standard_normal((items, k, k))
        self.grades: Floats | None = None
        if graded and math.isfinite(judge.graded):
            self.grades = seen + judge.graded * self._rng.standard_normal((items, k))

    def played(self, tournament: Tournament) -> dict[str, int]:
        """Play the tournament, whose items are named by their numbers, to its end; how many comparisons each had."""
        calls: dict[str, int] = {}
        while pairs := tournament.draw():
            found = {}
            for item, drawn in pairs.items():
                found[item] = [self._comparison(int(item), pair) for pair in drawn]
                calls[item] = calls.get(item, 0) + len(drawn)
            tournament.note(found)
        return calls

    def _comparison(self, at: int, pair: OrderedPair) -> Comparison:
        judge, seen = self._judge, self._compared[at]
        apart = float(seen[pair.first] - seen[pair.second])
        logit = judge.gain * apart + judge.bias + judge.noise * float(self._errors[at][pair])
        if self._read == "vote":
            verdict = 1.0 if self._rng.random() < 1 / (1 + math.exp(-logit)) else -1.0
        else:
            verdict = math.copysign(1.0, logit)
        return Comparison(pair, verdict, math.tanh(logit / 2), logit)

    def orders(self, tournament: Tournament, items: int) -> list[list[int]]:
        """The order of the responses of each of the first `items`, best first."""
        names = [str(at) for at in range(items)]
        strengths = tournament.strengths(names)
        found = []
        for at, name in enumerate(names):
            if self.grades is not None and tournament.contests[name].schedule.grades == "first":
                found.append(list(with_duel(self.grades[at], strengths[name])))
            else:
                found.append(np.lexsort((np.arange(len(strengths[name])), -strengths[name])).tolist())
        return found


def simulate(
    schedule: Schedule, k: int, judge: JudgeModel, *, read: Read = "logit", items: int = 2000, seed: int = 0
) -> Simulated:
    """Play the schedule on so many items with k responses each.

    The same seed draws the same items and errors, whatever the schedule. A schedule that fits grades has a pilot
    besides, which is not counted. UserError for fewer than one item, a `read` that is not known, a k that the schedule
    does not take, and a schedule that begins with grades where the judge gives none.
    """
    check_sizes(k, items, read)
    if k < schedule.least:
        raise UserError(f"k={k}: the schedule {schedule.name} needs {counted(schedule.least, 'response')}")
    if schedule.grades and not math.isfinite(judge.graded):
        raise UserError(f"the schedule {schedule.name} begins with grades, and the judge has none (graded=inf)")
    judged = Judged(k, judge, items + _PILOT, read, seed, graded=bool(schedule.grades))
    tournament = Tournament(seed, "logit" if read == "logit" else "verdict")
    for at in range(items + _PILOT if schedule.grades == "fitted" else items):
        own = schedule if at < items else SCHEDULES["full"]
        tournament.enter(str(at), k, own, None if judged.grades is None else judged.grades[at])
    asked = judged.played(tournament)
    calls = sum(n for item, n in asked.items() if int(item) < items) + (items * k if schedule.grades else 0)
    return simulated(judged.orders(tournament, items), judged.quality, calls / items)


def check_sizes(k: int, items: int, read: str) -> None:
    """UserError, naming the argument, for what cannot be simulated."""
    for name, value, least in (("k", k, 2), ("items", items, 1)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise UserError(f"{name}={value!r}: expected a whole number of at least {least}")
    if read not in get_args(Read):
        raise UserError(f"read={read!r}: {hint(str(read), get_args(Read))}")


def with_duel(grades: Floats, strengths: Floats) -> tuple[int, ...]:
    """The order by grades (k,), the two of the duel by its result; equal ones by their index, NaN last."""
    order = np.lexsort((np.arange(len(grades)), -grades)).tolist()
    met = sorted((i for i in order if strengths[i]), key=lambda i: -strengths[i])
    return (*met, *(i for i in order if not strengths[i]))


def simulated(orders: Sequence[Sequence[int]], quality: Floats, calls: float) -> Simulated:
    """What orders of responses, best first, are worth by the quality (n, k) of the first n items."""
    both = list(zip(orders, quality, strict=False))
    best = [order[0] == truth.argmax() for order, truth in both]
    worst = [order[-1] == truth.argmin() for order, truth in both]
    taus = [kendall_tau_b(range(len(order), 0, -1), truth[list(order)]) for order, truth in both]
    n = len(orders)
    goals: dict[Goal, Rate] = {
        "best": Rate.share(sum(best), n),
        "best-and-worst": Rate.share(sum(a and b for a, b in zip(best, worst, strict=True)), n),
        "order": Rate.mean(taus),
    }
    gain = Rate.mean([float(truth[order[0]]) for order, truth in both])
    return Simulated(goals, calls, gain, Rate.share(sum(bool(t[o[0]] > t[o[-1]]) for o, t in both), n))
