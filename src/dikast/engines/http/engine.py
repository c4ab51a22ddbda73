"""The engine of models behind an OpenAI-compatible server."""

import importlib.metadata
import os
import random
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from dikast.core.errors import EngineError, UserError
from dikast.core.secrets import Scrubber, whole
from dikast.core.verdict import Usage
from dikast.engines.base import Closing, Completion, Engine, Request
from dikast.engines.budget import Budget
from dikast.engines.http.answer import Answers
from dikast.engines.http.body import OPTIONAL, Bodies, Form
from dikast.engines.http.event_loop import EventLoopThread, Flow, Job, Later
from dikast.engines.http.failure import Failure, failure_of, refused_parameter
from dikast.engines.http.limit import Limit
from dikast.engines.http.prices import Price, default_table, price_of
from dikast.engines.http.sanitise import VERSION
from dikast.engines.http.server_settings import Address, ServerSettings, address_of, check_key, extra_fields, key_from
from dikast.engines.http.transport import Transport
from dikast.engines.options import read_options

_LONGEST_BACKOFF = 30.0
_BRIEF = ("timeout", "bad_response", "wrong_model")  # waiting longer before these are asked again does not help
_REJECTIONS = 5  # times `retries` is how often one request may be turned away before it fails
_ROW = 64  # requests in a row that may fail for good before the rest of a stream is not sent; fewer at the start
_BROAD = ("timeout", "connection", "server_error", "rate_limited", "overloaded", "wrong_model", "bad_response")
_UNUSABLE = 4  # further tries after replies that were paid for and cannot be used; 1 before any could be


class Asks(Protocol):
    """Makes the bodies of requests. `refused` names optional parts that the server would not take."""

    refused: frozenset[str]

    def make(self, request: Request, form: Form) -> list[bytes]:
        """The body in pieces; EngineError when the request cannot be asked."""
        ...

    def fields(self, request: Request, form: Form) -> Mapping[str, Any]:
        """What of the body may be left out when the server complains of it."""
        ...


class Reads(Protocol):
    """Reads the replies. `noticed` counts what the server was asked for and did not do."""

    noticed: Counter[str]
    continues: bool | None
    scrub: Scrubber

    def notice(self, what: str) -> None:
        """Count something missing, and report it the first time."""
        ...

    def read(self, request: Request, form: Form, raw: bytes, seconds: float) -> Completion | None:
        """The completion in a 200 reply; None to ask once more in the plain form. Failure if it holds no answer."""
        ...


class Contract(NamedTuple):
    """What is spoken with a server: where requests go, and how they and their replies are spelt."""

    url: str
    asks: Asks
    reads: Reads


class Waits(NamedTuple):
    """Seconds that requests were made to wait: timeouts that ran out, `Retry-After`, back-off; waits overlap."""

    longest: float
    """Of any one request, all its tries together: no run that meets these faults can be shorter."""
    total: float
    """Of all requests together."""


