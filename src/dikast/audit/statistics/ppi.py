"""Prediction-powered inference (PPI) and active inference: means from few labels and many verdicts, and their worth."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.intervals import Resampling, clusters_of, error_of, kept_within, mean_estimate
from dikast.core.confidence import t_of, z_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
ANY = (-math.inf, math.inf)


def ppi_mean(
    gold: ArrayLike,
    judged: ArrayLike,
    unlabelled: ArrayLike,
    level: float = 0.95,
    cluster: Codes | None = None,
    *,
    within: tuple[float, float] = ANY,
) -> Estimate:
    """The mean of gold over all items, from labels on some and verdicts on all (PPI++).

    gold, judged (n,): label and verdict of the labelled items; unlabelled (N,): verdicts of the others. Labelled items
    must be a random sample. The estimate is mean(gold) + w (mean(unlabelled) - mean(judged)) with the weight w that
    makes its variance least, w = cov(gold, judged) / ((1 + n/N) var(judged)); the interval is Student's with n - 1
    degrees of freedom. Unbiased whatever the judge's bias. With `cluster` (n + N,), codes of the labelled rows and then
    of the others, the variance is that of cluster sums, with one degree less than there are clusters with a label.
    Neither the value nor an end lies outside `within`, the values that the mean can have.
    Source: Angelopoulos, Duchi & Zrnic 2023, "PPI++: efficient prediction-powered inference" (2311.01453), for a mean;
    the variance of verdicts is taken over all items.
    """
    y, f, rest = (np.asarray(each, np.float64) for each in (gold, judged, unlabelled))
    n, many = len(y), len(rest)
    if n < 2:
        return undefined(n, "needs at least two labels", level=level)
    weight = _weight(y, f, rest)
    value = float(y.mean() + (weight * (rest.mean() - f.mean()) if many else 0.0))
    method, note = f"PPI++, {many:,} unlabelled", f"weight {weight:.3f}"
    if cluster is None:
        error, free = math.sqrt(_variance(y - weight * f) + weight**2 * _variance(rest)), n - 1.0
    else:
        error, free = error_of(_ppi_parts(y, f, rest), cluster).error, _labelled(cluster, n)
        method += ", by cluster"
    if free < 1:
        return Estimate(value, n, level=level, method=method, note="one cluster with labels")
    half = t_of(level, free) * error
    return kept_within(Estimate(value, n, value - half, value + half, level, method, note=note), within)


def _labelled(cluster: Codes, n: int) -> float:
    return int(clusters_of(cluster[:n]).max(initial=-1)) + 1 - 1.0


def _ppi_parts(y: Floats, f: Floats, rest: Floats) -> Floats:
    """What each row (labelled first) adds to the PPI++ mean."""
    weight, left = _weight(y, f, rest), y - _weight(y, f, rest) * f
    other = weight * (rest - rest.mean()) / len(rest) if len(rest) else rest
    return np.concatenate([(left - left.mean()) / len(y), other])


def ppi_difference(
    first: tuple[ArrayLike, ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike, ArrayLike],
    level: float = 0.95,
    clusters: tuple[Codes, Codes] | None = None,
    *,
    within: tuple[float, float] = ANY,
) -> Estimate:
    """The difference of two means of gold, first minus second, each as in `ppi_mean` (gold, judged, unlabelled).

    For two independent samples of items (Welch's degrees of freedom), or with the `clusters` of both, as in `ppi_mean`,
    for samples that share clusters: two systems on the same items, each item a cluster, give the paired interval.
    Neither the value nor an end lies outside `within`, the values that the difference can have.
    """
    parts = [ppi_mean(*each, level=level) for each in (first, second)]
    if any(math.isnan(part.value) for part in parts):
        return undefined(sum(part.n for part in parts), "needs at least two labels of each", level=level)
    value, n = parts[0].value - parts[1].value, sum(part.n for part in parts)
    if clusters is not None:
        one, two = (_ppi_parts(*(np.asarray(each, np.float64) for each in side)) for side in (first, second))
        error = error_of(np.concatenate([one, -two]), np.concatenate(clusters)).error
        free = min(_labelled(codes, part.n) for codes, part in zip(clusters, parts, strict=True))
        if free < 1:
            return Estimate(value, n, level=level, note="one cluster with labels")
        half = t_of(level, free) * error
        return kept_within(Estimate(value, n, value - half, value + half, level, "PPI++, by cluster"), within)
    errors = [part.half_width / t_of(level, part.n - 1) for part in parts]
    total = sum(error**2 for error in errors)
    free = total**2 / sum(error**4 / (part.n - 1) for error, part in zip(errors, parts, strict=True)) if total else 1.0
    half = t_of(level, free) * math.sqrt(total)
    return kept_within(Estimate(value, n, value - half, value + half, level, "PPI++, independent"), within)


def active_mean(
    gold: ArrayLike,
    judged: ArrayLike,
    chance: ArrayLike,
    unlabelled: ArrayLike,
    level: float = 0.95,
    cluster: Codes | None = None,
    *,
    within: tuple[float, float] = ANY,
) -> Estimate:
    """The mean of gold over all items, from verdicts on all and labels on some that were chosen with unequal chances.

    gold, judged, chance (n,): label, verdict and probability (0 < p <= 1) of being chosen of the labelled items;
    unlabelled (N,): verdicts of the others. The estimate is the mean of the predictions a + b f of all items and the
    mean of the labelled ones' errors y - a - b f, weighted by 1 / p; a and b make the sum of (y - a - b f)^2 / p^2
    least. As n grows it is unbiased whatever the judge's errors. Only ratios of the chances count: items that had no
    chance, because nobody was asked about them, must be a random sample of all. Where every p is 1, the labels are
    taken as one too, and without others the estimate is their mean. The interval is Student's with k - 2 degrees of
    freedom, where k <= n is the effective number of labels, (sum w)^2 / sum w^2 for the weights w = 1 / p^2; with
    `cluster` (n + N,), codes of the labelled rows and then of the others, the variance is that of cluster sums, and k
    is at most the number of clusters with a label.
    Neither the value nor an end lies outside `within`. Raises ValueError for a chance outside (0, 1].
    Source: Zrnic & Candes 2024, "Active Statistical Inference" (2403.03208), the mean; departures: the intercept a,
    the weights 1 / p as shares of their sum (Hajek's ratio estimator), Student's quantile, and the effective number.
    """
    y, f, p, rest = (np.asarray(each, np.float64) for each in (gold, judged, chance, unlabelled))
    n, total = len(y), len(y) + len(rest)
    if not ((p > 0) & (p <= 1)).all():
        raise ValueError("the probability of being chosen lies above 0 and is at most 1")
    if n < 3:
        return undefined(n, "needs at least three labels", level=level)
    weight, share = p**-2, 1 / p / np.sum(1 / p)
    a, b = _line(y, f, weight)
    wrong, predicted = y - a - b * f, a + b * np.concatenate([f, rest])
    bias = float(np.sum(share * wrong))
    value = float(predicted.mean()) + bias
    parts = (predicted - predicted.mean()) / total  # what each item adds to the error
    parts[:n] += share * (wrong - bias)
    method, note = f"active inference, {len(rest):,} unlabelled", f"weight {b:.3f}"
    free = float(weight.sum() ** 2 / (weight**2).sum()) - 2
    if cluster is None:
        error = math.sqrt(float(np.sum(parts**2)) * total / (total - 1))
    else:
        error, free = error_of(parts, cluster).error, min(free, clusters_of(cluster[:n]).max() - 1.0)
        method += ", by cluster"
    if free < 1:
        return Estimate(
            value, n, level=level, method=method, note="too few labels, or too unequal chances, for an interval"
        )
    error *= math.sqrt((free + 2) / free)  # two coefficients are fitted
    half = t_of(level, free) * error
    return kept_within(Estimate(value, n, value - half, value + half, level, method, note=note), within)


def mean_of_labels(
    gold: ArrayLike, level: float = 0.95, cluster: Codes | None = None, *, within: tuple[float, float] = ANY
) -> Estimate:
    """The mean from labels alone, Student's interval, of which no end lies outside `within`."""
    y = np.asarray(gold, np.float64)
    if len(y) < 2:
        return undefined(len(y), "needs at least two labels", level=level)
    return mean_estimate(y, level, cluster, within=within)


def label_multiplier(correlation: float, labelled: int, unlabelled: int) -> float:
    """How many labels each label is worth with verdicts beside it: 1 / (1 - r^2 N/(N + n)).

    From the least variance of `ppi_mean`: var(gold)/n (1 - r^2 N/(N+n)). It depends on r, not on exact agreement: at r
    = .5 it is at most 1.33, at .9 up to 5.3.
    """
    if labelled + unlabelled == 0 or not abs(correlation) <= 1:
        return math.nan
    left = 1 - correlation**2 * unlabelled / (unlabelled + labelled)
    return 1 / left if left > 0 else math.inf


def multiplier_estimate(
    gold: ArrayLike, judged: ArrayLike, unlabelled: int, how: Resampling, cluster: Codes | None = None
) -> Estimate:
    """`label_multiplier` with the interval of the correlation behind it (bootstrap); it is least where r is 0."""
    n = len(np.asarray(gold))
    r = measure(np.asarray(judged, np.float64), np.asarray(gold, np.float64), ["pearson"], how, cluster)["pearson"]
    if math.isnan(r.value):
        return undefined(n, r.note, level=how.level)
    value, *ends = (label_multiplier(each, n, unlabelled) for each in (r.value, r.low, r.high))
    low = 1.0 if r.low < 0 < r.high else min(ends)
    return Estimate(value, n, low if math.isfinite(r.low) else math.nan, max(ends), how.level, f"from r: {r.method}")


def rogan_gladen(
    gold: ArrayLike, judged: ArrayLike, unlabelled: ArrayLike, level: float = 0.95, cluster: Codes | None = None
) -> Estimate:
    """The share of true positives among all items, from binary verdicts corrected for the judge's error rates.

    gold, judged (n,): 0/1 of the labelled items; unlabelled (N,): 0/1 verdicts. The share among the unlabelled is
    (p + sp - 1) / (se + sp - 1), kept within [0, 1]. Undefined when the judge is no better than chance. Sources: Rogan
    & Gladen 1978; interval of Lang & Reiczigel 2014, "Confidence limits for prevalence of disease adjusted for
    estimated sensitivity and specificity" (counts shrunk, normal, with their shift). PPI++ is narrower where labels
    are few or the judge is weak. With `cluster`, as in `ppi_mean`, the ratio is linearised and its variance is that of
    cluster sums (Student's interval, kept within [0, 1]).
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
    note = f"sensitivity {se:.3f}, specificity {sp:.3f}"
    if cluster is not None:
        raw, gain = (p + sp - 1) / (se + sp - 1), se + sp - 1
        wrong = np.where(y == 1, -raw * (f - se) / positive, (1 - raw) * (1 - f - sp) / negative)
        found = error_of(np.concatenate([wrong, (rest - p) / many]) / gain, cluster)
        if (free := _labelled(cluster, len(y))) < 1:
            return Estimate(value, len(y), level=level, note="one cluster with labels")
        half = t_of(level, free) * found.error
        method = f"Rogan-Gladen, {many:,} unlabelled, by cluster"
        return kept_within(Estimate(value, len(y), raw - half, raw + half, level, method, note=note), (0.0, 1.0))
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
    method = f"Rogan-Gladen, {many:,} unlabelled"
    return kept_within(Estimate(value, len(y), low, high, level, method, note=note), (0.0, 1.0))


def _weight(y: Floats, f: Floats, rest: Floats) -> float:
    if len(rest) == 0:
        return 0.0
    spread = float(np.var(np.concatenate([f, rest]), ddof=1))
    if spread == 0:
        return 0.0
    return float(np.cov(y, f)[0, 1]) / ((1 + len(y) / len(rest)) * spread)


def _variance(values: Floats) -> float:
    """The variance of a mean; 0 of fewer than two values."""
    return float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else 0.0


def _line(y: Floats, f: Floats, weight: Floats) -> tuple[float, float]:
    """Intercept and slope of the weighted least squares line; slope 0 where f is constant."""
    middle_y, middle_f = np.average(y, weights=weight), np.average(f, weights=weight)
    spread = float(np.sum(weight * (f - middle_f) ** 2))
    slope = float(np.sum(weight * (f - middle_f) * (y - middle_y))) / spread if spread > 1e-12 else 0.0
    return float(middle_y - slope * middle_f), slope
