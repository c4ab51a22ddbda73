"""One HTTP request: send a body, read a reply of bounded size, or report the failure."""

import asyncio
import contextlib
import os
import ssl
import urllib.request
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from dikast.core.errors import UserError
from dikast.core.secrets import Scrubber, without_secrets
from dikast.engines.http.failure import Failure

_MB = 2**20
_JSON = "application/json"


class HttpReply:
    """A reply: status, headers, and the whole body."""

    __slots__ = ("headers", "raw", "status")

    def __init__(self, status: int, headers: Any, raw: bytes) -> None:
        self.status, self.headers, self.raw = status, headers, raw


class Pieces(Payload):
    """A body sent piece by piece, so that an image shared by many requests is never copied for one of them."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__(pieces, content_type=_JSON)
        self._size = sum(map(len, pieces))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The whole body as text."""
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send every piece."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send every piece; the length is that of all of them."""
        for piece in self._value:
            await writer.write(piece)


class Deadlines:
    """One time limit for all tasks of a loop, kept by a single timer; one for each request would cost more than these.

    A task that runs out of time is cancelled; `stop` then distinguishes that cancellation from any other.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: OrderedDict[asyncio.Task[Any], float] = OrderedDict()  # the oldest first
        self._over: set[asyncio.Task[Any]] = set()
        self._set = False

    def start(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any]") -> None:
        """The limit of this task begins."""
        self._since[task] = now = loop.time()
        if not self._set:
            self._set = True
            loop.call_at(now + self._seconds, self._ring, loop)

    def stop(self, task: "asyncio.Task[Any]") -> bool:
        """The task is done with what was limited; whether it was cancelled because the limit ran out."""
        self._since.pop(task, None)
        if task not in self._over:
            return False
        self._over.remove(task)
        task.uncancel()
        return True

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._set = False
        while self._since:
            task, since = next(iter(self._since.items()))
            if since + self._seconds > loop.time():
                self._set = True
                loop.call_at(since + self._seconds, self._ring, loop)
                return
            del self._since[task]
            self._over.add(task)
            task.cancel()


class Transport:
    """The connection to one server. Belongs to the event loop it is opened in."""

    def __init__(
        self,
        url: str,
        *,
        key: str,
        timeout: float,
        connect_timeout: float,
        most_mb: float,
        ca: str,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        host: str = "",
    ) -> None:
        """`host`: the host that is called, with its port, where the URL holds the number of a machine."""
        self._url = URL(url)
        parts = urlsplit(url)
        self.where = f"{parts.scheme}://{parts.netloc}"
        self._most = int(most_mb * _MB)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout)
        self._deadlines = Deadlines(timeout)
        self._seconds = timeout
        self._proxy = _proxy_for(parts.scheme, parts.hostname or "")
        self.scrub = Scrubber([key, urlsplit(self._proxy or "").password or ""])
        self._tls: ssl.SSLContext | bool = _trusting(ca) if ca else True
        own = {"Content-Type": _JSON, "Accept": _JSON, "Accept-Encoding": "identity", "User-Agent": "dikast"}
        if key:
            own[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
        self._headers = {**own, **(headers or {}), **({"Host": host} if host else {})}
        self._name = urlsplit(f"//{host}").hostname if host and parts.scheme == "https" else None
        self._session: aiohttp.ClientSession | None = None
        self._answered = False  # a server that has answered before and breaks a connection is probably still running

    def open(self) -> None:
        """Make the session; must run inside the event loop."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, ttl_dns_cache=300),
            headers=self._headers,
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def post(self, pieces: list[bytes]) -> HttpReply:
        """Send a body and read the reply, whatever its status; Failure if there is none."""
        assert self._session is not None
        data = pieces[0] if len(pieces) == 1 and len(pieces[0]) < _MB else Pieces(pieces)
        task = asyncio.current_task()
        assert task is not None
        self._deadlines.start(asyncio.get_running_loop(), task)
        try:
            response = await self._session.post(
                self._url, data=data, allow_redirects=False, proxy=self._proxy, server_hostname=self._name
            )
            try:
                self._answered = True
                return HttpReply(response.status, response.headers, await self._body(response))
            finally:
                response.release()
        except asyncio.CancelledError:
            if not self._deadlines.stop(task):
                raise
            told = f"{self.where} did not answer within {self._seconds:g} s"
            raise Failure("timeout", told, retryable=True) from None
        except TimeoutError as error:  # while connecting
            told = f"{self.where} cannot be reached: {self.scrub.quote(str(error), 200) or 'it takes too long'}"
            raise Failure("timeout", told, retryable=True, unreached=True) from None
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise _certificate(self.where, error) from None
        except aiohttp.ClientConnectorError as error:
            number = error.os_error.errno or 0
            said = os.strerror(number) if number > 0 else error.os_error.strerror or error.os_error
            reason = self.scrub.quote(str(said), 200)
            told = f"{self.where} cannot be reached: {reason}"
            raise Failure("connection", told, retryable=True, unreached=True) from None
        except aiohttp.InvalidURL as error:
            raise Failure(
                "connection", f"not an address: {self.scrub.quote(without_secrets(str(error)))}", hopeless=True
            ) from None
        except (aiohttp.ClientError, ConnectionError, OSError) as error:
            told = self.scrub.quote(str(error), 200) or type(error).__name__
            message = f"{self.where} broke the connection: {told}"
            raise Failure("connection", message, retryable=True, brief=self._answered) from None
        finally:
            self._deadlines.stop(task)

    async def get(self, url: str, seconds: float) -> bytes:
        """The content at another address of the same server; b"" if there is none."""
        status, body = await self.look(url, seconds)
        return body if status == 200 else b""

    async def look(self, url: str, seconds: float) -> tuple[int, bytes]:
        """The status and the body at another address of the same server; the status is 0 where nothing answers."""
        assert self._session is not None
        limit, named = aiohttp.ClientTimeout(total=seconds), self._name
        try:
            async with self._session.get(
                URL(url), timeout=limit, allow_redirects=False, proxy=self._proxy, server_hostname=named
            ) as response:
                return response.status, await self._body(response)
        except (aiohttp.ClientError, TimeoutError, OSError, Failure):
            return 0, b""

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """The body, unless it is larger than allowed."""
        length = response.content_length
        if length is not None and length > self._most:
            response.close()
            raise self._too_large(f"{length:,}")
        chunks: list[bytes] = []
        size = 0
        content = response.content
        if content.is_eof() and content.total_bytes <= self._most:  # all is here already, as it is for most replies
            return content.read_nowait()
        while chunk := await content.readany():
            size += len(chunk)
            if size > self._most:
                response.close()
                raise self._too_large(f"more than {self._most:,}")
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _too_large(self, size: str) -> Failure:
        return Failure(
            "too_large",
            f"{self.where} sent a reply of {size} bytes; the most is {self._most:,} (max_reply_mb raises it)",
        )


def _certificate(where: str, error: Exception) -> Failure:
    certificate = isinstance(error, aiohttp.ClientConnectorCertificateError)
    reason = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    said = getattr(reason, "verify_message", "") or getattr(reason, "reason", "") or str(reason)
    cure = (
        "trust its authority with ca=FILE.pem, or fix the certificate; invalid certificates are never accepted"
        if certificate
        else "check that the server speaks TLS on this port (http:// if it does not)"
    )
    return Failure("certificate" if certificate else "tls", f"{where}: {said}: {cure}", hopeless=True)


def _trusting(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"ca={ca}: not a PEM file with certificates ({error.strerror or error})") from None
    return context


def _proxy_for(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for this host; never one for this machine itself."""
    if host in ("localhost", "127.0.0.1", "::1"):
        return None
    with contextlib.suppress(OSError):
        if urllib.request.proxy_bypass(host):
            return None
    return urllib.request.getproxies().get(scheme)
