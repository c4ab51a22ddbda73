"""Confidence intervals: the quantiles that they are made of, and Wilson's score interval of a rate.

Summaries, audits, probes, rankings and experiments all use these; the intervals of other statistics are in
`audit.statistics.intervals`.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

LEVEL = 0.95  # of an interval, where no other is asked for
ALIKE = 1e-12  # a standard error below is rounding: the groups are alike, and say nothing about how far others differ
normal_quantile = NormalDist().inv_cdf  # of a probability in (0, 1)


class Interval(NamedTuple):
    """Both ends of an interval; NaN where it is undefined."""

    low: float
    high: float


UNDEFINED = Interval(math.nan, math.nan)


def z_of(level: float) -> float:
    """The two-sided normal quantile, 1.96 at .95."""
    return normal_quantile((1 + level) / 2)


def t_of(level: float, free: float) -> float:
    """Student's two-sided quantile with `free` degrees of freedom; NaN for none."""
    from scipy.special import stdtrit

    return float(stdtrit(free, (1 + level) / 2)) if free > 0 else math.nan


def wilson(hits: float, n: float, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a rate of independent observations (Wilson 1927); NaN of none."""
    if n == 0:
        return UNDEFINED
    z, p = z_of(level), hits / n
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # both ends are exact where they are reached, rounding is not
    return Interval(max(0.0, middle - half) if hits > 0 else 0.0, min(1.0, middle + half) if hits < n else 1.0)


def wilson_of_groups(value: float, error: float, groups: int, level: float = LEVEL, *, least: float = 0.0) -> Interval:
    """Wilson's interval of a rate whose rows depend on each other within groups, in [0, 1].

    It takes the number of independent rows, at `least` as many as given, that would have the same standard `error`, by
    Student's quantile of the `groups` that the error was learnt from (Korn & Graubard 1998). Where all groups are alike
    (an error of 0 within rounding, or NaN for one group), each counts once.
    """
    n = float(groups)
    if error > ALIKE:
        n = max(value * (1 - value) * (z_of(level) / (t_of(level, groups - 1) * error)) ** 2, least)
    return wilson(value * n, n, level)