class HttpEngine(Closing):
    """A model behind `POST {url}/chat/completions`.

    Errors have these kinds: `timeout`, `connection`, `rate_limited`, `overloaded`, `server_error`, `bad_response`,
    `wrong_model`, `too_large`, `redirect`, `certificate`, `tls`, `auth`, `quota`, `not_found`, `context_length`,
    `bad_request`, `bad_media`, and `unreachable` for what was not sent since all that was sent before it had failed.
    What a wrong key or address would fail for every request is sent no more either, and keeps its kind.
    `noticed` counts what the server was asked for and did not do.
    """

    def __init__(
        self,
        address: Address,
        settings: ServerSettings,
        *,
        key: str = "",
        name: str = "",
        contract: Contract | None = None,
    ) -> None:
        self.name = name or str(address)
        self.address, self.settings = address, settings
        check_key(key)
        self._extra = extra_fields(settings.extra)
        self.price = price_of(address.model, settings.prices)
        url, asks, reads = contract or self._chat()
        transport = Transport(
            url,
            key=key,
            timeout=settings.timeout,
            connect_timeout=settings.connect_timeout,
            most_mb=settings.max_reply_mb,
            ca=settings.ca,
        )
        reads.scrub = transport.scrub
        self._desk = _Desk(transport, asks, reads, settings)
        work, limit = self._desk.work, Limit(settings.concurrency)
        self._loop_thread = EventLoopThread(work, limit, opening=transport.open, closing=transport.close)
        self._finalizer = weakref.finalize(self, self._loop_thread.close)

    def _chat(self) -> Contract:
        answers = Answers(self.address.model, self.settings.served_as, self.price, self.name)
        answers.continues = {"yes": True, "no": False, "auto": None}[self.settings.continues]
        top = self.settings.top_logprobs
        bodies = Bodies(self.address.model, top, self._extra, continues=lambda: answers.continues)
        return Contract(self.address.chat, bodies, answers)

    def __repr__(self) -> str:
        return f"HttpEngine({self.name!r})"

    @property
    def noticed(self) -> Mapping[str, int]:
        """How often the server did not do what it was asked for, by what that was."""
        return dict(self._desk.answers.noticed)

    @property
    def waits(self) -> Waits:
        """How long requests waited before another try, since the engine was opened."""
        return Waits(self._desk.longest_wait, self._desk.waited)

    @property
    def in_flight(self) -> int:
        """The most requests that may be in flight just now."""
        return self._loop_thread.limit.value

    def close(self) -> None:
        """Close all connections and end the engine's thread; done by itself when the engine is no longer used."""
        self._finalizer()

    def identity(self) -> Mapping[str, Any]:
        """The server's address (or the name given to it), the model, and what is added to requests. Never a key."""
        return {
            "engine": "http",
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

        If `requests` raises, what was sent is still answered first, as it is paid for.
        """
        if not self._finalizer.alive:
            raise UserError(f"{self.name}: this engine is closed; open it again")
        self._loop_thread.start()
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

    def _wants(self, flow: Flow, pending: int) -> bool:
        """Whether more requests should be pulled; sets how few may wait before the loop asks for more."""
        limit, most = self._loop_thread.limit.value, self._loop_thread.limit.most
        flow.low = limit // 2 + 4
        held = min(3 * limit + self._loop_thread.idle, 3 * most) + 32
        return flow.waiting < flow.low and flow.submitted - flow.delivered + pending < held


class _Desk:
    """Works one job at a time: sends it, reads the reply, decides whether to try again."""

    def __init__(self, transport: Transport, bodies: Asks, answers: Reads, settings: ServerSettings) -> None:
        self.transport, self.bodies, self.answers, self.settings = transport, bodies, answers, settings
        self.answered = 0  # requests that this server has answered
        self.longest_wait = self.waited = 0.0
        self._jitter = random.Random()  # spreads retries over time; no result depends on it

    def job(self, request: Request, flow: Flow) -> Job | Completion:
        """The request made ready to send, or the completion that says why it cannot be."""
        form = self._form(request)
        try:
            return Job(request, form, self.bodies.make(request, form), flow)
        except EngineError as error:
            return Completion(request.key, finish="error", error=error)
        except Exception as error:  # a request that surprises us must not end the stream of all others
            told = EngineError(f"{type(error).__name__} while the request was made: {error}", kind="internal")
            return Completion(request.key, finish="error", error=told)

    async def work(self, job: Job) -> Completion | Later:
        """One try; never raises but for cancellation. Every completion leaves through here, without the key."""
        outcome = await self._tried(job)
        return outcome if isinstance(outcome, Later) else clean(outcome, self.transport.scrub)

    async def _tried(self, job: Job) -> Completion | Later:
        if job.flow.verdict_on_all is not None:
            told = f"not sent, as what was sent before failed: {job.flow.verdict_on_all}"
            return self._failed(job, Failure(job.flow.verdict_on_all.kind, told, retryable=True), count=False)
        now = time.monotonic()
        job.began = job.began or now
        try:
            reply = await self.transport.post(job.body)
            if reply.status == 200:
                found = self.answers.read(job.request, job.form, reply.raw, time.monotonic() - job.began)
                if found is None:
                    return self._plainly(job)
                self.answered += 1
                job.flow.consecutive = 0
                return found
            failure = failure_of(reply.status, reply.headers, reply.raw, self.transport.where, self.transport.scrub)
            if self._concedes(job, failure, reply.status):
                return Later(0.0)
        except Failure as caught:
            failure = caught
        except Exception as error:  # a fault of ours must not take other requests down
            failure = Failure("internal", self.transport.scrub.quote(f"{type(error).__name__}: {error}"))
        if failure.refusal:
            job.flow.consecutive = 0
            return Completion(job.request.key, refusal=failure.refusal)
        if failure.kind == "timeout":
            self._note_wait(job, min(time.monotonic() - now, self.settings.timeout))
        outcome = self._retried(job, failure)
        if isinstance(outcome, Later):
            self._note_wait(job, outcome.seconds)
        return outcome

    def _note_wait(self, job: Job, seconds: float) -> None:
        job.waited += seconds
        self.waited += seconds
        self.longest_wait = max(self.longest_wait, job.waited)

    def _retried(self, job: Job, failure: Failure) -> Completion | Later:
        job.tries += 1
        if failure.rejected:
            job.rejections += 1
        faults = job.tries - job.rejections
        unusable = failure.kind in ("bad_response", "wrong_model") and faults > (_UNUSABLE if self.answered else 1)
        spent = faults > self.settings.retries or job.rejections > _REJECTIONS * self.settings.retries
        if not failure.retryable or spent or unusable:
            return self._failed(job, failure)
        nth = job.rejections if failure.rejected else faults
        brief = failure.brief or failure.kind in _BRIEF
        spread = min(_LONGEST_BACKOFF, self.settings.backoff * (0.2 if brief else 1.0) * 2 ** min(nth - 1, 16))
        if failure.wait is None:
            return Later(spread * self._jitter.uniform(0.5, 1.5), failure.rejected)
        if failure.wait > self.settings.max_wait:
            told = f"{failure.message}; it asks to wait {failure.wait:,.0f} s (max_wait raises what is obeyed)"
            return self._failed(job, Failure(failure.kind, told, retryable=True))
        return Later(failure.wait + self._jitter.uniform(0, 0.1 * failure.wait + 0.1 * spread), failure.rejected)

    def _failed(self, job: Job, failure: Failure, *, count: bool = True) -> Completion:
        flow = job.flow
        if count:
            flow.consecutive = flow.consecutive + 1 if failure.hopeless or failure.kind in _BROAD else 0
            most = (
                _ROW if self.answered and not failure.hopeless else 1 if not self.answered and failure.hopeless else 8
            )
            if flow.consecutive >= most and flow.verdict_on_all is None:
                kind = failure.kind if failure.hopeless else "unreachable"
                flow.verdict_on_all = EngineError(failure.message, kind=kind)
        usage = failure.usage or Usage()
        return Completion(job.request.key, failure.text, finish="error", usage=usage, error=failure.error(job.tries))

    def _form(self, request: Request) -> Form:
        asks = bool(request.prefill) or (request.readout is not None and not request.readout.generate)
        return "continue" if asks and self.answers.continues is not False else "plain"

    def _plainly(self, job: Job) -> Completion | Later:
        """Ask a question again whose reply did not go on after the marker."""
        try:
            job.form, job.body = "plain", self.bodies.make(job.request, "plain")
        except EngineError as error:
            return Completion(job.request.key, finish="error", error=error)
        return Later(0.0)

    def _concedes(self, job: Job, failure: Failure, status: int) -> bool:
        """Leave out an optional part that the server complains of; True if the job is ready to be sent again."""
        fields = self.bodies.fields(job.request, job.form)
        sent = {
            name: keys for name, keys in OPTIONAL.items() if any(f'"{key}":'.encode() in job.body[0] for key in keys)
        }
        name = refused_parameter(failure, status, sent) if failure.kind == "bad_request" else None
        if name is None or job.conceded >= len(OPTIONAL):
            return False
        job.conceded += 1
        if name not in self.bodies.refused:
            self.bodies.refused |= {name}
            self.answers.notice(name)
        if name == "continuation":
            self.answers.continues = False
        job.form = self._form(job.request)
        if self.bodies.fields(job.request, job.form) == fields and job.conceded > 1:
            return False
        job.body = self.bodies.make(job.request, job.form)
        return True


def clean(done: Completion, scrub: Scrubber) -> Completion:
    """The completion without the secrets that `scrub` knows, and with nothing in it that could not be written down."""
    if done.error is not None:
        told = scrub(whole(str(done.error)))
        error = EngineError(told, kind=done.error.kind, retryable=done.error.retryable)
        return replace(done, error=error, text=scrub(whole(done.text)))
    if not scrub:
        return done
    text, refusal, unread = scrub(done.text), scrub(done.refusal), scrub(done.unread)
    if text is done.text and refusal is done.refusal and unread is done.unread:
        return done
    return replace(done, text=text, refusal=refusal, unread=unread)


def open_http(target: str, **options: Any) -> Engine:
    """`http://HOST[:PORT]/v1#MODEL`, from the spec's part after `http:`."""
    return _open(f"http:{target}", options)


def open_https(target: str, **options: Any) -> Engine:
    """`https://HOST/v1#MODEL`, from the spec's part after `https:`."""
    return _open(f"https:{target}", options)


def open_openai(target: str, **options: Any) -> Engine:
    """`openai:MODEL`: the server that OPENAI_BASE_URL names, or OpenAI's own, with the key in OPENAI_API_KEY."""
    base = os.environ.get("OPENAI_BASE_URL", "").strip().rstrip("/") or "https://api.openai.com/v1"
    return _open(f"{base}#{target}", {"key_env": "OPENAI_API_KEY", **options}, name=f"openai:{target}")


def _open(text: str, options: Mapping[str, Any], *, name: str = "") -> Engine:
    address = address_of(text)  # first, as it refuses addresses that must not be repeated in messages
    settings = ServerSettings(**read_options(options, ServerSettings.known(), where=name or str(address)))
    engine = HttpEngine(address, settings, key=key_from(settings.key_env), name=name)
    return within_budget(engine, settings, engine.price)


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
