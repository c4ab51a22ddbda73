"""The limit, against servers in fake time."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from dikast.engines.http.limit import FIRST, Limit


@dataclass
class World:
    """A server and a client that always has more to send, in fake seconds.

    `serve(now, in_flight)` says how long a try takes and whether it is turned away.
    """

    serve: Callable[[float, int], tuple[float, bool]]
    most: int = 1024
    now: float = 0.0
    answered: list[float] = field(default_factory=list)

    def run(self, seconds: float) -> Limit:
        limit = Limit(self.most, clock=lambda: self.now, jitter=random.Random(0))
        events: list[tuple[float, int, bool, float]] = []
        serial = 0
        while self.now < seconds:
            while len(events) < limit.value:
                takes, rejected = self.serve(self.now, len(events))
                serial += 1
                pause = limit.pause if rejected else 0.0
                heapq.heappush(events, (self.now + takes + pause, serial, rejected, takes))
            at, _, rejected, takes = heapq.heappop(events)
            self.now = at
            if not rejected:
                self.answered.append(at)
            full = len(events) + 1 >= limit.value
            limit.finished(good=not rejected, rejected=rejected, busy=full, seconds=takes)
        return limit

    def rate(self, low: float, high: float) -> float:
        return sum(low < at <= high for at in self.answered) / (high - low)


def bucket(rate: float, latency: float, burst: float = 10.0) -> Callable[[float, int], tuple[float, bool]]:
    state, rng = [burst, 0.0], random.Random(2)

    def serve(now: float, in_flight: int) -> tuple[float, bool]:
        state[0] = min(burst, state[0] + (now - state[1]) * rate)
        state[1] = now
        if state[0] < 1:
            return 0.004, True
        state[0] -= 1
        return latency * rng.uniform(0.9, 1.1), False

    return serve


@pytest.mark.parametrize(("rate", "latency"), [(200.0, 0.05), (50.0, 1.0), (500.0, 0.4), (20.0, 0.1)])
def test_it_reaches_a_rate_limit_within_20_seconds(rate: float, latency: float) -> None:
    world = World(bucket(rate, latency))
    world.run(60)
    assert world.rate(20, 60) >= 0.95 * rate


def test_rejections_that_do_not_hang_on_the_load_do_not_slow_it_down() -> None:
    rng = random.Random(1)
    clean = World(lambda now, in_flight: (rng.uniform(0.05, 0.15), False), most=256)
    noisy = World(lambda now, in_flight: (rng.uniform(0.05, 0.15), rng.random() < 0.2), most=256)
    clean.run(30)
    noisy.run(30)
    assert noisy.rate(10, 30) >= 0.8 * 0.8 * clean.rate(10, 30)  # a fifth is lost to the rejections themselves


def test_it_uses_all_that_a_server_of_constant_latency_gives() -> None:
    world = World(lambda now, in_flight: (0.05, False), most=2000)
    assert world.run(20).value == 2000
    assert world.rate(10, 20) >= 0.95 * 2000 / 0.05


def test_it_does_not_pile_up_before_a_server_that_works_eight_at_a_time() -> None:
    free = [0.0] * 8

    def serve(now: float, in_flight: int) -> tuple[float, bool]:
        first = min(range(8), key=free.__getitem__)
        free[first] = max(now, free[first]) + 1.0
        return free[first] - now, False

    world = World(serve)
    limit = world.run(200)
    assert limit.value <= 2 * FIRST
    assert world.rate(50, 200) >= 0.95 * 8


def test_a_closed_door_brings_it_down_and_an_open_one_up_again() -> None:
    world = World(lambda now, in_flight: (0.05, now < 10), most=256)
    limit = world.run(9)
    assert limit.value <= 2
    world = World(lambda now, in_flight: (0.05, now < 10), most=256)
    assert world.run(40).value > 128


def test_nothing_is_learnt_while_there_is_little_to_send() -> None:
    now = [0.0]
    limit = Limit(256, clock=lambda: now[0])
    for _ in range(500):
        now[0] += 0.01
        limit.finished(good=True, rejected=False, busy=False, seconds=0.01)
    assert limit.value == FIRST
