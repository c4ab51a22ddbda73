"""`python -m benchmarks.rubrics --seed 0`: a nano judge taught with 1,000 rubrics against one taught with 12 coarse ones.

As in the ablation of Prometheus (Kim et al. 2024), at equal tokens. Both learn from what `dikast corpus build` makes of
the recipe `feedback` with the text world as teacher; they differ in the rubrics alone.

- `fine`: 1,000 rubrics. Each weighs facts, ages or sums, or sums with one of the others, with points of its own for a
  mistake in each, and thresholds of its own between the five levels.
- `coarse`: 12 rubrics that fit any answer and single out nothing: everything at once, one point a mistake, three
  ladders of thresholds in four wordings each.

Both are tried on rubrics that neither has seen: `wordings`, fine rubrics in phrases that were held out, and
`combinations`, which also weigh facts and ages without sums, which no rubric of either training set does; and on fresh
answers under rubrics like their own. A run that was stopped goes on where it was.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dikast.audit.estimate import Estimate
from dikast.audit.feedback import ClaimVerdict, claims_of, feedback_scores
from dikast.audit.intervals import Resampling
from dikast.audit.measures import measure
from dikast.core.item import Item
from dikast.core.records import read_items, write_items
from dikast.core.rubric import Rubric
from dikast.core.verdict import Status
from dikast.corpus.build import build
from dikast.corpus.recipe import Recipe
from dikast.corpus.world_teacher import WorldTeacher
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.prompts.format import load_format
from dikast.prompts.gold import gold_of
from dikast.training.config import Augment, Config, Data
from dikast.training.scratch import Shape, new_judge
from dikast.training.sft import sft
from dikast.worlds.gold import Spec
from dikast.worlds.rubrics import rubric_of

SHAPE = Shape(width=128, layers=3, heads=4, inner=384, seeing_layers=1, vocabulary=800, context=1024)
SEEN = ((1, 0), (2, 0), (3, 0), (0, 1), (0, 2), (0, 3), (1, 2), (2, 1), (1, 3), (3, 1))  # points for facts, for ages
UNSEEN = ((2, 3), (3, 2))
_SEEN, _ALL = (7, 3, 3, 2), (10, 4, 4, 3)  # openings, costs, levels, names: the first ones are shown in training
WORDINGS = ((0, 0, 0, 0), (1, 1, 1, 1), (3, 2, 2, 0), (5, 0, 1, 1))
LADDERS = ((0, 1, 2, 3), (1, 2, 3, 4), (0, 1, 2, 4))  # most mistakes of each level but the worst
HOW = Resampling(1000, 0.95, 0)


def fine(n: int, seed: int, weights: Sequence[tuple[int, int]], *, held_out: bool) -> list[Spec]:
    """`n` rubrics, no two alike, with these weights, in wordings that training shows or in others."""
    rng = random.Random(f"{seed} {weights} {held_out}")
    found: dict[str, Spec] = {}
    while len(found) < n:
        points = rng.choice(weights)
        most = 5 if 0 in points else 3  # mistakes of a kind
        reachable = sorted({a * points[0] + b * points[1] for a, b in product(range(most + 1), repeat=2)})
        cuts = tuple(sorted(rng.sample(reachable[:-1], 4)))
        low, high = (_SEEN, _ALL) if held_out else ((0, 0, 0, 0), _SEEN)
        wording = [rng.randrange(a, b) for a, b in zip(low, high, strict=True)]
        spec = _spec(points, cuts, tuple(wording))
        found.setdefault(rubric_of(spec).hash, spec)
    return list(found.values())


def coarse() -> list[Spec]:
    """Twelve rubrics that weigh everything alike."""
    return [_spec((1, 1), cuts, wording) for cuts in LADDERS for wording in WORDINGS]


def _spec(points: tuple[int, int], cuts: tuple[int, ...], wording: tuple[int, ...]) -> Spec:
    weights = tuple((name, n) for name, n in zip(("fact", "number"), points, strict=True) if n)
    return Spec(weights, False, cuts, "1-5", False, wording)


class Experiment:
    """One seed: its data, its two judges, its figures."""

    def __init__(self, out: Path, seed: int, rows: int) -> None:
        self.out, self.seed, self.rows = out / f"seed-{seed}", seed, rows

    def built(self, name: str, specs: Sequence[Spec], rows: int, seed: int) -> list[Item]:
        """At least `rows` rows under these rubrics, without the reference answers, shuffled by seed."""
        each = -(-rows // (5 * len(specs)))
        recipe = Recipe("feedback", "world:text", seed=seed, rubrics=len(specs), instructions=each, regrade=False, rounds=1)
        teacher = WorldTeacher("text", seed=seed, per_rubric=each, specs=specs, split="all")
        folder = self.out / name
        built = build(recipe, folder, teacher=teacher)
        assert built.items >= rows, built
        items = [replace(item, reference=None) for item in read_items(folder / "items.jsonl")]
        random.Random(seed).shuffle(items)
        return items


def main() -> None:
    pass


if __name__ == "__main__":
    main()
