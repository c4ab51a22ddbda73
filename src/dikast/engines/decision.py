"""Typed decision endpoints: a question with its possible answers goes in, their probabilities come back, and no text.

Two protocols are supported, selected by the end of the address: `/decisions` (questions of the types `predicate`,
`choice` and `score`) and `/systemone` (`noul`, `choice` and `score`). Label scoring over a scale becomes a `score`
question, over a scale of two labels a `predicate` or `noul`, and any other a `choice`. The rendered prompt is the
material that the question is about. Everything else, from retries to budgets, is as in the HTTP engine.
"""

import importlib.metadata
import logging
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import orjson

from dikast.core.distribution import flaw_of_shares
from dikast.core.errors import EngineError, UserError
from dikast.core.message import Message
from dikast.core.secrets import Scrubber
from dikast.core.text import counted
from dikast.core.verdict import Usage
from dikast.engines.base import Closing, Completion, Engine, Request
from dikast.engines.http.answer import Answers, usage_of
from dikast.engines.http.body import Form, turns_of
from dikast.engines.http.decode import decoded, said
from dikast.engines.http.engine import Contract, HttpEngine, within_budget
from dikast.engines.http.failure import Failure
from dikast.engines.http.images import Encoded
from dikast.engines.http.prices import Price
from dikast.engines.http.sanitise import VERSION, sent_parts
from dikast.engines.http.server_settings import Address, ServerSettings, address_of, extra_fields, key_from
from dikast.engines.options import read_options, spec_with

_log = logging.getLogger(__name__)
_NAME = "verdict"
_FLOOR = 1e-12
_SUM_WITHIN = 0.02  # probabilities of all answers sum to 1, but for rounding
_UNUSED = ("continues", "top_logprobs")  # settings of chat completions
_NO_FEEDBACK = (
    "a decision endpoint writes no text, so verdicts have no feedback (the formats score-only and choice-only ask for"
    " none)"
)


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """A question about a prompt: its possible answers, which are levels from the lowest if `kind` is not `choice`."""

    kind: Literal["binary", "choice", "score"]
    labels: tuple[str, ...]

    @property
    def words(self) -> str:
        """The question as a sentence; of a binary one, a statement that is true for the higher label."""
        if self.kind == "score":
            return "Which level of the scale is the right verdict on the material above, by its criterion?"
        if self.kind == "choice":
            return "Which of these is the right verdict on the material above, by its criterion?"
        low, high = self.labels
        return f"The right verdict on the material above, by its criterion, is {high!r}, not {low!r}."


def asked_of(request: Request) -> DecisionQuestion:
    """The question that a request's label scoring or choices make; EngineError if there is nothing to choose from."""
    labels = request.choices or (request.readout.labels if request.readout is not None else ())
    spelt = tuple(label.strip() for label in labels)
    if len(spelt) < 2 or len(set(spelt)) < len(spelt) or not all(spelt):
        raise EngineError(
            "a decision endpoint only chooses between answers, and this request names none to read: use a format with"
            " a verdict marker, such as score-only or choice-only",
            kind="bad_request",
        )
    ordered = not request.choices and request.readout is not None and request.readout.ordered
    return DecisionQuestion(("binary" if len(spelt) == 2 else "score") if ordered else "choice", spelt)


class Spelling(Protocol):
    """How one of the contracts spells requests and answers."""

    name: str

    def fields(self, messages: Sequence[Message], asked: DecisionQuestion, images: Encoded) -> dict[str, Any]:
        """The body without the model's name."""
        ...

    def probabilities(self, value: Mapping[str, Any], asked: DecisionQuestion) -> dict[str, float] | None:
        """By label, unchecked; None for a refusal. KeyError, TypeError or ValueError if the answer is not one."""
        ...


