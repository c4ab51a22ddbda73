"""The same verdicts on a CUDA device as on the CPU: `make gpu`."""

from collections.abc import Callable
from pathlib import Path

import pytest

import tiny_models
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Readout, Request, Sampling
from dikast.engines.local.engine import LocalEngine

pytestmark = pytest.mark.gpu
LABELS = (" 1", " 2", " 3", " 4", " 5")


@pytest.fixture(scope="module", autouse=True)
def cuda() -> None:
    import torch

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
