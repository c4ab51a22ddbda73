"""`python -m benchmarks.rubric_floor --n 2000`: how far a judge gets on worlds of version 4 that ignores the rubric.

For each domain and split: the share of wrong claims that the rubric does not weigh; Pearson's correlation of gold with
scores that ignore the rubric (share of wrong claims, their severities, length in words); and contrast pairs: two
rubrics of one response that score it differently. Also the shares of responses at the best level that lose no point
under their rubric, and in which nothing is wrong, weighed or not.
"""

import argparse
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dikast.core.errors import UserError
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.held_out import HELD_OUT_DOMAIN
from dikast.worlds.sampling.response import count_words
from dikast.worlds.settings import Settings

SPLITS = ("fresh", "wordings", "combinations", "aspects", "operators", "longer2", "longer3")
_FAR = 5


def goodness(sample: Sample) -> float:
    """Gold as its share of the way from the worst level to the best."""
    return 1 - sample.levels[0] / len(sample.spec.cuts)


def unweighed(samples: Sequence[Sample]) -> float:
    """The share of wrong claims that no term of the rubric covers."""
    covered = [
        any(term.covers(claim) for term in sample.spec.terms)
        for sample in samples
        for claim, found in zip(sample.responses[0].claims, sample.graded[0].findings, strict=True)
        if found.metric
    ]
    return 1 - float(np.mean(covered))


def ignoring(samples: Sequence[Sample]) -> dict[str, float]:
    """Pearson's correlation of gold with each score that ignores the rubric."""
    off = [[min(found.metric, _FAR) for found in sample.graded[0].findings] for sample in samples]
    scores = {
        "share": [-float(np.mean(np.array(each) > 0)) for each in off],
        "severity": [-float(sum(each)) for each in off],
        "length": [float(count_words(sample.responses[0].text)) for sample in samples],
    }
    good = [goodness(sample) for sample in samples]
    return {name: float(np.corrcoef(good, score)[0, 1]) for name, score in scores.items()}


def contrasts(samples: Sequence[Sample]) -> int:
    """The number of contrast pairs; 0 where each response has one rubric, as in drawn pictures."""
    families: dict[str, list[float]] = {}
    for sample in samples:
        families.setdefault(sample.shown or sample.id, []).append(goodness(sample))
    return sum(a != b for family in families.values() for a, b in combinations(family, 2))


def flawless(samples: Sequence[Sample]) -> float:
    """Of the responses at the best level, the share that loses no point under its rubric."""
    return float(np.mean([sample.graded[0].penalty == 0 for sample in samples if sample.levels[0] == 0]))


def spotless(samples: Sequence[Sample]) -> float:
    """Of the responses at the best level, the share in which no claim is wrong and nothing that a rubric may count."""
    best = [sample.graded[0] for sample in samples if sample.levels[0] == 0]
    return float(np.mean([not any(f.metric for f in each.findings) and not any(each.counts.values()) for each in best]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rubric_floor", description=__doc__)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--domains", default=",".join(DOMAINS))
    given = parser.parse_args()
    titles = (
        "domain",
        "split",
        "n",
        "not weighed",
        "share",
        "severity",
        "length",
        "contrast pairs",
        "best without loss",
        "best with nothing wrong",
    )
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|")
    for domain in given.domains.split(","):
        for split in ("domain",) if domain == HELD_OUT_DOMAIN else SPLITS:
            try:
                samples = list(make(Settings(domain, split, given.seed, version=4), given.n))
            except UserError:  # a split that this domain cannot have
                continue
            found = " | ".join(f"{value:.2f}" for value in ignoring(samples).values())
            told = f"{unweighed(samples):.0%} | {found} | {contrasts(samples):,} | {flawless(samples):.0%}"
            told += f" | {spotless(samples):.0%}"
            print(f"| {domain} | {split} | {given.n:,} | {told} |", flush=True)


if __name__ == "__main__":
    main()
