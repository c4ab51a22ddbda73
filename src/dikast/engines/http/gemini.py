"""Google's Gemini API: `models/MODEL:generateContent`, its replies read as chat completions. No tools are ever offered.

Format: https://ai.google.dev/api/generate-content (v1beta).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from dikast.core.message import Message
from dikast.engines.base import Request
from dikast.engines.http.body import (
    AS_ASKED,
    GO_ON,
    Form,
    ModelSampling,
    joined,
    reads_labels,
    seed_of,
    turns_of,
    with_extra,
)
from dikast.engines.http.images import Encoded
from dikast.engines.http.sanitise import sent_parts, sent_text

OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("responseLogprobs", "logprobs"),
    "response_format": ("responseJsonSchema", "responseMimeType"),
    "seed": ("seed",),
}
"""What may be left out when a model refuses it, with the fields that ask for it."""

_CONFIG = "generationConfig"
_BLOCKED = (
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
)  # fmt: skip
_BROKEN = (
    "FINISH_REASON_UNSPECIFIED", "OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "NO_IMAGE", "IMAGE_OTHER",
)  # fmt: skip
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(_BROKEN, "error")}


def url_of(base: str, model: str) -> str:
    """Where a model is asked."""
    return f"{base}/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:generateContent"


@dataclass(slots=True)
class GeminiBodies:
    """Makes bodies for one model. A prefilled reply is sent as a turn of the model, followed by a turn of the user."""

    model: str
    top_logprobs: int
    extra: Mapping[str, Any]
    images: Encoded = field(default_factory=Encoded)
    refused: frozenset[str] = frozenset()
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: OPTIONAL)
    sampling: ModelSampling = AS_ASKED

    def make(self, request: Request, form: Form) -> list[bytes]:
        """The body in pieces; EngineError if the request cannot be asked."""
        pieces = [orjson.dumps(self.fields(request, form))[:-1] + b',"contents":[']
        for i, message in enumerate(turns_of(request, but="system")):
            role = b"model" if message.role == "assistant" else b"user"
            pieces.append(b"," * bool(i) + b'{"role":"' + role + b'","parts":[')
            self._parts(message, pieces)
            pieces.append(b"]}")
        for whose, text in (("model", request.prefill), ("user", GO_ON)) if request.prefill else ():
            pieces.append(b"," + orjson.dumps({"role": whose, "parts": [{"text": text}]}))
        return joined([*pieces, b"]}"])

    def fields(self, request: Request, form: Form) -> dict[str, Any]:
        """Everything of the body but the turns; `extra` is merged into the generation's configuration, too."""
        sampling = request.sampling
        config: dict[str, Any] = {"maxOutputTokens": sampling.max_tokens, "temperature": sampling.temperature}
        if sampling.temperature > 0:
            config["seed"] = seed_of(request)
            if sampling.top_p < 1:
                config["topP"] = sampling.top_p
        self.sampling.fit(config, "maxOutputTokens", sampling)
        if reads_labels(request) and self.top_logprobs:
            config |= {"responseLogprobs": True, "logprobs": self.top_logprobs}
        if request.schema is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": dict(request.schema)}
        for name in self.refused & self.optional.keys():
            for key in self.optional[name]:
                config.pop(key, None)
        own = dict(self.extra)
        inner = own.pop(_CONFIG, {})
        fields: dict[str, Any] = {_CONFIG: with_extra(config, inner if isinstance(inner, Mapping) else {})}
        if system := "\n\n".join(sent_text(each) for each in request.messages if each.role == "system"):
            fields["systemInstruction"] = {"parts": [{"text": system}]}
        return with_extra(fields, own)

    def _parts(self, message: Message, pieces: list[bytes]) -> None:
        comma = b""
        for part in sent_parts(message):
            if part == "":  # which the API refuses
                continue
            if isinstance(part, str):
                pieces.append(comma + b'{"text":' + orjson.dumps(part) + b"}")
            else:
                mime, data = self.images.base64(part)
                pieces += [comma + b'{"inlineData":{"mimeType":"' + mime + b'","data":"', data, b'"}}']
            comma = b","


def as_chat(value: Any) -> Any:
    """A response as a chat completion; anything else as it is. Thoughts are left out, but their tokens count as
    written.
    """
    if not isinstance(value, dict):
        return value
    usage = _usage(value.get("usageMetadata"))
    told = {"model": value.get("modelVersion"), "usage": usage, "error": value.get("error")}
    feedback = value.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return {**told, "choices": [_refused(f"the prompt was blocked: {feedback['blockReason']}")]}
    candidates = value.get("candidates")
    if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
        return value
    candidate = candidates[0]
    reason, content = str(candidate.get("finishReason") or "STOP"), candidate.get("content")
    if reason in _BLOCKED:
        return {**told, "choices": [_refused(f"the reply was blocked: {reason}")]}
    texts = [part.get("text") for part in _list(content, "parts") if isinstance(part, dict) and not part.get("thought")]
    choice = {
        "message": {"role": "assistant", "content": "".join(text for text in texts if isinstance(text, str))},
        "finish_reason": _FINISH.get(reason, reason),
        "logprobs": _logprobs(candidate.get("logprobsResult")),
        "error": candidate.get("error"),
    }
    return {**told, "choices": [choice]}


def _refused(why: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": "", "refusal": why}, "finish_reason": "content_filter"}


def _logprobs(value: object) -> dict[str, Any] | None:
    """The chosen tokens, each with the likeliest at its place."""
    tops, content = _list(value, "topCandidates"), []
    for i, chosen in enumerate(_list(value, "chosenCandidates")):
        others = _list(tops[i], "candidates") if i < len(tops) else []
        content.append({**_entry(chosen), "top_logprobs": [_entry(each) for each in others]})
    return {"content": content} if content else None


def _list(value: object, name: str) -> list[Any]:
    """The list under that name, empty where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _entry(value: object) -> dict[str, Any]:
    entry = value if isinstance(value, dict) else {}
    return {"token": entry.get("token"), "logprob": entry.get("logProbability")}


def _usage(value: object) -> object:
    if not isinstance(value, dict):
        return value
    wrote, thought = value.get("candidatesTokenCount") or 0, value.get("thoughtsTokenCount") or 0
    counted = isinstance(wrote, int) and isinstance(thought, int)
    return {
        "prompt_tokens": value.get("promptTokenCount"),
        "prompt_tokens_details": {"cached_tokens": value.get("cachedContentTokenCount") or 0},
        "completion_tokens": wrote + thought if counted else None,
    }
