"""Progress of a run, reported while it is running."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from dikast.core.verdict import Status, Usage, Verdict
from dikast.engines.base import Engine
from dikast.engines.wrapper import found_in
from dikast.judging.run_plan import Plan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: at its start, and after each verdict. before: the part of `done` that was answered before
    this call. tokens: in and out, of this call. cost: their cost, None if unknown, and `unpriced` if they do cost
    money. pulse: the current activity, which changes between verdicts.
    """

    done: int
    total: int
    failed: int
    seconds: float
    before: int = 0
    tokens: int = 0
    cost: float | None = None
    unpriced: bool = False
    pulse: Callable[[], "Pulse"] = lambda: Pulse(0)

    @property
    def expected(self) -> float | None:
        """What the whole call will cost if the rest costs as much as what was answered."""
        asked = self.done - self.before
        return None if self.cost is None or not asked else self.cost * (1 + (self.total - self.done) / asked)


class Pulse(NamedTuple):
    """Questions sent in this call, what the engine waits for before another try, what is left of its budget."""

    asked: int
    waiting: str = ""
    left: str = ""


Watcher = Callable[[Progress], None]


@dataclass(slots=True)
class RunningTotal:
    """Verdicts in sum: how many of them failed, what they used, and whether some verdict has tokens and no cost."""

    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    uncosted: bool = False

    @classmethod
    def of(cls, verdict: Verdict) -> "RunningTotal":
        """The total of one verdict."""
        used = verdict.usage
        return cls(
            int(verdict.status is not Status.OK), used, used.cost is None and bool(used.tokens_in or used.tokens_out)
        )

    def add(self, more: "RunningTotal") -> None:
        """Add the verdicts of another total."""
        self.failed += more.failed
        self.usage += more.usage
        self.uncosted = self.uncosted or more.uncosted


class Watched:
    """Counts the questions and answers of a call, and informs the watcher, if there is one."""

    def __init__(self, watch: Watcher | None, engine: Engine, plan: Plan) -> None:
        self.watch, self.engine, self.plan, self.began = watch, engine, plan, time.monotonic()
        self.done, self.pulled, self.total = plan.answered, 0, RunningTotal()
        self.unsent = ""  # why the engine did not send the submitted questions

    def counted(self, asked: Iterator[T], questions: Callable[[T], int] = lambda task: 1) -> Iterator[T]:
        """Tasks, or what holds several questions, counted as they are pulled; none after the engine has given up."""
        for each in asked:
            if self.gave_up:
                return
            self.pulled += questions(each)
            yield each

    @property
    def gave_up(self) -> str:
        """Why the engine has given up on its server; "" if it has not."""
        return str(found_in(self.engine, "gave_up", None) or self.unsent)

    @property
    def again(self) -> str:
        """Which command goes on once the cure of why the engine gave up is done."""
        gave_up = found_in(self.engine, "gave_up", None)
        return "run the corrected command" if getattr(gave_up, "respelt", False) else "run the same command again"

    def count(self, done: int, total: RunningTotal) -> None:
        """Count verdicts and tell of them."""
        self.done += done
        self.total.add(total)
        self.tell()

    def tell(self) -> None:
        """Report the progress."""
        if self.watch is not None:
            failed, used = self.total.failed, self.total.usage
            tokens, cost = used.tokens_in + used.tokens_out, None if self.total.uncosted else used.cost
            unpriced = bool(tokens) and found_in(self.engine, "price_unknown", False)
            seconds, before, pulse = time.monotonic() - self.began, self.plan.answered, self.pulse
            done, total = self.done, self.plan.questions
            self.watch(Progress(done, total, failed, seconds, before, tokens, cost, unpriced, pulse))

    def pulse(self) -> Pulse:
        """The current activity."""
        sent = max(self.done - self.plan.answered, self.pulled - int(found_in(self.engine, "queued", 0)))
        return Pulse(sent, *(str(found_in(self.engine, name, "")) for name in ("status", "left")))
