"""`dikast annotate` in a process of its own that can be killed, and a rater without a browser."""

import asyncio
import csv
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any

import aiohttp

import runs
from browser import Browser


class Served:
    """A process that serves `items`; started again after a kill, on the same port."""

    def __init__(self, items: Path, out: Path, *more: object) -> None:
        self.words = ["annotate", str(items), "--out", str(out), *map(str, more)]
        self.port = 0
        self.links: dict[str, str] = {}
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> "Served":
        """Start, and read the links."""
        command = [sys.executable, "-m", "dikast", *self.words, "--port", str(self.port)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=runs.environment())
        assert self.process.stderr is not None
        told = ""
        for line in self.process.stderr:
            told += line
            if found := re.match(r"(?:rater )?(\w+): (http\S+)", line):
                self.links[found[1]] = found[2]
            if line.startswith("progress"):
                break
        assert "progress" in self.links, told
        self.port = int(self.links["progress"].split(":")[2].split("/")[0])
        return self

    def kill(self) -> None:
        """As a power cut for the process: nothing is told to it."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        """As Ctrl+C: the files are written."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        assert self.process is not None
        assert self.process.stderr is not None
        code = self.process.wait(60)
        self.process.stderr.close()
        return code


def read(page: str) -> dict[str, Any]:
    """The task, the texts and the kind that a page shows; `task` is None when all is done."""
    task = re.search(r'name="task" value="(\d+)"', page)
    texts = [unescape(each) for each in re.findall(r'<div class="text"[^>]*>(.*?)</div>', page, re.DOTALL)]
    asked = 'class="answers"' in page
    return {"task": task[1] if task and asked else None, "texts": texts, "practice": "for practice" in page}


async def label(session: aiohttp.ClientSession, link: str, value: str, task: str, reason: str = "") -> str:
    """Send a label, again after a while where the server says that these were too many; the next page."""
    data = {"task": task, "value": value, "reason": reason}
    for _ in range(60):
        async with session.post(f"{link}/label", data=data) as answer:
            if answer.status != 429:
                assert answer.status == 200, await answer.text()
                return await answer.text()
            await asyncio.sleep(float(answer.headers["Retry-After"]))
    raise AssertionError("the server takes no label of this rater")


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def settle(tab: Browser) -> None:
    """Wait until the page takes answers: those within 400 ms after it appears were meant for the page before."""
    while tab.run("performance.now() - performance.getEntriesByType('navigation')[0].domInteractive") < 450:
        time.sleep(0.05)


def press(tab: Browser, key: str) -> None:
    """Press a key on a page that has been read, and wait for the page after it."""
    settle(tab)
    tab.run("window.old = 1")
    tab.press(key)
    arrived(tab)


def arrived(tab: Browser) -> None:
    """Wait for the page after one that was marked `window.old`."""
    for _ in range(400):
        with suppress(RuntimeError):  # the page is left while it is asked
            if tab.run("window.old === undefined && document.readyState === 'complete'"):
                return
            tab.run("new Promise(done => setTimeout(done, 25))")
    raise AssertionError("no new page came")
