"""Choosing a schedule by simulation, for a judge whose noise and slot bias were measured on a pilot."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dikast.core.confidence import normal_quantile
from dikast.core.errors import UserError
from dikast.core.text import counted, hint
from dikast.ranking.comparisons import Comparison, Values
from dikast.ranking.graded_strengths import GradeLine
from dikast.ranking.pooled import Pooled
from dikast.ranking.schedules import SCHEDULES, Schedule
from dikast.ranking.simulation import GOALS, Goal, JudgeModel, Read, Simulated, check_sizes, simulate

SYSTEMATIC = 0.3  # assumed, in standard deviations of quality: comparisons alone do not identify it
_SEEN = math.hypot(1, SYSTEMATIC)  # standard deviation of quality and the systematic error
_ALIKE = 0.01  # schedules within this distance of the best are equally good; the cheapest is chosen
_SAFE = 0.015  # a schedule is never chosen that would be worse than another by more, if grades err as they may
_LEAST_SHARE = 0.8  # of half of a full round robin: what an item of the rest has at least
_ITEMS = 500
_FEW = 24  # items below this are no pilot
_COMPARISONS = 600_000  # of all simulated items of a schedule: above it fewer items are simulated, at least 24
_SLOW, _SLOWER = 32, ("top", "ends", "graded")  # responses above which a simulation of these takes hours


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """The schedule for items with k responses (`chosen`), and the simulated results of every schedule by name.

    Where schedules with grades fit, `alike` has the results for a judge whose comparisons err as its grades do.
    """

    k: int
    goal: Goal
    chosen: Schedule
    simulated: dict[str, Simulated]
    alike: dict[str, Simulated] = field(default_factory=dict)

    @property
    def schedule(self) -> str:
        """The name of the schedule."""
        return self.chosen.name

    @property
    def in_words(self) -> str:
        """The choice and its reason in one line."""
        chosen, full = self.simulated[self.schedule], self.simulated["full"]
        calls = counted(round(chosen.calls), "call" if self.chosen.grades else "comparison")
        told = (
            f"{counted(self.k, 'response')}: {self.schedule}, simulated {self.goal} {self._rate(self.simulated)}"
            f" with {calls} (full: {full.goals[self.goal].value:.2f} with {full.calls:g})"
        )
        if not self.alike:
            return told
        beside = self.alike["full"].goals[self.goal].value
        return f"{told}; {self._rate(self.alike)} (full: {beside:.2f}) if comparisons err as much as grades"

    def _rate(self, simulated: Mapping[str, Simulated]) -> str:
        rate = simulated[self.schedule].goals[self.goal]
        return f"{rate.value:.2f} [{rate.low:.2f}, {rate.high:.2f}]"


def plan(
    goal: Goal, k: int, judge: JudgeModel, *, budget: int | None = None, read: Read = "logit", items: int = _ITEMS
) -> SchedulePlan:
    """Choose the schedule of at most `budget` comparisons an item that best reaches the goal in simulation.

    budget: half of a full round robin by default; grades count as comparisons do. Of schedules within .01 of the best
    the cheapest is chosen. The full round robin is simulated too, to compare with. Where k is above 32, fewer items are
    simulated, and `top`, `ends` and `graded` are not. UserError if the budget is too small for any, or k too large, and
    for arguments that cannot be simulated.

    A schedule is simulated as it is used for the goal and the budget (`Schedule.seeking`, `Schedule.within`).
    Schedules that begin with grades are left out where `judge.graded` is infinite. Else grades and comparisons may
    disagree since grades err, or since both err alike, which only gold would tell: schedules are simulated under both,
    compared with the full round robin, and ordered by the mean; those that are .015 below another in the worse case are
    left out.
    """
    check_sizes(k, items, read)
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | np.integer)):
        raise UserError(f"budget={budget!r}: expected a whole number of comparisons, or None")
    if goal not in GOALS:
        raise UserError(f"goal={goal!r}: {hint(str(goal), GOALS)}")
    if told := SCHEDULES["knockout"].too_many(k):  # no schedule takes more
        raise UserError(told)
    most = k * (k - 1) // 2 if budget is None else budget
    items = min(items, max(_COMPARISONS // (k * (k - 1)), 24))
    fitting = {
        name: each
        for name, usual in SCHEDULES.items()
        if (each := usual.seeking(goal).within(k, most)).least <= k <= (_SLOW if name in _SLOWER else each.most)
        if not each.grades or math.isfinite(judge.graded)
        if each.in_all(k) <= max(most, k - 1 if budget is None else 0)
    }
    if not fitting:
        cheapest = min(each.in_all(k) for each in SCHEDULES.values() if each.least <= k <= each.most)
        raise UserError(f"{most} comparisons are too few to rank {k} responses: allow at least {cheapest}")
    asked = {**fitting, "full": SCHEDULES["full"]}
    found = {name: simulate(each, k, judge, read=read, items=items) for name, each in asked.items()}
    explained, again = [_beside_full(found, goal)], dict[str, Simulated]()
    if any(each.grades for each in fitting.values()):
        other = _erring_alike(judge)
        again = {name: simulate(each, k, other, read=read, items=items) for name, each in asked.items()}
        explained.append(_beside_full(again, goal))
    worst = {name: min(each[name] for each in explained) for name in fitting}
    mean = {name: sum(each[name] for each in explained) / len(explained) for name in fitting}
    safe = [name for name in fitting if worst[name] >= max(worst.values()) - _SAFE]
    near = [name for name in safe if mean[name] >= max(mean[each] for each in safe) - _ALIKE]
    chosen = min(near, key=lambda name: (found[name].calls, -worst[name]))
    return SchedulePlan(k, goal, fitting[chosen], found, again)


def _beside_full(found: Mapping[str, Simulated], goal: Goal) -> dict[str, float]:
    """By how much each schedule reaches the goal more often than the full round robin."""
    reached = {name: each.goals[goal].value or 0.0 for name, each in found.items()}
    return {name: value - reached["full"] for name, value in reached.items()}


def judge_of(
    pilot: Sequence[Sequence[Comparison]], pooled: Pooled, kind: Values, line: GradeLine | None = None
) -> tuple[JudgeModel, Read]:
    """The model of the judge estimated from a pilot of full round robins, and the kind of values it uses.

    line: how the comparisons follow the pilot's grades, None where it has none. What grades leave unexplained of the
    strengths is taken as errors of the grades.
    With logits: gain from the spread of strengths, noise and bias as pooled. With verdicts alone: a normal model of
    the logits whose noise is 1, its gain and bias from how often the two orders of a pair agree and how often the
    first slot wins (ties left out). UserError if the pilot does not identify them.
    """
    if kind == "logit":
        spread, noise, bias = pooled.spread, pooled.noise.sd, pooled.bias.value
        if not (spread > 0 and noise >= 0 and math.isfinite(bias)):
            raise UserError("the pilot shows no difference between responses: choose a --schedule")
        found = JudgeModel(spread / _SEEN, bias, noise, SYSTEMATIC, graded=math.inf)
    else:
        found = replace(_from_verdicts(pilot), graded=math.inf)
    explained = 1 - (line.left.spread / pooled.spread) ** 2 if line is not None and pooled.spread > 0 else 0.0
    if line is not None and line.slope > 0 and explained > 0:
        found = replace(found, graded=_SEEN * math.sqrt(1 / explained - 1))
    return found, "logit" if kind == "logit" else "verdict"


def _erring_alike(judge: JudgeModel) -> JudgeModel:
    """A judge whose grades and strengths correlate as this one's do, but whose errors are as large in both."""
    seen = math.hypot(1, judge.systematic)
    error = seen * math.sqrt(math.hypot(seen, judge.graded) / seen - 1)
    gain = judge.gain * seen / math.hypot(seen, error)
    return replace(judge, gain=gain, graded=error, compared=error)


