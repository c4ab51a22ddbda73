"""Sources behind addresses that a user types: where they may lead, how much they may send, and what they may hold."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.media import fetch
from dikast.core.records import remote
from dikast.core.records.sources import files_of, forget
from runs import dikast_here

SECRET = b"iam-role-4711"


class _Server(BaseHTTPRequestHandler):
    """Redirects (`/to/URL`, `/round`), drips, and sends far more than anybody should take."""

    asked: ClassVar[list[str]]
    sent: ClassVar[int] = 0  # bytes of `/endless` that a client has taken

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path[4:])
            self.end_headers()
        elif self.path.startswith("/round"):
            self.send_response(302)
            self.send_header("Location", f"/round{len(type(self).asked)}")
            self.end_headers()
        elif self.path in ("/slow-header", "/slow-headers"):
            self.wfile.write(b"HTTP/1.0 200 OK\r\n")
            self._drip(b"X-A: " + b"b" * 2000 if self.path == "/slow-header" else b"X-A: b\r\n" * 250)
        else:
            self.send_response(200)
            self.end_headers()
            if self.path == "/endless":
                _Server.sent = 0
                for _ in range(2**12):
                    self.wfile.write(bytes(2**16))
                    _Server.sent += 2**16
            elif self.path == "/slow":
                self._drip(bytes(2_000))
            else:
                self.wfile.write(SECRET)

    def _drip(self, raw: bytes) -> None:
        for at in range(len(raw)):
            self.wfile.write(raw[at : at + 1])
            time.sleep(0.01)

    def log_message(self, *_: object) -> None:
        pass


class _Inner(_Server):
    asked: ClassVar[list[str]] = []


class _Outer(_Server):
    asked: ClassVar[list[str]] = []


@pytest.fixture
def outer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The server that is typed, at 127.0.0.1, with another private one beside it, at 127.0.0.2 and the same port."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,127.0.0.2,localhost")
    _Outer.asked, _Inner.asked = [], []
    forget()
    one = ThreadingHTTPServer(("127.0.0.1", 0), _Outer)
    two = ThreadingHTTPServer(("127.0.0.2", one.server_port), _Inner)
    with one, two:
        for each in (one, two):
            each.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are the test
            threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{one.server_port}"
        one.shutdown()
        two.shutdown()
    forget()


def test_only_the_host_that_was_typed_may_be_private(outer: str) -> None:
    port = outer.rpartition(":")[2]
    into = io.BytesIO()
    fetch.download(f"{outer}/to/{outer}/x", into)
    assert into.getvalue() == SECRET
    for host in ("127.0.0.2", "2130706434", "[::ffff:127.0.0.2]", "0x7f000002"):
        for way in (f"{outer}/to/http://{host}:{port}/latest", f"{outer}/to/{outer}/to/http://{host}:{port}/latest"):
            with pytest.raises(DataError, match=r"a private address that you did not type|cannot be fetched") as caught:
                files_of(way)
            assert SECRET.decode() not in str(caught.value)
    assert _Inner.asked == []
    fetch.download(f"http://127.0.0.2:{port}/x", io.BytesIO())  # typed
    assert len(_Inner.asked) == 1


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("slow", r"not complete after \d+ s"),
        ("slow-header", "cannot be fetched"),
        ("slow-headers", "cannot be fetched"),
    ],
)
def test_a_source_that_drips_is_given_up(outer: str, path: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_PATIENCE", 0.5)
    began = time.monotonic()
    with pytest.raises(DataError, match=told):
        fetch.download(f"{outer}/{path}", io.BytesIO(), timeout=2)  # no single byte is as late as that
    assert time.monotonic() - began < 15  # all of it would take at least 20 seconds


@pytest.mark.parametrize("url", ["http://①②⑦.0.0.1:9/x", "http://127.0.0.1:9/ü"])
def test_an_address_of_other_characters_says_how_they_are_written(url: str) -> None:
    with pytest.raises(DataError, match=r"characters beyond ASCII are written as %XX in a URL, and as xn--"):
        fetch.download(url, io.BytesIO())


def test_a_source_without_end_is_given_up(outer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "MOST_SOURCE_BYTES", 2**20)
    into = io.BytesIO()
    with pytest.raises(DataError, match="has more than 1,048,576 bytes: download it"):
        fetch.download(f"{outer}/endless", into)
    assert len(into.getvalue()) <= 2**20
    assert _Server.sent < 2**26  # what fits into buffers on the way; all of it would be 2**28


def test_redirects_without_end_are_given_up(outer: str) -> None:
    with pytest.raises(DataError, match="the server answers 302: fix the URL"):
        fetch.download(f"{outer}/round", io.BytesIO())
    assert len(_Outer.asked) <= 12


def test_a_full_disk_is_not_the_server_s_fault(outer: str) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(RunError, match="make room"):
        fetch.download(f"{outer}/x", full)


@pytest.mark.parametrize(
    ("address", "cure"),
    [
        ("https://host/rows.jsonl?token=SESAME4711", "download the file"),
        ("https://bucket.example/x?X-Amz-Credential=a&X-Amz-Signature=SESAME4711", "download the file"),
        ("https://account.example/x?sv=2024&sig=SESAME4711", "download the file"),
        ("https://me:SESAME4711@host/rows.jsonl", "download the file"),
        ("https://SESAME4711@host/rows.jsonl", "download the file"),
        ("hf://user:SESAME4711@datasets/org/name", "export HF_TOKEN=..."),
        ("hf://datasets/org/name?token=SESAME4711", "export HF_TOKEN=..."),
        ("s3://AKIDEXAMPLE:SESAME4711@bucket/rows.jsonl", "export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=..."),
        ("gs://me:SESAME4711@bucket/x.csv", "export GOOGLE_APPLICATION_CREDENTIALS=FILE"),
        ("https://host/hf_SESAME4711SESAME4711/x", "download the file"),
        ("https://host:SESAME4711@[x/y", "download the file"),
    ],
)
def test_an_address_that_holds_a_secret_is_refused(address: str, cure: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        files_of(address)
    assert cure in str(caught.value)
    assert "SESAME" not in str(caught.value)
    judged = ("--judge", "mock:constant", "--rubric", "helpfulness")
    done = dikast_here("grade", address, *judged, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "SESAME" not in done.stdout + done.stderr
    assert not list(tmp_path.rglob("*"))


def test_addresses_without_secrets_are_read(outer: str) -> None:
    for query in ("", "?version=2&download=true", "?config=en&split=test-00000-of-00002"):
        assert Path(files_of(f"{outer}/rows.jsonl{query}")[0]).read_bytes() == SECRET


@pytest.mark.parametrize(
    "address", ["ftp://127.0.0.1/x.jsonl", "FTP://127.0.0.1/x.jsonl", "ssh://me@host/x", "zip://a::ftp://h/x"]
)
def test_addresses_that_are_not_read_say_so(address: str) -> None:
    with pytest.raises(
        UserError, match=r"not read here: addresses of http, https, hf, s3 and gs are, .* give its path"
    ):
        files_of(address)


def test_the_next_download_removes_the_part_of_one_that_was_killed(outer: str, tmp_path: Path) -> None:
    address = f"{outer}/endless"
    code = f"import sys; from dikast.core.records.remote import local_copy; local_copy({address!r})"
    running = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    cache = tmp_path / "cache"
    ends = time.monotonic() + 60
    while not any(each.stat().st_size for each in cache.rglob("*.part")) and time.monotonic() < ends:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    (part,) = cache.rglob("*.part")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch, "MOST_SOURCE_BYTES", 2**16)
        with pytest.raises(DataError, match="has more than"):
            remote.local_copy(address)
    assert not part.exists()
    assert not list(cache.rglob("*.part"))
