"""From answers to effects: one contrast for each set of items that belong together, a test, and what it could see."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.significance import holm
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.rubric import Rubric
from dikast.core.verdict import Preference, Status, Verdict
from dikast.probes.catalogue import CONCERN, Probe
from dikast.probes.plan import BASE, LEAST, STEPS, Ask, ProbePlan

LEVEL = 0.95
POWER = 0.9


@dataclass(frozen=True, slots=True)
class Result:
    """What one probe found. `effect` is in the probe's unit; `due` what gold calls for, where it does.

    `result`: "fail" (a fault, after Holm's correction over the card), "pass", "unclear" (an effect of `CONCERN`, or a
    judge that does not respond at all, could have been missed), "measured" (never judged) or "not run". `seen` is the
    least effect that would have been seen with power .9 at this n and spread. `lost` counts sets in which an answer had
    no verdict.
    """

    probe: str
    about: str
    result: str
    effect: Estimate
    unit: str
    side: str
    p: float = math.nan
    p_holm: float = math.nan
    error: float = math.nan  # standard error of what was tested
    seen: float = math.nan
    due: float = math.nan
    lost: int = 0
    note: str = ""


@dataclass(slots=True)
class Answers:
    """Goodness (0 worst to 1 best) and plain value by item id, of the absolute and the reversed run; pairs by id."""

    absolute: dict[str, Verdict]
    reversed: dict[str, Verdict]
    pairs: dict[str, Preference]

    @classmethod
    def of(cls, absolute: Iterable[Verdict], reversed: Iterable[Verdict], pairs: Iterable[Preference]) -> "Answers":
        """From verdicts in any order."""
        return cls(
            {verdict.question.item: verdict for verdict in absolute},
            {verdict.question.item: verdict for verdict in reversed},
            {pair.item: pair for pair in pairs},
        )


def measure(plan: ProbePlan, answers: Answers) -> list[Result]:
    """One result for each probe of the plan, Holm's correction over all that are judged (family level .05)."""
    found = [_measured(probe, plan, answers) for probe in plan.probes]
    judged = [each.p if each.side != "none" else math.nan for each in found]
    family = sum(not math.isnan(p) for p in judged)
    done = []
    for each, adjusted in zip(found, holm(judged), strict=True):
        done.append(_decided(each, adjusted, family))
    return done


def _decided(found: Result, adjusted: float, family: int) -> Result:
    if found.result == "not run" or found.side == "none":
        return found
    seen = _seen(found.error, found.effect.n, family, two_sided=found.side == "both")
    if math.isnan(adjusted):
        return replace(found, result="unclear", note=found.note or f"fewer than {LEAST} sets have all their answers")
    concern = found.due / 2 if found.side == "down" else CONCERN
    result = "fail" if adjusted < 1 - LEVEL else "pass" if seen <= concern else "unclear"
    return replace(found, result=result, p_holm=adjusted, seen=seen)


def _seen(error: float, n: int, family: int, *, two_sided: bool) -> float:
    """The least effect seen with `POWER` by the strictest step of Holm's procedure."""
    if n < 2 or math.isnan(error):
        return math.nan
    from scipy.special import ndtri, stdtrit

    alpha = (1 - LEVEL) / max(1, family) / (2 if two_sided else 1)
    return float((stdtrit(n - 1, 1 - alpha) + ndtri(POWER)) * error)


def _error(effect: Estimate) -> float:
    """The standard error that the interval was made with."""
    if effect.n < 2 or math.isnan(effect.low):
        return 0.0 if effect.n >= 2 else math.nan
    from scipy.special import stdtrit

    return effect.half_width / float(stdtrit(effect.n - 1, (1 + LEVEL) / 2))


def _measured(probe: Probe, plan: ProbePlan, answers: Answers) -> Result:
    if probe.name in plan.skipped:
        empty = Estimate(math.nan, 0, level=LEVEL)
        note = plan.skipped[probe.name]
        return Result(probe.name, probe.about, "not run", empty, probe.unit, probe.side, note=note)
    contrasts = _contrasts(probe, plan, answers)
    known = [each for each in contrasts if each is not None]
    values = np.array([each[0] for each in known])
    due = np.array([each[1] for each in known])
    effect = _mean(values, len(contrasts) - len(known))
    p = _p(values - np.abs(due) / 2 if probe.side == "down" else values, probe) if len(values) >= LEAST else math.nan
    note = _note(probe, values)
    spread = _mean(values - np.abs(due) / 2, 0) if probe.side == "down" else effect
    return Result(
        probe.name,
        probe.about,
        "measured" if probe.side == "none" else "",
        effect,
        probe.unit,
        probe.side,
        p=p,
        due=float(np.abs(due).mean()) if len(due) and due.any() else math.nan,
        error=_error(spread),
        lost=len(contrasts) - len(known),
        note=note,
    )


def _note(probe: Probe, values: NDArray[np.float64]) -> str:
    if probe.name == "repeatability" and len(values):
        return f"mean distance of the two answers; within .005 levels in {np.mean(values < 0.005):.0%}"
    return ""


def _mean(values: NDArray[np.float64], dropped: int) -> Estimate:
    from dikast.audit.intervals import mean_estimate

    return mean_estimate(values, LEVEL, dropped=dropped)


