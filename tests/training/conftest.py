"""Tiny models of every family and a small world, made once a session."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # models of this size are slower with more threads

import tiny_models
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_world


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model by family; tests that change files copy it first."""

    @cache
    def folder(family: str) -> Path:
        return tiny_models.build(family, tmp_path_factory.mktemp("tiny") / family)

    return folder


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `scenes/`, `pairs/` (both with pictures), `clips/` and `texts/`, twelve items each; three clips."""
    folder = tmp_path_factory.mktemp("world")
    seen: dict[str, Any] = {"seed": 5, "size": 56, "grid": 3, "objects": (2, 4), "claims": (2, 3), "scales": ("1-5",)}
    write_world(Settings(domain="scenes", **seen), 12, folder / "scenes")
    write_world(Settings(domain="scenes", responses=2, **seen), 12, folder / "pairs")
    write_world(Settings(domain="clips", **seen), 3, folder / "clips")
    write_world(Settings(domain="text", seed=5, scales=("1-5",)), 12, folder / "texts")
    return folder


@pytest.fixture
def write_config(tiny: Callable[[str], Path], world: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes a small training configuration (short prompts, a few steps), and returns its path."""

    def write(name: str = "c", family: str = "llava", **values: Any) -> Path:
        for kind, shown in (("absolute", "{{ response }}"), ("pairwise", "{{ first }}\n{{ second }}")):
            form = {
                "kind": kind,
                "dialect": "claims",
                "marker": "Verdict:",
                "user": f"{{{{ instruction }}}}\n{shown}\n",
            }
            (tmp_path / f"{kind}-short.yaml").write_text(yaml.safe_dump(form), "utf-8")
        sees = family in tiny_models.IMAGE_FAMILIES
        source = {
            "items": [str(world / ("scenes" if sees else "texts") / "items-*.jsonl")],
            "formats": ["absolute-short.yaml"],
        }
        settings: dict[str, Any] = {
            "init": str(tiny(family)), "out": f"run-{name}", "shards": "shards", "data": [source], "steps": 4,
            "batch_size": 4, "max_tokens_per_micro_batch": 1500, "learning_rate": 1e-3, "warmup": 0, "save_every": 2,
            "log_every": 1, "device": "cpu", "seed": 3,
        }  # fmt: skip
        settings.update(values)
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({key: each for key, each in settings.items() if each is not None}), "utf-8")
        return path

    return write