class Decisions:
    """`POST .../decisions`: a list of messages, a list of questions, a list of answers in the same order."""

    name = "decisions"

    def fields(self, messages: Sequence[Message], asked: DecisionQuestion, images: Encoded) -> dict[str, Any]:
        """Messages as parts; images as data URLs."""
        question: dict[str, Any] = {"name": _NAME, "instructions": asked.words}
        if asked.kind == "score":
            question |= {"type": "score", "levels": [{"label": label} for label in asked.labels]}
        elif asked.kind == "choice":
            question |= {"type": "choice", "choices": [{"value": label} for label in asked.labels]}
        else:
            question |= {"type": "predicate"}
        return {"input": [_message(message, images) for message in messages], "questions": [question]}

    def probabilities(self, value: Mapping[str, Any], asked: DecisionQuestion) -> dict[str, float] | None:
        """Of the only answer."""
        if (n := len(value["answers"])) != 1:
            raise ValueError(f"{counted(n, 'answer')} to one question")
        (answer,) = value["answers"]
        if answer.get("name") not in (None, _NAME):
            raise ValueError(f"an answer to {answer['name']!r} where {_NAME!r} was asked")
        if answer["type"] == "refusal":
            return None
        if asked.kind == "binary":
            return _binary(asked, answer, "predicate", "probability")
        _expect(answer, asked.kind)
        key = "label" if asked.kind == "score" else "value"
        return {each[key]: each["probability"] for each in answer["probabilities"]}


class SystemOne:
    """`POST .../systemone`: a state, questions by name, answers by name, images as assets in the place of a word."""

    name = "systemone"

    def fields(self, messages: Sequence[Message], asked: DecisionQuestion, images: Encoded) -> dict[str, Any]:
        """A single user's turn as text, several turns as a list of roles and texts."""
        criteria: Any = list(asked.labels)
        if asked.kind == "choice":
            criteria = dict.fromkeys(asked.labels)
        elif asked.kind == "binary":
            criteria = {"false": asked.labels[0], "true": asked.labels[1]}
        kind = "noul" if asked.kind == "binary" else asked.kind
        question = {"type": kind, "instructions": asked.words, "criteria": criteria}
        told = "\0".join([*(message.text for message in messages), asked.words, *asked.labels])
        assets: dict[str, Any] = {}
        turns = [{"role": each.role, "content": _with_assets(each, told, assets, images)} for each in messages]
        alone = len(turns) == 1 and turns[0]["role"] == "user"
        state: Any = turns[0]["content"] if alone else turns
        return {"state": state, "questions": {_NAME: question}, **({"assets": assets} if assets else {})}

    def probabilities(self, value: Mapping[str, Any], asked: DecisionQuestion) -> dict[str, float] | None:
        """Levels are matched by the legend if there is one, else by their number from 0."""
        answer = value["answers"][_NAME]
        if answer["type"] == "refusal":
            return None
        if asked.kind == "binary":
            return _binary(asked, answer, "noul", "noul")
        _expect(answer, asked.kind)
        found: Mapping[str, float] = answer["probabilities"]
        if asked.kind == "choice":
            return dict(found)
        legend = answer.get("legend") or {str(i): label for i, label in enumerate(asked.labels)}
        return {legend[level]: share for level, share in found.items()}


@dataclass(slots=True)
class _Bodies:
    """Makes the bodies of one contract for one model."""

    model: str
    spelling: Spelling
    extra: Mapping[str, Any]
    images: Encoded = field(default_factory=Encoded)
    refused: frozenset[str] = frozenset()
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def make(self, request: Request, form: Form) -> list[bytes]:
        fields = {"model": self.model, **self.spelling.fields(turns_of(request), asked_of(request), self.images)}
        for name, value in self.extra.items():
            fields[name] = value
        return [orjson.dumps({name: value for name, value in fields.items() if value is not None})]

    def fields(self, request: Request, form: Form) -> Mapping[str, Any]:
        """No part of a decision may be left out."""
        return {}


