"""`dikast audit` on scores: what stands beside the headlines."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit_tables import Run, refused, rows_of, scores, values, write


def test_the_scores_of_a_constant_judge_are_seen_through(tmp_path: Path, run_audit: Run) -> None:
    rows = [{**row, "score": 3} for row in scores(50)]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    pearson = values(found)["pearson"]
    assert pearson["value"] is None
    assert "every score is 3" in pearson["note"]
    beside = rows_of(found, "beside", "who")
    assert beside["judge"]["discrimination"]["value"] == 0


def test_slices_with_holm_and_the_worst_decile(tmp_path: Path, run_audit: Run) -> None:
    rows = [{**row, "rubric": f"r{k % 12}"} for k, row in enumerate(scores(600))]
    for row in rows:
        if row["rubric"] == "r3":
            row["score"] = 6 - row["gold"]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "1-5", "--by", "rubric"
    )
    table = rows_of(found, "by rubric", "rubric")
    assert len(table) == 12
    assert table["r3"]["pearson"]["value"] == -1
    assert table["r3"]["p (Holm)"] < 0.05
    assert sum(row["p (Holm)"] < 0.05 for row in table.values()) == 1
    assert any(
        note.startswith("worst decile (2 of 12)") and "r3" in note for note in found["tables"]["by rubric"]["notes"]
    )


def test_clusters_widen_the_interval(tmp_path: Path, run_audit: Run) -> None:
    rows = [{**row, "scene": k // 10} for k, row in enumerate([row for row in scores(30) for _ in range(10)])]
    file = write(tmp_path / "x.csv", rows)
    arguments = (file, "--score", "score", "--gold", "gold", "--scale", "1-5")
    alone, together = (
        values(run_audit(*arguments, "--cluster", "none")),
        values(run_audit(*arguments, "--cluster", "scene")),
    )
    for name in ("pearson", "exact", "mae"):
        assert together[name]["high"] - together[name]["low"] > 2 * (alone[name]["high"] - alone[name]["low"])


def test_several_raters_make_a_ceiling_and_an_alt_test(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(1)
    rows = [
        {"score": row["score"], **{f"h{i}": int(np.clip(row["gold"] + rng.integers(-1, 2), 1, 5)) for i in range(3)}}
        for row in scores(80)
    ]
    golds = [word for i in range(3) for word in ("--gold", f"h{i}")]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", *golds, "--scale", "1-5")
    beside = rows_of(found, "beside", "who")
    assert 0 < beside["one rater against another (ceiling)"]["pearson"]["value"] < 1
    assert len(found["tables"]["rater pairs"]["rows"]) == 3
    assert set(values(found, "raters")) >= {"fleiss_kappa", "alpha (ordinal)", "icc_2_1", "all raters equal"}
    assert len(found["tables"]["alt-test"]["rows"]) == 3


def test_a_rival_a_retest_an_earlier_run_and_systems(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(2)
    rows = [
        {
            **row,
            "other": int(rng.integers(1, 6)),
            "again": row["score"],
            "before": max(1, row["score"] - 1),
            "system": f"s{k % 6}",
        }
        for k, row in enumerate(scores(200))
    ]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "1-5", "--rival", "other",
        "--retest", "again", "--earlier", "before", "--system", "system",
    )  # fmt: skip
    less = rows_of(found, "rival", "statistic")["pearson"]["difference"]
    assert less["low"] > 0
    assert "McNemar" in found["tables"]["rival"]["notes"][0]
    assert rows_of(found, "beside", "who")["the judge asked again (test-retest)"]["exact"]["value"] == 1
    assert values(found, "drift")["shift (this run less the earlier)"]["low"] > 0
    assert values(found, "systems")["pearson"]["n"] == 6


def test_unlabelled_verdicts_bring_few_labels(tmp_path: Path, run_audit: Run) -> None:
    rows = scores(400)
    for row in rows[60:]:
        row["gold"] = None
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    table = {row["from"]: row["mean"] for row in found["tables"]["few labels"]["rows"]}
    both, alone = table["labels and verdicts (PPI++)"], table["labels alone"]
    assert both["high"] - both["low"] < alone["high"] - alone["low"]
    worth = table["what a label is worth beside the verdicts"]
    assert 1 < worth["low"] < worth["value"] < worth["high"]
    binary = [
        {"score": int(row["score"] > 3), "gold": None if row["gold"] is None else int(row["gold"] > 3)} for row in rows
    ]
    found = run_audit(write(tmp_path / "y.csv", binary), "--score", "score", "--gold", "gold", "--scale", "0-1")
    assert any("Rogan-Gladen" in row["from"] for row in found["tables"]["few labels"]["rows"])


@pytest.mark.parametrize("place", ["gold file", "gold@file", "audited file", "not in the first row", "nowhere"])
def test_labels_with_unequal_chances_are_weighted_wherever_they_stand(
    place: str, tmp_path: Path, run_audit: Run
) -> None:
    rows = [{**row, "id": f"r{k}", "label_chance": None} for k, row in enumerate(scores(200))]
    for k, row in enumerate(rows):
        row |= {"label_chance": 0.1 + k % 3 / 4} if k % 4 == 1 else {"gold": None}
    labels = [{name: row[name] for name in ("id", "gold", "label_chance")} for row in rows]
    if place == "not in the first row":
        rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
    elif place == "nowhere":
        rows = [{**row, "label_chance": None} for row in rows]
    elif place != "audited file":
        rows = [{"id": row["id"], "score": row["score"]} for row in rows]
    write(tmp_path / "labels.csv", labels)
    path = write(tmp_path / ("x.jsonl" if place == "not in the first row" else "x.csv"), rows)
    where = {"gold file": ("gold", "--gold-file", tmp_path / "labels.csv"), "gold@file": ("gold@labels.csv",)}
    line = (path, "--score", "score", "--scale", "1-5", "--draws", "1", "--gold", *where.get(place, ("gold",)))
    found = run_audit(*line)
    names = [row["from"] for row in found["tables"]["few labels"]["rows"]]
    assert ("labels and verdicts (active inference)" in names) == (place != "nowhere")
    assert any("unequal chances" in note for note in found["notes"]) == (place != "nowhere")


def test_log_probabilities_below_the_floor_are_no_opinion(tmp_path: Path, run_audit: Run) -> None:
    floor = math.log(1e-5)
    rows: list[dict[str, Any]] = []
    for row in scores(100):
        logs = [floor] * 5
        logs[row["score"] - 1] = -0.1
        logs[row["gold"] - 1] = max(logs[row["gold"] - 1], -2.5)
        rows.append({"gold": row["gold"], **{f"lp{k + 1}": value for k, value in enumerate(logs)}})
    rows.append({"gold": 1, **{f"lp{k}": floor for k in range(1, 6)}})
    file = write(tmp_path / "x.csv", rows)
    columns = ("--logprobs", "lp1,lp2,lp3,lp4,lp5", "--scale", "1-5", "--gold", "gold")
    found = run_audit(file, *columns)
    counts = {row["status"]: row["count"] for row in found["tables"]["failures"]["rows"]}
    assert counts == {"failed": 1, "ok": 100, "off_scale": 1}
    read = rows_of(found, "readout", "score")
    assert read["expected less mode"]["mae"]["value"] < 0
    assert "calibration" in found["tables"]
    assert "conformal" in found["tables"]
    expected = run_audit(file, *columns, "--readout", "expected")
    assert values(expected)["mae"]["value"] < values(found)["mae"]["value"]
    assert "5 columns" in refused(run_audit, file, *columns[:2], "--scale", "1-3", "--gold", "gold")


def test_what_is_no_distribution_is_a_failure_and_told(tmp_path: Path, run_audit: Run) -> None:
    """Five labels at 0 (probability 1 each) were renormalised to a fifth each: the middle of the scale."""
    sure = [math.log(0.9), *[math.log(0.02)] * 4]
    wrong = ([0.0] * 5, [2.0, 3.0, -9.0, -9.0, -9.0], [math.log(0.6)] * 2 + [math.log(0.01)] * 3)
    rows = [{"gold": row["gold"], "logs": sure[-k:] + sure[:-k]} for k, row in enumerate(scores(30))]
    rows += [{"gold": 3, "logs": logs} for logs in wrong]
    named = [{"gold": row["gold"], **{f"lp{k}": lp for k, lp in enumerate(row["logs"], 1)}} for row in rows]
    columns = ("--logprobs", "lp1,lp2,lp3,lp4,lp5", "--scale", "1-5", "--gold", "gold")
    found = run_audit(write(tmp_path / "x.csv", named), *columns)
    counts = {row["status"]: row["count"] for row in found["tables"]["failures"]["rows"]}
    assert {status: count for status, count in counts.items() if status not in ("ok", "failed")} == {
        "no distribution": 3
    }
    assert not any("without probability on any label" in each for each in found["notes"])
    assert any(each.startswith("3 rows whose numbers cannot be log-probabilities") for each in found["notes"])
    note = " ".join(found["tables"]["readout"]["notes"])
    assert "3 of them cannot be probabilities, such as: a log-probability above 0 (2.0)" in note


def test_true_is_no_number_of_a_scale_of_five(tmp_path: Path, run_audit: Run) -> None:
    """It was read as gold of 1; on a scale of two labels it is the larger."""
    rows = [{"score": 1, "gold": True}, {"score": 0, "gold": False}] * 20
    file = write(tmp_path / "x.jsonl", rows)
    told = refused(run_audit, file, "--score", "score", "--gold", "gold", "--scale", "1-5")
    assert "x.jsonl:1" in told
    assert "gold" in told
    two = values(run_audit(file, "--score", "score", "--gold", "gold", "--scale", "0-1"))
    assert two["exact"]["value"] == 1.0


def test_expected_scores_between_labels(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", [{**row, "score": row["score"] * 0.9 + 0.3} for row in scores(30)])
    assert "--between" in refused(run_audit, file, "--score", "score", "--gold", "gold", "--scale", "1-5")
    strict = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--allow-unread")
    assert strict["tables"]["agreement"]["rows"][0]["value"]["n"] < 30
    between = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--between")
    assert values(between)["pearson"]["n"] == 30


def test_claims(tmp_path: Path, run_audit: Run) -> None:
    def claims(good: int) -> list[dict[str, str]]:
        return [{"text": f"c{i}", "verdict": "supported" if i < good else "wrong"} for i in range(4)]

    rows: list[dict[str, Any]] = [{"score": 1 + k % 5, "gold": 1 + k % 5, "claims": claims(k % 5)} for k in range(20)]
    file = write(tmp_path / "x.jsonl", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--claims", "claims", "--gold-claims", "claims")
    table = values(found, "feedback")
    assert table["faults found (F1)"]["value"] == 1
    assert math.isclose(table["score and share of supported claims: pearson"]["value"], 1)


def test_means_of_a_column_by_slice(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [{"m": m, "tokens": n} for m, n in (("x", 1), ("x", 3), ("y", 10), ("y", None))]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--mean", "tokens", "--by", "m")
    table = {row["column"]: row["mean"] for row in found["tables"]["means"]["rows"]}
    assert table["x: tokens"]["value"] == 2
    assert (table["y: tokens"]["value"], table["y: tokens"]["n"], table["y: tokens"]["dropped"]) == (10, 1, 1)


def test_a_judge_that_is_always_right_is_not_certain(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": 1 + k % 5, "gold": 1 + k % 5} for k in range(12)]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    agreement = rows_of(found, "agreement", "statistic")
    exact = agreement["exact"]["value"]
    assert (exact["value"], exact["high"]) == (1, 1)
    assert math.isclose(exact["low"], 12 / (12 + 1.959964**2), rel_tol=1e-6)
    for name in ("pearson", "kendall_tau_b", "mae", "cohen_kappa"):
        assert agreement[name]["value"]["low"] is None
        assert agreement[name]["labels for ±0.03"] is None


def test_a_test_retest_needs_no_gold_and_other_columns_do(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": 1 + k % 5, "again": 1 + (k + (k % 4 == 0)) % 5} for k in range(20)]
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--retest", "again", "--scale", "1-5")
    assert rows_of(found, "beside", "who")["the judge asked again (test-retest)"]["exact"]["value"] == 15 / 20
    assert refused(run_audit, file, "--score", "score", "--rival", "again") == "--rival: applies only with --gold"
    told = refused(run_audit, file, "--score", "score", "--pairwise", "--covariate", "again")
    assert told == "--covariate: applies only with --first and --second"


def test_without_items_of_three_raters_the_alt_test_says_nothing(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": 3, "a": 1, "b": None, "c": None}] * 3 + [{"score": None, "a": None, "b": 2, "c": 3}] * 3
    gold = ("--gold", "a", "--gold", "b", "--gold", "c")
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", *gold, "--scale", "1-5")
    assert found["tables"]["alt-test"]["title"] == "May the judge replace an annotator? cannot be told"


def test_claims_that_cannot_be_compared_are_counted(tmp_path: Path, run_audit: Run) -> None:
    claim = {"text": "a b", "verdict": "supported"}
    said = [claim, {"text": "c"}]
    rows: list[dict[str, Any]] = [{"score": 1 + k % 5, "said": said, "due": [claim]} for k in range(8)]
    rows += [{"score": 3, "said": None, "due": [claim]}, {"score": 3, "said": [claim], "due": None}]
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = run_audit(file, "--score", "score", "--claims", "said", "--gold-claims", "due", "--scale", "1-5")
    feedback = found["tables"]["feedback"]
    assert feedback["notes"][:4] == [
        "1 row without a list of claims",
        "8 claims in claims without a text or a verdict, not used",
        "1 row without gold claims, left out of the F1",
        "no interval (too few rows, or every draw alike): claims found (F1), claims with the right verdict (F1)",
    ]
    assert feedback["notes"][4] == "undefined (no claims on either side): faults found (F1)"
    assert (feedback["rows"][0]["value"]["value"], feedback["rows"][0]["value"]["n"]) == (1, 8)
    assert "--claims" in refused(run_audit, file, "--score", "score", "--gold-claims", "due")


def test_scores_on_another_scale_stop_with_the_cure(tmp_path: Path, run_audit: Run) -> None:
    """They went on as failures: 'exact .5, n 4' of forty scores on 1-10."""
    rows = [{**row, "score": 2 * row["score"], "wide": row["score"] + 0.5, "same": row["gold"]} for row in scores(40)]
    file = write(tmp_path / "x.csv", rows)
    told = refused(run_audit, file, "--score", "score", "--gold", "gold", "--scale", "1-5")
    assert "column 'score': " in told
    assert "of 40 values off the scale 1-5 (from 2 to 10), such as 6, 8, 10" in told
    assert "--scale" in told
    assert "--allow-unread" in told
    assert "--between" in refused(run_audit, file, "--score", "wide", "--scale", "1-6")
    beside = ("--score", "same", "--gold", "gold", "--rival", "score", "--scale", "1-5")
    assert "'score'" in refused(run_audit, file, *beside)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--allow-unread")
    assert any(note.endswith("failures (off_scale)") for note in found["notes"])


@pytest.mark.parametrize("scale", ["0-1", "1-10"])
def test_equating_changes_no_statistic_of_order(scale: str, tmp_path: Path, run_audit: Run) -> None:
    # pass or fail beside gold on 1-5: each fold has a map of its own, so that equal scores of two folds differ; of
    # 1-10, scores beyond the extremes of gold get the same value
    rng, order = np.random.default_rng(3), ("spearman", "kendall_tau_b", "kendall_tau_c", "ordered_pairs")
    gold = rng.integers(2, 6, (3, 60))
    score = (gold[0] + rng.normal(0, 1, 60) > 3.5) * 1 if scale == "0-1" else 2 * gold[0] - rng.integers(0, 3, 60)
    rows: list[dict[str, Any]] = [
        {"score": s, "a": a, "b": b, "c": c, "of": k % 2}
        for k, (s, a, b, c) in enumerate(zip(score.tolist(), *gold.tolist(), strict=True))
    ]
    rows += [{**row, "score": None} for row in rows[:3]]
    file = write(tmp_path / "x.jsonl", rows)
    columns = (file, "--score", "score", "--gold", "a", "--gold", "b", "--gold", "c", "--by", "of", "--draws", "100")
    plain = run_audit(*columns)
    for seed in ("0", "1"):
        equated = run_audit(*columns, "--scale", "1-5", "--equate", scale, "--seed", seed)
        told = rows_of(equated, "agreement", "statistic")
        for name in order:
            assert told[name]["value"]["value"] == values(plain)[name]["value"], name
            assert told[name]["worst"] <= told[name]["value"]["value"] <= told[name]["best"]
        found = [
            [
                *(rows_of(each, "beside", "who")[who]["spearman"]["value"] for who in _JUDGE),
                *(rows_of(each, "by of", "of")[name][kind]["value"] for name in "01" for kind in order),
                rows_of(each, "over of", "statistic")["spearman"]["mean"]["value"],
            ]
            for each in (plain, equated)
        ]
        assert found[0] == found[1]
        assert any("scores lie between the labels" in note for note in equated["tables"]["agreement"]["notes"])


_JUDGE = ("judge", "judge against one rater")
