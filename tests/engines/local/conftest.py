"""Tiny models of every family, built once a session, and engines on them."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # more threads only slow models of this size down

import tiny_models
from dikast.engines.local.engine import LocalEngine


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model by family; tests that change files copy it first."""

    @cache
    def folder(family: str) -> Path:
        return tiny_models.build(family, tmp_path_factory.mktemp("tiny") / family)

    return folder


@pytest.fixture(scope="session")
def engine(tiny: Callable[[str], Path]) -> Callable[[str], LocalEngine]:
    """A shared engine by family."""

    @cache
    def made(family: str) -> LocalEngine:
        return LocalEngine(str(tiny(family)), device="cpu")

    return made
