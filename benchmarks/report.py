"""`dikast report` on 100,000 verdicts: seconds to write the page, its size, seconds until Chromium has it open.

By itself: `python -m benchmarks.report --n 100000`. Without Chromium the page is written and not opened. With `--rest`
the pages with all other verdicts are written beside it, for which there is no goal.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson

from benchmarks.figures import Figure, table

GOAL_SECONDS, GOAL_BYTES, GOAL_OPEN = 60.0, 10e6, 1.0


def write_run(folder: Path, n: int) -> Path:
    """A run of n verdicts by a mock judge, two in a hundred without a verdict."""
    items = folder / "items.jsonl"
    with items.open("wb") as file:
        for i in range(n):
            words = "It is, as one sees at once. " * (1 + i * 7919 % 23)
            item = {"id": f"i{i}", "instruction": f"Is {i} even?", "response": words, "gold": i % 5 + 1}
            file.write(orjson.dumps(item) + b"\n")
    judge = ["--judge", "mock:oracle,failing=.02", "--rubric", "helpfulness"]
    done = subprocess.run(
        [sys.executable, "-m", "dikast", "grade", str(items), *judge, "--out", str(folder / "run")],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert done.returncode in (0, 3), done.returncode  # 3: some have no verdict, as they should
    return folder / "run"


def opened(page: Path) -> float | None:
    """Seconds until a fresh tab has loaded and drawn the page, the median of five; None without Chromium."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from browser import CHROMIUM, browser

    if CHROMIUM is None:
        return None
    with browser() as tab:
        return sorted(tab.open(page) for _ in range(5))[2]


def main() -> None:
    """Measure and print; exits with 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--rest", action="store_true", help="also write the pages with all other verdicts")
    given = parser.parse_args()
    n, more = given.n, ["--rest"] if given.rest else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, page = write_run(folder, n), folder / "report.html"
        code = f"""
import time, sys, resource
began = time.perf_counter()
sys.argv = ["dikast", "report", {str(run)!r}, "-o", {str(page)!r}, *{more!r}]
from dikast.surface.cli import main
try:
    main()
except SystemExit as leaving:
    assert not leaving.code
used = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
        done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
        seconds, cpu, peak = map(float, done.stdout.split("\n")[-2].split())
        found = [
            Figure(f"report of {n:,} verdicts", seconds, "s", GOAL_SECONDS),
            Figure("  of which CPU", cpu, "s", GOAL_SECONDS),
            Figure("  peak memory", peak, "MB", 2000),
            Figure("  pages beside it", len(list(page.with_name("report-rest").glob("*.html")))),
            Figure("  size of the page", page.stat().st_size / 1e6, "MB", GOAL_BYTES / 1e6),
        ]
        if (open_in := opened(page)) is not None:
            found.append(Figure("  open in Chromium", open_in, "s", GOAL_OPEN))
    print(table(found))
    sys.exit(not all(figure.met for figure in found))


if __name__ == "__main__":
    main()
