"""The same questions by one process, by workers of a real Ray cluster, and by several real servers."""

import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dikast.engines.cluster.ray_engine import RayEngine
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.testing.faults import FaultServer
from engines.http_servers import FAST, dying, verdicts, write_items

pytestmark = pytest.mark.slow


def said(run: Path) -> dict[str, dict[str, Any]]:
    """The verdicts of a run by key, each there once, but for who answered and how it went there."""
    found = verdicts(run)
    kept = {each["key"]: each for each in found}
    assert len(kept) == len(found)
    apart = ("server", "usage", "attempts", "crc")
    return {key: {name: told for name, told in each.items() if name not in apart} for key, each in kept.items()}


@pytest.mark.soak(20_000)
def test_one_process_workers_and_servers_say_the_same(tmp_path: Path, tries: int) -> None:
    ray = pytest.importorskip("ray", reason="Ray has an environment of its own: make ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    items, told = write_items(tmp_path / "items.jsonl", tries), f"server=judges,concurrency=4,{FAST}"

    def run(engine: Any, way: str) -> dict[str, dict[str, Any]]:
        with engine:
            summary = grade_file(Judge(engine, "helpfulness"), str(items), tmp_path / way)
        assert summary["status"] == {"ok": tries}, way
        return said(tmp_path / way)

    try:
        with (
            FaultServer(latency=0.02) as first,
            FaultServer(latency=0.2) as slow,
            dying(after=tries // 20) as (url, back),
        ):
            alone = run(open_engine(f"{first.spec},{told}"), "alone")
            assert run(RayEngine(f"{first.spec},{told}", workers="2"), "ray") == alone
            assert run(open_engine(f"{first.url},{slow.url},{url}#judge,{told}"), "servers") == alone
        answered = {each["server"] for each in verdicts(tmp_path / "servers")}
        assert (answered, back.is_set()) == ({first.url, slow.url, url}, True)
    finally:
        ray.shutdown()


@pytest.mark.soak(100)
def test_a_server_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, tries: int) -> None:
    n, concurrency, draws = 400, 4, random.Random(3)
    items = write_items(tmp_path / "items.jsonl", n)
    for attempt in range(tries):
        out, at = tmp_path / str(attempt), draws.randrange(1, n // 2)
        others, lives = [FaultServer(latency=0.01), FaultServer(latency=0.02)], [FaultServer(latency=0.02)]
        with ExitStack() as stack, ExitStack() as first:
            first.enter_context(lives[0])
            for each in others:
                stack.enter_context(each)

            def watch(
                progress: Any,
                lives: list[FaultServer] = lives,
                at: int = at,
                first: ExitStack = first,
                stack: ExitStack = stack,
            ) -> None:
                if progress.done > at and len(lives) == 1:
                    first.close()
                    lives.append(stack.enter_context(FaultServer(latency=0.02, port=lives[0].port)))

            addresses = ",".join(each.url for each in (*others, *lives))
            with open_engine(f"{addresses}#judge,server=judges,concurrency={concurrency},{FAST}") as engine:
                summary = grade_file(Judge(engine, "helpfulness"), str(items), out, watch=watch)
        assert len(lives) == 2, attempt
        assert summary["status"] == {"ok": n}, attempt
        assert len(said(out)) == n, attempt
        asked = sum(each.tries.total() for each in (*others, *lives))
        assert n <= asked <= n + concurrency, attempt  # twice at most what was in flight at the one that died
