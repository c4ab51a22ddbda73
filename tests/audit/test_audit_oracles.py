"""100 random tables of each kind: every figure against scipy, statsmodels, krippendorff, choix, or by counting."""

import itertools
import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import choix
import krippendorff
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

import audit_oracles as oracles
from audit_tables import write
from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit, Table
from dikast.audit.statistics.against_gold.measures import MEASURES
from dikast.audit.statistics.calibration import brier_scores, expected_calibration_error, log_loss
from dikast.audit.statistics.rater_agreement import weighted_icc
from dikast.audit.tables import choices as pairs
from dikast.core.scale import Scale

NAN = math.nan
QUICK = 2  # draws: points are looked at, intervals are drawn elsewhere
HUNDRED = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
Row = dict[str, Any]
TENTHS = [k / 10 for k in range(10, 51)]
KINDS = st.sampled_from([[3.0], [2.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0], TENTHS])


def same(found: object, due: float, where: str) -> None:
    """Equal to 1e-9; undefined where undefined."""
    value = getattr(found, "value", found)
    assert isinstance(value, int | float), (where, found)
    if math.isnan(due):
        assert math.isnan(value), (where, value)
    else:
        assert value == pytest.approx(due, rel=1e-9, abs=1e-9), where


@st.composite
def score_tables(draw: st.DrawFn) -> list[Row]:
    """Rows of scores, a second judge, three raters and slices; constant columns, ties, failures, single rows."""
    columns = {name: draw(KINDS) for name in ("score", "rival", "h0", "h1", "h2")}
    missing = {name: draw(st.sampled_from([0.0, 0.0, 0.3])) for name in columns}
    n, rng = draw(st.integers(1, 16)), np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = []
    for k in range(n):
        row: Row = {
            name: None if rng.random() < missing[name] else float(rng.choice(each)) for name, each in columns.items()
        }
        rows.append({"id": k, **row, "part": f"p{k % 3}", "system": f"m{k % 5}"})
    for name in ("score", "rival", "h0", "h1", "h2"):  # a column without any number is no column
        if all(row[name] is None for row in rows):
            rows[0][name] = columns[name][0]
    return rows


def exact(rows: Sequence[Row], name: str) -> list[Fraction]:
    return [oracles.fraction(row[name]) for row in rows]


def audited(file: Path, rows: list[Row], **plan: Any) -> Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is divided by zero on the way
        return audit_file(AuditPlan(write(file, rows), draws=QUICK, **plan))


def check_headlines(table: Table, x: list[Fraction], y: list[Fraction]) -> None:
    due = oracles.headlines(x, y)
    for cells in table.rows:
        if cells[0] in due:
            same(cells[1], due[str(cells[0])], f"{table.name}: {cells[0]}")


@pytest.mark.slow
@HUNDRED
@given(rows=score_tables(), labels=st.booleans())
def test_scores(rows: list[Row], labels: bool, tmp_path: Path) -> None:
    golds = ("h0", "h1", "h2")
    scale = Scale.parse("1-5" if labels else "1-5/0.1")
    for row in rows:
        if labels:
            row |= {name: round(row[name]) for name in ("score", "rival") if row[name] is not None}
        elif row["score"] is None:
            row["score"] = 2.5  # what the unscored could have been is a long search on a scale of 41 labels
    found = audited(
        tmp_path / "x.jsonl", rows, score="score", gold=golds, rival="rival", scale=scale, by=("part",), system="system"
    )
    for row in rows:
        known = [oracles.fraction(row[name]) for name in golds if row[name] is not None]
        row["gold"] = oracles.mean(known) if known else None
    both = [row for row in rows if row["score"] is not None and row["gold"] is not None]
    x, y = exact(both, "score"), [row["gold"] for row in both]
    check_headlines(found["agreement"], x, y)
    same(found["failures"]["failed"]["count"], sum(row["score"] is None for row in rows), "failed")
    judge = found["beside"]["judge"]
    same(judge["discrimination"], oracles.discrimination(x, len(scale.labels)), "discrimination")
    if both:
        for name, due in oracles.at_random(x, y).items():
            same(found["beside"]["a judge that draws its labels at random"][name], due, f"at random {name}")
    check_raters(found, rows, golds)
    check_slices(found["by part"], both)
    check_rival(found["rival"], both)
    systems = [[row for row in both if row["system"] == f"m{k}"] for k in range(5)]
    by_system = [part for part in systems if part]
    scores = [oracles.mean(exact(part, "score")) for part in by_system]
    golds_of = [oracles.mean([row["gold"] for row in part]) for part in by_system]
    check_headlines(found["systems"], scores, golds_of)


