"""Less noise in a mean change: what the originals of a probe owe to chance is taken off.

A change is an answer to the changed item less the answer to the original, and both are noisy. Of an original with gold
more is known: answers to other originals like it. Where those of a probe lie above their like by chance, changes come
out too small by some share of it, which is the slope of the changes over it: 1 where the noise of an answer is drawn
anew each time, 0 where it stays with the item. What is left at a distance of 0 is the mean change (control variates;
in experiments CUPED, Deng, Xu, Kohavi and Walker 2013). Where there are no other originals of its kind the result is
the plain mean of the changes.
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
    """How far the answer to an original lies above the mean of its kind (of the scale), the kind, and how many."""

    above: float
    kind: str
    alike: int


class Mean(NamedTuple):
    """A mean, its standard error, the degrees of freedom, and the spread of one observation.

    `slope` is how much of an original's chance is taken off (NaN where nothing is known of originals), `original` how
    much of an original's variance is left in one observation, that of the means of the kinds included.
    """

    value: float
    error: float
    free: float
    spread: float
    slope: float = math.nan
    original: float = 1.0


def controls(plain: Collection[Plain], noise: Noise | None) -> Mapping[str, Control]:
    """For each unchanged item by its id: how far its answer lies from those to others of its kind, gold taken off."""
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
    """The mean of values at a lead of 0, by least squares of values on leads; the plain mean where a lead is unknown.

    `leads` are how far each value is pushed by the chance of its original. The error is that of the intercept, and that
    of the means of the kinds, from `alike` originals each, which the leads are taken from.
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
