"""The handling of one request: what is sent, what a reply or a failure means, whether it is retried."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol

import orjson

from dikast.core.errors import EngineError
from dikast.core.secrets import Scrubber, whole
from dikast.core.text import near_miss
from dikast.core.verdict import Usage
from dikast.engines.base import Completion, Request
from dikast.engines.http.body import Form
from dikast.engines.http.decode import decoded
from dikast.engines.http.event_loop import Flow, Job, Later
from dikast.engines.http.failure import Failure, failure_of, refused_parameter
from dikast.engines.http.providers import Provider, cure, is_respelt
from dikast.engines.http.server_settings import ServerSettings
from dikast.engines.http.transport import Transport

_LONGEST_BACKOFF = 30.0
_BRIEF = ("timeout", "bad_response", "wrong_model")  # failures for which a longer wait before the retry does not help
_REJECTIONS = 5  # multiplied by `retries`: how often one request may be rejected before it fails
_ROW = 64  # consecutive requests that may fail for good before the rest of a stream is not sent; fewer at the start
_BROAD = ("timeout", "connection", "server_error", "rate_limited", "overloaded", "wrong_model", "bad_response")
_UNREACHED = 5.0  # seconds of tries to connect to a server that has never answered
_LOOKS = 3.0  # seconds to look up which models a server has
_SHOWN = 8  # of them
_NAMES, _NAME = 1000, 100  # names of models that are looked at, and characters of each
_UNUSABLE = 4  # further tries after replies that were paid for and are unusable; 1 until one was usable


_NO_TEMPERATURE = (
    "sampling is never changed in silence: if this model takes no temperature, write it into the judge's spec,"
    ' ,extra={"temperature":null}, and if it reasons before it replies, allow for that, as with --max-tokens 26000'
)


class About(NamedTuple):
    """The server that a desk asks, as error messages name it.

    `is_model` says whether a name in the server's list is the model asked for.
    """

    provider: Provider
    model: str
    models_url: str
    is_model: Callable[[str], bool] = lambda name: True


class Asks(Protocol):
    """Makes the bodies of requests. `refused` names those `optional` parts (with their fields) that are not sent."""

    refused: frozenset[str]
    optional: Mapping[str, tuple[str, ...]]

    def make(self, request: Request, form: Form) -> list[bytes]:
        """The body in pieces; EngineError when the request cannot be asked."""
        ...


class Reads(Protocol):
    """Reads the replies. `noticed` counts what was requested of the server and not done."""

    noticed: Counter[str]
    continues: bool | None
    scrub: Scrubber

    def notice(self, what: str) -> None:
        """Count something missing, and report it the first time."""
        ...

    def read(self, request: Request, form: Form, raw: bytes, seconds: float) -> Completion | None:
        """The completion in a 200 reply; None to ask once more in the plain form. Failure if it holds no answer."""
        ...


class Desk:
    """Works one job at a time: sends it, reads the reply, decides whether to try again."""

    def __init__(
        self, transport: Transport, bodies: Asks, answers: Reads, settings: ServerSettings, about: About
    ) -> None:
        self.transport, self.bodies, self.answers, self.settings = transport, bodies, answers, settings
        self.about = about
        self.answered = 0  # requests that this server has answered
        self.gave_up: EngineError | None = None  # why nothing more is sent
        self.status = ""  # the reason for waiting before another try
        self._models: asyncio.Task[str] | None = None
        self.longest_wait = self.waited = 0.0
        self.elsewhere: Callable[[Job, Failure], Later | None] = lambda job, failure: None  # to another server
        self._jitter = random.Random()  # spreads retries over time; no result depends on it

    def job(self, request: Request, flow: Flow) -> Job | Completion:
        """The request made ready to send, or the completion that says why it cannot be."""
        form = self._form(request)
        try:
            return Job(request, form, self.bodies.make(request, form), flow)
        except EngineError as error:
            told = error
        except (orjson.JSONEncodeError, UnicodeEncodeError) as error:
            told = EngineError(f"the text cannot be sent as JSON: {error}", kind="bad_request")
        except Exception as error:  # an unexpected error of one request must not end the stream of all others
            told = EngineError(f"{type(error).__name__} while the request was made: {error}", kind="internal")
        return Completion(request.key, finish="error", error=told)

    async def work(self, job: Job) -> Completion | Later:
        """One try; raises nothing except cancellation. Every completion passes through here, where keys are removed."""
        outcome = await self._tried(job)
        return outcome if isinstance(outcome, Later) else clean(outcome, self.transport.scrub)

    async def _tried(self, job: Job) -> Completion | Later:
        if job.flow.verdict_on_all is not None:
            why = job.flow.verdict_on_all
            told = f"not sent, as what was sent before failed: {why}"
            error = EngineError(told, kind=why.kind, retryable=True, sent=bool(job.began) and why.sent)
            return Completion(job.request.key, finish="error", error=error)
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
                self.status, self.gave_up = "", None
                return found
            failure = failure_of(reply.status, reply.headers, reply.raw, self.transport.where, self.transport.scrub)
            if self._concedes(job, failure, reply.status):
                return Later(0.0)
            if failure.kind == "bad_request" and b'"temperature":' in job.body[0] and "temperature" in failure.message:
                failure.message += f"; {_NO_TEMPERATURE}"
                failure.hopeless = True
        except Failure as caught:
            failure = caught
        except Exception as error:  # a bug in Dikast must not fail other requests
            failure = Failure("internal", self.transport.scrub.quote(f"{type(error).__name__}: {error}"))
        if failure.refusal:
            job.flow.consecutive = 0
            return Completion(job.request.key, refusal=failure.refusal)
        if failure.kind == "timeout":
            self._note_wait(job, min(time.monotonic() - now, self.settings.timeout))
        if (moved := self.elsewhere(job, failure)) is not None:
            return moved
        if failure.hopeless and (not self.answered or failure.kind == "quota"):  # credit may run out at any time
            failure.message += await self._cured(failure)
        outcome = self._retried(job, failure)
        if isinstance(outcome, Later):
            self._note_wait(job, outcome.seconds)
        return outcome

    async def _cured(self, failure: Failure) -> str:
        """The cure that is appended to a failure's message; for a missing model also the available ones."""
        told = cure(failure.kind, self.about.provider, key_env=self.settings.key_env, model=self.about.model)
        if failure.kind == "not_found":
            if self._models is None:
                self._models = asyncio.get_running_loop().create_task(self._models_there())
            told += await asyncio.shield(self._models)
        return f"; {told}" if told else ""

    async def look(self) -> tuple[bool, str]:
        """Whether the server is reachable, and which models it lists instead if it lacks the requested one."""
        status, body = await self.transport.look(self.about.models_url, _LOOKS)
        names = _names(body) if status == 200 else []
        if not names or any(map(self.about.is_model, names)):
            return 0 < status < 500, ""
        return True, self.transport.scrub(whole(f"has {', '.join(names[:_SHOWN])}, not {self.about.model}"))

    async def _models_there(self) -> str:
        names = _names(await self.transport.get(self.about.models_url, _LOOKS))
        near = near_miss(self.about.model, names)
        shown = f"did you mean {near!r}?" if near else f"it has {', '.join(names[:_SHOWN])}" if names else ""
        return self.transport.scrub(whole(f": {shown}")) if shown else ""

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
            wait = spread * self._jitter.uniform(0.5, 1.5)
            if failure.unreached and not self.answered and time.monotonic() - job.began + wait > _UNREACHED:
                return self._failed(job, failure)
            return self._later(wait, job, failure)
        if failure.wait > self.settings.max_wait:
            told = f"{failure.message}; it asks to wait {failure.wait:,.0f} s (max_wait raises what is obeyed)"
            return self._failed(job, Failure(failure.kind, told, retryable=True))
        return self._later(failure.wait + self._jitter.uniform(0, 0.1 * failure.wait + 0.1 * spread), job, failure)

    def _later(self, seconds: float, job: Job, failure: Failure) -> Later:
        most = _REJECTIONS * self.settings.retries if failure.rejected else self.settings.retries
        nth = job.rejections if failure.rejected else job.tries - job.rejections
        what = failure.message.removeprefix(f"{self.transport.where} ").removeprefix("cannot be reached: ")
        self.status = f"{what}; try {nth + 1} of {most + 1}"
        return Later(seconds, failure.rejected)

    def _failed(self, job: Job, failure: Failure) -> Completion:
        flow = job.flow
        flow.consecutive = flow.consecutive + 1 if failure.hopeless or failure.kind in _BROAD else 0
        for_all = failure.hopeless or failure.unreached or failure.kind == "wrong_model"
        never = not self.answered and for_all
        most = 1 if never else _ROW if self.answered and not failure.hopeless else 8
        told = failure.told(job.tries, self._cure_so_far(failure))
        if flow.consecutive >= most and flow.verdict_on_all is None:
            kind = failure.kind if failure.hopeless else "unreachable"
            reached = not (never and failure.unreached)  # otherwise no request has reached the server
            row = f"{flow.consecutive} requests in a row failed, the last: " if flow.consecutive > 1 else ""
            respelt = is_respelt(failure.kind, self.settings.key_env)
            flow.verdict_on_all = EngineError(f"{row}{told}", kind=kind, sent=reached, respelt=respelt)
            self.gave_up = flow.verdict_on_all
        error = EngineError(told, kind=failure.kind, retryable=failure.retryable)
        return Completion(job.request.key, failure.text, finish="error", usage=failure.usage or Usage(), error=error)

    def _cure_so_far(self, failure: Failure) -> str:
        """The cure for a failure that may be that of every request, since none was answered yet; "" otherwise."""
        if self.answered or failure.hopeless or failure.kind not in _BROAD:
            return ""
        if failure.unreached:
            return cure("connection", self.about.provider)
        return cure("server_error" if failure.kind == "connection" else failure.kind, self.about.provider)

    def _form(self, request: Request) -> Form:
        asks = bool(request.prefill) or (request.readout is not None and not request.readout.generate)
        return "continue" if asks and self.answers.continues is not False else "plain"

    def _plainly(self, job: Job) -> Completion | Later:
        """Ask a question again whose reply did not continue after the marker."""
        try:
            job.form, job.body = "plain", self.bodies.make(job.request, "plain")
        except EngineError as error:
            return Completion(job.request.key, finish="error", error=error)
        return Later(0.0)

    def _concedes(self, job: Job, failure: Failure, status: int) -> bool:
        """Leave out an optional part that the server complains about; True if the job is ready to be sent again."""
        optional, body = self.bodies.optional, job.body
        sent = {name: keys for name, keys in optional.items() if any(f'"{key}":'.encode() in body[0] for key in keys)}
        if job.form == "continue" and "continuation" in optional:
            sent["continuation"] = optional["continuation"]
        elif job.request.prefill and "prefill" in optional:
            sent["prefill"] = optional["prefill"]
        name = refused_parameter(failure, status, sent) if failure.kind in ("bad_request", "auth") else None
        if name is None or job.conceded >= len(optional):
            return False
        job.conceded += 1
        if name not in self.bodies.refused:
            self.bodies.refused |= {name}
            self.answers.notice(name)
        if name == "continuation":
            self.answers.continues = False
        job.form = self._form(job.request)
        job.body = self.bodies.make(job.request, job.form)
        return job.body != body  # what another request has conceded meanwhile counts, too


def _names(raw: bytes) -> list[str]:
    """The models in a server's list of them; none where it is no such list."""
    try:
        value = decoded(raw)
        rows = value.get("data") or value.get("models")
        return [str(row.get("id") or row["name"]).removeprefix("models/")[:_NAME] for row in rows[:_NAMES]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def clean(done: Completion, scrub: Scrubber) -> Completion:
    """The completion without the secrets that `scrub` knows, and without anything that cannot be written to a file."""
    if done.error is not None:
        told = scrub(whole(str(done.error)))
        error = EngineError(told, kind=done.error.kind, retryable=done.error.retryable, sent=done.error.sent)
        return replace(done, error=error, text=scrub(whole(done.text)))
    if not scrub:
        return done
    text, refusal, unread = scrub(done.text), scrub(done.refusal), scrub(done.unread)
    if text is done.text and refusal is done.refusal and unread is done.unread:
        return done
    return replace(done, text=text, refusal=refusal, unread=unread)