def _p(values: NDArray[np.float64], probe: Probe) -> float:
    """The chance of such a mean if the judge were sound: no further than the tolerance on the side that counts."""
    from scipy.stats import t

    n, mean = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(n)
    tolerance = 0.0 if probe.side == "down" else probe.tolerance

    def beyond(distance: float) -> float:
        if error == 0:
            return 0.0 if distance > 0 else 1.0
        return float(t.sf(distance / error, n - 1))

    up, down = beyond(mean - tolerance), beyond(-mean - tolerance)
    if probe.side == "both":
        return min(1.0, 2 * min(up, down))
    return down if probe.side == "down" else up


Contrast = tuple[float, float] | None  # the effect and what gold calls for; None when an answer is missing


def _contrasts(probe: Probe, plan: ProbePlan, answers: Answers) -> list[Contrast]:
    if probe.name == "position":
        return [_slot(answers.pairs.get(ask.item.id)) for ask in plan.pairs]
    if probe.name == "absolute-pairwise":
        return [_agreed(sets, answers) for sets in _by_set(plan.absolute, probe.name).values()]
    if probe.name == "level-order":
        return [
            _difference(_good(ask.item, answers.reversed), _good(ask.item, answers.absolute)) for ask in plan.reversed
        ]
    base = {ask.set: ask.item for ask in plan.absolute if ask.probe == BASE}
    return [_of_set(probe, asks, base, answers) for asks in _by_set(plan.absolute, probe.name).values()]


def _by_set(asks: Sequence[Ask], probe: str) -> dict[str, list[Ask]]:
    found: dict[str, list[Ask]] = {}
    for ask in asks:
        if ask.probe == probe:
            found.setdefault(ask.set, []).append(ask)
    return found


def _of_set(probe: Probe, asks: list[Ask], base: Mapping[str, Item], answers: Answers) -> Contrast:
    told = answers.absolute
    if probe.name == "master-keys":
        good = _good(asks[0].item, told)
        return None if good is None else (STEPS * good, 0.0)
    if probe.name == "error-place":
        return _difference(_good(asks[0].item, told), _good(asks[1].item, told))
    if probe.side == "down":
        first, second = (base[asks[0].set], asks[0].item) if len(asks) == 1 else (asks[0].item, asks[1].item)
        due = asks[0].expected
        read = _share if probe.name == "rubric-contrast" else _good
        found = _difference(read(second, told), read(first, told))
        return None if found is None else (math.copysign(1.0, due) * found[0], due)
    item = asks[0].item
    found = _difference(_good(item, told), _good(base[asks[0].set], told))
    if found is None:
        return None
    if probe.name == "repeatability":
        return abs(found[0]), 0.0
    if probe.unit == "levels per doubling":
        lengths = [len(text_of(each.responses[0])) for each in (item, base[asks[0].set])]
        return found[0] / math.log2(lengths[0] / lengths[1]), 0.0
    return found


def _difference(second: float | None, first: float | None) -> Contrast:
    return None if first is None or second is None else (STEPS * (second - first), 0.0)


def _good(item: Item, told: Mapping[str, Verdict]) -> float | None:
    """How good the judge found the response, 0 to 1: by its expected score where there is one."""
    value = _value(item, told)
    return None if value is None or not isinstance(item.rubric, Rubric) else item.rubric.scale.goodness(value)


def _share(item: Item, told: Mapping[str, Verdict]) -> float | None:
    """Where the score lies on the scale, whichever end is the good one."""
    value = _value(item, told)
    if value is None or not isinstance(item.rubric, Rubric):
        return None
    scale = item.rubric.scale
    return (value - scale.low) / (scale.high - scale.low)


def _value(item: Item, told: Mapping[str, Verdict]) -> float | None:
    verdict = told.get(item.id)
    if verdict is None or verdict.status is not Status.OK:
        return None
    return verdict.expected if verdict.expected is not None else verdict.score


def _slot(pair: Preference | None) -> Contrast:
    """Nats for the first slot; without probabilities, +1 or -1 where the orders differ to that slot's gain or loss."""
    if pair is None or pair.status is not Status.OK:
        return None
    if pair.position_bias is not None:
        return pair.position_bias, 0.0
    worth = [{"a": 1.0, "b": -1.0}.get(str(order.label), 0.0) for order in pair.orders]
    if len(worth) != 2:
        return None
    return (worth[0] - worth[1]) / 2, 0.0


def _agreed(asks: list[Ask], answers: Answers) -> Contrast:
    """1 if the better score is the preferred response, 0 if not, one half where either is a tie and not both."""
    by = {ask.variant: ask.item for ask in asks}
    pair = answers.pairs.get(by["pair"].id) if "pair" in by else None
    pair = pair or answers.pairs.get(by["side0"].id.rsplit("~", 1)[0] + "~pair")
    scores = [_good(by[name], answers.absolute) for name in ("side0", "side1")]
    if pair is None or pair.choice is None or scores[0] is None or scores[1] is None:
        return None
    near = abs(scores[0] - scores[1]) * STEPS < 0.5
    said = "tie" if near else "a" if scores[0] > scores[1] else "b"
    if said == pair.outcome:
        return 1.0, 0.0
    return (0.5 if "tie" in (said, pair.choice) else 0.0), 0.0
