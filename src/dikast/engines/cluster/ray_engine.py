"""Engines on the machines of a Ray cluster, as one engine: the driver hands out batches, workers work on them.

A batch whose worker died is handed out again. The driver takes one result for each batch, so that nothing counts twice;
the number of questions that were asked again is reported.
"""

import itertools
import os
import pickle
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, NamedTuple
from weakref import WeakSet

from dikast.core.errors import EngineError, RunError, UserError
from dikast.core.secrets import without_secrets
from dikast.engines.base import Closing, Completion, Engine, Request
from dikast.engines.cluster.ray_connection import (
    connect,
    first_line,
    through_client,
    why_not_started,
    workers_from,
)
from dikast.engines.cluster.ray_worker import Answered, Hello, Worker, complete
from dikast.engines.spec import parse_spec

_BATCH_SECONDS = 0.25  # target duration of a batch, in seconds
_ROUNDS = 8  # target duration of a batch, as a multiple of the time to its first answer
_LARGEST, _MOST_BYTES = 2048, 1 << 23  # parts of a batch, and bytes
_AHEAD = 2  # batches per worker, so that it never waits for the driver
_TRIES = 3  # attempts for a batch whose workers die
_STARTING = 600.0  # seconds in which a worker must have opened its engine
_LETTING_GO = 10.0  # seconds within which workers that have ended release their resources
_RECONNECTING = 45.0  # the same where a driver was killed that had come through Ray's client server, which waits 30 s
_ALONE = 60.0  # seconds without any worker, or one that starts, before the run stops
_LOOK = 5.0  # seconds between two looks for room for more workers


class Handed(NamedTuple):
    """A batch that was handed out, and what became of it."""

    batch: list[Any]
    result: Any


@dataclass(eq=False)
class _Running:
    """A worker: how many batches it has, whether it is to have no other, and what its engine has told so far."""

    actor: Any
    hello: Any
    out: int = 0
    alone: bool = False
    since: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class _Batch:
    """What is handed out together, and how many workers died of it."""

    parts: list[Any]
    deaths: int = 0


