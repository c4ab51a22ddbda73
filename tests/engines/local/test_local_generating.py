"""Replies: greedy as the model alone would, draws that depend on the request alone, and every way to stop."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

import tiny_models
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.generating import Ask, choose, draws, marker_end, reply_of
from dikast.engines.local.prompt import encode
from dikast.engines.local.tokens import Piece

Engines = Callable[[str], LocalEngine]

SCHEMA = {
    "type": "object",
    "properties": {"feedback": {"type": "string", "maxLength": 12}, "score": {"enum": [1, 2, 3, 4, 5]}},
    "required": ["feedback", "score"],
    "additionalProperties": False,
}


def ask(key: str, text: str, sampling: Sampling = Sampling(max_tokens=12), **more: object) -> Request:  # noqa: B008
    return Request(key, (Message("user", (Span(text),)),), sampling, **more)  # type: ignore[arg-type]


def answers(engine: LocalEngine, requests: Sequence[Request]) -> dict[str, Completion]:
    found = {done.key: done for done in engine.stream(requests)}
    assert [done.error for done in found.values()] == [None] * len(requests)
    return found


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_greedy_batch_says_what_each_prompt_says_alone(family: str, engine: Engines) -> None:
    model = engine(family)
    loaded = model._loaded
    asked = [ask(str(i), "good " * (1 + 5 * i)) for i in range(5)]
    for key, done in answers(model, asked).items():
        ids = encode(asked[int(key)].messages, loaded.processor).ids
        for _ in range(12):  # the plainest loop: no cache, no batch, no padding
            with torch.inference_mode():
                logits = loaded.model(input_ids=torch.tensor([ids])).logits[0, -1]
                logits[list(loaded.forbidden)] = -torch.inf
            ids = [*ids, int(logits.argmax())]
            if ids[-1] in loaded.ends:
                break
        written = ids[done.usage.tokens_in :]
        assert done.usage.tokens_out == len(written)
        assert done.text == loaded.tokens.decode(written, after=ids[: done.usage.tokens_in])


@pytest.mark.parametrize("family", ["llama", "llava"])
def test_draws_depend_on_seed_and_key_alone(family: str, engine: Engines) -> None:
    model = engine(family)
    sampling = Sampling(temperature=1.0, max_tokens=10, seed=7)
    asked = [ask(f"k{i}", "x " * (i % 4), sampling) for i in range(12)]
    first = {key: done.text for key, done in answers(model, asked).items()}
    backwards = {key: done.text for key, done in answers(model, asked[::-1][:7]).items()}
    assert backwards == {key: first[key] for key in backwards}
    assert answers(model, asked[3:4])["k3"].text == first["k3"]
    assert len(set(first.values())) > 6, "twelve keys draw differently"
    other = {
        key: done.text
        for key, done in answers(model, [ask(r.key, "x", replace(sampling, seed=8)) for r in asked]).items()
    }
    assert other != first


def test_greedy_rows_are_not_moved_by_sampling_neighbours(engine: Engines) -> None:
    model = engine("qwen")
    alone = answers(model, [ask("g", "good")])["g"].text
    among = [ask(f"s{i}", "good", Sampling(temperature=2.0, max_tokens=12)) for i in range(3)]
    assert answers(model, [*among, ask("g", "good")])["g"].text == alone


@pytest.mark.parametrize("top_p", [0.0, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("spread", [0.0, 0.7, 4.0])
def test_the_nucleus_is_that_of_a_whole_order(spread: float, top_p: float) -> None:
    draw = np.random.default_rng(3)
    logits = torch.from_numpy(draw.normal(0, spread, 5000)).float()
    logits[:2000] = -torch.inf
    logits[2500:2600] = logits[2600:2700]  # of equal probability
    probabilities = (logits.double() / 0.7).softmax(-1)
    ranked, order = probabilities.sort(descending=True, stable=True)
    outside = ranked.cumsum(-1) - ranked >= top_p
    outside[0] = False
    probabilities[order[outside]] = 0
    steps = probabilities.cumsum(-1)
    for uniform in draw.random(50):
        expected = int(torch.searchsorted(steps, steps[-1] * uniform, right=True))
        assert choose(logits, 0.7, top_p, float(uniform)) == expected


def test_choose_follows_the_tempered_nucleus() -> None:
    # probabilities 0.5, 0.3, 0.15, 0.05 in the order 2, 0, 3, 1
    logits = torch.tensor([0.3, 0.05, 0.5, 0.15]).log()
    counts = Counter(choose(logits, 1.0, 1.0, u) for u in np.linspace(0, 1, 2000, endpoint=False))
    assert [counts[i] / 2000 for i in range(4)] == pytest.approx([0.3, 0.05, 0.5, 0.15], abs=0.002)
    # top_p 0.8 is reached by the first two exactly; 0.81 needs the third
    assert {choose(logits, 1.0, 0.7, u) for u in np.linspace(0, 1, 200, endpoint=False)} == {0, 2}
    assert {choose(logits, 1.0, 0.81, u) for u in np.linspace(0, 1, 200, endpoint=False)} == {0, 2, 3}
    # temperature 1/2 squares: 0.09, 0.0025, 0.25, 0.0225 of 0.365
    counts = Counter(choose(logits, 0.5, 1.0, u) for u in np.linspace(0, 1, 2000, endpoint=False))
    assert counts[2] / 2000 == pytest.approx(0.25 / 0.365, abs=0.002)
    assert choose(logits, 1e-3, 1.0, 0.999999) == 2
    assert choose(logits, 1.0, 0.0, 0.999999) == 2
    assert choose(torch.tensor([0.0, -torch.inf]), 1.0, 1.0, 1 - 1e-16) == 0, "never a token without probability"


def test_draws_are_the_same_everywhere() -> None:
    """A contract with what is on disk: these numbers must not change between versions."""
    assert draws(Sampling(seed=1), "a").random() == 0.4128039050003671
    assert draws(Sampling(seed=1), "a").random() != draws(Sampling(seed=1), "b").random()
    assert draws(Sampling(seed=11), "a").random() != draws(Sampling(seed=1), "1a").random()


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
def test_a_batch_with_images_says_what_each_prompt_says_alone(family: str, engine: Engines) -> None:
    from PIL import Image as Pictures

    model = engine(family)
    pictures = [Image.of(Pictures.new("RGB", (56 + 28 * i, 56), (40 * i, 90, 0))) for i in range(4)]
    asked = [
        Request(
            str(i), (Message("user", (*pictures[: 1 + i % 2], Span("x " * i), pictures[i])),), Sampling(max_tokens=12)
        )
        for i in range(4)
    ]
    together = answers(model, asked)
    for request in asked:
        assert answers(model, [request])[request.key].text == together[request.key].text


def test_every_row_stops_at_its_own_limit(engine: Engines) -> None:
    asked = [ask(str(n), "good", Sampling(max_tokens=n)) for n in (1, 3, 9)]
    for key, done in answers(engine("qwen"), asked).items():
        assert done.usage.tokens_out == int(key)
        assert done.finish == "length"


THOUGHT = "<think>I say Verdict: 5, or not.</think>\nIt is Verdict:"


@pytest.mark.parametrize("begun", ["", "<think>"], ids=["by the model", "by the prompt"])
def test_a_marker_inside_the_thinking_ends_nothing(begun: str, engine: Engines) -> None:
    """It was taken for the model's own verdict, and the labels were read in the middle of a draft."""
    loaded = engine("qwen")._loaded
    asked = ask("k", "good", readout=Readout((" 1", " 5"), "Verdict:"))
    prompt = encode(asked.messages, loaded.processor)
    prompt = replace(prompt, pieces=(*prompt.pieces, Piece(begun)))
    said = THOUGHT.removeprefix(begun)
    whole = loaded.tokens.encode([Piece(said + " 2")])
    row = Ask(asked, prompt, 200)
    reply = reply_of(row, whole, (), loaded.tokens)
    assert (reply.text, reply.wrote_marker) == (said, True)
    for n in range(1, len(reply.ids)):  # at no token before that does generation stop
        assert marker_end(row, loaded.tokens.decode(whole[:n], after=prompt.ids)) is None
    draft = loaded.tokens.encode([Piece(said.partition(",")[0])])
    assert not reply_of(row, draft, (), loaded.tokens).wrote_marker


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_marker_of_the_models_own_ends_the_reply(family: str, engine: Engines) -> None:
    """Any stretch of what a model says anyway can be the marker."""
    model = engine(family)
    plain = next(
        d for i in range(40) if _has_word(d := answers(model, [ask(str(i), "x " * i, Sampling(max_tokens=30))])[str(i)])
    )
    marker = _has_word(plain)
    assert marker
    done = answers(
        model,
        [
            ask(plain.key, "x " * int(plain.key), Sampling(max_tokens=30), readout=Readout(("1", "2"), marker)),
            ask("other", "longer " * 9, Sampling(max_tokens=30), readout=Readout(("1", "2"), "never written")),
        ],
    )
    assert done[plain.key].marker == "own"
    assert done[plain.key].text == plain.text[: plain.text.index(marker) + len(marker)]
    assert done[plain.key].label_logprobs is not None
    assert done["other"].marker is None


