"""A run folder as an object."""

import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dikast
from dikast.core.errors import DataError, UserError
from dikast.core.runs import current_verdicts as reading
from dikast.core.runs.current_verdicts import current_records, current_verdicts
from dikast.core.runs.lines import open_line
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import PREFERENCES
from dikast.engines.base import Completion, Request, Sampling
from dikast.engines.budget import Budget
from dikast.engines.spec import open_engine
from dikast.engines.wrapper import Wrapper
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, grade_file
from runs import dikast_here, pairs, rows, write_jsonl


def test_a_run_gives_its_verdicts_again(tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(20))
    summary = grade_file(Judge("mock:oracle,refused=0.4,seed=1", "helpfulness"), items, tmp_path / "run")
    run = Run(str(tmp_path / "run"))
    assert (run.kind, len(run), run.summary["verdicts"]) == ("absolute", 20, summary["verdicts"])
    assert [verdict.question.item for verdict in run] == [f"i{k}" for k in range(20)]
    failed = summary["verdicts"] - summary["status"]["ok"]
    assert failed > 0
    assert repr(run) == f"<Run {tmp_path / 'run'}: judge {summary['judge']}, verdicts 20, no verdict {failed}>"
    assert "failed: " in run._repr_html_()
    mean = summary["criteria"]["helpfulness"]["mean_score"]
    told = f"{mean['value']:.3f} [{mean['low']:.3f}, {mean['high']:.3f}] (n = {mean['n']})"
    assert f">mean, helpfulness</th><td>{told}</td>" in run._repr_html_()
    assert list(run.combined) == list(run)
    with pytest.raises(UserError, match="compared nothing"):
        list(run.preferences)


class Backwards(Wrapper):
    """Answers the last question first, as a server with many requests in flight may."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        return iter(list(self.engine.stream(requests))[::-1])


def test_verdicts_come_in_the_order_of_the_items(tmp_path: Path) -> None:
    engine, items = Backwards(open_engine("mock:oracle")), write_jsonl(tmp_path / "items.jsonl", rows(9))
    grade_file(Judge(engine, "helpfulness"), items, tmp_path / "run")
    names = [f"i{k}" for k in range(9)]
    assert [each.question.item for each in current_verdicts(tmp_path / "run")] == names[::-1]
    assert [each.question.item for each in Run(tmp_path / "run")] == names
    several = Judge(engine, "helpfulness", samples=2, sampling=Sampling(temperature=0.5))
    grade_file(several, items, tmp_path / "samples")
    assert [each.question.item for each in Run(tmp_path / "samples").combined] == names
    two = pairs(4)
    compare_file(Judge(engine, "helpfulness"), write_jsonl(tmp_path / "pairs.jsonl", two), tmp_path / "two")
    assert [each.item for each in Run(tmp_path / "two").preferences] == [each["id"] for each in two]


def test_records_of_failed_questions_are_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(600))
    monkeypatch.setattr("dikast.core.runs.current_verdicts._BLOCK", 32)
    grade_file(Judge(Budget(open_engine("mock:constant"), calls=10), "helpfulness"), items, tmp_path / "run")
    tracemalloc.start()
    try:
        assert sum(record["status"] == "engine_error" for record in current_records(tmp_path / "run")) == 590
        assert tracemalloc.get_traced_memory()[1] < 1.4e6  # 1.08e6; 1.84e6 with the records of all failures
    finally:
        tracemalloc.stop()


def test_each_line_is_decoded_once_where_the_records_fit_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = dikast.grade([{"question": f"{i}?", "answer": "a"} for i in range(30)], "mock:constant", "helpfulness",
                       out=tmp_path / "run")  # fmt: skip
    decoded = []

    def counting(raw: bytes, **where: Any) -> Any:
        decoded.append(where["line"])
        return open_line(raw, **where)

    monkeypatch.setattr(reading, "open_line", counting)
    once = list(run)
    assert sorted(decoded) == list(range(1, 31))
    monkeypatch.setattr(reading, "_HELD", 29)
    assert list(run) == once
    assert len(decoded) == 90


def test_preferences_come_back_with_their_orders(tmp_path: Path) -> None:
    judge = Judge("mock:oracle,nats=2", "helpfulness")
    made = {each.item: each for each in judge.compare_many(pairs(6))}
    compare_file(judge, write_jsonl(tmp_path / "pairs.jsonl", pairs(6)), tmp_path / "run")
    read = {each.item: each for each in Run(tmp_path / "run").preferences}
    assert {name: (each.outcome, each.logit_a, len(each.orders)) for name, each in read.items()} == {
        name: (each.outcome, each.logit_a, 2) for name, each in made.items()
    }
    (tmp_path / "run" / PREFERENCES).write_bytes(b"{}\n")
    with pytest.raises(DataError, match=r"preferences\.jsonl: the file has changed"):
        list(Run(tmp_path / "run").preferences)


def test_samples_are_combined(tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(3))
    judge = Judge("mock:oracle,r=.5", "helpfulness", samples=4, sampling=Sampling(temperature=1.0))
    grade_file(judge, items, tmp_path / "run")
    assert (len(list(Run(tmp_path / "run"))), len(list(Run(tmp_path / "run").combined))) == (12, 3)


def test_a_panel_has_the_run_of_each_judge(tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(3))
    done = dikast_here("grade", str(items), "--judge", "mock:oracle", "--judge", "mock:constant", "--rubric",
                       "helpfulness", "--out", str(tmp_path / "panel"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    panel = Run(tmp_path / "panel")
    assert [run.summary["judge"] for run in panel.runs] == ["mock:oracle", "mock:constant"]
    assert len(panel) == 6
    with pytest.raises(UserError, match="iterate over each of its `runs`"):
        list(panel)


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"this is not a run: it has no summary\.json"):
        Run(tmp_path)
    (tmp_path / "verdicts.jsonl").touch()
    with pytest.raises(UserError, match=r"`dikast serve` keeps this folder.*`dikast grade ITEMS --out FOLDER`"):
        Run(tmp_path)
    (tmp_path / "keys.txt").touch()
    with pytest.raises(UserError, match="not finished: run the command that made it again"):
        Run(tmp_path)