class RayEngine(Closing):
    """The engine that `spec` names, on workers of a cluster. Identity, formats and prices come from the workers.

    UserError, before anything is asked, where the cluster has too little room for the least number of workers, where a
    worker cannot open the engine (the message names its host), or where workers differ in Dikast's version or identity.
    `work` is what `spread` will run there: each worker imports its module while it starts.
    """

    def __init__(
        self, spec: str, runner: str = "ray", workers: str = "1:8", work: Callable[..., Any] | None = None
    ) -> None:
        self._work = work
        self._spec, self._shown, self._wanted = spec, without_secrets(spec), workers_from(workers)
        self._ray = connect(runner)
        self._actor = self._ray.remote(Worker)
        self._size = 4
        self._asked_again = self._failed_starts = 0
        self._refused: Counter[str] = Counter()
        self._told: dict[_Running, Answered] = {}
        self._running: list[_Running] = []
        self._starting: list[_Running] = []
        self._streams = 0
        self._make_room()
        scheme = parse_spec(spec).scheme
        resources = self._ray.cluster_resources()
        self._kind = "GPU" if resources.get("GPU") and scheme in ("hf", "vllm", "") else "CPU"
        free = self._free(int(resources.get(self._kind, 0)))
        if free < self._wanted.least:
            raise UserError(
                f"--workers {workers}: {self._wanted.least} workers need a {self._kind} each, and {free} of the"
                f" cluster's {int(resources.get(self._kind, 0))} are free: `dikast doctor --runner {runner}` lists them"
            )
        self._starting = [self._started() for _ in range(min(self._wanted.most, free))]
        hellos = self._heard()
        self._first = hellos[0]
        for other in hellos:
            if told := self._misfit(other):
                self.close()
                raise UserError(told)
        self.name, self.formats = self._first.name, self._first.formats
        self.price = self._first.told.get("price")
        self.price_unknown = self._first.told.get("price_unknown", False)
        self.free = self._first.told.get("free", False)
        self.cannot = self._first.told.get("cannot", {})
        self.thinking = self._first.told.get("thinking", 0)

    def _make_room(self) -> None:
        """Have engines of this process that rest, such as the other judges of a panel, keep their least workers."""
        for other in _engines:
            if other is not self and not other._streams:
                for each in other._running[other._wanted.least :]:
                    self._ray.kill(each.actor)
                del other._running[other._wanted.least :]
        _engines.add(self)
        self._looked = 0.0  # for room for more workers

    def _free(self, there: int) -> int:
        """How many CPUs or GPUs are free; a cluster that was just busy gets some seconds to release them."""
        until = time.monotonic() + (_RECONNECTING if through_client(self._ray) else _LETTING_GO)
        while True:
            free = int(self._ray.available_resources().get(self._kind, 0))
            if free >= self._wanted.least or there < self._wanted.least or time.monotonic() > until:
                return free
            time.sleep(0.1)

    def _started(self) -> _Running:
        wants = {"num_gpus": 1, "num_cpus": 0} if self._kind == "GPU" else {"num_cpus": 1}
        actor = self._actor.options(**wants, max_restarts=0).remote(self._spec, os.getcwd(), self._work)
        return _Running(actor, actor.hello.remote())

    def _heard(self) -> list[Hello]:
        """The descriptions of the first workers: at least the least number, and all that open in as much time again."""
        began, hellos = time.monotonic(), list[Hello]()
        while self._starting:
            late, lacking = time.monotonic() - began, self._wanted.least - len(hellos)
            refs = [each.hello for each in self._starting]
            limit = _STARTING - late if lacking > 0 else _LETTING_GO + late
            ready, _ = self._ray.wait(refs, num_returns=max(1, lacking), timeout=max(0.0, limit))
            if not ready:
                break
            for each in [each for each in self._starting if each.hello in ready]:
                self._starting.remove(each)
                try:
                    hellos.append(self._ray.get(each.hello))
                    self._running.append(each)
                except self._ray.exceptions.RayError as error:  # its machine may just have gone
                    self._failed_starts += 1
                    if self._failed_starts >= _TRIES:
                        self.close()
                        raise UserError(why_not_started(error, self._shown)) from None
                    self._starting.append(self._started())
        if len(hellos) < self._wanted.least:
            self.close()
            told = f"{len(hellos)} of {self._wanted.least} workers opened {self._shown!r} in {_STARTING:.0f} s"
            raise UserError(f"{told}: see what the cluster's machines are doing, or ask for fewer --workers")
        self._failed_starts = 0
        return hellos

    def _misfit(self, hello: Hello) -> str:
        """Why a worker cannot be part of this run; "" if it can."""
        if hello.dikast != version("dikast"):
            here = version("dikast")
            return f"the worker on {hello.host} has Dikast {hello.dikast}, this machine {here}: install the same"
        if hello.wrong:
            return f"the worker on {hello.host} cannot open {self._shown!r}: {hello.wrong}"
        if hello.hash != self._first.hash:
            keys = sorted(k for k in {*hello.identity, *self._first.identity}
                          if hello.identity.get(k) != self._first.identity.get(k))  # fmt: skip
            return f"the workers on {self._first.host} and {hello.host} have different judges: {', '.join(keys)} differ"
        return ""

    @property
    def notes(self) -> dict[str, int]:
        """What the engines of all workers say of their questions, and which workers were lost or refused."""
        found = Counter(self._refused)
        for answered in self._told.values():
            found.update(answered.notes)
        if self._asked_again:
            found["{n} questions were asked again, since a worker died"] = self._asked_again
        return dict(found)

    @property
    def work(self) -> dict[str, int]:
        """The work of all workers' engines together; of `peak_bytes` the largest."""
        found: dict[str, int] = {}
        for answered in self._told.values():
            for name, n in answered.work.items():
                found[name] = max(n, found.get(name, 0)) if name == "peak_bytes" else n + found.get(name, 0)
        return found

    def identity(self) -> Mapping[str, Any]:
        """The identity of each worker's engine, so that keys equal those of a run on one machine."""
        return self._first.identity

    def versions(self) -> Mapping[str, str]:
        """The versions of the workers' packages, and of Ray."""
        return {**self._first.versions, "ray": str(self._ray.__version__)}

    def close(self) -> None:
        """Stop the workers."""
        for each in (*self._running, *self._starting):
            self._ray.kill(each.actor)
        self._running, self._starting = [], []

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers in order of arrival; requests are read in batches, at most two batches ahead of each worker."""

        def failed(batch: Sequence[Request], error: EngineError) -> list[Completion]:
            return [Completion(request.key, finish="error", error=error) for request in batch]

        for _, completions in self.spread(complete, iter(requests), failed):
            yield from completions

    def spread(
        self,
        work: Callable[[Engine, Any, Callable[[], None]], Any],
        parts: Iterator[Any],
        failed: Callable[[list[Any], EngineError], Any],
        questions: Callable[[Any], int] = lambda part: 1,
    ) -> Iterator[Handed]:
        """Run `work(engine, batch, tick)` on the workers for batches of the parts; each batch comes back once.

        `work` is a function that workers can import, called beside the engine that each holds; it calls `tick` at its
        first answer, and what it raises is raised here. `failed` is the result of a batch that several workers died of,
        `questions` how many a part holds.
        """
        again, out = deque[_Batch](), dict[Any, tuple[_Running, _Batch]]()
        ended, alone, shared = False, 0.0, self._ray.put(work)  # pickled once, not with each batch
        self._make_room()
        self._streams += 1
        try:
            while True:
                self._welcome(grow=not ended)
                for worker in sorted(self._running, key=lambda each: each.out):
                    while worker.out < _AHEAD and not worker.alone and (again or not ended):
                        if again and worker.out:  # so that no other waits behind it, should it be what workers die of
                            break
                        batch = again.popleft() if again else _Batch(list(itertools.islice(parts, self._size)))
                        if not batch.parts:
                            ended = True
                            break
                        out[self._handed(worker, shared, batch)] = (worker, batch)
                if not out and not again and ended:
                    return
                if not self._running:
                    alone = self._alone(alone)
                    continue
                alone = 0.0
                done, _ = self._ray.wait(list(out), num_returns=1, timeout=1.0)
                for ref in done:
                    worker, batch = out.pop(ref)
                    worker.out, worker.alone = worker.out - 1, False
                    try:
                        answered: Answered = self._ray.get(ref)
                    except self._ray.exceptions.RayTaskError as error:  # of the worker, which lives
                        raise error.cause from error
                    except self._ray.exceptions.RayError as error:
                        if (told := self._lost(worker, batch, error)) is not None:
                            yield Handed(batch.parts, failed(batch.parts, told))
                        else:
                            again.append(batch)
                            self._asked_again += sum(map(questions, batch.parts))
                        continue
                    self._told[worker] = answered
                    self._fit(answered, len(batch.parts))
                    yield Handed(batch.parts, answered.result)
        finally:
            self._streams -= 1
            for ref in out:
                self._ray.cancel(ref)

    def _handed(self, worker: _Running, work: Any, batch: _Batch) -> Any:
        some = batch.parts[:: len(batch.parts) // 16 + 1]  # the size is estimated
        size = len(pickle.dumps(some, pickle.HIGHEST_PROTOCOL)) * len(batch.parts) // len(some)
        self._size = max(1, min(self._size, self._size * _MOST_BYTES // size))
        worker.out, worker.alone = worker.out + 1, batch.deaths > 0
        return worker.actor.ask.remote(work, batch.parts)

    def _fit(self, answered: Answered, n: int) -> None:
        """The size of the next batches: they take a quarter of a second, and some rounds of an engine's concurrency."""
        seconds = max(_BATCH_SECONDS, _ROUNDS * answered.first)
        fitting = int(seconds * n / max(answered.seconds, 1e-6))
        self._size = max(1, min(_LARGEST, 2 * self._size, fitting))

    def _lost(self, worker: _Running, batch: _Batch, error: Exception) -> EngineError | None:
        """What is told of a batch that killed several workers; None where it is to be handed out again."""
        if worker in self._running and isinstance(error, self._ray.exceptions.RayActorError):
            self._running.remove(worker)
            self._looked = 0.0  # a new one may take its place at once
        batch.deaths += 1
        if batch.deaths < _TRIES:
            return None
        return EngineError(f"its workers died {_TRIES} times: {first_line(error)}", kind="worker", retryable=True)

    def _alone(self, since: float) -> float:
        """Wait a little where no worker runs; since when. RunError where none starts."""
        now = time.monotonic()
        since = since or now
        limit = _STARTING if self._starting else _ALONE
        if now - since > limit or self._failed_starts >= _TRIES:
            why = "".join(f": {told}" for told in list(self._refused)[:1])
            raise RunError(f"every worker is gone and none starts{why}; run the same command again to resume")
        time.sleep(0.1)
        return since

    def _welcome(self, *, grow: bool) -> None:
        """Take in workers that have opened their engine, stop those that could not, start more where there is room."""
        if self._starting:
            refs = [each.hello for each in self._starting]
            ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
            for each in [each for each in self._starting if each.hello in ready]:
                self._starting.remove(each)
                try:
                    wrong = self._misfit(self._ray.get(each.hello))
                except self._ray.exceptions.RayError as error:
                    wrong = why_not_started(error, self._shown)
                if wrong:
                    self._ray.kill(each.actor)
                    self._refused[wrong] += 1
                    self._failed_starts += 1
                else:
                    self._running.append(each)
                    self._failed_starts = 0
        most = self._wanted.most - len(self._running) - len(self._starting)
        if grow and most > 0 and self._failed_starts < _TRIES and time.monotonic() - self._looked > _LOOK:
            self._looked = time.monotonic()
            free = int(self._ray.available_resources().get(self._kind, 0))
            self._starting += [self._started() for _ in range(min(most, free))]


_engines: WeakSet[RayEngine] = WeakSet()  # of this process
