"""Every rule of the conformance kit lets sound engines pass and can fail."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from dikast.core.errors import EngineError, UserError
from dikast.core.verdict import Usage
from dikast.engines.base import Completion, Engine, Readout, Request
from dikast.engines.mock import MOCKS, Random, open_mock
from dikast.testing import RULES, check_engine, sample_requests


class Sound:
    """A sound engine to break in one place."""

    name = "sound"

    def __init__(self) -> None:
        self.inner = Random()

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            yield self.answer(request)

    def answer(self, request: Request) -> Completion:
        if not request.messages:
            return Completion(request.key, finish="error", error=EngineError("nothing was asked", kind="void"))
        return self.inner.reply(request)

    def identity(self) -> Mapping[str, Any]:
        return {"engine": "sound"}

    def versions(self) -> Mapping[str, str]:
        return {"sound": "1"}


class Nameless(Sound):
    name = ""


class NotJson(Sound):
    def identity(self) -> Mapping[str, Any]:
        return {"weights": object()}


class TupleIdentity(Sound):
    def identity(self) -> Mapping[str, Any]:
        return {"shape": (1, 2)}


class Shifting(Sound):
    numbers = count()

    def identity(self) -> Mapping[str, Any]:
        return {"calls": next(self.numbers)}


class VersionsOfNumbers(Sound):
    def versions(self) -> Mapping[str, str]:
        return {"sound": 1}  # type: ignore[dict-item]


class SpeaksUnasked(Sound):
    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        yield from super().stream(requests)
        yield Completion("end")


class Greedy(Sound):
    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        yield from map(self.answer, list(requests))


class Hasty(Sound):
    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        source = iter(requests)
        first = next(source, None)
        return super().stream(source if first is None else (each for part in ([first], source) for each in part))


class OneShot(Sound):
    used = False

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            if not (self.used and request.key.startswith("check")):
                yield self.answer(request)
            self.used = self.used or request.key.startswith("lazy")


class ByContent(Sound):
    """Answers equal questions once."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        seen: set[object] = set()
        for request in requests:
            name = request.about.get("sample"), request.messages, request.sampling, request.readout
            if name not in seen:
                yield self.answer(request)
            seen.add(name)


class Stutters(Sound):
    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            yield from [self.answer(request)] * 2


class WrongKeys(Sound):
    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), key=request.key.upper())


class BareText(Sound):
    def answer(self, request: Request) -> Completion:
        return "fine"  # type: ignore[return-value]


class Mute(Sound):
    def answer(self, request: Request) -> Completion:
        return Completion(request.key, finish="error", error=EngineError("no", kind="mute"))


class WrongError(Sound):
    def answer(self, request: Request) -> Completion:
        if not request.messages:
            return Completion(request.key, finish="error", error=ValueError("no"))  # type: ignore[arg-type]
        return super().answer(request)


class ErrorWithoutOne(Sound):
    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), finish="error", error=None)


class HalfSurrogate(Sound):
    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), text="\ud83e")


class OwesTokens(Sound):
    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), usage=Usage(tokens_in=-1))


class Raises(Sound):
    def answer(self, request: Request) -> Completion:
        if not request.messages:
            raise EngineError("nothing was asked", kind="void")
        return super().answer(request)


class FailsTogether(Sound):
    """One bad request takes the rest of its stream down."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        bad = False
        for request in requests:
            bad = bad or request.key.startswith("bad")
            yield Mute().answer(request) if bad else self.answer(request)


class Ascii(Sound):
    def answer(self, request: Request) -> Completion:
        return super().answer(request) if all(m.text.isascii() for m in request.messages) else Mute().answer(request)


class Swallows(Sound):
    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        try:
            yield from super().stream(requests)
        except Exception:
            return


class SharedCursor(Sound):
    """Keeps its requests on itself, so that a second stream takes over the first."""

    source: Iterator[Request]

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        self.source = iter(requests)
        while (request := next(self.source, None)) is not None:
            yield self.answer(request)


class CountsCalls(Sound):
    numbers = count()

    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), text=f"answer {next(self.numbers)}")


class CountsInStream(Sound):
    """Answers hang on the place in the stream."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for i, completion in enumerate(super().stream(requests)):
            yield replace(completion, text=f"answer {i}")


class DriftingReadout(Sound):
    numbers = count()

    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), label_logprobs={"1": -1.0 - 0.1 * next(self.numbers)}, marker="own")


class DeafToSeeds(Sound):
    def answer(self, request: Request) -> Completion:
        hot = request.sampling.temperature > 0
        return replace(super().answer(request), text=f"hot {request.key}" if hot else "cold")


class WarmCounts(Sound):
    numbers = count()

    def answer(self, request: Request) -> Completion:
        hot = request.sampling.temperature > 0
        return replace(super().answer(request), text=f"hot {next(self.numbers)}" if hot else "cold")


class Reads(Sound):
    """Gives `read` for whatever was asked."""

    def read(self, readout: Readout) -> dict[str, float]:
        return {label: -3.0 for label in readout.labels}

    def answer(self, request: Request) -> Completion:
        if request.readout is None:
            return super().answer(request)
        text = "text" if request.readout.generate else ""
        return Completion(request.key, text, label_logprobs=self.read(request.readout), marker="own")


