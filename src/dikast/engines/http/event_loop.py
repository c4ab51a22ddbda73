"""The engine's own event loop, in a thread, with queues of requests into it and of completions out of it.

Nothing is shared with a loop of the caller's, so an engine works the same in a script, inside a notebook's running
loop, and while another of its streams is suspended. Both queues are emptied in batches, since waking the other thread
costs as much as a request.
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol

from dikast.core.errors import EngineError, RunError
from dikast.engines.base import Completion, Request
from dikast.engines.http.body import Form
from dikast.engines.http.limit import Limit

_FLUSH = 0.002  # seconds that completions may be held back to be delivered in a batch
_FEW = 32
_CLOSING = 5.0


@dataclass(slots=True, eq=False)
class Flow:
    """One stream's requests and completions. The caller's thread counts what it submits, the loop what it takes."""

    submitted: int = 0
    taken: int = 0
    delivered: int = 0
    low: int = 0  # with fewer waiting requests than this, the caller is woken to submit more
    closed: bool = False
    outbox: "SimpleQueue[list[Completion]]" = field(default_factory=SimpleQueue)
    done: list[Completion] = field(default_factory=list)
    flushing: bool = False
    poked: bool = False
    consecutive: int = 0  # consecutive requests that failed for good
    verdict_on_all: EngineError | None = None  # why the rest of the stream is not sent

    @property
    def waiting(self) -> int:
        """Submitted, not yet taken up."""
        return self.submitted - self.taken

    def flush(self) -> None:
        """Hand over what is done; in the loop's thread."""
        self.flushing = False
        done, self.done = self.done, []
        self.outbox.put(done)


@dataclass(slots=True, eq=False)
class Job:
    """A request in progress."""

    request: Request
    form: Form
    body: list[bytes]
    flow: Flow
    tries: int = 0
    rejections: int = 0
    conceded: int = 0
    began: float = 0.0
    waited: float = 0.0  # seconds, as the retry policy said
    taken: bool = False
    avoid: "Lane | None" = None  # the lane that could not do it, where there are others


@dataclass(frozen=True, slots=True)
class Later:
    """Try again after so many seconds. `rejected`: the server was overloaded and asks to wait `rest` seconds."""

    seconds: float
    rejected: bool = False
    rest: float = 0.0


Work = Callable[[Job], Awaitable[Completion | Later]]


class Lane:
    """The lane of one server: its queue, its limit, and its requests in flight. Belongs to the event loop's thread."""

    def __init__(self, work: Work, limit: Limit) -> None:
        self.work, self.limit = work, limit
        self.queue: deque[Job] = deque()
        self.active = 0
        self.gate = 0.0  # loop time before which nothing is sent
        self.turned_away = 0  # consecutive rejected tries
        self.tries: OrderedDict[Job, float] = OrderedDict()  # starts of those in flight; the oldest first
        self.stalled: set[Job] = set()  # of these, the stalled ones, which do not count towards the limit
        self.put_by = 0  # jobs that wait for another try

    @property
    def idle(self) -> int:
        """Jobs in progress that do not count towards the limit: they wait for another try, or are stalled."""
        return self.put_by + len(self.stalled)

    def room(self) -> int:
        """How many more workers may be started; below 0 if there are too many."""
        return min(self.limit.value + len(self.stalled), self.limit.most) - self.active

    def note_stalled(self, now: float) -> None:
        """Stop counting tries towards the limit that take far longer than answers do; their connections stay open.

        A stalled request is no load, and a few of them would occupy every place until their timeouts. This is called as
        answers arrive, so a server that does not answer at all gets no further requests.
        """
        before = now - self.limit.patience
        while self.tries and (oldest := next(iter(self.tries.items())))[1] < before:
            self.stalled.add(oldest[0])
            del self.tries[oldest[0]]


class Routes(Protocol):
    """Which lane takes a job."""

    @property
    def lanes(self) -> Sequence[Lane]:
        """All of them."""
        ...

    def place(self, job: Job) -> Lane:
        """The lane for a new job, or for one that its last lane returned."""
        ...

    def refill(self, lane: Lane) -> None:
        """Move jobs of other lanes into the queue of one that is empty."""
        ...


class OneLane:
    """The routes to a single server."""

    def __init__(self, lane: Lane) -> None:
        self.lanes = (lane,)

    def place(self, job: Job) -> Lane:
        """The only lane."""
        return self.lanes[0]

    def refill(self, lane: Lane) -> None:
        """Does nothing, since there are no other lanes."""


