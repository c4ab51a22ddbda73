"""The engine of models behind an OpenAI-compatible server."""

import importlib.metadata
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dikast.core.errors import EngineError, UserError
from dikast.engines.base import Closing, Completion, Engine, Request
from dikast.engines.budget import Budget
from dikast.engines.http.answer import Answers
from dikast.engines.http.body import OPTIONAL, Bodies, ModelSampling, beginning
from dikast.engines.http.event_loop import EventLoopThread, Flow, Job, Lane, OneLane
from dikast.engines.http.limit import Limit
from dikast.engines.http.prices import Price, default_table, price_of
from dikast.engines.http.providers import PLAIN, Provider
from dikast.engines.http.retrying import About, Asks, Desk, Reads
from dikast.engines.http.sanitise import VERSION
from dikast.engines.http.server_settings import Address, ServerSettings, check_key, extra_fields
from dikast.engines.http.transport import Transport


class Contract(NamedTuple):
    """The protocol of a server: where requests go, and the format of requests and replies."""

    url: str
    asks: Asks
    reads: Reads
    models: str = ""


class Waits(NamedTuple):
    """Seconds that requests were made to wait: timeouts that ran out, `Retry-After`, back-off; waits overlap."""

    longest: float
    """Of any one request, all its tries together: no run that meets these faults can be shorter."""
    total: float
    """Of all requests together."""


def transport_to(url: str, settings: ServerSettings, provider: Provider, key: str, host: str = "") -> Transport:
    """The connection to one server; `host` is its host name if the URL holds an IP address."""
    return Transport(
        url,
        key=key,
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        most_mb=settings.max_reply_mb,
        ca=settings.ca,
        key_header=provider.key_header,
        headers=provider.headers,
        host=host,
    )