def check_raters(found: Audit, rows: list[Row], golds: Sequence[str]) -> None:
    complete = [row for row in rows if all(row[name] is not None for name in golds)]
    columns = [exact(complete, name) for name in golds]
    table = found["raters"]
    if complete:
        same(
            table["all raters equal"]["value"],
            float(oracles.mean([Fraction(len(set(c)) == 1) for c in zip(*columns, strict=True)])),
            "equal",
        )
        same(table["fleiss_kappa"]["value"], oracles.fleiss(columns), "fleiss")
        same(table["icc_2_1"]["value"], oracles.icc_2_1(columns), "icc")
        counts = aggregate_raters(np.array([[float(each) for each in column] for column in columns]).T)[0]
        if counts.shape[1] > 1:
            same(table["fleiss_kappa"]["value"], float(fleiss_kappa(counts)), "fleiss of statsmodels")
        rest = [
            [oracles.mean(others) for others in zip(*(c for j, c in enumerate(columns) if j != i), strict=True)]
            for i in range(3)
        ]
        ceiling = [oracles.headlines(columns[i], rest[i]) for i in range(3)]
        for name in ("pearson", "spearman", "kendall_tau_b", "mae"):
            due = sum(each[name] for each in ceiling) / 3
            same(found["beside"]["one rater against the mean of the others"][name], due, f"ceiling {name}")
    ratings = np.array([[NAN if row[name] is None else row[name] for row in rows] for name in golds])
    used = ratings[:, (~np.isnan(ratings)).sum(0) >= 2]
    for level in ("nominal", "ordinal", "interval"):
        distinct = np.unique(used[~np.isnan(used)])
        due = krippendorff.alpha(used, level_of_measurement=level) if len(distinct) > 1 else NAN
        same(table[f"alpha ({level})"]["value"], float(due), f"alpha {level}")
    for one, two in itertools.combinations(golds, 2):
        shared = [row for row in rows if row[one] is not None and row[two] is not None]
        due_pair = oracles.headlines(exact(shared, one), exact(shared, two))
        cells = found["rater pairs"][f"{one} - {two}"]
        for name in ("pearson", "spearman", "kendall_tau_b", "exact", "mae", "cohen_kappa", "quadratic_kappa"):
            same(cells[name], due_pair[name], f"{one} - {two}: {name}")
    judged = [row for row in rows if row["score"] is not None]
    for name in golds:
        least = [row for row in judged if row[name] is not None and any(row[o] is not None for o in golds if o != name)]
        wins = [
            oracles.closer(oracles.fraction(row["score"]), oracles.fraction(row[name]),
                           [oracles.fraction(row[o]) for o in golds if o != name and row[o] is not None])
            for row in least
        ]  # fmt: skip
        cells = found["alt-test"][name]
        same(cells["n"], len(least), f"alt-test {name}: n")
        if least:
            for column, values in zip(("judge as close", "annotator as close"), zip(*wins, strict=True), strict=True):
                same(cells[column], sum(values) / len(values), f"alt-test {name}: {column}")


def check_slices(table: Table, both: list[Row]) -> None:
    p_values = []
    for cells in (dict(zip(table.columns, row, strict=True)) for row in table.rows):
        mine = [row for row in both if row["part"] == cells["part"]]
        rest = [row for row in both if row["part"] != cells["part"]]
        due = oracles.headlines(exact(mine, "score"), [row["gold"] for row in mine])
        for name in ("pearson", "kendall_tau_b", "exact", "within_1", "mae", "bias"):
            same(cells[name], due[name], f"{cells['part']}: {name}")
        hits = [sum(oracles.fraction(row["score"]) == row["gold"] for row in part) for part in (mine, rest)]
        if not mine or not rest:
            p = NAN
        elif sum(hits) in (0, len(both)):
            p = 1.0
        else:
            p = float(proportions_ztest(hits, [len(mine), len(rest)])[1])
        same(cells["p"], p, f"{cells['part']}: p")
        p_values.append((p, cells["p (Holm)"]))
    known = [(p, q) for p, q in p_values if not math.isnan(p)]
    if known:
        for (_, q), due_q in zip(known, multipletests([p for p, _ in known], method="holm")[1], strict=True):
            same(q, float(due_q), "Holm")


