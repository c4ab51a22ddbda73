"""One million items through `dikast grade` with a mock judge: memory while it runs, the scan and the resume after.

Also by itself: `python -m benchmarks.million --n 1000000`. Memory is the peak of the whole process, as the system
counts it; growth is the peak of the run over n items less that of a run over one chunk of them.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import orjson

from benchmarks.figures import Figure, table

JUDGE = "mock:oracle"
FEW = 2_000
_PEAK = re.compile(rb"VmHWM:\s+(\d+) kB")


class Cost(NamedTuple):
    """Wall seconds and peak memory in MB of a process."""

    seconds: float
    peak: float


def write_items(path: Path, n: int) -> None:
    """N items of about 200 bytes, each different."""
    with path.open("wb") as file:
        for i in range(n):
            item = {
                "id": f"item-{i:07d}",
                "instruction": f"Write a sentence about the number {i} and say whether it is even.",
                "response": f"The number {i} ends in {i % 10}, so one sees at once whether two divides it.",
                "gold": i % 5 + 1,
            }
            file.write(orjson.dumps(item) + b"\n")


def run(script: str) -> Cost:
    """Run Python statements in a process of their own, which tells its peak at the end."""
    tail = "\nprint(open('/proc/self/status').read(), flush=True)"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script + tail], check=True, stdout=subprocess.PIPE)
    found = _PEAK.search(done.stdout)
    return Cost(time.perf_counter() - began, int(found[1]) / 1024 if found else float("nan"))


def grading(items: Path, out: Path) -> str:
    """Statements that do what `dikast grade` does."""
    arguments = [
        "dikast",
        "grade",
        str(items),
        "--judge",
        JUDGE,
        "--rubric",
        "helpfulness",
        "--out",
        str(out),
        "--json",
    ]
    return (
        f"import sys\nsys.argv = {arguments!r}\nfrom dikast.surface.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code, end.code"
    )


def figures(n: int = 1_000_000, folder: Path | None = None) -> list[Figure]:
    """Measure with n items, in a temporary folder (about 1.6 kB an item) or in `folder`, where the run stays."""
    with tempfile.TemporaryDirectory(prefix="dikast-million-") as temporary:
        where = folder or Path(temporary)
        items, few, out = where / "items.jsonl", where / "few.jsonl", where / "run"
        write_items(items, n)
        write_items(few, FEW)
        base = run(grading(few, where / "few"))
        whole = run(grading(items, out))
        scan = run(
            "from pathlib import Path\nfrom dikast.core.runs.current_verdicts import answered\n"
            f"print(len(answered(Path({str(out)!r}))))"
        )
        again = run(grading(items, out))
        size = (out / "verdicts.jsonl").stat().st_size
    return [
        Figure("questions a second", n / whole.seconds, "/s", note=f"{n:,} items through dikast grade, {JUDGE}"),
        Figure("memory growth while grading", whole.peak - base.peak, "MB", 150, f"peak {whole.peak:.0f} MB"),
        Figure("scan of the finished run", scan.seconds, "s", 15, f"{size / 1e6:,.0f} MB of verdicts"),
        Figure(
            "resume with nothing to do",
            again.seconds,
            "s",
            60,
            f"peak {again.peak:.0f} MB, {again.peak - base.peak:.0f} MB above a small run",
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A million items through dikast grade.")
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="keep everything here")
    given = parser.parse_args()
    if given.folder is not None:
        os.makedirs(given.folder, exist_ok=True)
    print(table(figures(given.n, given.folder)))
