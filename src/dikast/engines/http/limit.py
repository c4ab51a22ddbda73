"""Adaptive concurrency: how many requests may be in flight, between 1 and the user's limit.

It maximises answers per second. The limit doubles while the throughput grows enough; then steps up (down, when the
server rejects requests) are tried and kept only if they pay off. It settles at the smallest concurrency with the
highest throughput: under a rate limit where rejections begin, with a busy server where its queue begins. Rejections
that do not depend on the load do not move it, since stepping down costs answers.

After every change the first answers still come from before it; they are ignored for as long as one answer takes.
"""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST = 16
_DOUBLING_PAYS = 1.3
_STEP = 0.125  # the first step of a trial, as a share; twice as large after each that paid
_LARGEST_STEP = 1.0
_UP_PAYS = 0.3  # share of its own size that a step up must bring, and that a step down may cost
_DOWN_COSTS = 0.2
_LEAST_SAMPLE = 96  # requests in one measurement of a trial
_REST = 6  # measurements between a trial that failed and the next
_TOLERATED = 0.03  # share of rejections that is not worth stepping down for
_LONGEST_PAUSE = 1.0
_STALLS = 4.0  # multiples of the usual answer time; few replies take that much longer than the others


@dataclass(slots=True)
class Limit:
    """The adaptive limit. `value` is read by the dispatcher; `finished` reports every try to it."""

    most: int
    clock: Callable[[], float] = time.monotonic
    jitter: random.Random = field(default_factory=random.Random)  # spreads tries over time; no answer depends on it
    value: int = field(init=False)
    _latency: float = 0.0  # seconds per answer, a moving average
    _n: int = 0
    _good: int = 0
    _rejected: int = 0
    _idle: bool = False
    _from: float | None = None  # start of the current measurement
    _seeking: bool = True
    _best: tuple[int, float] | None = None  # the value to return to, and its answers a second
    _trial: int = 0  # +1 and -1: a step up or down is being tried
    _step: float = _STEP
    _rest: int = 0

    def __post_init__(self) -> None:
        self.value = min(FIRST, self.most)

    @property
    def pause(self) -> float:
        """Seconds that a slot stays empty after a rejection: about as long as an answer takes.

        Drawn again each time (jitter), so that requests rejected together are not sent again together.
        """
        return min(_LONGEST_PAUSE, self._latency) * self.jitter.uniform(0.0, 2.0)

    @property
    def patience(self) -> float:
        """Seconds after which a request counts as stalled; infinite before the first answer."""
        return _STALLS * self._latency if self._latency else math.inf

    def finished(self, *, good: bool, rejected: bool, busy: bool, seconds: float) -> None:
        """Record a request that ended after `seconds`: answered, rejected by the server, or otherwise.

        `busy`: every slot was taken and more requests were waiting.
        """
        now = self.clock()
        if good:
            self._latency += (seconds - self._latency) * (0.05 if self._latency else 1.0)
        if self._from is None:
            self._from = now
        if now < self._from:
            return
        self._n += 1
        self._good += good
        self._rejected += rejected
        self._idle = self._idle or not busy
        enough = self.value if self._seeking else max(self.value, min(_LEAST_SAMPLE, 12 * self.value))
        if self._n >= enough and now - self._from >= self._latency:
            self._turn(now)

    def _turn(self, now: float) -> None:
        rate = self._good / max(now - (self._from or now), 1e-6)
        share, idle, before = self._rejected / self._n, self._idle, self.value
        self._n = self._good = self._rejected = 0
        self._from, self._idle = now, False
        if idle and not share:  # there was too little to send to learn anything
            return
        if rate == 0 and share > 0.5:
            self.value, self._best, self._trial, self._seeking = max(1, self.value // 2), None, 0, True
        elif self._seeking:
            self._seek(rate)
        else:
            self._settle(rate, share)
        if self.value != before:
            self._from = now + self._latency

    def _seek(self, rate: float) -> None:
        if self._best is not None and rate < _DOUBLING_PAYS * self._best[1]:
            self._seeking, self._rest = False, 1
            if rate < (1 + _UP_PAYS * _STEP) * self._best[1]:
                self.value = self._best[0]
            else:
                self._best = (self.value, rate)
            return
        self._best = (self.value, rate)
        if self.value >= self.most:
            self._seeking = False
            return
        self.value = min(self.most, self.value * 2)

    def _settle(self, rate: float, share: float) -> None:
        value, best = self._best or (self.value, rate)
        if self._trial:
            moved = abs(self.value - value) / value
            least = best * (1 + _UP_PAYS * moved if self._trial > 0 else 1 - _DOWN_COSTS * moved)
            if rate < least:
                self.value, self._trial, self._step, self._rest = value, 0, _STEP, _REST
                return
            self._best = (self.value, max(rate, best) if self._trial < 0 else rate)
            self._step = min(_LARGEST_STEP, 2 * self._step)
        else:
            self._best = (self.value, 0.5 * (best + rate))
            if self._rest > 0:
                self._rest -= 1
                return
        down = share > _TOLERATED
        if self._trial == (1 if down else -1):  # the direction has changed
            self._step = _STEP
        self._trial = 0
        if down and self.value > 1:
            self._trial = -1
            self.value = max(1, min(self.value - 1, int(self.value / (1 + min(self._step, _LARGEST_STEP / 2)))))
        elif not down and self.value < self.most:
            self._trial = 1
            self.value = min(self.most, max(self.value + 1, int(self.value * (1 + self._step))))
