"""Downloads from http(s) URLs, of an item's media or of a source of records. URLs of engines are never fetched here."""

import ipaddress
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from dikast.core.errors import DataError, machine_error
from dikast.core.text import one_line

if TYPE_CHECKING:
    import urllib.request

MOST_SOURCE_BYTES = 20 * 2**30  # of a source of records behind an address
_LEAST_RATE = 10_000  # bytes a second, on average, that a source may come at
_SHOWN = 1_000  # characters
_PATIENCE = 10  # times the seconds without a byte, for a whole answer
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PRIVATE = "a private address: download it and give its path, or allow it with --allow-private-urls"


def fetch(url: str, most: int, timeout: float, *, kind: str, private: bool = False) -> bytes:
    """At most `most` bytes behind an http(s) URL; `kind` is what they should be. No other scheme is ever opened.

    Without `private` nothing is fetched from private, loopback, link-local or other addresses that are not public: the
    address that is checked is the one that is connected to. Both hold for redirects too. Behind a proxy the proxy
    resolves names, so only addresses written in URLs are checked there. `timeout` is in seconds without a byte; a
    whole answer may take ten times that.
    """
    raw = bytearray()
    name = f"{kind} {shown_url(url)}"
    _read(
        url, raw.extend, name, kind, _PRIVATE, most=most, timeout=timeout, rate=math.inf, private=lambda host: private
    )
    return bytes(raw)


def download(url: str, into: BinaryIO, timeout: float = 30.0) -> None:
    """Write what is behind an http(s) URL that the user typed to a file; DataError with the cure.

    The host that was typed may be private, one that it redirects to may not. At most `MOST_SOURCE_BYTES`, and after
    ten times the `timeout` (in seconds without a byte) on average at least 10 kB a second.
    """
    try:
        typed = urlsplit(url).hostname
    except ValueError:  # told when it is opened
        typed = None

    def take(chunk: bytes) -> None:
        try:
            into.write(chunk)
        except OSError as error:
            raise machine_error(error) from error

    cure = "a private address that you did not type: give its own address"
    _read(
        url, take, shown_url(url), "file", cure, most=MOST_SOURCE_BYTES, timeout=timeout, rate=_LEAST_RATE,
        private=lambda host: host.lower() == typed,
    )  # fmt: skip