def _has_word(done: Completion) -> str:
    """Four plain characters in the middle of a reply, or nothing."""
    text = done.text
    spots = (text[i : i + 4] for i in range(5, len(text) - 8))
    return next((spot for spot in spots if spot.isascii() and spot.isprintable() and spot.strip() == spot), "")


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_prefill_begins_the_reply_and_is_not_in_its_text(family: str, engine: Engines) -> None:
    model = engine(family)
    plain = encode(ask("k", "good").messages, model._loaded.processor)
    filled = encode(ask("k", "good").messages, model._loaded.processor, prefill=" Feedback: clear")
    tokens = model._loaded.tokens
    assert tokens.decode(filled.ids).rstrip().endswith("Feedback: clear")
    assert len(filled.ids) > len(plain.ids)
    done = answers(model, [ask("k", "good", prefill=" Feedback: clear")])["k"]
    assert "Feedback: clear" not in done.text
    assert done.usage.tokens_in == len(filled.ids)


def test_a_marker_that_begins_in_the_prefill_counts_once_the_model_completes_it(engine: Engines) -> None:
    request = ask("k", "good", prefill="[RES", readout=Readout(("1", "2"), "[RESULT] "), choices=("[RESULT] 1.",))
    done = answers(engine("llama"), [request])["k"]
    assert (done.text, done.marker) == ("ULT] ", "own")


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_schema_and_choices_hold_whatever_the_model_wants(family: str, engine: Engines) -> None:
    model = engine(family)
    wild = Sampling(temperature=5.0, max_tokens=200)
    asked = [ask(f"j{i}", "x", wild, schema=SCHEMA) for i in range(3)]
    asked += [ask(f"c{i}", "x", wild, choices=("A", 'B "quoted"', "tie\n")) for i in range(3)]
    asked += [ask("free", "x")]
    for key, done in answers(model, asked).items():
        if key.startswith("j"):
            value = json.loads(done.text)
            assert value["score"] in range(1, 6)
            assert done.text.startswith('{"feedback":"')
            assert done.finish == "stop"
        elif key.startswith("c"):
            assert done.text in ("A", 'B "quoted"', "tie\n")


def test_a_schema_covers_the_prefill(engine: Engines) -> None:
    done = answers(
        engine("qwen"), [ask("k", "x", Sampling(max_tokens=60), schema=SCHEMA, prefill='{"feedback":"ok","score":')]
    )
    assert done["k"].text in {"1}", "2}", "3}", "4}", "5}"}


def test_media_placeholders_and_unused_rows_are_never_generated(engine: Engines) -> None:
    model = engine("qwen_vl")
    forbidden = model._loaded.forbidden
    assert set(forbidden) >= {model._loaded.tokens.controls[token] for token in ("<|image_pad|>", "<|video_pad|>")}
    asked = [ask(str(i), "x", Sampling(temperature=50.0, max_tokens=60)) for i in range(8)]
    for done in answers(model, asked).values():
        assert "_pad|>" not in done.text
