"""Servers on the loopback interface that speak the formats of providers as documented, and refuse all else.

OpenAI's chat completions: https://platform.openai.com/docs/api-reference/chat/create and .../guides/reasoning;
Anthropic's Messages API: https://platform.claude.com/docs/en/api/messages and .../api/errors; Gemini's generateContent:
https://ai.google.dev/api/generate-content and .../gemini-api/docs/troubleshooting.
"""

import base64
import json
import re
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

OPENAI_FIELDS = {
    "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "logprobs",
    "top_logprobs", "response_format", "reasoning_effort",
}  # fmt: skip
PNG = b"\x89PNG\r\n\x1a\n"


class Reply(NamedTuple):
    """An answer as it goes out; a body of bytes goes as it is."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


class ProviderServer:
    """Use as a context manager. `script` is played first, one answer a request; after it every request is answered.

    `text` is what the model writes. `bodies` are the requests that followed the format.
    """

    key = "sk-ant-loopback-0123456789abcdef"
    model = ""

    def __init__(self, text: str = "Sound.\nVerdict: 4", script: list[Reply] | None = None, **more: Any) -> None:
        self.text, self.script, self.more = text, list(script or []), more
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                self._send(outer.listed(self.path))

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                self._send(outer.answered(self.path, {k.lower(): v for k, v in self.headers.items()}, raw))

            def _send(self, reply: Reply) -> None:
                raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def answered(self, path: str, headers: dict[str, str], raw: bytes) -> Reply:
        with self._lock:
            self.headers.append(headers)
            wrong = self.refusal(path, headers, json.loads(raw))
            if wrong is not None:
                return wrong
            body = json.loads(raw)
            self.bodies.append(body)
            return self.script.pop(0) if self.script else Reply(self.message(body))

    def listed(self, path: str) -> Reply:
        raise NotImplementedError

    def refusal(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply | None:
        raise NotImplementedError

    def message(self, body: dict[str, Any]) -> Any:
        raise NotImplementedError


def checked(value: Any, known: Mapping[str, Callable[[Any], bool]], needed: tuple[str, ...], where: str) -> str:
    """What is wrong with an object, in words; "" for nothing."""
    if not isinstance(value, dict):
        return f"{where}: Input should be a valid dictionary"
    for name in needed:
        if name not in value:
            return f"{where}.{name}: Field required"
    for name, each in value.items():
        if name not in known:
            return f"{where}.{name}: Extra inputs are not permitted"
        if not known[name](each):
            return f"{where}.{name}: Input is not valid"
    return ""


def _image(data: Any) -> bool:
    return isinstance(data, str) and base64.b64decode(data, validate=True).startswith(PNG)


def anthropic_error(kind: str, message: str, status: int, **headers: str) -> Reply:
    """The documented shape of errors."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
    return Reply(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


class AnthropicServer(ProviderServer):
    """`more`: `prefill` and `temperature` say whether the model takes them, as models up to 4.5 do."""

    model = "claude-sonnet-4-5-20250929"

    def __init__(self, text: str = "Sound.\nVerdict: 4", script: list[Reply] | None = None, **more: Any) -> None:
        super().__init__(text, script, **more)
        self.model = more.get("model", self.model)

    def listed(self, path: str) -> Reply:
        models = [{"type": "model", "id": name, "display_name": name} for name in ("claude-haiku-4-5", self.model)]
        return Reply({"data": models, "has_more": False})

    def refusal(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply | None:
        if path != "/v1/messages":
            return anthropic_error("not_found_error", f"no such path {path}", 404)
        if headers.get("x-api-key") != self.key or "authorization" in headers:
            return anthropic_error("authentication_error", "invalid x-api-key", 401)
        if headers.get("anthropic-version") != "2023-06-01":
            return anthropic_error("invalid_request_error", "anthropic-version: header is required", 400)
        if body.get("model") not in (self.model, self.model[:-9]):
            return anthropic_error("not_found_error", f"model: {body.get('model')}", 404)
        return self._wrong(body)

    def _wrong(self, body: dict[str, Any]) -> Reply | None:
        known: dict[str, Callable[[Any], bool]] = {
            "model": lambda v: isinstance(v, str),
            "max_tokens": lambda v: type(v) is int and v > 0,
            "messages": lambda v: isinstance(v, list) and bool(v),
            "system": lambda v: isinstance(v, str) and bool(v),
            "temperature": lambda v: isinstance(v, int | float) and 0 <= v <= 1,
            "top_p": lambda v: isinstance(v, int | float) and 0 < v <= 1,
            "thinking": lambda v: isinstance(v, dict),
            "output_config": lambda v: set(v) == {"format"} and v["format"]["type"] == "json_schema",
        }
        wrong = checked(body, known, ("model", "max_tokens", "messages"), "body")
        for i, message in enumerate(body.get("messages") or ()):
            roles = {"role": lambda v: v in ("user", "assistant"), "content": lambda v: isinstance(v, str | list)}
            wrong = wrong or checked(message, roles, ("role", "content"), f"messages.{i}")
            for block in message["content"] if isinstance(message.get("content"), list) else ():
                wrong = wrong or self._wrong_block(block, f"messages.{i}.content")
        last = (body.get("messages") or [{}])[-1]
        if not wrong and last.get("role") == "assistant":
            if not self.more.get("prefill", True):
                wrong = "This model does not support assistant message prefill. The conversation must end with a user"
                wrong += " message."
            elif last["content"] != last["content"].rstrip():
                wrong = "messages: final assistant content cannot end with trailing whitespace"
        if not wrong and {"temperature", "top_p"} <= body.keys():
            wrong = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        if not wrong and "temperature" in body and not self.more.get("temperature", True):
            wrong = "`temperature` is deprecated for this model."
        return anthropic_error("invalid_request_error", wrong, 400) if wrong else None

    def _wrong_block(self, block: Any, where: str) -> str:
        text = {"type": lambda v: v == "text", "text": lambda v: isinstance(v, str) and bool(v)}
        if isinstance(block, dict) and block.get("type") == "image":
            source = {
                "type": lambda v: v == "base64",
                "media_type": lambda v: v in ("image/jpeg", "image/png", "image/gif", "image/webp"),
                "data": _image,
            }
            return checked(block["source"], source, tuple(source), f"{where}.source")
        return checked(block, text, tuple(text), where)

    def message(self, body: dict[str, Any]) -> Any:
        return {
            "id": "msg_013Zva2CMHLNnjNjJJKqJ2EF",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.more.get("content") or [{"type": "text", "text": self.text}],
            "stop_reason": self.more.get("stop_reason", "end_turn"),
            "stop_sequence": None,
            "stop_details": self.more.get("stop_details"),
            "usage": {
                "input_tokens": 1000,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 200,
                "output_tokens": 50,
                "service_tier": "standard",
            },
        }


def openai_error(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Reply:
    """The documented shape of errors."""
    return Reply({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}, status)


class OpenAIServer(ProviderServer):
    """`more`: `model` names the model; `reasons` says whether it reasons where the request names no effort."""

    key = "sk-proj-loopback0123456789abcdefghij"
    model = "gpt-5-mini"

    def __init__(self, text: str = "Sound.\nVerdict: 4", script: list[Reply] | None = None, **more: Any) -> None:
        super().__init__(text, script, **more)
        self.model = more.get("model", self.model)

    def listed(self, path: str) -> Reply:
        return Reply({"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "openai"}]})

    def refusal(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply | None:
        if path != "/v1/chat/completions":
            return openai_error(f"Invalid URL (POST {path})", status=404)
        if headers.get("authorization") != f"Bearer {self.key}":
            return openai_error("Incorrect API key provided.", None, "invalid_api_key", 401)
        if body.get("model") != self.model:
            told = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            return openai_error(told, None, "model_not_found", 404)
        if odd := sorted(body.keys() - OPENAI_FIELDS):
            return openai_error(f"Unrecognized request argument supplied: {odd[0]}")
        effort = body.get("reasoning_effort", "medium" if self.more.get("reasons", True) else "none")
        return self._of_reasoning(body) if effort != "none" else None

    def _of_reasoning(self, body: dict[str, Any]) -> Reply | None:
        if "max_tokens" in body:
            told = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            return openai_error(f"{told} instead.", "max_tokens", "unsupported_parameter")
        for name in ("temperature", "top_p"):
            if body.get(name, 1) != 1:
                told = f"Unsupported value: {name!r} does not support {body[name]:g} with this model."
                told += " Only the default (1) value is supported."
                return openai_error(told, name, "unsupported_value")
        if "logprobs" in body or "top_logprobs" in body:
            return openai_error("You are not allowed to request logprobs from this model", status=403)
        return None

    def message(self, body: dict[str, Any]) -> Any:
        """Written with what is left of the allowed tokens after 2,000 of reasoning."""
        thought = 2000 if self.more.get("reasons", True) else 0
        room = body.get("max_completion_tokens", 10**9) - thought
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self.text if room > 0 else "", "refusal": None},
            "finish_reason": "stop" if room > 0 else "length",
            "logprobs": self._logprobs() if body.get("logprobs") else None,
        }
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": thought + 10,
            "completion_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": thought + 110,
        }
        model = f"{self.model}-2025-08-07"
        return {"id": "chatcmpl-1", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}

    def _logprobs(self) -> dict[str, Any]:
        """One token a character, each certain."""
        sure = {"logprob": -0.0001, "bytes": None}
        return {"content": [{"token": each, **sure, "top_logprobs": [{"token": each, **sure}]} for each in self.text]}


class LlamaServer(OpenAIServer):
    """llama.cpp's server with a model that thinks, whose conversations cannot end with a reply."""

    def refusal(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply | None:
        if body["messages"][-1]["role"] == "assistant":
            told = "Assistant response prefill is incompatible with enable_thinking."
            return Reply({"error": {"code": 400, "message": told, "type": "invalid_request_error"}}, 400)
        return super().refusal(path, headers, body)


def gemini_error(code: int, status: str, message: str, details: list[dict[str, Any]] | None = None) -> Reply:
    """The documented shape of errors, `google.rpc.Status` as JSON."""
    return Reply({"error": {"code": code, "message": message, "status": status, "details": details or []}}, code)


class GeminiServer(ProviderServer):
    """`more`: `model` names the model; `logprobs` says whether it gives them; `finish` is the reason why it stopped."""

    key = "AIzaLoopback0123456789abcdefghijklmno"
    model = "gemini-2.5-flash"

    def __init__(self, text: str = "Sound.\nVerdict: 4", script: list[Reply] | None = None, **more: Any) -> None:
        super().__init__(text, script, **more)
        self.model = more.get("model", self.model)

    def listed(self, path: str) -> Reply:
        return Reply({"models": [{"name": f"models/{name}"} for name in (self.model, "gemini-2.5-pro")]})

    def refusal(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply | None:
        if headers.get("x-goog-api-key") != self.key or "?" in path:
            told = "API key not valid. Please pass a valid API key."
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            return gemini_error(400, "INVALID_ARGUMENT", told, [info])
        found = re.fullmatch(r"/v1beta/models/([\w.-]+):generateContent", path)
        if found is None or found[1] != self.model:
            told = f"{path} is not found for API version v1beta, or is not supported for generateContent."
            return gemini_error(404, "NOT_FOUND", told)
        wrong = self._wrong(body)
        return gemini_error(400, "INVALID_ARGUMENT", wrong) if wrong else None

    def _wrong(self, body: dict[str, Any]) -> str:
        def parts(value: Any) -> bool:
            return isinstance(value, list) and bool(value) and all(map(part, value))

        def part(value: Any) -> bool:
            if set(value) == {"inlineData"}:
                inline = value["inlineData"]
                return (
                    set(inline) == {"mimeType", "data"} and inline["mimeType"] == "image/png" and _image(inline["data"])
                )
            return set(value) == {"text"} and isinstance(value["text"], str)

        known: dict[str, Callable[[Any], bool]] = {
            "contents": lambda v: all(set(t) == {"role", "parts"} and t["role"] in ("user", "model") for t in v),
            "systemInstruction": lambda v: set(v) == {"parts"} and parts(v["parts"]),
            "generationConfig": lambda v: isinstance(v, dict),
        }
        wrong = checked(body, known, ("contents",), "body")
        for turn in body.get("contents") or ():
            wrong = wrong or ("" if parts(turn["parts"]) else "contents.parts: oneof field 'data' is not valid")
        config: dict[str, Callable[[Any], bool]] = {
            "maxOutputTokens": lambda v: type(v) is int and v > 0,
            "temperature": lambda v: 0 <= v <= 2,
            "topP": lambda v: 0 < v <= 1,
            "seed": lambda v: type(v) is int and 0 <= v < 2**31,
            "responseMimeType": lambda v: v == "application/json",
            "responseJsonSchema": lambda v: isinstance(v, dict),
            "responseLogprobs": lambda v: v is True,
            "logprobs": lambda v: type(v) is int and 0 <= v <= 20,
            "thinkingConfig": lambda v: isinstance(v, dict),
        }
        wrong = wrong or checked(body.get("generationConfig", {}), config, (), "generationConfig")
        if not wrong and "responseLogprobs" in body["generationConfig"] and not self.more.get("logprobs", True):
            wrong = f"Logprobs is not enabled for models/{self.model}"
        return wrong

    def message(self, body: dict[str, Any]) -> Any:
        finish = self.more.get("finish", "STOP")
        candidate: dict[str, Any] = {"finishReason": finish, "index": 0}
        if finish in ("STOP", "MAX_TOKENS"):
            candidate["content"] = {
                "role": "model",
                "parts": [{"text": "Let me see.", "thought": True}, {"text": self.text}],
            }
        if body["generationConfig"].get("responseLogprobs"):
            candidate["logprobsResult"] = self._logprobs()
        return {
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": 1200,
                "cachedContentTokenCount": 200,
                "candidatesTokenCount": 40,
                "thoughtsTokenCount": 10,
                "totalTokenCount": 1250,
            },
            "modelVersion": self.model,
            "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
        }

    def _logprobs(self) -> dict[str, Any]:
        """One token a character; the last may also have been 5."""
        chosen = [{"token": each, "tokenId": ord(each), "logProbability": -0.105360516} for each in self.text]
        tops = [{"candidates": [each]} for each in chosen]
        tops[-1]["candidates"].append({"token": "5", "tokenId": 53, "logProbability": -2.302585093})
        return {"topCandidates": tops, "chosenCandidates": chosen}
