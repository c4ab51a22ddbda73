"""Optional sections: unlabelled verdicts (PPI), an earlier run (drift), the alt-test, claims, whole rankings."""

import math
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import Replacement
from dikast.audit.sections.failures import failure_table
from dikast.audit.sections.run_rankings import agreement_rows
from dikast.audit.statistics.against_gold.rank_agreement import rank_agreement, read_ranking
from dikast.audit.statistics.agreement import range_of
from dikast.audit.statistics.alt_test import LEAST, alt_test
from dikast.audit.statistics.claim_agreement import claims_of, feedback_scores, score_follows, span_f1, spans_of
from dikast.audit.statistics.drift import drift
from dikast.audit.statistics.intervals import Resampling, clusters_of
from dikast.audit.statistics.ppi import (
    active_mean,
    mean_of_labels,
    multiplier_estimate,
    ppi_difference,
    ppi_mean,
    rogan_gladen,
)
from dikast.audit.tables.columns import Words
from dikast.audit.tables.load import Data
from dikast.audit.tables.refs import Ref
from dikast.audit.tables.scored import Scored
from dikast.audit.tables.statuses import failed_before, statuses
from dikast.core.errors import UserError
from dikast.core.gold import LABEL_CHANCE
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
T = TypeVar("T")
_FEWEST = 10


def ppi_table(data: Data, given: Scored) -> Table | None:
    """The mean of gold over all scored rows, where only some have gold; None where every row has it, or hardly any."""
    how = data.plan.resampling
    labelled, rest = given.paired, ~np.isnan(given.score) & np.isnan(given.gold)
    n, many = int(labelled.sum()), int(rest.sum())
    if n < _FEWEST or many == 0:
        return None
    y, f, others = given.gold[labelled], given.score[labelled], given.score[rest]
    inside = _labelled_first(given.cluster, labelled, rest)
    if (chance := _chances(data, labelled)) is not None:
        return _active_table(data, given, (y, f, others), chance, inside)
    alone, bounds = None if inside is None else inside[:n], given.bounds
    notes = ["valid if the labelled rows are a random sample of all"]
    rows: list[list[Cell]] = [
        ["labels alone", mean_of_labels(y, how.level, alone, within=bounds)],
        [
            "verdicts alone (biased as the judge is)",
            mean_of_labels(np.concatenate([f, others]), how.level, inside, within=bounds),
        ],
        ["labels and verdicts (PPI++)", ppi_mean(y, f, others, how.level, inside, within=bounds)],
    ]
    if given.scale is not None and len(given.scale.values) == 2:
        low, high = given.scale.values
        binary = [((each - low) / (high - low)).round() for each in (y, f, others)]
        found = rogan_gladen(binary[0], binary[1], binary[2], how.level, inside)
        rows.append([f"share of {given.scale.labels[1]!r} (Rogan-Gladen)", found])
        if inside is not None and math.isfinite(found.low):
            wide = "approximate, a little wide where whole clusters are labelled (97.5 % of 1,000 simulations)"
            notes.append(f"the interval of Rogan-Gladen by cluster is {wide}")
    if "system" in data.words:
        rows.extend(_systems(data.words["system"], given, how))
    worth = multiplier_estimate(y, f, many, how, None if alone is None else clusters_of(alone))
    rows.append(["what a label is worth beside the verdicts", worth])
    return table(
        "few labels",
        f"Mean of gold, from {counted(n, 'label')} and {counted(many, 'verdict')} without a label{given.unit}",
        ("from", "mean"),
        rows,
        *notes,
        "differences of systems assume independent rows: if systems share items, give --cluster"
        if "system" in data.words and inside is None
        else "",
    )


def _active_table(
    data: Data, given: Scored, parts: tuple[Floats, Floats, Floats], chance: Floats, cluster: Codes | None
) -> Table:
    """As `ppi_table`, where labels were chosen with unequal chances."""
    how, (y, f, rest), bounds = data.plan.resampling, parts, given.bounds
    nothing = np.zeros(len(rest))
    rows: list[list[Cell]] = [
        ["labels alone", active_mean(y, np.zeros(len(y)), chance, nothing, how.level, cluster, within=bounds)],
        [
            "verdicts alone (biased as the judge is)",
            mean_of_labels(np.concatenate([f, rest]), how.level, cluster, within=bounds),
        ],
        ["labels and verdicts (active inference)", active_mean(y, f, chance, rest, how.level, cluster, within=bounds)],
    ]
    title = f"Mean of gold, from {counted(len(y), 'label')} and {counted(len(rest), 'verdict')} without a label"
    note = "each label is weighted by the inverse of the probability with which it was chosen (label_chance)"
    also = "valid if the rows that no rater was asked about are a random sample of all"
    return table("few labels", title + given.unit, ("from", "mean"), rows, note, also)


