"""Attention of many segments in one launch, as on a GPU in half precision, against each segment by itself.

The kernel itself is compared in `test_local_gpu.py`; here the same layout runs segment by segment.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiny_models
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.execution import Together
from dikast.engines.local.sharing import segments
from dikast.engines.local.sharing.attention_part import Part, attend
from dikast.engines.local.sharing.segments import KeysSeen, Merged, Segments, folded, unfolded

LABELS = ("1", "2", "10", "pass")
TASK = "The response follows the instruction. " * 6
CPU = torch.device("cpu")


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU in float32 the segments of a layer are computed together, and long ones in several places."""
    monkeypatch.setattr(segments, "_ONE_LAUNCH", {("cpu", torch.float32)})
    monkeypatch.setattr(segments, "_KEYS", 40)


@pytest.fixture(scope="module")
def engines(tiny: Any) -> Any:
    made: dict[tuple[str, bool], LocalEngine] = {}

    def found(family: str, share: bool) -> LocalEngine:
        if (family, share) not in made:
            made[family, share] = LocalEngine(str(tiny(family)), device="cpu", share=share)
        return made[family, share]

    return found


def tournament(*shown: Image, tokens: int = 24) -> list[Request]:
    """All ordered pairs of four responses, one of them long, with one that stands alone and one that begins another."""
    responses = ["good", "It cites a source", "It cites a source, but " + "one claim is wrong " * 12, "x"]
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    texts = [f"{TASK}First: {responses[i]}\nSecond: {responses[j]}" for i, j in pairs] + [TASK, "x"]
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=tokens, seed=3)
    read = Readout(LABELS, "\n[RESULT] ")
    return [
        Request(str(n), (Message("user", (*(shown if n < 13 else ()), Span(text))),), sampling, readout=read)
        for n, text in enumerate(texts)
    ]


def answered(engine: LocalEngine, requests: list[Request]) -> Iterator[Completion]:
    found = {done.key: done for done in engine.stream(requests)}
    for request in requests:
        assert found[request.key].error is None
        yield found[request.key]


def same(one: LocalEngine, other: LocalEngine, requests: list[Request]) -> None:
    for first, second in zip(answered(one, requests), answered(other, requests), strict=True):
        assert first.text == second.text
        assert (first.label_logprobs is None) == (second.label_logprobs is None)
        if first.label_logprobs is not None:
            assert first.label_logprobs == pytest.approx(second.label_logprobs, abs=5e-5)


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_replies_and_labels_are_those_of_each_alone(family: str, engines: Any) -> None:
    from PIL import Image as Pictures

    noise = Image.of(Pictures.effect_noise((64, 64), 80).convert("RGB"))
    shown = (noise,) if family in tiny_models.IMAGE_FAMILIES else ()
    same(engines(family, True), engines(family, False), tournament(*shown))


WORDS = st.lists(st.sampled_from(["good ", "bad ", "it cites a source ", "é"]), max_size=6).map("".join)


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("most", [1024, 23])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.tuples(st.sampled_from(["", TASK, TASK[:90]]), WORDS), min_size=1, max_size=9),
    lengths=st.lists(st.integers(1, 9), min_size=9, max_size=9),
)
def test_random_groups_are_those_of_each_alone(
    most: int, texts: list[tuple[str, str]], lengths: list[int], engines: Any
) -> None:
    shared = engines("qwen", True)
    execution = shared._execution
    assert isinstance(execution, Together)
    execution.trees._most = most  # a pass of few tokens: segments are cut, and their keys and values are kept
    requests = [
        Request(str(n), (Message("user", (Span(begin + end),)),), Sampling(max_tokens=length))
        for n, ((begin, end), length) in enumerate(zip(texts, lengths, strict=False))
    ]
    reads = [Request(each.key, each.messages, readout=Readout(LABELS, "\n", generate=False)) for each in requests]
    try:
        same(shared, engines("qwen", False), requests)
        same(shared, engines("qwen", False), reads)
    finally:
        execution.trees._most = 1024


def test_keys_seen_in_parts_are_merged_with_a_segments_own() -> None:
    torch.manual_seed(0)
    query = torch.randn(7, 6, 8)
    key, value = torch.randn(2, 2600, 2, 8)
    own = Segments.of([3, 4], [0, 100], [5, 9], CPU).attend(query, key, value, 0.3)
    seen = [KeysSeen(1, 5, 200, 2300), KeysSeen(2, 3, 20, 1), KeysSeen(4, 7, 60, 30)]
    mine = Part(folded(own.out, 2), folded(own.log_sum, 2))
    found = unfolded(Merged(seen, 3, CPU).attend(folded(query, 2), key, value, 0.3, mine))
    for row in range(7):
        keys = [*range(5)] if row < 3 else [*range(100, 109)]
        keys += [at for start, end, first, tokens in seen if start <= row < end for at in range(first, first + tokens)]
        one = query[row][None, :, None]
        keys_of, values_of = (each[keys].transpose(0, 1)[None] for each in (key, value))
        expected = attend(one, keys_of, values_of, 0.3).out[0, :, 0]
        assert torch.allclose(found[row], expected, atol=1e-6)
