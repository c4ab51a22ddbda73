"""Calibration of label probabilities: reliability diagram, ECE, log loss, and cross-fitted recalibration.

`probabilities` are (n, K) over the labels of the scale, each row summing to 1; `gold` (n,) indexes the true label.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import error_of
from dikast.core.confidence import z_of
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
BINS = 15
FOLDS = 5
FLOOR = 1e-12  # a smaller probability counts as this, so that one row cannot make a loss infinite
CROSS_FITTED_TOLD = (
    "intervals of cross-fitted scores are approximate (isotonic: they held the mae in 92.6 % of 1,000 simulations)"
)
LEAST = 50  # labelled rows below which nothing is fitted
LEAST_OF_FAMILY = 200  # rows of a family in the other folds, below which the fit on all families is used
_MOST_ROWS = 5_000


class Bin(NamedTuple):
    """One bin of a reliability diagram: how sure the judge was on average, and how often it was right."""

    n: int
    confidence: float
    accuracy: float


def reliability(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS) -> list[Bin]:
    """Bins of equal mass, from the least to the most confident; equal confidences stay together."""
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    if len(sure) == 0:
        return []
    return [Bin(len(part), float(sure[part].mean()), float(right[part].mean())) for part in bin_rows(sure, bins)]


def bin_rows(confidence: ArrayLike, bins: int = BINS) -> list[Codes]:
    """Which rows fall into each bin of equal mass, from the least to the most confident."""
    given = np.asarray(confidence, np.float64)
    order = np.argsort(given, kind="stable")
    sure = given[order]
    cuts = np.unique(np.linspace(0, len(sure), bins + 1).round().astype(int)[1:-1])
    cuts = cuts[cuts < len(sure)]  # fewer rows than bins
    cuts = np.unique(np.searchsorted(sure, sure[cuts], side="left"))
    return [part for part in np.split(order, cuts) if len(part)]


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS) -> float:
    """Mean distance between confidence and accuracy over bins of equal mass; NaN of nothing."""
    found = reliability(confidence, correct, bins)
    total = sum(each.n for each in found)
    return sum(each.n * abs(each.confidence - each.accuracy) for each in found) / total if total else math.nan


def brier_scores(probabilities: ArrayLike, gold: ArrayLike) -> Floats:
    """The Brier score of each row (n,): squared distances to the true label, summed, in [0, 2] (Brier 1950)."""
    p, y = np.asarray(probabilities, np.float64), np.asarray(gold, np.int64)
    return np.asarray(((p - np.eye(p.shape[1])[y]) ** 2).sum(1))


def log_loss(probabilities: ArrayLike, gold: ArrayLike) -> float:
    """Mean of -ln p(gold), nats; a probability of 0 counts as FLOOR."""
    return float(log_losses(probabilities, gold).mean()) if len(np.asarray(gold)) else math.nan


def log_losses(probabilities: ArrayLike, gold: ArrayLike) -> Floats:
    """-ln p(gold) of each row (n,), nats; a probability below FLOOR counts as FLOOR."""
    p, y = np.asarray(probabilities, np.float64), np.asarray(gold, np.int64)
    return np.asarray(-np.log(np.maximum(p[np.arange(len(y)), y], FLOOR)))


def floored_told(probabilities: ArrayLike, gold: ArrayLike) -> str:
    """A caveat of a mean log loss if gold had a probability of 0; "" otherwise."""
    p, y = np.asarray(probabilities, np.float64), np.asarray(gold, np.int64)
    lost = int((p[np.arange(len(y)), y] < FLOOR).sum())
    told = f"of {counted(lost, 'row')} whose gold has probability 0, which counts as {FLOOR:g}"
    return f"log loss is cut off at {-math.log(FLOOR):.1f} nats: {told}" if lost else ""


class Recalibration(Protocol):
    """A fitted map from probabilities (n, K) to probabilities (n, K)."""

    def __call__(self, probabilities: Floats) -> Floats:
        """The recalibrated probabilities."""
        ...


HIGHEST = 400.0  # a temperature; beyond, all labels are as likely, whatever the probabilities were


@dataclass(frozen=True, slots=True)
class Temperature:
    """Probabilities raised to 1/`temperature` and renormalised: above 1 the judge was too sure."""

    temperature: float

    def __call__(self, probabilities: Floats) -> Floats:
        """The recalibrated probabilities (n, K)."""
        logits = np.log(np.maximum(probabilities, FLOOR)) / self.temperature
        powers = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(powers / powers.sum(1, keepdims=True))


def fit_temperature(probabilities: Floats, gold: Codes) -> Temperature:
    """The temperature of least log loss, between 1/50 and 400 (Guo et al. 2017)."""
    from scipy.optimize import minimize_scalar

    probabilities, gold = _enough(probabilities, gold)

    found = minimize_scalar(
        lambda log_t: log_loss(Temperature(math.exp(log_t))(probabilities), gold),
        bounds=(-4, math.log(HIGHEST) + 0.01),
        method="bounded",
    )
    return Temperature(math.exp(float(found.x)))


def temperature_estimate(probabilities: Floats, gold: Codes, level: float, cluster: Codes | None = None) -> Estimate:
    """The temperature with a sandwich interval: normal in its inverse, errors summed within clusters (n,)."""
    fitted = fit_temperature(probabilities, gold).temperature
    p, y = _enough(probabilities, gold)
    step = -(-len(gold) // _MOST_ROWS) if len(gold) else 1
    logits = np.log(np.maximum(p, FLOOR))
    q = Temperature(fitted)(p)
    mean = (q * logits).sum(1)
    curve = float(((q * logits**2).sum(1) - mean**2).sum())
    if curve <= 0:
        return Estimate(fitted, len(y), level=level, note="the probabilities do not discriminate between labels")
    parts = (logits[np.arange(len(y)), y] - mean) / curve
    half = z_of(level) * error_of(parts, None if cluster is None else cluster[::step]).error
    slow, fast = 1 / fitted - half, 1 / fitted + half
    return Estimate(fitted, len(y), 1 / fast, 1 / slow if slow > 0 else math.inf, level, "sandwich")


def temperature_told(found: Estimate) -> str:
    """The temperature in words; only its lower bound if the probabilities may say nothing about gold."""
    rows = counted(found.n, "row")
    if math.isinf(found.high) or found.value > HIGHEST:
        least = f"at least {found.low:.3f}, with no upper end" if math.isfinite(found.low) else "without an upper end"
        return f"temperature on {rows}: {least}; the probabilities may say nothing about gold"
    return f"temperature on {rows}: {found:.3f} (above 1: overconfident)"


@dataclass(frozen=True, slots=True, eq=False)
class Ordinal:
    """Cumulative logits on the expected score: P(gold <= k) = sigmoid(cuts[k] - slope * expected)."""

    cuts: Floats
    slope: float
    values: Floats

    def __call__(self, probabilities: Floats) -> Floats:
        """The recalibrated probabilities (n, K)."""
        return _cumulative(probabilities @ self.values, self.cuts, self.slope)


def fit_ordinal(probabilities: Floats, gold: Codes) -> Ordinal:
    """Ordinal recalibration (McCullagh 1980, proportional odds) by maximum likelihood, slope and K - 1 cuts.

    A weak penalty (1e-3 on squared parameters) keeps labels that never occur at a finite, small probability.
    """
    from scipy.optimize import minimize

    probabilities, gold = _enough(probabilities, gold)
    labels = probabilities.shape[1]
    values = np.arange(labels, dtype=np.float64)
    x = probabilities @ values
    centre, spread = float(x.mean()), float(x.std()) or 1.0
    z = (x - centre) / spread
    shares = np.clip(np.cumsum(np.bincount(gold, minlength=labels))[:-1] / len(gold), 0.01, 0.99)
    first = np.log(shares / (1 - shares))
    start = np.concatenate([[1.0, first[0]], np.log(np.maximum(np.diff(first), 1e-3))])

    def cost(theta: Floats) -> float:
        p = _cumulative(z, _cuts(theta), theta[0])
        return log_loss(p, gold) + 1e-3 * float(theta @ theta) / len(gold)

    theta = minimize(cost, start, method="L-BFGS-B").x
    slope = float(theta[0]) / spread
    return Ordinal(_cuts(theta) + slope * centre, slope, values)


def _enough(probabilities: Floats, gold: Codes) -> tuple[Floats, Codes]:
    """Evenly spaced rows, at most 5,000, which is enough for a few parameters."""
    step = -(-len(gold) // _MOST_ROWS) if len(gold) else 1
    return probabilities[::step], gold[::step]


def _cuts(theta: Floats) -> Floats:
    return np.asarray(theta[1] + np.concatenate([[0.0], np.cumsum(np.exp(theta[2:]))]))


def _cumulative(x: Floats, cuts: Floats, slope: float) -> Floats:
    below = 1 / (1 + np.exp(-np.clip(cuts[None, :] - slope * x[:, None], -500, 500)))
    edges = np.concatenate([np.zeros((len(x), 1)), below, np.ones((len(x), 1))], axis=1)
    return np.maximum(np.diff(edges, axis=1), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """A rising step map from scores to gold, linear between the knots and constant beyond them."""

    at: Floats
    to: Floats

    def __call__(self, scores: ArrayLike) -> Floats:
        """The fitted gold (n,) of scores (n,)."""
        return np.interp(np.asarray(scores, np.float64), self.at, self.to)


def fit_isotonic(scores: ArrayLike, gold: ArrayLike) -> Isotonic:
    """Least-squares rising fit of gold on scores (pool adjacent violators); equal scores are one knot."""
    from scipy.optimize import isotonic_regression

    x, y = np.asarray(scores, np.float64), np.asarray(gold, np.float64)
    if len(x) == 0:
        raise ValueError("an isotonic fit needs at least one pair")
    at, codes, sizes = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(codes.ravel(), y) / sizes
    return Isotonic(at, np.asarray(isotonic_regression(means, weights=sizes.astype(np.float64)).x))


def folds_of(n: int, folds: int, rng: np.random.Generator, cluster: Codes | None = None) -> Codes:
    """A fold (n,) for each row at random; rows of a cluster share theirs."""
    groups = np.arange(n) if cluster is None else cluster
    count = int(groups.max(initial=-1)) + 1
    return np.asarray(rng.permutation(np.arange(count) % folds)[groups])


def fitted_by_family(fold: Codes, family: Codes, *, least: int = LEAST_OF_FAMILY) -> NDArray[np.bool_]:
    """Rows (n,) whose family (n,) has at least `least` rows in the other folds; -1 is no family."""
    own = np.zeros(len(fold), bool)
    for name in np.unique(family[family >= 0]):
        mine = family == name
        sizes = np.bincount(fold[mine], minlength=int(fold.max(initial=0)) + 1)
        own |= mine & (int(mine.sum()) - sizes[fold] >= least)
    return own


def fitted_by_slice(fold: Codes, family: Codes | None) -> tuple[Codes | None, str]:
    """The slices (n,) to fit by, None where none is large enough; and a note on rows that use the fit on all slices."""
    if family is None:
        return None, ""
    own = fitted_by_family(fold, family)
    if not own.any():
        return None, f"no fit by slice: no slice has {LEAST_OF_FAMILY} labelled rows in the other folds"
    rest = int((~own).sum())
    told = (
        f"by slice: {counted(rest, 'row')} of {len(own):,} use the fit on all slices, since their slice has fewer than "
        f"{LEAST_OF_FAMILY} labelled rows in the other folds"
    )
    return family, told if rest else ""


def cross_fitted(
    fit: Callable[[NDArray[np.bool_]], Callable[[NDArray[np.bool_]], Floats]],
    fold: Codes,
    family: Codes | None = None,
    *,
    least: int = LEAST_OF_FAMILY,
) -> Floats:
    """Predictions for every row from a fit on rows of other folds; per family where it has `least` other rows.

    `fit(rows)` learns from the rows of a mask and returns a map that predicts for the rows of another mask. Rows that
    `fitted_by_family` leaves out use the fit on all families.
    """
    out: Floats | None = None
    own = np.zeros(len(fold), bool) if family is None else fitted_by_family(fold, family, least=least)
    for each in np.unique(fold):
        train, test = fold != each, fold == each
        parts = [(test, fit(train))]
        if family is not None:
            parts += [
                (test & (family == name), fit(train & (family == name))) for name in np.unique(family[test & own])
            ]
        for mask, prediction in parts:
            found = prediction(mask)
            if out is None:
                out = np.full((len(fold), *found.shape[1:]), np.nan)
            out[mask] = found
    if out is None:
        raise ValueError("there are no rows to fit")
    return out