@dataclass(slots=True)
class _Answers:
    """Reads the replies of one contract. Their probabilities become label scores without a marker in the text."""

    model: str
    served_as: str
    spelling: Spelling
    price: Price | None
    name: str
    spec: str = ""
    noticed: Counter[str] = field(default_factory=Counter)
    continues: bool | None = False
    scrub: Scrubber = field(default_factory=lambda: Scrubber(()))

    def notice(self, what: str) -> None:
        self.noticed[what] += 1
        if self.noticed[what] == 1:
            _log.warning("%s: %s", self.name, _NO_FEEDBACK if what == "feedback" else f"the reply lacks {what!r}")

    def read(self, request: Request, form: Form, raw: bytes, seconds: float) -> Completion:
        asked = asked_of(request)
        try:
            value = decoded(raw)
            if error := value.get("error"):
                raise ValueError(f"an error beside it: {said(error)}")
            found = self.spelling.probabilities(value, asked)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = self.scrub.quote(f"{type(error).__name__}: {error}")
            told = f"{self.name} answers 200 with no answer to the question ({why})"
            raise Failure("bad_response", told, retryable=True) from None
        checks = Answers(self.model, self.served_as, None, self.name, self.noticed, scrub=self.scrub, spec=self.spec)
        checks.check_model(value.get("model"))
        usage = self._usage(value.get("usage"), seconds)
        if found is None:
            return Completion(request.key, refusal="the endpoint declined to answer this question", usage=usage)
        shares = self._checked(found, asked)
        if request.choices:
            best = max(range(len(shares)), key=shares.__getitem__)
            return Completion(request.key, request.choices[best], usage=usage)
        assert request.readout is not None
        if request.readout.generate:
            self.notice("feedback")
        logs = [math.log(max(share, _FLOOR)) for share in shares]
        read = dict(zip(request.readout.labels, logs, strict=True))
        return Completion(request.key, label_logprobs=read, marker="forced", usage=usage)

    def _checked(self, found: Mapping[str, Any], asked: DecisionQuestion) -> list[float]:
        """The probability of each label in order; Failure unless there is one for each and they sum to 1."""
        flaw = flaw_of_shares(found.values(), _SUM_WITHIN)
        if not flaw and set(found) != set(asked.labels):
            flaw = "probabilities of other answers"
        total = 0.0 if flaw else math.fsum(found.values())
        if not flaw and total < 1 - _SUM_WITHIN:
            flaw = f"probabilities that sum to {total:.6g}"
        if flaw:
            told = f"{self.name} answers with {self.scrub.quote(said(dict(found)))}: these are no probabilities of"
            told += f" {asked.labels} ({self.scrub.quote(flaw)})"
            raise Failure("bad_response", told, retryable=True)
        return [float(found[label]) / total for label in asked.labels]

    def _usage(self, value: object, seconds: float) -> Usage:
        if not isinstance(value, dict):
            self.notice("usage")
            return Usage(seconds=seconds)
        details = value.get("input_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else 0
        return usage_of(self, value.get("input_tokens"), cached, value.get("output_tokens"), self.price, seconds)


class DecisionEngine(Closing):
    """A typed decision endpoint as an engine: it scores labels and writes no text.

    A request without label scoring or choices is an error of kind `bad_request`. The probabilities are those among the
    answers offered, so that the mass on the labels is 1 whatever the model thinks of the question. Prefills, sampling
    and schemas mean nothing here. Other kinds of errors are those of `HttpEngine`.
    """

    def __init__(
        self, address: Address, settings: ServerSettings, *, key: str = "", name: str = "", spec: str = ""
    ) -> None:
        spelling = _spelling(address)
        self.name = name or f"decision:{address}"
        self.address, self.settings, self.contract = address, settings, spelling.name
        self._extra = extra_fields(settings.extra)
        url = f"{address.url}?{address.query}" if address.query else address.url
        answers = _Answers(address.model, settings.served_as, spelling, None, self.name, spec)
        contract = Contract(url, _Bodies(address.model, spelling, self._extra), answers)
        self.engine = HttpEngine(address, settings, key=key, name=self.name, contract=contract)
        answers.price = self.engine.price

    @property
    def noticed(self) -> Mapping[str, int]:
        """How often something was requested that a decision endpoint does not provide, by name."""
        return self.engine.noticed

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers in order of arrival."""
        return self.engine.stream(requests)

    def identity(self) -> Mapping[str, Any]:
        """Contract, address (or the name given to it), model, and what is added to requests. Never a key."""
        return {
            "engine": "decision",
            "contract": self.contract,
            "server": self.settings.server or self.address.url,
            "model": self.address.model,
            "extra": self._extra,
            "inert": VERSION,
        }

    def versions(self) -> Mapping[str, str]:
        """The version of aiohttp."""
        return {"aiohttp": importlib.metadata.version("aiohttp")}

    def close(self) -> None:
        """Close all connections."""
        self.engine.close()


def open_decision(target: str, **options: Any) -> Engine:
    """`decision:URL#MODEL`, where the URL ends in /decisions or /systemone.

    `decision:MODEL` is the first contract of the server that OPENAI_BASE_URL names, or of OpenAI's own, with the key in
    OPENAI_API_KEY.
    """
    name = f"decision:{target}"
    spec = spec_with(name, options)
    if not target.startswith(("http://", "https://")):
        base = os.environ.get("OPENAI_BASE_URL", "").strip().rstrip("/") or "https://api.openai.com/v1"
        target, options = f"{base}/decisions#{target}", {"key_env": "OPENAI_API_KEY", **options}
    address = address_of(target)  # first, as it refuses addresses that must not be repeated in messages
    known = {each: kind for each, kind in ServerSettings.known().items() if each not in _UNUSED}
    settings = ServerSettings(**read_options(options, known, where=name))
    engine = DecisionEngine(address, settings, key=key_from(settings.key_env), name=name, spec=spec)
    return within_budget(engine, settings, engine.engine.price)


def _spelling(address: Address) -> Spelling:
    spellings: tuple[Spelling, ...] = (Decisions(), SystemOne())
    for spelling in spellings:
        if address.url.endswith(f"/{spelling.name}"):
            return spelling
    raise UserError(
        f"engine decision:{address}: the address ends in /decisions or in /systemone, which says what is spoken there:"
        " write decision:http://HOST/v1/systemone#MODEL"
    )


def _message(message: Message, images: Encoded) -> dict[str, Any]:
    kind = "output_text" if message.role == "assistant" else "input_text"
    content = [
        {"type": kind, "text": part}
        if isinstance(part, str)
        else {"type": "input_image", "image_url": images.url(part).decode()}
        for part in sent_parts(message)
    ]
    return {"type": "message", "role": message.role, "content": content}


def _with_assets(message: Message, told: str, assets: dict[str, Any], images: Encoded) -> str:
    """The text with a unique word (not in `told`) where each image belongs; fills `assets`."""
    found = []
    for part in sent_parts(message):
        if isinstance(part, str):
            found.append(part)
            continue
        head, _, data = images.url(part).decode().partition(";base64,")
        lead = "image"
        while f"[{lead}-" in told:
            lead += "-"
        word = f"[{lead}-{len(assets) + 1}]"
        assets[word] = {"type": "image", "format": head.rpartition("/")[2], "data_base64": data}
        found.append(word)
    return "".join(found)


def _binary(asked: DecisionQuestion, answer: Mapping[str, Any], kind: str, key: str) -> dict[str, float]:
    _expect(answer, kind)
    share = answer[key]
    if flaw := flaw_of_shares((share,), rounding=0.0):
        raise ValueError(flaw)
    return {asked.labels[0]: 1 - share, asked.labels[1]: share}


def _expect(answer: Mapping[str, Any], kind: str) -> None:
    if answer["type"] != kind:
        raise ValueError(f"a {answer['type']!r} where {kind!r} was asked for")