def _read(
    url: str, take: Callable[[bytes], object], name: str, kind: str, told: str, *, most: int, timeout: float,
    rate: float, private: Callable[[str], bool],
) -> None:  # fmt: skip
    """Pass the content of a URL to `take` in pieces; DataError with the cure.

    `rate` is in bytes a second, which count after the first `_PATIENCE * timeout` seconds. `private` says of each host
    whether it may be a private address, and `told` what is wrong with one that may not.
    """
    import http.client  # an HTTP client is loaded only by those who give URLs
    import urllib.error
    import urllib.request

    cure = f"fix the URL, or download the {kind} and give its path"
    began, patience, size = time.monotonic(), _PATIENCE * timeout, 0
    try:
        accept = {} if kind == "file" else {"Accept": f"{kind}/*"}
        request = urllib.request.Request(url, headers={"User-Agent": "dikast", **accept})
        with _answer(request, name, told, timeout, private) as reply:
            while size <= most and (chunk := reply.read1(2**20)):
                size += len(chunk)
                if time.monotonic() - began > patience + size / rate:
                    slow = "" if rate == math.inf else f": fewer than {rate:,.0f} bytes a second"
                    raise TimeoutError(f"not complete after {time.monotonic() - began:.0f} s{slow}")
                if size <= most:
                    take(chunk)
            if size <= most and reply.length:  # fewer bytes than announced
                raise http.client.IncompleteRead(b"", reply.length)
    except urllib.error.HTTPError as error:
        code = error.code
        error.close()
        raise DataError(f"{name}: the server answers {code}: {cure}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:  # URLError and timeouts are OSErrors
        raise DataError(f"{name} cannot be fetched ({_why(error)}): {cure}") from None
    if size > most:
        raise DataError(f"{name} has more than {most:,} bytes: download it and give a smaller one")


@contextmanager
def _answer(
    request: "urllib.request.Request", name: str, told: str, timeout: float, private: Callable[[str], bool]
) -> Iterator[Any]:
    """The answer to a request, by http and https alone, whose status and headers came in time."""
    import http.client
    import urllib.request

    connections: list[Any] = []
    late = threading.Event()

    def connect(*arguments: Any, **more: Any) -> socket.socket:
        (host, port), *rest = arguments
        address = host if private(host) else public_address(host, port)
        if address is None:
            raise DataError(f"{name} leads to {host!r}, {told}")
        return socket.create_connection((address, port), *rest, **more)

    def guarded(connection: Any, request: Any) -> Any:
        host = urlsplit(request.full_url).hostname or ""

        def made(*arguments: Any, **more: Any) -> Any:
            found = connection(*arguments, **more)
            connections.append(found)
            if not request.has_proxy():
                found._create_connection = connect
            return found

        if not private(host) and request.has_proxy() and is_private(host):
            raise DataError(f"{name} leads to {told}")
        return made

    class Http(urllib.request.HTTPHandler):
        def http_open(self, req: Any) -> Any:
            return self.do_open(guarded(http.client.HTTPConnection, req), req)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, req: Any) -> Any:
            return self.do_open(guarded(http.client.HTTPSConnection, req), req)

    class Redirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
            scheme = newurl.partition("://")[0].lower()
            if scheme not in ("http", "https"):
                raise DataError(f"{name} redirects to {one_line(scheme, 20)!r}, which is not http(s): give another URL")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    def give_up() -> None:
        late.set()
        for each in connections:
            with suppress(OSError, AttributeError):  # closed meanwhile
                each.sock.shutdown(socket.SHUT_RDWR)

    opener = urllib.request.OpenerDirector()  # `build_opener` would add file: and ftp:
    for handler in (
        urllib.request.ProxyHandler, Http, Https, Redirect,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor, urllib.request.UnknownHandler,
    ):  # fmt: skip
        opener.add_handler(handler())
    patience = threading.Timer(_PATIENCE * timeout, give_up)  # headers may come one byte at a time
    patience.daemon = True
    patience.start()
    try:
        reply = opener.open(request, timeout=timeout)
    finally:
        patience.cancel()
    with reply:
        if late.is_set():  # what was cut off may look like the end of the headers
            raise TimeoutError(f"no headers after {_PATIENCE * timeout:.0f} s")
        yield reply


def shown_url(url: str) -> str:
    """The URL as messages show it: without user, password, query and fragment, which may hold secrets; if it is long
    both ends.
    """
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:  # an unclosed bracket
        return one_line(url.split("?")[0].split("#")[0].rpartition("@")[2], _SHOWN)
    return one_line(f"{parts.scheme}://{host}{parts.path}", _SHOWN) + ("?..." if parts.query else "")


def public_address(host: str, port: int) -> str | None:
    """The first address of a host, or None when any of its addresses is not public. OSError for an unknown host."""
    found = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    return None if not found or any(map(is_private, found)) else found[0]


def is_private(address: str) -> bool:
    """Whether an address written in numbers is not public, or the name is that of this machine."""
    name = address.partition("%")[0].rstrip(".").lower()
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        try:
            found = ipaddress.ip_address(socket.inet_aton(name))  # 127.1, 0x7f000001, 2130706433
        except (OSError, ValueError):
            return name == "localhost" or name.endswith(".localhost")
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and (found in _NAT64 or int(found) >> 32 == 0):  # ::7f00:1 is 127.0.0.1
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if found.is_site_local or (inner is not None and is_private(str(inner))):
            return True
        if inner is not None:
            return False
    return not found.is_global or found.is_multicast


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "characters beyond ASCII are written as %XX in a URL, and as xn--... in its host"
    reason = getattr(error, "reason", None) or error
    return str(reason) if isinstance(reason, OSError) and str(reason) else type(reason).__name__
