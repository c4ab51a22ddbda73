"""Systems that one judge scored, the best first: mean scores, and who beats whom on the same prompts."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import Leaderboard, SystemScore
from dikast.audit.sections.head_to_head import MOST_SYSTEMS, scored_table
from dikast.audit.sections.sheet_totals import Totals
from dikast.audit.statistics.agreement import range_of
from dikast.audit.statistics.intervals import mean_estimate, share
from dikast.audit.statistics.length_bias import length_controlled_lead, length_controlled_means
from dikast.audit.tables.columns import Words, group_codes
from dikast.audit.tables.load import Data
from dikast.audit.tables.refs import PLAYED, PLAYED_LENGTH
from dikast.audit.tables.scored import Scored

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def leaderboard(data: Data, given: Scored, totals: Totals | None) -> Iterator[Table]:
    """The systems of a run whose items say which system each response is of; none where fewer than two are known.

    Where criteria weigh unequally, a response counts with the weighted total of its criteria, given as `totals`.
    """
    systems, prompts = (data.words.get(role) for role in PLAYED)
    if systems is None or len(systems.names) < 2:
        return
    criteria = data.words.get("criterion", Words(np.zeros(len(data), np.int64), [""]))
    level = data.plan.level
    length = data.numbers.get("length", data.numbers.get(PLAYED_LENGTH))
    if totals is None:
        yield from leaderboard_tables(systems, prompts, criteria, given, level, length=length)
        return
    systems, prompts = (each and Words(each.codes[totals.rows], each.names) for each in (systems, prompts))
    assert systems is not None
    criteria = Words(np.zeros(len(totals.rows), np.int64), [""])
    length = None if length is None else length[totals.rows]
    yield from leaderboard_tables(systems, prompts, criteria, totals.given, level, totals.weights, length=length)


def leaderboard_tables(
    systems: Words,
    prompts: Words | None,
    criteria: Words,
    given: Scored,
    level: float,
    weights: str = "",
    length: Floats | None = None,
) -> Iterator[Table]:
    """The leaderboard of the systems (n,) of the rows, and who beats whom on the same prompts.

    `length` (n,) is that of the responses in characters, NaN where it is not known.

    A win rate compares a system with each other one that answered the same prompt, criterion by criterion: its mean
    score there is higher (1), equal (0.5) or lower (0). Intervals draw whole prompts.
    """
    known = ~np.isnan(given.score) & (systems.codes >= 0)
    if prompts is not None:
        known &= prompts.codes >= 0
    cluster = given.cluster if prompts is None else prompts.codes
    better = -1.0 if given.scale is not None and given.scale.lower_is_better else 1.0
    compared = prompts is not None and len(systems.names) <= MOST_SYSTEMS
    scores, place = _by_question(systems, prompts, criteria, better * given.score, known) if compared else (None, None)
    found: dict[str, SystemScore] = {}
    for code, name in enumerate(systems.names):
        mine = known & (systems.codes == code)
        inside = None if cluster is None else cluster[mine]
        mean = mean_estimate(given.score[mine], level, inside, within=given.bounds)
        failed = int(((systems.codes == code) & np.isnan(given.score)).sum())
        rate = None if scores is None or place is None else _win_rate(scores, place, code, level)
        found[name] = SystemScore(mean, rate, failed)
    if scores is not None and place is not None:
        ranks = _places(scores, place, np.array([better * found[name].mean.value for name in systems.names]), level)
        found = {name: replace(found[name], rank=rank) for name, rank in zip(systems.names, ranks, strict=True)}
    order = sorted(found, key=lambda name: (math.isnan(found[name].mean.value), -better * found[name].mean.value, name))
    codes = [systems.names.index(name) for name in order[:2]]
    lead = None if scores is None or place is None else _lead(scores, place, codes, better, level, given.bounds)
    equal_lead = None
    if prompts is not None and compared and length is not None:
        equal, equal_lead = _with_length_equal(
            systems, prompts, criteria, given.score, length, known, level, better, codes
        )
        found = {name: replace(found[name], controlled=each) for name, each in zip(systems.names, equal, strict=True)}
    by_gold = None
    asked = systems.codes >= 0 if prompts is None else (systems.codes >= 0) & (prompts.codes >= 0)
    has_gold = asked & ~np.isnan(given.gold)
    if lead is not None and given.shared and has_gold.any():
        true, where = _by_question(systems, prompts, criteria, better * given.gold, has_gold)
        by_gold = _lead(true, where, codes, better, level, given.bounds)
        by_gold = None if math.isnan(by_gold.value) else by_gold
    least = None
    if lead is not None and (worst := _worst_filled(systems.codes, given, asked, codes, better)) is not None:
        filled = _by_question(systems, prompts, criteria, better * worst, asked & ~np.isnan(worst))
        least = _lead(*filled, codes, better, level, given.bounds)
    result = Leaderboard({name: found[name] for name in order}, lead, weights, by_gold, equal_lead, least)
    yield _systems_table(result, order, given.unit)
    if scores is not None and place is not None:
        yield scored_table(scores, place, systems.names, level)


def _worst_filled(
    system: Codes, given: Scored, asked: NDArray[np.bool_], codes: list[int], better: float
) -> Floats | None:
    """The scores (n,) with those that are missing of the first two systems as bad for the first as can be; None where
    none is missing.
    """
    lost = [asked & np.isnan(given.score) & (system == code) for code in codes]
    if not any(each.any() for each in lost):
        return None
    ends = sorted(given.bounds if np.isfinite(given.bounds).all() else (np.nanmin(given.score), np.nanmax(given.score)))
    worst, best = ends if better > 0 else ends[::-1]
    return np.where(lost[0], worst, np.where(lost[1], best, given.score))


def weighted_told(weights: str) -> str:
    """What a score is where criteria weigh unequally; "" where they do not."""
    if not weights:
        return ""
    return (
        f"the score of a response is its weighted mean over the criteria ({weights}); without one of them it has none"
    )


def _systems_table(result: Leaderboard, order: list[str], unit: str) -> Table:
    rows: list[list[Cell]] = []
    ranked = any(each.rank is not None for each in result.systems.values())
    equal = [each.controlled for each in result.systems.values() if each.controlled is not None]
    controlled = any(not math.isnan(each.value) for each in equal)
    for name, each in result.systems.items():
        row: list[Cell] = [name, *([each.rank] if ranked else []), each.mean.n, each.mean]
        rows.append([*row, *([each.controlled] if controlled else []), each.win_rate, each.failed])
    note = ""
    if result.lead is not None and not math.isnan(result.lead.value):
        note = f"{order[0]} minus {order[1]}, on the {result.lead.n:,} prompts of both: {result.lead:+.3f}"
        if result.gold_lead is not None:
            note += f"; by gold, on {result.gold_lead.n:,}: {result.gold_lead:+.3f}"
    return table(
        "leaderboard",
        f"{len(order)} systems by mean score{unit}" + (", criteria by weight" if result.weights else ""),
        (
            "system",
            *(["rank"] if ranked else []),
            "n",
            "mean score",
            *(["length-controlled mean"] if controlled else []),
            "win rate",
            "no verdict",
        ),
        rows,
        "win rate: against each other system on the same prompt, a tie is half a win; intervals resample prompts",
        weighted_told(result.weights),
        _RANKED if ranked else "",
        _EQUAL if controlled else length_told(result),
        note,
        result=result,
    )


def length_told(found: Leaderboard) -> str:
    """Why means with the length held equal are not given; "" where they are, or where lengths are not known."""
    equal = [each.controlled for each in found.systems.values() if each.controlled is not None]
    if not equal or any(not math.isnan(each.value) for each in equal):
        return ""
    return f"no length-controlled means: {equal[0].note.removeprefix('undefined: ')}"


def _with_length_equal(
    systems: Words,
    prompts: Words,
    criteria: Words,
    score: Floats,
    length: Floats,
    known: NDArray[np.bool_],
    level: float,
    better: float,
    first: list[int],
) -> tuple[list[Estimate], Estimate | None]:
    """The length-controlled mean of each system, and the difference between the two systems in `first`, None where
    there is one, from rows with a length of 0 or more.
    """
    questions, _ = group_codes([prompts, criteria])
    at = np.flatnonzero(known & (questions >= 0) & np.isfinite(length) & (length >= 0))
    _, question = np.unique(questions[at], return_inverse=True)
    rows = (systems.codes[at], len(systems.names), question, length[at], level, prompts.codes[at])
    means = length_controlled_means(score[at], *rows)
    return means, length_controlled_lead(better * score[at], *rows, (first[0], first[1])) if len(first) > 1 else None


def _by_question(
    systems: Words, prompts: Words | None, criteria: Words, score: Floats, known: NDArray[np.bool_]
) -> tuple[Floats, Codes]:
    """The mean score (questions, systems) of each system on each prompt and criterion, NaN without one; the prompt of
    each question.
    """
    assert prompts is not None
    questions, _ = group_codes([prompts, criteria])
    at = known & (questions >= 0)
    shape = (int(questions.max(initial=-1)) + 1, len(systems.names))
    total, count = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (questions[at], systems.codes[at]), score[at])
    np.add.at(count, (questions[at], systems.codes[at]), 1)
    place = np.full(shape[0], -1, np.int64)
    place[questions[at]] = prompts.codes[at]
    with np.errstate(invalid="ignore"):
        return total / count, place


def _win_rate(scores: Floats, place: Codes, code: int, level: float) -> Estimate:
    """The share of comparisons with other systems that one wins."""
    mine = scores[:, code]
    others = np.delete(scores, code, axis=1)
    both = ~np.isnan(mine)[:, None] & ~np.isnan(others)
    worth = np.where(mine[:, None] > others, 1.0, np.where(mine[:, None] < others, 0.0, 0.5))
    prompts = np.broadcast_to(place[:, None], others.shape)
    return share(worth[both], level, prompts[both], note="" if both.any() else "no prompt that another answered")


_RANKED = (
    "rank: by the mean score, with every place that the differences on the same prompts leave open (of all pairs of "
    "systems together, Bonferroni)"
)


_EQUAL = (
    "length-controlled mean: the mean if all responses were of the same length, by the slope of the score on"
    " log2(1 + characters)"
    " among responses to the same prompt (analysis of covariance)"
)


def _places(scores: Floats, place: Codes, means: Floats, level: float) -> list[Estimate | None]:
    """The place of each system by its mean (K,), and the range of places it may have, from the systems that are
    certainly better or worse.

    The differences of all pairs hold together at `level` (Bonferroni). None for a system without a score.
    """
    k = len(means)
    strict = 1 - (1 - level) / max(1, k * (k - 1) // 2)
    better, worse = np.zeros(k, np.int64), np.zeros(k, np.int64)
    for one in range(k):
        for two in range(one):
            found = _lead(scores, place, [one, two], 1.0, strict)
            if not math.isnan(found.low) and not found.low <= 0 <= found.high:
                ahead, behind = (one, two) if found.value > 0 else (two, one)
                worse[ahead] += 1
                better[behind] += 1
    known = ~np.isnan(means)
    n = int(known.sum())
    return [
        Estimate(
            float(1 + (means[known] > means[i]).sum()), n, float(1 + better[i]), float(n - worse[i]), level,
            "paired differences, Bonferroni", whole=True,
        ) if known[i] else None
        for i in range(k)
    ]  # fmt: skip


def _lead(
    scores: Floats,
    place: Codes,
    codes: list[int],
    better: float,
    level: float,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """The paired difference of the first two, over prompts; scores lie within `bounds`."""
    both = ~np.isnan(scores[:, codes]).any(1)
    prompts, inverse = np.unique(place[both], return_inverse=True)
    less = better * (scores[both, codes[0]] - scores[both, codes[1]])
    sums, counts = np.bincount(inverse, less, len(prompts)), np.bincount(inverse, minlength=len(prompts))
    return mean_estimate(sums / counts, level, within=range_of("bias", bounds))
