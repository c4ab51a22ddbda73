"""A server in a thread of the test, and one in a process of its own; clients that speak to them."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.judging.judge import Judge
from dikast.serving.front_desk import Desk
from dikast.serving.known import KnownVerdicts
from dikast.serving.messages import Allowed
from dikast.serving.server import Door, Server


@dataclass(frozen=True)
class Told:
    """What a server answered."""

    status_code: int
    headers: Mapping[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


def send(url: str, data: bytes | Iterable[bytes] | None = None, headers: Mapping[str, str] | None = None) -> Told:
    """One request over a connection of its own: a POST where there is data."""
    told = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, data, told)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as reply:
            return Told(reply.status, dict(reply.headers), reply.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return Told(error.code, dict(error.headers), error.read().decode())


class Here:
    """A running server: its address, and what it counts."""

    def __init__(self, server: Server, desk: Desk) -> None:
        self.server, self.desk = server, desk
        self.url = f"http://127.0.0.1:{server.port}"

    def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Told:
        return send(self.url + path, json.dumps(body).encode(), headers)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Told:
        return send(self.url + path, None, headers)


@contextmanager
def serving(
    judge: Judge,
    *,
    wait: float = 0.005,
    queue: int = 1000,
    out: Path | None = None,
    rubrics: Any = (),
    files: bool = False,
    missing: Any = "raise",
    separator: str = "",
    **door: Any,
) -> Iterator[Here]:
    """A server in a thread, stopped as SIGTERM would at the end."""
    known = KnownVerdicts(out) if out is not None else None
    desk = Desk(judge, wait=wait, most_waiting=queue, known=known)
    allowed = Allowed({each.name: each for each in rubrics}, files)
    started, found = threading.Event(), list[Any]()

    async def run() -> None:
        server = Server(desk, allowed, Door(port=0, **door), missing=missing, separator=separator)
        await server.start()
        found.extend((server, asyncio.get_running_loop()))
        started.set()
        await server.stopping.wait()
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert started.wait(30)
    server, loop = found
    try:
        yield Here(server, desk)
    finally:
        loop.call_soon_threadsafe(server.stopping.set)
        thread.join(60)
        assert not thread.is_alive()


@contextmanager
def served(*arguments: object) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """`dikast serve` in a process of its own: its address and the process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dikast.surface.cli", "serve", "--port", "0", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    try:
        assert process.stderr is not None
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "the server ended"
            found = re.search(r"http://\S+", line)
        yield found[0], process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
