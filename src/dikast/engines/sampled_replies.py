"""Replies that are sampled from a model that is judged or trained (the policy), one to each request."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dikast.engines.asking import ask_all
from dikast.engines.base import Completion, Engine, Request


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to the request of that key; `cut` if it ran into the token limit. `problem`: why there is none."""

    key: str
    text: str = ""
    cut: bool = False
    problem: str = ""


@dataclass(slots=True)
class _ToPolicy:
    request: Request


def sampled_replies(engine: Engine, requests: Iterable[Request]) -> Iterator[Reply]:
    """A reply to every request, in order of arrival; one that the engine leaves without an answer has a problem too."""
    return ask_all(engine, map(_ToPolicy, requests), _reply, _unanswered)


def _reply(_: _ToPolicy, done: Completion) -> Reply:
    problem = "" if done.error is None else f"{done.error.kind}: {done.error}"
    if done.finish == "error" and not problem:
        problem = "the engine failed and gave no reason"
    return Reply(done.key, done.text, done.finish == "length", problem)


def _unanswered(asked: _ToPolicy) -> Reply:
    return Reply(asked.request.key, problem="the policy gave no reply")
