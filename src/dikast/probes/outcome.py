"""The outcome of each probe: sound, faulty, or cannot tell, from its interval and two bounds.

The bounds are the effects of a deaf judge, which ignores the change, and of a faultless judge with the noise of this
one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.significance import holm
from dikast.core.confidence import LEVEL, Interval, normal_quantile, t_of
from dikast.probes.catalogue import DEAF, LEAST, SPARED, STEPS, Probe
from dikast.probes.control import controls
from dikast.probes.measure import Answers, Contrast, contrasts, plain_answers, pooled, trend, unanswered
from dikast.probes.noise import Expected, Noise, noise_of, stillness
from dikast.probes.plan import ProbePlan
from dikast.probes.responsiveness import FLOOR, UNKNOWN, response
from dikast.probes.result import (
    Floats,
    Known,
    Outcome,
    Result,
    adjusted_mean,
    blank,
    chance_beyond,
    error_of,
    estimate_of,
    plain_mean,
    spread_of,
)
from dikast.probes.sets import Asked, gold_goodness

LOOKS = (0.0005, 0.0141, 0.0451)  # after each of three rounds: 5 % in all (O'Brien and Fleming 1979)
ALPHA = LOOKS[-1]
POWER = 0.95
LOST = 0.2  # share of the sets: with more unanswered, a probe cannot find the judge sound
SETTLED = 0.05  # share of its needed sets that a decided probe gets, compared with an undecided one
SHOWN = 0.75  # share of a fault of one level that remains after clipping at the ends of the scale


def measure(plan: ProbePlan, answers: Answers) -> list[Result]:
    """One result for each probe of the plan, Holm's correction over all that are judged (family level `bound`)."""
    known = _known(plan, answers)
    found = [_measured(probe, plan, answers, known) for probe in plan.probes]
    judged = [each.p if each.side != "none" else math.nan for each in found]
    family = sum(not math.isnan(p) for p in judged)
    decided = [
        _decided(each, probe, adjusted, family, bound(plan))
        for each, probe, adjusted in zip(found, plan.probes, holm(judged), strict=True)
    ]
    if not gain_of(known.noise).low < FLOOR:
        return decided
    why = f"answers may follow gold by less than {FLOOR:g}"
    return [
        replace(each, result="cannot tell", note=f"{why}; {each.note}" if each.note else why)
        if each.result == "sound"
        else each
        for each in decided
    ]


def bound(plan: ProbePlan) -> float:
    """The level that p (Holm) must be below for a fault after these rounds: `ALPHA` after the last, less before."""
    left = plan.last - len(plan.rounds) if plan.rounds else 0
    return LOOKS[max(0, len(LOOKS) - 1 - left)]


def gain(plan: ProbePlan, answers: Answers) -> Estimate:
    """The slope of answers over gold on unaffected items: 1 without noise, 0 for random answers.

    Undefined with too little gold. A judge that answers at random is insensitive to every change: if the lower end lies
    below `FLOOR`, no probe is reported sound.
    """
    return gain_of(_known(plan, answers).noise)


def gain_of(noise: Noise | None) -> Estimate:
    """The gain of this noise."""
    if noise is None:
        return undefined(0, "too little gold")
    value, error = noise.gain
    reach = t_of(LEVEL, noise.free) * error
    return Estimate(value, noise.n, value - reach, value + reach, LEVEL, "slope of answers over gold")


def _known(plan: ProbePlan, answers: Answers) -> Known:
    plain = plain_answers(plan.asked, answers)
    noise = noise_of(plain)
    return Known(noise, stillness(plain), len(plain), controls(plain, noise))


def needs(plan: ProbePlan, results: Sequence[Result]) -> dict[str, float]:
    """How many more sets each probe gets: as many as would decide it, by its spread; few if it is decided."""
    lacking = {}
    for probe, each in zip(plan.probes, results, strict=True):
        due = min(each.need if math.isfinite(each.need) else probe.need, 10.0 * probe.need)
        settled = each.result not in ("cannot tell", "sound")
        lacking[probe.name] = max(0.0 if settled else due - each.effect.n, SETTLED * probe.need)
    return lacking


