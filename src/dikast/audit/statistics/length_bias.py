"""Length bias (verbosity bias): scores against the length of the judged response, and means with it held equal."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.intervals import error_of
from dikast.core.confidence import t_of, z_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_FEWEST = 5  # clusters, as if equally telling, that the effect of length may be learnt from
_OPEN = 1e-6  # share of the variance of lengths that systems and questions must leave open, beyond rounding


def length_slope(
    score: ArrayLike,
    gold: ArrayLike,
    length: ArrayLike,
    level: float = 0.95,
    cluster: NDArray[np.int64] | None = None,
) -> Estimate:
    """By how many units of the scale the error (score minus gold) rises when the response is twice as long.

    score, gold, length: arrays (n,), lengths above 0 in any unit. The least-squares slope of the error on log2 length;
    the interval is normal with the heteroscedasticity-robust variance (White 1980), summed over clusters where they are
    given (codes from 0). 0 says that length alone moves nothing: gold may well depend on it.
    """
    x = np.log2(np.asarray(length, np.float64))
    error = np.asarray(score, np.float64) - np.asarray(gold, np.float64)
    n = len(x)
    if n < 3 or np.ptp(x) == 0:
        return undefined(n, "fewer than 3 responses" if n < 3 else "all responses are equally long", level=level)
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ error) / spread
    parts = centred * (error - error.mean() - slope * centred) / spread
    if cluster is not None:
        parts = np.bincount(cluster, parts)
    groups = len(parts)
    if groups < 3:
        return Estimate(slope, n, level=level, note="fewer than 3 clusters")
    half = z_of(level) * math.sqrt(groups / (groups - 1) * float(parts @ parts))
    return Estimate(slope, n, slope - half, slope + half, level, "least squares, robust variance")


def length_controlled_means(
    score: Floats, system: Codes, systems: int, question: Codes, length: Floats, level: float, cluster: Codes
) -> list[Estimate]:
    """The mean score of each system if the responses of all were equally long; a list with one of each system.

    score, length: arrays (n,), lengths in characters from 0; system, question, cluster: codes (n,) from 0. These are
    the adjusted means of an analysis of covariance (Milliken & Johnson, "Analysis of Messy Data", volume III): the
    slope of the score on x = log2(1 + length) is fitted by least squares beside an effect of each question and of each
    system, so it is learnt only from responses to the same question, as in length-controlled AlpacaEval (Dubois et al.
    2024, who do so for win rates); then `mean - slope * (mean x of the system - mean x of all)`. The interval is
    Student's, from the linearised estimate summed over clusters, with as many degrees of freedom as there are clusters
    that the slope is learnt from, less one (Kish's effective number, by their share in its variance). Not cut to the
    scale. Undefined where systems and questions leave no length to learn from, or fewer than 5 such clusters do.
    """
    x, n = np.log2(1 + length), len(score)
    sizes = np.bincount(system, minlength=systems)
    effect = _effect_of(x, score, system, systems, question, cluster)
    if isinstance(effect, str):
        return [undefined(int(size), effect, level=level) for size in sizes]
    slope, of_slope, telling = effect
    found = []
    for code, size in enumerate(sizes):
        mine = system == code
        if not size:
            found.append(undefined(0, "no observations", level=level))
            continue
        mean, middle = float(score[mine].mean()), float(x[mine].mean())
        apart = middle - float(x.mean())
        parts = np.where(mine, score - mean - slope * (x - middle), 0) / size
        parts += slope * (x - x.mean()) / n - apart * of_slope
        free = min(telling, len(np.unique(cluster[mine]))) - 1
        half = t_of(level, free) * error_of(parts, cluster).error if free else math.nan
        value = mean - slope * apart
        found.append(Estimate(value, int(size), value - half, value + half, level, "analysis of covariance"))
    return found


def length_controlled_lead(
    score: Floats, system: Codes, systems: int, question: Codes, length: Floats, level: float, cluster: Codes,
    pair: tuple[int, int],
) -> Estimate:  # fmt: skip
    """By how much the first system of `pair` scores higher than the second if their responses were equally long.

    The paired difference over the clusters in which both answered the same question, each counted once, less the slope
    of `length_controlled_means` (which has the other arguments) times the same difference of x = log2(1 + length). The
    interval is Student's, from the linearised estimate, so it allows for the slope being estimated; `n` is the number
    of these clusters.
    """
    x = np.log2(1 + length)
    effect = _effect_of(x, score, system, systems, question, cluster)
    if isinstance(effect, str):
        return undefined(0, effect, level=level)
    sides = [system == code for code in pair]
    counts = [np.bincount(question[side], minlength=int(question.max()) + 1) for side in sides]
    both = (counts[0] > 0) & (counts[1] > 0)
    of = np.zeros(len(both), np.int64)
    of[question] = cluster
    groups, place = np.unique(of[both], return_inverse=True)
    n = len(groups)
    if n == 0:
        return undefined(0, "no question that both answered", level=level)

    def apart(values: Floats) -> Floats:
        means = [np.bincount(question[side], values[side], len(both))[both] / count[both]
                 for side, count in zip(sides, counts, strict=True)]  # fmt: skip
        return np.asarray(np.bincount(place, means[0] - means[1], n) / np.bincount(place, minlength=n))

    less, longer = apart(score), apart(x)
    middle = float(longer.mean())
    value = float(less.mean()) - effect.slope * middle
    parts = np.concatenate([(less - effect.slope * longer - value) / n, -middle * effect.of_slope])
    free = min(effect.telling, n) - 1
    error = error_of(parts, np.concatenate([groups, cluster])).error
    half = t_of(level, free) * error if free > 0 else math.nan
    return Estimate(value, n, value - half, value + half, level, "analysis of covariance, paired")


class _Effect(NamedTuple):
    """The slope of the score on x, by how much each row moves it, and how many clusters tell it, as if equally."""

    slope: float
    of_slope: Floats
    telling: float


def _effect_of(x: Floats, score: Floats, system: Codes, systems: int, question: Codes, cluster: Codes) -> _Effect | str:
    """The effect of x on the score beside effects of questions and systems, or why it cannot be told."""
    if len(x) == 0 or np.ptp(x) == 0:
        return "all responses are equally long" if len(x) else "no lengths"
    own = _OfQuestions(question, system, systems)
    rest, left = own.residual(x), own.residual(score)
    spread = float(rest @ rest)
    if spread <= _OPEN * float(np.square(x - x.mean()).sum()):
        return "the effect of length cannot be told from the systems"
    weight = np.bincount(cluster, np.square(rest)) / spread  # the share of each cluster in what is learnt
    telling = 1 / float(weight @ weight)
    if round(telling, 6) < _FEWEST:
        return "too few prompts tell the effect of length"
    slope = float(rest @ left) / spread
    return _Effect(slope, rest * (left - slope * rest) / spread, telling)


class _OfQuestions:
    """Rows of systems that answered the same questions, for least squares with an effect of each of both."""

    def __init__(self, question: Codes, system: Codes, systems: int) -> None:
        self._question, self._system = question, system
        self._count = np.bincount(question)
        table = np.zeros((len(self._count), systems))
        np.add.at(table, (question, system), 1)
        self._shares = table / np.maximum(self._count, 1)[:, None]  # of the rows of a question, those of each system
        self._inverse = np.linalg.pinv(np.diag(table.sum(0)) - table.T @ self._shares, hermitian=True)

    def residual(self, values: Floats) -> Floats:
        """What effects of questions and systems leave of values (n,)."""
        middle = np.bincount(self._question, values) / np.maximum(self._count, 1)
        inside = values - middle[self._question]
        effect = self._inverse @ np.bincount(self._system, inside, len(self._inverse))
        return np.asarray(inside - effect[self._system] + (self._shares @ effect)[self._question])
