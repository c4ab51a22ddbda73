"""The weight of gold in a noisy oracle, so that its verdicts have a given correlation with gold."""

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from dikast.core.errors import UserError


class Latent(NamedTuple):
    """The opinion behind a verdict: `middle + hold * (gold - middle) + noise * z`, z standard normal, in scale values.

    The verdict is the label whose value is nearest, so that opinions beyond the ends of the scale fall on the ends.
    `step` is the mean distance of neighbouring labels, `cuts` are the midpoints between them.
    """

    middle: float
    hold: float
    noise: float
    step: float
    cuts: tuple[float, ...]


@lru_cache(maxsize=256)
def calibrated(values: tuple[float, ...], r: float) -> Latent:
    """The latent opinion whose verdicts correlate `r` with gold, when gold is uniform over `values` (rising).

    `hold` = h is found on the exact correlation (`correlation`); the noise is sqrt(1 - h^2) standard deviations of
    gold, so that opinions spread as gold does whatever r is. r in [0, 1].
    """
    if not 0 <= r <= 1:
        raise UserError(f"a correlation of an oracle lies in 0..1, got {r:g}")
    low, high = 0.0, 1.0
    if r in (low, high):
        return _latent(values, r)
    at_low, at_high = -r, 1 - r  # correlation(hold) - r at both ends, known without computing
    hold, side = r, 0
    for _ in range(60):  # false position with the Illinois step: brackets as bisection does, in a sixth of the rounds
        off = correlation(values, hold) - r
        if abs(off) < 1e-9:
            break
        if off < 0:
            low, at_low, at_high, side = hold, off, at_high / 2 if side < 0 else at_high, -1
        else:
            high, at_high, at_low, side = hold, off, at_low / 2 if side > 0 else at_low, 1
        hold = (low * at_high - high * at_low) / (at_high - at_low)
    return _latent(values, hold)


def correlation(values: tuple[float, ...], hold: float) -> float:
    """Pearson's correlation of gold, uniform over `values`, with the nearest-label verdict; exact, by summation."""
    middle, hold, noise, _, cuts = _latent(values, hold)
    if noise == 0:
        return 1.0
    steps = [b - a for a, b in pairwise(values)]
    squares = [b * b - a * a for a, b in pairwise(values)]
    root = noise * math.sqrt(2)
    mean = mean_square = product = 0.0
    for gold in values:
        centre = middle + hold * (gold - middle)
        above = [math.erfc((cut - centre) / root) / 2 for cut in cuts]  # P(verdict beyond the cut | gold)
        expected = values[0] + _dot(steps, above)
        mean += expected
        mean_square += values[0] ** 2 + _dot(squares, above)
        product += gold * expected
    n = len(values)
    mean, mean_square, product = mean / n, mean_square / n, product / n
    spread = math.sqrt(sum((value - middle) ** 2 for value in values) / n)
    return (product - mean * middle) / (spread * math.sqrt(mean_square - mean**2))


def _dot(first: list[float], second: list[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def _latent(values: tuple[float, ...], hold: float) -> Latent:
    middle = sum(values) / len(values)
    spread = math.sqrt(sum((value - middle) ** 2 for value in values) / len(values))
    step = (values[-1] - values[0]) / (len(values) - 1)
    cuts = tuple((a + b) / 2 for a, b in pairwise(values))
    return Latent(middle, hold, math.sqrt(1 - hold**2) * spread, step, cuts)
