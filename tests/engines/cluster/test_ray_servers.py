"""The same questions by one process, by workers of a real Ray cluster, and by several real servers."""

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
