"""How scores agree with gold: correlations, exact and near agreement, errors, confusion. Pure functions of arrays.

`score` and `gold` are arrays (n,) of finite numbers, same observations in the same order. Undefined is NaN: a
correlation with a constant column has no value, and nor has any mean over nothing.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.concordance import pair_counts
from dikast.audit.exact import NEAR

Floats = NDArray[np.float64]


def pearson(score: ArrayLike, gold: ArrayLike) -> float:
    """Pearson's product-moment correlation, in [-1, 1]."""
    x, y = _pair(score, gold)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x)) * math.sqrt(float(y @ y))
    return max(-1.0, min(1.0, float(x @ y) / scale)) if scale > 0 else math.nan


def spearman(score: ArrayLike, gold: ArrayLike) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, ties at their mean rank."""
    x, y = _pair(score, gold)
    return pearson(mid_ranks(x), mid_ranks(y)) if len(x) else math.nan


def kendall_tau_b(score: ArrayLike, gold: ArrayLike) -> float:
    """Kendall's tau-b (Kendall 1945): concordant less discordant pairs over the geometric mean of the untied ones."""
    x, y = _pair(score, gold)
    return pair_counts(x, y).tau_b if len(x) > 1 else math.nan


def kendall_tau_c(score: ArrayLike, gold: ArrayLike) -> float:
    """Kendall's tau-c (Stuart 1953), for scales with different numbers of values.

    2m(C - D) / (n^2 (m - 1)) where m is the smaller number of distinct values that occur.
    """
    x, y = _pair(score, gold)
    least = min(len(np.unique(x)), len(np.unique(y)))
    if least < 2:
        return math.nan
    counts = pair_counts(x, y)
    return 2 * least * (counts.concordant - counts.discordant) / (len(x) ** 2 * (least - 1))


def exact_agreement(score: ArrayLike, gold: ArrayLike) -> float:
    """Share of observations whose score equals gold."""
    x, y = _pair(score, gold)
    return float(np.mean(x == y)) if len(x) else math.nan


def within(score: ArrayLike, gold: ArrayLike, distance: float = 1.0) -> float:
    """Share of observations whose score is at most `distance` from gold (within 1e-9, for 2.2 - 1.2 is above 1)."""
    x, y = _pair(score, gold)
    return float(np.mean(np.abs(x - y) <= distance + NEAR)) if len(x) else math.nan


def mean_absolute_error(score: ArrayLike, gold: ArrayLike) -> float:
    """Mean distance between score and gold, in units of the scale."""
    x, y = _pair(score, gold)
    return float(np.mean(np.abs(x - y))) if len(x) else math.nan


def bias(score: ArrayLike, gold: ArrayLike) -> float:
    """Mean of score less gold: above 0, the judge is the kinder."""
    x, y = _pair(score, gold)
    return float(np.mean(x - y)) if len(x) else math.nan


def confusion(score: ArrayLike, gold: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
    """Counts (len(labels), len(labels)): rows are gold, columns scores. ValueError for a value not in `labels`."""
    known = np.asarray(labels)
    rows, columns = _index(gold, known), _index(score, known)
    table = np.zeros((len(known), len(known)), np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


class ClassScores(NamedTuple):
    """Accuracy over all observations; the rest are unweighted means over the labels that occur in score or gold."""

    accuracy: float
    macro_precision: float
    macro_recall: float
    macro_f1: float


def class_scores(table: ArrayLike) -> ClassScores:
    """From a confusion matrix (rows gold, columns scores). A label never predicted has precision 0."""
    counts = np.asarray(table, np.float64)
    if counts.sum() == 0:
        return ClassScores(math.nan, math.nan, math.nan, math.nan)
    hit, gold, said = np.diag(counts), counts.sum(1), counts.sum(0)
    occurs = (gold + said) > 0
    hit, gold, said = hit[occurs], gold[occurs], said[occurs]
    precision = np.divide(hit, said, out=np.zeros_like(hit), where=said > 0)
    recall = np.divide(hit, gold, out=np.zeros_like(hit), where=gold > 0)
    f1 = 2 * hit / (gold + said)
    accuracy = hit.sum() / counts.sum()
    return ClassScores(float(accuracy), float(precision.mean()), float(recall.mean()), float(f1.mean()))


def mid_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1, ties at the mean of the ranks they span, (n,)."""
    _, codes, sizes = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    below = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    return (below + (sizes + 1) / 2)[codes.ravel()].astype(np.float64)


def _index(values: ArrayLike, labels: NDArray[np.generic]) -> NDArray[np.int64]:
    given = np.asarray(values)
    order = np.argsort(labels)
    found = np.searchsorted(labels, given, sorter=order).clip(max=len(labels) - 1)
    index: NDArray[np.int64] = order[found].astype(np.int64)
    if not np.array_equal(labels[index], given):
        raise ValueError(f"values off the labels {labels.tolist()}: leave failures out before counting")
    return index


def _pair(score: ArrayLike, gold: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(score, np.float64), np.asarray(gold, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"score and gold must be arrays of the same length, got shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("score and gold must be finite: leave failures out (and count them) before measuring")
    return x, y
