"""The outcome of each probe: sound, faulty, or cannot tell, by its interval against two bounds.

The bounds are what a deaf judge would show, one that ignores the change, and what a faultless judge would show that
has the noise of this one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import UNDEFINED, Estimate, Interval, undefined
from dikast.audit.significance import holm
from dikast.probes.catalogue import DEAF, LEAST, SPARED, STEPS, Probe
from dikast.probes.measure import Answers, Contrast, contrasts, plain_answers, pooled, trend
from dikast.probes.noise import STILL, Expected, Noise, Stillness, noise_of, stillness
from dikast.probes.plan import ProbePlan
from dikast.probes.sets import Asked, gold_goodness

Floats = NDArray[np.float64]
Outcome = Literal["sound", "faulty", "cannot tell", "measured", "not probed"]
LEVEL = 0.95
POWER = 0.9
FLOOR = 0.15  # of a due change: noise that would leave less of it is no excuse
UNKNOWN = 0.5  # of a due change: what must be left where too little gold tells the noise
SETTLED = 0.05  # of the sets that a probe needs: what one that has told its result gets beside one that has not
FAR = 2.0  # levels that gold must change before an answer that stays the same counts as deaf
NONE = undefined(0, "")


@dataclass(frozen=True, slots=True)
class Result:
    """What one probe found. `effect` is in the probe's unit; `due` what gold calls for, where it does.

    `deaf` is what a judge that ignores the change would show, `faultless` the interval in which the effect of a
    faultless judge of this noise lies. `deaf_share` is on how many items the judge ignores a change that is due. `p` is
    the chance of such an effect were the judge faultless (`p_holm`: corrected over the card), `need` how many sets
    would tell, `lost` counts sets in which an answer had no verdict.
    """

    probe: str
    about: str
    result: Outcome
    effect: Estimate
    unit: str
    side: str
    deaf: float = math.nan
    faultless: Interval = UNDEFINED
    deaf_share: Estimate = field(default=NONE)
    most_deaf: float = math.nan  # upper end of both ways to tell that share
    p: float = math.nan
    p_holm: float = math.nan
    spread: float = math.nan  # standard deviation of what was tested
    need: float = math.nan
    due: float = math.nan
    lost: int = 0
    note: str = ""


class Known(NamedTuple):
    """What is known of a judge from answers to items whose gold no change has moved."""

    noise: Noise | None
    chance: Stillness
    n: int


def measure(plan: ProbePlan, answers: Answers) -> list[Result]:
    """One result for each probe of the plan, Holm's correction over all that are judged (family level .05)."""
    plain = plain_answers(plan.asked, answers)
    known = Known(noise_of(plain), stillness(plain), len(plain))
    found = [_measured(probe, plan, answers, known) for probe in plan.probes]
    judged = [each.p if each.side != "none" else math.nan for each in found]
    family = sum(not math.isnan(p) for p in judged)
    return [
        _decided(each, probe, adjusted, family)
        for each, probe, adjusted in zip(found, plan.probes, holm(judged), strict=True)
    ]


def needs(plan: ProbePlan, results: Sequence[Result]) -> dict[str, float]:
    """How many more sets each probe is worth: those that would tell, by its spread; next to none where it is told."""
    lacking = {}
    for probe, each in zip(plan.probes, results, strict=True):
        due = min(each.need if math.isfinite(each.need) else probe.need, 10.0 * probe.need)
        settled = each.result != "cannot tell"
        lacking[probe.name] = max(0.0 if settled else due - each.effect.n, SETTLED * probe.need)
    return lacking


