"""The queue between the clients of a server and its judge: bounded, with cached verdicts and counters."""

import asyncio
import operator
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from dikast.core.item import Item
from dikast.core.rubric import Rubric, Sheet
from dikast.core.verdict import Verdict
from dikast.engines.base import Completion, Request
from dikast.judging.joining import join_orders, join_samples
from dikast.judging.judge import Judge
from dikast.judging.task import Shape, Task
from dikast.ranking.comparisons import Values
from dikast.ranking.item_ranking import Ranking
from dikast.ranking.rank_item import Round, rank_rounds
from dikast.rewards.dynamic_batching import Gathering
from dikast.serving.known import KnownVerdicts
from dikast.serving.messages import Refused, preference_json, scores_json

_SOONEST, _LATEST = 1.0, 60.0  # seconds after which a rejected client may retry
_MOST_QUESTIONS = 100_000  # of one request: making them keeps all other clients waiting, and takes memory


def check_questions(n: int) -> None:
    """Refused (413) where one request asks too many questions: the pairs of many responses are their square."""
    if n > _MOST_QUESTIONS:
        raise Refused(413, f"this request asks more than {_MOST_QUESTIONS:,} questions: send fewer items or responses")


class _Mailbox:
    """Passes answers from the judge's thread to the event loop, all available ones at each wake-up."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._woken = False

    def put(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        """Called in the judge's thread."""
        self._due.append((future, result, error))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False
        while self._due:
            future, result, error = self._due.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Posted:
    """An answer that is delivered through the mailbox."""

    future: "asyncio.Future[Any]"
    mailbox: _Mailbox

    def set_running_or_notify_cancel(self) -> bool:
        return not self.future.done()

    def set_result(self, result: Any) -> None:
        self.mailbox.put(self.future, result, None)

    def set_exception(self, exception: BaseException) -> None:
        self.mailbox.put(self.future, None, exception)


class Desk:
    """Accepts questions from an event loop, asks those without a cached verdict, and rejects clients if it is full."""

    def __init__(self, judge: Judge, *, wait: float, most_waiting: int, known: KnownVerdicts | None = None) -> None:
        self.judge, self.known, self.most_waiting = judge, known, most_waiting
        self.gathering = Gathering(judge, wait=wait)
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.pending = 0  # questions in flight
        self._began, self._answered = time.monotonic(), 0
        self._mailbox: _Mailbox | None = None

    async def scores(self, items: Sequence[Item]) -> list[dict[str, object]]:
        """The verdicts on every response of each item, in their order."""
        found = await self._asked(items, "each")
        told = []
        for item, (tasks, verdicts) in zip(items, found, strict=True):
            rubrics = {task.hashes.rubric: task.rubric for task in tasks}
            joined = list(join_samples(verdicts, self.judge.samples, rubrics))
            told.append(scores_json(item, self.rubric_of(item), joined))
        return told

    async def preferences(self, items: Sequence[Item], *, both_orders: bool) -> list[dict[str, object]]:
        """The preference of every pair of responses of each item."""
        found = await self._asked(items, "both-orders" if both_orders else "pairs")
        return [
            {
                "id": item.id,
                "preferences": [
                    preference_json(each) for each in join_orders(verdicts, self.judge.samples, both_orders=both_orders)
                ],
            }
            for item, (_, verdicts) in zip(items, found, strict=True)
        ]

    async def ranking(self, item: Item, schedule: str, values: Values | None = None) -> Ranking:
        """The order of an item's responses; the questions of its rounds are treated as all others."""
        self.rubric_of(item)
        rounds, verdicts = rank_rounds(self.judge, item, schedule, values), None

        def following() -> Round | Ranking:
            try:
                return next(rounds) if verdicts is None else rounds.send(verdicts)
            except StopIteration as end:
                return cast(Ranking, end.value)

        while isinstance(asked := await asyncio.to_thread(following), Round):  # fits take a while: others go on
            ((_, verdicts),) = await self._asked([item], asked.shape)
        return asked

    async def verdicts(self, items: Sequence[Item]) -> list[list[Verdict]]:
        """The verdicts of each item's questions, in their order, one for each sample."""
        return [verdicts for _, verdicts in await self._asked(items, "each")]

    def rubric_of(self, item: Item) -> Rubric | Sheet:
        """The rubric that an item is judged by; Refused (422) if there is none."""
        rubric = item.rubric or self.judge.rubric
        if rubric is None:
            raise Refused(422, "no rubric: this server has no default, so put one into the request", "rubric")
        return rubric

    async def _asked(self, items: Sequence[Item], shape: Shape) -> list[tuple[list[Task], list[Verdict]]]:
        rubrics = [self.rubric_of(each) for each in items]
        criteria = [len(each.rubrics) if isinstance(each, Sheet) else 1 for each in rubrics]
        if not callable(shape):  # the pairs of a round of `ranking` are counted before its first
            asked = [len(each.responses) for each in items]
            if shape != "each":
                asked = [k * (k - 1) // (1 if shape == "both-orders" else 2) for k in asked]
            check_questions(self.judge.samples * sum(map(operator.mul, asked, criteria)))
        tasks = [list(self.judge.tasks(iter((item,)), shape)) for item in items]
        flat = [task for each in tasks for task in each]
        answers = iter(await self._answers(flat, shape))
        return [(each, [next(answers) for _ in each]) for each in tasks]

    async def _answers(self, tasks: Sequence[Task], shape: Shape) -> list[Verdict]:
        format = self.judge.format if shape == "each" else self.judge.compare_format
        found: dict[int, Verdict] = {}
        if self.known is not None:
            for place, task in enumerate(tasks):
                if (verdict := self.known.get(task.key)) is not None:
                    found[place] = verdict
            self.counts["known"] += len(found)
        open_ = [(place, task) for place, task in enumerate(tasks) if place not in found]
        if open_:
            self.check_room(len(open_))
            self.pending += len(open_)
            mailbox = self._mailbox = self._mailbox or _Mailbox()
            loop = asyncio.get_running_loop()
            futures: list[asyncio.Future[Verdict]] = [loop.create_future() for _ in open_]
            answers = [_Posted(each, mailbox) for each in futures]
            try:
                self.gathering.ask_for([task for _, task in open_], format, answers)
                for (place, task), future in zip(open_, futures, strict=True):
                    verdict = found[place] = await future
                    self.statuses[verdict.status.value] += 1
                    if self.known is not None:
                        self.known.add(verdict, task.rubric)
            finally:
                self.pending -= len(open_)
                self._answered += len(open_)
                for future in futures:  # the client disconnected
                    future.cancel()
        return [found[place] for place in range(len(tasks))]

    def check_room(self, more: int) -> None:
        """Refused (429, with Retry-After) if the queue would exceed its limit."""
        if self.pending + more <= self.most_waiting or (more > self.most_waiting and not self.pending):
            return
        pace = self._answered / max(time.monotonic() - self._began, 1e-3)
        wait = min(max(self.pending / pace if pace else _SOONEST, _SOONEST), _LATEST)
        raise Refused(429, f"{self.pending:,} questions are queued already: try again later", wait=wait)

    async def completions(self, requests: Sequence[Request]) -> list[Completion]:
        """The engine's completions of raw requests."""
        check_questions(len(requests))
        self.check_room(len(requests))
        self.pending += len(requests)
        futures = [asyncio.wrap_future(each) for each in self.gathering.ask_engine(requests)]
        try:
            return [await each for each in futures]
        finally:
            self.pending -= len(requests)
            self._answered += len(requests)
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """Answer the queued questions, then close the ledger."""
        self.gathering.close()
        if self.known is not None:
            self.known.close()
