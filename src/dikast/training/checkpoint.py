"""Checkpoints: everything a run needs to go on to the same weights, whole or not at all."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import orjson
import torch
from safetensors.torch import load_file, save_file

from dikast.core.errors import UserError

_NAME = re.compile(r"step-(\d{8})")


def trained(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters that are trained, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def save_checkpoint(
    folder: Path, step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any], keep: int
) -> Path:
    """Write `folder/step-N` and remove all but the last `keep`."""
    temporary, final = folder / "part", folder / f"step-{step:08d}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    names = trained(model)
    weights = {name: parameter.detach().contiguous() for name, parameter in names.items()}
    save_file(weights, temporary / "weights.safetensors")
    moments: dict[str, torch.Tensor] = {}
    for name, parameter in names.items():
        for key, value in optimizer.state[parameter].items():
            moments[f"{key}:{name}"] = torch.as_tensor(value).detach().contiguous()
    save_file(moments, temporary / "optimizer.safetensors")
    draws = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        draws["cuda"] = torch.cuda.get_rng_state()
    save_file(draws, temporary / "draws.safetensors")
    (temporary / "state.json").write_bytes(orjson.dumps({**state, "step": step}, option=orjson.OPT_INDENT_2))
    for path in temporary.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    shutil.rmtree(final, ignore_errors=True)
    temporary.rename(final)
    for old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old)
    return final


def checkpoints(folder: Path) -> list[Path]:
    """Every complete checkpoint, oldest first."""
    return sorted(path for path in folder.glob("step-*") if _NAME.fullmatch(path.name))


def load_checkpoint(
    path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, run: str
) -> dict[str, Any]:
    """Put weights, moments and random state back; returns the state. UserError if it belongs to another run."""
    state: dict[str, Any] = orjson.loads((path / "state.json").read_bytes())
    if state["run"] != run:
        raise UserError(
            f"{path}: this checkpoint belongs to a run with other data or settings: give another 'out', or remove the "
            "folder to start again"
        )
    weights = load_file(path / "weights.safetensors")
    moments = load_file(path / "optimizer.safetensors")
    names = trained(model)
    if missing := names.keys() ^ weights.keys():
        raise UserError(f"{path}: this checkpoint holds other parameters than the model trains: {sorted(missing)[:3]}")
    with torch.no_grad():
        for name, parameter in names.items():
            parameter.copy_(weights[name])
    for key, value in moments.items():
        kind, _, name = key.partition(":")
        place = torch.device("cpu") if kind == "step" else names[name].device
        optimizer.state[names[name]][kind] = value.to(place)
    draws = load_file(path / "draws.safetensors")
    torch.set_rng_state(draws["cpu"])
    if "cuda" in draws and torch.cuda.is_available():
        torch.cuda.set_rng_state(draws["cuda"])
    return state
