"""Sample size and statistical power: labels for an interval of a given width, items to detect a given difference."""

import math

from dikast.core.confidence import ALIKE, normal_quantile, z_of


def labels_for_width(half_width: float, n: int, wanted: float = 0.03) -> float:
    """Labels needed so that an interval of `half_width` from `n` labels shrinks to +/- `wanted`."""
    return math.ceil(n * (half_width / wanted) ** 2 - 1e-9) if math.isfinite(half_width) else math.nan


def labels_for_pearson(r: float, wanted: float = 0.03, level: float = 0.95) -> float:
    """Labels needed to know a correlation near `r` to +/- `wanted` (half the length of Fisher's interval)."""
    if not abs(r) < 1 - ALIKE:  # perfect but for rounding
        return math.nan
    z, centre = z_of(level), math.atanh(r)
    low, high = 4, 100_000_000
    while low < high:
        n = (low + high) // 2
        half = z / math.sqrt(n - 3)
        width = (math.tanh(centre + half) - math.tanh(centre - half)) / 2
        low, high = (low, n) if width <= wanted else (n + 1, high)
    return low


def pairs_for_mcnemar(gain: float, discordant: float, *, level: float = 0.05, power: float = 0.8) -> float:
    """Items needed to see a gain in accuracy when a share `discordant` is right under one judge only.

    Normal approximation (Connor 1987); NaN unless 0 < gain <= discordant <= 1.
    """
    if not 0 < gain <= discordant <= 1:
        return math.nan
    a, b = normal_quantile(1 - level / 2), normal_quantile(power)
    return math.ceil((a * math.sqrt(discordant) + b * math.sqrt(discordant - gain**2)) ** 2 / gain**2)


def labels_for_rate(rate: float, null: float = 0.5, *, level: float = 0.05, power: float = 0.8) -> float:
    """Independent observations needed to tell a rate from `null` (normal approximation)."""
    if rate == null:
        return math.inf
    a, b = normal_quantile(1 - level / 2), normal_quantile(power)
    top = a * math.sqrt(null * (1 - null)) + b * math.sqrt(rate * (1 - rate))
    return math.ceil((top / (rate - null)) ** 2)
