"""Pairs with known preferences, from scores or from people's comparisons."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.item import Item
from dikast.core.part import Content
from dikast.core.rubric import Rubric, Sheet
from dikast.core.scale import Scale
from dikast.corpus.observations import Observed, observations
from dikast.corpus.schemas.public_schema import gold_of

_DIGITS = 9  # rounding, so that 4.2 - 3.6 equals .6


@dataclass(slots=True)
class Side:
    """One response with every score it was given. `gold` is its own gold, apart from the pair."""

    response: Content
    item: Item
    gold: Mapping[str, Any]
    scores: list[float] = field(default_factory=list)
    scales: set[Scale | None] = field(default_factory=set)
    rubrics: dict[str, Rubric | Sheet] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean score, in points of its scale."""
        return fmean(self.scores)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two responses to one instruction. `better` is 0, 1 or None for a tie; `gap` in points, None if from people."""

    sides: tuple[Side, Side]
    better: int | None
    gap: float | None = None


def from_scores(path: Path, gap: float, dropped: Counter[str]) -> Iterator[list[Pair]]:
    """The pairs of each instruction, whose rows are consecutive, by the mean score of each response.

    A response may have several scores: several rows (under one rubric or several), or `raters` or `scores` in its gold.
    Pairs are kept if their means differ by more than `gap` points of the scale, or not at all. Pairs that cannot be
    compared are counted in `dropped`.
    """
    for _, rows in groupby(observations(path), key=_asked):
        sides = _sides(rows, dropped)
        found = []
        for one, two in combinations(sides, 2):
            if one.scales != two.scales or len(one.scales) > 1:
                dropped["scored on different scales"] += 1
                continue
            if one.rubrics.keys() != two.rubrics.keys():
                dropped["scored by different criteria"] += 1
                continue
            scale = next(iter(one.scales))
            apart = round(one.mean - two.mean, _DIGITS) * (-1 if scale and scale.lower_is_better else 1)
            if 0 < abs(apart) <= gap:
                dropped[f"at most {gap:g} points apart"] += 1
                continue
            found.append(Pair((one, two), None if apart == 0 else int(apart < 0), abs(apart)))
        if found:
            yield found


def from_people(path: Path, dropped: Counter[str]) -> Iterator[list[Pair]]:
    """The pairs of a file whose rows say which of two responses is preferred, in any schema that can express it."""
    for each in observations(path):
        if len(each.item.responses) != 2 or not each.preference:
            dropped["no preference between two responses"] += 1
            continue
        parts = _parts(each)
        sides = [Side(response, each.item, part) for response, part in zip(each.item.responses, parts, strict=True)]
        for side in sides:
            _judged_by(side, each)
        yield [Pair((sides[0], sides[1]), {"a": 0, "b": 1}.get(each.preference))]


def criterion_of(pair: Pair) -> Rubric | None:
    """The criterion of the preference; several criteria combined into one; None if none is known."""
    rubrics: list[Rubric] = []
    for each in pair.sides[0].rubrics.values():
        rubrics += [each] if isinstance(each, Rubric) else list(each)
    if len(rubrics) < 2:
        return rubrics[0] if rubrics else None
    told = "\n".join(f"- {each.criterion}" for each in rubrics)
    return Rubric("together", f"All of these together, each counting the same:\n{told}", rubrics[0].scale)


class Draw:
    """Draws exactly `n` of `of` elements of a stream, every subset equally likely (selection sampling)."""

    def __init__(self, n: int, of: int, rng: random.Random) -> None:
        self._n, self._of, self._rng = n, of, rng

    def __call__(self) -> bool:
        """Whether the next element is drawn."""
        taken = self._rng.random() * self._of < self._n
        self._n, self._of = self._n - taken, self._of - 1
        return taken


def _asked(each: Observed) -> str:
    return fingerprint([each.instruction, [image.source for image in each.item.images]])


def _sides(rows: Iterable[Observed], dropped: Counter[str]) -> list[Side]:
    """The distinct responses to one instruction, each with all its scores."""
    sides: dict[Content, Side] = {}
    for each in rows:
        parts = _parts(each)
        for i, response in enumerate(each.item.responses):
            scores = _scores(each, i)
            if not scores:
                dropped["no score"] += 1
                continue
            side = sides.setdefault(response, Side(response, each.item, parts[i]))
            side.scores += scores
            side.scales.add(each.scale)
            _judged_by(side, each)
    return list(sides.values())


def _judged_by(side: Side, each: Observed) -> None:
    rubric = each.item.rubric
    if rubric is not None:
        side.rubrics[rubric.hash] = rubric


def _parts(each: Observed) -> list[Mapping[str, Any]]:
    gold = gold_of(each.item)
    if len(each.item.responses) == 1:
        return [gold]
    parts = gold.get("responses") or []
    return [parts[i] if i < len(parts) else {} for i in range(len(each.item.responses))]


def _scores(each: Observed, i: int) -> list[float]:
    """Every score of a response: its own, or those of several raters or criteria if they are listed."""
    gold, score = _parts(each)[i], each.responses[i].score
    listed = () if "score" in gold else gold.get("raters") or gold.get("scores") or ()
    values = list(listed.values() if isinstance(listed, Mapping) else listed)
    several = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return several or ([] if score is None else [score])
