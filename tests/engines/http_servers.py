"""What tests of the HTTP engine share: items, requests, runs through the command line."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from typer.testing import CliRunner

from dikast.core.errors import RunError
from dikast.core.message import Message, Span
from dikast.engines.base import Engine, Readout, Request, Sampling
from dikast.engines.budget import Budget
from dikast.engines.http.engine import HttpEngine
from dikast.engines.spec import open_engine
from dikast.surface.cli import app
from dikast.testing.faults import FaultServer
from ports import free_port

CERTIFICATE = Path(__file__).parent / "loopback.pem"
LABELS = tuple(f" {level}" for level in range(1, 6))
READ = Readout(LABELS, "Verdict:")
FAST = "backoff=0.01,timeout=2"


def ask(i: object = 0, text: str = "Grade this.", **fields: Any) -> Request:
    return Request(f"key-{i}", (Message("user", (Span(f"{text} {i}"),)),), **{"sampling": Sampling(), **fields})


@contextmanager
def opened(server: FaultServer, options: str = FAST) -> Iterator[Engine]:
    """The engine of a running server, closed at the end."""
    engine = open_engine(f"{server.spec},{options}")
    try:
        yield engine
    finally:
        inner = engine.engine if isinstance(engine, Budget) else engine
        assert isinstance(inner, HttpEngine)
        inner.close()


@contextmanager
def dying(after: int, latency: float = 0.02) -> Iterator[tuple[str, threading.Event]]:
    """A server that goes after so many answers and is there again half a second later: its address, and whether it has
    answered since."""
    port, back, done, there = free_port(), threading.Event(), threading.Event(), threading.Event()

    def die_and_return() -> None:
        with FaultServer(latency=latency, port=port) as first:
            there.set()
            while first.answered.total() < after and not done.is_set():
                time.sleep(0.005)
        time.sleep(0.5)
        with FaultServer(latency=latency, port=port) as again:
            while not done.is_set():
                if again.answered.total() > 5:
                    back.set()
                time.sleep(0.01)

    thread = threading.Thread(target=die_and_return)
    thread.start()
    assert there.wait(10)
    try:
        yield f"http://127.0.0.1:{port}/v1", back
    finally:
        done.set()
        thread.join()


def write_items(path: Path, n: int) -> Path:
    rows = [{"id": str(i), "instruction": f"Question {i}?", "response": f"Answer {i}."} for i in range(n)]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def grade(items: Path, spec: str, out: Path, *more: object) -> tuple[int, dict[str, Any]]:
    """`dikast grade` in this process: its exit code and its summary; exit code 1 where a server was given up."""
    arguments = ["grade", items, "--judge", spec, "--rubric", "helpfulness", "--out", out, "--json", "--quiet", *more]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception is not None and not isinstance(result.exception, RunError | SystemExit):
        raise result.exception
    summary: dict[str, Any] = orjson.loads(result.stdout)
    assert result.exit_code == 1 if "gave_up" in summary else result.exit_code in (0, 3), result.output
    return result.exit_code, summary


def verdicts(out: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (out / "verdicts.jsonl").read_bytes().splitlines()]


def system_one(spec: str) -> str:
    """The spec of the System One endpoint beside the chat completions that `spec` names."""
    return "decision:" + spec.replace("/v1#", "/v1/systemone#")