def check_rival(table: Table, both: list[Row]) -> None:
    shared = [row for row in both if row["rival"] is not None]
    gold = [row["gold"] for row in shared]
    first, second = (oracles.headlines(exact(shared, name), gold) for name in ("score", "rival"))
    for cells in table.rows:
        for cell, due in zip(cells[1:], (first, second), strict=False):
            same(cell, due[str(cells[0])], f"rival {cells[0]}")
        same(cells[3], first[str(cells[0])] - second[str(cells[0])], f"difference {cells[0]}")
    right = [[oracles.fraction(row[name]) == row["gold"] for row in shared] for name in ("score", "rival")]
    only = [sum(a and not b for a, b in zip(*each, strict=True)) for each in (right, right[::-1])]
    p = float(mcnemar([[0, only[0]], [only[1], 0]], exact=True).pvalue) if sum(only) else 1.0
    assert f"p = {p:.4g}" in table.notes[0]


@settings(HUNDRED, max_examples=40)
@given(rows=score_tables())
@example(rows=[{"id": 0, "score": 3.0, "h0": 3.0, "rival": 3.0, "h1": 2.0, "h2": 2.0, "part": "p0", "system": "m0"}])
def test_few_labels_and_two_runs(rows: list[Row], tmp_path: Path) -> None:
    many = [{**row, "h0": row["h0"] if k % 3 else None} for k, row in enumerate(rows * 4)]
    if all(row["h0"] is None for row in many):
        many[0]["h0"] = 2.0
    found = audited(
        tmp_path / "x.jsonl", many, score="score", gold=("h0",), earlier="rival", scale=Scale.parse("1-5/0.1")
    )
    labelled = [row for row in many if row["score"] is not None and row["h0"] is not None]
    rest = [row["score"] for row in many if row["score"] is not None and row["h0"] is None]
    assert ("few labels" in found) == (len(labelled) >= 10 and len(rest) > 0)
    if "few labels" in found:
        gold, judged = ([row[name] for row in labelled] for name in ("h0", "score"))
        same(found["few labels"]["labels and verdicts (PPI++)"]["mean"], oracles.ppi(gold, judged, rest), "PPI++")
        same(found["few labels"]["labels alone"]["mean"], float(np.mean(gold)), "labels alone")
    runs = [row for row in many if row["score"] is not None and row["rival"] is not None]
    now, then = exact(runs, "score"), exact(runs, "rival")
    table = found["drift"]
    if len(runs) > 1:
        same(table["shift (this run less the earlier)"]["value"], oracles.headlines(now, then)["bias"], "shift")
        same(table["anchors with another score"]["value"], 1 - oracles.headlines(now, then)["exact"], "changed")
        same(table["icc_2_1 of the runs"]["value"], oracles.icc_2_1([then, now]), "icc of runs")


@st.composite
def pair_tables(draw: st.DrawFn) -> list[Row]:
    """Choices in both orders, three raters, four players."""
    kinds: list[list[str | None]] = [["a"], ["a", "b"], ["a", "b", "tie"], ["tie"], ["a", "b", "tie", None]]
    columns = {name: draw(st.sampled_from(kinds)) for name in ("one", "two", "h0", "h1", "h2")}
    n, rng = draw(st.integers(1, 16)), np.random.default_rng(draw(st.integers(0, 2**32)))
    players = draw(st.integers(2, 4))
    rows = []
    for k in range(n):
        a, b = rng.choice(players, 2, replace=False)
        rows.append(
            {"id": k, "first": f"m{a}", "second": f"m{b}"}
            | {name: each[rng.integers(len(each))] for name, each in columns.items()}
        )
    for name in columns:
        if all(row[name] is None for row in rows):
            rows[0][name] = "a"
    return rows


def earned(said: str | None, gold: str | None, rule: str) -> float | None:
    """What a verdict is worth, None where the pair does not count."""
    if said is None or gold is None or (rule != "all" and gold == "tie") or (rule == "decided" and said == "tie"):
        return None
    return 0.5 if rule == "half" and said == "tie" else float(said == gold)


