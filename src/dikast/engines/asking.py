"""The one loop that asks an engine questions, and asks again where an answer calls for another try."""

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from dikast.engines.base import Completion, Engine, Request

_READY = 1000  # results of questions that were never sent, before the feed pauses so that they are delivered


class Question(Protocol):
    """Something that is asked: `request` is what to send next, which may change from try to try."""

    request: Request


Q = TypeVar("Q", bound=Question)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Settled(Generic[R]):
    """The result of a question that need not be sent."""

    result: R


def ask_all(
    engine: Engine,
    questions: Iterator[Q | Settled[R]],
    settle: Callable[[Q, Completion], R | None],
    unanswered: Callable[[Q], R],
) -> Iterator[R]:
    """A result for every question, in order of arrival; questions are pulled only as the engine asks for requests.

    `settle` makes the result of a completion, or sets the question's next request and returns None, and it is asked
    again, ahead of new questions. `unanswered` makes the result where the engine ends its stream without answering a
    question. Completions under a key that was never asked are dropped; questions that share a key are answered in the
    order in which they were asked.
    """
    waiting: dict[str, list[Q]] = {}
    again: deque[Q] = deque()
    ready: deque[R] = deque()
    left = True

    def feed() -> Iterator[Request]:
        nonlocal left
        while len(ready) < _READY:
            question = again.popleft() if again else next(questions, None)
            if question is None:
                left = False
                return
            if isinstance(question, Settled):
                ready.append(question.result)
                continue
            waiting.setdefault(question.request.key, []).append(question)
            yield question.request

    while left or again or ready:
        for completion in engine.stream(feed()):
            question = _oldest(waiting, completion.key)
            if question is not None:
                result = settle(question, completion)
                if result is None:
                    again.append(question)
                else:
                    yield result
            while ready:
                yield ready.popleft()
        while ready:
            yield ready.popleft()
        for question in itertools.chain(*waiting.values()):
            yield unanswered(question)
        waiting.clear()


def _oldest(waiting: dict[str, list[Q]], key: str) -> Q | None:
    """The oldest question that waits under the key."""
    found = waiting.get(key)
    if found is None:
        return None
    if len(found) == 1:
        del waiting[key]
    return found.pop(0)
