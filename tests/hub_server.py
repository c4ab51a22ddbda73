"""A server on loopback that serves data sets as the Hugging Face Hub does."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import orjson
import pytest


def use_hub(monkeypatch: pytest.MonkeyPatch, address: str, cache: Path) -> None:
    """Make the server at `address` the Hub of this process, with a cache of its own."""
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))


class Hub(BaseHTTPRequestHandler):
    """The part of the Hub's API that finds and serves files: revisions, metadata of a file, and its bytes."""

    commit = "c0ffee" + "0" * 34
    files: ClassVar[dict[str, dict[str, Any]]] = {}  # by repository, then by path: text, or rows of JSON Lines

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = unquote(self.path.partition("?")[0]).strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            return self.answer_api("/".join(parts[2:4]), parts[4:])
        repo, revision, name = "/".join(parts[1:3]), parts[4], "/".join(parts[5:])
        found = self.files.get(repo, {}).get(name)
        if revision not in ("main", "v1", self.commit):
            return self.reply(404, b"", {"X-Error-Code": "RevisionNotFound"})
        if found is None:
            return self.reply(404, b"", {"X-Error-Code": "EntryNotFound" if repo in self.files else "RepoNotFound"})
        raw = found.encode() if isinstance(found, str) else b"".join(orjson.dumps(row) + b"\n" for row in found)
        etag = hashlib.sha1(raw).hexdigest()
        return self.reply(200, raw, {"ETag": f'"{etag}"', "X-Repo-Commit": self.commit})

    def answer_api(self, repo: str, rest: list[str]) -> None:
        if repo not in self.files:
            return self.reply(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        if rest and rest[0] in ("revision", "tree") and rest[1] not in ("main", "v1", self.commit):
            return self.reply(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        if rest and rest[0] == "tree":
            listed = [{"type": "file", "path": name, "size": 1, "oid": "0" * 40} for name in self.files[repo]]
            return self.reply(200, orjson.dumps(listed), {"Content-Type": "application/json"})
        siblings = [{"rfilename": name} for name in self.files[repo]]
        about = {
            "id": repo,
            "sha": self.commit,
            "siblings": siblings,
            "private": False,
            "gated": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
        }
        return self.reply(200, orjson.dumps(about), {"Content-Type": "application/json"})

    def reply(self, code: int, raw: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for key, value in {**headers, "Content-Length": str(len(raw))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(kind: type[Hub]) -> Iterator[str]:
    """The address of a running server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
