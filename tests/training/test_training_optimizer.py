"""Muon for hidden weight matrices and AdamW for the rest, as one optimizer."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from dikast.training.checkpoint import _load_moments, load_checkpoint, random_state, save_checkpoint
from dikast.training.config import load_config
from dikast.training.models.model import open_model
from dikast.training.optimizer import optimizer_of
from dikast.training.processes import SingleProcess

Write = Callable[..., Path]


def test_linear_layers_step_along_singular_vectors_and_the_rest_by_sign(write_config: Write) -> None:
    rate = 1e-3
    config = load_config(write_config(optimizer="muon", weight_decay=0.0, learning_rate=rate))
    model = open_model(config).model
    optimizer = optimizer_of(model, config)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    torch.manual_seed(0)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and "lm_head" not in name:
            moved = before[f"{name}.weight"] - module.weight.detach()
            size = 0.2 * max(moved.shape) ** 0.5  # what makes the step as large as AdamW's
            found = torch.linalg.svdvals(moved / rate / size)
            assert float(found.median()) > 0.6, name  # Newton-Schulz leaves them near 1, not at 1
            assert float(found.max()) < 1.4, name
    head = before["lm_head.weight"] - model.lm_head.weight.detach()
    assert torch.allclose(head, rate * torch.sign(model.lm_head.weight.grad), atol=1e-6)  # AdamW's first step


def test_its_state_loads_as_it_was_saved(write_config: Write) -> None:
    config = load_config(write_config(optimizer="muon"))
    models = [open_model(config).model for _ in range(2)]
    ones = [optimizer_of(model, config) for model in models]
    for parameter in models[0].parameters():
        parameter.grad = torch.full_like(parameter, 0.01)
    ones[0].step()
    ones[1].load_state_dict(deepcopy(ones[0].state_dict()))
    models[1].load_state_dict(models[0].state_dict())
    for model, optimizer in zip(models, ones, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = 0.5  # reaches the parts
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 0.02)
        optimizer.step()
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_adamw_is_the_plain_one(write_config: Write) -> None:
    config = load_config(write_config())
    assert isinstance(optimizer_of(open_model(config).model, config), torch.optim.AdamW)
    only = replace(config, optimizer="muon", train="projector")
    assert len(optimizer_of(open_model(only).model, only).param_groups) == 2  # two matrices; their biases


def test_steps_are_counted_where_the_optimizer_counts_them(tmp_path: Path) -> None:
    save_file({"step:weight": torch.tensor(3.0)}, tmp_path / "optimizer.safetensors")
    there = torch.nn.Parameter(torch.zeros(2, device="meta"))  # another device than the CPU, on any machine
    for capturable, device in ((True, "meta"), (False, "cpu")):
        optimizer = torch.optim.AdamW([there], capturable=capturable)
        _load_moments(tmp_path, {"weight": there}, optimizer)
        assert optimizer.state[there]["step"].device.type == device


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    "settings", [{}, {"optimizer": "muon"}, {"optimizer": "adafactor"}, {"precision": "bf16-master"}]
)
def test_a_checkpoint_goes_on_as_if_unbroken(
    device: str, settings: dict[str, str], tmp_path: Path, write_config: Write
) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    config = load_config(write_config(**settings))
    models = [open_model(config).model.to(device) for _ in range(2)]
    if settings.get("precision"):
        models = [model.bfloat16() for model in models]
    ones = [optimizer_of(model, config) for model in models]

    def step(n: int) -> None:
        for parameter in models[n].parameters():
            parameter.grad = torch.full_like(parameter, 0.01)
        ones[n].step()

    step(0)
    saved = save_checkpoint(tmp_path, 1, models[0], ones[0], {"run": "x"}, random_state(), SingleProcess(), 1)
    load_checkpoint(saved, models[1], ones[1], SingleProcess(), runs=("x",))
    step(0)
    step(1)
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(a, b)
