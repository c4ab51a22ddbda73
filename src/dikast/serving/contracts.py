"""APIs of other projects served by the judge's model: typed decisions in two dialects, and chat completions."""

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.message import Message, Span
from dikast.core.part import Image, Text, content_from
from dikast.core.text import near_miss
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.serving.messages import Refused

_MOST_ANSWERS = 1024
_MOST_ASSETS = 64  # each is looked for in every text
_count = itertools.count()
_MOST_REPLIES = 128
_CHAT = (  # what is read, and what no answer depends on
    "messages", "temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "n", "stop", "response_format",
    "model", "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "parallel_tool_calls", "stream_options",
)  # fmt: skip
_CHAT_OFF: Mapping[str, Sequence[Any]] = {  # with the values that ask for nothing
    "stream": (False,), "logprobs": (False,), "top_logprobs": (0,), "tools": ([],), "tool_choice": ("none", "auto"),
    "functions": ([],), "function_call": ("none", "auto"), "frequency_penalty": (0,), "presence_penalty": (0,),
    "logit_bias": ({},), "modalities": (["text"],),
}  # fmt: skip
_WRONG = ("context_length", "bad_request", "no_vision", "bad_media", "chat_template")  # kinds of errors of a request


class Offered(NamedTuple):
    """A question with its possible answers; levels from the lowest if `ordered`."""

    name: str
    kind: str
    instructions: str
    answers: tuple[str, ...]
    ordered: bool


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise Refused(422, f"expected text, got {type(value).__name__}", field)
    return value


