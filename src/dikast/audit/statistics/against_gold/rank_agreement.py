"""Whole rankings: a judge's order of several responses against gold."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.concordance import order_of, ordered, tau_b
from dikast.audit.statistics.intervals import clusters_of, mean_estimate, share

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Ranks = Mapping[str, float]
_NONE = "no item with two rankings"


def read_ranking(value: Any) -> Ranks | None:
    """Ranks from 1 by name: from a list, best first (a list inside it is a tie), an object name -> rank, or `B>A=C`.

    None for anything else, and if a name occurs twice, since a ranking is never guessed.
    """
    if isinstance(value, str):
        groups: list[Any] = [re.split(r"\s*=\s*", part.strip()) for part in value.split(">")] if value.strip() else []
    elif isinstance(value, Mapping):
        numbers = [each for each in value.values() if isinstance(each, int | float) and math.isfinite(each)]
        return (
            {str(name): float(each) for name, each in value.items()} if len(numbers) == len(value) and value else None
        )
    elif isinstance(value, Sequence):
        groups = [each if isinstance(each, list | tuple) else [each] for each in value]
    else:
        return None
    names = [str(name).strip() for group in groups for name in group]
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        return None
    ranks, place = {}, 1
    for group in groups:
        for name in group:
            ranks[str(name).strip()] = place + (len(group) - 1) / 2
        place += len(group)
    return ranks


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Means over items: tau-b of the two rankings, whether the best is the same, pairs in the right order.

    `pairs` is over pairs of responses that gold tells apart; a tie of the judge earns a half.
    """

    tau_b: Estimate
    top_1: Estimate
    pairs: Estimate


def rank_agreement(
    said: Sequence[Ranks | None],
    gold: Sequence[Ranks | None],
    level: float = 0.95,
    cluster: Codes | None = None,
) -> RankAgreement:
    """Compare rankings item by item over the names that both hold; items without both, or with fewer than two, drop."""
    rows = np.array([_item(a, b) for a, b in zip(said, gold, strict=True)]).reshape(-1, 3)
    tau, top, pairs = rows.T
    return RankAgreement(_mean(tau, level, cluster), *(_share(each, level, cluster) for each in (top, pairs)))


def _item(said: Ranks | None, gold: Ranks | None) -> tuple[float, float, float]:
    names = sorted(set(said or ()) & set(gold or ()))
    if said is None or gold is None or len(names) < 2:
        return math.nan, math.nan, math.nan
    x, y = np.array([said[name] for name in names]), np.array([gold[name] for name in names])
    order = order_of(x, y)
    best, mine = y == y.min(), x == x.min()
    top = float((best & mine).sum() / mine.sum())
    return float(tau_b(order)), top, float(ordered(order))


def _share(values: Floats, level: float, cluster: Codes | None) -> Estimate:
    known = ~np.isnan(values)
    codes = None if cluster is None else cluster[known]
    return share(values[known], level, codes, dropped=int((~known).sum()), note="" if known.any() else _NONE)


def _mean(values: Floats, level: float, cluster: Codes | None) -> Estimate:
    known = ~np.isnan(values)
    if not known.any():
        return undefined(0, _NONE, level=level, dropped=len(values))
    codes = None if cluster is None else clusters_of(cluster[known])
    return mean_estimate(values[known], level, codes, dropped=int((~known).sum()), within=(-1.0, 1.0))
