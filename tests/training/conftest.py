"""Tiny models of every family and a small world, made once a session."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # more threads only slow models of this size down

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
    """A folder with `scenes/`, `pairs/` (both with pictures) and `texts/`, twelve items each."""
    folder = tmp_path_factory.mktemp("world")
    seen: dict[str, Any] = {"seed": 5, "size": 56, "grid": 3, "objects": (2, 4), "claims": (2, 3), "scales": ("1-5",)}
    write_world(Settings(domain="scenes", **seen), 12, folder / "scenes")
    write_world(Settings(domain="scenes", responses=2, **seen), 12, folder / "pairs")
    write_world(Settings(domain="text", seed=5, scales=("1-5",)), 12, folder / "texts")
    return folder
