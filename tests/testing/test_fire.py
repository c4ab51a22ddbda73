"""The benchmark of runs under fire, small: its rules hold, and they can be broken."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from benchmarks.fire import EVERY, MIXED, RULES, broken_rules, killed, under_fire, verdicts

from dikast.testing.faults import FaultServer
from engines.http_servers import grade, write_items


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*EVERY, MIXED])
def test_a_run_under_each_fault_keeps_the_rules(fault: str, tmp_path: Path) -> None:
    found = under_fire(fault, 500, 0.2, 0, tmp_path)
    assert found["broken"] == []
    assert found["met"] > 60
    assert sum(found["status"].values()) == 500


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["hang", MIXED])
def test_a_run_killed_under_fire_is_resumed_and_asks_nothing_twice(fault: str, tmp_path: Path) -> None:
    found = killed(fault, 500, 0.2, 0, tmp_path)
    assert found["broken"] == []
    assert 250 <= found["killed_at"] < 500


def test_the_rules_can_be_broken(tmp_path: Path) -> None:
    with FaultServer() as server:
        grade(write_items(tmp_path / "items.jsonl", 5), f"{server.spec}", tmp_path / "run")
    found = verdicts(tmp_path / "run")
    assert broken_rules(found, 5, "cut") == []
    assert broken_rules(found, 6, "cut") == [RULES[0]]

    def with_first(**fields: Any) -> list[dict[str, Any]]:
        return [{**orjson.loads(orjson.dumps(found[0])), **fields}, *found[1:]]

    assert broken_rules(with_first(status="engine_error", reason=""), 5, "cut") == [RULES[1]]
    untyped = with_first(status="engine_error", reason="Something broke.", score=None)
    assert broken_rules(untyped, 5, "cut") == [RULES[1]]
    assert broken_rules(with_first(status="unparsed", reason="no marker", score=None), 5, "cut") == [RULES[1]]
    attempts = [{**found[0]["attempts"][0], "raw": "It is cut", "label_logprobs": None}]
    assert broken_rules(with_first(attempts=attempts), 5, "cut") == [RULES[2]]
