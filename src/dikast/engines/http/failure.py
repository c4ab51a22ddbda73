"""Why a try failed, and what to do about it: give up, or wait and try again."""

import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC

from dikast.core.secrets import Scrubber, without_secrets
from dikast.core.verdict import Usage
from dikast.engines.http.decode import decoded, said

_NO_WAIT = 366 * 86400.0  # seconds; longer waits, such as "in the year 9999", are ignored
_OVERLOADED = (429, 503, 529)
_RETRIED = (408, 409, 425, 500, 502, 504, 520, 521, 522, 523, 524)
_NO_API = (405, 501)  # the server takes no POST there, as one that serves files
_CONTEXT = (
    "context_length",
    "context length",
    "context window",
    "maximum context",
    "too many tokens",
    "prompt is too long",
)
_NO_KEY = ("api key not valid", "api_key_invalid", "api key expired")
_DELAY = re.compile(rb'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
_QUOTA = (
    "insufficient_quota",
    "billing_hard_limit",
    "exceeded your current quota",
    "credit balance is too low",  # Anthropic, with 400 and the type of any invalid request
    "specified api usage limits",
)
_FILTER = ("content_filter", "content_policy", "responsibleai")


@dataclass(eq=False)
class Failure(Exception):
    """One failed try.

    `wait` is what the server asked for, in seconds; `rejected` says that it was overloaded; `brief` failures are
    retried soon, since waiting does not help; `hopeless` ones would affect every request; `unreached` says that there
    was no connection. `refusal` is set if the server declined to answer this question, which counts as an answer.
    `text` and `usage` are what could be read of an invalid reply.
    """

    kind: str
    message: str
    retryable: bool = False
    wait: float | None = None
    rejected: bool = False
    hopeless: bool = False
    brief: bool = False
    unreached: bool = False
    refusal: str = ""
    text: str = ""
    usage: Usage | None = None

    def told(self, tries: int, cure: str = "") -> str:
        """What happened, after how many tries, and what to do about it."""
        after = f" (after {tries} tries)" if tries > 1 else ""
        return f"{self.message}{after}{'; ' * bool(cure)}{cure}"


def failure_of(status: int, headers: Mapping[str, str], raw: bytes, where: str, scrub: Scrubber) -> Failure:
    """The failure that a status other than 200 means."""
    quoted = scrub.quote(_words(raw))
    told = f"{where} answers {status}" + (f": {quoted}" if quoted else "")
    words = quoted.casefold()
    if 300 <= status < 400:
        target = scrub.quote(without_secrets(scrub(headers.get("Location", "elsewhere"))), 200)
        return Failure(
            "redirect",
            f"{where} redirects to {target}; redirects are not followed, so that no key goes to another host:"
            " write the final address in the spec",
            hopeless=True,
        )
    if status in _OVERLOADED:
        wait = retry_after(headers)
        wait = _retry_delay(raw) if wait is None else wait
        if wait is None and any(word in words for word in _QUOTA):
            return Failure("quota", told, hopeless=True)
        kind = "rate_limited" if status == 429 else "overloaded"
        return Failure(kind, told, retryable=True, wait=wait, rejected=True)
    if status == 402:
        return Failure("quota", told, hopeless=True)
    if status in _NO_API:
        return Failure("bad_response", told, hopeless=True)
    if status in _RETRIED or status >= 500:
        return Failure("server_error", told, retryable=True, wait=retry_after(headers))
    if any(word in words for word in _CONTEXT):
        return Failure("context_length", told)
    if any(word in words for word in _FILTER):
        return Failure("content_filter", told, refusal=quoted or "the server's content filter")
    if status in (400, 403) and any(word in words for word in _QUOTA):
        return Failure("quota", told, hopeless=True)
    if (flag := flagged(_error_in(raw), where, scrub)) is not None:
        return flag
    if status in (401, 403) or (status == 400 and any(word in words for word in _NO_KEY)):
        return Failure("auth", told, hopeless=True)
    if status == 404:
        return Failure("not_found", told, hopeless=True)
    if status == 413:
        return Failure("too_large", told)
    return Failure("bad_request", told)


def flagged(error: object, where: str, scrub: Scrubber) -> Failure | None:
    """The refusal that an error of OpenRouter's moderation is, which has the status of a key without rights; None for
    any other error. Format: https://openrouter.ai/docs/api/reference/errors-and-debugging
    """
    more = error.get("metadata") if isinstance(error, Mapping) else None
    if not isinstance(error, Mapping) or not isinstance(more, Mapping):
        return None
    if "flagged_input" not in more and more.get("error_type") != "content_policy_violation":
        return None
    quoted = scrub.quote(said(error.get("message") or "the provider's moderation"))
    return Failure("content_filter", f"{where} flags the request: {quoted}", refusal=quoted)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait that a server asked for: `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date.

    A date counts from the `Date` of the reply, so that it does not matter what this machine's clock says. None without
    a number or date that can be read, or for one more than a year away.
    """
    for name, unit in (("retry-after-ms", 1000), ("Retry-After", 1)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) / unit
        except ValueError:
            try:
                seconds = _seconds(text) - (_at(headers) if now is None else now)
            except (ValueError, TypeError, OverflowError):  # not a date, or one out of range
                continue
        if seconds < _NO_WAIT:
            return max(0.0, seconds)
    return None


def _at(headers: Mapping[str, str]) -> float:
    """When a server replied by its own clock; by that of this machine where it does not say."""
    try:
        return _seconds(headers.get("Date", ""))
    except (ValueError, TypeError, OverflowError):
        return time.time()


def _seconds(text: str) -> float:
    """An HTTP date in seconds since 1970."""
    date = email.utils.parsedate_to_datetime(text)
    return (date.replace(tzinfo=UTC) if date.tzinfo is None else date).timestamp()


def _retry_delay(raw: bytes) -> float | None:
    """The seconds in `google.rpc.RetryInfo`, such as `"retryDelay": "34s"`, which comes in place of a header."""
    found = _DELAY.search(raw)
    return min(float(found[1]), _NO_WAIT) if found else None


def refused_parameter(failure: Failure, status: int, sent: Mapping[str, tuple[str, ...]]) -> str | None:
    """Which optional part of the request the server's complaint names, if any.

    `sent` maps names of optional parts to their fields in the request.
    """
    if status not in (400, 403, 422):  # OpenAI answers 403 to `logprobs` for models that give none
        return None
    words = failure.message.casefold()
    hits = [(len(key), name) for name, keys in sent.items() for key in (*keys, name) if key.casefold() in words]
    return max(hits)[1] if hits else None


def _error_in(raw: bytes) -> object:
    """What stands under `error` in a body; None where there is none."""
    try:
        value = decoded(raw)
    except ValueError:
        return None
    return value.get("error") if isinstance(value, dict) else None


def _words(raw: bytes) -> str:
    """The server's own words, from the usual places in an error's body."""
    try:
        value = decoded(raw)
    except ValueError:
        text = raw.decode("utf-8", "replace")
        return text if not text.lstrip().startswith("<") else "a web page"
    if not isinstance(value, dict):
        return said(value)
    error = value.get("error", value)
    if not isinstance(error, dict):
        return said(error)
    parts = [error.get(key) for key in ("message", "detail", "code", "type", "param")]
    return " ".join(said(part) for part in parts if part)