def _measured(probe: Probe, plan: ProbePlan, answers: Answers, known: Known) -> Result:
    if probe.name in plan.skipped:
        return blank(probe, "not probed", plan.skipped[probe.name])
    if probe.name in ("lenience", "run-order"):
        lenience = probe.name == "lenience"
        found = _lenience(probe, known) if lenience else _run_order(probe, plan.asked, answers, known)
        lost = unanswered(plan.asked, answers, with_gold=lenience)
        return replace(found, lost=lost, effect=replace(found.effect, dropped=lost))
    several = pooled(probe, plan.probes, plan.asked, answers, known.controls) if probe.derived else None
    sets = several if several is not None else contrasts(probe, plan.asked, answers, known.controls)
    if len(sets) < LEAST:
        why = f"{len(sets)} sets of items were asked, {LEAST} are needed: it takes {probe.needs}"
        return blank(probe, "not probed", why)
    told = [each for each in sets if each is not None]
    lost = len(sets) - len(told)
    if probe.side == "down":
        found = response(probe, told, known)
    elif probe.name == "master-keys":
        found = _keys(probe, told, known)
    else:
        found = _change(probe, told, known)
    return replace(found, lost=lost, effect=replace(found.effect, dropped=lost))


def _decided(found: Result, probe: Probe, adjusted: float, family: int, alpha: float) -> Result:
    if found.result in ("not probed", "measured"):
        return found
    if math.isnan(found.p):
        note = found.note or f"fewer than {LEAST} sets have all their answers"
        return replace(found, result="cannot tell", note=note)
    if adjusted < alpha:
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
    asked = found.lost + found.effect.n
    if found.lost > LOST * asked:
        note = f"{found.lost} of {asked} have an answer missing" + (f"; {found.note}" if found.note else "")
        found = replace(found, note=note)
        result = "cannot tell" if result == "sound" else result
    told = replace(found, result=result, p_holm=adjusted)
    return replace(told, need=_need(told, probe, family))


def _ends(effect: Estimate) -> Interval:
    """The interval; infinite if there is none, so that a value alone never counts as sound."""
    return Interval(-math.inf, math.inf) if math.isnan(effect.low) else Interval(effect.low, effect.high)


def _need(found: Result, probe: Probe, family: int) -> float:
    """The number of sets that decide on a judge of this spread with `POWER` by the strictest step of Holm's test.

    The ends of a scale clip a fault of one level (`SHOWN`); deafness on some items increases the spread of changes
    beyond the noise. For a probe that is found sound, the number that would still find so at that step.
    """
    down = probe.side == "down"
    if not found.spread > 0:  # all equal: the number by which the rule of three excludes a fault (`plain_mean`)
        return float(LEAST if down else 3 * STEPS + 1)
    z = normal_quantile(1 - ALPHA / max(1, family) / (1 if probe.side == "up" else 2))
    share = SHOWN * probe.concern - probe.tolerance
    seen, spread = found.effect.value if probe.side == "up" else abs(found.effect.value), found.spread
    room = probe.concern - (seen - found.faultless.high if probe.name == "master-keys" else max(0.0, seen))
    if down:
        expected = (found.faultless.low + found.faultless.high) / 2
        share, spread = (DEAF - SPARED) * expected, math.hypot(spread, math.sqrt(DEAF * (1 - DEAF)) * expected)
        room = seen - (1 - DEAF) * expected
    need = ((z * found.spread + normal_quantile(POWER) * spread) / share) ** 2
    if found.result == "sound":
        need = min(need, (z * found.spread / room) ** 2) if room > 0 else need
    return max(float(LEAST), float(need))


