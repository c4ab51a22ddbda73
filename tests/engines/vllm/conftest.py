"""Engines on tiny models, in vLLM and locally, each opened once a session. They need vLLM in this environment."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dikast.engines.spec import open_engine
from engines.live_servers import VLLM_ON_CPU

OPTIONS: dict[str, Any] = {
    "dtype": "float32", "window": 64, "engine": '{"enforce_eager":true,"block_size":32,"max_num_seqs":32}',
}  # fmt: skip


@pytest.fixture(scope="session")
def on_cpu() -> Iterator[None]:
    """vLLM's settings for CPUs, read when it is imported."""
    found = importlib.util.find_spec("vllm")
    if found is None or found.origin is None:  # without an origin it is this folder, taken for a namespace
        pytest.skip("runs where vLLM is installed: make vllm")
    offline = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**VLLM_ON_CPU, **offline}.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def text(on_cpu: None, tiny_text: Path) -> Iterator[Any]:
    """The text model in vLLM."""
    engine: Any = open_engine(f"vllm:{tiny_text}", **OPTIONS)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def llava(on_cpu: None, tiny_llava: Path) -> Iterator[Any]:
    """The vision-language model in vLLM."""
    engine: Any = open_engine(f"vllm:{tiny_llava}", **OPTIONS)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def local_text(tiny_text: Path) -> Any:
    """The text model by transformers."""
    return open_engine(str(tiny_text))


@pytest.fixture(scope="session")
def local_llava(tiny_llava: Path) -> Any:
    """The vision-language model by transformers."""
    return open_engine(str(tiny_llava))
