"""What the command line costs beside another commit: both in turns, in processes of their own, in CPU seconds.

    git worktree add --detach ../first c5cb13d
    python -m benchmarks.against_commit ../first --rounds 7

Each round runs every task once with each tree, in alternating order. A figure is the median over the rounds; the ratio
is the median of the rounds' ratios, with the least and the largest. CPU is user and system time of the process and its
threads, so other work on the machine disturbs it less than the clock. Items and requests are measured inside a
process, after a first run over a few, so that the start is not in them.
"""

import argparse
import compileall
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.audit import write_verdicts
from benchmarks.client import served
from benchmarks.figures import rows_table
from benchmarks.million import write_items

FEW, ITEMS = 100, 2_100
Measure = Callable[[Path], float]


def _environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}


def cpu_seconds(source: Path, *arguments: str) -> float:
    """User and system time of `python ARGUMENTS` with the package in `source`."""
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    process = os.posix_spawn(sys.executable, [sys.executable, *arguments], _environment(source), file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)} failed with the package in {source}")
    return usage.ru_utime + usage.ru_stime


_GRADING = """
import sys, tempfile, time
from pathlib import Path
from dikast.judging.judge import Judge
try:
    from dikast.judging.judge_file import grade_file
    from dikast.judging.run_plan import Source
except ImportError:  # the names of the first version
    from dikast.judging.plan import Source
    from dikast.judging.run import grade_file
few, many, asked = sys.argv[1:]
judge = Judge(asked, "helpfulness", read="never" if "#" in asked else "auto")
with tempfile.TemporaryDirectory() as folder:
    grade_file(judge, Source(few), Path(folder) / "few")  # imports, connections, caches
    began = time.process_time()
    grade_file(judge, Source(many), Path(folder) / "many")
    print(time.process_time() - began)
"""


def an_item(few: Path, many: Path, judge: str) -> Measure:
    """CPU milliseconds of `grade_file` for one more item."""

    def measured(source: Path) -> float:
        command = [sys.executable, "-c", _GRADING, str(few), str(many), judge]
        done = subprocess.run(command, env=_environment(source), check=True, stdout=subprocess.PIPE, text=True)
        return float(done.stdout) / ITEMS * 1e3

    return measured


def tasks(folder: Path, url: str) -> dict[str, Measure]:
    """Every measurement, by its name."""
    few, many = folder / "few.jsonl", folder / "many.jsonl"
    write_items(few, FEW)
    write_items(many, ITEMS)
    verdicts, _ = write_verdicts(folder)
    audit = ("audit", str(verdicts), "--score", "score", "--gold", "gold", "--scale", "1-5", "--by", "rubric", "--json")
    return {
        "python -c pass, s": lambda source: cpu_seconds(source, "-c", "pass"),
        "import dikast, s": lambda source: cpu_seconds(source, "-c", "import dikast"),
        "import dikast; dikast.Judge, s": lambda source: cpu_seconds(source, "-c", "import dikast; dikast.Judge"),
        "dikast --help, s": lambda source: cpu_seconds(source, "-m", "dikast", "--help"),
        "dikast grade --help, s": lambda source: cpu_seconds(source, "-m", "dikast", "grade", "--help"),
        "dikast audit --help, s": lambda source: cpu_seconds(source, "-m", "dikast", "audit", "--help"),
        "an item, mock judge, ms": an_item(few, many, "mock:oracle"),
        "a request to a server, ms": an_item(few, many, f"{url}#judge,concurrency=128"),
        "audit of 1,000,000 rows, s": lambda source: cpu_seconds(source, "-m", "dikast", *audit),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="a checkout of the other commit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="tasks whose name holds this text")
    given = parser.parse_args(arguments)
    other, ours = (tree.resolve() / "src" for tree in (given.other, Path(__file__).parents[1]))
    for source in (other, ours):
        compileall.compile_dir(source, quiet=2)
    rows: list[tuple[str, ...]] = [("task", "other", "this", "ratio", "least", "largest")]
    with tempfile.TemporaryDirectory() as folder, served(latency=0.05) as url:
        for name, measure in tasks(Path(folder), url).items():
            if given.only not in name:
                continue
            pairs = []
            for turn in range(given.rounds):
                if turn % 2:
                    then, now = measure(other), measure(ours)
                else:
                    now, then = measure(ours), measure(other)
                pairs.append((then, now))
            ratios = [now / then for then, now in pairs]
            middle = [statistics.median(values) for values in (*zip(*pairs, strict=True), ratios)]
            rows.append((name, *(f"{value:.3g}" for value in (*middle, min(ratios), max(ratios)))))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    print(rows_table(rows))


if __name__ == "__main__":
    main()
