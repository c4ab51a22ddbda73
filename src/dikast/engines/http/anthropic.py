"""Anthropic's Messages API: `POST /v1/messages`, its replies read as chat completions. No tools are ever offered.

Format: https://platform.claude.com/docs/en/api/messages (version 2023-06-01, which its header names).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from dikast.core.errors import EngineError
from dikast.core.message import Message
from dikast.engines.base import Request
from dikast.engines.http.body import AS_ASKED, GO_ON, Form, ModelSampling, joined, turns_of, with_extra, written
from dikast.engines.http.images import Encoded
from dikast.engines.http.sanitise import sent_parts, sent_text

OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "response_format": ("output_config",),
    "continuation": ("prefill", "must end with a user message"),
}
"""What is left out when a model refuses it: a JSON schema, and a prefilled reply."""

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "tool_use": "error",
    "pause_turn": "error",
}


@dataclass(slots=True)
class MessagesBodies:
    """Makes bodies for one model. A begun reply is the last turn, with a user's after it where the model wants that."""

    model: str
    extra: Mapping[str, Any]
    images: Encoded = field(default_factory=Encoded)
    refused: frozenset[str] = frozenset()
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: OPTIONAL)
    sampling: ModelSampling = AS_ASKED

    def make(self, request: Request, form: Form) -> list[bytes]:
        """The body in pieces; EngineError if the request cannot be asked."""
        turns = turns_of(request, but="system")
        if request.sampling.temperature > 1 and "temperature" not in self.extra:
            raise EngineError("this API takes temperatures from 0 to 1", kind="bad_request")
        pieces = [orjson.dumps(self.fields(request, form))[:-1] + b',"messages":[']
        for i, message in enumerate(turns):
            pieces.append(b"," if i else b"")
            self._message(message, pieces)
        if form == "continue" and (text := written(request, form).rstrip()):  # blanks at the end are refused
            pieces.append(b"," + orjson.dumps({"role": "assistant", "content": text}))
        elif form == "plain" and (text := request.prefill.rstrip()):
            pieces.append(b"," + orjson.dumps({"role": "assistant", "content": text}))
            pieces.append(b"," + orjson.dumps({"role": "user", "content": GO_ON}))
        return joined([*pieces, b"]}"])

    def fields(self, request: Request, form: Form) -> dict[str, Any]:
        """Everything of the body but the messages."""
        sampling = request.sampling
        fields: dict[str, Any] = {
            "model": self.model,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
        }
        if sampling.temperature > 0 and sampling.top_p < 1:
            fields["top_p"] = sampling.top_p
        self.sampling.fit(fields, "max_tokens", sampling)
        if system := "\n\n".join(sent_text(each) for each in request.messages if each.role == "system"):
            fields["system"] = system
        if request.schema is not None and "response_format" not in self.refused:
            fields["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        return with_extra(fields, self.extra)

    def _message(self, message: Message, pieces: list[bytes]) -> None:
        pieces.append(b'{"role":"' + message.role.encode() + b'","content":[')
        comma = b""
        for part in sent_parts(message):
            if part == "":  # which the API refuses
                continue
            if isinstance(part, str):
                pieces.append(comma + b'{"type":"text","text":' + orjson.dumps(part) + b"}")
            else:
                mime, data = self.images.base64(part)
                head = comma + b'{"type":"image","source":{"type":"base64","media_type":"' + mime + b'","data":"'
                pieces += [head, data, b'"}}']
            comma = b","
        pieces.append(b"]}")


def as_chat(value: Any) -> Any:
    """A message as a chat completion; anything else as it is. Thinking is left out, as servers of others do."""
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        return value
    blocks = [block for block in value["content"] if isinstance(block, dict) and block.get("type") == "text"]
    text = "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
    reason = value.get("stop_reason") or "end_turn"
    finish = _FINISH.get(str(reason), reason)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if finish == "content_filter":
        details = value.get("stop_details")
        why = details.get("explanation") or details.get("category") if isinstance(details, dict) else None
        message["refusal"] = why or "the model's safety classifiers stopped the reply"
    return {
        "model": value.get("model"),
        "choices": [{"message": message, "finish_reason": finish}],
        "usage": _usage(value.get("usage")),
        "error": value.get("error") or (value if value.get("type") == "error" else None),
    }


def _usage(value: object) -> object:
    """Tokens in are those read afresh, written to a cache, and read from one, which are counted apart."""
    if not isinstance(value, dict):
        return value
    read = value.get("cache_read_input_tokens") or 0
    parts = (value.get("input_tokens"), value.get("cache_creation_input_tokens") or 0, read)
    whole = sum(part for part in parts if isinstance(part, int)) if all(isinstance(p, int) for p in parts) else None
    return {
        "prompt_tokens": whole,
        "prompt_tokens_details": {"cached_tokens": read},
        "completion_tokens": value.get("output_tokens"),
    }
