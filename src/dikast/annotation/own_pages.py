"""Pages served to people on their own machine: access checks, security headers, shutdown."""

import asyncio
import logging
import signal
import sqlite3
import ssl
from collections.abc import Callable, Collection
from contextlib import suppress
from html import escape
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from multidict import MultiDictProxy

from dikast.core.errors import DataError, RunError, UserError
from dikast.serving.delivery import delivered, host_name, server_log, tell_once

_log = logging.getLogger(__name__)
BODY_SECONDS, IDLE_SECONDS = 30, 75  # seconds for a form to arrive; for a connection without a complete request header


def guard(policy: str, hosts: Collection[str] = ()) -> Middleware:
    """A middleware: forms of other sites are refused, and every answer has the content security `policy`.

    hosts: the host names under which the pages are served, if known: another name that resolves to this machine (DNS
    rebinding) is refused.
    """
    headers = {
        "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }  # fmt: skip

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        async def answer(request: web.Request) -> web.StreamResponse:
            origin = request.headers.get("Origin")
            try:
                if hosts and host_name(request) not in hosts:
                    raise web.HTTPForbidden(text="this name is not that of the server")
                if request.method == "POST" and origin is not None and origin.partition("://")[2] != request.host:
                    raise web.HTTPForbidden(text="a form of another site")
                async with asyncio.timeout(BODY_SECONDS if request.method == "POST" else None):
                    found = await handler(request)
            except TimeoutError:
                found = web.HTTPRequestTimeout(text=f"the form did not arrive within {BODY_SECONDS} seconds")
            except web.HTTPException as error:
                found = error
            except DataError as error:  # a picture that is gone or damaged
                _log.warning("%s", error)
                found = web.HTTPNotFound(text="This cannot be shown: the log of the server says why")
            except (RunError, sqlite3.DatabaseError) as error:
                _log.error("%s", error)
                told = "Nothing was saved, since the computer that serves this page cannot write: try again later"
                found = web.HTTPInsufficientStorage(text=told)
            if isinstance(found, web.HTTPException) and found.status >= 400:
                _as_page(found, request.path.rpartition("/")[0] or "/" if request.method == "POST" else "")
            found.headers.update(headers)
            return found

        return await delivered(request, answer)

    return guarded


_REFUSED = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{text}.</p>
{back}</main>
</body>
</html>
"""
_BACK = '<p><a href="{path}">Back to the page</a>. What was saved before is kept.</p>\n'
_NO_PAGE = "There is no such page: check that the link is complete"


def _as_page(refused: web.HTTPException, back: str) -> None:
    """Make a page of a refusal, for people; `back` is the path of the page that sent a form, "" where none did."""
    default = f"{refused.status}: {refused.reason}"
    text = refused.text if refused.text and refused.text != default else ""
    if not text:
        text = _NO_PAGE if refused.status == 404 else "Try again in a moment" if refused.status == 429 else default
    title = escape(f"{refused.reason} ({refused.status})")
    refused.text = _REFUSED.format(
        title=title, text=escape(text.rstrip(".")), back=_BACK.format(path=escape(back)) if back else ""
    )
    refused.content_type = "text/html"


def html(text: str) -> web.Response:
    """A page that must not be cached."""
    return web.Response(text=text, content_type="text/html", headers={"Cache-Control": "no-store"})


async def form_of(request: web.Request) -> "MultiDictProxy[Any]":
    """The fields of a form. HTTPBadRequest for a body that is no form of a page: another encoding, half a character."""
    if (request.charset or "utf-8").lower() not in ("utf-8", "utf8"):
        raise web.HTTPBadRequest(text="send the form in UTF-8")
    try:
        given = await request.post()
        for value in given.values():
            str(value).encode()
    except (web.HTTPException, OSError):
        raise
    except Exception as error:  # aiohttp's parser raises whatever comes of a part that is none
        raise web.HTTPBadRequest(text="this is not a form") from error
    return given


async def serve_pages(
    application: web.Application, host: str, port: int, stopping: asyncio.Event, ready: Callable[[int], None],
    *, tls: ssl.SSLContext | None = None,
) -> None:  # fmt: skip
    """Serve until SIGTERM or SIGINT, or until `stopping` is set; `ready` gets the port. UserError where it is taken."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, ValueError):
            loop.add_signal_handler(name, stopping.set)
    runner = web.AppRunner(application, access_log=None, keepalive_timeout=IDLE_SECONDS, logger=server_log(__name__))
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
    except OSError as error:
        await runner.cleanup()
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    tell_once(loop)
    ready(runner.addresses[0][1])
    await stopping.wait()
    await runner.cleanup()