def _from_verdicts(pilot: Sequence[Sequence[Comparison]]) -> JudgeModel:
    verdicts = [{each.pair: each.verdict for each in played} for played in pilot]
    decided = [value for found in verdicts for value in found.values() if value in (1.0, -1.0)]
    both = [
        (value, found[pair[::-1]])  # type: ignore[index]
        for found in verdicts
        for pair, value in found.items()
        if pair.first < pair.second and value in (1.0, -1.0) and found.get(pair[::-1]) in (1.0, -1.0)  # type: ignore[call-overload]
    ]
    first, agree = decided.count(1.0), sum(one != other for one, other in both)
    if not both or first in (0, len(decided)) or agree <= len(both) * _agree_by_chance(first / len(decided)):
        raise UserError("the pilot's verdicts do not tell responses from slots: choose a --schedule")
    from scipy.optimize import brentq
    from scipy.stats import multivariate_normal, norm

    threshold = normal_quantile(first / len(decided))
    share = min(agree / len(both), 1 - 1 / (4 * len(both)))

    def excess(correlation: float) -> float:
        """Share of pairs whose orders agree: preference plus and minus bias both have the preference's sign."""
        joint = multivariate_normal.cdf([threshold, -threshold], cov=[[1, correlation], [correlation, 1]])
        return 1 - (float(norm.cdf(threshold)) + float(norm.cdf(-threshold)) - 2 * float(joint)) - share

    high = 1 - 1e-6
    correlation = high if excess(high) <= 0 else float(brentq(excess, 0.0, high))
    if not correlation > 0:
        raise UserError("the pilot's verdicts do not tell responses from slots: choose a --schedule")
    spread = math.sqrt(correlation / (1 - correlation) / 2)  # spread of strengths, in units of the noise
    bias = threshold * math.sqrt(1 + 2 * spread * spread)
    return JudgeModel(spread / _SEEN, bias, 1.0, SYSTEMATIC)


