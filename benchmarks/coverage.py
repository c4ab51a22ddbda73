"""How often the intervals of an audit hold the truth: 1,000 simulations of each. `python -m benchmarks.coverage`.

At a level of 95 % an interval should do so in 93 to 97 % of simulations. `APPROXIMATE` names those that do not; the
audit says so under the tables they stand in. `tests/audit/test_audit_coverage.py` holds further ones and repeats a
sample of these.
"""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import rows_table
from dikast.audit.estimate import Estimate
from dikast.audit.sections.label_probabilities import Distributions, calibration_table, readout_table
from dikast.audit.sections.raters import raters_table
from dikast.audit.sections.score_intervals import Centres, conformal_table
from dikast.audit.sections.scores import spread_of
from dikast.audit.statistics import calibration as cal
from dikast.audit.statistics.against_gold import measures
from dikast.audit.statistics.against_gold.chance import CHANCE, by_chance
from dikast.audit.statistics.against_gold.classes import class_estimates
from dikast.audit.statistics.against_gold.measures import mean_over_pairs, measure
from dikast.audit.statistics.alt_test import alt_test
from dikast.audit.statistics.claim_agreement import f1_of
from dikast.audit.statistics.drift import drift
from dikast.audit.statistics.intervals import Resampling, share
from dikast.audit.statistics.length_bias import length_slope
from dikast.audit.statistics.paired_comparison.ranking import Bouts, rank_players
from dikast.audit.statistics.ppi import multiplier_estimate, ppi_difference, ppi_mean, rogan_gladen
from dikast.core.scale import Scale

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Rng = np.random.Generator
HOW = Resampling(500)
FIVE = Scale.parse("1-5")
LOW, HIGH = 0.93, 0.97


class Seen(NamedTuple):
    """An interval and the truth it is about."""

    found: Estimate
    truth: float


Draw = Callable[[Rng], Mapping[str, Seen]]
Simulation = Callable[[], Draw]  # builds what is needed once, such as the truth in a large population


def _normal(rng: Rng, n: int, r: float) -> tuple[Floats, Floats]:
    x = rng.normal(size=n)
    return x, r * x + math.sqrt(1 - r**2) * rng.normal(size=n)


def _in_clusters(rng: Rng, groups: int, size: int, r: float, within: float = 0.5) -> tuple[Floats, Floats, Codes]:
    """Gold and judged with correlation r, of which a share `within` of the variance is the cluster's."""
    cluster = np.repeat(np.arange(groups), size)
    shared, own = _normal(rng, groups, r), _normal(rng, groups * size, r)
    gold, judged = (
        math.sqrt(within) * a[cluster] + math.sqrt(1 - within) * b for a, b in zip(shared, own, strict=True)
    )
    return gold, judged, cluster


def _labelled_first(cluster: Codes, chosen: NDArray[np.bool_]) -> Codes:
    return np.concatenate([cluster[chosen], cluster[~chosen]])


def clustered_ppi() -> Draw:
    """Whole clusters labelled; some rows of every cluster labelled; two systems on the same items."""

    def draw(rng: Rng) -> Mapping[str, Seen]:
        gold, judged, cluster = _in_clusters(rng, 240, 4, 0.8)
        whole, some = cluster < 40, rng.random(len(gold)) < 0.15
        found = {}
        for name, chosen in (("whole clusters", whole), ("rows of all clusters", some)):
            parts = gold[chosen], judged[chosen] + 0.3, judged[~chosen] + 0.3
            codes = _labelled_first(cluster, chosen)
            found[f"PPI++ by cluster, {name} labelled"] = Seen(ppi_mean(*parts, 0.95, codes), 0.0)
            other = 0.6 * gold + 0.8 * rng.normal(size=len(gold)) + 0.4
            said = 0.7 * other + 0.5 * rng.normal(size=len(gold))
            second = other[chosen], said[chosen], said[~chosen]
            less = ppi_difference(second, parts, 0.95, (codes, codes))
            found[f"PPI++ difference by cluster, {name} labelled"] = Seen(less, 0.4)
            right, says = gold > 0.5, (judged > 0.4).astype(np.float64)
            binary = right[chosen].astype(np.float64), says[chosen], says[~chosen]
            truth = 0.5 * math.erfc(0.5 / math.sqrt(2))
            found[f"Rogan-Gladen by cluster, {name} labelled"] = Seen(rogan_gladen(*binary, 0.95, codes), truth)
        return found

    return draw


def label_worth() -> Draw:
    """What a label is worth beside the verdicts, from the bootstrap of r."""

    def draw(rng: Rng) -> Mapping[str, Seen]:
        gold, judged = _normal(rng, 150, 0.7)
        truth = 1 / (1 - 0.7**2 * 1500 / 1650)
        return {"worth of a label": Seen(multiplier_estimate(gold, judged, 1500, HOW), truth)}

    return draw


