"""Reads a server's reply and checks, from the reply alone, that the server did what was requested."""

import logging
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dikast.core.distribution import NoDistribution
from dikast.core.secrets import Scrubber
from dikast.core.verdict import Marker, Usage
from dikast.engines.base import Completion, Readout, Request
from dikast.engines.http.body import Form, reads_labels, written
from dikast.engines.http.decode import count_of, decoded, said
from dikast.engines.http.failure import Failure, flagged
from dikast.engines.http.label_logprobs import (
    Place,
    Spellings,
    TooFewListed,
    mass_of,
    places_of,
    read_after_marker,
    read_at_start,
)
from dikast.engines.http.prices import Price

_log = logging.getLogger(__name__)
_SURE = 0.5  # label probability at which a reply is taken to go on after the marker
_GIVE_UP = 3  # requests that were not continued, before this is no longer tried with a server that never did it

_PINNED = re.compile(r"|-latest|-v?\d[\d.-]*|[@:].+")  # what may follow a model's name: a date, a revision, a tag
_NAME = re.compile(r"[\w.:/@+-]+")  # of a model, as it may stand in a spec
_NUMBER = re.compile(r"v?\d[\d.]*|preview|exp|experimental")  # parts of a name that tell versions of a model apart

_WHOLE = ("", "stop", "stop_sequence", "eos", "eos_token", "end_turn", "tool_calls", "function_call")
"""Reasons to end a reply after which nothing is missing, as servers of this API spell them."""

_TOLD = {
    "finish_reason": "the server ends replies for a reason that is not known here: they are read as if they were cut",
    "logprobs": "the server does not return the requested log-probabilities: verdicts are parsed from its text",
    "no_distribution": "the server's log-probabilities are invalid: verdicts are parsed from its text",
    "few_listed": "the server lists too few tokens to tell the probabilities of labels: verdicts are parsed",
    "unreadable": "the server's log-probabilities do not match its text: verdicts are parsed from the text",
    "response_format": "the server ignores the requested JSON schema: replies may not parse",
    "choices": "the server ignores the requested choices: replies may be anything",
    "continuation": "the server does not continue a prefilled reply: it starts a new one",
    "prefill": "the server takes no prefilled reply: a turn of the user after it asks the model to go on",
    "usage": "the server does not count tokens: usage, cost and budgets of tokens and money cannot be worked out",
    "model_unnamed": "the server does not say which model answered",
}


def _is_of_family(name: str, family: str) -> bool:
    """Whether a name is that of a family (`gemini-flash`) with numbers added (`gemini-2.5-flash-preview-09-2025`)."""
    parts = iter([*family.split("-"), ""])
    wanted = next(parts)
    for part in name.split("-"):
        if part == wanted:
            wanted = next(parts)
        elif not _NUMBER.fullmatch(part):
            return False
    return not wanted


