"""What figures of an audit should be, from other libraries where they have them, and by counting where they do not."""

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy import stats

NAN = math.nan
Numbers = Sequence[float]
Exact = Sequence[Fraction]


def fraction(value: float) -> Fraction:
    return Fraction(repr(float(value)))


def mean(values: Exact) -> Fraction:
    return sum(values, Fraction()) / len(values)


def correlation(function: Callable[..., object], x: Exact, y: Exact, **more: str) -> float:
    if len(set(x)) < 2 or len(set(y)) < 2:
        return NAN
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(function([float(a) for a in x], [float(b) for b in y], **more).statistic)  # type: ignore[attr-defined]


def kappa(x: Exact, y: Exact, cost: Callable[[Fraction, Fraction], Fraction]) -> float:
    if not x:
        return NAN
    due = mean([cost(a, b) for a, b in itertools.product(x, y)])
    return float(1 - mean([cost(a, b) for a, b in zip(x, y, strict=True)]) / due) if due else NAN


def ordered(x: Exact, y: Exact) -> float:
    pairs = [(i, j) for i, j in itertools.permutations(range(len(x)), 2) if y[i] > y[j]]
    return float(mean([Fraction((x[i] > x[j]) + (x[i] >= x[j]), 2) for i, j in pairs])) if pairs else NAN


def average(values: Sequence[Fraction | bool]) -> float:
    return float(mean([Fraction(value) for value in values])) if values else NAN


def distances(apart: Exact) -> dict[str, float]:
    """Means over rows of what score less gold is."""
    return {
        "exact": average([each == 0 for each in apart]),
        "within_1": average([abs(each) <= 1 for each in apart]),
        "mae": average([abs(each) for each in apart]),
        "bias": average(apart),
    }


def headlines(x: Exact, y: Exact) -> dict[str, float]:
    """Every statistic of scores x and golds y."""
    return distances([a - b for a, b in zip(x, y, strict=True)]) | {
        "pearson": correlation(stats.pearsonr, x, y),
        "spearman": correlation(stats.spearmanr, x, y),
        "kendall_tau_b": correlation(stats.kendalltau, x, y, variant="b"),
        "kendall_tau_c": correlation(stats.kendalltau, x, y, variant="c"),
        "ordered_pairs": ordered(x, y),
        "cohen_kappa": kappa(x, y, lambda a, b: Fraction(a != b)),
        "quadratic_kappa": kappa(x, y, lambda a, b: (a - b) ** 2),
    }


def at_random(x: Exact, y: Exact) -> dict[str, float]:
    """What pairing all scores with all golds gives."""
    found = distances([a - b for a, b in itertools.product(x, y)])
    return {name: found[name] for name in ("exact", "within_1", "mae")}


def discrimination(x: Exact, labels: int) -> float:
    """Ferguson's delta: the share of ordered pairs (with itself) that differ, over the largest possible."""
    return float(mean([Fraction(a != b) for a, b in itertools.product(x, x)]) / (1 - Fraction(1, labels))) if x else NAN


def icc_2_1(ratings: Sequence[Exact]) -> float:
    """Two-way analysis of variance of complete ratings, one sequence a rater, in fractions."""
    raters, items = len(ratings), len(ratings[0])
    grand, by_item = (
        mean([each for row in ratings for each in row]),
        [mean(column) for column in zip(*ratings, strict=True)],
    )
    by_rater = [mean(row) for row in ratings]
    between = raters * sum((each - grand) ** 2 for each in by_item) / Fraction(max(items - 1, 1))
    rater = items * sum((each - grand) ** 2 for each in by_rater) / Fraction(raters - 1)
    left = sum(
        (ratings[i][j] - by_item[j] - by_rater[i] + grand) ** 2 for i in range(raters) for j in range(items)
    ) / Fraction((raters - 1) * max(items - 1, 1))
    bottom = between + (raters - 1) * left + raters * (rater - left) / items
    return float((between - left) / bottom) if items > 1 and bottom > 0 else NAN


def fleiss(ratings: Sequence[Exact]) -> float:
    """From pairs of ratings of an item, and of all."""
    together = [
        mean([Fraction(a == b) for a, b in itertools.permutations(column, 2)]) for column in zip(*ratings, strict=True)
    ]
    shares = Counter(each for row in ratings for each in row)
    total = sum(shares.values())
    chance = sum(Fraction(count, total) ** 2 for count in shares.values())
    return float((mean(together) - chance) / (1 - chance)) if len(shares) > 1 else NAN


def closer(answer: Fraction, other: Fraction, rest: Exact) -> tuple[int, int]:
    """Whether `answer` is at least as close to the rest as `other`, and the reverse, by mean squared distance."""
    mine, theirs = (mean([(each - one) ** 2 for each in rest]) for one in (answer, other))
    return int(mine <= theirs), int(theirs <= mine)


def ppi(gold: Numbers, judged: Numbers, rest: Numbers) -> float:
    """The power-tuned mean, from its formula."""
    y, f, others = (np.array(each, float) for each in (gold, judged, rest))
    spread = np.var([*f, *others], ddof=1)
    weight = float(np.cov(y, f)[0, 1] / ((1 + len(y) / len(others)) * spread)) if spread > 0 else 0.0
    return float(y.mean() + weight * (others.mean() - f.mean()))