def _measured(probe: Probe, plan: ProbePlan, answers: Answers, known: Known) -> Result:
    if probe.name in plan.skipped:
        return _blank(probe, "not probed", plan.skipped[probe.name])
    if probe.name == "lenience":
        return _lenience(probe, known)
    if probe.name == "run-order":
        return _run_order(probe, plan.asked, answers, known)
    several = pooled(plan.probes, plan.asked, answers) if probe.derived else None
    sets = several if several is not None else contrasts(probe, plan.asked, answers)
    if len(sets) < LEAST:
        why = f"{len(sets)} sets of items were asked, {LEAST} are needed: it takes {probe.needs}"
        return _blank(probe, "not probed", why)
    told = [each for each in sets if each is not None]
    lost = len(sets) - len(told)
    if probe.side == "down":
        found = _response(probe, told, known)
    elif probe.name == "master-keys":
        found = _keys(probe, told, known)
    else:
        found = _change(probe, told)
    return replace(found, lost=lost, effect=replace(found.effect, dropped=lost))


def _decided(found: Result, probe: Probe, adjusted: float, family: int) -> Result:
    if found.result in ("not probed", "measured"):
        return found
    if math.isnan(found.p):
        note = found.note or f"fewer than {LEAST} sets have all their answers"
        return replace(found, result="cannot tell", note=note)
    if adjusted < 1 - LEVEL:
        result: Outcome = "faulty"
    elif probe.side == "down":
        gold = not math.isnan(found.most_deaf)
        answers = found.most_deaf < DEAF if gold else _ends(found.effect).low > UNKNOWN * found.due
        result = "sound" if answers else "cannot tell"
    else:
        low, high = _ends(found.effect)
        if probe.name == "master-keys":
            low, high = low - found.faultless.high, high - found.faultless.high
        inside = high < probe.concern and (probe.side == "up" or low > -probe.concern)
        result = "sound" if inside else "cannot tell"
    return replace(found, result=result, p_holm=adjusted, need=_need(found, probe, family))


def _ends(effect: Estimate) -> Interval:
    """The interval; the value itself where all observations are alike, so that it has none."""
    return Interval(effect.value, effect.value) if math.isnan(effect.low) else Interval(effect.low, effect.high)


def _need(found: Result, probe: Probe, family: int) -> float:
    """The sets that tell a judge of this spread sound or faulty with `POWER` by the strictest step of Holm's test."""
    from scipy.special import ndtri

    if not found.spread > 0:
        return float(LEAST)
    alpha = (1 - LEVEL) / max(1, family) / (2 if probe.side == "both" else 1)
    distance = probe.concern - probe.tolerance
    if probe.side == "down":
        distance = (DEAF - SPARED) * (found.faultless.low + found.faultless.high) / 2
    return max(float(LEAST), float(((ndtri(1 - alpha) + ndtri(POWER)) * found.spread / distance) ** 2))


def _change(probe: Probe, told: Sequence[Contrast]) -> Result:
    """A change that should not matter: the mean effect, beside what noise alone would show."""
    values = np.array([each.effect for each in told])
    effect = _mean(values)
    error = _error(values)
    if probe.side == "none":
        found = _blank(probe, "measured", _note(probe, values))
        return replace(found, effect=effect)
    p = _beyond(float(values.mean()), error, len(values) - 1, probe) if len(values) >= LEAST else math.nan
    reach = probe.tolerance + _t(len(values) - 1) * error
    low = -reach if probe.side == "both" else -math.inf
    return replace(
        _blank(probe, "cannot tell"),
        effect=effect,
        deaf=0.0,
        faultless=Interval(low, reach),
        p=p,
        spread=_spread(values),
    )


