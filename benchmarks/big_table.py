"""A CSV of any size, read as items or graded: `python -m benchmarks.big_table GIGABYTES [KILOBYTES_A_ROW] [FOLDER]`.

    python -m benchmarks.big_table 1                      reading alone
    python -m benchmarks.big_table 10 50 --grade 1000     `dikast grade` with a mock judge, a budget of 1,000 calls

`grade` reads the whole file to plan its questions, and again to ask them; what is over the budget gets no verdict. The
memory is the process's peak (resident), the time that of the CPU; the file is written first and
removed at the end.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dikast.core.records import read_items


def write_table(path: Path, gigabytes: float, kilobytes: float) -> int:
    """The number of rows, each different."""
    text, rows = "word, " * int(kilobytes * 1000 / 6), 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "answer", "human_score"])
        while file.tell() < gigabytes * 1e9:
            writer.writerow([f"Question {rows}?", text, rows % 5 + 1])
            rows += 1
    return rows


def read(path: Path, rows: int) -> None:
    began = time.process_time()
    assert sum(1 for _ in read_items(path)) == rows
    spent, size = time.process_time() - began, path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{size / 1e9:.2f} GB, {rows:,} rows: {spent:.1f} s of CPU, {size / 1e6 / spent:.0f} MB/s, peak {peak:.0f} MiB"
    )


def graded(path: Path, out: Path, calls: int) -> None:
    """Run `dikast grade` with a budget of calls, and say what it took."""
    command = [sys.executable, "-m", "dikast", "grade", str(path), "--judge", "mock:oracle", "--rubric", "helpfulness"]
    command += ["--out", str(out), "--budget", f"calls={calls}", "--quiet"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    told = process.stdout.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = sum(1 for _ in (out / "verdicts.jsonl").open("rb")) if (out / "verdicts.jsonl").exists() else 0
    print(told.strip())
    print(
        f"{path.stat().st_size / 1e9:.2f} GB through grade: {lines:,} verdicts, exit {process.returncode}, "
        f"{time.perf_counter() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU, "
        f"peak {used.ru_maxrss / 1024:.0f} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gigabytes", type=float, nargs="?", default=1.0)
    parser.add_argument("kilobytes", type=float, nargs="?", default=10.0)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--grade", type=int, metavar="CALLS", help="grade it with this budget of calls")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as here:
        path = Path(here, "big.csv")
        rows = write_table(path, given.gigabytes, given.kilobytes)
        if given.grade is None:
            return read(path, rows)
        print(f"{rows:,} rows", flush=True)
        graded(path, Path(here, "run"), given.grade)


if __name__ == "__main__":
    main()
