"""The one protocol of all engines: requests in, completions out, lazily, each with its key."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from dikast.core.errors import EngineError, UserError
from dikast.core.message import Message
from dikast.core.verdict import Marker, Usage


@dataclass(frozen=True, slots=True)
class Sampling:
    """How text is drawn. `temperature` 0 is greedy. Draws depend on `seed` and the request's key, on nothing else.

    UserError for a temperature below 0, a `top_p` outside 0..1, or fewer than one token.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf or not 0 <= self.top_p <= 1 or self.max_tokens < 1:
            told = f"temperature={self.temperature}, top_p={self.top_p}, max_tokens={self.max_tokens}"
            raise UserError(
                f"sampling needs a temperature of 0 or more, a top_p from 0 to 1, and one token or more, got {told}"
            )


@dataclass(frozen=True, slots=True)
class Readout:
    """A request for label scoring: the log-probabilities of `labels` right after `marker`.

    With `generate`, text is generated first: if the model writes `marker` itself, the labels are scored there (`own`);
    if it stops without, the marker is added after its text (`forced`), with `lead` between if there is no space; if it
    runs into the token limit, nothing is scored. Without `generate` the marker follows the prompt and no text is
    generated (score-only mode); a prefill that ends with the marker is not given another. `labels` are the exact
    strings that would follow the marker; each label's probability is the product over its tokens, less what goes on
    into a longer label ("1" in "10"). `ordered` labels are the levels of a scale, the lowest value first.
    """

    labels: tuple[str, ...]
    marker: str
    generate: bool = True
    lead: str = "\n"
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model. `prefill` is text the model's reply is made to start with.

    `schema` asks for JSON of that JSON schema; `choices` for exactly one of these strings. An engine that cannot honour
    `readout`, `schema` or `choices` answers without them; the completion shows this. `about` describes the request
    (item id, responses in their order, criterion, sample): mocks and replays use it, models never see it.
    """

    key: str
    messages: tuple[Message, ...]
    sampling: Sampling = field(default_factory=Sampling)
    prefill: str = ""
    readout: Readout | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    choices: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to a request. `text` is what the model generated (without `prefill`), unchanged.

    `label_logprobs` are natural logarithms of absolute probabilities (not renormalised) for the labels asked for, None
    when the engine did not read them. `unread` says why, if what came back is not a distribution. `finish` is `stop`,
    `length` (cut off at the token limit), `error`, or, for a reason that is not known here, the server's own word; the
    text may then be cut off. `marker` says who wrote the marker. With `error` the other fields have no meaning, except
    that `text` is what could be read of the reply. `refusal` is the server's own refusal field. `server` is the address
    that answered, where there are several.
    """

    key: str
    text: str = ""
    finish: str = "stop"
    label_logprobs: Mapping[str, float] | None = field(default=None, hash=False)
    marker: Marker | None = None
    refusal: str = ""
    usage: Usage = field(default_factory=Usage)
    error: EngineError | None = None
    unread: str = ""
    server: str = ""


class Closing:
    """Adds `with` to an engine: leaving the block calls `close`."""

    def close(self) -> None:
        """Free connections, processes and memory. Closing twice does nothing; an engine without any does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Engine(Protocol):
    """A model, anywhere.

    An engine may also have `close`, which frees what it holds and is called at the end of `with` (`Closing` has both);
    `formats`, the formats its model was taught by their kind (`absolute`, `pairwise`), which a
    judge then asks in unless others are given; `thinking`, the tokens that every request allows for reasoning in
    addition to its `max_tokens`, which budgets and dry runs count; and `notes`, warnings for readers of the verdicts,
    each with the number of questions it applies to so far, which stands in the place of a "{n}" in its text; they are
    copied to the summary of a run.
    """

    name: str

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers in order of arrival, each with its request's key; a failed request is a Completion with an error.

        Lazy at both ends with a bounded window: a million requests run in flat memory. May be called again while an
        earlier stream is suspended.
        """
        ...

    def identity(self) -> Mapping[str, Any]:
        """What could change an answer besides the request: model id and revision or weights hash, tokenizer, options.

        JSON values; part of every verdict's key and of the judge lock.
        """
        ...

    def versions(self) -> Mapping[str, str]:
        """Library versions worth recording with a run; not part of any key."""
        ...


class ClosingEngine(Engine, Protocol):
    """An engine with `close` and `with`, as all of Dikast's own are (see `Closing`)."""

    def close(self) -> None:
        """Free connections, processes and memory."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def close_engine(engine: Engine) -> None:
    """Call the engine's `close` where it has one; engines of others may not."""
    close = getattr(engine, "close", None)
    if close is not None:
        close()
