"""The items' file is read twice: the plan, with its gold, and the questions must be of the same file."""

import os
from pathlib import Path

import pytest

import dikast
from dikast.core.errors import RunError
from dikast.judging.judge_file import FileRun
from runs import rows, write_jsonl


def test_items_that_are_replaced_between_plan_and_questions_end_the_run_before_a_call(tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(20, gold=1))
    other = write_jsonl(tmp_path / "other.jsonl", rows(20, gold=5))
    judge = dikast.Judge("mock:oracle", rubric="helpfulness")
    with FileRun(judge, str(items), tmp_path / "out", "each", None) as run:
        plan = run.plan(range(1))
        os.replace(other, items)
        with pytest.raises(
            RunError, match=r"items.jsonl: the items changed while they were read: run the same command"
        ):
            run.ask(range(1), plan)
    assert not (tmp_path / "out" / "verdicts.jsonl").exists() or not (tmp_path / "out" / "verdicts.jsonl").read_bytes()