def _change(probe: Probe, told: Sequence[Contrast], known: Known) -> Result:
    """A change that should not matter: the mean effect, and the effect of noise alone."""
    values = np.array([each.effect for each in told])
    if probe.side == "none":
        return replace(blank(probe, "measured", _note(probe, values)), effect=plain_mean(values, probe))
    mean = adjusted_mean(values, told, known)
    reach = probe.tolerance + t_of(LEVEL, mean.free) * mean.error
    return replace(
        blank(probe, "cannot tell"),
        effect=estimate_of(mean, values, probe),
        deaf=0.0,
        faultless=Interval(-reach if probe.side == "both" else -math.inf, reach),
        p=chance_beyond(mean.value, mean.error, mean.free, probe) if len(values) >= LEAST else math.nan,
        spread=mean.spread,
    )


def _keys(probe: Probe, told: Sequence[Contrast], known: Known) -> Result:
    """Empty answers: levels above the worst, and how far noise alone raises responses with the worst gold."""
    values = np.array([each.effect for each in told])
    labels = [each.labels for each in told]
    noise = known.noise
    worst = noise.worst(labels) if noise and told else Expected(0.0, 0.0)
    expected = Expected(STEPS * worst.value, STEPS * worst.error) if noise else Expected(0.5, 0.0)
    error = math.hypot(error_of(values), expected.error)
    gap = float(values.mean()) - expected.value if told else math.nan
    p = chance_beyond(gap, error, len(values) - 1, probe) if len(values) >= LEAST else math.nan
    before = np.array([each.before for each in told])
    reach = expected.value + probe.tolerance
    found = replace(blank(probe, "cannot tell"), effect=plain_mean(values, probe), p=p, spread=spread_of(values))
    deaf = STEPS * float(np.nanmean(before)) if told and not np.isnan(before).all() else math.nan
    return replace(found, deaf=deaf, faultless=Interval(0.0, reach))


def _lenience(probe: Probe, known: Known) -> Result:
    """How far answers lie above gold in the middle of the scale, where noise causes no shrinkage."""
    noise = known.noise
    if noise is None:
        why = f"{known.n} unchanged items with gold, or all of the same; it takes 20 that differ"
        return blank(probe, "not probed", why)
    effect, error = STEPS * noise.middle.value, STEPS * noise.middle.error
    reach = t_of(LEVEL, noise.free) * error
    found = Estimate(effect, noise.n, effect - reach, effect + reach, LEVEL, "line through answers over gold")
    bound = probe.tolerance + reach
    p = chance_beyond(effect, error, noise.free, probe)
    return replace(blank(probe, "cannot tell"), effect=found, faultless=Interval(-bound, bound), p=p)


def _run_order(probe: Probe, asked: Asked, answers: Answers, known: Known) -> Result:
    noise = known.noise
    expected = _by_gold(asked, noise) if noise else {}
    found = trend(asked, answers, expected)
    if found.n < LEAST or math.isnan(found.error):
        return blank(probe, "not probed", f"{found.n} items were asked in more ways than one, {LEAST} are needed")
    reach = t_of(LEVEL, found.n - 1) * found.error
    effect = Estimate(found.value, found.n, found.value - reach, found.value + reach, LEVEL, "slope over the run")
    bound = probe.tolerance + reach
    p = chance_beyond(found.value, found.error, found.n - 1, probe)
    return replace(blank(probe, "cannot tell"), effect=effect, deaf=0.0, faultless=Interval(-bound, bound), p=p)


def _by_gold(asked: Asked, noise: Noise) -> Mapping[str, float]:
    from dikast.core.rubric import Rubric

    found = {}
    for id, item in asked.absolute.items():
        gold = gold_goodness(item)
        if gold is not None and isinstance(item.rubric, Rubric):
            found[id] = 0.5 + noise.answer(len(item.rubric.scale.labels), gold - 0.5)
    return found


def _note(probe: Probe, values: Floats) -> str:
    if probe.name == "repeatability" and len(values):
        return f"mean distance of the two answers; within .005 levels in {np.mean(values < 0.005):.0%}"
    return ""
