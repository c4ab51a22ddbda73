"""The items' file is read twice: the plan, with its gold, and the questions must be of the same file."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import dikast
from dikast.core.errors import RunError
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.engines.base import Completion, Request
from dikast.engines.spec import open_engine
from dikast.judging.judge_file import FileRun, grade_file
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


class _Rewriting:
    """An engine that writes the file of items anew, in place, as soon as it is asked."""

    name = "rewriting"

    def __init__(self, path: Path, rows: list[dict[str, Any]]) -> None:
        self.inner, self.path, self.rows = open_engine("mock:random"), path, rows
        self.asked: set[bool] = set()  # whether a question was about other items than those that were planned

    def identity(self) -> Mapping[str, Any]:
        return self.inner.identity()

    def versions(self) -> Mapping[str, str]:
        return {}

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            if self.rows:
                write_jsonl(self.path, self.rows)
                self.rows = []
            self.asked.add("bbb" in request.messages[-1].text)
            yield from self.inner.stream([request])


def _long(n: int, gold: int, word: str) -> list[dict[str, Any]]:
    return [{**row, "instruction": word * 400} for row in rows(n, gold=gold)]


@pytest.mark.parametrize(("n", "word"), [(6_000, "b"), (3_000, "a")], ids=["edited", "cut"])
def test_items_that_are_edited_in_place_while_they_are_asked_are_not_asked_and_told(
    n: int, word: str, tmp_path: Path
) -> None:
    items, out = write_jsonl(tmp_path / "items.jsonl", _long(6_000, 1, "a")), tmp_path / "out"
    engine = _Rewriting(items, _long(n, 5, word))
    judge = dikast.Judge(engine, rubric="helpfulness")
    with pytest.raises(
        RunError, match=r"items.jsonl: the items, or what they show, changed .* run the same command again"
    ):
        grade_file(judge, str(items), out)
    assert engine.asked == {False}
    kept = sum(1 for _ in current_verdicts(out))
    assert 0 < kept < 6_000
    again = grade_file(judge, str(items), out)
    assert again["verdicts"] == n
    assert again["answered_before"] == (0 if word == "b" else kept)


def test_a_picture_that_changes_between_plan_and_questions_is_not_asked_about(tmp_path: Path) -> None:
    for name, colour in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / name)
    items = write_jsonl(tmp_path / "items.jsonl", [{**row, "image": f"{row['id']}.png"} for row in rows(2, gold=1)])
    for k in range(2):
        shutil.copy(tmp_path / "a.png", tmp_path / f"i{k}.png")
    judge, out = dikast.Judge("mock:random", rubric="helpfulness"), tmp_path / "out"
    with FileRun(judge, str(items), out, "each", None) as run:
        plan = run.plan(range(1))
        shutil.copy(tmp_path / "b.png", tmp_path / "i1.png")
        with pytest.raises(RunError, match=r"so that 1 question could not be asked, the first of .*items.jsonl:2"):
            run.ask(range(1), plan)
    assert [verdict.question.item for verdict in current_verdicts(out)] == ["i0"]
