"""`dikast view` in a process of its own, and its pages without a browser."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from html import unescape
from pathlib import Path

import runs


class Viewed:
    """A process that shows a folder of runs."""

    def __init__(self, folder: Path, *flags: str) -> None:
        command = [sys.executable, "-m", "dikast", "view", str(folder), "--port", "0", *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=runs.environment())
        assert self.process.stderr is not None
        told = next(line for line in self.process.stderr if "viewing" in line)
        self.address = told.split(" on ")[1].split()[0]

    def get(self, path: str, **query: str | list[str]) -> str:
        """The text of a page: its words alone, so that tests read what people read."""
        return words(self.page(path, **query))

    def page(self, path: str, **query: str | list[str]) -> str:
        """A page as it is sent."""
        status, text = self.ask(path, **query)  # type: ignore[arg-type]
        assert status == 200, text
        return text

    def ask(self, path: str, *, form: dict[str, str] | None = None, headers: dict[str, str] | None = None,
            **query: object) -> tuple[int, str]:  # fmt: skip
        """Status and text of an answer; `form` is sent as one."""
        address = self.address + path.lstrip("/") + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")
        sent = None if form is None else urllib.parse.urlencode(form).encode()
        asked = urllib.request.Request(address, data=sent, headers=headers or {})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self) -> int:
        """As Ctrl+C."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        code = self.process.wait(60)
        self.process.stderr.close()
        return code


def words(page: str) -> str:
    """The words of a page, a space between them."""
    text = re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>|<[^>]*>", " ", page)
    return " ".join(unescape(text).split())


def first_link(page: str, path: str) -> str:
    """The first link on a page to `path`, as an address from the root."""
    found = re.search(rf'href="({re.escape(path)}\?[^"]*)"', page)
    assert found is not None, page
    return unescape(found[1])
