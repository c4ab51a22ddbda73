"""Fixtures that every room shares."""

import gc
import os
import random
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from browser import CHROMIUM, Browser, browser

# A busy machine draws slowly, which says nothing about what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
# Seconds since 1970 after which no slow test begins, so that `.ci/run` takes about an hour on slow machines, too.
SLOW_UNTIL = os.environ.get("DIKAST_SLOW_UNTIL", "")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, which would walk all that is imported, and keep the compiled tests.

    `make test` lets the tests write no bytecode because some limit the size of files; nothing does so yet.
    """
    gc.disable()
    forbidden, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = forbidden
        gc.collect()
        gc.freeze()  # what is there now stays, so no later collection walks it either
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in the browser are slow. Those that say how many minutes they take begin first, the longest before all.

    So no worker of `make slow` is left alone with a long test at the end. Where its time is limited, the files come in
    an order drawn by the limit, so that it is not always the same tests that are left out.
    """
    for item in items:
        if "tab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    if SLOW_UNTIL:
        files = sorted({item.path for item in items})
        random.Random(SLOW_UNTIL).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))
    items.sort(key=_minutes, reverse=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no slow test after the time that CI has for them."""
    if SLOW_UNTIL and item.get_closest_marker("slow") and time.time() > float(SLOW_UNTIL):
        pytest.skip("the time of DIKAST_SLOW_UNTIL is over: `make slow` by hand has no limit")


def _minutes(item: pytest.Item) -> float:
    mark = item.get_closest_marker("slow")
    return float(mark.kwargs.get("minutes", 0)) if mark else 0.0


@pytest.fixture(scope="session")
def tab() -> Iterator[Browser]:
    """A tab of a real browser."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here: install the package `chromium`")
    with browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of public recordings, or a skip."""
    folder = os.environ.get("DIKAST_RECORDED")
    if not folder:
        pytest.skip(
            "set DIKAST_RECORDED to a folder with the public recordings; docs/recordings.md says where they come from"
        )
    return Path(folder)


@pytest.fixture
def tries(request: pytest.FixtureRequest) -> int:
    """How often a test marked `soak(n)` tries: n times in `make soak`, about 2 % of that in every other run."""
    mark = request.node.get_closest_marker("soak")
    assert mark is not None, "a test that takes `tries` is marked @pytest.mark.soak(n)"
    share = os.environ.get("DIKAST_SOAK", "0.02")
    n: int = mark.args[0]
    return max(1, round(n * (1.0 if share == "full" else float(share))))


@pytest.fixture(scope="session")
def tiny_llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the vision-language model that all servers serve."""
    from engines import live_servers

    return live_servers.tiny_llava(tmp_path_factory.mktemp("models") / "llava")


@pytest.fixture(scope="session")
def vllm_llava(tiny_llava: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The spec of vLLM's server with the vision-language model."""
    from engines import live_servers

    with live_servers.vllm_server(tiny_llava, tmp_path_factory.mktemp("vllm-llava"), name="tiny") as address:
        yield f"{address}/v1#tiny"
