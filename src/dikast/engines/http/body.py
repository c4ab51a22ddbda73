"""A request as the bytes of a chat completion's body."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

from dikast.core.errors import EngineError
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Request, Sampling
from dikast.engines.http.images import Encoded
from dikast.engines.http.sanitise import sent_parts, sent_text

Form = Literal["plain", "continue"]
READ_TOKENS = 8  # after a marker that Dikast wrote: room for markdown, a space and a label of several tokens

GO_ON = "Your reply stops there. Write only the words that come next."
"""The instruction after a prefilled reply, for models whose conversation cannot end with a reply."""

_CONTINUE = {"add_generation_prompt": False, "continue_final_message": True}
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprobs", "top_logprobs"),
    "continuation": (*_CONTINUE, "echo", "prefill"),
    "response_format": ("response_format",),
    "choices": ("structured_outputs",),
    "seed": ("seed",),
    "max_tokens": ("max_tokens",),
    "prefill": ("prefill",),
}
"""What may be left out when a server refuses it, with the fields that ask for it, or what it calls them.

Without `max_tokens` the field `max_completion_tokens` takes its place; without `prefill` the beginning of a reply is
followed by a turn of the user, as llama.cpp refuses a conversation that ends with a reply of a model that thinks.
"""


class ModelSampling(NamedTuple):
    """How a model samples: at a temperature of its `own`, with tokens for `thinking` besides those of its reply.

    either: it takes a temperature or a top-p, not both; a top-p then stands for sampling at temperature 1.
    """

    own: bool = False
    thinking: int = 0
    either: bool = False

    def fit(self, fields: dict[str, Any], limit: str, asked: Sampling) -> None:
        """Raise the limit of tokens, and leave out what cannot be asked for; EngineError if it was asked for."""
        fields[limit] += self.thinking
        if self.either and "top_p" in fields:
            if asked.temperature != 1:
                raise EngineError("this model takes a top-p at temperature 1 alone", kind="bad_request")
            del fields["temperature"]
        if not self.own:
            return
        told = "this model samples at its own temperature and cannot be asked for"
        if asked.temperature not in (0, 1):
            raise EngineError(f"{told} {asked.temperature:g}: set it to 1", kind="bad_request")
        if asked.top_p < 1:
            raise EngineError(f"{told} a top-p of {asked.top_p:g}: leave it out", kind="bad_request")
        del fields["temperature"]


AS_ASKED = ModelSampling()


@dataclass(slots=True)
class Bodies:
    """Makes bodies for one model. `refused` are the names in `OPTIONAL` that the server rejected.

    `continues` says whether the server is known to continue a prefilled reply. Until that is known it is asked to echo
    that text as proof; with this option vLLM also computes log-probabilities of the whole prompt.
    """

    model: str
    top_logprobs: int
    extra: Mapping[str, Any]
    images: Encoded = field(default_factory=Encoded)
    continues: Callable[[], bool | None] = lambda: None
    refused: frozenset[str] = frozenset()  # replaced as a whole, as another thread may be reading it
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: OPTIONAL)
    sampling: ModelSampling = AS_ASKED

    def make(self, request: Request, form: Form) -> list[bytes]:
        """The body in pieces (images are shared between bodies); EngineError if the request cannot be asked."""
        turns = turns_of(request)
        head = orjson.dumps(self.fields(request, form))[:-1]
        pieces = [head + b',"messages":[' if len(head) > 1 else b'{"messages":[']
        for i, message in enumerate(turns):
            self._message(message, b"," if i else b"", pieces)
        if text := written(request, form):
            pieces.append(b"," + orjson.dumps({"role": "assistant", "content": text}))
            if form == "plain" and "prefill" in self.refused:
                pieces.append(b"," + orjson.dumps({"role": "user", "content": GO_ON}))
        pieces.append(b"]}")
        return joined(pieces)

    def fields(self, request: Request, form: Form) -> dict[str, Any]:
        """Everything of the body but the messages."""
        sampling, readout = request.sampling, request.readout
        limit = "max_completion_tokens" if "max_tokens" in self.refused else "max_tokens"
        only_read = reads_labels(request) and not (readout and readout.generate) and form == "continue"
        fields: dict[str, Any] = {
            "model": self.model,
            limit: min(READ_TOKENS, sampling.max_tokens) if only_read else sampling.max_tokens,
            "temperature": sampling.temperature,
        }
        if sampling.temperature > 0:
            fields["seed"] = seed_of(request)
            if sampling.top_p < 1:
                fields["top_p"] = sampling.top_p
        self.sampling.fit(fields, limit, sampling)
        if reads_labels(request) and self.top_logprobs:
            fields["logprobs"] = True
            fields["top_logprobs"] = self.top_logprobs
        if request.schema is not None:
            schema = {"name": "reply", "schema": dict(request.schema), "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.choices:
            fields["structured_outputs"] = {"choice": list(request.choices)}
        if form == "continue":
            fields.update(_CONTINUE)
            if self.continues() is None:
                fields["echo"] = True
        for name in self.refused:
            for key in OPTIONAL[name]:
                fields.pop(key, None)
        return with_extra(fields, self.extra)

    def _message(self, message: Message, lead: bytes, pieces: list[bytes]) -> None:
        role = b'{"role":"' + message.role.encode() + b'","content":'
        if all(isinstance(part, Span) for part in message.parts):
            text = sent_text(message)
            pieces.append(lead + role + orjson.dumps(text) + b"}")
            return
        pieces.append(lead + role + b"[")
        comma = b""
        for part in sent_parts(message):
            if isinstance(part, str):
                pieces.append(comma + b'{"type":"text","text":' + orjson.dumps(part) + b"}")
            else:
                mime, data = self.images.base64(part)
                head = comma + b'{"type":"image_url","image_url":{"url":"data:' + mime + b";base64,"
                pieces += [head, data, b'"}}']
            comma = b","
        pieces.append(b"]}")


def beginning(request: Request) -> tuple[str, ...]:
    """The sort key that puts requests with long common prefixes next to each other: roles, texts, pictures."""
    found: list[str] = []
    for message in request.messages:
        found.append(message.role)
        for part in message.parts:
            if isinstance(part, Span):
                found.append(part.text)
                continue
            frames = (part,) if isinstance(part, Image) else part.frames
            found += [f"{image.root}/{image.source}#{image.frame}" for image in frames]
    return tuple(found)


def with_extra(fields: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with the user's own added; null removes one."""
    for key, value in extra.items():
        if value is None:
            fields.pop(key, None)
        else:
            fields[key] = value
    return fields