@dataclass(slots=True)
class Answers:
    """Reads the replies of one server. `noticed` counts what was requested and not done.

    `as_chat` turns a reply of another format into a chat completion; `shape` says what a reply needs. `known` is what
    the server is known to lack, which is not reported. `own_names`: models go by names of the user's own. `spec` opens
    the engine again, but for `served_as`; where it is not known, `name` stands for it.
    """

    model: str
    served_as: str
    price: Price | None
    name: str
    noticed: Counter[str] = field(default_factory=Counter)
    continues: bool | None = None  # None until a reply shows it
    scrub: Scrubber = field(default_factory=lambda: Scrubber(()))
    seen: Spellings = field(default_factory=Spellings)
    as_chat: Callable[[Any], Any] = lambda value: value
    shape: str = "choices[0].message"
    known: frozenset[str] = frozenset()
    own_names: bool = False
    reports_cost: bool = False
    spec: str = ""

    def notice(self, what: str) -> None:
        """Count something missing, and report it the first time."""
        if what in self.known:
            return
        self.noticed[what] += 1
        if self.noticed[what] == 1:
            _log.warning("%s: %s", self.name, _TOLD.get(what) or f"the server refuses {what!r}: asked without it")

    def read(self, request: Request, form: Form, raw: bytes, seconds: float) -> Completion | None:
        """The completion in a 200 reply; None to ask once more in the plain form. Failure if it holds no answer."""
        try:
            value = self.as_chat(decoded(raw))
        except ValueError:
            raise Failure("bad_response", f"{self.name} answers 200 with {_shape(raw)}", retryable=True) from None
        choice, message = self._first(value)
        text = _text(message.get("content"))
        usage = self._usage(value.get("usage"), seconds)
        refusal = message.get("refusal")
        finish = choice.get("finish_reason")
        try:
            self.check_model(value.get("model"))
            if error := value.get("error") or choice.get("error"):
                if (flag := flagged(error, self.name, self.scrub)) is not None:
                    raise flag
                told = f"{self.name} answers 200 with an error beside the reply: {self.scrub.quote(said(error))}"
                raise Failure("bad_response", told, retryable=True)
            if finish in ("abort", "error"):
                raise Failure("bad_response", f"{self.name} broke the reply off ({finish})", retryable=True)
        except Failure as failure:
            failure.text, failure.usage = "" if failure.kind == "wrong_model" else text, usage
            raise
        if finish == "content_filter" and not refusal:
            refusal = "the server's content filter stopped the reply"
        if refusal:
            return Completion(request.key, text, refusal=said(refusal), usage=usage)
        begun = written(request, form)
        if begun and form == "continue" and text.startswith(begun):
            text = text[len(begun) :]
            self.continues = True
        self._check_asked(request, text, finish)
        ended = self._ended(finish)
        if request.readout is None or not reads_labels(request):
            return Completion(request.key, text, ended, usage=usage)
        return self._with_readout(request, request.readout, form, text, ended, choice.get("logprobs"), usage)

    def _with_readout(
        self,
        request: Request,
        readout: Readout,
        form: Form,
        text: str,
        finish: str,
        logprobs: Any,
        usage: Usage,
    ) -> Completion | None:
        places = places_of(logprobs)
        if not places:
            self.notice("logprobs")
        if form == "plain" or readout.generate:
            if finish != "stop" or not places:
                return Completion(request.key, text, finish, usage=usage)
            try:
                read = read_after_marker(text, places, readout.marker, readout.labels, self.seen)
            except NoDistribution as flaw:
                self.notice("few_listed" if isinstance(flaw, TooFewListed) else "no_distribution")
                return Completion(request.key, text, finish, usage=usage, unread=str(flaw))
            unread = ""
            if read is None and readout.marker.rstrip() in text:
                self.notice("unreadable")
                unread = "the server's log-probabilities do not match its text"
            marker: Marker | None = None if read is None else "own"
            return Completion(request.key, text, finish, read, marker, usage=usage, unread=unread)
        return self._continued(request, readout, text, places, usage)

    def _continued(
        self, request: Request, readout: Readout, text: str, places: list[Place], usage: Usage
    ) -> Completion | None:
        """A reply that should continue after the marker with a label."""
        read, unread = None, ""
        try:
            read = read_at_start(places, readout.labels, self.seen) if places else None
        except TooFewListed as flaw:  # it goes on with something else than a label
            unread = str(flaw)
        except NoDistribution as flaw:
            unread = str(flaw)
            self.notice("no_distribution")
        if read is not None and (self.continues or mass_of(read) >= _SURE):
            return Completion(request.key, "", "stop", read, "forced", usage=usage)
        if not self.continues and not _states(text, readout.labels):
            self.notice("continuation")
            if self.continues is None and self.noticed["continuation"] >= _GIVE_UP:
                self.continues = False
            if not request.prefill:  # a first question: asked again in a way that this server can answer
                return None
        return Completion(request.key, text, "stop", usage=usage, unread=unread)  # cut off, if at all, by our limit

    def check_model(self, answered: object) -> None:
        """Failure `wrong_model` unless the reply comes from the requested model (a dated or pinned name is
        accepted).
        """
        if not isinstance(answered, str) or not answered:
            self.notice("model_unnamed")
            return
        if self.is_model(answered):
            return
        said = self.scrub.quote(answered, 100)
        cure = f"--judge {shlex.quote(f'{self.spec or self.name},served_as={said}')}"
        if not _NAME.fullmatch(said):  # what follows a comma in a spec is another option, such as the address
            cure = "served_as=NAME"
        raise Failure(
            "wrong_model",
            f"{self.name} was answered by {said!r}; if that is the model you mean, say so behind the judge: {cure}",
            retryable=True,
        )

    def is_model(self, name: str) -> bool:
        """Whether a name that a server reports is that of the requested model."""
        if name in (self.model, self.served_as) or (self.own_names and not self.served_as):
            return True
        said, asked = name.casefold(), (self.served_as or self.model).casefold()
        said, asked = said.rpartition("/")[2], asked.rpartition("/")[2]
        stem = asked.removesuffix("-latest")
        if said.startswith(stem) and _PINNED.fullmatch(said[len(stem) :]):
            return True
        if asked.endswith("-0"):  # claude-sonnet-4-0 is claude-sonnet-4-20250514
            return re.fullmatch(re.escape(asked[:-1]) + r"\d{8}", said) is not None
        return stem != asked and _is_of_family(said, stem)

    def _ended(self, finish: object) -> str:
        """`stop`, `length`, or the server's own word if it is not known; the reply may then be cut off, and is kept."""
        if finish is None or finish in _WHOLE:
            return "stop"
        if finish == "length":
            return "length"
        self.notice("finish_reason")
        return self.scrub.quote(said(finish), 60) or "unknown"

    def _check_asked(self, request: Request, text: str, finish: object) -> None:
        if request.schema is not None and finish in (None, *_WHOLE) and not _fits(text, request.schema):
            self.notice("response_format")
        if request.choices and text.strip() not in {choice.strip() for choice in request.choices}:
            self.notice("choices")

    def _usage(self, value: object, seconds: float) -> Usage:
        if not isinstance(value, dict):
            self.notice("usage")
            return Usage(seconds=seconds)
        details = value.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else 0
        usage = usage_of(self, value.get("prompt_tokens"), cached, value.get("completion_tokens"), self.price, seconds)
        charged = value.get("cost") if self.reports_cost and self.price is None else None
        if isinstance(charged, int | float) and not isinstance(charged, bool) and 0 <= charged < math.inf:
            return replace(usage, cost=float(charged))
        return usage

    def _first(self, value: object) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The first choice and its message."""
        if isinstance(value, dict):
            choices = value.get("choices")
            if isinstance(choices, list) and choices and isinstance(choices[0], dict):
                message = choices[0].get("message")
                if isinstance(message, dict):
                    return choices[0], message
            if error := value.get("error"):
                if (flag := flagged(error, self.name, self.scrub)) is not None:
                    raise flag
                told = f"{self.name} answers 200 with an error: {self.scrub.quote(said(error))}"
                raise Failure("bad_response", told, retryable=True)
        raise Failure("bad_response", f"{self.name} answers 200 without {self.shape}", retryable=True)


class Notices(Protocol):
    """Counts what a server did not do."""

    def notice(self, what: str) -> None:
        """Count something missing, and report it the first time."""
        ...


def usage_of(
    answers: Notices, tokens_in: object, cached: object, tokens_out: object, price: Price | None, seconds: float
) -> Usage:
    """The usage that a server reports for a reply; an impossible count is unknown, and noticed."""
    read, again, wrote = count_of(tokens_in), count_of(cached or 0), count_of(tokens_out)
    if read is None or again is None or wrote is None:
        answers.notice("usage")
        known = price is not None and read is not None and wrote is not None
        read, again, wrote = read or 0, again or 0, wrote or 0
    else:
        known = price is not None
    return Usage(read, again, wrote, seconds, price.cost(read, again, wrote) if price and known else None)


def _text(content: object) -> str:
    """The reply's text, from a string or from the parts of a list."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _fits(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether the reply is JSON with what the schema requires at its top; a whole validation is the parser's work."""
    try:
        value = decoded(text.encode())
    except ValueError:
        return False
    if schema.get("type") == "object":
        return isinstance(value, dict) and set(schema.get("required", ())) <= set(value)
    return True


def _states(text: str, labels: tuple[str, ...]) -> bool:
    """Whether the text begins with a label."""
    begin = text.lstrip(" \t\n*_`~\"'([")
    return any(
        begin.startswith(spelt) and not begin[len(spelt) : len(spelt) + 1].isalnum()
        for spelt in (label.strip() for label in labels)
    )


def _shape(raw: bytes) -> str:
    if not raw:
        return "nothing"
    if raw.lstrip()[:1] == b"<":
        return "a web page: check the address (of an API it usually ends in /v1)"
    return f"{len(raw):,} bytes that are not JSON, or not all of it"
