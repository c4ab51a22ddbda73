"""The engine's own event loop, in a thread, and the way of requests into it and of completions out of it.

Nothing is shared with a loop of the caller's, so an engine works the same in a script, inside a notebook's running
loop, and while another of its streams is suspended. Both ways are taken in batches: a wake-up of the other thread costs
as much as a request.
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from dikast.core.errors import EngineError, RunError
from dikast.engines.base import Completion, Request
from dikast.engines.http.body import Form
from dikast.engines.http.limit import Limit

_FLUSH = 0.002  # seconds that completions may wait for company while many are due
_FEW = 32
_CLOSING = 5.0


@dataclass(slots=True, eq=False)
class Flow:
    """One stream's requests and completions. The caller's thread counts what it submits, the loop what it takes."""

    submitted: int = 0
    taken: int = 0
    delivered: int = 0
    low: int = 0  # fewer waiting than this and the caller is woken to bring more
    closed: bool = False
    outbox: "SimpleQueue[list[Completion]]" = field(default_factory=SimpleQueue)
    done: list[Completion] = field(default_factory=list)
    flushing: bool = False
    poked: bool = False
    consecutive: int = 0  # requests in a row that failed for good
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
    """A request on its way."""

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


@dataclass(frozen=True, slots=True)
class Later:
    """Try again after so many seconds. `rejected`: the server had too much to do."""

    seconds: float
    rejected: bool = False


Work = Callable[[Job], Awaitable[Completion | Later]]


class EventLoopThread:
    """A thread with an event loop that works jobs off, as many at once as the limit allows."""

    def __init__(
        self, work: Work, limit: Limit, *, opening: Callable[[], None], closing: Callable[[], Awaitable[None]]
    ) -> None:
        self.limit = limit
        self.queue: deque[Job] = deque()
        self._work, self._opening, self._closing = work, opening, closing
        self._active = 0
        self._turned_away = 0  # tries in a row that were rejected
        self._gate = 0.0  # loop time before which nothing is sent
        self._tries: OrderedDict[Job, float] = OrderedDict()  # out there since, by loop time; the oldest first
        self._stalled: set[Job] = set()  # of these, the ones that take none of the limit's places
        self._put_by = 0  # jobs that wait for another try
        self._workers: dict[asyncio.Task[None], Job | None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def idle(self) -> int:
        """Jobs that are under way and take none of the limit's places: they wait for another try, or hang."""
        return self._put_by + len(self._stalled)

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
        """Hand jobs over; from any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._accept, jobs)

    def take(self, flow: Flow) -> list[Completion]:
        """Wait for completions of a stream, the last first; in the thread of the caller. May be none."""
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
        """Drop what is left of a stream, and break off what is in flight for it."""
        flow.closed = True
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._drop, flow)

    def close(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            thread, loop = self._thread, self._loop
            if thread is None or loop is None or not thread.is_alive():
                return
            loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(_CLOSING)

    def _run(self, ready: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        self._loop = loop
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
        self.queue.extend(jobs)
        self._staff()

    def _staff(self) -> None:
        """Put on as many workers as there is work and room for."""
        assert self._loop is not None
        if self._gate > self._loop.time():
            return
        for _ in range(min(len(self.queue), self._room())):
            self._active += 1
            task = self._loop.create_task(self._worker())
            self._workers[task] = None

    def _room(self) -> int:
        """How many more workers may be put on; below 0 where there are too many."""
        return min(self.limit.value + len(self._stalled), self.limit.most) - self._active

    def _note_stalled(self, now: float) -> None:
        """Give up the places of tries that take far longer than answers do; the connection stays open for them.

        A request that hangs is no load, and a few of them would hold every place until their timeouts. This is called
        as answers come, so a server that stands still altogether is sent no more.
        """
        before = now - self.limit.patience
        while self._tries and (oldest := next(iter(self._tries.items())))[1] < before:
            self._stalled.add(oldest[0])
            del self._tries[oldest[0]]

    async def _worker(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert self._loop is not None
        try:
            while self.queue and self._room() >= 0 and self._gate <= self._loop.time():
                job = self.queue.popleft()
                self._take(job)
                if job.flow.closed:
                    continue
                self._workers[task] = job
                began = self._tries[job] = self._loop.time()
                try:
                    outcome = await self._work(job)
                except Exception as error:  # a fault of ours must not leave the caller waiting
                    told = EngineError(f"{type(error).__name__} while a request was handled", kind="internal")
                    outcome = Completion(job.request.key, finish="error", error=told)
                finally:
                    self._tries.pop(job, None)
                    self._stalled.discard(job)
                self._workers[task] = None
                rejected = isinstance(outcome, Later) and outcome.rejected
                good = isinstance(outcome, Completion) and outcome.error is None
                busy = self._room() <= 0 and bool(self.queue)
                now = self._loop.time()
                self.limit.finished(good=good, rejected=rejected, busy=busy, seconds=now - began)
                if good:
                    self._note_stalled(now)
                if isinstance(outcome, Later):
                    self._put_off(job, outcome)
                    if rejected:
                        await asyncio.sleep(self.limit.pause)
                else:
                    self._turned_away = 0
                    self._deliver(job.flow, outcome)
                if self.queue and self._room() > 0:
                    self._staff()
        finally:
            self._active -= 1
            del self._workers[task]
            if self.queue and self._loop.is_running() and self._room() > 0:
                self._loop.call_soon(self._staff)

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
        assert self._loop is not None
        if not flow.flushing:
            flow.flushing = True
            if self._active > _FEW:
                self._loop.call_later(_FLUSH, flow.flush)
            else:
                self._loop.call_soon(flow.flush)

    def _put_off(self, job: Job, later: Later) -> None:
        """Bring a job back later. When nothing but rejections comes back, nothing at all is sent until then."""
        assert self._loop is not None
        self._loop.call_later(later.seconds, self._again, job)
        self._put_by += 1
        self._turned_away = self._turned_away + 1 if later.rejected else 0
        if self._turned_away >= max(8, self._active):
            self._turned_away = 0
            self._gate = self._loop.time() + later.seconds
            self._loop.call_at(self._gate + 0.001, self._staff)

    def _again(self, job: Job) -> None:
        self._put_by -= 1
        if not job.flow.closed:
            self.queue.appendleft(job)
            self._staff()

    def _drop(self, flow: Flow) -> None:
        self.queue = deque(job for job in self.queue if job.flow is not flow)
        for task, job in list(self._workers.items()):
            if job is not None and job.flow is flow:
                task.cancel()
