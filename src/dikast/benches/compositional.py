"""The figure of MM-JudgeBias: how scores move between an item and the same with its evidence changed."""

import math
import re
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from dikast.audit.tables.load import Data
from dikast.core.errors import UserError
from dikast.core.scale import Scale

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]
Codes = NDArray[np.int64]
_NAME = re.compile(r"(.+)/(unbiased|biased)(#\d+)?", re.DOTALL)  # of an item; a repeated id ends in its number


def bias_worth(
    data: Data, group: Sequence[str] | None, conformity: Collection[str]
) -> tuple[Floats, Masks, list[str] | None]:
    """The deviation or the conformity of each pair of items, which pairs count, and the group of each.

    With scores y of the unbiased item, b of the biased one, on a scale from l to h (naver-ai/MM-JudgeBias,
    `mm_judgebias/metrics.py` at 4c5bb2c, where l = 1 and h = 10): in the groups of `conformity`
    1 - |y - b| / max(y - l, h - y); in the others max(0, y - b) / (y - l), of pairs with y > l. Both are shares, and 1
    is best. Where lower is better, scores are mirrored first. As upstream, a pair without both scores is left out.
    UserError for rows of several scales, and for an item with several scores.
    """
    scale = data.plan.scale
    if scale is None or "item" not in data.words:
        raise UserError(f"{data.plan.file}: the bias of scores is that of a run whose rubrics share one scale")
    items, scores, pairs = data.words["item"], data.numbers["score"], bias_pairs(data)
    if scale.lower_is_better:
        scores = scale.low + scale.high - scores
    if len(np.unique(items.codes)) < len(items.codes):
        raise UserError(f"{data.plan.file}: the bias of scores needs one score of each item: judge by one criterion")
    both, groups = np.full((int(pairs.max()) + 1, 2), math.nan), [""] * (int(pairs.max()) + 1)
    for row, (code, pair) in enumerate(zip(items.codes, pairs, strict=True)):
        both[pair, int(_name(data, items.names[code])[2] == "biased")] = scores[row]
        groups[pair] = group[row] if group is not None else ""
    worth = np.array([
        _one(float(one), float(two), scale, conforms=groups[pair] in conformity) for pair, (one, two) in enumerate(both)
    ])  # fmt: skip
    return worth, ~np.isnan(worth), groups if group is not None else None


def bias_pairs(data: Data) -> Codes:
    """The pair of items, unbiased and biased, that each row (n,) is of; UserError for the name of any other item."""
    items = data.words["item"]
    names = [_name(data, items.names[code]) for code in items.codes]
    known: dict[tuple[str, str], int] = {}
    return np.array([known.setdefault((told[1], told[3] or ""), len(known)) for told in names], np.int64)


def _name(data: Data, item: str) -> re.Match[str]:
    if (told := _NAME.fullmatch(item)) is None:
        raise UserError(f"{data.plan.file}: the item {item!r} does not state whether it is biased")
    return told


def _one(unbiased: float, biased: float, scale: Scale, *, conforms: bool) -> float:
    if math.isnan(unbiased) or math.isnan(biased):
        return math.nan
    if conforms:
        return 1 - abs(unbiased - biased) / max(unbiased - scale.low, scale.high - unbiased)
    return max(0.0, unbiased - biased) / (unbiased - scale.low) if unbiased > scale.low else math.nan
