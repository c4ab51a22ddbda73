"""The worker on a machine of the cluster: one engine, beside which it does what it is handed, batch by batch."""

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import DikastError
from dikast.core.secrets import without_secrets
from dikast.engines.base import Completion, Engine, Request
from dikast.engines.spec import open_engine
from dikast.engines.wrapper import found_in

_TOLD = ("price", "price_unknown", "free", "cannot", "thinking")  # what a run looks up in its engine


@dataclass(frozen=True)
class Hello:
    """A worker's description of itself. `wrong` is why it cannot work; then only the host is known."""

    host: str
    wrong: str = ""
    dikast: str = ""
    name: str = ""
    identity: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """The hash of the engine's identity, the same on all workers of a run."""
        return fingerprint(dict(self.identity))


@dataclass(frozen=True)
class Answered:
    """What became of a batch, the engine's notes and work so far, and the seconds to its first answer and its last."""

    result: Any
    notes: Mapping[str, int]
    work: Mapping[str, int]
    first: float
    seconds: float


class Worker:
    """The class of the Ray actor, which holds the engine. What it will be asked to do comes along to be imported."""

    def __init__(self, spec: str, folder: str, work: Callable[..., Any] | None = None) -> None:
        self.engine: Engine | None = None
        self.wrong = ""
        elsewhere = ""
        try:  # relative paths mean what they mean to the driver
            os.chdir(folder)
        except OSError as error:
            elsewhere = f"; relative paths start elsewhere there: {folder}, where the command runs: {error.strerror}"
        try:
            self.engine = open_engine(spec)
        except Exception as error:
            told = str(error) if isinstance(error, DikastError) else f"{type(error).__name__}: {error}"
            self.wrong = without_secrets(told) + elsewhere

    def hello(self) -> Hello:
        """The description of this worker."""
        host, engine = socket.gethostname(), self.engine
        if engine is None:
            return Hello(host, self.wrong, version("dikast"))
        told = {name: value for name in _TOLD if (value := found_in(engine, name, None)) is not None}
        formats = dict(getattr(engine, "formats", {}))
        return Hello(host, "", version("dikast"), engine.name, engine.identity(), engine.versions(), formats, told)

    def ask(self, work: Callable[[Engine, Any, Callable[[], None]], Any], batch: list[Any]) -> Answered:
        """What the function makes of the engine and a batch; it says when it has the first answer."""
        assert self.engine is not None
        began, first = time.perf_counter(), [0.0]

        def tick() -> None:
            first[0] = first[0] or time.perf_counter() - began

        result = work(self.engine, batch, tick)
        notes, done = dict(getattr(self.engine, "notes", {})), dict(found_in(self.engine, "work", {}))
        return Answered(result, notes, done, first[0], time.perf_counter() - began)


def complete(engine: Engine, requests: Sequence[Request], tick: Callable[[], None]) -> list[Completion]:
    """The completions of a batch of requests, in order of arrival."""
    found = []
    for completion in engine.stream(iter(requests)):
        tick()
        found.append(completion)
    return found
