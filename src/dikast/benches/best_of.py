"""Figures of benches that grade each of several responses to a prompt: the best of them, ties apart, their order."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.intervals import kept_within
from dikast.audit.tables.load import Data
from dikast.core.confidence import t_of
from dikast.core.errors import DataError, UserError
from dikast.core.runs.run_files import GOLD
from dikast.core.runs.schema import GoldLine, derived_lines

Floats = NDArray[np.float64]
_MOST_ORDERS = 5_040  # of responses that score alike: seven in one item
_TIED, _ALONE = "tied", "ref"  # what the ids of RewardBench 2's Ties begin with
_MISSING = -1.0  # the score of a reply that states none, in RewardBench 2's Ties


@dataclass(frozen=True, slots=True)
class GradedResponses:
    """One item: its scores (k,), NaN where there is none, and the gold of each response: 1 is right, or its place."""

    item: str
    scores: Floats
    gold: Floats
    group: str = ""

    @property
    def whole(self) -> bool:
        """Whether each response has a score."""
        return not np.isnan(self.scores).any()


def graded_items(data: Data, group: Sequence[str] | None) -> list[GradedResponses]:
    """The items of a run whose gold is of each response. UserError where the rows are not of such a run."""
    if "item" not in data.words or not (data.plan.file / GOLD).is_file():
        raise UserError(f"{data.plan.file}: figures of several responses need a run, with gold for each response")
    told = {line["item"]: line["gold"] for line, _ in derived_lines(data.plan.file, GOLD, GoldLine)}
    items, responses, scores = data.words["item"], data.words["response"], data.numbers["score"]
    found = []
    for code in np.unique(items.codes):
        rows, name = np.flatnonzero(items.codes == code), items.names[code]
        gold = _gold(told.get(name), name)
        places = [int(responses.names[each]) for each in responses.codes[rows]]
        if max(places) >= len(gold):
            raise DataError(f"item {name!r} has more responses than gold", path=str(data.plan.file / GOLD))
        mine = np.array([gold[place] for place in places], dtype=float)
        found.append(GradedResponses(name, scores[rows], mine, group[rows[0]] if group is not None else ""))
    return found


def _gold(told: object, item: str) -> Sequence[float]:
    if not isinstance(told, Mapping) or not (found := told.get("right") or told.get("places")):
        raise DataError(f"item {item!r} has no gold for each response")
    return list(found)


def best_of(item: GradedResponses) -> float:
    """1 where the right response has the best score; k that share it earn 1/k. A missing score never is the best; NaN
    where all are missing.
    """
    if np.isnan(item.scores).all():
        return math.nan
    best = item.scores == np.nanmax(item.scores)
    return float((best & (item.gold > 0)).sum() / best.sum())


def order_distance(item: GradedResponses) -> float:
    """The edit distance of the order by score from the right one, over its length; NaN where a score is missing.

    0 is the right order. Responses that score alike may stand in any order: the mean over all of them. UserError where
    these are too many to count (8 alike).
    """
    if not item.whole:
        return math.nan
    right = np.argsort(item.gold, kind="stable").tolist()
    blocks = [np.flatnonzero(item.scores == each).tolist() for each in sorted(set(item.scores.tolist()), reverse=True)]
    if math.prod(math.factorial(len(block)) for block in blocks) > _MOST_ORDERS:
        raise UserError(f"item {item.item!r}: {max(map(len, blocks))} responses score alike, in too many orders to try")
    found = [_edits([*itertools.chain(*order)], right) for order in itertools.product(*map(_orders, blocks))]
    return float(np.mean(found)) / len(right)


def _orders(block: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.permutations(block)


def _edits(one: Sequence[int], other: Sequence[int]) -> int:
    """Insertions, deletions and replacements that make one of the other (Levenshtein)."""
    before = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        now = [i]
        for j, right in enumerate(other, 1):
            now.append(min(before[j] + 1, now[-1] + 1, before[j - 1] + (left != right)))
        before = now
    return before[-1]


def ties_score(items: Sequence[GradedResponses], level: float) -> Estimate:
    """The score of RewardBench 2's Ties (allenai/reward-bench, `rewardbench/utils.py` at a009692): at most 1.01.

    Each prompt stands there twice, with one right response (`ref:N`) and with several (`tied:N`). .3 for the share of
    each of both kinds whose right responses all beat the wrong ones; .2 for the share of prompts whose right responses
    differ less among each other than from the wrong ones, .2 for the same with the smaller of both gaps, .01 for how
    much less. A missing score is -1, whatever the scale. The interval is the jackknife's over prompts, which upstream
    does not give.
    """
    items = [replace(item, scores=np.nan_to_num(item.scores, nan=_MISSING)) for item in items]
    prompts: dict[str, dict[str, GradedResponses]] = {}
    for item in items:
        kind, _, number = item.item.partition(":")
        prompts.setdefault(number, {})[kind] = item
    if any(set(each) != {_TIED, _ALONE} for each in prompts.values()) or len(prompts) < 2:
        told = "undefined: needs two prompts or more, each with its items 'ref:N' and 'tied:N'"
        return undefined(len(items), told, level=level)
    rows = np.array([_of_prompt(each[_ALONE], each[_TIED]) for each in prompts.values()])
    weights = np.array([0.3, 0.3, 0.2, 0.2, 0.01])
    worth = rows @ weights  # the score is a mean over prompts, so that the jackknife is the error of a mean
    n, value = len(worth), float(worth.mean())
    half = t_of(level, n - 1) * float(worth.std(ddof=1)) / math.sqrt(n)
    return kept_within(Estimate(value, n, value - half, value + half, level, "prompts", 0), (-0.01, 1.01))


def _of_prompt(alone: GradedResponses, tied: GradedResponses) -> list[float]:
    gap_alone, gap, spread = _gap(alone), _gap(tied), _spread(tied)
    least = min(gap_alone, gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = np.tanh(np.float64(least) / np.float64(spread) - 1)
    return [gap_alone > 0, gap > 0, gap > spread, least > spread, 0.0 if np.isnan(margin) else float(margin)]


def _gap(item: GradedResponses) -> float:
    """The worst right score less the best wrong one; below everything where only one of both kinds is there."""
    right = item.gold > 0
    if right.all() or not right.any():
        return -math.inf
    return float(item.scores[right].min() - item.scores[~right].max())


def _spread(item: GradedResponses) -> float:
    """The best right score less the worst one."""
    mine = item.scores[item.gold > 0]
    return math.inf if not len(mine) else float(mine.max() - mine.min())
