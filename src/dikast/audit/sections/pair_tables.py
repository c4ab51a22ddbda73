"""The audit of pairs, table by table: failures, accuracy, preferences, orders, calibration, slices, players, raters."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from dikast.audit.rendering import Table
from dikast.audit.sections import pairwise, slice_means
from dikast.audit.sections.extras import alt_test_table
from dikast.audit.sections.failures import failure_table
from dikast.audit.sections.label_probabilities import (
    Labels,
    abstain_table,
    calibration_table,
    from_objects,
    reliability_table,
)
from dikast.audit.sections.pair_baselines import baselines_table
from dikast.audit.sections.players import ranking_tables
from dikast.audit.sections.raters import rater_pairs_table, raters_table
from dikast.audit.sections.run_rankings import run_rankings_table
from dikast.audit.sections.slices import Slices
from dikast.audit.tables.choices import FIRST, NONE, ONE_ORDER, SECOND, TIE
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import Paired, paired
from dikast.audit.tables.run_rows import LABELS
from dikast.audit.tables.statuses import joined_conflict, joined_marker
from dikast.core.scale import Scale


def pair_tables(data: Data, slices: Slices) -> list[Table]:
    """The tables that the columns of choices allow; `slices` are those requested."""
    plan, given = data.plan, paired(data)
    tables: list[Table] = []
    tables.extend(_failures(data, given))
    if plan.gold and given.choice is not None:
        tables += [pairwise.accuracy_table(given, plan.width), pairwise.class_table(given)]
        tables += [baselines_table(data, given), pairwise.confusion_table(given)]
    if plan.gold and (ranked := run_rankings_table(data)) is not None:
        tables.append(ranked)
    if given.choice is not None:
        tables.append(pairwise.preference_table(given))
    if given.choice is not None and given.swapped is not None:
        slots = plan.swapped_as == "responses" and not plan.file.is_dir()  # a run knows its orders
        tables.append(pairwise.orders_table(given, may_be_slots=slots))
    tables.extend(_readouts(data, given))
    if plan.rival and plan.gold and given.choice is not None:
        tables.append(pairwise.other_judge_table(data, given))
    if given.choice is not None:
        for (codes, names), name in slices:
            make = pairwise.slice_table if plan.gold else pairwise.unlabelled_table
            tables.append(make(codes, names, given, name))
            if plan.gold and len(names) > 1:
                tables.append(slice_means.pairs_table(codes, names, given, pairwise.headlines(given), name))
    if plan.first and plan.second and given.choice is not None:
        tables.extend(ranking_tables(data, given))
    if len(given.raters) > 1:
        how = plan.resampling
        tables.append(raters_table(given.raters, how, nominal=True, cluster=given.cluster))
        tables.append(rater_pairs_table(given.raters, plan.gold, how, nominal=True, shared=True, cluster=given.cluster))
    if len(given.raters) > 2 and given.final is not None:
        said = given.final.astype(np.float64)
        said[given.final < 0] = np.nan
        tables.append(alt_test_table(said, given.raters, plan, given.cluster, nominal=True))
    return [_with_rule(each, given, labelled=bool(plan.gold)) for each in tables]


def _with_rule(found: Table, given: Paired, *, labelled: bool) -> Table:
    """A table with a note on how it counted pairs without a verdict, where --unscored decides that.

    Without gold there is nothing to be wrong about, so only ties count; tables of players say so themselves.
    """
    sliced, every = found.name.startswith(("by ", "over ")), np.ones(len(given.gold), bool)
    if found.name in _AGAINST_GOLD or (sliced and labelled):
        told = given.unscored_told(given.gold != NONE)
    elif (found.name == "preferences" or sliced) and given.unscored == TIE:
        told = given.unscored_told(every)
    else:
        return found
    return dataclasses.replace(found, notes=(*found.notes, told)) if told else found


_AGAINST_GOLD = ("accuracy", "classes", "beside", "confusion", "alt-test")


def _readouts(data: Data, given: Paired) -> Iterator[Table]:
    """Calibration and abstaining of pairs: probabilities of the choices, as the mean of both orders, against gold."""
    if not data.plan.gold or not any(data.objects.get("distribution", [])):
        return
    how, cluster = data.plan.resampling, given.cluster
    read = from_objects(data.objects["distribution"], Scale(LABELS, (FIRST, SECOND, TIE)))
    kept = read.known & given.scored
    read = dataclasses.replace(read, probabilities=np.where(kept[:, None], read.probabilities, np.nan))
    gold = np.where(given.gold == NONE, np.nan, given.gold.astype(np.float64))
    labels = _labels(given)
    both = given.swapped is not None
    for found in (
        calibration_table(read, gold, how, cluster, None, nominal=True, labels=labels),
        reliability_table(read, gold, how.level, cluster, labels),
        abstain_table(read, gold, how.level, cluster, labels),
    ):
        note = "probabilities of a pair: the mean of both orders; its label: their joint verdict" if both else ONE_ORDER
        if found.rows or found.name == "calibration":
            yield dataclasses.replace(found, notes=(note, *found.notes))


def _labels(given: Paired) -> Labels:
    """The label of each pair, whatever its mean probabilities: none if the orders disagree."""
    final = np.full(len(given.gold), NONE) if given.final is None else given.final
    return Labels(np.where(np.isin(final, (FIRST, SECOND, TIE)), final, -1), "the orders disagree")


def _failures(data: Data, given: Paired) -> Iterator[Table]:
    """Failures of pairs: a pair fails if either order fails; then of each order by itself."""
    level, cluster = data.plan.resampling.level, given.cluster
    if given.status is None:
        return
    shown, swapped = (data.words.get(name) for name in ("marker", "marker_swapped"))
    torn, torn_swapped = (data.words.get(name) for name in ("conflict", "conflict_swapped"))
    if given.status_shown is None or given.status_swapped is None:
        yield failure_table(given.status, level, shown, cluster, torn, what="pair" if given.joint else "verdict")
        return
    marker = shown if shown is None or swapped is None else joined_marker(shown, swapped)
    either = torn if torn is None or torn_swapped is None else joined_conflict(torn, torn_swapped)
    pairs = failure_table(given.status, level, marker, cluster, either, what="pair")
    yield dataclasses.replace(pairs, notes=(*pairs.notes, "a pair fails where either order has no verdict"))
    orders = ((given.status_shown, shown, torn, "shown"), (given.status_swapped, swapped, torn_swapped, "swapped"))
    for status, told, conflict, order in orders:
        found = failure_table(status, level, told, cluster, conflict)
        title = f"{found.title} in the order {order}" if order == "shown" else f"{found.title} in the swapped order"
        yield dataclasses.replace(found, name=f"failures {order}", title=title)