def _keys(probe: Probe, told: Sequence[Contrast], known: Known) -> Result:
    """Answers that say nothing: levels above the worst, beside how far noise lifts what gold calls the worst."""
    values = np.array([each.effect for each in told])
    labels = [each.labels for each in told]
    noise = known.noise
    worst = noise.worst(labels) if noise and told else Expected(0.0, 0.0)
    expected = Expected(STEPS * worst.value, STEPS * worst.error) if noise else Expected(0.5, 0.0)
    error = math.hypot(_error(values), expected.error)
    gap = float(values.mean()) - expected.value if told else math.nan
    p = _beyond(gap, error, len(values) - 1, probe) if len(values) >= LEAST else math.nan
    before = np.array([each.before for each in told])
    reach = expected.value + probe.tolerance
    found = replace(_blank(probe, "cannot tell"), effect=_mean(values), p=p, spread=_spread(values))
    deaf = STEPS * float(np.nanmean(before)) if told and not np.isnan(before).all() else math.nan
    return replace(found, deaf=deaf, faultless=Interval(0.0, reach))


def _response(probe: Probe, told: Sequence[Contrast], known: Known) -> Result:
    """A change that must matter: how much of what is due shows, and how many answers stay as they were."""
    values, due = np.array([each.effect for each in told]), np.array([each.due for each in told])
    if len(values) < 2:
        return replace(_blank(probe, "cannot tell"), effect=_mean(values))
    by_gold = all(each.by_gold for each in told)
    noise = known.noise if by_gold else None
    expected, each_due = _expected(told, due, noise)
    kept = values - (1 - SPARED) * each_due
    error = math.hypot(_error(kept), (1 - SPARED) * expected.error)
    free = len(values) - 1
    p = _below(float(values.mean()) - (1 - SPARED) * expected.value, error, free)
    share = _share_by_mean(values, each_due, expected) if by_gold else NONE
    still = _still(probe, told, known) if by_gold else None
    most = share.high
    if still is not None:
        p = min(1.0, 2 * min(p, still.p))
        most = max(most, still.share.high)
        share = max(share, still.share, key=lambda each: each.low)
    reach = _t(free) * error
    return replace(
        _blank(
            probe, "cannot tell", "" if noise else "too little gold to tell the noise: half of what is due must show"
        ),
        effect=_mean(values),
        deaf=0.0,
        faultless=Interval(max(0.0, expected.value - reach), expected.value + reach),
        deaf_share=share,
        most_deaf=most,
        p=p if len(values) >= LEAST else math.nan,
        spread=_spread(kept),
        due=float(due.mean()),
    )


def _expected(told: Sequence[Contrast], due: Floats, noise: Noise | None) -> tuple[Expected, Floats]:
    """What a faultless judge of this noise shows in the mean, and for each set."""
    if noise is None:
        return Expected(UNKNOWN * float(due.mean()), 0.0), UNKNOWN * due
    labels = [each.labels for each in told]
    mean = noise.shift(labels, due)
    if mean.value < FLOOR * float(due.mean()):
        return Expected(FLOOR * float(due.mean()), 0.0), FLOOR * due
    gains = {count: noise.shift([count], np.ones(1)).value for count in set(labels)}
    return mean, np.array([gains[count] for count in labels]) * due


def _share_by_mean(values: Floats, expected_each: Floats, expected: Expected) -> Estimate:
    """The share of items whose change is missing from the mean: 1 less shown over expected; error by the delta rule."""
    shown = float(values.mean()) / expected.value
    error = math.hypot(_error(values - shown * expected_each), shown * expected.error) / expected.value
    reach = _t(len(values) - 1) * error
    low, value, high = (min(max(each, 0.0), 1.0) for each in (1 - shown - reach, 1 - shown, 1 - shown + reach))
    return Estimate(value, len(values), low, high, LEVEL, "what is missing of the mean change")


@dataclass(frozen=True, slots=True)
class _Still:
    share: Estimate
    p: float


