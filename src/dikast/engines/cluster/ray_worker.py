"""The worker on a machine of the cluster: one engine, asked in batches."""

import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import DikastError
from dikast.engines.base import Completion, Engine, Request
from dikast.engines.spec import open_engine
from dikast.engines.wrapper import found_in

_TOLD = ("price", "price_unknown", "cannot")  # what a run looks up in its engine


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
    """A batch's completions, the engine's notes so far, and the seconds it took."""

    completions: Sequence[Completion]
    notes: Mapping[str, int]
    seconds: float


class Worker:
    """The class of the Ray actor, which holds the engine."""

    def __init__(self, spec: str) -> None:
        self.engine: Engine | None = None
        self.wrong = ""
        try:
            self.engine = open_engine(spec)
        except Exception as error:
            self.wrong = str(error) if isinstance(error, DikastError) else f"{type(error).__name__}: {error}"

    def hello(self) -> Hello:
        """The description of this worker."""
        host, engine = socket.gethostname(), self.engine
        if engine is None:
            return Hello(host, self.wrong)
        told = {name: value for name in _TOLD if (value := found_in(engine, name, None)) is not None}
        formats = dict(getattr(engine, "formats", {}))
        return Hello(host, "", version("dikast"), engine.name, engine.identity(), engine.versions(), formats, told)

    def ask(self, requests: Sequence[Request]) -> Answered:
        """The answers to a batch."""
        assert self.engine is not None
        began = time.perf_counter()
        completions = list(self.engine.stream(iter(requests)))
        notes = dict(getattr(self.engine, "notes", {}))
        return Answered(completions, notes, time.perf_counter() - began)
