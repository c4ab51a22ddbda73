"""A run that is being written: its state, its progress, and a page that follows it without being loaded again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import runs
from browser import Browser
from surface.viewer.viewing_here import Viewed

N = 80


def answered(run: Path) -> int:
    """How many verdicts are on disk."""
    path = run / "verdicts.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def until(tab: Browser, script: str) -> None:
    """Wait until a script says true of the page."""
    end = time.monotonic() + 100
    while not tab.run(script):
        assert time.monotonic() < end, tab.run("document.body.innerText")
        tab.run("new Promise(done => setTimeout(done, 50))")


def test_a_page_follows_a_run_that_is_being_written(tmp_path: Path, tab: Browser) -> None:
    run = tmp_path / "runs" / "now"
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(N))
    words = ["grade", items, "--judge", "mock:oracle,latency=.02", "--rubric", "helpfulness", "--out", run]
    writer = subprocess.Popen([sys.executable, "-m", "dikast", *map(str, words)], env=runs.environment(),
                              stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        while answered(run) < N // 8:
            assert writer.poll() is None
        os.kill(writer.pid, signal.SIGSTOP)  # from here on the run stands still, and is not finished
        os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
        there = answered(run)
        assert N // 8 <= there < N
        with open(run / "verdicts.jsonl", "ab"):
            os.utime(run / "verdicts.jsonl")  # the last verdict is of this moment, however slow the machine
        viewed = Viewed(tmp_path / "runs")
        try:
            assert f"{there} of {N} questions" in viewed.get("/run", of="now")
            assert "now being written" in viewed.get("/")
            with tab.without_scripts():
                tab.visit(f"{viewed.address}run?of=now")
                assert "JavaScript is off, so reload" in tab.run("document.body.innerText")
            tab.visit(f"{viewed.address}run?of=now")
            assert "JavaScript is off" not in tab.run("document.body.innerText")
            assert f"{there} of {N} questions" in tab.run("document.querySelector('main').innerText")
            tab.run("window.loaded = 1")
            os.kill(writer.pid, signal.SIGCONT)
            assert writer.wait(100) == 0
            until(tab, "document.body.innerText.includes('finished')")
            assert f"{N} of {N} rows" in tab.run("document.body.innerText")
            assert tab.run("window.loaded") == 1  # it was never loaded again
            assert tab.run("document.querySelector('#live[data-live]')") is None  # and asks no more
            assert "now finished" in viewed.get("/")
        finally:
            assert viewed.stop() == 0
    finally:
        writer.kill()
        writer.wait()
