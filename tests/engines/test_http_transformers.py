"""Against a real server that ignores what it does not know: `transformers serve` with a tiny model."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import PIL.Image
import pytest

import tiny_models
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Request, Sampling
from dikast.engines.http.engine import HttpEngine
from dikast.engines.spec import open_engine
from engines.http_servers import READ, ask, grade, verdicts, write_items

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "openai")),
        reason="`transformers serve` needs the packages fastapi, uvicorn and openai",
    ),
]


@contextmanager
def served(model: Path, home: Path) -> Iterator[str]:
    """The spec of `transformers serve` on a folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (home / "hub").mkdir(parents=True, exist_ok=True)
    command = ["serve", str(model), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    script = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", script, *command], stdout=log, stderr=log, env=environment)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, (home / "log").read_text()[-3000:]
                assert time.monotonic() < deadline, (home / "log").read_text()[-3000:]
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1#{model}"
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def text_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("serve")
    with served(tiny_models.build("qwen", folder / "qwen"), folder / "home") as spec:
        yield spec


def test_it_answers_and_what_it_ignores_is_noticed(text_server: str) -> None:
    engine = open_engine(text_server)
    assert isinstance(engine, HttpEngine)
    short = Sampling(max_tokens=12)
    schema = {"type": "object", "required": ["verdict"]}
    asked = [ask(i, sampling=short, readout=READ) for i in range(4)]
    list(engine.stream([ask("json", sampling=Sampling(max_tokens=400), schema=schema)]))
    found = list(engine.stream(asked))
    assert [each.error for each in found] == [None] * 4
    assert all(each.label_logprobs is None for each in found)
    assert all(each.usage.tokens_out > 0 for each in found)
    assert engine.noticed["logprobs"] == 4, "it answers 200 and ignores them: noticed, not believed"
    score_only = replace(ask("only", sampling=short), readout=replace(READ, generate=False))
    (only,) = engine.stream([score_only])
    assert only.error is None
    assert only.label_logprobs is None
    engine.close()


def test_a_run_ends_with_a_typed_status_for_every_item(text_server: str, tmp_path: Path) -> None:
    _, summary = grade(
        write_items(tmp_path / "items.jsonl", 6), text_server, tmp_path / "run", "--max-tokens", 16,
        "--max-failures", 6,
    )  # fmt: skip
    assert summary["verdicts"] == 6
    assert not summary["status"].get("engine_error")
    for verdict in verdicts(tmp_path / "run"):
        assert verdict["attempts"][0]["usage"]["tokens_in"] > 100
        assert (verdict["score"] is None) == (verdict["status"] != "ok")


def test_images_reach_the_model(tmp_path: Path) -> None:
    path = tmp_path / "square.png"
    PIL.Image.new("RGB", (64, 64), "red").save(path)
    with served(tiny_models.build("llava", tmp_path / "llava"), tmp_path / "home") as spec:
        engine = open_engine(spec)
        sampling = Sampling(max_tokens=4)
        blind = Request("blind", (Message("user", (Span("Grade this."),)),), sampling)
        seeing = Request("seeing", (Message("user", (Image(str(path)), Span("Grade this."))),), sampling)
        found = {each.key: each for each in engine.stream([blind, seeing])}
        assert isinstance(engine, HttpEngine)
        engine.close()
    assert [each.error for each in found.values()] == [None, None]
    assert found["seeing"].usage.tokens_in > found["blind"].usage.tokens_in
