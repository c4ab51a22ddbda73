"""The base of mock judges: `decide` gives the verdict; replies look like a real judge's, failures have a given rate."""

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar

from dikast.core.errors import EngineError, UserError
from dikast.core.message import Span
from dikast.core.verdict import Usage
from dikast.engines.base import Closing, Completion, Request
from dikast.engines.mock.json_reply import fitting

MASS = 0.99  # probability mass of a mock's label scores; the rest is for all other text
_SURE = 0.9  # the share of that mass on the label of a decision without a distribution
_REFUSAL = "I'm sorry, but I can't help with judging this."
_PROSE = (
    "The response keeps to what was asked and most of what it states can be checked against the instruction, though"
    " some of its wording is loose and one of its steps is left without support. "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The share of requests, each in [0, 1], that go wrong in one way; together at most 1.

    `refused`: half by the server's refusal field, half in words. `truncated`: the token limit came before the verdict.
    `unparsed`: prose without a verdict. `off_scale`: a number that no scale has. `errors` and `retryable`: no reply. As
    with real engines not every request can fail in every way: one that continues at the marker can be neither truncated
    nor unparsed, one constrained by a schema can only be truncated, one constrained to choices neither; one that is
    only read, without text, can only be off the scale. Refusals and errors are possible for all.
    """

    refused: float = 0.0
    truncated: float = 0.0
    unparsed: float = 0.0
    off_scale: float = 0.0
    errors: float = 0.0
    retryable: float = 0.0

    def __post_init__(self) -> None:
        shares = [(each.name, getattr(self, each.name)) for each in fields(self)]
        if any(not 0 <= share <= 1 for _, share in shares) or sum(share for _, share in shares) > 1 + 1e-9:
            told = ", ".join(f"{name}={share:g}" for name, share in shares)
            raise UserError(f"shares of failures lie in 0..1 and sum to at most 1, got {told}")

    @classmethod
    def evenly(cls, total: float) -> "Failures":
        """`total` shared out evenly over all six ways."""
        return cls(**{each.name: total / 6 for each in fields(cls)})

    def at(self, draw: float) -> str | None:
        """The kind of failure for a uniform draw in (0, 1)."""
        for each in fields(self):
            draw -= getattr(self, each.name)
            if draw < 0:
                return each.name
        return None


NO_FAILURES = Failures()


def uniform(*about: object) -> float:
    """A number in the open interval (0, 1) that depends on `about` alone: the same in every process and order."""
    return ((int.from_bytes(blake2b(repr(about).encode(), digest_size=8).digest()) >> 11) + 0.5) / 2**53


@dataclass(kw_only=True, eq=False)
class Mock(Closing):
    """A judge that decides by `decide`; subclasses need nothing else.

    `seed` moves every draw. `feedback`: words of prose before the verdict. `latency`: seconds slept per request, one
    after the other. `log`: a file that gets one line `KEY` per request, before it is answered. `failures` go over
    whatever was decided. Tokens in `usage` are counted as one per four characters.
    """

    free: ClassVar[bool] = True  # of money

    name: str = ""
    seed: int = 0
    feedback: int = 12
    latency: float = 0.0
    log: str = ""
    failures: Failures = field(default_factory=Failures)

    def __post_init__(self) -> None:
        self.name = self.name or f"mock:{type(self).__name__.lower()}"
        if self.feedback < 0 or not self.latency >= 0:
            raise UserError(f"{self.name}: feedback and latency are not negative")
        words = (_PROSE * (self.feedback // _PROSE.count(" ") + 1)).split()
        self._prose = " ".join(words[: self.feedback]) + "\n" if self.feedback else ""
        self._fails = self.failures != NO_FAILURES

    def decide(self, request: Request) -> str | Mapping[str, float]:
        """The verdict: one of the labels of `labels_of(request)`, or log-weights (nats) by label, highest wins.

        Raise EngineError to fail. Take randomness from `self.draw`, so that no answer depends on another.
        """
        raise NotImplementedError(f"{type(self).__name__} must say how it decides")

    @property
    def reads_gold(self) -> bool:
        """Whether its answers depend on the gold of items, so that new gold makes a new question of an old one."""
        return True

    def draw(self, request: Request, *about: object) -> float:
        """A uniform draw in (0, 1) for this mock, the request's sampling seed, and `about` (the key if empty)."""
        return uniform(self.seed, request.sampling.seed, *(about or (request.key,)))

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers one request at a time, in order."""
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if self.log else None
        try:
            for request in requests:
                if log is not None:
                    os.write(log, request.key.encode("utf-8", "backslashreplace") + b"\n")
                if self.latency:
                    time.sleep(self.latency)
                yield self.reply(request)
        finally:
            if log is not None:
                os.close(log)

    def reply(self, request: Request) -> Completion:
        """The completion for one request."""
        failure = self.failures.at(self.draw(request, "failure", request.key)) if self._fails else None
        if failure in ("errors", "retryable"):
            return _failed(
                request, EngineError("the mock failed as told to", kind="mock", retryable=failure != "errors")
            )
        if failure == "refused":
            silent = self.draw(request, "refusal", request.key) < 0.5
            return Completion(request.key, "" if silent else _REFUSAL, refusal=_REFUSAL if silent else "")
        try:
            decided = self.decide(request)
            labels = labels_of(request)
            label = decided if isinstance(decided, str) else max(decided, key=decided.__getitem__)
            if label not in labels and (labels or not isinstance(decided, str)):
                raise EngineError(
                    f"{_of(request)}: {self.name} says {label!r}, the labels are {list(labels)}", kind="off_label"
                )
        except EngineError as error:
            return _failed(request, error)
        return self._spoken(request, labels.get(label, label), labels, decided, failure)

    def identity(self) -> Mapping[str, Any]:
        """The class and every setting that its answers depend on; a subclass that keeps more state adds it."""
        own: dict[str, Any] = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in ("name", "latency", "log", "failures")
        }
        failures = {each.name: getattr(self.failures, each.name) for each in fields(Failures)}
        return {
            "engine": "mock",
            "kind": type(self).__name__,
            "version": 1,
            "reads_gold": self.reads_gold,
            **own,
            "failures": failures,
        }

    def versions(self) -> Mapping[str, str]:
        """Nothing but the package itself."""
        return {}

    def _spoken(
        self,
        request: Request,
        string: str,
        labels: Mapping[str, str],
        decided: str | Mapping[str, float],
        failure: str | None,
    ) -> Completion:
        readout = request.readout
        marker: str = request.about.get("marker") or (readout.marker if readout else "")
        prefill = request.prefill.rstrip()
        continued = bool(prefill and marker and prefill.endswith(marker.rstrip()))
        forced = continued
        text = self._prose.rstrip()
        if readout is not None and not readout.generate:
            text, forced = "", True
        elif request.choices or request.schema is not None:
            text = self._constrained(request, string)
            if failure == "truncated" and not request.choices:
                return _cut(request, text[: len(text) // 2])
            failure = None
        elif failure == "truncated" and not continued:
            return _cut(request, text)
        elif failure == "unparsed" and not continued:
            text, forced = text or "No verdict.", True
        else:
            said = _off(labels) if failure == "off_scale" else string
            text = said if continued else f"{self._prose}{marker}{said}"
        usage = _usage(request, text)
        if readout is None:
            return Completion(request.key, text, usage=usage)
        mass = 0.02 if failure == "off_scale" else MASS
        read = _read(readout.labels, labels, decided, mass)
        return Completion(request.key, text, "stop", read, "forced" if forced else "own", usage=usage)

    def _constrained(self, request: Request, string: str) -> str:
        stated = string.strip()
        if request.choices:
            hits = [choice for choice in request.choices if choice == string or choice.strip() == stated]
            return hits[0] if hits else request.choices[int(self.draw(request) * len(request.choices))]
        value = fitting(request.schema or {}, stated, self._prose.rstrip())
        return json.dumps(value, ensure_ascii=False)


def labels_of(request: Request) -> Mapping[str, str]:
    """The labels to choose from, each with the string that states it; empty if the request does not say."""
    told: Mapping[str, str] | None = request.about.get("labels")
    if told:
        return told
    strings = request.readout.labels if request.readout else request.choices
    return {string.strip(): string for string in strings}


def _failed(request: Request, error: EngineError) -> Completion:
    return Completion(request.key, finish="error", error=error)


def _cut(request: Request, text: str) -> Completion:
    return Completion(request.key, text, "length", usage=_usage(request, text))


def _of(request: Request) -> str:
    return f"item {request.about['item']!r}" if "item" in request.about else f"request {request.key!r}"


def _usage(request: Request, text: str) -> Usage:
    characters = 0
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Span):
                characters += len(part.text)
    return Usage((characters + 3) // 4, 0, (len(text) + 3) // 4)


def _off(labels: Mapping[str, str]) -> str:
    """A number above every number among the labels, spaced as they are."""
    numbers = [float(label) for label in labels if label.replace(".", "", 1).removeprefix("-").isdigit()]
    space = " " if any(string.startswith(" ") for string in labels.values()) else ""
    return f"{space}{max(numbers, default=5.0) * 2 + 1:g}"


def _read(
    asked: tuple[str, ...], labels: Mapping[str, str], decided: str | Mapping[str, float], mass: float
) -> dict[str, float]:
    """Log-probabilities of the strings asked for; a string that states no label gets next to nothing."""
    if isinstance(decided, str):
        sure, other = _sure(len(asked), mass)
        return {string: sure if string == labels.get(decided, decided) else other for string in asked}
    top = max(decided.values())
    total = math.log(sum(math.exp(weight - top) for weight in decided.values())) + top - math.log(mass)
    of = {string: label for label, string in labels.items()}
    return {string: decided.get(of.get(string, ""), top - 60.0) - total for string in asked}


@lru_cache(maxsize=64)
def _sure(n: int, mass: float) -> tuple[float, float]:
    return math.log(_SURE * mass), math.log((1 - _SURE) * mass / max(n - 1, 1))
