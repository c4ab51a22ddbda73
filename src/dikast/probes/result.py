"""The result of one probe, and the statistics that all outcomes use."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.core.confidence import ALIKE, LEVEL, UNDEFINED, Interval, t_of
from dikast.probes.catalogue import STEPS, Probe
from dikast.probes.control import Control, Mean, mean_of
from dikast.probes.measure import Contrast
from dikast.probes.noise import Noise, Stillness

Floats = NDArray[np.float64]
Outcome = Literal["sound", "faulty", "cannot tell", "measured", "not probed"]
NONE = undefined(0, "")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one probe. `effect` is in the probe's unit; `due` is the change that gold calls for, if any.

    `deaf` is the effect of a judge that ignores the change, `faultless` the interval of the effect of a faultless judge
    of this noise. `deaf_share` is the share of items on which the judge ignores a due change. `p` is the probability of
    such an effect for a faultless judge (`p_holm`: corrected over the card), `need` the number of sets that would
    decide, `lost` the number of sets with an answer without a verdict.
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
    most_deaf: float = math.nan  # upper end of both estimates of that share
    p: float = math.nan
    p_holm: float = math.nan
    spread: float = math.nan  # standard deviation of what was tested
    need: float = math.nan
    due: float = math.nan
    lost: int = 0
    note: str = ""


class Known(NamedTuple):
    """Estimates of a judge from answers to items whose gold is unchanged."""

    noise: Noise | None
    chance: Stillness
    n: int
    controls: Mapping[str, Control]


def blank(probe: Probe, result: Outcome, note: str = "") -> Result:
    """A result without numbers."""
    empty = Estimate(math.nan, 0, level=LEVEL)
    return Result(probe.name, probe.about, result, empty, probe.unit, probe.side, note=note)


def adjusted_mean(values: Floats, told: Sequence[Contrast], known: Known) -> Mean:
    """The mean of values of the sets `told`, corrected for the random deviations of their originals."""
    alike = {each.kind: each.alike for each in known.controls.values()}
    return mean_of(values, [each.lead for each in told], [each.kind for each in told], alike)


def estimate_of(mean: Mean, values: Floats, probe: Probe) -> Estimate:
    """The mean as an estimate; for equal observations as `plain_mean`."""
    if math.isnan(mean.slope) or not mean.error > 0:
        return plain_mean(values, probe)
    reach = t_of(LEVEL, mean.free) * mean.error
    method = "t, with control variates"
    return Estimate(mean.value, len(values), mean.value - reach, mean.value + reach, LEVEL, method)


def plain_mean(values: Floats, probe: Probe) -> Estimate:
    """The mean with Student's interval.

    If all n values are equal, a different value on 3 in n items would be missed in one sample of 20 (the rule of
    three): the interval adds the largest effect on so many items, four times the effect of concern.
    """
    from dikast.audit.statistics.intervals import mean_estimate

    found = mean_estimate(values, LEVEL)
    if len(values) < 2 or error_of(values) >= ALIKE:
        return found
    reach = 3 / len(values) * STEPS * probe.concern
    low = -reach if probe.side != "none" else max(-reach, -found.value)  # distances lie above 0
    return replace(found, low=found.value + low, high=found.value + reach, method="rule of three", note="")


def spread_of(values: Floats) -> float:
    """The standard deviation; NaN of fewer than two."""
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def error_of(values: Floats) -> float:
    """The standard error of the mean; NaN of fewer than two."""
    return spread_of(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def chance_below(distance: float, error: float, free: float) -> float:
    """The p-value of a mean this far below, if the true mean is not lower."""
    from scipy.stats import t

    if error < 1e-12:
        return 0.0 if distance < 0 else 1.0
    return float(t.cdf(distance / error, free))


def chance_beyond(mean: float, error: float, free: float, probe: Probe) -> float:
    """The p-value of such a mean for a faultless judge, whose mean is within the tolerance on the side that counts."""
    up, down = chance_below(-(mean - probe.tolerance), error, free), chance_below(mean + probe.tolerance, error, free)
    return min(1.0, 2 * min(up, down)) if probe.side == "both" else up
