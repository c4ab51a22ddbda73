"""A tiny policy that can see, and prompts about scenes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # models of this size are slower with more threads

import tiny_models
from dikast.alignment.align_options import AlignOptions
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_world

SEEN: dict[str, Any] = {
    "domain": "scenes", "size": 56, "grid": 3, "objects": (2, 4), "claims": (2, 3), "scales": ("1-5",), "edits": False,
    "aspects": ("colour", "shape", "size", "completeness"),
}  # fmt: skip


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llava", tmp_path_factory.mktemp("policy") / "llava", seed=4)


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`prompts/` with 20 scenes and `held/` with 8 others."""
    folder = tmp_path_factory.mktemp("scenes")
    write_world(Settings(seed=11, **SEEN), 20, folder / "prompts")
    write_world(Settings(seed=12, **SEEN), 8, folder / "held")
    return folder


@pytest.fixture
def options(policy: Path, scenes: Path, tmp_path: Path) -> Callable[..., AlignOptions]:
    """Options of a small alignment."""

    def made(**values: Any) -> AlignOptions:
        training = tmp_path / "training.yaml"
        training.write_text(yaml.safe_dump({"learning_rate": 1e-4, "batch_size": 8, "device": "cpu"}))
        given: dict[str, Any] = {
            "policy": str(policy), "judge": "mock:oracle,r=0", "prompts": scenes / "prompts/items-00000.jsonl",
            "held_out": scenes / "held/items-00000.jsonl", "out": tmp_path / "run", "rounds": 2, "samples": 3,
            "schedule": "pointwise", "max_tokens": 12, "training": training, "temperature": 1.0, "most_kl": 1e6,
        }  # fmt: skip
        return AlignOptions(**{**given, **values})

    return made
