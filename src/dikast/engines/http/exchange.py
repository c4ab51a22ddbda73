"""One try over the wire: send a body, take a bounded reply, or say what went wrong."""

import contextlib
import ssl
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from dikast.core.errors import UserError
from dikast.engines.http.failure import Failure

_MB = 2**20
_JSON = "application/json"


class Reply:
    """What came back: a status, headers, and the whole body."""

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


class Wire:
    """The connection to one server. Belongs to the event loop it is opened in."""

    def __init__(self, url: str, *, key: str, timeout: float, connect_timeout: float, most_mb: float, ca: str) -> None:
        self._url, self._key = URL(url), key.encode()
        parts = urlsplit(url)
        self.where = f"{parts.scheme}://{parts.netloc}"
        self._most = int(most_mb * _MB)
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=connect_timeout)
        self._seconds, self._connect_seconds = timeout, connect_timeout
        self._proxy = _proxy_for(parts.scheme, parts.hostname or "")
        self._tls: ssl.SSLContext | bool = _trusting(ca) if ca else True
        headers = {"Content-Type": _JSON, "Accept": _JSON, "Accept-Encoding": "identity", "User-Agent": "dikast"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

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

    async def post(self, pieces: list[bytes]) -> Reply:
        """Send a body and take the reply, whatever its status; Failure when there is none."""
        assert self._session is not None
        data = pieces[0] if len(pieces) == 1 and len(pieces[0]) < _MB else Pieces(pieces)
        try:
            async with self._session.post(self._url, data=data, allow_redirects=False, proxy=self._proxy) as response:
                return Reply(response.status, response.headers, self._scrubbed(await self._body(response)))
        except TimeoutError:  # aiohttp's own timeouts are TimeoutErrors, too
            raise Failure(
                "timeout", f"{self.where} did not answer within {self._seconds:g} s", retryable=True
            ) from None
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise _certificate(self.where, error) from None
        except aiohttp.ClientConnectorError as error:
            reason = error.os_error.strerror or error.os_error
            raise Failure("connection", f"{self.where} cannot be reached: {reason}", retryable=True) from None
        except aiohttp.InvalidURL as error:
            raise Failure("connection", f"not an address: {error}", hopeless=True) from None
        except (aiohttp.ClientError, ConnectionError, OSError) as error:
            told = self.scrub(str(error)[:200]) or type(error).__name__
            raise Failure("connection", f"{self.where} broke the connection: {told}", retryable=True) from None

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """The body, unless it is larger than allowed."""
        length = response.content_length
        if length is not None and length > self._most:
            response.close()
            raise self._too_large(f"{length:,}")
        chunks: list[bytes] = []
        size = 0
        content = response.content
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

    def scrub(self, text: str) -> str:
        """`text` without the key."""
        return text.replace(self._key.decode(), "[key]") if self._key else text

    def _scrubbed(self, raw: bytes) -> bytes:
        return raw.replace(self._key, b"[key]") if self._key and self._key in raw else raw


def _certificate(where: str, error: Exception) -> Failure:
    certificate = isinstance(error, aiohttp.ClientConnectorCertificateError)
    reason = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    said = getattr(reason, "verify_message", "") or getattr(reason, "reason", "") or str(reason)
    cure = (
        "trust its authority with ca=FILE.pem, or mend the certificate; it is never ignored"
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
