"""`dikast audit` on small files: what it reads, what it says, what it refuses."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from audit_tables import Run, refused, rows_of, scores, values, write
from dikast.core.errors import DataError, UserError


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


def test_mistakes_are_told_with_their_place_and_their_cure(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", scores(12))
    assert "did you mean 'score'" in refused(run_audit, file, "--score", "scroe", "--gold", "gold")
    assert "the columns are: id, score, gold" in refused(run_audit, file, "--score", "human", "--gold", "gold")
    assert "no such file" in refused(run_audit, tmp_path / "y.csv", "--score", "score")
    assert "--score" in refused(run_audit, write(tmp_path / "bare.csv", [{"id": i, "note": "yes"} for i in range(3)]))
    text = refused(run_audit, file, "--score", "id", "--gold", "gold")
    assert "x.csv:2: field 'id'" in text
    assert "'i0'" in text
    assert "--level" in refused(run_audit, file, "--score", "score", "--gold", "gold", "--level", "95")
    assert "--unscored: expected 'drop', 'tie' or 'wrong', got 'zero'" in refused(
        run_audit, file, "--score", "score", "--unscored", "zero"
    )
    assert "no row has that value" in refused(run_audit, file, "--score", "score", "--gold", "gold", "--where", "id=q")
    other = write(tmp_path / "other.csv", [{"id": "i1", "gold2": 1}, {"id": "i1", "gold2": 2}])
    twice = refused(run_audit, file, "--score", "score", "--gold", f"gold2@{other}")
    assert "other.csv:3" in twice
    assert "is repeated here (first on line 2)" in twice
    apart = write(tmp_path / "apart.csv", [{"id": "q", "gold2": 1}])
    assert "no row of it belongs" in refused(run_audit, file, "--score", "score", "--gold", f"gold2@{apart}")
    assert isinstance(_caught(run_audit, file, "--score", "id", "--gold", "gold"), DataError)
    choices = write(tmp_path / "pairs.csv", [{"score": "1", "gold": "2"}])
    assert "--pair-labels" in refused(run_audit, choices, "--score", "score", "--gold", "gold", "--pairwise")


def _caught(run: Run, *arguments: str | Path) -> UserError:
    with pytest.raises(UserError) as caught:
        run(*arguments)
    return caught.value


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


@pytest.mark.parametrize("role", ["--gold", "--rival", "--retest", "--earlier", "--swapped"])
def test_a_column_is_not_compared_with_itself(role: str, tmp_path: Path, run_audit: Run) -> None:
    # Pearson 1, the same verdict in both orders, a ceiling of 1: all of them printed of one column
    rows = [{**row, "other": row["score"], "score": "ab"[row["score"] % 2]} if role == "--swapped" else row
            for row in scores(20)]  # fmt: skip
    file = write(tmp_path / "x.csv", rows)
    pairs = ("--pairwise",) if role == "--swapped" else ()
    gold = () if role in ("--gold", "--swapped") else ("--gold", "gold")
    told = refused(run_audit, file, "--score", "score", *gold, role, "score", *pairs)
    assert told == f"--score and {role}: column 'score' would be compared with itself; name another column"
    if role == "--gold":
        assert refused(run_audit, file, "--score", "score", *["--gold", "gold"] * 2).startswith("--gold twice")
