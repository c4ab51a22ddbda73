"""Engines on the machines of a Ray cluster, as one engine: the driver plans, reads replies and writes; workers ask.

Ray may rerun a batch after its worker died. The driver takes one answer for each request, so that a run's ledger holds
every verdict once; the number of questions that were asked again is reported.
"""

import itertools
import os
import re
import secrets
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, NamedTuple

from dikast.core.errors import EngineError, RunError, UserError, require
from dikast.engines.base import Closing, Completion, Request
from dikast.engines.cluster.ray_worker import Answered, Hello, Worker
from dikast.engines.spec import parse_spec

_BATCH_SECONDS = 0.25  # target duration of a batch, in seconds
_LARGEST = 256  # requests of a batch
_AHEAD = 2  # batches per worker, so that it never waits for the driver
_TRIES = 3  # attempts for a batch whose workers die
_STARTING = 600.0  # seconds in which a worker must have opened its engine
_LETTING_GO = 10.0  # seconds within which workers that have ended release their resources
_ALONE = 60.0  # seconds without any worker before the run stops


class Workers(NamedTuple):
    """The minimum and maximum number of workers."""

    least: int
    most: int


def workers_from(text: str) -> Workers:
    """Read `N` or `MIN:MAX`; UserError for anything else."""
    found = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text.strip())
    least = int(found[1]) if found else 0
    most = int(found[2] or least) if found else 0
    if not 1 <= least <= most:
        raise UserError(f"--workers {text!r}: write a number or MIN:MAX, such as 4 or 1:8")
    return Workers(least, most)


def address_from(runner: str) -> str | None:
    """The address in `ray://HOST:PORT` or `ray:HOST:PORT`; None for `ray`. UserError for another runner."""
    if runner == "ray":
        return None
    scheme, _, rest = runner.partition(":")
    if scheme != "ray" or not rest.strip("/"):
        raise UserError(
            f"--runner {runner!r}: write ray (this machine, or the cluster in RAY_ADDRESS), or ray://HOST:PORT"
        )
    return runner if rest.startswith("//") else rest


def connect(runner: str) -> Any:
    """The module `ray`, connected. UserError where the package or the cluster is not there."""
    address = address_from(runner)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None and not {"RAY_ADDRESS", "RAY_AUTH_MODE"} & os.environ.keys():
        # A cluster that is started here listens on every interface, whatever its options: require a token.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    ray = require("ray", "ray")
    if not ray.is_initialized():
        try:
            ray.init(address=address, include_dashboard=False if address is None else None, log_to_driver=False,
                     logging_level="ERROR")  # fmt: skip
        except Exception as error:
            where = address or os.environ.get("RAY_ADDRESS") or "this machine"
            raise UserError(f"--runner {runner}: no Ray cluster at {where}: {_first(error)}") from None
    return ray


@dataclass(eq=False)
class _Running:
    """A worker, and how many batches it has."""

    actor: Any
    hello: Any
    out: int = 0
    since: float = field(default_factory=time.monotonic)


