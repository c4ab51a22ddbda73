"""The client beside others: the openai SDK with its aiohttp transport, litellm, prometheus-eval.

    python -m benchmarks.client peers --openai PYTHON --litellm PYTHON --prometheus PYTHON

Each client runs in a process of its own (`benchmarks/peer.py`), those of others with the Python of an environment of
their own, which the options (or DIKAST_PEER_OPENAI, DIKAST_PEER_LITELLM, DIKAST_PEER_PROMETHEUS) name; what is not
named is left out with a word. All take turns against one server that answers after 50 ms; figures are medians over the
rounds of client CPU per request, ratios those within a round. The environments, each in a fresh venv:

    pip install 'openai[aiohttp]==2.54.0'
    pip install litellm==1.106.2
    pip install prometheus-eval==0.1.20 litellm==1.106.2
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from benchmarks.client import MODEL, PROMPT, TEXT, served, tell

PEERS = ("openai", "litellm", "prometheus")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that name the environments."""
    for name in PEERS:
        parser.add_argument(f"--{name}", default=os.environ.get(f"DIKAST_PEER_{name.upper()}", ""), metavar="PYTHON")


def compare(given: argparse.Namespace) -> None:
    """Measure, and print one JSON object a line for each client."""
    pythons = {name: path for name in PEERS if (path := getattr(given, name))}
    for name in PEERS:
        if name not in pythons:
            print(f"{name} is left out: name the Python of its environment with --{name}", file=sys.stderr)
    for in_flight in (128, 512):
        in_turns(pythons, in_flight, 1500, given.repeat)


def in_turns(pythons: Mapping[str, str], in_flight: int, n: int, repeat: int) -> None:
    """CPU per request of every client, in turns, and how many times what ours takes."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    costs: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    versions: dict[str, str] = {}

    told_by_clients = tempfile.TemporaryFile()  # noqa: SIM115 - progress bars, and why one broke down

    def turn(name: str, url: str, n: int) -> dict[str, Any]:
        process = processes[name]
        assert process.stdin is not None
        assert process.stdout is not None
        work = {"url": url, "model": MODEL, "prompt": PROMPT, "text": TEXT, "n": n, "in_flight": in_flight}
        process.stdin.write(orjson.dumps(work) + b"\n")
        process.stdin.flush()
        if not (line := process.stdout.readline()):
            told_by_clients.seek(0)
            raise RuntimeError(f"{name} broke down: {told_by_clients.read()[-2000:].decode(errors='replace')}")
        told: dict[str, Any] = orjson.loads(line)
        return told

    script = str(Path(__file__).with_name("peer.py"))
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # or its import looks for a price list online
    try:
        for name in ("raw", "stream", "grade", *pythons):
            command = [pythons[name], "-P", script] if name in pythons else [sys.executable, "-m", "benchmarks.peer"]
            processes[name] = subprocess.Popen(
                [*command, name], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told_by_clients
            )
        with served() as url:
            for name in processes:
                versions[name] = turn(name, url, 2 * in_flight)["version"]  # imports, caches
            for _ in range(repeat):
                for name in processes:
                    told = turn(name, url, n)
                    costs.setdefault(name, []).append(told["cpu"] / n * 1e6)
                    rates.setdefault(name, []).append(n / told["wall"])
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    for name, found in costs.items():
        ratios = {
            f"times_{ours}": statistics.median(a / b for a, b in zip(found, costs[ours], strict=True))
            for ours in ("stream", "grade")
        }
        tell(
            what="peer", client=name, version=versions[name], in_flight=in_flight, n=n, rounds=repeat,
            us=statistics.median(found), least_us=min(found), most_us=max(found), **ratios,
            per_second=statistics.median(rates[name]),
        )  # fmt: skip
