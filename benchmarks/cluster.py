"""What `--runner ray` costs beside one process, and how it grows with its workers.

`python -m benchmarks.cluster` in an environment with the extra `ray` (`make .ray/ready`, then `.ray/bin/python`). A
real cluster on this machine; the judge is a mock, in the scaling part one that sleeps 50 ms a question, so that Ray and
the driver are what is measured. Overhead is wall seconds a question beyond those of one process, start-up told apart;
the driver's cost is the CPU time of its own process, planning and writing included. `--verdicts 1000000` takes the
driver alone: its workers copy one verdict instead of judging; its CPU time and its memory (what it allocates, without
the object store's) are slopes between a quarter of the verdicts and all of them.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from benchmarks.figures import Figure, table
from dikast.core.item import Item
from dikast.core.runs.lines import seal_record
from dikast.engines.base import Engine
from dikast.engines.cluster.ray_engine import Handed, RayEngine
from dikast.judging.by_workers import JudgedBatch, KeyedItem, judge_batch
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.recorded.merging import merge_runs

SLEEP = 0.05
EACH = 200  # questions for each worker of the scaling part


def write_items(path: Path, first: int, n: int) -> Path:
    rows = (
        {"id": f"i{i}", "instruction": f"Q{i}?", "response": f"A{i}.", "gold": i % 5 + 1}
        for i in range(first, first + n)
    )
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def graded(judge: Judge, items: Path, out: Path) -> tuple[float, float]:
    """Wall and CPU seconds of this process."""
    began, used = time.perf_counter(), time.process_time()
    summary = grade_file(judge, str(items), out)
    assert summary["status"] == {"ok": summary["questions"]}, summary["status"]
    return time.perf_counter() - began, time.process_time() - used


def overhead(folder: Path, n: int) -> list[Figure]:
    items, spec = write_items(folder / "items.jsonl", 0, n), "mock:oracle"
    graded(Judge(spec, "helpfulness"), write_items(folder / "few.jsonl", 0, 200), folder / "warm")
    alone, _ = graded(Judge(spec, "helpfulness"), items, folder / "alone")
    began = time.perf_counter()
    with RayEngine(spec, workers="2", work=judge_batch) as engine:
        start = time.perf_counter() - began
        wall, cpu = graded(Judge(engine, "helpfulness"), items, folder / "ray")
    return [
        Figure("start of a cluster and two workers", start, "s"),
        Figure("one process", 1e6 * alone / n, "us a question"),
        Figure("Ray, two workers, beyond it", 1e6 * (wall - alone) / n, "us a question", 300),
        Figure("CPU time of the driver", 1e6 * cpu / n, "us a question", 120),
    ]


def scaling(folder: Path, most: int) -> list[Figure]:
    found, workers = [], 1
    while workers <= most:
        n = EACH * workers
        items = write_items(folder / f"{workers}.jsonl", 0, n)
        with RayEngine(f"mock:oracle,latency={SLEEP}", workers=str(workers), work=judge_batch) as engine:
            wall, _ = graded(Judge(engine, "helpfulness"), items, folder / f"scaled-{workers}")
        lost = 1 - EACH * SLEEP / wall
        found.append(Figure(f"lost of {workers} times one worker's pace", lost, "", 0.1, f"{n / wall:.1f} a second"))
        workers *= 2
    return found


class CopyingWorkers(RayEngine):
    """Workers that copy one verdict, with the keys and items that are asked about."""

    def spread(self, work: Any, parts: Iterator[Any], failed: Any, questions: Any = None) -> Iterator[Handed]:
        """As `RayEngine`, whatever the work."""
        verdict = Judge("mock:oracle", "helpfulness").grade(Item.of("Q?", "A.", gold=3))
        yield from super().spread(
            partial(copies, orjson.loads(orjson.dumps(verdict.record()))), parts, failed, questions
        )


def copies(record: dict[str, Any], engine: Engine, batch: list[KeyedItem], tick: Callable[[], None]) -> JudgedBatch:
    """The verdict `record` for every question of a batch."""
    question = record["question"]
    told = [{**record, "key": key, "question": {**question, "item": item.id}} for item, keys in batch for key in keys]
    return JudgedBatch([seal_record(each) for each in told])


def allocated() -> int:
    """Bytes of memory of this process that are neither of a file nor shared."""
    status = Path("/proc/self/status").read_text("ascii")
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


class Peak:
    """The most memory that this process allocates while the context is open, looked at ten times a second."""

    def __enter__(self) -> "Peak":
        self.bytes, self._done = allocated(), threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.1):
            self.bytes = max(self.bytes, allocated())

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()


def driver(folder: Path, n: int) -> list[Figure]:
    """CPU time and memory of the driver a verdict, as slopes between `n // 4` verdicts and `n`."""
    with CopyingWorkers("mock:oracle", workers="2") as engine:
        judge = Judge(engine, "helpfulness")
        graded(judge, write_items(folder / "few.jsonl", 0, 2000), folder / "warm")
        found = []
        for many in (n // 4, n):
            items = write_items(folder / f"{many}.jsonl", 0, many)
            with Peak() as peak:
                wall, cpu = graded(judge, items, folder / f"copied-{many}")
            found.append((many, wall, cpu, peak.bytes))
            print(f"{many:,} verdicts: {wall:.1f} s, CPU {cpu:.1f} s, {peak.bytes / 1e6:,.0f} MB", file=sys.stderr)
    (few, _, less, low), (many, wall, more, high) = found
    return [
        Figure(f"CPU time of the driver, {few:,} to {many:,}", 1e6 * (more - less) / (many - few), "us a verdict", 120),
        Figure("memory of the driver at the end", high / 1e6, "MB", note=f"{low / 1e6:.0f} MB with {few:,}"),
        Figure("which grows by", (high - low) / (many - few), "bytes a verdict", 8),
        Figure("pace", many / wall, "verdicts a second"),
    ]


def merging(folder: Path, n: int) -> list[Figure]:
    parts = [folder / "part-0", folder / "part-1"]
    for at, part in enumerate(parts):
        items = write_items(folder / f"part-{at}.jsonl", at * n // 2, n // 2)
        graded(Judge("mock:oracle", "helpfulness"), items, part)
    began = time.perf_counter()
    merge_runs(parts, folder / "merged")
    size = (folder / "merged" / "verdicts.jsonl").stat().st_size
    return [
        Figure("merge-runs", 1e6 * (time.perf_counter() - began) / n, "us a verdict"),
        Figure("a verdict on disk", size / n, "bytes"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--most", type=int, default=8, help="workers of the scaling part")
    parser.add_argument("--verdicts", type=int, help="the driver alone, with as many verdicts")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])  # of the workers
    import ray

    ray.init(num_cpus=given.most, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if given.verdicts:
            found = driver(folder, given.verdicts)
        else:
            found = [
                *overhead(folder, given.items),
                *scaling(folder, given.most),
                *merging(folder, given.items),
            ]
    print(table(found))
    sys.exit(not all(figure.met for figure in found))


if __name__ == "__main__":
    main()
