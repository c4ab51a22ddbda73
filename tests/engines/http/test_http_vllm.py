"""Against vLLM's API server with tiny models: read-outs, constraints, continuation, images."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import PIL.Image
import pytest

from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Completion, Request, Sampling
from dikast.engines.http.engine import HttpEngine
from dikast.engines.spec import open_engine
from dikast.testing import check_engine
from engines.http_servers import LABELS, READ, ask

SHORT = Sampling(max_tokens=16)
ONLY = replace(READ, generate=False)
OPTIONS = "retries=1,timeout=120"  # a server that died is told soon
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("servers")]


@pytest.fixture
def engine(vllm_text: str) -> Iterator[HttpEngine]:
    opened = open_engine(f"{vllm_text},{OPTIONS}")
    assert isinstance(opened, HttpEngine)
    yield opened
    opened.close()


def one(engine: HttpEngine, **fields: object) -> Completion:
    (completion,) = engine.stream([replace(ask(sampling=SHORT), **fields)])  # type: ignore[arg-type]
    assert completion.error is None
    return completion


def test_it_keeps_the_protocol(engine: HttpEngine) -> None:
    check_engine(engine)


def test_with_many_alternatives_told_the_labels_are_read(vllm_text: str) -> None:
    engine = open_engine(f"{vllm_text},{OPTIONS},top_logprobs=100,continues=yes")
    assert isinstance(engine, HttpEngine)
    for request in (ask(1), ask(2, prefill="It is sound.\nVerdict:")):
        read = one(engine, key=request.key, messages=request.messages, prefill=request.prefill, readout=ONLY)
        assert read.label_logprobs is not None
        assert read.label_logprobs.keys() == set(LABELS)
        assert (read.text, read.marker) == ("", "forced")
        assert 0 < sum(map(math.exp, read.label_logprobs.values())) <= 1 + 1e-4
    engine.close()


def test_it_goes_on_where_it_is_told_to_and_reads_there(engine: HttpEngine) -> None:
    read = one(engine, prefill="It is sound.\nVerdict:", readout=ONLY)
    if read.label_logprobs is not None:  # a model without training may put its probability anywhere
        assert (read.text, read.marker) == ("", "forced")
        assert sum(map(math.exp, read.label_logprobs.values())) <= 1 + 1e-4
    chosen = one(engine, prefill="It is sound.\nVerdict:", readout=ONLY, choices=LABELS)
    assert chosen.text in LABELS
    assert chosen.label_logprobs is None, "under a constraint the server renormalises: that is no read-out"
    assert engine.noticed == {}, "it showed that it goes on, and gave log-probabilities where they were asked for"


def test_a_schema_and_choices_are_kept(engine: HttpEngine) -> None:
    schema = {
        "type": "object", "properties": {"verdict": {"type": "string", "enum": ["1", "2"]}}, "required": ["verdict"],
        "additionalProperties": False,
    }  # fmt: skip
    assert orjson.loads(one(engine, schema=schema, sampling=Sampling(max_tokens=200)).text)["verdict"] in ("1", "2")
    assert one(engine, choices=("yes", "no")).text in ("yes", "no")
    assert engine.noticed == {}


def test_a_prompt_that_is_too_long_says_so(engine: HttpEngine) -> None:
    (completion,) = engine.stream([ask(text="word " * 200_000)])
    assert completion.error is not None
    assert completion.error.kind == "context_length"


def test_images_are_seen(vllm_llava: str, tmp_path: Path) -> None:
    engine = open_engine(f"{vllm_llava},{OPTIONS}")
    assert isinstance(engine, HttpEngine)
    pictures = {}
    for color in ("red", "blue"):
        pictures[color] = tmp_path / f"{color}.png"
        PIL.Image.new("RGB", (64, 64), color).save(pictures[color])

    def asked(key: str, *images: Path) -> Request:
        parts: tuple[Span | Image, ...] = (*(Image(str(path)) for path in images), Span("Grade this."))
        return Request(key, (Message("user", parts),), SHORT)

    requests = [
        asked("blind"), asked("red", pictures["red"]), asked("blue", pictures["blue"]),
        asked("both", pictures["red"], pictures["blue"]),
    ]  # fmt: skip
    found = {each.key: each for each in engine.stream(requests)}
    engine.close()
    assert [each.error for each in found.values()] == [None] * 4
    tokens = {key: each.usage.tokens_in for key, each in found.items()}
    assert tokens["red"] == tokens["blue"] > tokens["blind"]
    assert tokens["both"] > tokens["red"]
    assert found["red"].text != found["blue"].text, "the pixels change what the model says"
