"""`dikast audit` on small files: what it reads, what it says, what it refuses."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dikast.core.errors import DataError, UserError
from dikast.core.records import write_records

Run = Callable[..., dict[str, Any]]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    write_records(path, rows)
    return path


def scores(n: int = 40, seed: int = 0, **more: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(1, 6, n)
    score = np.clip(gold + rng.integers(-1, 2, n), 1, 5)
    return [
        {"id": f"i{k}", "score": int(s), "gold": int(g), **more}
        for k, (s, g) in enumerate(zip(score, gold, strict=True))
    ]


def rows_of(found: dict[str, Any], name: str, key: str) -> dict[str, dict[str, Any]]:
    return {row[key]: row for row in found["tables"][name]["rows"]}


def values(found: dict[str, Any], name: str = "agreement") -> dict[str, Any]:
    return {row["statistic"]: row["value"] for row in found["tables"][name]["rows"]}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json", ".parquet", ".csv.gz"])
def test_every_file_gives_the_same_numbers(suffix: str, tmp_path: Path, run_audit: Run) -> None:
    rows = scores()
    found = run_audit(write(tmp_path / f"x{suffix}", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    exact = sum(row["score"] == row["gold"] for row in rows) / 40
    assert math.isclose(values(found)["exact"]["value"], exact)
    assert values(found)["exact"]["n"] == 40


def test_failures_are_counted_never_used(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = scores(20)
    rows += [
        {"id": "a", "score": -1, "gold": 3},
        {"id": "b", "score": None, "gold": 3},
        {"id": "c", "score": 2.5, "gold": 3},
    ]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    counts = {row["status"]: row["count"] for row in found["tables"]["failures"]["rows"]}
    assert counts == {"failed": 3, "ok": 20, "missing": 1, "off_scale": 2}
    exact = rows_of(found, "agreement", "statistic")["exact"]
    hits = sum(row["score"] == row["gold"] for row in rows[:20])
    assert exact["value"]["n"] == 20
    assert math.isclose(exact["value"]["value"], hits / 20)
    assert math.isclose(exact["worst"], hits / 23)
    assert math.isclose(exact["best"], (hits + 3) / 23)


def test_a_status_column_and_words_for_failures(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = scores(15, status="ok")
    rows += [
        {"id": "x", "score": 3, "gold": 3, "status": "refused"},
        {"id": "y", "score": "ERR", "gold": 1, "status": "ok"},
    ]
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(
        file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--status", "status", "--failed", "ERR"
    )
    counts = {row["status"]: row["count"] for row in found["tables"]["failures"]["rows"]}
    assert counts == {"failed": 2, "ok": 15, "refused": 1, "missing": 1}


def test_letters_and_words_are_scores_on_their_scale(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": s, "gold": g} for s, g in ("AA", "BA", "CC", "DB", "EE")]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "A-E")
    assert values(found)["exact"]["value"] == 3 / 5
    assert values(found)["bias"]["value"] == (-1 - 2) / 5  # A is best, so B for A is one lower


def test_the_scores_of_a_constant_judge_are_seen_through(tmp_path: Path, run_audit: Run) -> None:
    rows = [{**row, "score": 3} for row in scores(50)]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    pearson = values(found)["pearson"]
    assert pearson["value"] is None
    assert "every score is 3" in pearson["note"]
    beside = rows_of(found, "beside", "who")
    assert beside["judge"]["discrimination"]["value"] == 0


def test_few_pairs_duplicates_and_missing_gold_are_said(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [
        *scores(5),
        {"id": "i0", "score": 2, "gold": 2},
        {"id": "z", "score": 2, "gold": None},
    ]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    assert any("only 6 pairs" in note for note in found["tables"]["agreement"]["notes"])
    assert any("1 ids occur more than once (the first is 'i0')" in note for note in found["notes"])
    assert "1 row without 'gold'" in found["notes"]
    assert found["tables"]["agreement"]["title"].startswith("Agreement of 6 scores")


def test_gold_from_another_file(tmp_path: Path, run_audit: Run) -> None:
    rows = scores(30)
    judged = write(tmp_path / "judged.csv", [{"id": row["id"], "score": row["score"]} for row in rows[:25]])
    gold = write(tmp_path / "gold.jsonl", [{"id": row["id"], "gold": row["gold"]} for row in rows[3:]])
    found = run_audit(judged, "--score", "score", "--gold", "gold", "--gold-file", gold, "--scale", "1-5")
    assert "3 rows without a partner in gold.jsonl (by id)" in found["notes"]
    assert "5 rows of gold.jsonl that belong to no row of judged.csv" in found["notes"]
    assert values(found)["exact"]["n"] == 22
    same = run_audit(judged, "--score", "score", "--gold", "gold@gold.jsonl", "--scale", "1-5")
    assert values(same) == values(found)


def test_an_object_of_objects_and_paths_into_rows(tmp_path: Path, run_audit: Run) -> None:
    rows = {row["id"]: {"judge": {"score": row["score"]}, "human": [row["gold"], 3]} for row in scores(30)}
    file = tmp_path / "x.json"
    file.write_text(json.dumps(rows))
    found = run_audit(file, "--score", "judge.score", "--gold", "human.0", "--scale", "1-5")
    assert found["rows"] == 30
    assert math.isclose(values(found)["exact"]["value"], sum(row["score"] == row["gold"] for row in scores(30)) / 30)


def test_standard_input(tmp_path: Path, audit_app: typer.Typer) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in scores(20))
    words = ["audit", "-", "--score", "score", "--gold", "gold", "--scale", "1-5", "--json"]
    shown = CliRunner().invoke(audit_app, words, input=lines, catch_exceptions=False)
    assert values(json.loads(shown.stdout))["exact"]["n"] == 20


def test_what_was_dropped_stands_with_every_estimate(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [
        *scores(20),
        {"id": "x", "score": 9, "gold": 1},
        {"id": "y", "score": 3, "gold": None},
    ]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    for row in found["tables"]["agreement"]["rows"]:
        assert (row["value"]["n"], row["value"]["dropped"]) == (20, 2), row["statistic"]
        assert row["value"]["level"] == 0.95


def test_joining_by_position_and_by_several_columns(tmp_path: Path, run_audit: Run) -> None:
    rows = scores(20)
    judged = write(
        tmp_path / "a.jsonl", [{"m": k % 2, "q": k // 2, "score": row["score"]} for k, row in enumerate(rows)]
    )
    gold = write(
        tmp_path / "b.jsonl", [{"m": f"{k % 2}", "q": float(k // 2), "gold": row["gold"]} for k, row in enumerate(rows)]
    )
    by_place = run_audit(judged, "--score", "score", "--gold", f"gold@{gold}", "--scale", "1-5", "--id", "line")
    by_name = run_audit(judged, "--score", "score", "--gold", f"gold@{gold}", "--scale", "1-5", "--id", "m,q")
    assert values(by_place) == values(by_name)


def refused(run: Run, *arguments: str | Path) -> str:
    with pytest.raises(UserError) as caught:
        run(*arguments)
    return str(caught.value)


def test_mistakes_are_told_with_their_place_and_their_cure(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", scores(12))
    assert "did you mean 'score'" in refused(run_audit, file, "--score", "scroe", "--gold", "gold")
    assert "the columns are: id, score, gold" in refused(run_audit, file, "--score", "human", "--gold", "gold")
    assert "no such file" in refused(run_audit, tmp_path / "y.csv", "--score", "score")
    assert "--score" in refused(run_audit, file)
    text = refused(run_audit, file, "--score", "id", "--gold", "gold")
    assert "x.csv:2: field 'id'" in text
    assert "'i0'" in text
    assert "--level" in refused(run_audit, file, "--score", "score", "--gold", "gold", "--level", "95")
    assert "choose drop, tie, wrong" in refused(run_audit, file, "--score", "score", "--unscored", "zero")
    assert "no row has that value" in refused(run_audit, file, "--score", "score", "--gold", "gold", "--where", "id=q")
    other = write(tmp_path / "other.csv", [{"id": "i1", "gold2": 1}, {"id": "i1", "gold2": 2}])
    twice = refused(run_audit, file, "--score", "score", "--gold", f"gold2@{other}")
    assert "other.csv:3" in twice
    assert "stands here again (first on line 2)" in twice
    apart = write(tmp_path / "apart.csv", [{"id": "q", "gold2": 1}])
    assert "no row of it belongs" in refused(run_audit, file, "--score", "score", "--gold", f"gold2@{apart}")
    assert isinstance(_caught(run_audit, file, "--score", "id", "--gold", "gold"), DataError)
    choices = write(tmp_path / "pairs.csv", [{"score": "1", "gold": "2"}])
    assert "--pair-labels" in refused(run_audit, choices, "--score", "score", "--gold", "gold", "--pairwise")


def _caught(run: Run, *arguments: str | Path) -> UserError:
    with pytest.raises(UserError) as caught:
        run(*arguments)
    return caught.value


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
    alone, together = values(run_audit(*arguments)), values(run_audit(*arguments, "--cluster", "scene"))
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


def test_expected_scores_between_labels(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", [{**row, "score": row["score"] * 0.9 + 0.3} for row in scores(30)])
    strict = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5")
    assert strict["tables"]["agreement"]["rows"][0]["value"]["n"] < 30
    between = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--between")
    assert values(between)["pearson"]["n"] == 30


def test_pairs_in_both_orders_with_slots(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"shown": "a", "swapped": "a", "gold": "a"}] * 30 + [{"shown": "b", "swapped": "a", "gold": "b"}] * 30
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "shown", "--swapped", "swapped", "--swapped-as", "slots", "--gold", "gold")
    # in slots: the first 30 name the first slot both times, so the other response when swapped
    orders = values(found, "orders")
    assert orders["same verdict in both orders"]["value"] == 0.5
    assert orders["first slot, where they differ"]["value"] == 1
    accuracy = rows_of(found, "accuracy", "statistic")["accuracy (all)"]
    assert (accuracy["as shown"]["value"], accuracy["swapped"]["value"]) == (1, 0.5)


@pytest.mark.parametrize(("rule", "value", "n"), [("drop", 1.0, 20), ("tie", 20 / 25, 25), ("wrong", 20 / 25, 25)])
def test_the_unscored_follow_a_named_rule(rule: str, value: float, n: int, tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": "a", "gold": "a"}] * 20 + [{"score": "who knows", "gold": "b"}] * 5
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--pairwise", "--unscored", rule
    )
    accuracy = rows_of(found, "accuracy", "statistic")["accuracy (all)"]
    assert math.isclose(accuracy["as shown"]["value"], value)
    assert accuracy["as shown"]["n"] == n
    assert (accuracy["worst"], accuracy["best"]) == (20 / 25, 1)
    assert "5 'who knows'" in found["notes"][0]
    told = any(f"--unscored {rule}" in note for note in found["tables"]["accuracy"]["notes"])
    assert told == (rule != "drop")


def test_a_judge_that_always_says_tie_is_seen_through(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [{"score": "tie", "gold": gold} for gold in ("a", "b", "tie") * 10]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--pairwise")
    classes = rows_of(found, "classes", "verdict")["as shown"]
    assert classes["discrimination"]["value"] == 0
    assert classes["ties"]["value"] == 1
    assert math.isclose(classes["gold ties"]["value"], 1 / 3)


def test_pairs_asked_again_and_columns_without_meaning(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": "a", "again": "a", "gold": "b"}] * 15 + [{"score": "b", "again": "a", "gold": "b"}] * 5
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--pairwise", "--retest", "again")
    assert rows_of(found, "beside", "who")["the judge asked again (test-retest)"]["all"]["value"] == 15 / 20
    told = refused(run_audit, file, "--score", "score", "--gold", "gold", "--pairwise", "--system", "again")
    assert told == "--system: has no meaning for pairs; leave it out"


def test_feedback_of_two_judges_as_blind_preferences(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"better": word} for word in ["a"] * 26 + ["tie"] * 4 + ["b"] * 15]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "better", "--pairwise")
    shares = {row["side"]: row["share"] for row in found["tables"]["preferences"]["rows"]}
    assert math.isclose(shares["first wins"]["value"], 26 / 45)
    assert shares["first wins"]["low"] < 26 / 45 < shares["first wins"]["high"]
    assert math.isclose(shares["first less second"]["value"], 11 / 45)


def test_ranking_with_covariates_from_the_command_line(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(3)
    strength = {"x": 1.0, "y": 0.0, "z": -1.0}
    rows = []
    for _ in range(900):
        a, b = rng.permutation(list(strength))[:2]
        longer = float(rng.normal())  # second less first; length wins games too
        wins = rng.random() < 1 / (1 + math.exp(strength[b] - strength[a] + longer))
        rows.append({"a": a, "b": b, "more": longer, "won": "a" if wins else "b"})
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "won", "--first", "a", "--second", "b", "--anchor", "y",
        "--covariate", "more", "--draws", "100",
    )  # fmt: skip
    board = rows_of(found, "ranking", "player")
    assert list(board) == ["x", "y", "z"]
    assert board["y"]["beats anchor"]["value"] == 0.5
    assert board["x"]["rank"]["value"] == 1
    checks = {row["check"]: row["value"] for row in found["tables"]["ranking checks"]["rows"]}
    effect = checks["effect of more"]
    assert math.isclose(effect["value"], 1, abs_tol=0.25)
    assert effect["low"] < effect["value"] < effect["high"]
    assert math.isclose(board["x"]["covariates equal"]["value"], 1 / (1 + math.exp(-1)), abs_tol=0.08)
    assert "no such player" in refused(
        run_audit, tmp_path / "x.csv", "--score", "won", "--first", "a", "--second", "b", "--anchor", "q"
    )


def test_length_controlled_win_rates(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(4)
    rows = []
    for _ in range(1500):  # two equal players; the new one writes longer and the judge likes length
        more = float(rng.normal(1, 1))
        rows.append({"more": more, "won": "b" if rng.random() < 1 / (1 + math.exp(-1.5 * math.tanh(more))) else "a"})
    arguments = ("--score", "won", "--first", "=old", "--second", "=new", "--length", "more", "--draws", "100")
    found = run_audit(write(tmp_path / "x.csv", rows), *arguments)
    new = rows_of(found, "ranking", "player")["new"]
    assert new["beats anchor"]["low"] > 0.6
    assert new["covariates equal"]["low"] < 0.5 < new["covariates equal"]["high"]


def test_both_orders_take_the_first_slot_out(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(400):
        first_slot = rng.random(2) < 0.7  # the slot shown first wins, whoever stands there
        rows.append({"shown": "a" if first_slot[0] else "b", "swapped": "b" if first_slot[1] else "a"})
    arguments = ("--score", "shown", "--swapped", "swapped", "--first", "=x", "--second", "=y", "--draws", "50")
    found = run_audit(write(tmp_path / "x.csv", rows), *arguments)
    checks = {row["check"]: row["value"] for row in found["tables"]["ranking checks"]["rows"]}
    assert math.isclose(checks["effect of being shown first"]["value"], math.log(0.7 / 0.3), abs_tol=0.2)
    assert values(found, "orders")["first slot, where they differ"]["value"] > 0.8


def test_whole_rankings(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [{"score": "A>B>C", "gold": ["A", "C", "B"]}] * 11 + [
        {"score": "cannot say", "gold": ["A", "B"]}
    ]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--ranked", "--score", "score", "--gold", "gold")
    assert math.isclose(values(found, "rankings")["kendall_tau_b, mean over items"]["value"], 1 / 3)
    counts = {row["status"]: row["count"] for row in found["tables"]["failures"]["rows"]}
    assert counts == {"failed": 1, "ok": 11, "unparsed": 1}


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


def test_people_read_tables_and_machines_json(tmp_path: Path, audit_app: typer.Typer) -> None:
    file = write(tmp_path / "x.csv", scores(40))
    words = ["audit", str(file), "--score", "score", "--gold", "gold", "--scale", "1-5"]
    shown = CliRunner().invoke(audit_app, words, catch_exceptions=False)
    assert "Failures of 40 verdicts" in shown.stdout
    assert shown.stdout.index("Failures") < shown.stdout.index("Agreement")
    assert "..." not in shown.stdout
    assert "…" not in shown.stdout
    again = CliRunner().invoke(audit_app, words, catch_exceptions=False)
    assert again.stdout == shown.stdout
    told = json.loads(CliRunner().invoke(audit_app, [*words, "--json"], catch_exceptions=False).stdout)
    assert told["plan"]["scale"] == "1-5"
    assert told["plan"]["resampling"] == {"draws": 2000, "level": 0.95, "seed": 0}


def test_a_pair_whose_status_is_a_failure_has_no_verdict(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": "a", "gold": "a", "status": "ok"}] * 9 + [{"score": "b", "gold": "a", "status": "engine_error"}]
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--pairwise", "--status", "status")
    accuracy = found["tables"]["accuracy"]["rows"][0]
    assert (accuracy["as shown"]["value"], accuracy["as shown"]["n"]) == (1, 9)
    assert (accuracy["worst"], accuracy["best"]) == (0.9, 1)
    assert {"status": "engine_error", "count": 1}.items() <= found["tables"]["failures"]["rows"][2].items()


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


def test_shares_in_clusters_stay_shares(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": "b" if k == 0 else "a", "gold": "a", "scene": k // 2, "all": "a"} for k in range(16)]
    common = ("--gold", "gold", "--pairwise", "--cluster", "scene")
    file = write(tmp_path / "x.csv", rows)
    wrong_once, always_right = (
        rows_of(run_audit(file, "--score", score, *common), "accuracy", "statistic")["accuracy (all)"]["as shown"]
        for score in ("score", "all")
    )
    assert wrong_once["low"] < 15 / 16 < wrong_once["high"] == 1
    assert math.isclose(always_right["low"], 8 / (8 + 1.959964**2), rel_tol=1e-6)  # Wilson of 8 clusters


def test_rankings_with_a_failed_status_do_not_count(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"said": "x>y", "gold": "x>y", "status": "ok"}] * 3 + [{"said": "y>x", "gold": "x>y", "status": "refused"}]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--ranked", "--score", "said", "--gold", "gold", "--status", "status"
    )
    assert rows_of(found, "failures", "status")["refused"]["count"] == 1
    tau = found["tables"]["rankings"]["rows"][0]["value"]
    assert (tau["value"], tau["n"], tau["low"]) == (1, 3, None)


def test_a_test_retest_needs_no_gold_and_other_columns_do(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": 1 + k % 5, "again": 1 + (k + (k % 4 == 0)) % 5} for k in range(20)]
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--retest", "again", "--scale", "1-5")
    assert rows_of(found, "beside", "who")["the judge asked again (test-retest)"]["exact"]["value"] == 15 / 20
    assert (
        refused(run_audit, file, "--score", "score", "--rival", "again") == "--rival: says something only with --gold"
    )
    told = refused(run_audit, file, "--score", "score", "--pairwise", "--covariate", "again")
    assert told == "--covariate: says something only with --first and --second"


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
    assert feedback["notes"] == [
        "1 row without a list of claims",
        "8 claims in claims without a text or a verdict, not used",
        "1 row without gold claims, left out of the F1",
        "no interval (too few rows, or every draw alike): claims found (F1), claims with the right verdict (F1)",
    ]
    assert (feedback["rows"][0]["value"]["value"], feedback["rows"][0]["value"]["n"]) == (1, 8)
    assert "--claims" in refused(run_audit, file, "--score", "score", "--gold-claims", "due")
