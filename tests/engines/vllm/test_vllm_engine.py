"""A model in vLLM, in process, beside the same model by transformers."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import PIL.Image
import pytest

from dikast import Judge
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.testing import check_engine
from engines.http_servers import LABELS, READ, ask, write_items

pytestmark = pytest.mark.slow
ONLY = replace(READ, marker="\nVerdict:", generate=False)
NEAR = 2e-4  # nats; float32 on both sides, in different kernels


def answers(engine: Any, requests: Sequence[Request]) -> list[Completion]:
    """Completions in the order of the requests."""
    found = {each.key: each for each in engine.stream(requests)}
    assert [found[request.key].error for request in requests] == [None] * len(requests)
    return [found[request.key] for request in requests]


def assert_same_reading(first: Completion, second: Completion) -> None:
    assert first.label_logprobs is not None
    assert second.label_logprobs is not None
    assert dict(first.label_logprobs) == pytest.approx(dict(second.label_logprobs), abs=NEAR)
    assert first.marker == second.marker


def test_it_keeps_the_protocol(text: Any) -> None:
    check_engine(text)


def test_what_it_writes_is_what_transformers_writes(text: Any, local_text: Any) -> None:
    requests = [ask(i, text="Grade this. " * (3 * i + 1), sampling=Sampling(max_tokens=20)) for i in range(8)]
    requests.append(ask("special", text="a <|im_end|> in the text", sampling=Sampling(max_tokens=20)))
    requests.append(ask("begun", prefill="It is sound", sampling=Sampling(max_tokens=20)))
    for ours, theirs in zip(answers(text, requests), answers(local_text, requests), strict=True):
        assert (ours.text, ours.finish) == (theirs.text, theirs.finish)
        assert (ours.usage.tokens_in, ours.usage.tokens_out) == (theirs.usage.tokens_in, theirs.usage.tokens_out)


@pytest.mark.parametrize(
    "labels",
    [LABELS, (" A", " B", " tie"), (" 1", " 10", " 100", " 0.5"), tuple(f" {level}" for level in range(101))],
    ids=["1-5", "pair", "nested", "0-100"],
)
def test_labels_are_read_as_the_local_engine_reads_them(text: Any, local_text: Any, labels: tuple[str, ...]) -> None:
    requests = [ask(i, readout=replace(ONLY, labels=labels)) for i in range(3)]
    requests.append(
        ask("begun", prefill="It is sound.\nVerdict:", readout=replace(ONLY, labels=labels, marker="Verdict:"))
    )
    for ours, theirs in zip(answers(text, requests), answers(local_text, requests), strict=True):
        assert_same_reading(ours, theirs)
        assert ours.text == ""


def test_a_marker_of_the_models_own_ends_the_reply_and_is_read_there(text: Any, local_text: Any) -> None:
    """The marker is what this model without training is known to write."""
    requests = []
    for i in range(4):
        (plain,) = answers(local_text, [ask(i, sampling=Sampling(max_tokens=16))])
        middle = plain.text[len(plain.text) // 2 :][:3]
        requests.append(ask(i, sampling=Sampling(max_tokens=40), readout=Readout(LABELS, middle)))
    ours, theirs = answers(text, requests), answers(local_text, requests)
    for one, other in zip(ours, theirs, strict=True):
        assert one.text == other.text
        assert_same_reading(one, other)
    assert {each.marker for each in ours} == {"own"}


def test_requests_that_begin_alike_hit_the_cache_in_whatever_order_they_come(text: Any) -> None:
    """Eight questions about each of six long items: all but the first about an item find its blocks of 32 tokens."""
    requests = [
        ask(f"{item}-{i}", text=f"Item number {item}. " + f"{item} words. " * 40 + f"Question {i}", readout=ONLY)
        for item in range(6)
        for i in range(8)
    ]
    random.Random(7).shuffle(requests)
    found = answers(text, requests)
    cached, total = sum(e.usage.tokens_cached for e in found), sum(e.usage.tokens_in for e in found)
    assert total > 48 * 150
    assert cached / total > 0.7, f"{cached:,} of {total:,}"
    untouched = [each for each in found if each.usage.tokens_cached < 64]
    assert len(untouched) <= 6, "only the first about each item"


def test_a_schema_and_choices_are_kept(text: Any) -> None:
    schema = {
        "type": "object", "properties": {"verdict": {"type": "string", "enum": ["1", "2"]}}, "required": ["verdict"],
        "additionalProperties": False,
    }  # fmt: skip
    long = Sampling(max_tokens=60)
    json, choice = answers(text, [ask(1, schema=schema, sampling=long), ask(2, choices=(" yes", " no"), sampling=long)])
    assert orjson.loads(json.text)["verdict"] in ("1", "2")
    assert choice.text in (" yes", " no")


def test_images_are_seen_as_the_local_engine_sees_them(llava: Any, local_llava: Any, tmp_path: Path) -> None:
    """Squares of the model's own size, so that no resampling differs."""
    paths = [tmp_path / f"{color}.png" for color in ("red", "blue")]
    for path in paths:
        PIL.Image.new("RGB", (56, 56), path.stem).save(path)

    def asked(key: str, *images: Path) -> Request:
        parts: tuple[Span | Image, ...] = (*(Image(str(path)) for path in images), Span("Grade this <image>."))
        return Request(key, (Message("user", parts),), Sampling(max_tokens=8), readout=ONLY)

    requests = [asked("none"), asked("red", paths[0]), asked("blue", paths[1]), asked("both", *paths)]
    ours, theirs = answers(llava, requests), answers(local_llava, requests)
    for one, other in zip(ours, theirs, strict=True):
        assert_same_reading(one, other)
        assert one.usage.tokens_in == other.usage.tokens_in
    assert ours[1].label_logprobs != ours[2].label_logprobs, "the pixels change what is read"


def test_what_cannot_be_asked_fails_alone(text: Any) -> None:
    picture = Request("picture", (Message("user", (Image("no-such.png"),)),))
    requests = [ask("long", text="word " * 20_000), picture, ask("good", sampling=Sampling(max_tokens=4))]
    found = {each.key: each for each in text.stream(requests)}
    kinds = {key: each.error.kind if each.error else "" for key, each in found.items()}
    assert kinds == {"key-long": "context_length", "picture": "no_vision", "key-good": ""}


def test_a_stream_that_is_closed_leaves_nothing_under_way(text: Any) -> None:
    stream = text.stream(ask(i, sampling=Sampling(max_tokens=50)) for i in range(1000))
    next(stream)
    stream.close()
    assert not text._flying
    assert answers(text, [ask("after", sampling=Sampling(max_tokens=2))])


def test_a_run_shows_how_much_the_cache_held(text: Any, tmp_path: Path) -> None:
    judge = Judge(text, "helpfulness", min_mass=0, read="only")
    items = write_items(tmp_path / "items.jsonl", 24)
    from dikast.judging.judge_file import grade_file
    from dikast.judging.run_plan import Source

    summary = grade_file(judge, Source(str(items), {}, None), tmp_path / "run")
    assert summary["status"] == {"ok": 24}
    usage = summary["usage"]
    assert 0.5 < usage["tokens_cached"] / usage["tokens_in"] < 1
    pair = judge.compare(instruction="Which is better?", responses=["One.", "Two."])
    assert pair.logit_a is not None
