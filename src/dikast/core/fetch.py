"""What is behind an http(s) URL."""

from dikast.core.errors import DataError


def fetch(url: str, most: int, timeout: float, *, kind: str) -> bytes:
    """At most `most` bytes behind an http(s) URL; `kind` is what they should be. No other scheme is ever opened.

    That holds for redirects too. `timeout` is in seconds without a byte.
    """
    import http.client  # an HTTP client is loaded only by those who give URLs
    import urllib.error
    import urllib.request

    class Redirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
            if not newurl.startswith(("http://", "https://")):
                raise DataError(f"{kind} {url} redirects to {newurl[:60]!r}, which is not http(s): give another URL")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    opener = urllib.request.OpenerDirector()  # `build_opener` would add file: and ftp:
    for handler in (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler, Redirect,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor, urllib.request.UnknownHandler,
    ):  # fmt: skip
        opener.add_handler(handler())
    cure = f"mend the URL, or download the {kind} and give its path"
    request = urllib.request.Request(url, headers={"User-Agent": "dikast", "Accept": f"{kind}/*"})
    try:
        with opener.open(request, timeout=timeout) as reply:
            raw = bytearray()
            while len(raw) <= most and (chunk := reply.read(2**20)):
                raw += chunk
            if len(raw) <= most and reply.length:  # what was announced and did not come
                raise http.client.IncompleteRead(bytes(raw), reply.length)
    except urllib.error.HTTPError as error:
        code, reason = error.code, error.reason
        error.close()
        raise DataError(f"{kind} {url}: the server answers {code} {reason}: {cure}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:  # URLError and timeouts are OSErrors
        raise DataError(
            f"{kind} {url} cannot be fetched ({getattr(error, 'reason', None) or error!r}): {cure}"
        ) from None
    if len(raw) > most:
        raise DataError(f"{kind} {url} has more than {most:,} bytes: download it and give a smaller one")
    return bytes(raw)