class ReadsUnasked(Sound):
    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), label_logprobs={"1": -1.0}, marker="own")


class OtherLabels(Reads):
    def read(self, readout: Readout) -> dict[str, float]:
        return {label.strip(): -3.0 for label in readout.labels}


class Surer(Reads):
    def read(self, readout: Readout) -> dict[str, float]:
        return {label: 0.5 for label in readout.labels}


class Nan(Reads):
    def read(self, readout: Readout) -> dict[str, float]:
        return {label: math.nan for label in readout.labels}


class CountsPrefixes(Reads):
    """Gives "1" the probability of all that starts with it."""

    def read(self, readout: Readout) -> dict[str, float]:
        return {label: math.log(0.4) if label in ("1", "10", "100") else -3.0 for label in readout.labels}


class NoMarker(Reads):
    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), marker=None)


class ReadsTruncated(Reads):
    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), finish="length")


class TalksWhenOnlyRead(Reads):
    def answer(self, request: Request) -> Completion:
        return replace(super().answer(request), text="talk")


BROKEN: list[tuple[str, Callable[[], Engine], str]] = [
    ("names", Nameless, "not text"),
    ("names", NotJson, "is not JSON"),
    ("names", TupleIdentity, "does not survive JSON"),
    ("names", Shifting, "changed from"),
    ("names", VersionsOfNumbers, "maps names to text"),
    ("empty", SpeaksUnasked, "for no request at all"),
    ("lazy", Greedy, "were pulled for the first"),
    ("lazy", Hasty, "before anyone asked"),
    ("lazy", OneShot, "after a stream was closed early"),
    ("once", ByContent, "6 of 12 keys not answered"),
    ("once", Stutters, "answered more than once"),
    ("once", WrongKeys, "never asked, such as 'CHECK"),
    ("once", BareText, "holds str where completions"),
    ("answers", Mute, "none of 6 requests was answered; the first says: no"),
    ("answers", ErrorWithoutOne, "finish is 'error' without"),
    ("answers", HalfSurrogate, "half of a surrogate"),
    ("answers", OwesTokens, "usage is negative"),
    ("errors", WrongError, "not an EngineError"),
    ("errors", Raises, "raised EngineError where a completion"),
    ("errors", FailsTogether, "good requests failed beside bad"),
    ("unicode", Ascii, "failed: no"),
    ("source", Swallows, "was swallowed"),
    ("reentrant", SharedCursor, "outer stream: 5 of 6 keys not answered"),
    ("repeatable", CountsCalls, "asked again: 'answer"),
    ("repeatable", CountsInStream, "asked in reverse: 'answer 5' became 'answer 0'"),
    ("repeatable", DriftingReadout, "became"),
    ("seeds", DeafToSeeds, "the same for seeds 0 to 3"),
    ("seeds", WarmCounts, "although seed and key do not"),
    ("readout", ReadsUnasked, "where no read-out was asked for"),
    ("readout", OtherLabels, "instead"),
    ("readout", Surer, "not logarithms"),
    ("readout", Nan, "not logarithms"),
    ("readout", CountsPrefixes, "sum to 1.2000"),
    ("readout", NoMarker, "the marker is None"),
    ("readout", ReadsTruncated, "ran into the token limit"),
    ("readout", TalksWhenOnlyRead, "text was generated: 'talk'"),
]


@pytest.mark.parametrize("name", MOCKS)
def test_every_mock_conforms(name: str) -> None:
    check_engine(open_mock(name))


def test_the_sound_engine_conforms() -> None:
    check_engine(Sound())


@pytest.mark.parametrize(("rule", "engine", "told"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_engine_is_told_how(rule: str, engine: Callable[[], Engine], told: str) -> None:
    with pytest.raises(AssertionError, match=rf"- {rule}: .*({told})"):
        check_engine(engine())


def test_every_rule_can_fail() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(RULES)


def test_all_broken_rules_are_told_at_once() -> None:
    class Both(Nameless, Swallows):
        pass

    with pytest.raises(AssertionError, match=r"(?s)- names: .*- source: "):
        check_engine(Both())


def test_an_engine_that_raises_breaks_rules_and_does_not_stop_the_check() -> None:
    class Dead(Sound):
        def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
            raise RuntimeError("out of order")

    with pytest.raises(AssertionError, match=r"(?s)- empty: raised RuntimeError: out of order.*- readout: raised"):
        check_engine(Dead())


def test_rules_can_be_waived_by_name() -> None:
    check_engine(CountsCalls(), waive=["repeatable", "seeds", "readout"])
    with pytest.raises(UserError, match="did you mean 'repeatable'"):
        check_engine(Sound(), waive=["repetable"])


def test_requests_of_ones_own() -> None:
    check_engine(Sound(), requests=iter(sample_requests(3)))
    with pytest.raises(UserError, match="at least two"):
        check_engine(Sound(), requests=sample_requests(1))