class EventLoopThread:
    """A thread with an event loop that processes jobs, on each lane as many at once as its limit allows."""

    def __init__(self, routes: Routes, *, opening: Callable[[], None], closing: Callable[[], Awaitable[None]]) -> None:
        self.routes = routes
        self._opening, self._closing = opening, closing
        self._workers: dict[asyncio.Task[None], Job | None] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def idle(self) -> int:
        """Jobs in progress that do not count towards the limits: they wait for another try, or are stalled."""
        return sum(lane.idle for lane in self.routes.lanes)

    @property
    def queued(self) -> int:
        """Jobs that wait for room."""
        return sum(len(lane.queue) for lane in self.routes.lanes)

    @property
    def limit(self) -> int:
        """The current maximum of requests in flight."""
        return sum(lane.limit.value for lane in self.routes.lanes)

    @property
    def most(self) -> int:
        """The largest possible number of requests in flight."""
        return sum(lane.limit.most for lane in self.routes.lanes)

    def start(self) -> None:
        """Start the thread, the first time."""
        with self._lock:
            if self._thread is not None:
                return
            ready = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(ready,), name="dikast-http", daemon=True)
            self._thread.start()
            ready.wait()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Submit jobs; may be called from any thread."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self._accept, jobs)

    def take(self, flow: Flow) -> list[Completion]:
        """Wait for completions of a stream, the last one first; called in the caller's thread. May return none."""
        while True:
            try:
                done = flow.outbox.get(timeout=_CLOSING)
            except Empty:
                if self._thread is None or not self._thread.is_alive():
                    raise RunError("the engine was closed while a stream of it was open") from None
                continue
            flow.delivered += len(done)
            flow.poked = False
            done.reverse()
            return done

    def abandon(self, flow: Flow) -> None:
        """Drop the remaining requests of a stream, and cancel those in flight."""
        flow.closed = True
        if self.loop is not None and self.loop.is_running():
            self.loop.call_soon_threadsafe(self._drop, flow)

    def close(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            thread, loop = self._thread, self.loop
            if thread is None or loop is None or not thread.is_alive():
                return
            loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(_CLOSING)

    def _run(self, ready: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        self.loop = loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._open())
            ready.set()
            loop.run_forever()
        finally:
            for task in list(self._workers):
                task.cancel()
            loop.run_until_complete(asyncio.gather(*self._workers, return_exceptions=True))
            loop.run_until_complete(self._closing())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    async def _open(self) -> None:
        self._opening()

    def _accept(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.routes.place(job).queue.append(job)
        self.staff_all()

    def staff_all(self) -> None:
        """Start workers on every lane that has work and room for them."""
        for lane in self.routes.lanes:
            self._staff(lane)

    def _staff(self, lane: Lane) -> None:
        """Start as many workers as there is work and room for."""
        assert self.loop is not None
        if lane.gate > self.loop.time():
            return
        room = lane.room()
        if room > 0 and not lane.queue:
            self.routes.refill(lane)
        for _ in range(min(len(lane.queue), room)):
            lane.active += 1
            task = self.loop.create_task(self._worker(lane))
            self._workers[task] = None

    async def _worker(self, lane: Lane) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert self.loop is not None
        try:
            while lane.room() >= 0 and lane.gate <= self.loop.time():
                if not lane.queue:
                    self.routes.refill(lane)
                    if not lane.queue:
                        break
                    self._staff(lane)
                job = lane.queue.popleft()
                self._take(job)
                if job.flow.closed:
                    continue
                self._workers[task] = job
                began = lane.tries[job] = self.loop.time()
                try:
                    outcome = await lane.work(job)
                except Exception as error:  # a bug in Dikast must not leave the caller waiting
                    told = EngineError(f"{type(error).__name__} while a request was handled", kind="internal")
                    outcome = Completion(job.request.key, finish="error", error=told)
                finally:
                    lane.tries.pop(job, None)
                    lane.stalled.discard(job)
                self._workers[task] = None
                rejected = isinstance(outcome, Later) and outcome.rejected
                good = isinstance(outcome, Completion) and outcome.error is None
                busy = lane.room() <= 0 and bool(lane.queue)
                now = self.loop.time()
                lane.limit.finished(good=good, rejected=rejected, busy=busy, seconds=now - began)
                if good:
                    lane.note_stalled(now)
                if isinstance(outcome, Later):
                    self._put_off(lane, job, outcome)
                    if rejected:
                        await asyncio.sleep(lane.limit.pause)
                else:
                    lane.turned_away = 0
                    self._deliver(job.flow, outcome)
                if lane.queue and lane.room() > 0:
                    self._staff(lane)
        finally:
            lane.active -= 1
            del self._workers[task]
            if lane.queue and self.loop.is_running() and lane.room() > 0:
                self.loop.call_soon(self._staff, lane)

    def _take(self, job: Job) -> None:
        if job.taken:
            return
        job.taken = True
        flow = job.flow
        flow.taken += 1
        if flow.waiting < flow.low and not flow.poked and not flow.closed:
            flow.poked = True
            self._flush_soon(flow)

    def _deliver(self, flow: Flow, completion: Completion) -> None:
        flow.done.append(completion)
        self._flush_soon(flow)

    def _flush_soon(self, flow: Flow) -> None:
        assert self.loop is not None
        if not flow.flushing:
            flow.flushing = True
            if len(self._workers) > _FEW:
                self.loop.call_later(_FLUSH, flow.flush)
            else:
                self.loop.call_soon(flow.flush)

    def _put_off(self, lane: Lane, job: Job, later: Later) -> None:
        """Schedule a job for a later try. While all replies are rejections, nothing is sent until then."""
        assert self.loop is not None
        lane.turned_away = lane.turned_away + 1 if later.rejected else 0
        if lane.turned_away >= max(8, lane.active):
            lane.turned_away = 0
            lane.gate = self.loop.time() + max(later.seconds, later.rest)
            self.loop.call_at(lane.gate + 0.001, self._staff, lane)
        self.loop.call_later(later.seconds, self._again, lane, job)
        lane.put_by += 1

    def _again(self, before: Lane, job: Job) -> None:
        before.put_by -= 1
        if not job.flow.closed:
            lane = self.routes.place(job)
            lane.queue.appendleft(job)
            self._staff(lane)

    def _drop(self, flow: Flow) -> None:
        for lane in self.routes.lanes:
            lane.queue = deque(job for job in lane.queue if job.flow is not flow)
        for task, job in list(self._workers.items()):
            if job is not None and job.flow is flow:
                task.cancel()
