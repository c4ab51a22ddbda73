"""The portal's places, with work that is told when to end."""

import asyncio
import contextlib

from dikast.core.message import Message, Span
from dikast.engines.base import Completion, Request
from dikast.engines.http.event_loop import EventLoopThread, Flow, Job, Lane, Later, OneLane
from dikast.engines.http.limit import Limit


class Steady(Limit):
    """A limit of 4 that stays 4."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.value = 4

    def _turn(self, now: float) -> None:
        """Learn nothing."""


def out_at_once(most: int) -> tuple[int, int]:
    """The most of 12 hanging tries that were out together, and of all, among 120 that end."""
    released, out, hung = asyncio.Event(), 0, 0
    most_out = most_hung = answered = 0

    async def work(job: Job) -> Completion | Later:
        nonlocal out, hung, most_out, most_hung, answered
        hangs = job.request.key.startswith("hang")
        out, hung = out + 1, hung + hangs
        most_out, most_hung = max(most_out, out), max(most_hung, hung)
        if hangs:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(released.wait(), 5)
        else:
            await asyncio.sleep(0.002)
            answered += 1
            if answered == 120:
                released.set()
        out, hung = out - 1, hung - hangs
        return Completion(job.request.key, "Verdict: 4")

    def nothing() -> None: ...

    async def closing() -> None: ...

    portal, flow = EventLoopThread(OneLane(Lane(work, Steady(most))), opening=nothing, closing=closing), Flow()
    portal.start()
    keys = [f"hang-{i}" if i % 11 == 3 else f"answer-{i}" for i in range(132)]
    jobs = [Job(Request(key, (Message("user", (Span("x"),)),)), "plain", [b"{}"], flow) for key in keys]
    flow.submitted = len(jobs)
    portal.submit(jobs)
    while flow.delivered < flow.submitted:
        portal.take(flow)
    portal.close()
    assert answered == 120
    return most_hung, most_out


def test_tries_that_hang_take_no_places() -> None:
    hung, out = out_at_once(64)
    assert hung == 12, "all that hang were out at once beside the 4 places"
    assert out > 12


def test_the_users_limit_holds_for_tries_that_hang_too() -> None:
    assert out_at_once(13) == (12, 13)