def reads_labels(request: Request) -> bool:
    """Whether to score labels. Under a constraint, a server's probabilities are renormalised over what is allowed."""
    return request.readout is not None and not request.choices and request.schema is None


def turns_of(request: Request, but: str = "") -> Sequence[Message]:
    """The messages to send, without those of the role `but`; EngineError if there are none."""
    turns = [message for message in request.messages if message.role != but]
    if not turns:
        raise EngineError("the request has no messages: nothing was asked", kind="bad_request")
    return turns


def written(request: Request, form: Form) -> str:
    """The beginning of the reply: the prefill, and the marker if labels are scored without text before it."""
    readout = request.readout
    if form == "plain" or readout is None or readout.generate or request.prefill.endswith(readout.marker):
        return request.prefill
    return request.prefill + readout.marker


def seed_of(request: Request) -> int:
    """The seed of one request's draws: it depends on the sampling's seed and the request's key alone."""
    spelt = f"{request.sampling.seed}\0{request.key}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(spelt, digest_size=4).digest()) >> 1


def joined(pieces: list[bytes]) -> list[bytes]:
    """Small neighbours as one piece; an image's data URL stays the shared object it is."""
    found: list[bytes] = []
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < 32768:
            small.append(piece)
            continue
        found += [b"".join(small), piece]
        small = []
    found.append(b"".join(small))
    return found
