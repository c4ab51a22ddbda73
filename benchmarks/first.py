"""The first verdict on a terminal: seconds from the start of `dikast grade`, with a server that answers in 50 ms.

    python -m benchmarks.first              9 runs of the command in a pseudo-terminal
    python -m benchmarks.first --repeat 3

`cpu_s` is the user and system time of the whole command: the most that a machine without other work would take. One
JSON object on stdout.
"""

import argparse
import os
import pty
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import orjson

from benchmarks.client import served, tell

_SHOWN = re.compile(rb"(?:^|[\rK\n])[1-9][\d,]* of \d+ verdicts")


def first(url: str, folder: Path) -> tuple[float, float]:
    """Seconds until the terminal shows a verdict, and CPU seconds of the whole command."""
    items = folder / "items.jsonl"
    rows = [{"id": str(i), "instruction": f"Question {i}?", "response": f"Answer {i}."} for i in range(20)]
    items.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    command = [sys.executable, "-m", "dikast", "grade", str(items), "--judge", url, "--rubric", "helpfulness"]
    ours, theirs = pty.openpty()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen([*command, "--out", str(folder / "out")], stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen, shown = b"", float("nan")
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the command has ended
            break
        seen += chunk
        if shown != shown and _SHOWN.search(seen):
            shown = time.perf_counter() - began
    os.close(ours)
    if process.wait() or shown != shown:
        raise SystemExit(seen.decode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return shown, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    found = []
    with served() as url:
        for _ in range(given.repeat):
            with tempfile.TemporaryDirectory() as folder:
                found.append(first(f"{url}#judge", Path(folder)))
    seconds, cpu = zip(*found, strict=True)
    told = {"first_verdict_s": median(seconds), "least": min(seconds), "largest": max(seconds)}
    tell(what="first verdict", n=given.repeat, **told, cpu_s=median(cpu), load=os.getloadavg()[0])


if __name__ == "__main__":
    main()
