"""Clusters enter every figure: what is told of rows that came in tens is as unsure as one row in ten makes it."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit_tables import Run, refused, rows_of, scores, values, write
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.against_gold.chance import by_chance
from dikast.audit.statistics.against_gold.measures import difference, measure
from dikast.audit.statistics.alt_test import alt_test
from dikast.audit.statistics.building_blocks.linearised import ORDER, order_interval
from dikast.audit.statistics.claim_agreement import Span, span_f1
from dikast.audit.statistics.drift import drift
from dikast.audit.statistics.intervals import Resampling
from dikast.audit.statistics.ppi import multiplier_estimate, ppi_difference, ppi_mean, rogan_gladen
from dikast.audit.statistics.significance import mcnemar

HOW = Resampling(400, seed=1)


def width(found: Any) -> float:
    low, high = (found["low"], found["high"]) if isinstance(found, dict) else (found.low, found.high)
    return float(high - low)


def copied(n: int, times: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and gold of n items, each `times` over, and the clusters."""
    rng = np.random.default_rng(seed)
    gold = rng.normal(size=n)
    score = 0.7 * gold + rng.normal(size=n)
    return np.repeat(score, times), np.repeat(gold, times), np.repeat(np.arange(n), times)


def test_copies_in_clusters_tell_what_the_originals_tell() -> None:
    score, gold, cluster = copied(80, 6)
    for name in ORDER:
        once = order_interval(name, score[::6], gold[::6], 0.95)
        again = order_interval(name, score, gold, 0.95, cluster)
        alone = order_interval(name, score, gold, 0.95)
        assert math.isclose(width(again), width(once), rel_tol=0.1)
        assert width(alone) < 0.6 * width(once)
    right, other = score > 0, gold > 0.5
    p = mcnemar(right, other, cluster).p
    assert mcnemar(right, other).p < p
    assert math.isclose(p, mcnemar(right[::6], other[::6], np.arange(80)).p, rel_tol=1e-6)


def test_mcnemar_by_cluster_by_hand() -> None:
    # differences 1, 1 | 1, 0 | -1, 0: mean 1/3; cluster sums less 2/3 of it: 4/3, 1/3, -5/3, over 6
    # error sqrt(3/2 * (16 + 1 + 25)/9) / 6 = sqrt(7) / 6; t = 2 / sqrt(7) with 2 degrees: p = 1 - t / sqrt(2 + t^2)
    first, second = [1, 1, 1, 0, 0, 1], [0, 0, 0, 0, 1, 1]
    t = 2 / math.sqrt(7)
    found = mcnemar(first, second, np.array([0, 0, 1, 1, 2, 2]))
    assert (found.only_first, found.only_second) == (3, 1)
    assert math.isclose(found.p, 1 - t / math.sqrt(2 + t**2))


def test_few_labels_in_clusters() -> None:
    rng = np.random.default_rng(2)
    truth = np.repeat(rng.normal(size=200), 5)
    judged, cluster = truth + np.repeat(rng.normal(size=200), 5), np.repeat(np.arange(200), 5)
    labelled = 250
    parts = truth[:labelled], judged[:labelled], judged[labelled:]
    assert width(ppi_mean(*parts, 0.95, cluster)) > 1.8 * width(ppi_mean(*parts))
    y, f, rest = ((each > 0).astype(int) for each in parts)
    assert width(rogan_gladen(y, f, rest, 0.95, cluster)) > 1.5 * width(rogan_gladen(y, f, rest))
    worth = multiplier_estimate(*parts[:2], 750, HOW, cluster[:labelled])
    assert 1 <= worth.low < worth.value < worth.high
    # the same items under two systems: by item the difference is known better than of independent samples
    shifted = parts[0] + 0.2, parts[1] + 0.2, parts[2] + 0.2
    paired = ppi_difference(shifted, parts, 0.95, (cluster, cluster))
    assert math.isclose(paired.value, 0.2)
    assert width(paired) < 0.01 < width(ppi_difference(shifted, parts))


