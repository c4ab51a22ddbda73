"""A fault-injecting OpenAI-compatible server, to test that a client loses no reply and pays for none twice.

It serves chat completions on the loopback interface, from a thread of its own. Whether a try fails depends only on the
seed, the prompt and how often that prompt came before, so the same run meets the same faults in any order. No part of
Dikast imports it.
"""

import asyncio
import contextlib
import email.utils
import hashlib
import json
import math
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import orjson
from aiohttp import web

from dikast.core.errors import UserError
from dikast.testing.completions import after, as_json, begun, entry, tokens

_SURE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The share of tries, each in [0, 1], that go wrong in one way; together at most 1.

    rate_limited: 429. rate_limited_wait: 429 with `Retry-After`. server_error: 500. hang: there is no reply. cut: the
    connection breaks inside the reply. truncated_json: the reply ends early with its connection in order. invalid_json:
    a web page with status 200. empty: an empty answer. wrong_model: another model's answer. drip: a correct reply, sent
    slowly in small pieces. ignored: a correct reply without the requested extras (log-probabilities, schema,
    continuation).
    oversized: a reply of `FaultServer.oversize` bytes. redirect: to another host.
    """

    rate_limited: float = 0.0
    rate_limited_wait: float = 0.0
    server_error: float = 0.0
    hang: float = 0.0
    cut: float = 0.0
    truncated_json: float = 0.0
    invalid_json: float = 0.0
    empty: float = 0.0
    wrong_model: float = 0.0
    drip: float = 0.0
    ignored: float = 0.0
    oversized: float = 0.0
    redirect: float = 0.0

    def __post_init__(self) -> None:
        shares = {each.name: getattr(self, each.name) for each in fields(self)}
        if any(not 0 <= share <= 1 for share in shares.values()) or sum(shares.values()) > 1 + 1e-9:
            raise UserError(f"shares of faults lie in 0..1 and sum to at most 1, got {shares}")

    def at(self, draw: float) -> str:
        """The fault that a uniform draw in (0, 1) falls on; "" for none."""
        for each in fields(self):
            draw -= getattr(self, each.name)
            if draw < 0:
                return each.name
        return ""


class Spoilt(NamedTuple):
    """A reply that is sent unchanged."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


def graded(body: Mapping[str, Any]) -> str:
    """A judge's reply that depends on the prompt alone: two sentences and `Verdict: N`, N from 1 to 5."""
    level = int(prompt_of(body)[:4], 16) % 5 + 1
    return f"It answers what was asked. One step is left without support.\nVerdict: {level}"


def prompt_of(body: Mapping[str, Any]) -> str:
    """A fingerprint of the messages of a request, without a prefilled reply."""
    messages = body.get("messages") or []
    asked = [each for each in messages if each.get("role") != "assistant"]
    return hashlib.blake2b(orjson.dumps(asked), digest_size=16).hexdigest()


