"""Changes that gold calls for: the observed share of the due change, and the share that noise leaves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dikast.audit.estimate import Estimate
from dikast.core.confidence import LEVEL, Interval, t_of, wilson
from dikast.probes.catalogue import LEAST, SPARED, STEPS, Probe
from dikast.probes.control import Mean
from dikast.probes.measure import Contrast
from dikast.probes.noise import STILL, Expected, Noise
from dikast.probes.result import (
    NONE,
    Floats,
    Known,
    Result,
    adjusted_mean,
    blank,
    chance_below,
    estimate_of,
    plain_mean,
)

FLOOR = 0.15  # minimum share of a due change that noise may be assumed to leave
UNKNOWN = 0.5  # share of a due change that must show if the noise is unknown
FAR = 2.0  # minimum change of gold, in levels, for an unchanged answer to count as deaf


def response(probe: Probe, told: Sequence[Contrast], known: Known) -> Result:
    """A change that must matter: the observed share of the due change, and the share of unchanged answers."""
    values, due = np.array([each.effect for each in told]), np.array([each.due for each in told])
    if len(values) < 2:
        return replace(blank(probe, "cannot tell"), effect=plain_mean(values, probe))
    by_gold = all(each.by_gold for each in told)
    noise = known.noise if by_gold else None
    expected, each_due = _expected(told, due, noise)
    shown, kept = adjusted_mean(values, told, known), adjusted_mean(values - (1 - SPARED) * each_due, told, known)
    spread = _faultless_spread(kept, told, noise)
    error = math.hypot(spread / math.sqrt(len(values)), (1 - SPARED) * expected.error)
    p = chance_below(shown.value - (1 - SPARED) * expected.value, error, kept.free)
    share = _share_by_mean(
        shown.value, adjusted_mean(values - shown.value / expected.value * each_due, told, known), expected
    )
    share = share if by_gold else NONE
    still = _still(probe, told, known) if by_gold else None
    most = share.high
    if still is not None:
        p = min(1.0, 2 * min(p, still.p))
        most = max(most, still.share.high)
        share = max(share, still.share, key=lambda each: each.low)
    reach = t_of(LEVEL, kept.free) * error
    return replace(
        blank(probe, "cannot tell", "" if noise else "too little gold to estimate the noise: half of it must show"),
        effect=estimate_of(shown, values, probe),
        deaf=0.0,
        faultless=Interval(max(0.0, expected.value - reach), expected.value + reach),
        deaf_share=share,
        most_deaf=most,
        p=p if len(values) >= LEAST else math.nan,
        spread=spread,
        due=float(due.mean()),
    )


def _faultless_spread(kept: Mean, told: Sequence[Contrast], noise: Noise | None) -> float:
    """The spread of one observation of a faultless judge: the observed one, at most that of the measured noise.

    Deafness on a part of the items increases the spread too. Independent noise gives the mean of k changes `sqrt(1 / k
    + 1)` times the spread of one answer, less the part that control variates remove.
    """
    if noise is None:
        return kept.spread
    changed = float(np.mean([1 / each.changes for each in told]))
    return min(kept.spread, STEPS * noise.spread * math.sqrt(changed + kept.original))


def _expected(told: Sequence[Contrast], due: Floats, noise: Noise | None) -> tuple[Expected, Floats]:
    """The mean effect of a faultless judge of this noise, and the effect for each set."""
    if noise is None:
        return Expected(UNKNOWN * float(due.mean()), 0.0), UNKNOWN * due
    labels = [each.labels for each in told]
    mean = noise.shift(labels, due)
    if mean.value < FLOOR * float(due.mean()):
        return Expected(FLOOR * float(due.mean()), 0.0), FLOOR * due
    gains = {count: noise.shift([count], np.ones(1)).value for count in set(labels)}
    return mean, np.array([gains[count] for count in labels]) * due


def _share_by_mean(shown: float, left: Mean, expected: Expected) -> Estimate:
    """The share of items whose change is missing from the mean: 1 - shown / expected; error by the delta method.

    `left` are the residuals of the changes given this share.
    """
    part, n = shown / expected.value, round(left.free) + 1
    reach = t_of(LEVEL, left.free) * math.hypot(left.error, part * expected.error) / expected.value
    low, high = 1 - part - reach, 1 - part + reach
    if not left.error > 1e-9:  # all equal: as for a count of items
        low, high = wilson(min(max(1 - part, 0.0), 1.0) * n, n)
    low, value, high = (min(max(each, 0.0), 1.0) for each in (low, 1 - part, high))
    return Estimate(value, n, low, high, LEVEL, "missing share of the mean change")


@dataclass(frozen=True, slots=True)
class _Still:
    share: Estimate
    p: float


def _still(probe: Probe, told: Sequence[Contrast], known: Known) -> _Still | None:
    """The share of unchanged answers although gold changes much, minus the share that is equal by chance."""
    from scipy.stats import binom

    far = [each for each in told if each.due >= FAR]
    chance = known.chance
    if len(far) < LEAST or math.isnan(chance.share):
        return None
    same, n = sum(abs(each.effect) < STILL for each in far), len(far)
    by_chance = wilson(chance.share * chance.n, chance.n).high
    p = float(binom.sf(same - 1, n, min(1.0, by_chance + SPARED)))
    if by_chance > 0.5:
        return None  # nearly all answers are equal, so an equal one means nothing
    low, high = wilson(same, n)
    ends = [min(max((each - chance.share) / (1 - chance.share), 0.0), 1.0) for each in (same / n, low, high)]
    return _Still(Estimate(ends[0], n, ends[1], ends[2], LEVEL, "unchanged answers"), p)
