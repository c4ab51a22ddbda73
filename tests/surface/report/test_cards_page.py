"""The page of scorecards says of a judge what the report's rules say."""

import json
from pathlib import Path
from typing import Any

import pytest

import dikast
import runs
from benches.own_bench import judge_own, own
from dikast.audit.plan import AuditPlan
from dikast.benches.scorecard import scorecard
from dikast.surface.benching.cards_page import card_conclusion, cards_page
from dikast.surface.report.collect import collect
from dikast.surface.report.conclusions.of_judge import of_judge
from dikast.surface.report.report_options import Asked


@pytest.mark.parametrize("judge", ["mock:constant", "mock:random"])
def test_a_card_and_the_report_of_its_run_conclude_alike(judge: str, tmp_path: Path) -> None:
    rows = [{"id": f"i{k}", "q": f"question {k}", "a": "answer", "score": 1 + k % 5} for k in range(40)]
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
        "gold": {"column": "score", "scale": "1-5"}, "official": {"metric": "pearson"},
    }  # fmt: skip
    judge_own(own(tmp_path, rows, **keys), judge, tmp_path / "out")
    run = tmp_path / "out/mine"
    card, reported = scorecard(run), of_judge(collect(run, Asked(AuditPlan(run))))
    assert card_conclusion(card) == reported
    assert reported.light == "red"
    if judge == "mock:constant":
        assert "the judge always says 3" in cards_page([card])


def test_a_report_of_a_bench_folder_is_its_scorecards(tmp_path: Path) -> None:
    rows = [{"id": f"i{k}", "q": f"question {k}", "a": "answer", "score": 1 + k % 5} for k in range(40)]
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
        "gold": {"column": "score", "scale": "1-5"}, "official": {"metric": "pearson"},
    }  # fmt: skip
    judge_own(own(tmp_path, rows, **keys), "mock:oracle,r=.8", tmp_path / "benches")
    few = ("--draws", 20, "-o")
    for verb, page in ((["report"], "report.html"), (["bench", "report"], "cards.html")):
        done = runs.dikast_here(*verb, tmp_path / "benches", *few, tmp_path / page)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").read_text("utf-8") == (tmp_path / "cards.html").read_text("utf-8")
    told = runs.dikast_here("report", tmp_path / "benches", *few, tmp_path / "cards.json", "--json")
    assert [each["bench"] for each in json.loads(told.stdout)] == ["mine"]
    python = dikast.report(tmp_path / "benches", tmp_path / "python.html", draws=20)
    assert (python.numbers, python.gates) == (json.loads(told.stdout), [])
    assert (tmp_path / "python.html").read_text("utf-8") == (tmp_path / "cards.html").read_text("utf-8")
    assert runs.dikast_here("report", tmp_path / "benches/mine", *few, tmp_path / "run.html").returncode == 0
    assert "40 of 40 rows are here" in (tmp_path / "run.html").read_text("utf-8")  # one run of a bench is a run


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--queue", "5"], "--queue: not of the scorecards"),
        (["--fail-under", "pearson=.5"], "--fail-under: not of the scorecards"),
        (["-o", "junit.xml"], "unknown suffix"),
        (["RUN"], "write one report of the benches and another of the runs"),
    ],
)
def test_what_scorecards_do_not_have_is_refused_with_a_cure(more: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "benches/mine").mkdir(parents=True)
    (tmp_path / "benches/mine/bench.json").write_text("{}")
    (tmp_path / "RUN").mkdir()
    done = runs.dikast_here("report", "benches", *more, cwd=tmp_path)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