class FaultServer:
    """Use as a context manager; `spec` is what `--judge` takes.

    reply: the text, or a function from the request's body to it. latency: seconds before a reply. faults, seed: the
    injected faults. model: its name. logprobs, structured, continues: whether it supports these requests. split: labels
    consist of one-character tokens with separate blanks. sure: the probability of the text that it writes.
    rate: replies a second before 429, with `burst` at once. retry_after: seconds, or "date" for an HTTP date a second
    ahead. key: the bearer token that it requires. tls: a PEM file with a certificate and its key.
    most_in_flight: further requests are rejected with 429. spoil: changes a reply before it goes out. It is given the
    reply's value and the bearer token, and returns a value to send as JSON, bytes to send as they are, or a `Spoilt`.
    lists: whether `GET /v1/models` names the model. host: the loopback address that it listens at.

    Counted by prompt, each as the way it was asked (`ask`, `continue`, `constrain`) and its fingerprint (`prompt_of`):
    `tries` that came in, `billed` replies that were generated, `answered` ones that went out whole and right to a
    client that was still there. `faulted` counts faults by name, `seen_keys` the bearer tokens.
    """

    def __init__(
        self,
        reply: str | Callable[[Mapping[str, Any]], str] = graded,
        *,
        latency: float = 0.0,
        faults: Faults | None = None,
        seed: int = 0,
        model: str = "judge",
        logprobs: bool = True,
        structured: bool = True,
        continues: bool = True,
        split: bool = False,
        sure: float = _SURE,
        rate: float = math.inf,
        burst: int = 10,
        most_in_flight: int | None = None,
        retry_after: float | Literal["date"] = 0.05,
        key: str = "",
        tls: Path | None = None,
        oversize: int = 50_000_000,
        port: int = 0,
        spoil: Callable[[dict[str, Any], str], Any] | None = None,
        lists: bool = False,
        host: str = "127.0.0.1",
    ) -> None:
        self.reply = reply if callable(reply) else (lambda body: str(reply))
        self.latency, self.faults, self.seed, self.model = latency, faults or Faults(), seed, model
        self.logprobs, self.structured, self.continues = logprobs, structured, continues
        self.split, self.sure = split, sure
        self.rate, self.burst, self.most_in_flight = rate, burst, most_in_flight
        self.retry_after, self.key, self.tls, self.oversize = retry_after, key, tls, oversize
        self.port, self.spoil, self.lists, self.host = port, spoil, lists, host
        self.tries: Counter[str] = Counter()
        self.billed: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.faulted: Counter[str] = Counter()
        self.seen_keys: Counter[str] = Counter()
        self.bodies: list[Mapping[str, Any]] = []  # the last few requests
        self.in_flight = self.most_seen = 0
        self._tokens, self._filled = float(burst), time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._released = asyncio.Event()
        self._stopped = False

    @property
    def url(self) -> str:
        """The base URL, `/v1` included."""
        return f"http{'s' if self.tls else ''}://{self.host}:{self.port}/v1"

    @property
    def spec(self) -> str:
        """The engine spec of the one model here."""
        return f"{self.url}#{self.model}"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="fault-server", daemon=True)
        self._thread.start()
        if not ready.wait(10):
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped = True
        self._loop.call_soon_threadsafe(self._released.set)
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join(10)

    def _run(self, ready: threading.Event) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(self._start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    async def _start(self) -> web.AppRunner:
        application = web.Application(client_max_size=256 * 2**20)
        application.router.add_post("/v1/chat/completions", self._chat)
        if self.lists:
            application.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        context = None
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls)
        site = web.TCPSite(runner, self.host, self.port, ssl_context=context, backlog=4096)
        await site.start()
        server = site._server
        assert isinstance(server, asyncio.Server)
        self.port = server.sockets[0].getsockname()[1]
        return runner

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.model, "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if self._stopped and request.transport is not None:  # an open connection, which a server that is gone has not
            request.transport.abort()
            return web.Response()
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.seen_keys[bearer] += 1
        if self.key and bearer != self.key:
            return _error(401, f"Incorrect API key provided: {bearer}")
        body = orjson.loads(await request.read())
        self.bodies = [*self.bodies[-7:], body]
        how = "constrain" if "structured_outputs" in body else "continue" if begun(body) else "ask"
        key = f"{how} {prompt_of(body)}"
        self.tries[key] += 1
        if body.get("model") != self.model:
            return _error(404, f"The model {body.get('model')!r} does not exist", "model_not_found")
        self.in_flight += 1
        self.most_seen = max(self.most_seen, self.in_flight)
        try:
            over = self.most_in_flight is not None and self.in_flight > self.most_in_flight
            if over or not self._within_rate():
                self.faulted["limit"] += 1
                return self._rejection()
            return await self._answer(request, body, key)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: web.Request, body: dict[str, Any], key: str) -> web.StreamResponse:
        fault = self.faults.at(_uniform(self.seed, key, self.tries[key]))
        if fault:
            self.faulted[fault] += 1
        if fault == "rate_limited":
            return _error(429, "Rate limit reached", "rate_limit_exceeded")
        if fault == "rate_limited_wait":
            return self._rejection()
        if fault == "redirect":
            return web.Response(status=307, headers={"Location": "https://elsewhere.invalid/v1/chat/completions"})
        if self.latency:
            await asyncio.sleep(self.latency)
        if fault == "server_error":
            return _error(500, "Internal server error")
        self.billed[key] += 1
        if fault == "hang":
            await self._released.wait()
        text = "" if fault == "empty" else self.reply(body)
        value = self._completion(body, text, obeys=fault != "ignored", wrong=fault == "wrong_model")
        if self.spoil is not None:
            self.answered[key] += 1
            return _spoilt(self.spoil(value, request.headers.get("Authorization", "").removeprefix("Bearer ")))
        raw = orjson.dumps(value)
        if fault == "invalid_json":
            raw = b"<html><body>502 Bad Gateway</body></html>"
        if fault == "truncated_json":
            raw = raw[: len(raw) // 2]
        if fault in ("cut", "drip", "oversized"):
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            with contextlib.suppress(ConnectionError):  # the client has disconnected
                await self._in_parts(request, response, raw, fault)
                self.answered[key] += fault == "drip"
            return response
        gone = request.transport is None or request.transport.is_closing()
        if fault in ("", "ignored", "empty") and not gone:
            self.answered[key] += 1
        return web.Response(body=raw, content_type="application/json")

    async def _in_parts(self, request: web.Request, response: web.StreamResponse, raw: bytes, fault: str) -> None:
        if fault == "cut":
            response.content_length = len(raw)
        await response.prepare(request)
        if fault == "cut":
            await response.write(raw[: len(raw) // 2])
            if request.transport is not None:
                request.transport.abort()
            return
        if fault == "oversized":
            block = b" " * 2**20
            for _ in range(self.oversize // len(block) + 1):
                await response.write(block)
        step = max(1, len(raw) // 8)
        for at in range(0, len(raw), step):
            await response.write(raw[at : at + step])
            await asyncio.sleep(0.01 if fault == "drip" else 0)
        await response.write_eof()

    def _within_rate(self) -> bool:
        if self.rate == math.inf:
            return True
        now = time.monotonic()
        self._tokens = min(self.burst, self._tokens + (now - self._filled) * self.rate)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _rejection(self) -> web.Response:
        wait = self.retry_after
        text = email.utils.formatdate(time.time() + 1, usegmt=True) if wait == "date" else f"{wait:g}"
        return _error(429, "Rate limit reached", "rate_limit_exceeded", {"Retry-After": text})

    def _completion(self, body: Mapping[str, Any], text: str, *, obeys: bool, wrong: bool) -> dict[str, Any]:
        so_far = begun(body)
        goes_on = bool(so_far) and self.continues and obeys and bool(body.get("continue_final_message"))
        if goes_on and text:
            text = after(text, so_far)
        choices = (body.get("structured_outputs") or {}).get("choice")
        if (
            text
            and choices
            and self.structured
            and obeys
            and text.strip() not in [choice.strip() for choice in choices]
        ):
            text = choices[0]
        if text and body.get("response_format") and self.structured and obeys:
            text = as_json(text, body["response_format"])
        written = tokens(text, split=self.split)
        most = body.get("max_tokens") or body.get("max_completion_tokens") or len(written)
        finish = "length" if len(written) > most else "stop"
        written = written[:most]
        text = b"".join(written).decode("utf-8", "ignore")
        logprobs = None
        if self.logprobs and obeys and body.get("logprobs"):
            content = [entry(token, int(body.get("top_logprobs") or 0), self.sure) for token in written]
            logprobs = {"content": content}
        if goes_on and body.get("echo"):
            text = so_far + text
        asked = sum(len(str(message.get("content"))) for message in body["messages"]) // 4
        return {
            "id": "chatcmpl-fault",
            "object": "chat.completion",
            "model": "another-model" if wrong else self.model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": finish,
                    "logprobs": logprobs,
                }
            ],
            "usage": {
                "prompt_tokens": asked,
                "completion_tokens": len(written),
                "prompt_tokens_details": {"cached_tokens": asked // 2},
            },
        }


def _spoilt(made: Any) -> web.Response:
    made = made if isinstance(made, Spoilt) else Spoilt(made)
    raw = made.body if isinstance(made.body, bytes) else json.dumps(made.body).encode()
    return web.Response(status=made.status, body=raw, content_type="application/json", headers=made.headers)


def _uniform(*about: object) -> float:
    digest = hashlib.blake2b(repr(about).encode(), digest_size=8).digest()
    return ((int.from_bytes(digest) >> 11) + 0.5) / 2**53


def _error(status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None) -> web.Response:
    error = {"message": message, "type": "error", "code": code or None}
    return web.Response(
        status=status, body=orjson.dumps({"error": error}), content_type="application/json", headers=headers
    )
