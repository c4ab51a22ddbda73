"""`python -m benchmarks.active_order`: how much narrower an active order of labels makes the interval of a mean.

Labels are drawn again and again, in a random and in an active order, and the mean of gold is estimated from them and
all verdicts, as `dikast annotate` does: how wide are the intervals, and how many hold the truth (95 % should)?
Judges are simulated, or with `--recorded` those of published verdicts with probabilities and human labels. `--raters`:
active orders of raters who are done, or nearly, or have not begun.
"""

import argparse
import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import rows_table
from dikast.annotation.active_order import WEIGHTS, Priority, chances, priorities_of
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.ppi import active_mean, ppi_mean

Floats = NDArray[np.float64]
Weights = tuple[float, float]
LABELS = (30, 100)
# by name: the questions of each rater, and the labels so far
RATERS = {
    "one, midway": ([1000], [100]), "one, done": ([100], [100]), "one, at 49 of 50": ([50], [49]),
    "two, one done, one not begun": ([100, 100], [100, 0]),
    "two, one at 49 of 50, one not begun": ([50, 50], [49, 0]),
    **{f"two, one done, one at {k} of 100": ([100, 100], [100, k]) for k in (1, 5, 10, 20, 50)},
}  # fmt: skip


class Judged(NamedTuple):
    """Gold, verdict and the judge's uncertainty of each item, from 0 to 1, and the mean of gold to be estimated."""

    gold: Floats
    judged: Floats
    spread: Floats
    truth: float