def average(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else NAN


@HUNDRED
@given(rows=pair_tables(), ranked=st.booleans())
def test_pairs(rows: list[Row], ranked: bool, tmp_path: Path) -> None:
    players = {"first": "first", "second": "second"} if ranked else {}
    found = audited(tmp_path / "x.jsonl", rows, score="one", gold=("h0", "h1", "h2"), pairwise=True, **players)
    for row in rows:
        votes = [row[name] for name in ("h0", "h1", "h2") if row[name] is not None]
        row["gold"] = next((word for word in set(votes) if 2 * votes.count(word) > len(votes)), None)
    for rule in pairs.TIE_RULES:
        due = average([earned(row["one"], row["gold"], rule) for row in rows])
        same(found["accuracy"][f"accuracy ({rule})"][found["accuracy"].columns[2]], due, rule)
    both = [(row["one"], row["gold"]) for row in rows if row["one"] is not None and row["gold"] is not None]
    if both:
        said, gold = map(list, zip(*both, strict=True))
        cells = dict(zip(found["classes"].columns, found["classes"].rows[0], strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            macro = precision_recall_fscore_support(gold, said, average="macro", zero_division=0)
            due_kappa = float(cohen_kappa_score(said, gold)) if len({*said, *gold}) > 1 else NAN
        for name, value in zip(("macro P", "macro R", "macro F1"), macro, strict=False):
            same(cells[name], float(value), name)
        same(cells["cohen_kappa"], due_kappa, "kappa of choices")
    for word, name in (("a", "first wins"), ("b", "second wins"), ("tie", "tie")):
        due = average([None if row["one"] is None else float(row["one"] == word) for row in rows])
        same(found["preferences"][name]["share"], due, name)
    if ranked:
        check_players(found, rows)


def check_players(found: Audit, rows: list[Row]) -> None:
    games = [(row["first"], row["second"], row["one"]) for row in rows if row["one"] is not None]
    names = sorted({name for row in rows for name in (row["first"], row["second"])})
    for name in names:
        worth = [{"a": 1.0, "b": 0.0, "tie": 0.5}[won] for a, _, won in games if a == name]
        worth += [{"a": 0.0, "b": 1.0, "tie": 0.5}[won] for _, b, won in games if b == name]
        same(found["players"][name]["win rate (half)"], average(worth), f"{name}: win rate")
    doubled = []  # a tie is half a win for each: every win counts twice
    for a, b, won in games:
        one, two = names.index(a), names.index(b)
        doubled += {"a": [(one, two)] * 2, "b": [(two, one)] * 2, "tie": [(one, two), (two, one)]}[won]
    reach = np.eye(len(names))
    for one, two in doubled:
        reach[one, two] = 1
    if not (np.linalg.matrix_power(reach, len(names)) > 0).all():
        return  # no finite order: test_audit_bradley_terry.py
    fitted = np.array([found["ranking"].estimate(name, "strength").value for name in names])
    wins, chance = np.zeros(len(names)), np.zeros(len(names))  # the best fit expects the wins there were
    for one, two in doubled:
        wins[one] += 1
        p = 1 / (1 + math.exp(fitted[two] - fitted[one]))
        chance[one] += p
        chance[two] += 1 - p
    assert wins == pytest.approx(chance, abs=1e-8)
    assert fitted - fitted.mean() == pytest.approx(choix.ilsr_pairwise(len(names), doubled), abs=1e-5)


@HUNDRED
@given(st.integers(1, 30), st.integers(0, 2**32), st.integers(1, 5))
def test_weights_are_copies(n: int, seed: int, kinds: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, kinds, (2, n)) / 10
    weights = rng.multinomial(n, np.full(n, 1 / n))
    copies = [[oracles.fraction(each) for each in np.repeat(column, weights)] for column in (x, y)]
    due = oracles.headlines(*copies)
    for name in ("pearson", "spearman", "cohen_kappa", "quadratic_kappa", "exact", "within_1", "mae", "bias"):
        statistic = MEASURES[name].weighted
        assert statistic is not None
        same(float(statistic(x, y)(weights[None, :].astype(float))[0]), due[name], name)
    if n > 1:
        same(float(weighted_icc(x, y)(weights[None, :].astype(float))[0]), oracles.icc_2_1(copies), "icc")


@HUNDRED
@given(st.integers(1, 40), st.integers(0, 2**32))
def test_probabilities(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 5, (n, 3)) / 1.0
    p /= p.sum(1, keepdims=True)
    gold = rng.integers(0, 3, n)
    of_all = sum((p[i, k] - (gold[i] == k)) ** 2 for i in range(n) for k in range(3))
    same(float(brier_scores(p, gold).sum()), of_all, "Brier")
    same(
        log_loss(p, gold),
        float(stats.entropy([1.0]) - np.mean([math.log(p[i, gold[i]]) for i in range(n)])),
        "log loss",
    )
    sure, right = p.max(1), p.argmax(1) == gold
    one_bin = abs(float(np.mean(sure)) - float(np.mean(right)))
    same(expected_calibration_error(sure, right, bins=1), one_bin, "ECE")


def test_nothing_at_all(tmp_path: Path) -> None:
    rows = [{"score": None, "h0": 3, "h1": 3}, {"score": 2, "h0": None, "h1": None}]
    found = audited(tmp_path / "x.jsonl", rows, score="score", gold=("h0", "h1"), scale=Scale.parse("1-5"))
    assert all(math.isnan(cells[1].value) for cells in found["agreement"].rows)  # type: ignore[union-attr]
