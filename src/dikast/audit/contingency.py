"""Statistics of many contingency tables at once: on discrete scales every measure of agreement is one of the table.

A table is (..., K, L): counts or weights of observations with score `x[k]` and gold `y[l]`, both rising. Functions
return (...); undefined is NaN. A bootstrap draw of n observations is one multinomial draw of the K*L cells, so ten
thousand draws of every statistic cost milliseconds whatever n is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.exact import NEAR

Floats = NDArray[np.float64]
TableStatistic = Callable[[Floats, Floats, Floats], Floats]


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


def pearson(table: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's correlation; `x` and `y` may also be (..., K) and (..., L), values of their own for each table."""
    rows, columns, total = table.sum(-1), table.sum(-2), table.sum((-2, -1))
    some = np.where(total > 0, total, 1)
    mean_x, mean_y = (rows * x).sum(-1) / some, (columns * y).sum(-1) / some
    dx, dy = x - mean_x[..., None], y - mean_y[..., None]
    covariance = np.einsum("...kl,...k,...l->...", table, dx, dy)
    scale = np.sqrt((rows * dx**2).sum(-1) * (columns * dy**2).sum(-1))
    constant = ((rows > 0).sum(-1) < 2) | ((columns > 0).sum(-1) < 2)
    return _over(covariance, np.where(constant, 0.0, scale))


def spearman(table: Floats, x: Floats, y: Floats) -> Floats:
    """Spearman's correlation: Pearson's with mean ranks in place of values."""
    del x, y
    rows, columns = table.sum(-1), table.sum(-2)
    return pearson(table, _mid_ranks(rows), _mid_ranks(columns))


def concordance(table: Floats) -> tuple[Floats, Floats]:
    """Concordant and discordant pairs."""
    below = np.cumsum(np.cumsum(table, -2), -1)  # (..., K, L): all with a score and a gold at most this
    less = np.zeros_like(table)
    less[..., 1:, 1:] = below[..., :-1, :-1]
    concordant = (table * less).sum((-2, -1))
    flipped = table[..., ::-1]
    below = np.cumsum(np.cumsum(flipped, -2), -1)
    less = np.zeros_like(table)
    less[..., 1:, 1:] = below[..., :-1, :-1]
    return concordant, (flipped * less).sum((-2, -1))


def tau_b(table: Floats, x: Floats, y: Floats) -> Floats:
    """Kendall's tau-b."""
    del x, y
    concordant, discordant = concordance(table)
    total = table.sum((-2, -1))
    untied_x = (total**2 - (table.sum(-1) ** 2).sum(-1)) / 2
    untied_y = (total**2 - (table.sum(-2) ** 2).sum(-1)) / 2
    return _over(concordant - discordant, np.sqrt(untied_x * untied_y))


def tau_c(table: Floats, x: Floats, y: Floats) -> Floats:
    """Kendall's (Stuart's) tau-c, with the number of values that occur in each table."""
    del x, y
    concordant, discordant = concordance(table)
    least = np.minimum((table.sum(-1) > 0).sum(-1), (table.sum(-2) > 0).sum(-1))
    total = table.sum((-2, -1))
    return _over(2 * least * (concordant - discordant), total**2 * (least - 1.0))


def exact(table: Floats, x: Floats, y: Floats) -> Floats:
    """Share where score equals gold."""
    return _mean_of(table, (x[:, None] == y[None, :]).astype(np.float64))


def within_one(table: Floats, x: Floats, y: Floats) -> Floats:
    """Share where score and gold differ by at most 1."""
    return _mean_of(table, (np.abs(x[:, None] - y[None, :]) <= 1 + NEAR).astype(np.float64))


def mae(table: Floats, x: Floats, y: Floats) -> Floats:
    """Mean absolute error."""
    return _mean_of(table, np.abs(x[:, None] - y[None, :]))


def bias(table: Floats, x: Floats, y: Floats) -> Floats:
    """Mean of score less gold."""
    return _mean_of(table, x[:, None] - y[None, :])


def cohen_kappa(table: Floats, x: Floats, y: Floats) -> Floats:
    """Cohen's kappa of two raters with the same labels."""
    return _kappa(table, (x[:, None] != y[None, :]).astype(np.float64))


def quadratic_kappa(table: Floats, x: Floats, y: Floats) -> Floats:
    """Cohen's kappa with squared distances as weights."""
    return _kappa(table, (x[:, None] - y[None, :]) ** 2)


def pair_accuracy(table: Floats, x: Floats, y: Floats) -> Floats:
    """Share of pairs with different gold that the scores order the right way; a tie in score counts half.

    Equal to the area under the ROC curve when gold has two values.
    """
    del x, y
    concordant, discordant = concordance(table)
    total = table.sum((-2, -1))
    decided = (total**2 - (table.sum(-2) ** 2).sum(-1)) / 2
    return _over(concordant + (decided - concordant - discordant) / 2, decided)


def discrimination(counts: Floats, labels: int) -> Floats:
    """Ferguson's delta of label counts (..., labels): 0 when one label takes all, 1 when all are used alike."""
    total = counts.sum(-1)
    return _over(total**2 - (counts**2).sum(-1), total**2 * (1 - 1 / labels))


def _kappa(table: Floats, cost: Floats) -> Floats:
    total = table.sum((-2, -1))
    expected = np.einsum("...k,...l,kl->...", table.sum(-1), table.sum(-2), cost) / np.where(total > 0, total, 1) ** 2
    observed = _mean_of(table, cost)
    return 1 - _over(observed, expected)


def _mean_of(table: Floats, worth: Floats) -> Floats:
    return _over((table * worth).sum((-2, -1)), table.sum((-2, -1)))


def _mid_ranks(counts: Floats) -> Floats:
    return np.asarray(np.cumsum(counts, -1) - (counts - 1) / 2)


def _over(top: Floats, bottom: Floats) -> Floats:
    bottom = np.asarray(bottom, np.float64)
    return np.asarray(np.divide(top, bottom, out=np.full(np.shape(bottom), np.nan), where=bottom > 0))
