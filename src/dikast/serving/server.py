"""The HTTP server: routes, authorisation, shutdown.

Requests are read and answered in one event loop; the judge runs in its own thread (`rewards.dynamic_batching`), which
batches the questions of all clients.
"""

import asyncio
import hmac
import logging
import math
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from aiohttp import web

from dikast.core.errors import DataError, DikastError, RunError, UserError
from dikast.core.text import hint
from dikast.engines.wrapper import found_in
from dikast.ranking.comparisons import VALUES
from dikast.ranking.rank_file import check_values
from dikast.ranking.rank_options import RankOptions
from dikast.ranking.schedules import schedule_named
from dikast.rewards.reward import Scored
from dikast.rewards.trainers import Missing, openrlhf_answer, reply_of
from dikast.serving import contracts
from dikast.serving.delivery import LOOPBACK, TAKE_SECONDS, delivered, host_name, server_log, tell_once
from dikast.serving.front_desk import Desk, check_questions
from dikast.serving.messages import Allowed, Refused, check_rewards, items_of, parsed

_log = logging.getLogger(__name__)
_JSON = {"Content-Type": "application/json"}
_STUCK = (
    "the server cannot go on, and its log says why. Who runs it can mend a damaged folder of verdicts: stop the server,"
    " `dikast doctor FOLDER --repair`, and start it again"
)
Handler = Callable[[Mapping[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Door:
    """Address, token and limits of a server. UserError for an address beyond loopback without a token."""

    host: str = "127.0.0.1"
    port: int = 8080
    token: str = ""
    most_bytes: int = 32 * 2**20
    body_seconds: float = 30.0
    idle_seconds: float = 75.0  # seconds before a connection without complete request headers is closed
    take_seconds: float = TAKE_SECONDS  # that a client has to take an answer
    stop_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.host not in LOOPBACK and not self.token:
            raise UserError(
                f"--host {self.host} can be reached from other machines: name the variable that holds the token which"
                " clients must send with --token-env NAME, or listen on 127.0.0.1"
            )


class Server:
    """A judge behind HTTP. `missing` and `separator` are for `/get_reward`: see `docs/serving.md`."""

    def __init__(
        self, desk: Desk, allowed: Allowed, door: Door, *, missing: Missing = "raise", separator: str = ""
    ) -> None:
        self.desk, self.allowed, self.door = desk, allowed, door
        self.missing, self.separator = missing, separator
        self.requests: Counter[tuple[str, int]] = Counter()
        self.port = door.port
        self.stopping = asyncio.Event()
        self._runner: web.ServerRunner | None = None
        self._routes: dict[tuple[str, str], Callable[[web.BaseRequest], Awaitable[web.Response]]] = {}

    async def start(self) -> None:
        """Start listening; if `port` is 0, it is then the one that the system chose."""
        posts: dict[str, Handler] = {
            "/v1/score": self.score, "/v1/compare": self.compare, "/v1/rank": self.rank,
            "/get_reward": self.get_reward, "/v1/decisions": self.decisions, "/v1/systemone": self.systemone,
            "/v1/chat/completions": self.chat,
        }  # fmt: skip
        self._routes = {("POST", path): self._answering(path, handler) for path, handler in posts.items()}
        self._routes["GET", "/v1/models"] = self._answering("/v1/models", self.models)
        self._routes["GET", "/health"], self._routes["GET", "/metrics"] = self._health, self._metrics
        low_level = web.Server(
            self._deliver, request_factory=self._request, handler_cancellation=True, access_log=None,
            logger=server_log(__name__),
            keepalive_timeout=self.door.idle_seconds,
        )  # fmt: skip
        self._runner = web.ServerRunner(low_level, shutdown_timeout=self.door.stop_seconds)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.door.host, self.door.port, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise UserError(f"cannot listen on {self.door.host}:{self.door.port}: {error.strerror or error}") from None
        self.port = self._runner.addresses[0][1]
        tell_once(asyncio.get_running_loop())

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        most = self.door.most_bytes
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=most)

    async def _deliver(self, request: web.BaseRequest) -> web.StreamResponse:
        return await delivered(request, self._route, self.door.take_seconds)

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        """Routes by method and exact path: matching the patterns of an aiohttp app took a third of a request."""
        handler = self._routes.get((request.method, request.path))
        if handler is not None:
            return await handler(request)
        known = sorted({path for _, path in self._routes})
        other = [method for method, path in self._routes if path == request.path]
        refused = Refused(404, f"no such address: there are {', '.join(known)}")
        if other:
            refused = Refused(405, f"use {other[0]} here")
        self.requests["other", refused.status] += 1
        return web.Response(body=refused.body, status=refused.status, headers=_JSON)

    async def run(self, ready: Callable[[int], None] = lambda port: None) -> None:
        """Serve until SIGTERM or SIGINT, then answer the accepted requests and stop."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, ValueError):  # only possible in the main thread
                loop.add_signal_handler(name, self.stopping.set)
        await self.start()
        ready(self.port)
        await self.stopping.wait()
        await self.stop()

    async def stop(self) -> None:
        """Accept no more connections, answer the accepted requests (for at most `stop_seconds`), close."""
        self.stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()
        await asyncio.to_thread(self.desk.close)

    def _answering(self, path: str, handler: Handler) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
        """A JSON handler for aiohttp that checks authorisation and converts errors to answers."""

        async def answer(request: web.BaseRequest) -> web.Response:
            headers: dict[str, str] = _JSON
            try:
                self._check_token(request)
                body = parsed(await self._read(request)) if request.method == "POST" else {}
                raw, status = orjson.dumps(await handler(body), option=orjson.OPT_SERIALIZE_NUMPY), 200
            except Refused as refused:
                raw, status = refused.body, refused.status
                if refused.wait is not None:
                    headers = {**_JSON, "Retry-After": str(math.ceil(refused.wait))}
                if status == 401:
                    headers = {**_JSON, "WWW-Authenticate": "Bearer"}
            except web.HTTPRequestEntityTooLarge:
                told = f"a request has at most {self.door.most_bytes:,} bytes here"
                raw, status = Refused(413, told).body, 413
            except web.RequestPayloadError:
                raw, status = Refused(400, "the body is not what its headers say: it cannot be decoded").body, 400
            except DataError as error:
                raw, status = Refused(422, str(error), str(error.field or "")).body, 422
            except RunError as error:  # names folders of this machine
                _log.error("%s: %s", path, error)
                raw, status = Refused(503, _STUCK).body, 503
            except DikastError as error:
                raw, status = Refused(503, str(error)).body, 503
            except (asyncio.CancelledError, ConnectionError):
                self.requests[path, 499] += 1
                raise
            except Exception:
                _log.exception("%s failed", path)
                raw, status = Refused(500, "the server failed; its log says more").body, 500
            self.requests[path, status] += 1
            return web.Response(body=raw, status=status, headers=headers)

        return answer

    def _check_token(self, request: web.BaseRequest) -> None:
        if not self.door.token and ("Origin" in request.headers or host_name(request) not in LOOPBACK):
            # a page of another site, in a browser on this machine; under another name it is DNS rebinding
            raise Refused(403, "pages in a browser may not ask a server without a token: start it with --token-env")
        if self.door.token:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self.door.token.encode()):
                raise Refused(401, "send the token of this server: Authorization: Bearer TOKEN")

    async def _read(self, request: web.BaseRequest) -> bytes:
        if request.content_length is not None and request.content_length > self.door.most_bytes:
            raise Refused(413, f"a request has at most {self.door.most_bytes:,} bytes here")
        if request.content.is_eof():
            return await request.read()
        try:
            async with asyncio.timeout(self.door.body_seconds):
                return await request.read()
        except TimeoutError:
            raise Refused(408, f"the body did not arrive within {self.door.body_seconds:g} seconds") from None

    async def score(self, body: Mapping[str, Any]) -> Any:
        """`POST /v1/score`: the verdicts on each response."""
        items, several = items_of(body, self.allowed, 1)
        found = await self.desk.scores(items)
        return {"results": found} if several else found[0]

    async def compare(self, body: Mapping[str, Any]) -> Any:
        """`POST /v1/compare`: the preference of each pair of responses."""
        both = body.get("both_orders", True)
        if not isinstance(both, bool):
            raise Refused(422, f"expected true or false, got {both!r:.40}", "both_orders")
        items, several = items_of(body, self.allowed, 2, ("both_orders",))
        found = await self.desk.preferences(items, both_orders=both)
        return {"results": found} if several else found[0]

    async def rank(self, body: Mapping[str, Any]) -> Any:
        """`POST /v1/rank`: the order of an item's responses by a `schedule` of pairs, and `values` of a comparison."""
        schedule, values = body.get("schedule"), _named(body, "values", VALUES)
        try:
            by = schedule_named("full" if schedule is None else str(schedule))
        except UserError as error:
            raise Refused(422, str(error), "schedule") from None
        try:
            check_values(self.desk.judge, RankOptions(values=values or "auto"))
        except UserError as error:
            raise Refused(422, str(error), "values") from None
        items, several = items_of(body, self.allowed, 2, ("schedule", "values"))
        check_questions(sum(by.in_all(len(each.responses)) for each in items) * self.desk.judge.samples)
        found = []
        for i, each in enumerate(items):
            try:
                found.append(await self.desk.ranking(each, by.name, values))
            except UserError as error:
                raise Refused(422, str(error), f"items[{i}].responses" if several else "responses") from None
        told = [{**asdict(each), "left_out": {str(k): v for k, v in each.left_out.items()}} for each in found]
        return {"results": told} if several else told[0]

    async def get_reward(self, body: Mapping[str, Any]) -> Any:
        """`POST /get_reward`: rewards as OpenRLHF asks for them."""
        queries, prompts = check_rewards(body)
        if prompts is None:
            if not self.separator:
                told = "prompt and reply in one text cannot be separated: send prompts, or start with --separator"
                raise Refused(422, told, "prompts")
            prompts = [_prompt_in(each, self.separator, f"query[{i}]") for i, each in enumerate(queries)]
        items = []
        for i, (query, prompt) in enumerate(zip(queries, prompts, strict=True)):
            reply = reply_of(query, prompt, field=f"query[{i}]")
            items.append(self.allowed.item({"instruction": prompt, "response": reply}, f"query[{i}]"))
        scored = [_scored(each) for each in await self.desk.scores(items)]
        for i, each in enumerate(scored):
            if each.value is None and self.missing == "raise":
                told = f"the query has no verdict ({each.reason}), and rewards are numbers: improve the judge"
                raise Refused(502, f"{told}, or start the server with --missing NUMBER", f"query[{i}]")
        return openrlhf_answer(scored, self.missing)

    async def decisions(self, body: Mapping[str, Any]) -> Any:
        """`POST /v1/decisions`."""
        messages, offered = contracts.decisions_asked(body)
        completions = await self.desk.completions(contracts.requests_of(messages, offered))
        shares = [contracts.shares_of(*each) for each in zip(completions, offered, strict=True)]
        told = contracts.decisions_told(offered, shares)
        return {"answers": told, "model": self._model(body), "usage": contracts.usage_of(completions)}

    async def systemone(self, body: Mapping[str, Any]) -> Any:
        """`POST /v1/systemone`."""
        messages, offered = contracts.systemone_asked(body)
        completions = await self.desk.completions(contracts.requests_of(messages, offered))
        shares = [contracts.shares_of(*each) for each in zip(completions, offered, strict=True)]
        told = contracts.systemone_told(offered, shares)
        return {"answers": told, "model": self._model(body), "usage": contracts.usage_of(completions)}

    async def chat(self, body: Mapping[str, Any]) -> Any:
        """`POST /v1/chat/completions`, for a model that runs in this process."""
        kind, name = self.desk.judge.engine.identity().get("engine"), self.desk.judge.engine.name
        if kind in ("http", "decision"):
            raise Refused(404, "the judge's model runs on another server: ask that server for completions")
        if kind != "local":
            raise Refused(404, f"completions are those of a local model (hf:...), and this server's judge is {name}")
        asked = contracts.chat_asked(body)
        return contracts.chat_told(await self.desk.completions(asked.requests), asked.stop, self._model(body))

    async def models(self, body: Mapping[str, Any]) -> Any:
        """`GET /v1/models`."""
        return {
            "object": "list",
            "data": [{"id": self.desk.judge.engine.name, "object": "model", "owned_by": "dikast"}],
        }

    def _model(self, body: Mapping[str, Any]) -> str:
        return str(body.get("model") or self.desk.judge.engine.name)

    async def _health(self, request: web.BaseRequest) -> web.Response:
        """`GET /health`, without a token: 503 while the server stops, or after its judge has given up."""
        why = found_in(self.desk.judge.engine, "gave_up", None)
        state = "stopping" if self.stopping.is_set() else "judge gave up" if why is not None else "ok"
        body = {"status": state, "judge": self.desk.judge.engine.name, "pending": self.desk.pending}
        return web.Response(body=orjson.dumps(body), status=200 if state == "ok" else 503, headers=_JSON)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        """`GET /metrics` in the text form of Prometheus."""
        try:
            self._check_token(request)
        except Refused as refused:
            return web.Response(body=refused.body, status=refused.status, headers=_JSON)
        desk, lines = self.desk, []
        told: dict[str, tuple[str, dict[str, float]]] = {
            "dikast_requests_total": (
                "counter", {f'path="{path}",status="{status}"': n for (path, status), n in self.requests.items()}
            ),
            "dikast_verdicts_total": ("counter", {f'status="{status}"': n for status, n in desk.statuses.items()}),
            "dikast_known_total": ("counter", {"": desk.counts["known"]}),
            "dikast_asked_total": ("counter", {"": desk.gathering.asked}),
            "dikast_rounds_total": ("counter", {"": desk.gathering.rounds}),
            "dikast_pending": ("gauge", {"": desk.pending}),
        }  # fmt: skip
        for name, (kind, values) in told.items():
            lines.append(f"# TYPE {name} {kind}")
            lines += [
                f"{name}{{{labels}}} {value:g}" if labels else f"{name} {value:g}" for labels, value in values.items()
            ]
        return web.Response(text="\n".join(lines) + "\n", headers={"Content-Type": "text/plain; version=0.0.4"})


def _named(body: Mapping[str, Any], field: str, known: Collection[str]) -> Any:
    """One of the known names, or None where the field is absent."""
    value = body.get(field)
    if value is not None and not (isinstance(value, str) and value in known):
        raise Refused(422, f"{value!r:.40} is not known here; {hint(str(value), known)}", field)
    return value


def _prompt_in(query: str, separator: str, field: str) -> str:
    """The prompt of a query that holds the separator once; Refused (422) where its end is unknown."""
    at = query.find(separator)
    if at < 0:
        raise Refused(422, f"the query lacks the separator {separator!r}", field)
    if at != query.rfind(separator):
        told = f"the query has the separator {separator!r} more than once, so where its reply begins is unknown"
        raise Refused(422, f"{told}: send prompts", field)
    return query[: at + len(separator)]


def _scored(told: Mapping[str, Any]) -> Scored:
    failed = next((each for each in told["verdicts"] if each["status"] != "ok"), None)
    return Scored(told["goodness"], (), "" if failed is None else f"{failed['status']}: {failed['reason']}")
