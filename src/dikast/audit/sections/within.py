"""Agreement within groups of rows, such as one response under several rubrics."""

import math
from collections.abc import Mapping

import numpy as np

from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import Within
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.correlation import pearson
from dikast.audit.statistics.intervals import Resampling, clusters_of
from dikast.audit.statistics.within_groups import (
    Codes,
    agreement_within,
    less_group_means,
    most_without,
    right_orders,
)
from dikast.audit.tables.columns import Words
from dikast.audit.tables.scored import Scored
from dikast.core.text import counted

_SAME = (
    "one score a group: the highest value of a judge that gives all rows of a group the same score, such as one that"
    " ignores the rubric where a group is one response under several rubrics"
)
_ROUNDED = (
    "one score a group: rows of a group lie on several scales, whose labels are not the same, so this is of a judge"
    " that knows the mean of the group's gold and gives the nearest label of each scale, as one that ignores the"
    " rubric might"
)


def within_table(
    words: Words, given: Scored, how: Resampling, by: str, over: Mapping[str, Words] | None = None
) -> Table | None:
    """Score and gold within the groups of a column; None where no group has two rows with score and gold.

    over: further columns by name; the centred correlation also gets an interval over other values of each. A row
    without a value stands for itself.
    """
    chosen = given.paired & (words.codes >= 0)
    sizes = np.bincount(words.codes[chosen], minlength=len(words.names) + 1)
    chosen &= sizes[words.codes] > 1
    if not chosen.any():
        return None
    score, gold, group = given.score[chosen], given.gold[chosen], clusters_of(words.codes[chosen])
    whole = measure(score, gold, ["pearson"], how, group)["pearson"]
    centred = agreement_within(score, gold, group, how)
    clusters = {name: clusters_of(each.codes[chosen]) for name, each in (over or {}).items()}
    others = {name: agreement_within(score, gold, group, how, codes) for name, codes in clusters.items()}
    contrasts, many = right_orders(score, gold, group)
    most, apart, orders = most_without(gold, group), 0.0, 0.5
    own = given.own.rows(chosen) if given.own is not None else None
    several = False
    if own is not None and own.shared is None and _several(own.codes, group):
        several = np.allclose(own.nearest(score), score)  # and not between labels, as expected scores are
    if own is not None and several:
        same = own.nearest(gold - less_group_means(gold, group))
        apart, orders = agreement_within(same, gold, group, how).value, right_orders(same, gold, group)[0].value
        most = pearson(same, gold) if len(gold) > 2 else math.nan
    found = Within(whole, most, centred, contrasts, many, int(group.max()) + 1, others)
    rows: list[list[Cell]] = [
        ["pearson", whole, found.most_without],
        ["pearson, centred by group", centred, apart],
        ["contrasts in the right order", contrasts, orders],
    ]
    rows[2:2] = [
        [f"the same, interval over {clusters[name].max() + 1:,} of {name}", each, apart]
        for name, each in others.items()
    ]
    return table(
        "within",
        f"Agreement within {by}: {counted(len(score), 'score')} of {counted(found.groups, 'group')}{given.unit}",
        ("statistic", "value", "one score a group"),
        rows,
        _ROUNDED if several else _SAME,
        f"contrasts: {many:,} pairs of rows of the same group with different gold; ties count half, each group once",
        centred.note,
        result=found,
    )


def _several(scales: Codes, group: Codes) -> bool:
    """Whether rows of a group lie on different scales."""
    return len(np.unique(np.stack([group, scales]), axis=1).T) > int(group.max()) + 1