def recorded(path: Path, many: int) -> Callable[[np.random.Generator], Judged]:
    """Samples of `many` of published verdicts on pictures: log-probabilities of 1 to 5, the score, a human label."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["parsed_score"] and row["gt_score"]]
    shares = np.exp([[float(row[f"s2_lp{label}"]) for label in range(1, 6)] for row in rows])
    shares /= shares.sum(axis=1, keepdims=True)
    values = np.linspace(0, 1, 5)
    spread = np.sqrt(np.maximum(0, shares @ values**2 - (shares @ values) ** 2))
    gold, judged = (np.array([(float(row[name]) - 1) / 4 for row in rows]) for name in ("gt_score", "parsed_score"))

    def draw(rng: np.random.Generator) -> Judged:
        at = rng.choice(len(rows), many, replace=True)  # the file stands for all there is: its mean is the truth
        return Judged(gold[at], judged[at], spread[at], float(gold.mean()))

    return draw


def simulated(knows: float, many: int) -> Callable[[np.random.Generator], Judged]:
    """Judges that are too kind; a share `knows` of how far they err is what they say of their uncertainty."""

    def draw(rng: np.random.Generator) -> Judged:
        said, other = rng.gamma(2, 0.5, many), rng.gamma(2, 0.5, many)
        truth = rng.beta(2, 1.5, many)
        gold = truth + 0.12 * (knows * said + (1 - knows) * other) * rng.normal(size=many)
        return Judged(gold, 0.3 + 0.6 * truth, said, 2 / 3.5)

    return draw


def both_orders(given: Judged, n: int, rng: np.random.Generator, weights: Weights) -> tuple[Estimate, Estimate]:
    """The mean from n labels in a random order (PPI++), and in an active one."""
    y, f, at = given.gold, given.judged, rng.permutation(len(given.gold))
    random = ppi_mean(y[at[:n]], f[at[:n]], f[at[n:]])
    return random, active(given, [len(at)], [n], rng, weights)


def active(
    given: Judged, sizes: Sequence[int], done: Sequence[int], rng: np.random.Generator, weights: Weights
) -> Estimate:
    """The mean from `done` labels of each rater, whose questions are `sizes` of those given, in an active order."""
    spread = {str(k): float(each) for k, each in enumerate(given.spread)}
    given_places = priorities_of(list(spread), spread, int(rng.integers(2**31)), weights)
    order = {key: Priority(each.weight, rng.random() / each.weight) for key, each in given_places.items()}
    parts = np.split(rng.permutation(list(order)), np.cumsum(sizes)[:-1])
    mine = [sorted(map(str, part), key=lambda key: order[key].place) for part in parts]
    asked = [(rater, key) for rater, many in enumerate(done) for key in mine[rater][:many]]
    reached = {rater: order[mine[rater][many]].place for rater, many in enumerate(done) if many < len(mine[rater])}
    found = chances(order, asked, reached)
    at = [int(key) for _, key in asked]
    rest = np.setdiff1d(np.arange(len(order)), at)
    return active_mean(given.gold[at], given.judged[at], [found[key] for _, key in asked], given.judged[rest])


def raters_table(draws: int, rng: np.random.Generator, weights: Weights) -> str:
    """Bias, error and coverage in each case of `RATERS`, where items score higher if the judge is certain of them."""
    rows = [("raters", "bias", "root mean square error", "mean half-width", "held the truth", "no interval")]
    for name, (sizes, done) in RATERS.items():
        draw, wrong, half, held = simulated(1.0, sum(sizes)), [], [], []
        for given in map(draw, [rng] * draws):
            given = given._replace(gold=given.gold - 0.15 * (given.spread - 1))
            found = active(given, sizes, done, rng, weights)
            wrong.append(found.value - given.truth)
            if found.low <= found.high:
                half.append(found.half_width)
                held.append(found.low <= given.truth <= found.high)
        error, none = float(np.sqrt(np.mean(np.square(wrong)))), 1 - len(held) / draws
        told = (f"{np.mean(half):.4f}", f"{np.mean(held):.1%}") if held else ("-", "-")
        rows.append((name, f"{np.mean(wrong):+.4f}", f"{error:.4f}", *told, f"{none:.1%}"))
    return rows_table(rows)


def main() -> None:
    """Print, for each number of labels, half-widths, errors and coverage of both orders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recorded", type=Path, help="the folder vlm_judge_uncertainty of the recorded verdicts")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--raters", action="store_true", help="cases of raters, of simulated judges")
    parser.add_argument(
        "--weights", type=float, nargs=2, default=WEIGHTS, metavar=("LEAST", "MOST"), help="of the least and the most "
        "uncertain question (default: %(default)s)",
    )  # fmt: skip
    given = parser.parse_args()
    weights = (given.weights[0], given.weights[1])
    rng = np.random.default_rng(0)
    if given.raters:
        print(raters_table(given.draws, rng, weights))
        return
    if given.recorded is None:
        worlds = {f"simulated, knows {knows:.0%} of its errors": simulated(knows, 1000) for knows in (1.0, 0.5, 0.0)}
    else:
        names = ("llava_critic7b_mllmjudge", "gemini25flash_mllmjudge", "phi4_mllmjudge", "llava_critic7b_polaris")
        worlds = {f"{each}, samples of 1,000": recorded(given.recorded / f"{each}.csv", 1000) for each in names}
    for name, draw in worlds.items():
        rows = [("labels", "order", "mean half-width", "root mean square error", "held the truth")]
        for n in LABELS:
            truths, pairs = zip(
                *((one.truth, both_orders(one, n, rng, weights)) for one in map(draw, [rng] * given.draws)), strict=True
            )
            for at, order in enumerate(("random", "active")):
                found = [pair[at] for pair in pairs]
                wrong = np.array([each.value for each in found]) - np.array(truths)
                held = np.mean([each.low <= truth <= each.high for each, truth in zip(found, truths, strict=True)])
                half = np.mean([each.half_width for each in found])
                rows.append((str(n), order, f"{half:.4f}", f"{np.sqrt(np.mean(wrong**2)):.4f}", f"{held:.1%}"))
        print(f"{name}\n{rows_table(rows)}\n", flush=True)


if __name__ == "__main__":
    main()