class RayEngine(Closing):
    """The engine that `spec` names, on workers of a cluster. Identity, formats and prices come from the workers.

    UserError, before anything is asked, where the cluster has too little room for the least number of workers, where a
    worker cannot open the engine (the message names its host), or where workers differ in Dikast's version or identity.
    """

    def __init__(self, spec: str, runner: str = "ray", workers: str = "1:8") -> None:
        self._spec, self._wanted = spec, workers_from(workers)
        self._ray = connect(runner)
        self._actor = self._ray.remote(Worker)
        self._size = 4
        self._asked_again = 0
        self.notes: dict[str, int] = {}
        scheme = parse_spec(spec).scheme
        resources = self._ray.cluster_resources()
        self._kind = "GPU" if resources.get("GPU") and scheme in ("hf", "vllm", "") else "CPU"
        free = self._free(int(resources.get(self._kind, 0)))
        if free < self._wanted.least:
            raise UserError(
                f"--workers {workers}: {self._wanted.least} workers need a {self._kind} each, and {free} of the"
                f" cluster's {int(resources.get(self._kind, 0))} are free: `dikast doctor --runner {runner}` lists them"
            )
        self._running = [self._started() for _ in range(min(self._wanted.most, free))]
        self._starting: list[_Running] = []
        hellos = self._heard(self._running)
        self._first = hellos[0]
        for other in hellos:
            if told := self._misfit(other):
                self.close()
                raise UserError(told)
        self.name, self.formats = self._first.name, self._first.formats
        self.price = self._first.told.get("price")
        self.price_unknown = self._first.told.get("price_unknown", False)
        self.cannot = self._first.told.get("cannot", {})

    def _free(self, there: int) -> int:
        """How many CPUs or GPUs are free; a cluster that was just busy gets some seconds to release them."""
        until = time.monotonic() + _LETTING_GO
        while True:
            free = int(self._ray.available_resources().get(self._kind, 0))
            if free >= self._wanted.least or there < self._wanted.least or time.monotonic() > until:
                return free
            time.sleep(0.1)

    def _started(self) -> _Running:
        wants = {"num_gpus": 1, "num_cpus": 0} if self._kind == "GPU" else {"num_cpus": 1}
        actor = self._actor.options(**wants, max_restarts=0).remote(self._spec)
        return _Running(actor, actor.hello.remote())

    def _heard(self, running: list[_Running]) -> list[Hello]:
        ready, late = self._ray.wait([each.hello for each in running], num_returns=len(running), timeout=_STARTING)
        if late:
            self.close()
            raise UserError(f"{len(late)} of {len(running)} workers did not open {self._spec!r} in {_STARTING:.0f} s")
        try:
            return list(self._ray.get(ready))
        except self._ray.exceptions.RayError as error:
            self.close()
            raise UserError(f"a worker died while it opened {self._spec!r}: {_first(error)}") from None

    def _misfit(self, hello: Hello) -> str:
        """Why a worker cannot be part of this run; "" if it can."""
        if hello.wrong:
            return f"the worker on {hello.host} cannot open {self._spec!r}: {hello.wrong}"
        if hello.dikast != version("dikast"):
            here = version("dikast")
            return f"the worker on {hello.host} has Dikast {hello.dikast}, this machine {here}: install the same"
        if hello.hash != self._first.hash:
            keys = sorted(k for k in {*hello.identity, *self._first.identity}
                          if hello.identity.get(k) != self._first.identity.get(k))  # fmt: skip
            return f"the workers on {self._first.host} and {hello.host} have different judges: {', '.join(keys)} differ"
        return ""

    def identity(self) -> Mapping[str, Any]:
        """The identity of each worker's engine, so that keys equal those of a run on one machine."""
        return self._first.identity

    def versions(self) -> Mapping[str, str]:
        """The versions of the workers' packages, and of Ray."""
        return {**self._first.versions, "ray": str(self._ray.__version__)}

    def close(self) -> None:
        """Stop the workers."""
        for each in (*self._running, *getattr(self, "_starting", ())):
            self._ray.kill(each.actor)
        self._running, self._starting = [], []

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers in order of arrival; requests are read in batches, at most two batches ahead of each worker."""
        source, again = iter(requests), deque[list[Request]]()
        tries: Counter[str] = Counter()
        out: dict[Any, tuple[_Running, list[Request]]] = {}
        ended, alone = False, 0.0
        try:
            while True:
                self._welcome()
                for worker in sorted(self._running, key=lambda each: each.out):
                    while worker.out < _AHEAD and (again or not ended):
                        batch = again.popleft() if again else list(itertools.islice(source, self._size))
                        if not batch:
                            ended = True
                            break
                        out[worker.actor.ask.remote(batch)] = (worker, batch)
                        worker.out += 1
                if not out and not again and ended:
                    return
                if not self._running:
                    alone = alone or time.monotonic()
                    if time.monotonic() - alone > _ALONE:
                        raise RunError("every worker is gone and none starts; run the same command again to resume")
                    time.sleep(0.1)
                    continue
                alone = 0.0
                done, _ = self._ray.wait(list(out), num_returns=1, timeout=1.0)
                for ref in done:
                    worker, batch = out.pop(ref)
                    worker.out -= 1
                    try:
                        answered: Answered = self._ray.get(ref)
                    except self._ray.exceptions.RayError as error:
                        yield from self._lost(worker, batch, error, again, tries)
                        continue
                    self._note(answered, len(batch))
                    yield from answered.completions
        finally:
            for ref in out:
                self._ray.cancel(ref)

    def _note(self, answered: Answered, n: int) -> None:
        for note, count in answered.notes.items():
            self.notes[note] = max(count, self.notes.get(note, 0))
        fitting = int(_BATCH_SECONDS * n / max(answered.seconds, 1e-6))
        self._size = max(1, min(_LARGEST, 2 * self._size, fitting))

    def _lost(
        self, worker: _Running, batch: list[Request], error: Exception, again: deque[list[Request]], tries: Counter[str]
    ) -> Iterator[Completion]:
        """Retry a batch whose worker died, with a new worker; a batch that kills several workers fails."""
        if worker in self._running and isinstance(error, self._ray.exceptions.RayActorError):
            self._running.remove(worker)
            self._starting.append(self._started())
        tries[batch[0].key] += 1
        if tries[batch[0].key] >= _TRIES:
            told = EngineError(f"its workers died {_TRIES} times: {_first(error)}", kind="worker", retryable=True)
            yield from (Completion(request.key, finish="error", error=told) for request in batch)
            return
        self._asked_again += len(batch)
        self.notes = {note: n for note, n in self.notes.items() if not note.endswith("since a worker died")}
        self.notes[f"{self._asked_again:,} questions were asked again, since a worker died"] = self._asked_again
        again.append(batch)

    def _welcome(self) -> None:
        """Add workers that have opened their engine; stop those that could not."""
        if not self._starting:
            return
        ready, _ = self._ray.wait([each.hello for each in self._starting], num_returns=len(self._starting), timeout=0)
        for each in [each for each in self._starting if each.hello in ready]:
            self._starting.remove(each)
            try:
                if not self._misfit(self._ray.get(each.hello)):
                    self._running.append(each)
            except self._ray.exceptions.RayError:
                self._starting.append(self._started())


def _first(error: Exception) -> str:
    """The first informative line of an error."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
