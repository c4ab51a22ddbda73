"""Judging on workers: one judge for a run in each, and an exception of an engine, which ends the run."""

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pictures

from dikast.core.errors import RunError
from dikast.core.item import Item
from dikast.core.media import media_rules
from dikast.core.part import Image, Text
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.engines.base import Request
from dikast.judging.by_workers import JudgedBatch, KeyedItem, _judge, _Terms, judge_batch, judged_by_workers, keyed
from dikast.judging.judge import Judge
from dikast.judging.judge_file import FileRun
from runs import rows, write_jsonl
from scripted import Scripted


class Unlike(Scripted):
    """Hashable by identity, as engines are; in this process it also works on batches of three, as those of Ray do."""

    __hash__ = object.__hash__

    def spread(self, work: Callable[..., Any], parts: Iterator[Any], *_: Any) -> Iterator[tuple[list[Any], Any]]:
        while batch := list(islice(parts, 3)):
            yield batch, pickle.loads(pickle.dumps(work))(self, batch, lambda: None)


def breaking(after: int) -> Unlike:
    """Raises what is no error of Dikast's once it has answered so often."""
    engine = Unlike([])

    def say(request: Request) -> str:
        return "Verdict: 4" if len(engine.requests) <= after else str(1 // 0)

    engine.say = say
    return engine


def judged(engine: Unlike) -> Iterator[JudgedBatch]:
    judge = Judge(engine, "helpfulness")
    items = [Item.of(f"Q{i}?", "A.", id=f"i{i}") for i in range(9)]
    planned: list[KeyedItem] = [(each, tuple(task.key for task in judge.tasks_of(each, "each"))) for each in items]
    return judged_by_workers(engine, judge, judge.format, "each", range(1), iter(planned))


def test_a_worker_keeps_one_judge_for_a_run() -> None:
    judge = Judge(Unlike([]), "helpfulness")
    with media_rules() as media:
        make = partial(_Terms, judge.rubric, judge.format, judge.settings, None, "each", range(1), judge.hash, media)
    first, second = make(), make()
    copies = [pickle.loads(pickle.dumps(first)) for _ in range(2)]
    assert copies[0] == copies[1] == first != second
    assert _judge(judge.engine, copies[0])[0] is _judge(judge.engine, copies[1])[0]  # type: ignore[arg-type]
    assert _judge(judge.engine, second)[0] is not _judge(judge.engine, first)[0]  # type: ignore[arg-type]


def test_a_worker_names_media_as_the_item_does_where_the_run_does(tmp_path: Path) -> None:
    judge = Judge(Unlike(["Verdict: 4"]), "helpfulness")
    item = Item.of([Image("gone.png", root=str(tmp_path)), "Q?"], "A.", id="i")
    batch = [(item, tuple(task.key for task in judge.tasks_of(item, "each")))]
    with media_rules(as_given=True) as media:
        terms = _Terms(judge.rubric, judge.format, judge.settings, None, "each", range(1), judge.hash, media)
    found = judge_batch(terms, judge.engine, batch, lambda: None)
    assert b"gone.png" in b"".join(found.lines)
    assert str(tmp_path).encode() not in b"".join(found.lines)


def test_an_exception_beside_the_engine_ends_the_run_and_keeps_what_was_answered() -> None:
    engine, kept = breaking(after=5), list[JudgedBatch]()
    with pytest.raises(RunError, match=r"what was answered is kept: the worker on .*: ZeroDivisionError"):
        kept.extend(judged(engine))
    assert (sum(len(batch.lines) for batch in kept), len(engine.requests)) == (
        5,
        6,
    )  # nothing is asked after it, nor again
    assert sum(len(batch.lines) for batch in judged(breaking(after=9))) == 9


@pytest.mark.parametrize("items", [2, 4], ids=["fewer", "more"])
def test_items_that_are_not_as_many_as_planned_end_the_run(items: int, tmp_path: Path) -> None:
    judge, plan = Judge(Unlike([]), "helpfulness"), tmp_path / "keys.txt"
    plan.write_bytes(b"".join(b"%032d\n" % k for k in range(3)))
    found = (Item.of(f"Q{i}?", "A.", id=f"i{i}") for i in range(items))
    with pytest.raises(RunError, match="the items changed while they were read"):
        list(keyed(found, plan, judge, "each", range(1), None))


@pytest.mark.parametrize("where", ["file", "folder"])
def test_an_item_that_is_edited_during_a_run_is_told_as_that(where: str, tmp_path: Path) -> None:
    """Not as a picture that differs on the worker: the items show none."""
    folder, made = tmp_path / "items", rows(3_000)
    folder.mkdir()
    items, out = write_jsonl(folder / "items.jsonl", made), tmp_path / "out"

    def say(request: Request) -> str:
        if len(engine.requests) == 1:
            write_jsonl(items, [*made[:2_500], *({**row, "instruction": "Is it odd?"} for row in made[2_500:])])
        return "Verdict: 4"

    engine = Unlike(say)
    source = items if where == "file" else folder
    with FileRun(Judge(engine, "helpfulness"), str(source), out, "each", None) as run:
        plan = run.plan(range(1))
        if where == "file":
            with pytest.raises(RunError, match=r"items.jsonl: the items changed while they were read: run the same"):
                run.ask(range(1), plan)
        else:
            run.ask(range(1), plan)
            assert "was edited while it was read: leave the items as they are during a run" in run.gave_up
            assert "picture" not in run.gave_up
    assert 0 < sum(1 for _ in current_verdicts(out)) < 3_000


def test_an_item_with_a_picture_is_told_as_either(tmp_path: Path) -> None:
    Pictures.new("RGB", (32, 32)).save(tmp_path / "a.png")
    judge = Judge(Unlike(lambda _: "Verdict: 4"), "helpfulness")
    item = Item.of([Text("What is it?"), Image("a.png", str(tmp_path))], "A.", id="i")
    (batch,) = judged_by_workers(judge.engine, judge, judge.format, "each", range(1), iter([(item, ("0" * 32,))]))  # type: ignore[arg-type]
    assert "its pictures and clips must be the same files there, and its text must stay as it is" in batch.unsent
    assert not batch.lines
