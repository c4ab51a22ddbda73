"""Against a live vLLM server, whose spec stands in the environment variable DIKAST_VLLM.

python -m vllm.entrypoints.openai.api_server --model DIR --served-model-name tiny --port 18124
DIKAST_VLLM=http://127.0.0.1:18124/v1#tiny python -m pytest -m slow tests/engines/test_http_vllm.py
"""

import math
import os
from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest

from dikast.engines.base import Completion, Sampling
from dikast.engines.http.engine import HttpEngine
from dikast.engines.spec import open_engine
from dikast.testing import check_engine
from engines.http_servers import LABELS, READ, ask

SPEC = os.environ.get("DIKAST_VLLM", "")
SHORT = Sampling(max_tokens=16)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SPEC, reason="set DIKAST_VLLM to the spec of a vLLM server")]


@pytest.fixture
def engine() -> Iterator[HttpEngine]:
    opened = open_engine(SPEC)
    assert isinstance(opened, HttpEngine)
    yield opened
    opened.close()


def one(engine: HttpEngine, **fields: object) -> Completion:
    (completion,) = engine.stream([replace(ask(sampling=SHORT), **fields)])  # type: ignore[arg-type]
    assert completion.error is None
    return completion


def test_it_keeps_the_protocol(engine: HttpEngine) -> None:
    check_engine(engine)


def test_it_goes_on_where_it_is_told_to_and_reads_there(engine: HttpEngine) -> None:
    only = replace(READ, generate=False)
    read = one(engine, prefill="It is sound.\nVerdict:", readout=only)
    if read.label_logprobs is not None:  # a model without training may say anything
        assert (read.text, read.marker) == ("", "forced")
        assert sum(map(math.exp, read.label_logprobs.values())) <= 1 + 1e-4
    chosen = one(engine, prefill="It is sound.\nVerdict:", readout=only, choices=LABELS)
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
