"""The connection to a Ray cluster: what `--runner` and `--workers` say, and the module `ray` once it is connected."""

import os
import re
import secrets
import socket
import sys
from typing import Any, NamedTuple

from dikast.core.errors import UserError, require
from dikast.core.secrets import looks_secret

_KNOCK = 5.0  # seconds in which a cluster takes a connection
_CLIENT_PORT = 10001  # of Ray's client server, where an address names none
_SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # an empty SETTINGS frame of HTTP/2, which gRPC speaks
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS  # how a client begins (RFC 9113, 3.4)


class Workers(NamedTuple):
    """The minimum and maximum number of workers."""

    least: int
    most: int


def workers_from(text: str) -> Workers:
    """Read `N` or `MIN:MAX`; UserError for anything else."""
    found = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text.strip())
    least = int(found[1]) if found else 0
    most = int(found[2] or least) if found else 0
    if not 1 <= least <= most:
        raise UserError(f"--workers {text!r}: write a number or MIN:MAX, such as 4 or 1:8")
    return Workers(least, most)


def address_from(runner: str) -> str | None:
    """The address in `ray://HOST:PORT` or `ray:HOST:PORT`; None for `ray`. UserError for another runner."""
    if runner == "ray":
        return None
    scheme, _, rest = runner.partition(":")
    if scheme != "ray" or not rest.strip("/"):
        raise UserError(
            f"--runner {runner!r}: write ray (this machine, or the cluster in RAY_ADDRESS), or ray://HOST:PORT"
        )
    if set(rest) & set("@?#%\\") or not rest.isprintable() or looks_secret(rest):
        raise UserError(
            "--runner: an address of Ray is its host and port alone: write ray://HOST:PORT, and put the cluster's token"
            " into an environment variable: export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=..."
        )
    return runner if rest.startswith("//") else rest


def connect(runner: str) -> Any:
    """The module `ray`, connected. UserError where the package or the cluster is not there."""
    address = address_from(runner)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None and not {"RAY_ADDRESS", "RAY_AUTH_MODE"} & os.environ.keys() and not _connected():
        # A cluster that is started here listens on every interface, whatever its options: require a token.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # read at the import
    ray = require("ray", "ray")
    if not _connected():
        where = address or os.environ.get("RAY_ADDRESS") or "this machine"
        try:
            _knock(where)
            ray.init(address=address, include_dashboard=False if address is None else None, log_to_driver=False,
                     logging_level="ERROR")  # fmt: skip
        except Exception as error:
            told = f"--runner {runner}: no Ray cluster at {where}: {first_line(error)}"
            token = "" if os.environ.get("RAY_AUTH_MODE") else "; one with a token needs RAY_AUTH_MODE=token here, too"
            raise UserError(f"{told}{token}") from None
    return ray


def _connected() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def _knock(where: str) -> None:
    """OSError where nothing that speaks gRPC, as Ray does, answers at an address: Ray itself waits for minutes."""
    client = where.startswith("ray://")
    found = re.fullmatch(r"(\[.*\]|[^:/]*)(?::(\d+))?/?", where.removeprefix("ray://"))
    if found and (port := found[2] or (_CLIENT_PORT if client else None)):
        host = found[1]
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK) as line:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            line.sendall(_PREFACE)
            try:
                answer = line.recv(len(_SETTINGS))
            except TimeoutError:
                raise TimeoutError("what listens there does not answer") from None
            if answer[3:4] != _SETTINGS[3:4]:
                raise ConnectionError("what listens there is not Ray")


def through_client(ray: Any) -> bool:
    """Whether `ray` is connected through Ray's client server, to a cluster that this machine is not part of."""
    return bool(ray.util.client.ray.is_connected())


def first_line(error: Exception) -> str:
    """The first informative line of an error, with the last one where it only announces a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    announced = f" {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else ""
    return f"{lines[0]}{announced}"[:300]


def why_not_started(error: Exception, spec: str) -> str:
    """What is told of a worker that died while it opened its engine: its machine, and what was raised there, if any."""
    told = re.sub(r"\x1b\[[\d;]*m", "", str(error))
    machine = re.search(r"\bip=([^,\s)]+)", told)
    raised = re.findall(r"^(?:ray::.*?)?([A-Za-z_.]*(?:Error|Exception): .*)$", told, re.MULTILINE)
    why = raised[-1][:300] if raised else first_line(error)
    return f"a worker{f' on {machine[1]}' if machine else ''} died while it opened {spec!r}: {why}"
