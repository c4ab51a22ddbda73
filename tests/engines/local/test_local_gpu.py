"""The same verdicts on a CUDA device as on the CPU: `make gpu`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny_models
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Readout, Request, Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.execution import Together
from dikast.engines.local.generating import choose
from dikast.engines.local.sharing import segments
from dikast.engines.local.sharing.attention_part import Part, attend
from dikast.engines.local.sharing.segments import KeysSeen, Merged, Segments, folded, unfolded

pytestmark = pytest.mark.gpu
LABELS = (" 1", " 2", " 3", " 4", " 5")


@pytest.fixture(scope="module", autouse=True)
def cuda() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")


def requests(family: str) -> list[Request]:
    from PIL import Image as Pictures

    shown = (
        (Image.of(Pictures.effect_noise((56, 56), 80).convert("RGB")),) if family in tiny_models.IMAGE_FAMILIES else ()
    )
    texts = ["good", "The response is good. It cites a source, but one claim is wrong.", "short"]
    return [
        Request(
            str(i),
            (Message("user", (*shown, Span(text))),),
            sampling=Sampling(max_tokens=8),
            readout=Readout(LABELS, "\nVerdict:", generate=False),
        )
        for i, text in enumerate(texts)
    ]


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_reads_are_those_of_the_cpu(family: str, tiny: Callable[[str], Path]) -> None:
    asked = requests(family)
    on = {
        device: {
            done.key: done for done in LocalEngine(str(tiny(family)), device=device, dtype="float32").stream(asked)
        }
        for device in ("cpu", "cuda")
    }
    for key, expected in on["cpu"].items():
        found = on["cuda"][key]
        assert found.error is None
        assert expected.label_logprobs is not None
        assert found.label_logprobs == pytest.approx(dict(expected.label_logprobs), abs=1e-3)


def test_half_precision_reads_are_close(tiny: Callable[[str], Path]) -> None:
    asked = requests("llama")
    whole = {d.key: d for d in LocalEngine(str(tiny("llama")), device="cuda", dtype="float32").stream(asked)}
    half = {d.key: d for d in LocalEngine(str(tiny("llama")), device="cuda", dtype="bfloat16").stream(asked)}
    for key, expected in whole.items():
        assert expected.label_logprobs is not None
        assert half[key].label_logprobs == pytest.approx(dict(expected.label_logprobs), abs=0.3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("heads", [(28, 4, 128), (6, 6, 64), (4, 2, 72)])
@pytest.mark.parametrize("causal", [False, True])
def test_segments_in_one_launch_are_those_one_by_one(
    dtype: torch.dtype, heads: tuple[int, int, int], causal: bool
) -> None:
    torch.manual_seed(0)
    device, (many, few, width) = torch.device("cuda"), heads
    query = torch.randn(3 + 300 + 1, many, width, device=device, dtype=dtype)
    # heads far apart, and keys that segments see several times, in any order
    key, value = (torch.randn(few, 2000, width, device=device, dtype=dtype).transpose(0, 1) for _ in range(2))
    sizes = [3, 300, 1]
    first, counts = [5, 700, 0], (sizes if causal else [9, 1300, 2000])
    found = Segments.of(sizes, first, counts, device).attend(query, key, value, 0.1, causal=causal)
    at = 0
    for size, start, count in zip(sizes, first, counts, strict=True):
        rows = query[at : at + size], key[start : start + count], value[start : start + count]
        asked, keys, values = (each.float().cpu().transpose(0, 1)[None] for each in rows)
        expected = attend(asked, keys, values, 0.1, causal=causal)
        out, log_sum = found.out[at : at + size].transpose(0, 1).cpu(), found.log_sum[at : at + size].T.cpu()
        assert torch.allclose(out.float(), expected.out[0], atol=0.02)
        assert torch.allclose(log_sum, expected.log_sum[0, ..., 0], atol=0.02)
        at += size


def test_parts_are_merged_as_on_the_cpu() -> None:
    torch.manual_seed(0)
    query = torch.randn(40, 28, 128).bfloat16()
    key, value = torch.randn(2, 6000, 4, 128).bfloat16()
    seen = [KeysSeen(0, 20, 1000, 4500), KeysSeen(20, 40, 0, 3000), KeysSeen(3, 9, 5500, 40)]

    def merged(device: str, dtype: torch.dtype) -> torch.Tensor:
        q, k, v = (each.to(device, dtype) for each in (query, key, value))
        own = Segments.of([1] * 40, [*range(40)], [7] * 40, q.device).attend(q, k, v, 0.1)
        mine = Part(folded(own.out, 4), folded(own.log_sum, 4))
        return unfolded(Merged(seen, 7, q.device).attend(folded(q, 4), k, v, 0.1, mine)).float().cpu()

    assert torch.allclose(merged("cuda", torch.bfloat16), merged("cpu", torch.float32), atol=0.02)


@pytest.mark.parametrize("family", ["qwen", "llava_onevision"])
def test_replies_in_one_launch_are_as_close_as_others(
    family: str, tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [
        replace(each, readout=Readout(LABELS, "\nVerdict:"), choices=("The response cites a source",))
        for each in requests(family)
    ]
    whole = {d.key: d for d in LocalEngine(str(tiny(family)), device="cuda", dtype="float32").stream(asked)}
    half = {d.key: d for d in LocalEngine(str(tiny(family)), device="cuda", dtype="bfloat16").stream(asked)}
    monkeypatch.setattr(segments, "_ONE_LAUNCH", set())
    apart = {d.key: d for d in LocalEngine(str(tiny(family)), device="cuda", dtype="bfloat16").stream(asked)}
    for key, expected in whole.items():
        assert expected.error is None
        assert half[key].error is None
        assert expected.label_logprobs is not None
        assert half[key].label_logprobs == pytest.approx(dict(expected.label_logprobs), abs=0.3)
        assert half[key].label_logprobs == pytest.approx(dict(apart[key].label_logprobs or {}), abs=0.3)


def test_keys_and_values_may_take_half_of_what_is_free(tiny: Callable[[str], Path]) -> None:
    execution = LocalEngine(str(tiny("llama")), device="cuda", dtype="bfloat16")._execution
    assert isinstance(execution, Together)
    half = torch.cuda.mem_get_info()[0] // 2 // execution.trees.token_bytes
    assert execution._most_tokens == pytest.approx(half, rel=0.2)


@pytest.mark.parametrize("top_p", [0.0, 0.9, 1.0])
def test_tokens_are_drawn_as_on_the_cpu(top_p: float) -> None:
    logits = torch.randn(150_000, generator=torch.Generator().manual_seed(0)) * 3
    for uniform in np.random.default_rng(0).random(30):
        assert choose(logits.cuda(), 0.7, top_p, float(uniform)) == choose(logits, 0.7, top_p, float(uniform))