def _object(value: object, field: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused(422, f"expected an object, got {type(value).__name__}", field)
    return value


def _list(value: object, field: str) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        raise Refused(422, "expected a list that is not empty", field)
    return value


def _message(role: object, content: object, field: str, assets: Mapping[str, Image] | None = None) -> Message:
    """A message of a client, marked as untrusted."""
    if role not in ("system", "user", "assistant", "developer"):
        raise Refused(422, f"{role!r} is not a role: use system, user or assistant", f"{field}.role")
    spelt: Any = "system" if role == "developer" else role
    try:
        found = content_from(_plain(content), field=f"{field}.content")
    except DataError as error:
        raise Refused(422, str(error), str(error.field)) from None
    parts: list[Any] = []
    for part in found:
        if isinstance(part, Text):
            parts += _with_assets(part.text, assets or {})
        elif isinstance(part, Image) and part.source.startswith(("data:", "http://", "https://")):
            parts.append(part)
        else:
            raise Refused(422, "send pictures as data URLs", f"{field}.content")
    return Message(spelt, tuple(parts))


def _plain(content: object) -> object:
    """Parts of the decisions API (`input_text`, `input_image`) as chat parts."""
    if not isinstance(content, list):
        return content
    found = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") in ("input_text", "output_text"):
            found.append({"type": "text", "text": part.get("text")})
        elif isinstance(part, Mapping) and part.get("type") == "input_image":
            found.append({"type": "image_url", "image_url": {"url": part.get("image_url")}})
        else:
            found.append(part)
    return found


def _with_assets(text: str, assets: Mapping[str, Image]) -> list[Any]:
    """Text with images in the place of their markers, of which the longest comes first.

    One marker after the other: a pattern of all tries each of them at each character, and can take for ever.
    """
    parts: list[Any] = [text]
    for marker in sorted(assets, key=len, reverse=True):
        parts = [piece for part in parts for piece in _between(part, marker, assets[marker])]
    return [Span(part, trusted=False) if isinstance(part, str) else part for part in parts if part]


def _between(part: str | Image, marker: str, image: Image) -> list[str | Image]:
    if not isinstance(part, str):
        return [part]
    found: list[str | Image] = []
    for each in part.split(marker):
        found += (each, image)
    return found[:-1]


def requests_of(messages: Sequence[Message], offered: Sequence[Offered]) -> list[Request]:
    """A request for each question: the messages, the question with its answers, and label scoring of the answers."""
    found = []
    for each in offered:
        listed = "\n".join(f"- {answer}" for answer in each.answers)
        told = f"\n\n{each.instructions}\nAnswer with exactly one of these:\n{listed}\n"
        last = messages[-1]
        asked = Message("user", (Span(told, trusted=False),))
        shown = (*messages, asked)
        if last.role == "user":
            shown = (*messages[:-1], Message("user", (*last.parts, *asked.parts)))
        readout = Readout(tuple(f" {a}" for a in each.answers), "Answer:", generate=False, ordered=each.ordered)
        found.append(Request(f"decision-{next(_count)}", shown, Sampling(max_tokens=16), readout=readout))
    return found


def shares_of(completion: Completion, offered: Offered) -> list[float] | None:
    """The probabilities of the answers, renormalised; None for a refusal. Refused if none were read: 400 where the
    request is wrong, else 502.
    """
    if completion.error is not None:
        status = 400 if completion.error.kind in _WRONG else 502
        raise Refused(status, f"the model gave no answer: {completion.error}")
    if completion.refusal:
        return None
    read = completion.label_logprobs
    if read is None:
        raise Refused(501, "this server's model shows no probabilities of answers")
    raw = [math.exp(read.get(f" {answer}", -math.inf)) for answer in offered.answers]
    total = math.fsum(raw)
    if not total > 0:
        raise Refused(502, "the model gives no probability to any of the answers")
    return [each / total for each in raw]


def decisions_asked(body: Mapping[str, Any]) -> tuple[list[Message], list[Offered]]:
    """The questions of `POST /v1/decisions`."""
    given = body.get("input")
    said = [{"role": "user", "content": given}] if isinstance(given, str) else _list(given, "input")
    messages = []
    for i, each in enumerate(said):
        one = _object(each, f"input[{i}]")
        messages.append(_message(one.get("role", "user"), one.get("content"), f"input[{i}]"))
    offered = []
    for i, each in enumerate(_list(body.get("questions"), "questions")):
        field, one = f"questions[{i}]", _object(each, f"questions[{i}]")
        kind = one.get("type")
        if kind in ("score", "choice"):
            place, key = ("levels", "label") if kind == "score" else ("choices", "value")
            listed = _list(one.get(place), f"{field}.{place}")
            answers = [_text(_object(each, field).get(key), f"{field}.{place}") for each in listed]
        elif kind == "predicate":
            answers = ["false", "true"]
        else:
            raise Refused(422, f"{kind!r} is not a type of question: use predicate, choice or score", f"{field}.type")
        offered.append(_offered(str(one.get("name") or ""), str(kind), one.get("instructions"), answers, field))
    return messages, offered


def _offered(name: str, kind: str, instructions: object, answers: list[str], field: str) -> Offered:
    if (
        not 2 <= len(answers) <= _MOST_ANSWERS
        or len(set(answers)) < len(answers)
        or not all(a.strip() for a in answers)
    ):
        raise Refused(422, f"2 to {_MOST_ANSWERS} different answers that are not empty are needed", field)
    return Offered(name, kind, _text(instructions, f"{field}.instructions"), tuple(answers), kind != "choice")


def decisions_told(offered: Sequence[Offered], shares: Sequence[list[float] | None]) -> list[dict[str, Any]]:
    """The answers of `POST /v1/decisions`, in the order of the questions."""
    told: list[dict[str, Any]] = []
    for each, share in zip(offered, shares, strict=True):
        named: dict[str, Any] = {"name": each.name or None, "type": each.kind}
        if share is None:
            told.append({**named, "type": "refusal", "refusal": "the model declined to answer"})
        elif each.kind == "predicate":
            told.append({**named, "probability": share[1]})
        elif each.kind == "choice":
            ranked = sorted(zip(each.answers, share, strict=True), key=lambda one: -one[1])
            shown = [{"value": value, "probability": p} for value, p in ranked]
            told.append({**named, "choice": ranked[0][0], "confidence": ranked[0][1], "probabilities": shown})
        else:
            listed = enumerate(zip(each.answers, share, strict=True), 1)
            levels = [{"label": label, "probability": p, "value": i} for i, (label, p) in listed]
            score = math.fsum(i * p for i, p in enumerate(share, 1))
            told.append({**named, "score": score, "confidence": max(share), "probabilities": levels})
    return told


def systemone_asked(body: Mapping[str, Any]) -> tuple[list[Message], list[Offered]]:
    """The questions of `POST /v1/systemone`."""
    assets: dict[str, Image] = {}
    sent = _object(body.get("assets") or {}, "assets")
    if len(sent) > _MOST_ASSETS:
        raise Refused(422, f"{len(sent):,} assets, and a request has at most {_MOST_ASSETS}", "assets")
    for word, asset in sent.items():
        if not word:
            raise Refused(422, "the marker of an asset is a text that is not empty", "assets")
        one = _object(asset, f"assets.{word}")
        data = _text(one.get("data_base64"), f"assets.{word}.data_base64")
        assets[word] = Image(f"data:image/{one.get('format', 'png')};base64,{data}")
    state = body.get("state")
    listed = [{"role": "user", "content": state}] if isinstance(state, str) else _list(state, "state")
    messages = []
    for i, each in enumerate(listed):
        turn = _object(each, f"state[{i}]")
        messages.append(
            _message(turn.get("role"), _text(turn.get("content"), f"state[{i}].content"), f"state[{i}]", assets)
        )
    offered = []
    for name, each in _object(body.get("questions"), "questions").items():
        field, one = f"questions.{name}", _object(each, f"questions.{name}")
        kind, criteria = one.get("type"), one.get("criteria")
        if kind == "noul":
            spelt = _object(criteria, f"{field}.criteria")
            answers = [_text(spelt.get(key), f"{field}.criteria.{key}") for key in ("false", "true")]
        elif kind == "choice":
            answers = list(_object(criteria, f"{field}.criteria"))
        elif kind == "score":
            answers = [_text(level, f"{field}.criteria") for level in _list(criteria, f"{field}.criteria")]
        else:
            raise Refused(422, f"{kind!r} is not a type of question: use noul, choice or score", f"{field}.type")
        offered.append(_offered(str(name), str(kind), one.get("instructions"), answers, field))
    if not offered:
        raise Refused(422, "there is no question", "questions")
    return messages, offered


def systemone_told(offered: Sequence[Offered], shares: Sequence[list[float] | None]) -> dict[str, Any]:
    """The answers of `POST /v1/systemone`, by the names of the questions."""
    told: dict[str, Any] = {}
    for each, share in zip(offered, shares, strict=True):
        if share is None:
            told[each.name] = {"type": "refusal"}
        elif each.kind == "noul":
            told[each.name] = {"type": "noul", "noul": share[1]}
        elif each.kind == "choice":
            told[each.name] = {"type": "choice", "probabilities": dict(zip(each.answers, share, strict=True))}
        else:
            by_level = {str(i): p for i, p in enumerate(share)}
            legend = {str(i): label for i, label in enumerate(each.answers)}
            told[each.name] = {"type": "score", "probabilities": by_level, "legend": legend}
    return told


def usage_of(completions: Sequence[Completion]) -> dict[str, Any]:
    """Token usage as the decisions API reports it."""
    tokens_in, tokens_out = (
        sum(getattr(each.usage, name) for each in completions) for name in ("tokens_in", "tokens_out")
    )
    cached = sum(each.usage.tokens_cached for each in completions)
    return {
        "input_tokens": tokens_in, "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": tokens_out, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens_in + tokens_out,
    }  # fmt: skip


class Chat(NamedTuple):
    """What `POST /v1/chat/completions` asks: a request for each of its `n` replies, which end before any of `stop`."""

    requests: list[Request]
    stop: list[str]


def chat_asked(body: Mapping[str, Any]) -> Chat:
    """The requests of `POST /v1/chat/completions`. Refused (422), naming the field, for what is not done here.

    With a `seed` the same request, its `max_tokens` too, has the same replies; without, each is drawn anew. The key
    from which a reply is drawn is that of its request, since a round asks each key once.
    """
    _check_chat(body)
    messages = []
    for i, each in enumerate(_list(body.get("messages"), "messages")):
        turn = _object(each, f"messages[{i}]")
        for name in ("tool_calls", "function_call", "audio"):
            if turn.get(name):
                raise Refused(422, f"this server does not support {name!r}: leave it out", f"messages[{i}].{name}")
        messages.append(_message(turn.get("role"), turn.get("content"), f"messages[{i}]"))
    told: dict[str, Any] = {}
    for name in ("temperature", "top_p", "seed", "max_tokens", "max_completion_tokens"):
        if (value := body.get(name)) is not None:
            kinds = (int, float) if name in ("temperature", "top_p") else int
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise Refused(422, f"expected a number, got {value!r:.40}", name)
            one: dict[str, Any] = {"max_tokens" if name == "max_completion_tokens" else name: value}
            try:
                Sampling(**one)
            except UserError as error:
                raise Refused(422, str(error), name) from None
            told |= one
    stop = body.get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or not all(isinstance(each, str) and each for each in stop):
        raise Refused(422, "expected a text that is not empty, or a list of such texts", "stop")
    n = body.get("n")
    n = 1 if n is None else n
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _MOST_REPLIES:
        raise Refused(422, f"expected a whole number from 1 to {_MOST_REPLIES}, got {n!r:.40}", "n")
    drawn = [*told.items(), body["messages"], body.get("response_format")]
    key = next(_count) if body.get("seed") is None else fingerprint(drawn)
    asked = Request("", tuple(messages), Sampling(**told), schema=_schema(body.get("response_format")))
    return Chat([replace(asked, key=f"chat-{key}-{i}") for i in range(n)], stop)


def _check_chat(body: Mapping[str, Any]) -> None:
    for name, value in body.items():
        if value is None or name in _CHAT or value in _CHAT_OFF.get(name, ()):
            continue
        if name in _CHAT_OFF:
            raise Refused(422, f"this server does not support {name!r}: leave it out", name)
        near = near_miss(name, _CHAT)
        cure = f"did you mean {near!r}?" if near else "leave it out"
        raise Refused(422, f"this server does not know {name!r}: {cure}", name)


def _schema(given: object) -> Mapping[str, Any] | None:
    """The JSON schema that a reply must follow; None for text."""
    if given is None:
        return None
    one = _object(given, "response_format")
    kind = one.get("type")
    if kind == "json_schema":
        held = _object(one.get("json_schema"), "response_format.json_schema")
        return _object(held.get("schema"), "response_format.json_schema.schema")
    if kind not in ("text", "json_object"):
        told = f"{kind!r:.40} is not a format: use text, json_object or json_schema"
        raise Refused(422, told, "response_format.type")
    return {"type": "object"} if kind == "json_object" else None


def chat_told(completions: Sequence[Completion], stop: Sequence[str], model: str) -> dict[str, Any]:
    """Completions as OpenAI's clients expect them. Refused for one that failed: 400 or 422 where its request is wrong,
    else 502.
    """
    for each in completions:
        if each.error is not None:
            status = {"schema": 422, **dict.fromkeys(_WRONG, 400)}.get(each.error.kind, 502)
            field = {422: "response_format", 400: "messages"}.get(status, "")
            raise Refused(status, str(each.error), field)
    tokens_in, tokens_out = completions[0].usage.tokens_in, sum(each.usage.tokens_out for each in completions)
    return {
        "id": completions[0].key, "object": "chat.completion", "created": int(time.time()), "model": model,
        "choices": [_choice(place, each, stop) for place, each in enumerate(completions)],
        "usage": {
            "prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out,
        },
    }  # fmt: skip


def _choice(place: int, completion: Completion, stop: Sequence[str]) -> dict[str, Any]:
    ends = [at for each in stop if (at := completion.text.find(each)) >= 0]
    return {
        "index": place, "finish_reason": "stop" if ends else completion.finish, "logprobs": None,
        "message": {
            "role": "assistant", "content": completion.text[: min(ends, default=None)],
            "refusal": completion.refusal or None,
        },
    }  # fmt: skip
