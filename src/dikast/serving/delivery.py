"""What the servers here (`dikast serve`, `dikast annotate`, `dikast view`) share: answers to clients that may never
read them, and a log that repeats nothing of a request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_log = logging.getLogger(__name__)
Asked = TypeVar("Asked", bound=web.BaseRequest)
TAKE_SECONDS = 60.0
_NO_REQUEST = (HttpProcessingError, web.RequestPayloadError)  # of a client that sends what is not HTTP
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Unrepeated(logging.Filter):
    """Of a request that is not HTTP one line remains: aiohttp's message quotes it, with tokens in its address."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True; the record is changed."""
        if record.exc_info and isinstance(record.exc_info[1], _NO_REQUEST):
            record.msg, record.args, record.exc_info = "a request that is not HTTP was refused", (), None
        return True


def server_log(name: str) -> logging.Logger:
    """The log for aiohttp's messages about the requests of a server."""
    log = logging.getLogger(f"{name}.requests")
    if not log.filters:
        log.addFilter(_Unrepeated())
    return log


def tell_once(loop: asyncio.AbstractEventLoop) -> None:
    """Let a loop say once that no file is left for a connection: asyncio says it a thousand times a second."""
    told = False

    def handler(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal told
        if not str(context.get("message", "")).startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif not told:
            told = True
            _log.warning(
                "too many connections for the open files of this process (%s): raise `ulimit -n`", context["exception"]
            )

    loop.set_exception_handler(handler)


async def delivered(
    request: Asked, handler: Callable[[Asked], Awaitable[web.StreamResponse]], seconds: float = TAKE_SECONDS
) -> web.StreamResponse:
    """Answer a request, and wait until the system has taken the whole answer; abort the connection after `seconds`.

    aiohttp leaves an answer to the connection and reads the next request. A client that sends requests and reads
    nothing would fill the memory with answers, and keep its connection for as long as it likes, since one with unsent
    data is not closed when it is idle.
    """
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = error
    if request.transport is not None:
        request.transport.set_write_buffer_limits(0)  # so that `drain` waits for the last byte
    try:
        async with asyncio.timeout(seconds):
            writer = await response.prepare(request)
            await response.write_eof()
            if writer is not None:
                await writer.drain()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    if isinstance(response, web.HTTPException):
        raise response
    return response


def host_name(request: web.BaseRequest) -> str:
    """The name that a request was sent to, without its port; a browser says here which site it believes to ask."""
    host = request.headers.get("Host", LOOPBACK[0])
    return host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
