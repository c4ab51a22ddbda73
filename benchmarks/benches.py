"""A bench of 10,000 rows through `dikast bench run` with a mock, and its scorecard: time beside that of `compare`.

`python -m benchmarks.benches --n 10000`. Memory is the peak of a process of its own, as the system counts it; the time
of the bench less that of `dikast compare` on the very items is what benches add beside the engine.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson
import yaml

from benchmarks.figures import Figure, table
from benchmarks.million import Cost

_PEAK = "VmHWM:"


def write_bench(folder: Path, n: int) -> Path:
    """A bench of n pairs in four groups, and its file of rows."""
    with (folder / "rows.jsonl").open("wb") as file:
        for i in range(n):
            row = {
                "id": f"row-{i}",
                "prompt": f"Write a sentence about the number {i} and say whether it is even.",
                "good": f"The number {i} ends in {i % 10}, so one sees at once whether two divides it.",
                "bad": f"{i} is a number.",
                "group": f"group {i % 4}",
                "label": "good",
            }
            file.write(orjson.dumps(row) + b"\n")
    bench = {
        "name": "many", "title": "Many", "about": "rows of a measurement", "state": "schema only", "kind": "pairs",
        "source": {"hub": "org/many", "files": {"rows.jsonl": ""}}, "licence": "-", "citation": "-",
        "fields": {"id": "id", "instruction": "prompt", "response_0": "good", "response_1": "bad"},
        "gold": {"column": "label", "values": {"good": "a"}}, "groups": {"group": "group"},
        "official": {"metric": "accuracy", "over": "groups", "group": "group"},
    }  # fmt: skip
    (folder / "many.yaml").write_text(yaml.safe_dump(bench))
    return folder / "many.yaml"


def run(*words: object) -> Cost:
    """`dikast WORDS` in a process of its own."""
    script = (
        "import sys; from dikast.surface.cli import app; app(standalone_mode=False); "
        "print([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode or _PEAK not in done.stdout:
        raise RuntimeError(done.stderr[-2000:])
    peak = next(line for line in done.stdout.splitlines() if line.startswith(_PEAK))
    return Cost(time.monotonic() - began, int(peak.split()[1]) / 1024)


def figures(n: int = 10_000) -> list[Figure]:
    """Time beside the engine and peak memory of the run, and those of the scorecard."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        bench, judge = write_bench(folder, n), ("--judge", "mock:oracle", "-q")
        ran = run("bench", "run", bench, *judge, "--data", folder, "--out", folder / "out")
        items = folder / "out" / "many" / "items.jsonl"
        plain = run(
            "compare", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", folder / "plain", "-q"
        )
        card = run("bench", "report", folder / "out", "-o", folder / "card.html", "-o", folder / "card.csv")
    return [
        Figure(f"bench run, {n:,} pairs in both orders", ran.seconds, "s"),
        Figure("compare of the same items", plain.seconds, "s"),
        Figure("beside the engine", max(ran.seconds - plain.seconds, 0.0), "s", 30),
        Figure("peak memory of the run", ran.peak, "MB", 150),
        Figure("bench report", card.seconds, "s"),
        Figure("peak memory of the report", card.peak, "MB"),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000)
    found = figures(parser.parse_args().n)
    print(table(found))
    sys.exit(not all(figure.met for figure in found))
