"""Dynamic batching: questions of many callers that wait at the same time go to the judge's engine together."""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

from dikast.core.errors import RunError
from dikast.core.verdict import Verdict
from dikast.engines.base import Completion, Request
from dikast.judging.judge import Judge
from dikast.judging.task import Task
from dikast.prompts.format import Format

_MOST = 256  # maximum questions of one round, so that none waits for all that come after it


class Answer(Protocol):
    """The receiver of an answer, called in the gathering thread; `concurrent.futures.Future` is one."""

    def set_running_or_notify_cancel(self) -> bool:
        """Whether it is still wanted."""
        ...

    def set_result(self, result: Any, /) -> None:
        """Deliver the answer."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Deliver the error."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """A queued question: a task with its format, or a request to the engine."""

    what: Any
    lane: Format | type
    answer: Answer


class Gathering:
    """Accepts questions from any thread and asks them in a thread of its own, in rounds.

    A round begins with the first queued question, waits up to `wait` seconds for more unless there are `most` already,
    and ends when all are answered; questions that arrive meanwhile join it, up to `most`. Questions with the same key
    are asked once per round. Where the engine raises, every question of the round gets the error.
    """

    def __init__(self, judge: Judge, *, wait: float = 0.0, most: int = _MOST) -> None:
        self.judge, self.wait, self.most = judge, wait, most
        self.rounds = self.asked = 0
        self._waiting: deque[_Asked] = deque()
        self._awake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of questions that are not yet part of a round."""
        return len(self._waiting)

    def ask(self, tasks: Sequence[Task], format: Format) -> "list[Future[Verdict]]":
        """A future for each task, in their order. RunError once closed."""
        answers: list[Future[Verdict]] = [Future() for _ in tasks]
        self.ask_for(tasks, format, answers)
        return answers

    def ask_for(self, tasks: Sequence[Task], format: Format, answers: Sequence[Answer]) -> None:
        """Ask each task and deliver its verdict to the answer at the same position. RunError once closed."""
        self._queue([_Asked(*each) for each in zip(tasks, repeat(format), answers, strict=False)])

    def ask_engine(self, requests: Sequence[Request]) -> "list[Future[Completion]]":
        """A future for each request to the engine itself; their keys differ. RunError once closed."""
        answers: list[Future[Completion]] = [Future() for _ in requests]
        self._queue([_Asked(*each) for each in zip(requests, repeat(Request), answers, strict=False)])
        return answers

    def _queue(self, asked: Sequence[_Asked]) -> None:
        with self._awake:
            if self._closed:
                raise RunError(f"{self.judge.engine.name}: this judge is closed; open it again")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="dikast-gathering", daemon=True)
                self._thread.start()
            self._waiting.extend(asked)
            if len(self._waiting) == len(asked) or len(self._waiting) >= self.most:  # otherwise it is awake, or will be
                self._awake.notify()

    def close(self) -> None:
        """Answer what waits, then stop. The judge stays open."""
        with self._awake:
            self._closed = True
            self._awake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._awake:
                while not self._waiting:
                    if self._closed:
                        return
                    self._awake.wait()
                until = time.monotonic() + self.wait
                while len(self._waiting) < self.most and not self._closed:
                    left = until - time.monotonic()
                    if left <= 0:
                        break
                    self._awake.wait(left)
            self._round()

    def _round(self) -> None:
        """Ask the queued questions of the first one's lane; others are left for the next round."""
        self.rounds += 1
        lane, open_ = self._waiting[0].lane, dict[str, list[_Asked]]()
        try:
            taken = self._taken(lane, open_, most=self.most)
            answers = self.judge.answer(taken, lane) if isinstance(lane, Format) else self.judge.engine.stream(taken)
            for each in answers:
                for asked in open_.pop(each.key, ()):
                    asked.answer.set_result(each)
            for asked in (each for same in open_.values() for each in same):
                asked.answer.set_exception(RunError(f"{self.judge.engine.name} ended without an answer"))
        except BaseException as error:  # every waiting caller must get the error, whatever it is
            for asked in (each for same in open_.values() for each in same):
                asked.answer.set_exception(error)
            if not isinstance(error, Exception):
                raise

    def _taken(self, lane: Format | type, open_: dict[str, list[_Asked]], *, most: int) -> Iterator[Any]:
        """The queued questions of one lane, each key once, recorded in `open_`."""
        while most and self._waiting and self._waiting[0].lane is lane:
            asked = self._waiting.popleft()
            if not asked.answer.set_running_or_notify_cancel():
                continue
            key = asked.what.key
            same = open_.get(key)
            if same is not None:
                same.append(asked)
                continue
            open_[key] = [asked]
            self.asked += 1
            most -= 1
            yield asked.what
