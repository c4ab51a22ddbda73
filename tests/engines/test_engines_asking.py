"""The loop that asks: again where an answer asks for it, and a result for every question, whatever the engine does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dikast.engines.asking import Settled, ask_all
from dikast.engines.base import Completion, Request


@dataclass
class Said:
    """A question, and how often it wants to be asked."""

    name: str
    times: int = 1
    request: Request = field(init=False)

    def __post_init__(self) -> None:
        self.request = Request(f"{self.name}1", ())


@dataclass
class Engine:
    """Answers in order, the keys in `silent` never; adds an answer nobody asked for."""

    silent: tuple[str, ...] = ()
    log: list[str] = field(default_factory=list)
    name: str = "test"

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        yield Completion("stranger")
        for request in requests:
            self.log.append(request.key)
            if request.key not in self.silent:
                yield Completion(request.key)

    def identity(self) -> dict[str, str]:
        return {}

    def versions(self) -> dict[str, str]:
        return {}


def settle(said: Said, completion: Completion) -> str | None:
    assert completion.key == said.request.key
    tries = int(said.request.key[-1])
    if tries < said.times:
        said.request = Request(f"{said.name}{tries + 1}", ())
        return None
    return completion.key


def results(engine: Engine, *questions: Said | Settled[str]) -> list[str]:
    return list(ask_all(engine, iter(questions), settle, lambda said: f"silence on {said.request.key}"))


def test_asked_again_ahead_of_new_questions() -> None:
    engine = Engine()
    assert results(engine, Said("a", 3), Said("b"), Said("c", 2)) == ["a3", "b1", "c2"]
    assert engine.log == ["a1", "a2", "a3", "b1", "c1", "c2"]


def test_silence_is_a_result_also_on_a_second_try() -> None:
    engine = Engine(silent=("a1", "b2"))
    assert sorted(results(engine, Said("a"), Said("b", 2), Said("c"))) == ["c1", "silence on a1", "silence on b2"]


def test_questions_that_are_never_sent() -> None:
    engine = Engine()
    assert sorted(results(engine, Settled("no a"), Said("b"), Settled("no c"))) == ["b1", "no a", "no c"]
    assert engine.log == ["b1"]
    many = [Settled(str(k)) for k in range(2500)]  # more than wait at once
    assert results(Engine(), *many) == [str(k) for k in range(2500)]
    assert results(Engine()) == []


def test_two_questions_under_one_key_have_a_result_each() -> None:
    assert results(Engine(), Said("a"), Said("a")) == ["a1", "a1"]


def test_questions_are_pulled_as_the_engine_asks() -> None:
    pulled: list[str] = []

    def questions() -> Iterator[Said]:
        for name in "abc":
            pulled.append(name)
            yield Said(name)

    found = ask_all(Engine(), questions(), settle, lambda said: "silence")
    assert pulled == []
    assert next(found) == "a1"
    assert pulled == ["a"]