class HttpEngine(Closing):
    """A model behind `POST {url}/chat/completions`, or behind another API of the provider.

    Errors have these kinds: `timeout`, `connection`, `rate_limited`, `overloaded`, `server_error`, `bad_response`,
    `wrong_model`, `too_large`, `redirect`, `certificate`, `tls`, `auth`, `quota`, `not_found`, `context_length`,
    `bad_request`, `bad_media`, and `unreachable` for what was not sent since all that was sent before it had failed.
    What a wrong key or address would fail for every request is sent no more either, and keeps its kind. Such errors
    have `sent` false where nothing of the request was sent. `noticed` counts what the server was asked for and did not
    do.
    """

    def __init__(
        self,
        address: Address,
        settings: ServerSettings,
        *,
        key: str = "",
        name: str = "",
        contract: Contract | None = None,
        provider: Provider = PLAIN,
        spec: str = "",
    ) -> None:
        self.name, self._spec = name or str(address), spec
        self.address, self.settings = address, settings
        check_key(key)
        self._extra = extra_fields(settings.extra)
        self.provider = provider.for_model(address.model, self._extra)
        self.price = price_of(address.model, settings.prices, provider.prices)
        self._begin(contract or self._contract(), key)
        self._finalizer = weakref.finalize(self, self._loop_thread.close)

    def _begin(self, contract: Contract, key: str) -> None:
        """Set up the way to the server."""
        url, asks, reads, models = contract
        transport = transport_to(url, self.settings, self.provider, key)
        reads.scrub = transport.scrub
        about = About(self.provider, self.address.model, models or f"{self.address.url}/models")
        self._desk = Desk(transport, asks, reads, self.settings, about)
        routes = OneLane(Lane(self._desk.work, Limit(self.settings.concurrency)))
        self._loop_thread = EventLoopThread(routes, opening=transport.open, closing=transport.close)

    def _contract(self) -> Contract:
        """The protocol of the provider."""
        address, provider, top = self.address, self.provider, self.settings.top_logprobs
        answers = Answers(address.model, self.settings.served_as, self.price, self.name, known=provider.lacks)
        answers.own_names, answers.reports_cost = provider.own_names, provider.reports_cost
        answers.spec = self._spec
        unknown = False if "continuation" in provider.lacks else None
        answers.continues = {"yes": True, "no": False, "auto": unknown}[self.settings.continues]
        if provider.wire == "messages":
            from dikast.engines.http import anthropic

            answers.as_chat, answers.shape = anthropic.as_chat, "a list of content blocks"
            base = address.url.removesuffix("/v1")
            asks = anthropic.MessagesBodies(address.model, self._extra, sampling=self._sampling)
            return Contract(f"{base}/v1/messages", asks, answers, f"{base}/v1/models")
        if provider.wire == "gemini":
            from dikast.engines.http import gemini

            answers.as_chat, answers.shape = gemini.as_chat, "candidates[0]"
            base = address.url.removesuffix("/v1beta")
            top = 0 if "logprobs" in provider.lacks else top
            bodies = gemini.GeminiBodies(address.model, top, self._extra, sampling=self._sampling)
            return Contract(gemini.url_of(base, address.model), bodies, answers, f"{base}/v1beta/models")
        chat = Bodies(address.model, top, self._extra, continues=lambda: answers.continues, sampling=self._sampling)
        chat.refused = provider.lacks & OPTIONAL.keys()
        return Contract(address.chat, chat, answers)

    @property
    def _sampling(self) -> ModelSampling:
        """How the model samples, as far as requests cannot say it."""
        lacks = self.provider.lacks
        return ModelSampling("temperature" in lacks, self.provider.thinking, "top_p" in lacks)

    @property
    def thinking(self) -> int:
        """Tokens that every request allows for reasoning, in addition to those of the reply."""
        return self.provider.thinking

    @property
    def price_unknown(self) -> bool:
        """Whether replies may cost an unknown amount of money: not a local server, and without a price."""
        return self.price is None and not self.provider.start and not self.provider.reports_cost

    @property
    def free(self) -> bool:
        """Whether replies cost no money: a server of one's own, without a price."""
        return self.price is None and bool(self.provider.start) and not self.provider.reports_cost

    @property
    def cannot(self) -> Mapping[str, str]:
        """What provider and model are known not to support, by name, each with the consequence."""
        return self.provider.cannot()

    def __repr__(self) -> str:
        return f"HttpEngine({self.name!r})"

    @property
    def noticed(self) -> Mapping[str, int]:
        """How often the server did not do what was requested, by name."""
        return dict(self._desk.answers.noticed)

    @property
    def waits(self) -> Waits:
        """How long requests waited before another try, since the engine was opened."""
        return Waits(self._desk.longest_wait, self._desk.waited)

    @property
    def gave_up(self) -> EngineError | None:
        """Why nothing more is sent to a server that has never answered."""
        return self._desk.gave_up

    @property
    def status(self) -> str:
        """The reason for waiting before another try, for people; "" while answers arrive."""
        return self._desk.status

    @property
    def queued(self) -> int:
        """How many requests were pulled and wait until there is room to send them."""
        return self._loop_thread.queued

    @property
    def in_flight(self) -> int:
        """The current maximum of requests in flight."""
        return self._loop_thread.limit

    def close(self) -> None:
        """Close all connections and end the engine's thread; this happens automatically when the engine is
        garbage-collected.
        """
        self._finalizer()

    def identity(self) -> Mapping[str, Any]:
        """The server's address (or the name given to it), the model, what is added to requests, and what was left out
        of the sampling that they ask for. Never a key.
        """
        wire = {} if self.provider.wire == "chat" else {"wire": self.provider.wire}
        how = self._sampling
        sampled = {"sampled": {"temperature": None, "thinking": how.thinking}} if how.own else {}
        return {
            "engine": "http",
            **wire,
            **sampled,
            "server": self.settings.server or self.address.url,
            "model": self.address.model,
            "extra": self._extra,
            "continues": self.settings.continues,
            "top_logprobs": self.settings.top_logprobs,
            "inert": VERSION,
        }

    def versions(self) -> Mapping[str, str]:
        """The version of aiohttp."""
        return {"aiohttp": importlib.metadata.version("aiohttp")}

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers in order of arrival. Requests are pulled here, in the caller's thread, a little ahead of the limit.

        Those that are pulled together are sent in the order of their texts and pictures, so that prompts with a common
        prefix find it in the server's prefix cache. If `requests` raises, what was sent is still answered first, as it
        is paid for.
        """
        if not self._finalizer.alive:
            raise UserError(f"{self.name}: this engine is closed; open it again")
        self._loop_thread.start()
        self._ready()
        flow, source = Flow(), iter(requests)
        pending: list[Completion] = []
        torn: Exception | None = None
        ended = False
        try:
            while True:
                if not ended and self._wants(flow, len(pending)):
                    jobs: list[Job] = []
                    ahead = flow.low * 2 - flow.waiting
                    while len(jobs) < ahead:
                        try:
                            request = next(source)
                        except StopIteration:
                            ended = True
                            break
                        except Exception as error:
                            torn, ended = error, True
                            break
                        job = self._desk.job(request, flow)
                        if isinstance(job, Job):
                            jobs.append(job)
                        else:
                            pending.insert(0, job)
                            break
                    if ended:
                        flow.low = 0
                    if jobs:
                        jobs.sort(key=lambda job: beginning(job.request))
                        flow.submitted += len(jobs)
                        self._loop_thread.submit(jobs)
                if pending:
                    yield pending.pop()
                    continue
                if flow.delivered < flow.submitted:
                    pending = self._loop_thread.take(flow)
                elif ended:
                    break
            if torn is not None:
                raise torn
        finally:
            if flow.delivered < flow.submitted:
                self._loop_thread.abandon(flow)

    def _ready(self) -> None:
        """Called before the first request of a stream, when the loop runs."""

    def _wants(self, flow: Flow, pending: int) -> bool:
        """Whether more requests should be pulled; sets how few may wait before the loop asks for more."""
        limit, most = self._loop_thread.limit, self._loop_thread.most
        flow.low = limit // 2 + 4
        held = min(3 * limit + self._loop_thread.idle, 3 * most) + 32
        return flow.waiting < flow.low and flow.submitted - flow.delivered + pending < held


def within_budget(engine: Engine, settings: ServerSettings, price: Price | None) -> Engine:
    """The engine under the budget of its settings, if they set one; UserError for money without a price."""
    if (settings.calls, settings.tokens, settings.money) == (None, None, None):
        return engine
    if settings.money is not None and price is None:
        raise UserError(
            f"{engine.name}: a budget in money needs the price of this model: write it into {default_table()},"
            " or name another table with prices=FILE"
        )
    return Budget(engine, calls=settings.calls, tokens=settings.tokens, money=settings.money)
