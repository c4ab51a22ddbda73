"""How many requests may be in flight: found by what the server does, between 1 and the user's limit.

The measure is answers a second. The limit doubles while that brings at least a fifth more of them; then small steps up
(down, when the server turns requests away) are tried and kept only where answers come no slower. So it settles at the
fewest requests in flight that get the most answers: under a rate limit where rejections begin, beside a busy server
where its queue begins. Rejections that do not hang on the load do not move it, since stepping down costs answers.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST = 16
_DOUBLING_PAYS = 1.2
_UP, _DOWN = 1.125, 0.88
_UP_PAYS, _DOWN_COSTS = 1.04, 0.95
_LEAST_SAMPLE = 48  # tries in an epoch
_REST = 6  # epochs between trials that failed
_TOLERATED = 0.03  # share of rejections that is not worth stepping down for


@dataclass(slots=True)
class Limit:
    """The adaptive limit. `value` is read by the dispatcher; `finished` tells it of every try."""

    most: int
    clock: Callable[[], float] = time.monotonic
    value: int = field(init=False)
    _n: int = 0
    _good: int = 0
    _rejected: int = 0
    _idle: bool = False
    _began: float | None = None
    _seeking: bool = True
    _best: tuple[int, float] | None = None  # the value to return to, and its answers a second
    _trial: int = 0  # +1 and -1: a step up or down is being tried
    _rest: int = 0

    def __post_init__(self) -> None:
        self.value = min(FIRST, self.most)

    def finished(self, *, good: bool, rejected: bool, busy: bool) -> None:
        """Note a try that ended: with an answer, turned away, or otherwise. `busy`: every place was taken."""
        now = self.clock()
        if self._began is None:
            self._began = now
            return
        self._n += 1
        self._good += good
        self._rejected += rejected
        self._idle = self._idle or not busy
        if self._n >= max(self.value, _LEAST_SAMPLE if not self._seeking else 1):
            self._turn(now)

    def _turn(self, now: float) -> None:
        seconds = max(now - (self._began or now), 1e-6)
        rate, share, idle = self._good / seconds, self._rejected / self._n, self._idle
        self._n = self._good = self._rejected = 0
        self._began, self._idle = now, False
        if idle and not share:  # there was less to send than might have been: nothing is learnt
            return
        if rate == 0 and share > 0.5:
            self.value, self._best, self._trial = max(1, self.value // 2), None, 0
            return
        if self._seeking:
            self._seek(rate)
        else:
            self._settle(rate, share)

    def _seek(self, rate: float) -> None:
        if self._best is not None and rate < _DOUBLING_PAYS * self._best[1]:
            self._seeking = False
            self.value, self._rest = self._best[0], 1
            return
        self._best = (self.value, rate)
        if self.value >= self.most:
            self._seeking = False
            return
        self.value = min(self.most, self.value * 2)

    def _settle(self, rate: float, share: float) -> None:
        if self._best is None:
            self._best = (self.value, rate)
        value, best = self._best
        if self._trial:
            keep = rate >= best * (_UP_PAYS if self._trial > 0 else _DOWN_COSTS)
            if keep:
                self._best = (self.value, max(rate, best) if self._trial < 0 else rate)
            else:
                self.value, self._rest = value, _REST
            self._trial = 0
            if not keep:
                return
        else:
            self._best = (self.value, 0.5 * (best + rate))
            if self._rest > 0:
                self._rest -= 1
                return
        if share > _TOLERATED:
            self._trial, self.value = -1, max(1, min(self.value - 1, int(self.value * _DOWN)))
        elif self.value < self.most:
            self._trial, self.value = 1, min(self.most, max(self.value + 1, int(self.value * _UP)))
