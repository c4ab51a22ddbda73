"""Contingency tables: on discrete scales every measure of agreement is one of the table.

A table is (..., K, L): counts or weights of observations with score `x[k]` and gold `y[l]`, both rising. A bootstrap
draw of n observations is one multinomial draw of the K*L cells, so ten thousand draws of every statistic cost
milliseconds whatever n is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Observations as codes into the distinct values that occur: `x[row[i]]`, `y[column[i]]`."""

    x: Floats
    y: Floats
    row: NDArray[np.int64]
    column: NDArray[np.int64]

    @classmethod
    def of(cls, score: ArrayLike, gold: ArrayLike) -> "Cells":
        """Code two arrays (n,)."""
        x, row = np.unique(np.asarray(score, np.float64), return_inverse=True)
        y, column = np.unique(np.asarray(gold, np.float64), return_inverse=True)
        return cls(x, y, row.astype(np.int64).ravel(), column.astype(np.int64).ravel())

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.x) * len(self.y)

    @property
    def table(self) -> Floats:
        """Counts (K, L)."""
        flat = np.bincount(self.row * len(self.y) + self.column, minlength=self.size)
        return flat.reshape(len(self.x), len(self.y)).astype(np.float64)

    def tables_by(self, group: NDArray[np.int64], count: int) -> Floats:
        """One table for each of `count` groups, (count, K, L)."""
        flat = np.bincount(group * self.size + self.row * len(self.y) + self.column, minlength=self.size * count)
        return flat.reshape(count, len(self.x), len(self.y)).astype(np.float64)
