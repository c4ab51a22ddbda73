"""`dikast annotate` with 50 raters at once: how long after a label the next page is there.

By itself: `python -m benchmarks.labelling --raters 50`. Each rater takes from one to three seconds a pair. `--items`
gives raters more pairs than they come to, `--owner` opens the owner's page, which asks for its figures every 5 seconds.
`--stored N`: how the log of a folder grows, which is never put into the database, with N labels of 5 raters.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy as np
import orjson

from benchmarks.view import cpu
from dikast.annotation.labelling_questions import read_questions
from dikast.annotation.session import Shares, opened
from dikast.core.rubric import load_rubric


def measured(raters: int, pairs: int, items: int, *, owner: bool) -> tuple[list[float], float]:
    """Seconds from each label to the next page, the label being on disk in between; processor seconds of a label."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from annotation.labelling_here import Served, label, read

    waits: list[float] = []

    async def one(link: str, draw: random.Random) -> None:
        async with aiohttp.ClientSession() as session:
            async with session.get(link) as answer:
                page = read(await answer.text())
            for _ in range(pairs):
                await asyncio.sleep(draw.uniform(1.0, 3.0))
                began = time.monotonic()
                page = read(await label(session, link, "a", page["task"]))
                waits.append(time.monotonic() - began)

    with tempfile.TemporaryDirectory() as made:
        rows = (
            {"id": str(k), "instruction": "Which?", "response_a": "this", "response_b": "that"} for k in range(items)
        )
        file = Path(made) / "pairs.jsonl"
        file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        served = Served(file, Path(made) / "labels", "--pairs", "--raters", raters).start()

        async def watching() -> None:
            async with aiohttp.ClientSession() as session:
                while True:
                    async with session.get(served.links["progress"]) as answer:
                        await answer.read()
                    await asyncio.sleep(5)

        async def every() -> None:
            watch = asyncio.create_task(watching()) if owner else None
            await asyncio.gather(*(one(served.links[str(n)], random.Random(n)) for n in range(1, raters + 1)))
            if watch is not None:
                watch.cancel()

        assert served.process is not None
        before = cpu(served.process.pid)
        asyncio.run(every())
        spent = cpu(served.process.pid) - before
        served.stop()
    return waits, spent / len(waits)


def stored(labels: int) -> str:
    """Milliseconds until the first and the last tenth of the labels were on disk, the log, and opening it again."""
    with tempfile.TemporaryDirectory() as made:
        file, folder, shares = Path(made) / "items.jsonl", Path(made) / "labels", Shares(raters=5)
        rows = ({"id": str(k), "instruction": "?", "response": str(k)} for k in range(labels // 5))
        file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        questions = read_questions(str(file), {}, load_rubric("helpfulness"), "absolute")
        took = []
        with opened(folder, questions, shares) as session:
            for rater in range(1, 6):
                for task in range((rater - 1) * len(questions) + 1, rater * len(questions) + 1):
                    began = time.perf_counter()
                    assert session.store.keep(task, "3")
                    took.append(time.perf_counter() - began)
            size = session.store.log.stat().st_size
        began = time.perf_counter()
        with opened(folder, questions, shares) as session:
            assert len(session.store.labels()) == labels
        first, last = (1000 * float(np.median(part)) for part in (took[: labels // 10], took[-labels // 10 :]))
        return (
            f"{labels:,} labels: {first:.1f} ms for the first tenth and {last:.1f} ms for the last (medians), a log of"
            f" {size / 1e6:.1f} MB, opened and written out in {time.perf_counter() - began:.1f} s"
        )


def main() -> None:
    """Print the median, the 95th percentile, and processor time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raters", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--items", type=int, help="pairs in the file (as many as each rater labels)")
    parser.add_argument("--owner", action="store_true", help="with the owner's page open")
    parser.add_argument("--stored", type=int, help="only write so many labels to a folder")
    given = parser.parse_args()
    if given.stored:
        print(stored(given.stored))
        return
    seconds, spent = measured(given.raters, given.pairs, given.items or given.pairs, owner=given.owner)
    waits = 1000 * np.array(seconds)
    most = np.quantile(waits, 0.95)
    print(f"{len(waits):,} labels: median {np.median(waits):.1f} ms, 95 of 100 within {most:.1f} ms")
    print(f"processor time of the server: {1000 * spent:.1f} ms a label")


if __name__ == "__main__":
    main()