def _agree_by_chance(first: float) -> float:
    """How often orders agree if every verdict depends on the slot alone."""
    return 2 * first * (1 - first)


def budget_beside(k: int, items: int, pilot: int, *, graded: bool) -> int:
    """The calls an item of the rest may have, of `items` with k responses of which `pilot` are the pilot.

    All together then cost half of full round robins, the pilot's comparisons included, and its grades if it was
    `graded`; but in a small file, which the pilot would use up, an item has four fifths of half of a full round robin.
    """
    half, grades = k * (k - 1) // 2, k if graded and k >= SCHEDULES["graded"].least else 0
    left = items * half - pilot * (k * (k - 1) + grades)
    return max(left // max(items - pilot, 1), int(_LEAST_SHARE * half), 1)


def draw_pilot(sizes: Mapping[str, int], seed: int = 0) -> list[str]:
    """The items of the pilot, in the order of `sizes`, which gives each item's number of responses.

    None of fewer than 24 items; else a tenth, from 8 to 40, of the items that leave schedules to choose from: those of
    more than two responses, or all where there is no such item. Each number of responses has its share, and at least
    one item while there is room; which items is drawn by the seed and the item's id alone.
    """
    chosen = [item for item, k in sizes.items() if k > 2] or list(sizes)
    n = 0 if len(sizes) < _FEW else min(int(np.clip(len(chosen) // 10, 8, 40)), len(chosen))
    groups: dict[int, list[tuple[float, str]]] = {}
    for item in chosen:
        drawn = np.random.default_rng([seed, 1, zlib.crc32(item.encode("utf-8", "surrogatepass"))]).random()
        groups.setdefault(sizes[item], []).append((drawn, item))
    places = [
        (place / len(group), drawn, item)  # the first of each group come first
        for group in groups.values()
        for place, (drawn, item) in enumerate(sorted(group))
    ]
    inside = {item for *_, item in sorted(places)[:n]}
    return [item for item in chosen if item in inside]