def test_the_replacement_the_drift_and_spans_in_clusters() -> None:
    rng = np.random.default_rng(3)
    people = np.repeat(rng.integers(1, 4, (3, 40)), 5, axis=1).astype(float)
    judge, cluster = np.repeat(rng.integers(1, 4, 40), 5).astype(float), np.repeat(np.arange(40), 5)
    alone, together = alt_test(judge, people, how=HOW), alt_test(judge, people, how=HOW, cluster=cluster)
    for one, two in zip(alone.annotators, together.annotators, strict=True):
        assert one is not None
        assert two is not None
        assert width(two.less) > 1.8 * width(one.less)
    assert width(together.advantage) > 1.8 * width(alone.advantage)
    once, again = drift(people[0], people[1], how=HOW), drift(people[0], people[1], how=HOW, cluster=cluster)
    assert once.icc.low < once.icc.value < once.icc.high
    assert width(again.icc) > 1.8 * width(once.icc)
    assert width(again.changed) > 1.8 * width(once.changed)
    assert again.evidence < 20
    marks = [[Span(0, int(k))] for k in people[0]]
    due = [[Span(1, 4)]] * len(marks)
    assert width(span_f1(marks, due, HOW, cluster)) > 1.8 * width(span_f1(marks, due, HOW))


def test_chance_by_hand() -> None:
    # scores 1, 1, 2 and golds 1, 2, 4: equal in 3 of 9 pairs; at most 1 apart in 6 (4 is too far from all)
    found = {name: by_chance(name, [1, 1, 2], [1, 2, 4], 0.95).value for name in ("exact", "within_1", "mae")}
    assert math.isclose(found["exact"], 3 / 9)
    assert math.isclose(found["within_1"], 6 / 9)
    assert math.isclose(found["mae"], ((0 + 1 + 3) * 2 + 1 + 0 + 2) / 9)
    assert by_chance("mae", [2, 4], [3, 4], 0.95).high > 7
    assert by_chance("mae", [2, 4], [3, 4], 0.95, bounds=(1, 5)).high == 4  # no farther apart on that scale


def test_continuous_scores_have_all_their_intervals() -> None:
    score, gold, _ = copied(150, 1)
    names = ["kendall_tau_b", "kendall_tau_c", "ordered_pairs", "quadratic_kappa"]
    found = measure(score, gold, names, HOW)
    less = difference(score, np.roll(score, 1), gold, names, HOW)
    for name in names:
        assert found[name].low < found[name].value < found[name].high, name
        assert less[name].low < less[name].value < less[name].high, name


@pytest.mark.parametrize("name", sorted(ORDER))
def test_order_statistics_cover(name: str) -> None:
    truth = {"kendall_tau_b": 1 / 3, "kendall_tau_c": 1 / 3, "ordered_pairs": 2 / 3}[name]  # normal, r = .5
    hits = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=100)
        found = order_interval(name, x, 0.5 * x + math.sqrt(0.75) * rng.normal(size=100), 0.95)
        hits += found.low <= truth <= found.high
    assert 0.93 <= hits / 1000 <= 0.97


