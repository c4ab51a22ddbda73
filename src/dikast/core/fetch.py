"""What is behind an http(s) URL of an item's media. URLs of engines never come here."""

import ipaddress
import socket
import time
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from dikast.core.errors import DataError

if TYPE_CHECKING:
    import urllib.request

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
    import http.client  # an HTTP client is loaded only by those who give URLs
    import urllib.error
    import urllib.request

    shown = shown_url(url)
    cure = f"fix the URL, or download the {kind} and give its path"
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "dikast", "Accept": f"{kind}/*"})
        with _opener(shown, kind, private=private).open(request, timeout=timeout) as reply:
            raw = bytearray()
            ends = time.monotonic() + _PATIENCE * timeout
            while len(raw) <= most and (chunk := reply.read1(2**20)):
                raw += chunk
                if time.monotonic() > ends:
                    raise TimeoutError(f"not complete after {_PATIENCE * timeout:.0f} s")
            if len(raw) <= most and reply.length:  # what was announced and did not come
                raise http.client.IncompleteRead(bytes(raw), reply.length)
    except urllib.error.HTTPError as error:
        code = error.code
        error.close()
        raise DataError(f"{kind} {shown}: the server answers {code}: {cure}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:  # URLError and timeouts are OSErrors
        raise DataError(f"{kind} {shown} cannot be fetched ({_why(error)}): {cure}") from None
    if len(raw) > most:
        raise DataError(f"{kind} {shown} has more than {most:,} bytes: download it and give a smaller one")
    return bytes(raw)


def download(url: str, into: BinaryIO, timeout: float = 30.0) -> None:
    """Write what is behind an http(s) URL that the user named to a file, of any size; DataError with the cure.

    The address may be private: it was named on the command line, not in somebody's data.
    """
    import http.client
    import urllib.error
    import urllib.request

    shown, kind, cure = shown_url(url), "file", "fix the URL, or download the file and give its path"
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "dikast"})
        with _opener(shown, kind, private=True).open(request, timeout=timeout) as reply:
            while chunk := reply.read(2**20):
                into.write(chunk)
            if reply.length:
                raise http.client.IncompleteRead(b"", reply.length)
    except urllib.error.HTTPError as error:
        code = error.code
        error.close()
        raise DataError(f"{shown}: the server answers {code}: {cure}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DataError(f"{shown} cannot be fetched ({_why(error)}): {cure}") from None


def _opener(shown: str, kind: str, *, private: bool) -> "urllib.request.OpenerDirector":
    """Opens http and https alone, and without `private` only public addresses."""
    import http.client
    import urllib.request

    def connect(*arguments: Any, **more: Any) -> socket.socket:
        (host, port), *rest = arguments
        address = public_address(host, port)
        if address is None:
            raise DataError(f"{kind} {shown} leads to {host!r}, {_PRIVATE}")
        return socket.create_connection((address, port), *rest, **more)

    def guarded(connection: Any, request: Any) -> Any:
        def made(*arguments: Any, **more: Any) -> Any:
            found = connection(*arguments, **more)
            if not private and not request.has_proxy():
                found._create_connection = connect
            return found

        if not private and request.has_proxy() and is_private(urlsplit(request.full_url).hostname or ""):
            raise DataError(f"{kind} {shown} leads to {_PRIVATE}")
        return made

    class Http(urllib.request.HTTPHandler):
        def http_open(self, req: Any) -> Any:
            return self.do_open(guarded(http.client.HTTPConnection, req), req)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, req: Any) -> Any:
            return self.do_open(guarded(http.client.HTTPSConnection, req), req)

    class Redirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
            if not newurl.startswith(("http://", "https://")):
                told = f"{kind} {shown} redirects to {shown_url(newurl)[:60]!r}, which is not http(s): give another URL"
                raise DataError(told)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    opener = urllib.request.OpenerDirector()  # `build_opener` would add file: and ftp:
    for handler in (
        urllib.request.ProxyHandler, Http, Https, Redirect,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor, urllib.request.UnknownHandler,
    ):  # fmt: skip
        opener.add_handler(handler())
    return opener


def shown_url(url: str) -> str:
    """The URL as messages show it: without user, password, query and fragment, which may hold secrets."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:  # a bracket that is not closed
        return url.split("?")[0].split("#")[0].rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" + ("?..." if parts.query else "")


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
    reason = getattr(error, "reason", None) or error
    return str(reason) if isinstance(reason, OSError) and str(reason) else type(reason).__name__
