"""The summary of a run of rankings."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.against_gold.rank_agreement import Ranks, rank_agreement
from dikast.core.confidence import LEVEL, z_of
from dikast.judging.summary import Rate
from dikast.ranking.comparisons import Values
from dikast.ranking.item_ranking import Ranking
from dikast.ranking.schedules import SCHEDULES
from dikast.ranking.tournament import Tournament


class Ranked(NamedTuple):
    """A ranking with the gold of the item's responses, as goodness from 0 to 1, if any."""

    ranking: Ranking
    gold: tuple[float | None, ...] | None


def ranking_summary(lines: Sequence[Ranked], tournament: Tournament, skipped: Mapping[str, str]) -> dict[str, Any]:
    """Counts, slot bias, noise, cycles, and agreement with gold where items have gold for each response.

    `slot_bias` and `noise` are by kind of value, in its units; the noise is the standard deviation of a comparison.
    `cycles` are of the triples of responses whose three preferences are known. `gold`: the share of items whose first
    response is (among) the best by gold, what drawing one at random would reach, and the mean of Kendall's tau-b, as
    `dikast audit` has them. Responses that share the first place earn their mean; of an order in which all are equal
    tau-b is undefined, and the item is not in its n. Items whose order lacks a compared response, or gold for one, are
    out, and so are those whose gold is the same for all.
    """
    rankings = [each.ranking for each in lines]
    bias: dict[str, Any] = {}
    noise: dict[str, Any] = {}
    kinds: dict[Values, None] = dict.fromkeys(each.values for each in rankings)
    for kind in kinds:
        pooled = tournament.pooled(kind)
        value, error, n = pooled.bias
        known = n > 0 and error > 0
        half = z_of(LEVEL) * error if known else 0.0
        bias[kind] = asdict(
            Rate(value if n else None, value - half if known else None, value + half if known else None, n)
        )
        noise[kind] = {"sd": None if math.isnan(pooled.noise.sd) else pooled.noise.sd, "free": pooled.noise.free}
    return {
        "items": len(rankings) + len(skipped),
        "ranked": sum(bool(each.order) for each in rankings),
        "skipped": dict(Counter(skipped.values())),
        "incomplete": sum(bool(each.missing) for each in rankings),
        "left_out": sum(len(each.left_out) for each in rankings),
        "comparisons": sum(each.comparisons for each in rankings),
        "missing": sum(each.missing for each in rankings),
        **_ungraded(rankings),
        "schedules": dict(Counter(each.schedule for each in rankings)),
        "slot_bias": bias,
        "noise": noise,
        "cycles": asdict(Rate.pooled([([each.cycles for each in rankings], [each.triples for each in rankings])])),
        **({"gold": gold} if (gold := _gold(lines)) else {}),
    }


def _ungraded(rankings: Sequence[Ranking]) -> dict[str, int]:
    """Of schedules that begin with grades: how many responses have no grade, and are in no order."""
    graded = [each for each in rankings if SCHEDULES[each.schedule].grades]
    missing = sum(
        grade is None and i not in each.left_out for each in graded for i, grade in enumerate(each.grades or ())
    )
    return {"ungraded": missing} if graded else {}


def _gold(lines: Sequence[Ranked]) -> dict[str, Any]:
    said, truth, chance = list[Ranks](), list[Ranks](), list[float]()
    for ranking, gold in lines:
        if gold is None:
            continue
        known = {i: value for i in ranking.order if (value := gold[i]) is not None}
        compared = len(ranking.ranks) - len(ranking.left_out)
        if len(known) < max(2, compared) or len(set(known.values())) == 1:
            continue
        said.append({str(i): float(ranking.ranks[i] or 0) for i in known})
        truth.append({str(i): -value for i, value in known.items()})
        chance.append(list(known.values()).count(max(known.values())) / len(known))
    if not said:
        return {}
    found = rank_agreement(said, truth, LEVEL)
    return {
        "first_is_best": _rate(found.top_1),
        "at_random": sum(chance) / len(chance),
        "kendall_tau_b": _rate(found.tau_b),
    }


def _rate(found: Estimate) -> dict[str, Any]:
    """An estimate as summaries have it."""
    value, low, high = (None if math.isnan(each) else each for each in (found.value, found.low, found.high))
    return asdict(Rate(value, low, high, found.n))