def test_every_interval_of_a_file_in_clusters(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(4)
    rows: list[dict[str, Any]] = [
        {**row, "other": int(rng.integers(1, 6)), "part": f"p{k % 3}", "scene": k // 3, "h": row["gold"]}
        for k, row in enumerate(scores(60))
    ]
    for k, row in enumerate(rows):
        if k % 7 == 0:
            row["score"] = -1
        elif k % 6 == 0:
            row["score"] = row["gold"]
    rows = [{**row, "scene": f"{row['part']}{row['scene']}"} for row in rows for _ in range(8)]
    file = write(tmp_path / "x.csv", rows)
    arguments = ("--score", "score", "--gold", "gold", "--gold", "h", "--scale", "1-5", "--rival", "other")
    alone, together = (
        run_audit(file, *arguments, "--by", "part", *more, "--draws", "300")
        for more in (("--cluster", "none"), ("--cluster", "scene"))
    )
    for table, key, line, column in (
        ("failures", "status", "failed", "share"), ("beside", "who", "judge", "discrimination"),
        ("beside", "who", "a judge that draws its labels at random", "mae"),
        ("by part", "part", "p0", "failed"), ("by part", "part", "p0", "exact"),
    ):  # fmt: skip
        one, two = (width(rows_of(found, table, key)[line][column]) for found in (alone, together))
        assert two > 1.8 * one, (table, line, column)
    p, clustered = (rows_of(found, "by part", "part")["p0"]["p"] for found in (alone, together))
    assert p < clustered
    assert "McNemar by cluster" in together["tables"]["rival"]["notes"][0]
    assert "takes" in alone["tables"]["rival"]["notes"][0]


def bare(found: dict[str, Any]) -> list[str]:
    """Figures with a value and no interval that no note explains."""
    missing = []
    for name, table in found["tables"].items():
        for row in table["rows"]:
            label = str(next(iter(row.values())))
            missing += [
                f"{name}: {label} / {column}"
                for column, cell in row.items()
                if isinstance(cell, dict) and cell["value"] is not None and cell["low"] is None
                and not any(note.startswith("no interval") for note in table["notes"])
            ]  # fmt: skip
    return missing


def test_no_figure_without_an_interval_or_a_reason(tmp_path: Path, run_audit: Run) -> None:
    rows = [{**row, "before": max(1, row["score"] - 1), "h": row["gold"]} for row in scores(80)]
    for row in rows[60:]:
        row["gold"] = None
    found = run_audit(
        write(tmp_path / "x.jsonl", rows), "--score", "score", "--gold", "gold", "--scale", "1-5",
        "--earlier", "before", "--draws", "200",
    )  # fmt: skip
    assert bare(found) == []
    assert values(found, "drift")["icc_2_1 of the runs"]["low"] is not None
    assert rows_of(found, "conformal", "rows")["all"]["width"]["low"] is not None
    games = [{"a": "x", "b": "y", "won": ("a", "b", "a", "tie")[k % 4]} for k in range(40)]
    games += [{"a": "y", "b": "z", "won": "ab"[k % 2]} for k in range(31)]
    games += [{"a": "x", "b": "z", "won": "ab"[k % 3 > 0]} for k in range(31)]
    ranked = run_audit(
        write(tmp_path / "y.csv", games), "--score", "won", "--first", "a", "--second", "b", "--draws", "60"
    )
    assert bare(ranked) == []
    checks = {row["check"]: row["value"] for row in ranked["tables"]["ranking checks"]["rows"]}
    assert checks["Davidson tie parameter"]["low"] < checks["Davidson tie parameter"]["value"]
    expected = checks["cyclic triples expected from the strengths alone"]["value"]
    as_many = checks["as many cyclic triples or more, from the strengths alone"]["value"]
    assert checks["cyclic triples"]["value"] == 1  # the only triple is a circle
    assert 0 < expected < as_many < expected + 0.02  # the share of draws that are one too, these games included


def test_slices_without_gold(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [{"score": s, "part": p} for p, s in (("x", 1), ("x", 5), ("x", -1), ("y", 3))]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--score", "score", "--scale", "1-5", "--by", "part")
    table = rows_of(found, "by part", "part")
    assert math.isclose(table["x"]["failed"]["value"], 1 / 3)
    assert (table["x"]["mean score"]["value"], table["y"]["mean score"]["value"]) == (3, 3)
    pairs = [{"won": "a", "part": "x"}] * 3 + [{"won": "b", "part": "y"}] * 2 + [{"won": "?", "part": "y"}]
    found = run_audit(write(tmp_path / "y.csv", pairs), "--score", "won", "--pairwise", "--by", "part", "--failed", "?")
    assert rows_of(found, "by part", "part")["y"]["second wins"]["value"] == 1
    path, gold = write(tmp_path / "z.csv", scores(12)), ("--gold", "gold", "--by", "id")
    found, named = run_audit(path, *gold), run_audit(path, "--score", "score", "--scale", "1-5", *gold)
    assert found["tables"] == named["tables"]  # the column of verdicts is recognised, and its scale


def test_scores_of_another_scale_and_spans_and_widths(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [
        {**row, "ten": 2 * row["score"], "said": [[0, 4]], "due": [[2, 6]]} for row in scores(100)
    ]
    rows.append({"id": "off", "ten": 11, "gold": 3, "said": None, "due": None})
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("--score", "ten", "--gold", "gold", "--scale", "1-5", "--spans", "said", "--gold-spans", "due")
    found = run_audit(file, *arguments, "--equate", "1-10", "--width", "0.1")
    assert rows_of(found, "failures", "status")["off_scale"]["count"] == 1
    assert abs(values(found)["bias"]["value"]) < 0.15  # it was 3 on the scales as they are
    assert values(found, "feedback")["marked characters (F1)"]["value"] == 0.5
    assert "labels for ±0.1" in found["tables"]["agreement"]["rows"][0]
    assert "--gold-spans" in refused(run_audit, file, "--score", "ten", "--spans", "said")
    assert "--scale" in refused(run_audit, file, "--score", "ten", "--gold", "gold", "--equate", "1-10")


def test_two_systems_with_few_labels(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [{**row, "system": "ab"[k % 2]} for k, row in enumerate(scores(200))]
    for row in rows[60:]:
        row["gold"] = None
    file = write(tmp_path / "x.jsonl", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--system", "system")
    less = {row["from"]: row["mean"] for row in found["tables"]["few labels"]["rows"]}["b less a (PPI++)"]
    assert less["low"] < less["value"] < less["high"]


def test_an_estimate_without_an_interval_is_named() -> None:
    from dikast.audit.rendering import table

    rows: list[list[Any]] = [
        ["x", Estimate(1.0, 3)],
        ["y", Estimate(2.0, 3, note="why")],
        ["z", Estimate(math.nan, 3, note="so")],
    ]
    found = table("t", "T", ("who", "one"), rows, "first")
    assert found.notes == (
        "first",
        "no interval (too few rows, or every draw alike): x",
        "no interval (why): y",
        "undefined (so): z",
    )


def test_rows_of_one_id_are_drawn_together(tmp_path: Path, run_audit: Run) -> None:
    rows = scores(40)
    rows += [{**row, "id": ""} for row in rows[:2]]  # without an id: independent
    options = ("--score", "score", "--gold", "gold", "--scale", "1-5")
    tenfold = write(tmp_path / "tenfold.jsonl", rows * 10)
    found = run_audit(tenfold, *options)
    assert any(
        "420 rows of 60 ids: rows of an id are drawn together (as with --cluster id)" in n for n in found["notes"]
    )
    once, again = (
        values(each, "agreement") for each in (run_audit(write(tmp_path / "x.jsonl", rows), *options), found)
    )
    alone = values(run_audit(tenfold, *options, "--cluster", "none"), "agreement")
    for name in ("pearson", "spearman", "mae"):
        assert math.isclose(again[name]["value"], alone[name]["value"], rel_tol=1e-9)
        assert width(alone[name]) < 0.5 * width(once[name])
        assert width(again[name]) > 0.8 * width(once[name])


def test_an_id_of_several_columns_draws_rows_together(tmp_path: Path, run_audit: Run) -> None:
    rows = [{**row, "scene": row["id"], "view": i % 2} for row in scores(40) for i in range(4)]
    found = run_audit(
        write(tmp_path / "x.jsonl", rows), "--score", "score", "--gold", "gold", "--scale", "1-5", "--id", "scene,view"
    )
    assert any("160 rows of 80 ids: rows of an id are drawn together; --cluster none" in n for n in found["notes"])


def test_rows_that_share_a_name_of_their_item_are_told(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"Question ID": row["id"], "score": row["score"], "gold": row["gold"]} for row in scores(30) for _ in "ab"]
    columns = ("--score", "score", "--gold", "gold", "--scale", "1-5", "--draws", "100")
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, *columns)
    assert any("60 rows share 30 values of 'Question ID'" in note for note in found["notes"])
    for more in ("--cluster", "--id"):
        told = run_audit(file, *columns, more, "Question ID")
        assert not any("share 30 values" in note for note in told["notes"])
    plain = write(tmp_path / "y.csv", [{"score": row["score"], "gold": row["gold"]} for row in rows])
    assert run_audit(plain, *columns)["tables"] == found["tables"]  # nothing but the note
    once = run_audit(write(tmp_path / "z.csv", rows[::2]), *columns)
    assert not any("share" in note for note in once["notes"])