def _still(probe: Probe, told: Sequence[Contrast], known: Known) -> _Still | None:
    """The share of answers that stay as they were although gold moves far, less what chance alone leaves alike."""
    from scipy.stats import binom

    from dikast.audit.intervals import wilson

    far = [each for each in told if each.due >= FAR]
    chance = known.chance
    if len(far) < LEAST or math.isnan(chance.share):
        return None
    same, n = sum(abs(each.effect) < STILL for each in far), len(far)
    by_chance = wilson(chance.share * chance.n, chance.n).high
    p = float(binom.sf(same - 1, n, min(1.0, by_chance + SPARED)))
    if by_chance > 0.5:
        return None  # answers so alike everywhere that one more says nothing
    low, high = wilson(same, n)
    ends = [min(max((each - chance.share) / (1 - chance.share), 0.0), 1.0) for each in (same / n, low, high)]
    return _Still(Estimate(ends[0], n, ends[1], ends[2], LEVEL, "answers that stay as they were"), p)


def _lenience(probe: Probe, known: Known) -> Result:
    """How far answers lie above gold in the middle of the scale, where noise draws nothing either way."""
    noise = known.noise
    if noise is None:
        why = f"{known.n} unchanged items with gold, or all of the same; it takes 20 that differ"
        return _blank(probe, "not probed", why)
    effect, error = STEPS * noise.middle.value, STEPS * noise.middle.error
    reach = _t(noise.free) * error
    found = Estimate(effect, noise.n, effect - reach, effect + reach, LEVEL, "line through answers over gold")
    bound = probe.tolerance + reach
    p = _beyond(effect, error, noise.free, probe)
    return replace(_blank(probe, "cannot tell"), effect=found, faultless=Interval(-bound, bound), p=p)


def _run_order(probe: Probe, asked: Asked, answers: Answers, known: Known) -> Result:
    noise = known.noise
    expected = _by_gold(asked, noise) if noise else {}
    found = trend(asked, answers, expected)
    if found.n < LEAST or math.isnan(found.error):
        return _blank(probe, "not probed", f"{found.n} items were asked in more ways than one, {LEAST} are needed")
    reach = _t(found.n - 1) * found.error
    effect = Estimate(found.value, found.n, found.value - reach, found.value + reach, LEVEL, "slope over the run")
    bound = probe.tolerance + reach
    p = _beyond(found.value, found.error, found.n - 1, probe)
    return replace(_blank(probe, "cannot tell"), effect=effect, deaf=0.0, faultless=Interval(-bound, bound), p=p)


def _by_gold(asked: Asked, noise: Noise) -> Mapping[str, float]:
    from dikast.core.rubric import Rubric

    found = {}
    for id, item in asked.absolute.items():
        gold = gold_goodness(item)
        if gold is not None and isinstance(item.rubric, Rubric):
            found[id] = 0.5 + noise.answer(len(item.rubric.scale.labels), gold - 0.5)
    return found


def _blank(probe: Probe, result: Outcome, note: str = "") -> Result:
    empty = Estimate(math.nan, 0, level=LEVEL)
    return Result(probe.name, probe.about, result, empty, probe.unit, probe.side, note=note)


def _note(probe: Probe, values: Floats) -> str:
    if probe.name == "repeatability" and len(values):
        return f"mean distance of the two answers; within .005 levels in {np.mean(values < 0.005):.0%}"
    return ""


def _mean(values: Floats) -> Estimate:
    from dikast.audit.intervals import mean_estimate

    return mean_estimate(values, LEVEL)


def _spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _error(values: Floats) -> float:
    return _spread(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def _t(free: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(free, (1 + LEVEL) / 2)) if free >= 1 else math.nan


def _below(distance: float, error: float, free: float) -> float:
    """The chance of a mean this far below, were the truth no lower."""
    from scipy.stats import t

    if error < 1e-12:
        return 0.0 if distance < 0 else 1.0
    return float(t.cdf(distance / error, free))


def _beyond(mean: float, error: float, free: float, probe: Probe) -> float:
    """The chance of such a mean if the judge were faultless: no further than the tolerance on the side that counts."""
    up, down = _below(-(mean - probe.tolerance), error, free), _below(mean + probe.tolerance, error, free)
    return min(1.0, 2 * min(up, down)) if probe.side == "both" else up