def temperature() -> Draw:
    """Gold is drawn from the probabilities at temperature 1.7; in clusters, four rows share logits and luck."""

    def read(rng: Rng, groups: int, size: int) -> tuple[Floats, Codes, Codes]:
        cluster = np.repeat(np.arange(groups), size)
        logits = 2.5 * rng.normal(size=(groups, 5))[cluster]
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        true = cal.Temperature(1.7)(p).cumsum(1)
        gold = (true < rng.random(groups)[cluster][:, None]).sum(1).clip(max=4)
        return p, gold, cluster

    def draw(rng: Rng) -> Mapping[str, Seen]:
        found = {}
        for n in (100, 500):
            p, gold, _ = read(rng, n, 1)
            found[f"temperature, {n} rows"] = Seen(cal.temperature_estimate(p, gold, 0.95), 1.7)
        p, gold, cluster = read(rng, 100, 4)
        found["temperature, 100 clusters"] = Seen(cal.temperature_estimate(p, gold, 0.95, cluster), 1.7)
        return found

    return draw


def _continuous(rng: Rng, n: int) -> tuple[Floats, Floats]:
    gold = rng.uniform(1, 5, n)
    return np.clip(gold + rng.normal(0, 0.8, n), 1, 5), gold


def woodruff() -> Draw:
    """Width and coverage of conformal intervals around scores of 200 rows, alone and in 60 clusters of 4."""
    centre, gold = _continuous(np.random.default_rng(0), 1_000_000)
    radius = float(np.quantile(np.abs(gold - centre), 0.9))
    truth = float((np.minimum(centre + radius, 5) - np.maximum(centre - radius, 1)).mean())

    def row(centre: Floats, gold: Floats, cluster: Codes | None) -> dict[str, object]:
        table = conformal_table(Centres(centre, None, FIVE), gold, HOW, cluster, None)
        if table is None:
            raise ValueError("too few rows")
        return dict(table["all"])

    def draw(rng: Rng) -> Mapping[str, Seen]:
        found = {}
        base, cluster = _continuous(rng, 60), np.repeat(np.arange(60), 4)
        together = base[0][cluster], base[1][cluster]
        for name, pair, codes in (("", _continuous(rng, 200), None), (", 60 clusters", together, cluster)):
            cells = row(*pair, codes)
            for column, value in (("width", truth), ("coverage", 0.9)):
                cell = cells[column]
                if isinstance(cell, Estimate):
                    found[f"conformal {column}{name}"] = Seen(cell, value)
        return found

    return draw


def _judge(rng: Rng, n: int) -> tuple[Floats, Codes]:
    """Probabilities of five labels that are too sure (the true ones at temperature 1.7), and gold."""
    logits = -((np.arange(5) - rng.uniform(0, 4, n)[:, None]) ** 2) * rng.uniform(0.3, 2, n)[:, None]
    p = np.exp(logits)
    p /= p.sum(1, keepdims=True)
    return p, (cal.Temperature(1.7)(p).cumsum(1) < rng.random((n, 1))).sum(1).clip(max=4)


def probabilities() -> Draw:
    """Sets of labels, ECE, and what is fitted on other rows, on 300 rows.

    The truth about fits is what such fits give on average: the mean over 200 tables alike.
    """
    p, _ = _judge(np.random.default_rng(1), 200_000)
    right, sure = cal.Temperature(1.7)(p)[np.arange(len(p)), p.argmax(1)], p.max(1)
    known = {
        "ECE as read": float(np.abs(right - sure).mean()),
        "accuracy of the surest 40 %": float(right[sure >= np.quantile(sure, 0.6)].mean()),
    }

    def told(rng: Rng, how: Resampling) -> dict[str, Estimate]:
        p, gold = _judge(rng, 300)
        read, values = Distributions(p, np.ones(len(p)), FIVE), gold.astype(np.float64) + 1
        sets = conformal_table(Centres(read.expected, read, FIVE), values, how, None, None)
        fits = calibration_table(read, values, how, None, None)
        views = readout_table(read, values, how, None, None)
        if sets is None or fits is None:
            raise ValueError("too few rows")
        kept = np.argsort(-read.labels.confidence(read.probabilities), kind="stable")[:120]
        return {
            "labels in a conformal set": sets.estimate("all", "labels in a set"),
            "ECE as read": fits.estimate("as read", "ECE"),
            "log loss at the temperature fitted on other rows": fits.estimate("temperature", "log loss"),
            "MAE of isotonic scores fitted on other rows": views.estimate("expected, isotonic (cross-fitted)", "mae"),
            "accuracy of the surest 40 %": share((read.mode == values)[kept], 0.95),
        }

    def draw(rng: Rng) -> Mapping[str, Seen]:
        return {name: Seen(each, truth[name]) for name, each in told(rng, HOW).items()}

    alike = [
        told(np.random.default_rng((1, i)), Resampling(1)) for i in range(200)
    ]  # their values, which nothing draws
    truth = {name: float(np.mean([each[name].value for each in alike])) for name in alike[0]} | known
    return draw


