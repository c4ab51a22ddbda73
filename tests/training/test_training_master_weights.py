"""bfloat16 weights with the rest of their float32 values: nothing of an update is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dikast.core.errors import DataError
from dikast.training.config import load_config
from dikast.training.master_weights import LOWER, MasterAdamW, joined, split
from dikast.training.models.model import open_model
from dikast.training.optimizer import optimizer_of
from dikast.training.sft import sft

Write = Callable[..., Path]
STEPS, RATE = 500, 2e-6


def test_a_float32_is_its_two_halves() -> None:
    rng = torch.Generator().manual_seed(0)
    values = torch.randn(20_000, generator=rng) * torch.logspace(-30, 30, 20_000)
    values[:3] = torch.tensor([0.0, -0.0, 1.0])
    upper, lower = split(values)
    assert torch.equal(upper, values.bfloat16())  # rounded to the nearest; no value here lies half way
    assert torch.equal(joined(upper, lower).view(torch.int32), values.view(torch.int32))


def moved(write_config: Write, folder: Path, precision: str) -> tuple[float, float]:
    """The norm of the update of the weights that the model computes with, and the share of them that moved."""
    told: dict[str, Any] = {"init": None, "model": str(folder), "learning_rate": RATE, "betas": [0.9, 0.999]}
    config = load_config(write_config(precision=precision, **told))
    model: Any = open_model(config).model
    start = {name: p.detach().to(torch.bfloat16, copy=True) for name, p in model.named_parameters()}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(start[name])
    optimizer, rng = optimizer_of(model, config), torch.Generator().manual_seed(0)
    for _ in range(STEPS):
        batch = torch.randint(10, 200, (4, 10), generator=rng)
        model(input_ids=batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    total, changed, n = 0.0, 0, 0
    for name, parameter in model.named_parameters():
        value = parameter.detach()
        changed += int((value.bfloat16() != start[name]).sum())
        n += value.numel()
        if isinstance(optimizer, MasterAdamW):
            value = joined(value, optimizer.state[parameter][LOWER])
        total += float(((value.float() - start[name].float()) ** 2).sum())
    return total**0.5, changed / n


@pytest.mark.slow
def test_weights_move_as_far_as_in_float32_at_the_rates_of_fine_tuning(
    write_config: Write, tiny: Callable[[str], Path]
) -> None:
    norm, share = moved(write_config, tiny("qwen"), "fp32")
    kept, kept_share = moved(write_config, tiny("qwen"), "bf16-master")
    assert abs(kept / norm - 1) < 0.05
    assert abs(kept_share / share - 1) < 0.05


def test_a_run_goes_on_to_the_same_weights(write_config: Write, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"family": "qwen", "precision": "bf16-master", "steps": 3}
    sft(write_config("whole", **settings))
    for _ in range(3):
        done = sft(write_config("cut", **settings, max_seconds=1e-6))
    assert done["complete"]
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("whole", "cut"))
    assert {tensor.dtype for tensor in one.values()} == {torch.bfloat16}
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


def test_muon_is_refused(write_config: Write) -> None:
    with pytest.raises(DataError, match="float32 weights for AdamW alone"):
        load_config(write_config(precision="bf16-master", optimizer="muon"))


def test_the_former_value_is_read_as_what_replaced_it(write_config: Write) -> None:
    assert load_config(write_config(precision="pure-bf16")).precision == "bf16-master"


@pytest.mark.parametrize("train", ["lora", "projector"])
def test_a_frozen_base_is_held_in_bfloat16_and_saved_as_it_was(
    train: str, write_config: Write, tiny: Callable[[str], Path], world: Path, tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    folder = tiny("llava")
    held = {"items": [str(world / "scenes" / "items-*.jsonl")], "formats": ["score-only"], "limit": 2}
    path = write_config(init=None, model=str(folder), train=train, precision="bf16", steps=2, eval=held)
    model = open_model(load_config(path)).model
    kinds = {(p.requires_grad, p.ndim > 1, p.dtype) for p in model.parameters()}
    assert kinds - {(True, False, torch.float32)} == {
        (True, True, torch.float32), (False, True, torch.bfloat16), (False, False, torch.float32),
    }  # fmt: skip
    assert sft(path)["complete"]
    base, made = load_file(folder / "model.safetensors"), load_file(tmp_path / "run-c/model/model.safetensors")
    same = {name for name, tensor in base.items() if torch.equal(tensor, made[name])}
    assert same != base.keys()
    assert any("vision" in name for name in same)  # in float32 as in the base, not rounded
    assert {tensor.dtype for tensor in made.values()} == {torch.float32}
