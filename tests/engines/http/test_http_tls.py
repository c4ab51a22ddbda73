"""Faults of TLS: each ends with a reason, sends nothing, and is never worked around."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dikast.testing.faults import FaultServer
from engines.http_servers import CERTIFICATE, grade, verdicts, write_items

HERE = CERTIFICATE.parent
KEY = "sk-0123456789abcdef"


def reason(spec: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why the one item of a run has no verdict."""
    monkeypatch.setenv("JUDGE_KEY", KEY)
    items = write_items(folder / "items.jsonl", 1)
    _, summary = grade(items, f"{spec},timeout=3,backoff=0.001,retries=1,key_env=JUDGE_KEY", folder / "run")
    assert summary["status"] == {"engine_error": 1}
    (verdict,) = verdicts(folder / "run")
    return str(verdict["reason"])


@pytest.mark.parametrize(
    ("certificate", "trusted", "told"),
    [
        ("expired.pem", True, "expired"),
        ("other-host.pem", True, "doesn't match|not valid for|mismatch"),
        ("loopback.pem", False, "self-signed"),
    ],
    ids=["expired", "of another host", "signed by nobody"],
)
def test_a_certificate_that_does_not_hold_is_refused_and_nothing_is_sent(
    certificate: str, trusted: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(tls=HERE / certificate) as server:
        spec = f"{server.spec},ca={HERE / certificate}" if trusted else server.spec
        why = reason(spec, tmp_path, monkeypatch)
        assert not server.seen_keys
    assert why.startswith("certificate:"), why
    assert re.search(told, why, re.I), why


def test_plain_text_on_a_tls_port_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer() as server:
        why = reason(server.spec.replace("http://", "https://"), tmp_path, monkeypatch)
        assert not server.seen_keys
    assert why.startswith("tls:"), why
    assert "http:// if it does not" in why


def test_tls_on_a_plain_port_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(tls=CERTIFICATE) as server:
        why = reason(server.spec.replace("https://", "http://"), tmp_path, monkeypatch)
        assert not server.seen_keys
    assert why.partition(":")[0] in ("connection", "bad_request"), why


@contextmanager
def hanging_up(after: int) -> Iterator[int]:
    """A port that takes a few bytes of a greeting and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(after)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def test_a_handshake_that_breaks_off_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hanging_up(after=5) as port:
        why = reason(f"https://127.0.0.1:{port}/v1#judge", tmp_path, monkeypatch)
    assert why.partition(":")[0] in ("connection", "tls"), why
