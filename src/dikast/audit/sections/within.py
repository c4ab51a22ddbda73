"""Agreement within groups of rows, such as one response under several rubrics."""

from collections.abc import Mapping

import numpy as np

from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import Within
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.intervals import Resampling, clusters_of
from dikast.audit.statistics.within_groups import agreement_within, most_without, right_orders
from dikast.audit.tables.columns import Words
from dikast.audit.tables.scored import Scored
from dikast.core.text import counted


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
    found = Within(whole, most_without(gold, group), centred, contrasts, many, int(group.max()) + 1, others)
    rows: list[list[Cell]] = [
        ["pearson", whole, found.most_without],
        ["pearson, centred by group", centred, 0.0],
        ["contrasts in the right order", contrasts, 0.5],
    ]
    rows[2:2] = [
        [f"the same, interval over {clusters[name].max() + 1:,} of {name}", each, 0.0] for name, each in others.items()
    ]
    return table(
        "within",
        f"Agreement within {by}: {counted(len(score), 'score')} of {counted(found.groups, 'group')}{given.unit}",
        ("statistic", "value", "one score a group"),
        rows,
        "one score a group: the highest value of a judge that gives all rows of a group the same score, such as one"
        " that ignores the rubric where a group is one response under several rubrics",
        f"contrasts: {many:,} pairs of rows of the same group with different gold; ties count half, each group once",
        centred.note,
        result=found,
    )
