"""What every statistic here is a function of: weights on rows.

A statistic of two columns (n,) is made once for them and then maps weights (b, n) to values (b,). Weights of one are
the sample as it is, multinomial weights are bootstrap draws, and the cells of contingency tables are rows whose counts
are weights. So each statistic is defined once, for single values, draws and tables alike. Undefined is NaN.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Weighted = Callable[[Floats], Floats]
Statistic = Callable[[ArrayLike, ArrayLike], Weighted]
TableStatistic = Callable[[Floats, Floats, Floats], Floats]
_FEW_CELLS = 256
ROUNDING = 1e-12  # a spread below this share of its maximum is rounding: all values count as equal


def mean_of(values: ArrayLike) -> Weighted:
    """The mean of values (n,) as a function of weights."""
    given = np.asarray(values, np.float64)

    def statistic(weights: Floats) -> Floats:
        return over(weights @ given, weights.sum(1))

    return statistic


def point(statistic: Statistic, x: ArrayLike, y: ArrayLike) -> float:
    """The statistic of two columns (n,) of finite numbers, each row counted once; NaN of none."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"score and gold must be arrays of the same length, got shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("score and gold must be finite: leave failures out (and count them) before measuring")
    return float(statistic(a, b)(np.ones((1, len(a))))[0]) if len(a) else math.nan


def on_tables(statistic: Statistic) -> TableStatistic:
    """The same statistic of tables (..., K, L) of counts: score `x[k]`, gold `y[l]`."""

    def of(table: Floats, x: Floats, y: Floats) -> Floats:
        weights = table.reshape(-1, len(x) * len(y))
        if weights.shape[1] == 0:
            return np.full(table.shape[:-2], math.nan)
        if weights.shape[1] <= _FEW_CELLS:
            return _on_grid(statistic, x.tobytes(), y.tobytes())(weights).reshape(table.shape[:-2])
        rows, columns = _grid(x, y)
        if len(weights) == 1:  # most cells of a large table are empty
            used = np.flatnonzero(weights[0])
            weights, rows, columns = weights[:, used], rows[used], columns[used]
        return statistic(rows, columns)(weights).reshape(table.shape[:-2])

    return of


@lru_cache(maxsize=64)
def _on_grid(statistic: Statistic, x: bytes, y: bytes) -> Weighted:
    """The statistic made for all cells of a small table; slices of one file have few different grids."""
    return statistic(*_grid(np.frombuffer(x), np.frombuffer(y)))


def _grid(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The score and the gold of each cell (K * L,)."""
    return np.repeat(x, len(y)), np.tile(y, len(x))


class Groups:
    """Sums of weights over rows with equal values."""

    def __init__(self, values: ArrayLike) -> None:
        given = np.asarray(values)
        self._order = np.argsort(given, kind="stable")  # one sort; np.unique and the order of its codes take two
        ranked = given[self._order]
        new = np.ones(len(given), bool)
        new[1:] = ranked[1:] != ranked[:-1]
        self._starts = np.flatnonzero(new)
        self.distinct = ranked[self._starts]
        self.codes = np.empty(len(given), np.int64)
        self.codes[self._order] = np.cumsum(new) - 1

    def sums(self, weights: Floats) -> Floats:
        """The weight of each distinct value, (b, distinct)."""
        return np.asarray(np.add.reduceat(weights[:, self._order], self._starts, axis=1))


def centred(values: ArrayLike) -> Floats:
    """Values (n,) minus the one nearest to their mean: moments do not cancel, and those of whole numbers stay exact."""
    given = np.asarray(values, np.float64)
    return np.asarray(given - given[np.abs(given - given.mean()).argmin()])


def over(top: float | Floats, bottom: float | Floats) -> Floats:
    """`top / bottom`, NaN where `bottom` is not above 0."""
    under = np.asarray(bottom, np.float64)
    return np.asarray(np.divide(top, under, out=np.full(under.shape, math.nan), where=under > 0))
