"""`dikast view` over many runs: how long the first page and every other take.

By itself: `python -m benchmarks.view --runs 1000 --verdicts 1000`. The runs are copies of a few, with judges and
verdicts of their own. Times are of requests over HTTP on this machine, from sending to the last byte.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from html import unescape
from pathlib import Path

KINDS = 8  # different judges


def made(folder: Path, n: int, verdicts: int) -> Path:
    """A folder of `n` runs over the same items, of which each is one of `KINDS`."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import runs

    items = runs.write_jsonl(folder / "items.jsonl", runs.rows(verdicts))
    for kind in range(KINDS):
        done = runs.dikast("grade", items, "--judge", f"mock:oracle,r=.8,seed={kind},failing=.02", "--rubric",
                           "helpfulness", "--out", folder / f"kind-{kind}")  # fmt: skip
        assert done.returncode in (0, 3), done.stderr
    for k in range(n):
        shutil.copytree(folder / f"kind-{k % KINDS}", folder / "runs" / f"week-{k // 50}" / f"run-{k}")
    return folder / "runs"


def timed(process: int, address: str) -> tuple[float, float]:
    """Seconds until a page is there, and seconds of processor time that the server took for it."""
    began, spent = time.monotonic(), cpu(process)
    with urllib.request.urlopen(address, timeout=120) as answer:
        answer.read()
    return time.monotonic() - began, cpu(process) - spent


def cpu(process: int) -> float:
    """Seconds of processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(name: str, times: list[tuple[float, float]]) -> None:
    """One line of the table: medians and the slowest."""
    waits, spent = zip(*times, strict=True)
    figures = (statistics.median(waits), max(waits), statistics.mean(spent))
    print(f"| {name} | {' | '.join(f'{each:.3f} s' for each in figures)} |", flush=True)


def main() -> None:
    """Print the table of `docs/viewer.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--verdicts", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="use the runs that an earlier call has made here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or made(Path(scratch), given.runs, given.verdicts)
        command = [sys.executable, "-m", "dikast", "view", str(folder), "--port", "0"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            base = next(line for line in process.stderr if "viewing" in line).split(" on ")[1].split()[0]
            print("| page | median | slowest | processor time |\n|---|---|---|---|")
            told("first page, without an index", [timed(process.pid, base)])
            spent = cpu(process.pid)
            while re.search(
                rb"not been looked into|still being read", urllib.request.urlopen(base, timeout=120).read()
            ):
                time.sleep(2)
            print(f"| all verdicts read in the background | | | {cpu(process.pid) - spent:.0f} s |")
            names = [f"week-{k // 50}/run-{k}" for k in range(0, given.runs, max(1, given.runs // 25))]
            each: dict[str, Callable[[str], str]] = {
                "list": lambda name: base,
                "list, a search": lambda name: f"{base}?q={name}+seed&sort=least+like+gold",
                "run": lambda name: f"{base}run?of={name}",
                "run, largest gaps": lambda name: f"{base}run?of={name}&show=not+as+gold&sort=largest+gap",
                "item": lambda name: base + _item(f"{base}run?of={name}"),
                "two runs": lambda name: f"{base}compare?run={name}&run=week-0/run-1",
            }  # fmt: skip
            for title, address in each.items():
                told(title, [timed(process.pid, address(name)) for name in names if name[-6:] != "/run-1"])
            size = sum(path.stat().st_size for path in folder.glob(".dikast-view.sqlite*"))
            of_runs = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
            print(f"the index has {size / 1e6:.0f} MB, the runs {of_runs / 1e6:,.0f} MB")
        finally:
            process.terminate()
            process.wait(60)
            process.stderr.close()


def _item(address: str) -> str:
    page = urllib.request.urlopen(address, timeout=120).read().decode()
    return unescape(page.split('href="/item?')[1].split('"')[0]).join(("item?", ""))


if __name__ == "__main__":
    main()