def _chances(data: Data, labelled: Masks) -> Floats | None:
    """The probability with which each labelled row was chosen; None where these are not known to be unequal."""
    if "chance" not in data.objects:
        return None
    found = []
    for at in np.flatnonzero(labelled):
        try:
            chance = float(data.objects["chance"][at])
        except (TypeError, ValueError):
            chance = math.nan
        if not 0 < chance <= 1:
            told = f"{data.objects['chance'][at]!r:.40} is no probability above 0: copy the column as annotate wrote it"
            file = data.plan.gold_file or Ref.of(data.plan.gold[0]).file or data.plan.file
            raise UserError(f"{file}: column {LABEL_CHANCE!r} of a labelled row: {told}")
        found.append(chance)
    return np.array(found)


def _labelled_first(cluster: Codes | None, labelled: Masks, rest: Masks) -> Codes | None:
    return None if cluster is None else clusters_of(cluster)[np.concatenate([*map(np.flatnonzero, (labelled, rest))])]


def _systems(system: Words, given: Scored, how: Resampling) -> Iterator[list[Cell]]:
    """The PPI++ mean of each system with enough labels, and each minus the first of them."""
    parts: dict[str, tuple[tuple[Floats, Floats, Floats], Codes | None]] = {}
    for code, name in enumerate(system.names):
        mine = (system.codes == code) & ~np.isnan(given.score)
        labelled, rest = mine & ~np.isnan(given.gold), mine & np.isnan(given.gold)
        if labelled.sum() >= _FEWEST:
            found = given.gold[labelled], given.score[labelled], given.score[rest]
            parts[name] = found, _labelled_first(given.cluster, labelled, rest)
    first = next(iter(parts), "")
    for name, (found, codes) in parts.items():
        yield [f"{name} (PPI++)", ppi_mean(*found, how.level, codes, within=given.bounds)]
    bounds = range_of("bias", given.bounds)
    for name, (found, codes) in list(parts.items())[1:]:
        against, others = parts[first]
        both = None if codes is None or others is None else (codes, others)
        yield [f"{name} less {first} (PPI++)", ppi_difference(found, against, how.level, both, within=bounds)]


def drift_table(data: Data, given: Scored, how: Resampling) -> Table:
    """The same anchors in an earlier run."""
    earlier = data.numbers["earlier"]
    span = None
    if given.own is not None or given.scale is not None:
        earlier = given.given(earlier)
        span = 1.0 if given.scale is None else given.scale.high - given.scale.low
    found = drift(earlier, given.score, how=how, cluster=given.cluster, span=span)
    rows: list[list[Cell]] = [
        ["shift (this run less the earlier)", found.shift],
        ["anchors with another score", found.changed],
        ["icc_2_1 of the runs", found.icc],
        ["evidence of a shift (e-value; 20 is strong)", found.evidence],  # a test: it has no interval
        ["scored only earlier", found.lost],
        ["scored only now", found.gained],
    ]
    verdict = "the judge has shifted" if found.shifted else "no shift shown: the interval holds 0"
    title = f"Against {Ref.of(data.plan.earlier).name}, the earlier run{given.unit}"
    return table("drift", title, ("statistic", "value"), rows, verdict, result=found)


def alt_test_table(score: Floats, raters: Floats, plan: AuditPlan, cluster: Codes | None, *, nominal: bool) -> Table:
    """The alternative annotator test of scores (n,), or of choices as codes, against annotators (R, n)."""
    how, alignment = plan.resampling, "exact" if nominal else "rmse"
    found = alt_test(score, raters, epsilon=plan.epsilon, alignment=alignment, how=how, cluster=cluster)  # type: ignore[arg-type]
    rows: list[list[Cell]] = []
    for name, each in zip(plan.gold, found.annotators, strict=True):
        if each is None:
            rows.append([name, 0, None, None, None, None, None, "no items"])
        else:
            verdict = "yes" if each.judge_wins else "not shown"
            rows.append([name, each.items, each.judge, each.annotator, each.less, each.p, each.adjusted, verdict])
    by_name = dict(zip(plan.gold, found.annotators, strict=True))
    result = Replacement(found.winning_rate, found.passed, found.epsilon, found.advantage, by_name)
    few = min((each.items for each in found.annotators if each is not None), default=0)
    answer = "cannot be told" if math.isnan(found.winning_rate) else "yes" if found.passed else "not shown"
    return table(
        "alt-test",
        f"May the judge replace an annotator? {answer}"
        + ("" if math.isnan(found.winning_rate) else f" (winning rate {found.winning_rate:.2f})"),
        ("left out", "n", "judge as close", "annotator as close", "difference", "p", "p (BY)", "judge wins"),
        rows,
        f"epsilon {plan.epsilon:g}; passes from a winning rate of .5, which is over these annotators: no interval",
        "judge wins: its difference is above -epsilon by more than chance explains; 'not shown' does not mean 'worse'",
        "how often the judge is at least as close as the annotator left out, over all of these: "
        f"{found.advantage:.4f} (n = {found.advantage.n:,}, {found.advantage.method})"
        if found.advantage.n
        else "",
        f"fewer than {LEAST} items for an annotator: do not rely on it" if few < LEAST else "",
        result=result,
    )


