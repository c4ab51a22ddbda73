"""Against a real server that ignores what it does not know: `transformers serve` with tiny models."""

import logging
from dataclasses import replace
from pathlib import Path

import PIL.Image
import pytest

from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Request, Sampling
from dikast.engines.http.engine import HttpEngine
from dikast.engines.spec import open_engine
from engines.http_servers import READ, ask, grade, verdicts, write_items

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("servers")]


def test_it_answers_and_what_it_ignores_is_noticed_and_said(
    transformers_text: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = open_engine(transformers_text)
    assert isinstance(engine, HttpEngine)
    short = Sampling(max_tokens=12)
    schema = {
        "type": "object", "required": ["verdict"], "properties": {"verdict": {"enum": ["1", "2"]}},
        "additionalProperties": False,
    }  # fmt: skip
    asked = [ask(i, sampling=short, readout=READ) for i in range(4)]
    with caplog.at_level(logging.WARNING, "dikast"):
        (json,) = engine.stream([ask("json", sampling=Sampling(max_tokens=400), schema=schema)])
        found = list(engine.stream(asked))
    assert [each.error for each in found] == [None] * 4
    assert all(each.label_logprobs is None for each in found)
    assert all(each.usage.tokens_out > 0 for each in found)
    assert engine.noticed["logprobs"] == 4, "it answers 200 and ignores them: noticed, not believed"
    said = [record.getMessage() for record in caplog.records]
    assert sum("does not return the requested log-probabilities" in each for each in said) == 1, "and said, once"
    if json.finish == "stop":  # a model without training may also write until the token limit
        assert engine.noticed["response_format"] == 1
        assert any("ignores the requested JSON schema" in each for each in said)
    score_only = replace(ask("only", sampling=short), readout=replace(READ, generate=False))
    (only,) = engine.stream([score_only])
    assert only.error is None
    assert only.label_logprobs is None
    engine.close()


def test_a_run_ends_with_a_typed_status_for_every_item(transformers_text: str, tmp_path: Path) -> None:
    _, summary = grade(
        write_items(tmp_path / "items.jsonl", 6), transformers_text, tmp_path / "run", "--max-tokens", 16,
        "--max-failures", 6,
    )  # fmt: skip
    assert summary["verdicts"] == 6
    assert not summary["status"].get("engine_error")
    for verdict in verdicts(tmp_path / "run"):
        assert verdict["attempts"][0]["usage"]["tokens_in"] > 100
        assert (verdict["score"] is None) == (verdict["status"] != "ok")


def test_images_reach_the_model(transformers_llava: str, tmp_path: Path) -> None:
    path = tmp_path / "square.png"
    PIL.Image.new("RGB", (64, 64), "red").save(path)
    engine = open_engine(transformers_llava)
    sampling = Sampling(max_tokens=4)
    blind = Request("blind", (Message("user", (Span("Grade this."),)),), sampling)
    seeing = Request("seeing", (Message("user", (Image(str(path)), Span("Grade this."))),), sampling)
    found = {each.key: each for each in engine.stream([blind, seeing])}
    assert isinstance(engine, HttpEngine)
    engine.close()
    assert [each.error for each in found.values()] == [None, None]
    assert found["seeing"].usage.tokens_in > found["blind"].usage.tokens_in
