"""What `grade` and `compare` end with: failures, agreement, who won; and the report that was asked for."""

from pathlib import Path

import orjson
import pytest

import dikast
from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from runs import dikast_here, pairs, rows, write_jsonl


def judged(tmp_path: Path, verb: str, *more: str, items: list[dict[str, object]]) -> list[str]:
    file = write_jsonl(tmp_path / "items.jsonl", items)
    done = dikast_here(verb, str(file), "--rubric", "helpfulness", "--out", str(tmp_path / "run"), "-q", *more)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout.splitlines()


def test_grade_ends_with_failures_and_agreement(tmp_path: Path) -> None:
    last = judged(tmp_path, "grade", "--judge", "mock:oracle,refused=0.2", items=rows(60))[-1]
    audit = dikast.audit(dikast.Run(tmp_path / "run"))
    failed, pearson = audit["failures"].estimate("failed", "share"), audit["agreement"].estimate("pearson")
    assert failed.value > 0
    share = f"{failed.value:.1%} [{failed.low:.1%}, {failed.high:.1%}]"
    assert last.startswith(f"{share} of 60 questions got no verdict; Pearson correlation with gold is {pearson:.3f}")
    without = [{key: value for key, value in row.items() if key != "gold"} for row in rows(5)]
    (tmp_path / "other").mkdir()
    last = judged(tmp_path / "other", "grade", "--judge", "mock:constant", items=without)[-1]
    assert last == "All 5 questions got a verdict; there is no gold, so how often the verdicts are right is unknown."


def test_the_last_lines_are_those_of_the_report(tmp_path: Path) -> None:
    """They are told from an audit without the labels' probabilities, which takes half as long."""
    items = [{**row, "system": f"s{k % 2}"} for k, row in enumerate(rows(60))]
    command = ("grade", "--judge", "mock:oracle,r=.7,refused=.1")
    brief = judged(tmp_path, *command, items=items)
    (tmp_path / "other").mkdir()
    page = tmp_path / "page.json"
    whole = judged(tmp_path / "other", *command, "--report", str(page), items=items)
    assert brief == whole
    full = dikast.audit(dikast.Run(tmp_path / "run"))
    less = audit_file(AuditPlan(file=tmp_path / "run", readouts=False))
    left = [each.name for each in less.tables]
    assert {"calibration", "readout", "reliability", "abstaining"} <= {each.name for each in full.tables} - set(left)
    told, told_less = full.to_dict()["tables"], less.to_dict()["tables"]
    assert orjson.dumps({name: told[name] for name in left}) == orjson.dumps(told_less)


def test_compare_ends_with_who_won(tmp_path: Path) -> None:
    named = [{**pair, "model_a": "alpha", "model_b": "beta"} for pair in pairs(40)]
    last = judged(tmp_path, "compare", "--judge", "mock:oracle", items=named)[-1]
    run = dikast.Run(tmp_path / "run")
    worth = {"a": 1.0, "b": 0.0, "tie": 0.5, "disagree": 0.5}
    won = sum(worth[str(each.outcome)] for each in run.preferences) / 40
    rate = dikast.audit(run, first="model_a", second="model_b")["players"].estimate("alpha", "win rate (half)")
    assert rate.value == pytest.approx(won)
    assert last.startswith("win rates (a tie is half a win): ")
    assert f"alpha {rate:.3f} (n = 40)" in last
    assert ("even result" in last) == (max(rate.low, 1 - rate.high) <= 0.5)


def test_compare_of_pairs_without_names_ends_with_which_response_won(tmp_path: Path) -> None:
    last = judged(tmp_path, "compare", "--judge", "mock:oracle", items=pairs(40))[-1]
    preferences = dikast.audit(dikast.Run(tmp_path / "run"))["preferences"]
    first, second = (preferences.estimate(f"{each} wins", "share") for each in ("first", "second"))
    assert (first.n, min(first.value, second.value) > 0) == (40, True)
    assert last == f"the first response won {first:.3f} of 40 pairs, the second {second:.3f}"
    (tmp_path / "once").mkdir()
    last = judged(tmp_path / "once", "compare", "--judge", "mock:oracle", "--one-order", items=pairs(40))[-1]
    assert "of 40 pairs, each in one order only, the second" in last


def test_pairs_that_all_failed_have_an_audit_without_winners(tmp_path: Path) -> None:
    named = [{**pair, "model_a": "alpha", "model_b": "beta"} for pair in pairs(10)]
    page = tmp_path / "page.md"
    told = judged(tmp_path, "compare", "--judge", "mock:oracle,refused=1", "--report", str(page), items=named)
    assert told[-1].startswith("100.0% [72.2%, 100.0%] of 10 pairs had no verdict in one order or both")
    assert "There are no results" not in page.read_text()


def test_win_rates_of_one_order_say_so(tmp_path: Path) -> None:
    named = [{**pair, "model_a": "alpha", "model_b": "beta"} for pair in pairs(10)]
    last = judged(tmp_path, "compare", "--judge", "mock:oracle", "--one-order", items=named)[-1]
    assert last.startswith("win rates (a tie is half a win, each pair in one order only): ")


def test_a_panel_has_a_line_for_each_judge_and_one_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    judges = ("--judge", "mock:oracle", "--judge", "mock:constant", "--report", str(page))
    told = judged(tmp_path, "grade", *judges, items=rows(20))
    assert [line.partition(":")[0] for line in told[-2:]] == ["1-mock-oracle", "2-mock-constant"]
    written = page.read_text()
    assert "mock:oracle" in written
    assert "mock:constant" in written
    again = dikast_here("report", str(tmp_path / "run"), "-o", str(tmp_path / "again.html"))
    assert again.returncode == 0, again.stderr
    assert "2-mock-constant" in (tmp_path / "again.html").read_text()


@pytest.mark.parametrize(("name", "told"), [("page.pdf", "unknown suffix"), ("nowhere/page.html", "does not exist")])
def test_a_report_that_cannot_be_written_is_told_before_a_model_is_asked(tmp_path: Path, name: str, told: str) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(3))
    done = dikast_here("grade", str(items), "--judge", "mock:oracle", "--rubric", "helpfulness",
                       "--out", str(tmp_path / "run"), "--report", str(tmp_path / name))  # fmt: skip
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "run").exists()
