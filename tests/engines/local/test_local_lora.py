"""LoRA adapters: the folder leads to its base, the adapter is merged, and both are in the identity."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dikast.core.errors import UserError
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Readout, Request
from dikast.engines.local.batch import TokenRow, collate
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.prompt import encode

peft: Any = pytest.importorskip("peft")
Tiny = Callable[[str], Path]


def adapter_of(base: Path, folder: Path, seed: int = 0) -> Path:
    """A LoRA adapter with random weights over the language model of a tiny model."""
    kind: Any = __import__("transformers").AutoModelForImageTextToText
    model = kind.from_pretrained(base)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = peft.LoraConfig(
            r=4, lora_alpha=8, target_modules=r".*language_model.*\.(q_proj|v_proj)", init_lora_weights=False
        )
        peft.get_peft_model(model, config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def adapter(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return adapter_of(tiny("llava_onevision"), tmp_path_factory.mktemp("lora") / "adapter")


def requests() -> list[Request]:
    from PIL import Image as Pictures

    shown = Image.of(Pictures.linear_gradient("L").resize((70, 50)).convert("RGB"))
    readout = Readout(("1", "2", "10"), "\nScore: ", generate=False)
    return [
        Request(str(i), (Message("user", (*parts, Span("good " * (i + 1)))),), readout=readout)
        for i, parts in enumerate([(), (shown,), (shown, shown)])
    ]


def reads(engine: LocalEngine) -> dict[str, dict[str, float]]:
    found = {done.key: done for done in engine.stream(requests())}
    assert all(done.error is None for done in found.values())
    return {key: dict(done.label_logprobs or {}) for key, done in found.items()}


def test_merged_on_load_equals_the_adapter_and_a_merged_checkpoint(tiny: Tiny, adapter: Path, tmp_path: Path) -> None:
    base = tiny("llava_onevision")
    engine = LocalEngine(f"hf:{adapter}", device="cpu")
    found = reads(engine)
    assert found != reads(LocalEngine(str(base), device="cpu"))

    kind: Any = __import__("transformers").AutoModelForImageTextToText
    over = peft.PeftModel.from_pretrained(kind.from_pretrained(base), str(adapter)).eval()
    for request in requests():  # unmerged: the plain forward of peft
        prompt = encode(request.messages, engine._loaded.processor)
        batch = collate([TokenRow(prompt, prompt.ids)], engine._loaded)
        with torch.inference_mode():
            assert torch.allclose(over(**batch).logits, engine._loaded.model(**batch).logits, atol=1e-4)

    merged = tmp_path / "merged"
    shutil.copytree(base, merged)
    over.merge_and_unload().save_pretrained(merged)
    for key, each in reads(LocalEngine(str(merged), device="cpu")).items():
        assert found[key] == pytest.approx(each, abs=1e-5)


def test_the_adapter_is_in_the_identity(tiny: Tiny, adapter: Path, tmp_path: Path) -> None:
    engine = LocalEngine(str(adapter), device="cpu")
    identity = engine.identity()
    plain = LocalEngine(str(tiny("llava_onevision")), device="cpu").identity()
    assert identity["weights"] == plain["weights"]
    assert (
        identity["adapter"]
        != LocalEngine(str(adapter_of(tiny("llava_onevision"), tmp_path / "other", seed=1)), device="cpu").identity()[
            "adapter"
        ]
    )
    assert "peft" in engine.versions()


def test_a_base_that_is_not_there_is_told_and_can_be_given(tiny: Tiny, adapter: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(adapter, moved)
    config = json.loads((moved / "adapter_config.json").read_text())
    (moved / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": "/no/such/base"}))
    with pytest.raises(UserError, match=r"adapter_config\.json.*'base_model_name_or_path'.*base=FOLDER"):
        LocalEngine(str(moved), device="cpu")
    base = str(tiny("llava_onevision"))
    assert reads(LocalEngine(str(moved), device="cpu", base=base)) == reads(LocalEngine(str(adapter), device="cpu"))
    with pytest.raises(UserError, match="a whole model, not an adapter"):
        LocalEngine(base, device="cpu", base=base)
    with pytest.raises(UserError, match=r"not found in the base model.*base=FOLDER"):
        LocalEngine(str(moved), device="cpu", base=str(tiny("qwen")))
    (moved / "adapter_config.json").write_text("{}")
    with pytest.raises(UserError, match="no adapter of PEFT"):
        LocalEngine(str(moved), device="cpu")
