"""Questions of many callers go to the engine together, and every caller gets its own answers."""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from dikast.core.errors import RunError
from dikast.core.item import Item
from dikast.engines.base import Completion, Request
from dikast.engines.mock import Random
from dikast.judging.judge import Judge
from dikast.judging.task import Task
from dikast.rewards.dynamic_batching import Gathering


class Counting(Random):
    """A mock that counts its rounds, each of which takes a while."""

    def __init__(self, seconds: float = 0.02, **settings: Any) -> None:
        super().__init__(**settings)
        self.seconds, self.sizes, self.broken = seconds, list[int](), False

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        together = list(requests)
        self.sizes.append(len(together))
        time.sleep(self.seconds)
        if self.broken:
            raise RuntimeError("the engine fell over")
        yield from super().stream(together)


def tasks(judge: Judge, *texts: str) -> list[Task]:
    items = [Item.of("Say something.", text, id=text) for text in texts]
    return list(judge.tasks(iter(items), "each"))


def test_callers_that_wait_are_answered_in_one_round_and_each_gets_its_own() -> None:
    engine = Counting()
    judge = Judge(engine, "helpfulness")
    gathering, found = Gathering(judge), dict[str, Any]()

    def ask(n: int) -> None:
        text = f"answer {n}"
        (future,) = gathering.ask(tasks(judge, text), judge.format)
        found[text] = future.result()

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(40)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    gathering.close()
    assert len(found) == 40
    assert all(verdict.question.item == text for text, verdict in found.items())
    assert sum(engine.sizes) == 40
    assert len(engine.sizes) < 20  # the first alone, the rest while it was answered
    alone = {v.question.item: v.score for v in judge.grade_many([Item.of("Say something.", t, id=t) for t in found])}
    assert {text: verdict.score for text, verdict in found.items()} == alone


def test_a_round_waits_for_company_and_no_longer() -> None:
    engine = Counting(seconds=0)
    judge = Judge(engine, "helpfulness")
    gathering = Gathering(judge, wait=0.2)
    began = time.monotonic()
    first = gathering.ask(tasks(judge, "a"), judge.format)
    second = gathering.ask(tasks(judge, "b"), judge.format)
    assert [each.result().question.item for each in (*first, *second)] == ["a", "b"]
    assert 0.15 < time.monotonic() - began < 2
    assert engine.sizes == [2]
    full = Gathering(judge, wait=60, most=2)
    assert [each.result().question.item for each in full.ask(tasks(judge, "c", "d"), judge.format)] == ["c", "d"]


def test_equal_questions_are_asked_once_and_answered_each() -> None:
    engine = Counting()
    judge = Judge(engine, "helpfulness")
    futures = Gathering(judge).ask(tasks(judge, "a", "a", "b", "a"), judge.format)
    assert [each.result().question.item for each in futures] == ["a", "a", "b", "a"]
    assert engine.sizes == [2]


def test_grading_and_comparing_do_not_mix() -> None:
    engine = Counting()
    judge = Judge(engine, "helpfulness")
    gathering = Gathering(judge)
    pair = list(judge.tasks(iter([Item.of("Which?", responses=["x", "y"], id="pair")]), "both-orders"))
    graded = gathering.ask(tasks(judge, "a"), judge.format)
    compared = gathering.ask(pair, judge.compare_format)
    again = gathering.ask(tasks(judge, "b"), judge.format)
    assert [each.result().question.responses for each in (*graded, *compared, *again)] == [(0,), (0, 1), (1, 0), (0,)]


def test_an_engine_that_falls_over_is_told_to_all_that_wait_and_asked_again_later() -> None:
    engine = Counting()
    judge = Judge(engine, "helpfulness")
    gathering = Gathering(judge)
    engine.broken = True
    futures = gathering.ask(tasks(judge, "a", "b"), judge.format)
    for each in futures:
        with pytest.raises(RuntimeError, match="fell over"):
            each.result()
    engine.broken = False
    assert gathering.ask(tasks(judge, "c"), judge.format)[0].result().question.item == "c"


def test_closing_answers_what_waits_and_refuses_what_comes() -> None:
    judge = Judge(Counting(), "helpfulness")
    gathering = Gathering(judge, wait=60)
    futures = gathering.ask(tasks(judge, "a", "b"), judge.format)
    gathering.close()
    assert all(each.done() for each in futures)
    with pytest.raises(RunError, match="closed"):
        gathering.ask(tasks(judge, "c"), judge.format)


def test_what_is_cancelled_is_not_asked() -> None:
    engine = Counting(seconds=0.1)
    judge = Judge(engine, "helpfulness")
    gathering = Gathering(judge)
    first = gathering.ask(tasks(judge, "a"), judge.format)
    time.sleep(0.03)
    (second,) = gathering.ask(tasks(judge, "b"), judge.format)
    assert second.cancel()
    assert first[0].result().question.item == "a"
    gathering.close()
    assert engine.sizes in ([1], [1, 0])