def feedback_table(data: Data, given: Scored, how: Resampling) -> Table:
    """Claims and marked spans against gold, and whether the score follows from the claims."""
    rows: list[list[Cell]] = []
    notes: list[str] = []
    if "claims" in data.objects:
        said = [claims_of(value) for value in data.objects["claims"]]
        dropped = sum(each is None for each in said)
        notes.append(f"{counted(dropped, 'row')} without a list of claims" if dropped else "")
        if "gold_claims" in data.objects:
            gold = [claims_of(value) for value in data.objects["gold_claims"]]
            one, two, codes = _both(said, gold, given.cluster)
            found = feedback_scores(one, two, how, codes)
            rows += [["claims found (F1)", found.claim_f1], ["claims with the right verdict (F1)", found.verdict_f1]]
            rows.append(["faults found (F1)", found.fault_f1])
        follows = score_follows(given.score, [each or [] for each in said], how, given.cluster)
        rows += [[f"score and share of supported claims: {name}", value] for name, value in follows.items()]
        for role in ("claims", "gold_claims"):
            lists = [value for value in data.objects.get(role, []) if claims_of(value) is not None]
            if lost := sum(len(value) - len(claims_of(value) or ()) for value in lists):
                notes.append(f"{counted(lost, 'claim')} in {role} without a text or a verdict, not used")
        if "gold_claims" in data.objects and (undue := sum(each is None for each in gold)):
            notes.append(f"{counted(undue, 'row')} without gold claims, left out of the F1")
    if "spans" in data.objects:
        marked, due = ([spans_of(value) for value in data.objects[role]] for role in ("spans", "gold_spans"))
        first, second, codes = _both(marked, due, given.cluster)
        rows.append(["marked characters (F1)", span_f1(first, second, how, codes)])
        if lost := len(marked) - len(first):
            notes.append(f"{counted(lost, 'row')} without spans on both sides: a list of [start, end] is expected")
    return table("feedback", "The judge's feedback", ("statistic", "value"), rows, *notes)


def _both(said: list[T | None], gold: list[T | None], cluster: Codes | None) -> tuple[list[T], list[T], Codes | None]:
    """The rows that have both, and their clusters."""
    at = [i for i, (a, b) in enumerate(zip(said, gold, strict=True)) if a is not None and b is not None]
    codes = None if cluster is None else clusters_of(cluster[at])
    return [said[i] for i in at], [gold[i] for i in at], codes  # type: ignore[misc]


def rankings_tables(data: Data) -> list[Table]:
    """Whole rankings against gold: failures, then agreement."""
    plan, how = data.plan, data.plan.resampling
    if "score" not in data.objects or len(plan.gold) != 1:
        raise UserError("--ranked needs one --score and one --gold, each a column of rankings")
    said, gold = ([read_ranking(value) for value in data.objects[role]] for role in ("score", "gold 0"))
    failed = failed_before(data.words.get("status"), len(said))
    said = [None if lost else each for each, lost in zip(said, failed, strict=True)]
    missing = np.array([value is None for value in data.objects["score"]]) & ~failed
    read = np.array([each is not None for each in said])
    status = statuses(read, data.words.get("status"), {"missing": missing, "unparsed": ~read})
    cluster = clusters_of(data.words["cluster"].codes) if "cluster" in data.words else None
    found = rank_agreement(said, gold, how.level, cluster)
    rows = agreement_rows(found)
    n = found.pairs.n
    note = f"only {counted(n, 'ranking')}: too few to conclude anything" if n < _FEWEST else ""
    agreement = table("rankings", f"Rankings of {counted(n, 'item')} against gold", ("statistic", "value"), rows, note)
    return [failure_table(status, how.level, cluster=cluster), agreement]
