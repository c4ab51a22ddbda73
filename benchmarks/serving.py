"""The server under many clients: what is lost or swapped, CPU a request, memory over many, and what gathering gains.

By itself: `python -m benchmarks.serving`, or with `--part many|memory|batching`. The server is `dikast serve` in a
process of its own, the clients are aiohttp's in another.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.figures import Figure, table
from dikast.core.item import Item
from dikast.core.records import read_items, write_items
from dikast.judging.judge import Judge
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples

CLIENTS, EACH = 200, 50
MANY = 100_000
MOCK = "mock:constant"


@contextmanager
def served(*arguments: str) -> Iterator[tuple[str, int]]:
    """`dikast serve`: its address and its process."""
    command = [sys.executable, "-m", "dikast.surface.cli", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = None
            while found is None:
                line = process.stderr.readline()
                if not line:
                    raise SystemExit("the server ended before it served")
                found = re.search(r"http://\S+", line)
            yield found[0], process.pid
        finally:
            process.terminate()
            process.wait()


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """Resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def item(n: int) -> dict[str, Any]:
    """A short question of its own."""
    return {"id": f"i{n}", "instruction": f"Why is the sky blue, {n}?", "response": f"Air scatters blue light, {n}."}


async def ask(url: str, clients: int, each: int, keys: Mapping[str, str]) -> tuple[int, int]:
    """How many answers were lost and how many were another's."""
    lost = swapped = 0

    async def client(number: int) -> None:
        nonlocal lost, swapped
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=600)) as session:
            for n in range(number * each, (number + 1) * each):
                async with session.post(f"{url}/v1/score", data=json.dumps(item(n))) as reply:
                    told = await reply.json()
                if reply.status != 200:
                    lost += 1
                elif told["id"] != f"i{n}" or (keys and told["verdicts"][0]["key"] != keys[told["id"]]):
                    swapped += 1

    await asyncio.gather(*(client(number) for number in range(clients)))
    return lost, swapped


def plain_cost(n: int) -> float:
    """Microseconds of CPU that a question costs in a plain grade of many, in this process."""
    judge = Judge(MOCK, "helpfulness")
    list(judge.grade_many(item(i) for i in range(200)))
    costs = []
    for _ in range(5):
        began = time.process_time()
        for _ in judge.grade_many(item(i) for i in range(n)):
            pass
        costs.append((time.process_time() - began) / n * 1e6)
    return statistics.median(costs)


def many(clients: int = CLIENTS, each: int = EACH) -> list[Figure]:
    """Many clients at once: nothing lost, nothing swapped; CPU a request."""
    total = clients * each
    keys = {v.question.item: v.key for v in Judge(MOCK, "helpfulness").grade_many(item(n) for n in range(total))}
    with served("--judge", MOCK, "--rubric", "helpfulness", "--queue", str(10 * clients)) as (url, pid):
        asyncio.run(ask(url, 10, 20, {}))
        began, cpu = time.monotonic(), cpu_of(pid)
        lost, swapped = asyncio.run(ask(url, clients, each, keys))
        seconds, spent = time.monotonic() - began, (cpu_of(pid) - cpu) / total * 1e6
        plain = plain_cost(min(total, 2000))
    return [
        Figure(f"{clients} clients x {each}: lost", lost, goal=1),
        Figure(f"{clients} clients x {each}: swapped", swapped, goal=1),
        Figure("CPU a request", spent, "us", note=f"a plain grade {plain:.0f} us; {total / seconds:,.0f} requests/s"),
        Figure("CPU a request beside a plain grade", spent - plain, "us", 150),
    ]


def memory(total: int = MANY) -> list[Figure]:
    """Memory of the server over many requests: the growth from a tenth of them to all."""
    with served("--judge", MOCK, "--rubric", "helpfulness") as (url, pid):
        asyncio.run(ask(url, 50, total // 500, {}))
        before = memory_of(pid)
        asyncio.run(ask(url, 50, total // 50 - total // 500, {}))
        after = memory_of(pid)
    return [Figure(f"memory over {total:,} requests: growth", after - before, "MB", 10, f"{before:.0f} to {after:.0f}")]


async def _send(url: str, rows: list[bytes], together: int) -> None:
    left = iter(rows)

    async def client(session: aiohttp.ClientSession) -> None:
        for row in left:
            async with session.post(f"{url}/v1/score", data=row) as reply:
                assert reply.status == 200, await reply.text()
                await reply.read()

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=600)) as session:
        await asyncio.gather(*(client(session) for _ in range(together)))


def batching(n: int = 128) -> list[Figure]:
    """A local model: many clients at once against one request at a time."""
    with tempfile.TemporaryDirectory() as scratch:
        samples = list(make(Settings(domain="text", split="fresh", seed=5), 2 * n))
        items = list(read_items(str(write_samples(samples, Path(scratch), {"test": 1}).files[0])))[: 2 * n]
    rows = [json.dumps(_plain(each)).encode() for each in items]
    found: dict[str, dict[int, float]] = {}
    spent: dict[str, dict[int, float]] = {}
    for read in ("only", "auto"):
        with served("--judge", "scout", "--read", read) as (url, pid):
            asyncio.run(_send(url, rows[:8], 8))
            for together in (1, 64):
                some = rows[: n // 4] if together == 1 else rows[:n]
                began, cpu = time.monotonic(), cpu_of(pid)
                asyncio.run(_send(url, some, together))
                found.setdefault(read, {})[together] = len(some) / (time.monotonic() - began)
                spent.setdefault(read, {})[together] = (cpu_of(pid) - cpu) / len(some)
    figures = []
    for read, rates in found.items():
        gain = rates[64] / rates[1]
        told = f"{rates[1]:.1f} and {rates[64]:.1f} requests/s; the goal is 4"
        figures.append(Figure(f"64 clients against one, scout, --read {read}: times", gain, note=told))
        one, many = spent[read][1], spent[read][64]
        told = f"{1000 * one:.0f} and {1000 * many:.0f} ms of the server's CPU a request"
        figures.append(Figure(f"the same by CPU, --read {read}: times", one / many, note=told))
    return figures


def _plain(item: Item) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "one.jsonl")
        write_items(path, [item])
        found: dict[str, Any] = json.loads(path.read_text())
    return {key: found[key] for key in ("id", "instruction", "response", "rubric") if key in found}


PARTS: dict[str, Callable[[], list[Figure]]] = {"many": many, "memory": memory, "batching": batching}


def main() -> None:
    """Measure and print; exit code 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--part", choices=list(PARTS), action="append", help="only this; may be repeated")
    given = parser.parse_args()
    found = [figure for name in given.part or PARTS for figure in PARTS[name]()]
    print(table(found))
    sys.exit(not all(each.met for each in found))


if __name__ == "__main__":
    main()