def _labels(rng: Rng, n: int, raters: int = 2) -> Floats:
    """Ratings 1-5 of the same items, (raters, n)."""
    true = rng.normal(3, 1, n)
    return np.clip(np.round(true + 0.8 * rng.normal(size=(raters, n))), 1, 5)


def discrete() -> Draw:
    """What stands beside the headlines of scores on 1-5: baselines, classes, discrimination; 200 rows."""
    score, gold = _labels(np.random.default_rng(2), 1_000_000)
    one = Resampling(1)
    truth = {f"at random: {name}": by_chance(name, score, gold, 0.95).value for name in CHANCE}
    truth |= {f"classes: {name}": each.value for name, each in class_estimates(score, gold, one).items()}
    truth["discrimination"] = spread_of(score, FIVE, one, None).value

    def draw(rng: Rng) -> Mapping[str, Seen]:
        score, gold = _labels(rng, 200)
        found = {f"at random: {name}": by_chance(name, score, gold, 0.95) for name in CHANCE}
        found |= {f"classes: {name}": each for name, each in class_estimates(score, gold, HOW).items()}
        found["discrimination"] = spread_of(score, FIVE, HOW, None)
        return {name: Seen(each, truth[name]) for name, each in found.items()}

    return draw


def binned() -> Draw:
    """Continuous scores whose interval is drawn from bins, as above 20,000 rows (here 400, for speed)."""
    names = ("pearson", "spearman", "kendall_tau_b", "mae")
    truth = (0.5, 6 / math.pi * math.asin(0.25), 1 / 3, 2 / math.sqrt(math.pi) * math.sqrt(0.5))

    def draw(rng: Rng) -> Mapping[str, Seen]:
        with patch.object(measures, "_MANY", 100):
            found = measure(*_normal(rng, 400, 0.5), names, HOW)
        return {f"binned: {name}": Seen(found[name], value) for name, value in zip(names, truth, strict=True)}

    return draw


def few_systems() -> Draw:
    """Correlations over systems, which are few: the bootstrap of 10 and of 30."""
    names = ("pearson", "spearman", "kendall_tau_b")
    truth = (0.8, 6 / math.pi * math.asin(0.4), 2 / math.pi * math.asin(0.8))

    def draw(rng: Rng) -> Mapping[str, Seen]:
        found: dict[str, Seen] = {}
        for n in (10, 30):
            told = measure(*_normal(rng, n, 0.8), names, HOW)
            found |= {f"{n} systems: {name}": Seen(told[name], v) for name, v in zip(names, truth, strict=True)}
        return found

    return draw


def people() -> Draw:
    """Coefficients of three raters, raters against each other, the alt-test and two runs, on 100 items."""
    one = Resampling(1)
    many = _labels(np.random.default_rng(3), 100_000, 4)
    coefficients = [str(row[0]) for row in raters_table(many[:3], one, nominal=False).rows]
    pairs, kinds = [(1, 0), (2, 0), (2, 1)], ["spearman", "exact"]

    def told(ratings: Floats, how: Resampling) -> dict[str, Estimate]:
        table = raters_table(ratings[:3], how, nominal=False)
        found = {f"raters: {name}": table.estimate(name) for name in coefficients}
        between = mean_over_pairs(ratings[:3], pairs, kinds, how)
        found |= {f"rater against rater: {name}": each for name, each in between.items()}
        test = alt_test(ratings[3], ratings[:3], alignment="rmse", how=how)
        found["alt-test: advantage"] = test.advantage
        if test.annotators[0] is not None:
            found["alt-test: judge less annotator"] = test.annotators[0].less
        moved = drift(ratings[0], ratings[1], how=how)
        return found | {"drift: shift": moved.shift, "drift: icc": moved.icc, "drift: changed": moved.changed}

    truth = {name: each.value for name, each in told(many, one).items()}
    truth["drift: shift"] = truth["alt-test: judge less annotator"] = 0.0

    def draw(rng: Rng) -> Mapping[str, Seen]:
        return {name: Seen(each, truth[name]) for name, each in told(_labels(rng, 100, 4), HOW).items()}

    return draw


