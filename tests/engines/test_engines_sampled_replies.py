"""One reply to each request to a policy, or why there is none."""

from collections.abc import Iterable, Iterator

from dikast.core.errors import EngineError
from dikast.engines.base import Completion, Request
from dikast.engines.sampled_replies import Reply, sampled_replies
from scripted import Scripted

SAID = {
    "well": Completion("", "Four."),
    "cut": Completion("", "Because", "length"),
    "failed": Completion("", "half", "error", error=EngineError("no route", kind="connection")),
    "strange": Completion("", finish="error"),
}


class Stopping(Scripted):
    """Ends its stream before the last request."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for completion, _ in zip(super().stream(requests), range(len(SAID)), strict=False):
            yield completion


def test_every_request_has_a_reply_or_a_problem() -> None:
    found = list(sampled_replies(Scripted(lambda request: SAID[request.key]), (Request(name, ()) for name in SAID)))
    assert found == [
        Reply("well", "Four."),
        Reply("cut", "Because", cut=True),
        Reply("failed", "half", problem="connection: no route"),
        Reply("strange", problem="the engine failed and gave no reason"),
    ]


def test_a_request_that_is_left_without_an_answer_has_a_problem() -> None:
    engine = Stopping(lambda request: Completion("", request.key))
    found = list(sampled_replies(engine, (Request(str(i), ()) for i in range(len(SAID) + 1))))
    assert [each.problem for each in found] == ["", "", "", "", "the policy gave no reply"]
    assert found[-1].key == "4"
