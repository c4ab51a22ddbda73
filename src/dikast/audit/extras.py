"""Tables for what only some files allow: unlabelled verdicts, an earlier run, three raters, claims, whole rankings."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dikast.audit.agreement import pearson
from dikast.audit.drift import drift
from dikast.audit.failures import failure_table
from dikast.audit.feedback import claims_of, feedback_scores, score_follows
from dikast.audit.few_labels import label_multiplier, mean_of_labels, ppi_mean, rogan_gladen
from dikast.audit.intervals import Resampling, clusters_of
from dikast.audit.load import Data, Ref
from dikast.audit.rankings import rank_agreement, read_ranking
from dikast.audit.replacement import LEAST, alt_test
from dikast.audit.report import Cell, Table, counted, table
from dikast.audit.scored import Scored, failures_told
from dikast.core.errors import UserError

Floats = NDArray[np.float64]
_FEWEST = 10


def few_labels_table(given: Scored, level: float) -> Table | None:
    """The mean of gold over all scored rows, where only some have gold; None where every row has it, or hardly any."""
    labelled, rest = given.paired, ~np.isnan(given.score) & np.isnan(given.gold)
    n, many = int(labelled.sum()), int(rest.sum())
    if n < _FEWEST or many == 0:
        return None
    y, f, others = given.gold[labelled], given.score[labelled], given.score[rest]
    r = pearson(f, y)
    rows: list[list[Cell]] = [
        ["labels alone", mean_of_labels(y, level)],
        ["verdicts alone (biased as the judge is)", mean_of_labels(np.concatenate([f, others]), level)],
        ["labels and verdicts (PPI++)", ppi_mean(y, f, others, level)],
    ]
    if given.scale is not None and len(given.scale.values) == 2:
        low, high = given.scale.values
        binary = [((each - low) / (high - low)).round() for each in (y, f, others)]
        rows.append(
            [f"share of {given.scale.labels[1]!r} (Rogan-Gladen)", rogan_gladen(binary[0], binary[1], binary[2], level)]
        )
    rows.append(
        ["what a label is worth beside the verdicts", label_multiplier(r, n, many) if not math.isnan(r) else math.nan]
    )
    return table(
        "few labels",
        f"The mean of gold from {n:,} labels and {many:,} verdicts without one",
        ("from", "mean"),
        rows,
        "valid if the labelled rows are a random sample of all",
    )


def drift_table(data: Data, given: Scored, how: Resampling) -> Table:
    """The same anchors in an earlier run."""
    earlier = data.numbers["earlier"]
    if given.scale is not None:
        earlier = np.where(np.isin(earlier, np.asarray(given.scale.values)), earlier, np.nan)
    span = given.scale.high - given.scale.low if given.scale is not None else None
    found = drift(earlier, given.score, how=how, cluster=given.cluster, span=span)
    rows: list[list[Cell]] = [
        ["shift (this run less the earlier)", found.shift],
        ["anchors with another score", found.changed],
        ["icc_2_1 of the runs", found.icc],
        ["evidence of a shift (e-value; 20 is strong)", found.evidence],
        ["scored only earlier", found.lost],
        ["scored only now", found.gained],
    ]
    verdict = "the judge has shifted" if found.shifted else "no shift shown: the interval holds 0"
    return table(
        "drift", f"Against {Ref.of(data.plan.earlier).name}, the earlier run", ("statistic", "value"), rows, verdict
    )


def alt_test_table(
    score: Floats, raters: Floats, names: Sequence[str], epsilon: float, how: Resampling, *, nominal: bool
) -> Table:
    """The alternative annotator test of scores (n,), or of choices as codes, against annotators (R, n)."""
    found = alt_test(score, raters, epsilon=epsilon, alignment="exact" if nominal else "rmse", how=how)
    rows: list[list[Cell]] = []
    for name, each in zip(names, found.annotators, strict=True):
        if each is None:
            rows.append([name, 0, None, None, None, None, "no items"])
        else:
            verdict = "judge" if each.judge_wins else "annotator"
            rows.append([name, each.items, each.judge, each.annotator, each.p, each.adjusted, verdict])
    few = min((each.items for each in found.annotators if each is not None), default=0)
    answer = "cannot be told" if math.isnan(found.winning_rate) else "yes" if found.passed else "no"
    return table(
        "alt-test",
        f"May the judge replace an annotator? {answer}"
        + ("" if math.isnan(found.winning_rate) else f" (winning rate {found.winning_rate:.2f})"),
        ("left out", "n", "judge as close", "annotator as close", "p", "p (BY)", "closer to the others"),
        rows,
        f"epsilon {epsilon:g}; passes from a winning rate of .5; mean advantage of the judge {found.advantage:.4f}",
        f"fewer than {LEAST} items for an annotator: do not rely on it" if few < LEAST else "",
    )


def feedback_table(data: Data, given: Scored, how: Resampling) -> Table:
    """Claims against gold claims, and whether the score follows from them."""
    said = [claims_of(value) for value in data.objects["claims"]]
    rows: list[list[Cell]] = []
    dropped = sum(each is None for each in said)
    if "gold_claims" in data.objects:
        gold = [claims_of(value) for value in data.objects["gold_claims"]]
        both = [(a, b) for a, b in zip(said, gold, strict=True) if a is not None and b is not None]
        found = feedback_scores([a for a, _ in both], [b for _, b in both], how)
        rows += [["claims found (F1)", found.claim_f1], ["claims with the right verdict (F1)", found.verdict_f1]]
        rows.append(["faults found (F1)", found.fault_f1])
    follows = score_follows(given.score, [each or [] for each in said], how)
    rows += [[f"score and share of supported claims: {name}", value] for name, value in follows.items()]
    notes = [f"{counted(dropped, 'row')} without a list of claims" if dropped else ""]
    for role in ("claims", "gold_claims"):
        lists = [value for value in data.objects.get(role, []) if claims_of(value) is not None]
        if lost := sum(len(value) - len(claims_of(value) or ()) for value in lists):
            notes.append(f"{counted(lost, 'claim')} in {role} without a text or a verdict, not used")
    if "gold_claims" in data.objects and (undue := sum(each is None for each in gold)):
        notes.append(f"{counted(undue, 'row')} without gold claims, left out of the F1")
    return table("feedback", "The judge's claims", ("statistic", "value"), rows, *notes)


def rankings_tables(data: Data) -> list[Table]:
    """Whole rankings against gold: failures, then agreement."""
    plan, how = data.plan, data.plan.resampling
    if "score" not in data.objects or len(plan.gold) != 1:
        raise UserError("--ranked needs one --score and one --gold, each a column of rankings")
    said, gold = ([read_ranking(value) for value in data.objects[role]] for role in ("score", "gold 0"))
    failed, told = failures_told(data.words.get("status"), len(said))
    read = [(value, each) for value, each, lost in zip(data.objects["score"], said, failed, strict=True) if not lost]
    missing = sum(value is None for value, _ in read)
    unread = sum(each is None for _, each in read) - missing
    statuses = {"ok": len(read) - missing - unread, **told}
    statuses |= {"missing": statuses.get("missing", 0) + missing} if missing else {}
    statuses |= {"unparsed": statuses.get("unparsed", 0) + unread} if unread else {}
    said = [None if lost else each for each, lost in zip(said, failed, strict=True)]
    cluster = clusters_of(data.words["cluster"].codes) if "cluster" in data.words else None
    found = rank_agreement(said, gold, how, cluster)
    rows: list[list[Cell]] = [
        ["kendall_tau_b, mean over items", found.tau_b],
        ["best response found", found.top_1],
        ["pairs in the right order", found.pairs],
    ]
    n = found.pairs.n
    note = f"only {n} rankings: too few to conclude anything" if n < _FEWEST else ""
    agreement = table("rankings", f"Rankings of {n:,} items against gold", ("statistic", "value"), rows, note)
    return [failure_table(statuses, how.level), agreement]
