"""Real servers, each started once a session by the first test that asks for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engines import live_servers


@pytest.fixture(scope="session")
def tiny_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the text model that all servers serve."""
    return live_servers.tiny_text(tmp_path_factory.mktemp("models") / "text")


@pytest.fixture(scope="session")
def transformers_text(tiny_text: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The spec of `transformers serve` with the text model."""
    with live_servers.transformers_server(tiny_text, tmp_path_factory.mktemp("serve-text")) as address:
        yield f"{address}/v1#{tiny_text}"


@pytest.fixture(scope="session")
def transformers_llava(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The spec of `transformers serve` with a vision-language model."""
    model = live_servers.tiny_llava_with_start(tmp_path_factory.mktemp("models") / "llava-with-start")
    with live_servers.transformers_server(model, tmp_path_factory.mktemp("serve-llava")) as address:
        yield f"{address}/v1#{model}"


@pytest.fixture(scope="session")
def vllm_text(tiny_text: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The spec of vLLM's server with the text model."""
    with live_servers.vllm_server(tiny_text, tmp_path_factory.mktemp("vllm-text"), name="tiny") as address:
        yield f"{address}/v1#tiny"