def players() -> Draw:
    """Strengths of five players from 400 games, a position effect, and Davidson's tie parameter."""
    strength, effect, nu = np.array([-0.8, -0.3, 0.0, 0.3, 0.8]), 0.4, 0.5
    names = [f"m{k}" for k in range(5)]
    few = Resampling(150)

    def draw(rng: Rng) -> Mapping[str, Seen]:
        first = rng.integers(0, 5, 400)
        second = (first + rng.integers(1, 5, 400)) % 5
        slot = rng.choice([-1.0, 1.0], 400)
        gap = strength[first] - strength[second]
        lost = (rng.random(400) > 1 / (1 + np.exp(-gap - effect * slot))).astype(np.int64)
        board = rank_players(Bouts(names, first, second, lost, np.ones(400), slot[:, None]), few, anchor="m2")
        up, down = np.exp(gap / 2), np.exp(-gap / 2)
        shares = (np.column_stack([up, down, np.full(400, nu)]) / (up + down + nu)[:, None]).cumsum(1)
        outcome = (shares < rng.random((400, 1))).sum(1).clip(max=2)
        bouts = Bouts(names, first, second, outcome, np.ones(400), np.zeros((400, 0)))
        davidson = rank_players(bouts, few, model="davidson", anchor="m2")
        return {
            "strength of the best": Seen(board.strength(4), 0.8),
            "chance to beat the anchor": Seen(board.chance(0), 1 / (1 + math.exp(0.8))),
            "effect of a covariate": Seen(board.effect(0), effect),
            "Davidson tie parameter": Seen(davidson.tie, nu),
        }

    return draw


def feedback() -> Draw:
    """F1 of claims over 150 items, and the slope of the error on length."""

    def counts(rng: Rng, n: int) -> Floats:
        due = rng.integers(0, 4, n)
        hits = rng.binomial(due, 0.7)
        return np.column_stack([hits, hits + rng.binomial(2, 0.2, n), due]).astype(np.float64)

    truth = f1_of(counts(np.random.default_rng(4), 1_000_000), Resampling(1)).value

    def draw(rng: Rng) -> Mapping[str, Seen]:
        length = rng.lognormal(4, 1, 150)
        error = 0.1 * np.log2(length) + rng.normal(size=150) * length**0.1
        return {
            "F1 of claims": Seen(f1_of(counts(rng, 150), HOW), truth),
            "slope on length": Seen(length_slope(error, np.zeros(150), length), 0.1),
        }

    return draw


SIMULATIONS: tuple[Simulation, ...] = (
    clustered_ppi, label_worth, temperature, woodruff, probabilities, discrete, binned, few_systems, people, players,
    feedback,
)  # fmt: skip
APPROXIMATE = frozenset(
    {
        "conformal coverage",
        "conformal coverage, 60 clusters",
        "Rogan-Gladen by cluster, whole clusters labelled",
        "ECE as read",
        "MAE of isotonic scores fitted on other rows",
        "10 systems: spearman",
        "10 systems: kendall_tau_b",
    }
)


class Coverage(NamedTuple):
    """Of `n` intervals, how many held the truth; simulations without an interval (all alike) are not counted."""

    name: str
    held: int
    n: int

    @property
    def value(self) -> float:
        """The share."""
        return self.held / self.n if self.n else math.nan


def coverage(simulation: Simulation, times: int, seed: int = 0) -> list[Coverage]:
    """Each figure of a simulation."""
    draw, held, told = simulation(), Counter[str](), Counter[str]()
    for i in range(times):
        for name, (found, truth) in draw(np.random.default_rng((seed, i))).items():
            known = math.isfinite(found.low)
            told[name] += known
            held[name] += known and found.low - 1e-12 <= truth <= found.high + 1e-12
    return [Coverage(name, held[name], told[name]) for name in told]


def main() -> None:
    """Print all; exit with 1 when one that is not named as approximate misses."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="simulations of each")
    parser.add_argument("--only", default="", help=f"some of {', '.join(each.__name__ for each in SIMULATIONS)}")
    given = parser.parse_args()
    missed = False
    for simulation in SIMULATIONS:
        if given.only and simulation.__name__ not in given.only.split(","):
            continue
        rows = [("interval", "held the truth", "intervals", "")]
        for each in coverage(simulation, given.n):
            outside = not LOW <= each.value <= HIGH
            known = each.name in APPROXIMATE
            missed |= outside and not known
            told = "approximate" if known else "OUTSIDE" if outside else ""
            rows.append((each.name, f"{each.value:.1%}", str(each.n), told))
        print(f"{simulation.__name__}: {(simulation.__doc__ or '').splitlines()[0]}\n{rows_table(rows)}\n", flush=True)
    sys.exit(missed)


if __name__ == "__main__":
    main()
