"""Recipes against vLLM's server: an untrained model writes noise in the shape it is held to, and none of it gets past.

Every reply becomes a record that reads back, or is rejected with a reason; nothing is left without one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from corpus.sources import graded, seeds
from dikast.core.records import read_items
from dikast.corpus.build import build
from dikast.corpus.load import load_recipe
from engines import live_servers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("vllm")
    with live_servers.vllm_server(live_servers.tiny_text(folder / "text"), folder / "home", name="tiny") as address:
        yield f"{address}/v1#tiny,retries=1,timeout=120"


@dataclass(frozen=True)
class Case:
    """A recipe for a teacher that knows nothing. `stages` are the ones it must come through."""

    options: Mapping[str, Any]
    prepare: Callable[[Path], None]
    stages: int


CASES = {
    "feedback": Case(
        {"seeds": "seeds.yaml", "rubrics": 3, "rounds": 2, "instructions": 2, "complete": False, "tolerance": 1},
        seeds,
        4,
    ),
    "preference": Case({"source": "graded.jsonl"}, lambda folder: graded(folder, 2), 1),
}


@pytest.mark.parametrize("recipe", CASES)
def test_noise_is_a_record_or_is_rejected_with_a_reason(recipe: str, teacher: str, tmp_path: Path) -> None:
    case, out = CASES[recipe], tmp_path / "out"
    case.prepare(tmp_path)
    common = {"tries": 2, "stop_after_rejects": 1, "max_tokens": 900, "temperature": 1, "near": False}
    path = tmp_path / "recipe.yaml"
    path.write_bytes(orjson.dumps({"recipe": recipe, "teacher": teacher, **common, **case.options}))
    built = build(load_recipe(path), out)
    assert built.waits == ""
    assert len({stage.name.split("-")[0] for stage in built.stages}) == case.stages
    for stage in built.stages:
        assert not stage.left
        assert stage.accepted + stage.rejects == stage.tasks > 0
        assert stage.accepted == 0 or stage.records >= stage.accepted
    for journal in out.glob("[1-9]-*.jsonl"):
        for line in journal.read_bytes().splitlines():
            record = orjson.loads(line)
            assert bool(record.get("made")) != bool(record.get("reason")), record
    assert sum(1 for _ in read_items(str(out / "items.jsonl"))) == built.items == sum(built.kept.values())
