"""A judge watched by anchors: after how many of them a change is found, and how often one that is not there."""

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.drift import e_value
from dikast.audit.statistics.intervals import mean_estimate, rate
from dikast.core.text import counted

Floats = NDArray[np.float64]
ALARM = 20.0  # the e-value that counts as drift found: under no change at most one sequence in 20 reaches it
_LEAST = 20  # sequences


def first_alarms(differences: Floats, length: int) -> NDArray[np.int64]:
    """Differences (n,) of scores in [-1, 1] cut into sequences of `length`: how many anchors each took until the
    evidence of a shift reached `ALARM`; 0 where it never did. What is left over is not used.
    """
    cut = differences[: len(differences) // length * length].reshape(-1, length)
    return np.array([_first(each) for each in cut], np.int64)


def _first(sequence: Floats) -> int:
    return next((n for n in range(1, len(sequence) + 1) if e_value(sequence[:n]) >= ALARM), 0)


def watched(differences: Floats, length: int, *, delay: bool, level: float, dropped: int) -> Estimate:
    """The share of sequences with an alarm, or with `delay` the mean number of anchors until it (the whole length where
    there was none), with its interval over sequences.
    """
    found = first_alarms(differences, length)
    n = len(found)
    if n < _LEAST:
        return undefined(n, f"only {counted(n, 'sequence')} of {length:,} items", level=level, dropped=dropped)
    hits = int((found > 0).sum())
    if not delay:
        return rate(hits, n, level, dropped=dropped, note=f"{hits} of {n} sequences")
    taken = np.where(found > 0, found, length).astype(np.float64)
    told = mean_estimate(taken, level, dropped=dropped, within=(1, length))
    note = f"mean of {n} sequences, {n - hits} without an alarm count whole"
    return Estimate(told.value, n, told.low, told.high, level, told.method, dropped, told.note or note)
