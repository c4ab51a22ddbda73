"""A few human labels and many verdicts: means that use both, and what the verdicts are worth in labels."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.intervals import z_of

Floats = NDArray[np.float64]


def ppi_mean(gold: ArrayLike, judged: ArrayLike, unlabelled: ArrayLike, level: float = 0.95) -> Estimate:
    """The mean of gold over all items, from labels on some and verdicts on all (PPI++).

    gold, judged (n,): label and verdict of the labelled items; unlabelled (N,): verdicts of the others. Labelled items
    must be a random sample. The estimate is mean(gold) + w (mean(unlabelled) - mean(judged)) with the weight w that
    makes its variance least, w = cov(gold, judged) / ((1 + n/N) var(judged)); the interval is Student's with n - 1
    degrees of freedom. Unbiased whatever the judge's bias. Source: Angelopoulos, Duchi & Zrnic 2023, "PPI++: efficient
    prediction-powered inference" (2311.01453), for a mean; the variance of verdicts is taken over all items.
    """
    y, f, rest = (np.asarray(each, np.float64) for each in (gold, judged, unlabelled))
    n, many = len(y), len(rest)
    if n < 2:
        return undefined(n, "needs at least two labels", level=level)
    weight = _weight(y, f, rest)
    value = float(y.mean() + (weight * (rest.mean() - f.mean()) if many else 0.0))
    variance = float(np.var(y - weight * f, ddof=1)) / n
    if many > 1:
        variance += weight**2 * float(np.var(rest, ddof=1)) / many
    half = _t_of(level, n - 1) * math.sqrt(variance)
    return Estimate(
        value, n, value - half, value + half, level, f"PPI++, {many:,} unlabelled", note=f"weight {weight:.3f}"
    )


def ppi_difference(
    first: tuple[ArrayLike, ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike, ArrayLike], level: float = 0.95
) -> Estimate:
    """The difference of two means of gold, first less second, each as in `ppi_mean` (gold, judged, unlabelled).

    For two independent samples of items (Welch's degrees of freedom). For two systems on the same items, subtract gold
    and verdicts item by item and call `ppi_mean`: that is the paired interval, and narrower.
    """
    parts = [ppi_mean(*each, level=level) for each in (first, second)]
    if any(math.isnan(part.value) for part in parts):
        return undefined(sum(part.n for part in parts), "needs at least two labels of each", level=level)
    errors = [part.half_width / _t_of(level, part.n - 1) for part in parts]
    total = sum(error**2 for error in errors)
    free = total**2 / sum(error**4 / (part.n - 1) for error, part in zip(errors, parts, strict=True)) if total else 1.0
    half = _t_of(level, free) * math.sqrt(total)
    value = parts[0].value - parts[1].value
    return Estimate(value, sum(part.n for part in parts), value - half, value + half, level, "PPI++, independent")


def mean_of_labels(gold: ArrayLike, level: float = 0.95) -> Estimate:
    """The mean from labels alone, Student's interval."""
    y = np.asarray(gold, np.float64)
    n = len(y)
    if n < 2:
        return undefined(n, "needs at least two labels", level=level)
    half = _t_of(level, n - 1) * float(np.std(y, ddof=1)) / math.sqrt(n)
    return Estimate(float(y.mean()), n, float(y.mean()) - half, float(y.mean()) + half, level, "Student")


def label_multiplier(correlation: float, labelled: int, unlabelled: int) -> float:
    """How many labels each label is worth with verdicts beside it: 1 / (1 - r^2 N/(N + n)).

    From the least variance of `ppi_mean`: var(gold)/n (1 - r^2 N/(N+n)). It is r that sets the price, not agreement:
    at r = .5 no more than 1.33, at .9 up to 5.3.
    """
    if labelled + unlabelled == 0 or not abs(correlation) <= 1:
        return math.nan
    left = 1 - correlation**2 * unlabelled / (unlabelled + labelled)
    return 1 / left if left > 0 else math.inf


def rogan_gladen(gold: ArrayLike, judged: ArrayLike, unlabelled: ArrayLike, level: float = 0.95) -> Estimate:
    """The share of true positives among all items, from binary verdicts corrected for the judge's error rates.

    gold, judged (n,): 0/1 of the labelled items; unlabelled (N,): 0/1 verdicts. The share among the unlabelled is
    (p + sp - 1) / (se + sp - 1), kept within [0, 1]. Undefined when the judge is no better than chance. Sources: Rogan
    & Gladen 1978; interval of Lang & Reiczigel 2014, "Confidence limits for prevalence of disease adjusted for
    estimated sensitivity and specificity" (counts shrunk, normal, with their shift). PPI++ is narrower where labels
    are few or the judge is weak.
    """
    y, f, rest = (np.asarray(each, np.float64) for each in (gold, judged, unlabelled))
    if not np.isin(np.concatenate([y, f, rest]), (0, 1)).all():
        raise ValueError("Rogan-Gladen needs binary verdicts and labels, 0 or 1")
    positive, negative, many = int((y == 1).sum()), int((y == 0).sum()), len(rest)
    if positive == 0 or negative == 0 or many == 0:
        return undefined(len(y), "needs positive and negative labels, and unlabelled verdicts", level=level)
    se, sp, p = float(f[y == 1].mean()), float(1 - f[y == 0].mean()), float(rest.mean())
    if se + sp <= 1:
        return undefined(len(y), "the judge is no better than chance on the labels", level=level)
    value = min(1.0, max(0.0, (p + sp - 1) / (se + sp - 1)))
    z = z_of(level)
    many_, positive_, negative_ = many + z**2, positive + 2, negative + 2
    p_, se_, sp_ = (many * p + z**2 / 2) / many_, (positive * se + 1) / positive_, (negative * sp + 1) / negative_
    youden = se_ + sp_ - 1
    if youden <= 0:
        return undefined(len(y), "too few labels to tell the judge from chance", level=level)
    centre = (p_ + sp_ - 1) / youden
    shift = 2 * z**2 * (centre * se_ * (1 - se_) / positive_ - (1 - centre) * sp_ * (1 - sp_) / negative_)
    variance = p_ * (1 - p_) / many_ + centre**2 * se_ * (1 - se_) / positive_
    error = math.sqrt(variance + (1 - centre) ** 2 * sp_ * (1 - sp_) / negative_) / youden
    low, high = centre + shift - z * error, centre + shift + z * error
    note = f"sensitivity {se:.3f}, specificity {sp:.3f}"
    return Estimate(
        value, len(y), max(0.0, low), min(1.0, high), level, f"Rogan-Gladen, {many:,} unlabelled", note=note
    )


def _weight(y: Floats, f: Floats, rest: Floats) -> float:
    if len(rest) == 0:
        return 0.0
    spread = float(np.var(np.concatenate([f, rest]), ddof=1))
    if spread == 0:
        return 0.0
    return float(np.cov(y, f)[0, 1]) / ((1 + len(y) / len(rest)) * spread)


def _t_of(level: float, free: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(free, (1 + level) / 2))
