"""Recipes with vLLM's server: an untrained model writes noise that fits the schema, and no noise becomes an item.

Every reply becomes a record that reads back, or is rejected with a reason; nothing is left without one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from corpus.sources import graded, photos, seeds
from dikast.core.media import check_image
from dikast.core.records import read_items
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.recipe_file import load_recipe

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("servers")]


@dataclass(frozen=True)
class Case:
    """A recipe for an untrained teacher. `held` are the stages whose replies are constrained by a schema."""

    options: Mapping[str, Any]
    prepare: Callable[[Path], None]
    held: set[str]


CASES = {
    "feedback": Case(
        {"seeds": "seeds.yaml", "rubrics": 3, "rounds": 1, "words": 40, "complete": False, "tolerance": 1}, seeds,
        {"1-rubrics-1", "2-instructions", "3-responses"},
    ),
    "perception": Case(
        {"images": "photos", "per_image": 1, "rounds": 2, "words": 40, "complete": False, "tolerance": 1},
        lambda folder: photos(folder, 3), {"1-rubrics-1", "1-fit-1"},
    ),
    "critic-pointwise": Case(
        {"sources": ["asked.jsonl"], "responders": ["the teacher"]}, lambda folder: photos(folder, 3), {"2-references"}
    ),
    "critic-pairwise": Case({"source": "graded.jsonl"}, lambda folder: graded(folder, 2), {"1-pairs"}),
    "preference": Case({"source": "graded.jsonl"}, lambda folder: graded(folder, 2), {"1-pairs"}),
}  # fmt: skip


@pytest.mark.parametrize("recipe", CASES)
def test_noise_is_a_record_or_is_rejected_with_a_reason(recipe: str, vllm_llava: str, tmp_path: Path) -> None:
    case, out, teacher = CASES[recipe], tmp_path / "out", f"{vllm_llava},retries=1,timeout=300"
    case.prepare(tmp_path)
    told: dict[str, Any] = {"recipe": recipe, "teacher": teacher, "near": False, **case.options}
    # greedy: on a CPU vLLM's sampler crashes on a request with a seed ("CPU Generator does not use offset")
    told |= {"tries": 2, "stop_after_rejects": 1, "max_tokens": 700, "temperature": 0}
    if "responders" in told:
        told["responders"] = [teacher]
    (tmp_path / "recipe.yaml").write_bytes(orjson.dumps(told))
    built = build(load_recipe(tmp_path / "recipe.yaml"), out)
    assert built.waits == ""
    assert case.held <= {stage.name for stage in built.stages}
    for stage in built.stages:
        assert not stage.left
        assert stage.accepted + stage.rejects == stage.tasks
    reasons = set()
    for journal in out.glob("[1-9]-*.jsonl"):
        for line in journal.read_bytes().splitlines():
            record = orjson.loads(line)
            assert record["made"] if record["status"] == "ok" else record["reason"]
            if journal.stem in case.held:
                reasons.add(record.get("reason", ""))
    assert "no JSON object" not in reasons, "the server holds what it finishes to the schema"
    items = list(read_items(str(out / "items.jsonl"))) if built.items else []  # all of it may be noise
    assert len(items) == built.items
    assert all(check_image(image) for item in items for image in item.images)
