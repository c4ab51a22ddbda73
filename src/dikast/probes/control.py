"""Variance reduction for mean changes, with control variates.

A change is the answer to the changed item minus the answer to the original, and both are noisy. For an original with
gold, answers to other originals of the same kind are also known. If a probe's originals lie above the mean of their
kind by chance, its changes are too small by a share of that distance: the slope of the changes over the distance, 1 if
the noise of every answer is independent, 0 if it depends on the item alone. The regression's value at distance 0 is the
mean change (control variates; in experiments CUPED, Deng, Xu, Kohavi and Walker 2013). Without other originals of the
same kind the result is the plain mean of the changes.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.probes.noise import Noise, Plain

Floats = NDArray[np.float64]


class Control(NamedTuple):
    """How far the answer to an original lies above the mean of its kind (share of the scale), the kind, its size."""

    above: float
    kind: str
    alike: int


class Mean(NamedTuple):
    """A mean, its standard error, the degrees of freedom, and the spread of one observation.

    `slope` is the share of an original's deviation that is subtracted (NaN if nothing is known of originals),
    `original` the share of an original's variance that remains in one observation, including that of the means of
    kinds.
    """

    value: float
    error: float
    free: float
    spread: float
    slope: float = math.nan
    original: float = 1.0


def controls(plain: Collection[Plain], noise: Noise | None) -> Mapping[str, Control]:
    """For each unchanged item by its id: the distance of its answer from others of its kind, after subtracting gold."""
    if noise is None:
        return {}
    kinds: dict[str, list[tuple[Plain, float]]] = defaultdict(list)
    for each in plain:
        if each.kind:
            kinds[each.kind].append((each, each.answer - noise.line(each.labels, each.gold, each.place)))
    found = {}
    for kind, several in kinds.items():
        mean = float(np.mean([left for _, left in several]))
        found.update({each.id: Control(left - mean, kind, len(several)) for each, left in several})
    return found


def mean_of(values: Floats, leads: Sequence[float], kinds: Sequence[str], alike: Mapping[str, int]) -> Mean:
    """The mean of values at a lead of 0, by least squares of values on leads; the plain mean if a lead is unknown.

    `leads` are the deviations of the originals from the mean of their kind. The error combines that of the intercept
    and that of the means of kinds, which `alike` originals each give.
    """
    n, value = len(values), float(values.mean()) if len(values) else math.nan
    if n < 2:
        return Mean(value, math.nan, n - 1.0, math.nan)
    spread = float(values.std(ddof=1))
    plain = Mean(value, spread / math.sqrt(n), n - 1.0, spread)
    lead = np.array(leads)
    if n < 4 or np.isnan(lead).any():
        return plain
    square = float(np.square(lead - lead.mean()).sum())
    if square < 1e-12:
        return plain
    slope = float(min(max((lead - lead.mean()) @ values / square, 0.0), 1.0))
    left = values - slope * lead
    rest = float(np.sqrt(np.square(left - left.mean()).sum() / (n - 2)))
    own = rest**2 * (1 / n + float(lead.mean()) ** 2 / square)
    shares = Counter(kinds)
    weight = sum((count / n) ** 2 / max(alike[kind], count) for kind, count in shares.items())
    shared = slope**2 * weight * square / (n - 1)
    error = math.sqrt(own + shared)
    original = (1 - slope) ** 2 + slope**2 * weight * n
    return Mean(float(left.mean()), error, n - 2.0, error * math.sqrt(n), slope, original)
