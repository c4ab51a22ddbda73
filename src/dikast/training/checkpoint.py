"""Checkpoints: everything a run needs to resume and reach the same weights; each is written whole or not at all."""

import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import orjson
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch.distributed.tensor import DTensor

from dikast.core.errors import DataError, UserError
from dikast.core.output_folder import replace_folder
from dikast.core.runs.run_files import changed_files, record_all
from dikast.training.adamw8bit import parts_of
from dikast.training.fsdp.sharded_checkpoint import ShareReader, is_sharded, save_shares
from dikast.training.processes import SingleProcess

_log = logging.getLogger(__name__)
_NAME = re.compile(r"step-(\d{8})")
_DRAWN = ("cpu", "cuda")  # the tensors of random states


def trained(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters that are trained, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def random_state() -> dict[str, torch.Tensor]:
    """The state of torch's random numbers on this process's devices, by device."""
    cuda = {"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {}
    return {"cpu": torch.get_rng_state(), **cuda}


def save_checkpoint(
    folder: Path,
    step: int,
    model: torch.nn.Module,
    optimizer: Any,
    state: dict[str, Any],
    draws: dict[str, torch.Tensor],
    team: SingleProcess,
    keep: int,
) -> Path:
    """Write `folder/step-N` and remove all but the last `keep`; `draws` is the `random_state` after that step.

    Where processes hold shares of the model, each writes its own (`shard-*.safetensors`), and nothing is gathered.
    """
    temporary, final = folder / "part", folder / f"step-{step:08d}"

    def begin() -> None:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)

    team.from_main(begin)
    names = trained(model)
    weights: dict[str, torch.Tensor] = {name: parameter.detach() for name, parameter in names.items()}
    moments: dict[str, torch.Tensor] = {}
    for name, parameter in names.items():
        for kind, value in optimizer.state[parameter].items():
            moments |= {f"{key}:{name}": each.detach() for key, each in parts_of(kind, torch.as_tensor(value)).items()}
    if shared := {name: each for name, each in (weights | moments).items() if isinstance(each, DTensor)}:
        save_shares(temporary, shared)
    weights, moments = ({k: v.contiguous() for k, v in some.items() if k not in shared} for some in (weights, moments))
    save_file(draws, temporary / f"draws-{team.rank}.safetensors")
    team.wait()

    def finish() -> None:
        if weights:
            save_file(weights, temporary / "weights.safetensors")
        save_file(moments, temporary / "optimizer.safetensors")
        (temporary / "state.json").write_bytes(orjson.dumps({**state, "step": step}, option=orjson.OPT_INDENT_2))
        record_all(temporary)
        for path in temporary.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        replace_folder(temporary, final)
        for old in checkpoints(folder)[:-keep]:
            shutil.rmtree(old)

    team.from_main(finish)
    return final


def checkpoints(folder: Path) -> list[Path]:
    """Every complete checkpoint, oldest first."""
    return sorted(path for path in folder.glob("step-*") if _NAME.fullmatch(path.name))


def sound_checkpoint(folder: Path, team: SingleProcess) -> Path | None:
    """The newest undamaged checkpoint; None if there is no checkpoint.

    The main process chooses for all, so that every process resumes from the same one even if one of them cannot read a
    file. Damaged checkpoints are logged and moved aside as `damaged-step-N`. UserError if all are damaged.
    """
    name = team.from_main(lambda: _choose(folder))
    return folder / name if name else None


def _choose(folder: Path) -> str:
    """The name of the newest undamaged checkpoint, after moving damaged ones aside; "" if there is none."""
    found = checkpoints(folder)
    broken = [(path, fault) for path in found[::-1] if (fault := _fault(path))]
    if found and len(broken) == len(found):
        path, why = broken[0]
        raise UserError(
            f"{path}: this checkpoint is damaged ({why}), and no earlier one is undamaged: restore it, or"
            f" remove {folder} to start again"
        )
    newest = max(set(found) - {path for path, _ in broken}, default=None)
    for path, why in broken:
        then = "resuming from the one before it" if newest is not None and path > newest else "it is moved aside"
        _log.warning("%s: this checkpoint is damaged (%s): %s", path, why, then)
        replace_folder(path, path.with_name(f"damaged-{path.name}"))
    return newest.name if newest is not None else ""


def _fault(path: Path) -> str:
    """The damage to the files of a checkpoint, "" if there is none."""
    try:
        changed = changed_files(path)
        state = orjson.loads((path / "state.json").read_bytes())
        if changed:
            return "; ".join(f"{name}: {why}" for name, why in sorted(changed.items()))
        if not isinstance(state, dict) or not {"run", "step", "seconds"} <= state.keys():
            return "state.json: fields are missing"
        for name in ("optimizer.safetensors", *(() if is_sharded(path) else ("weights.safetensors",))):
            with safe_open(path / name, "pt"):
                pass
    except (OSError, ValueError, SafetensorError, DataError) as error:
        return str(error)
    return ""


def load_checkpoint(
    path: Path, model: torch.nn.Module, optimizer: Any, team: SingleProcess, *, runs: tuple[str, ...]
) -> dict[str, Any]:
    """Restore weights, moments and random state; returns the state. UserError if it is of none of these runs."""
    state: dict[str, Any] = orjson.loads((path / "state.json").read_bytes())
    if state["run"] not in runs:
        raise UserError(
            f"{path}: this checkpoint belongs to a run with other data or settings: give another 'out', or remove the "
            "folder to start again"
        )
    _load_moments(path, load_weights(path, model), optimizer)
    draws = path / f"draws-{team.rank}.safetensors"
    if draws.is_file():  # missing for a process that the earlier run did not have
        known = load_file(draws)
        torch.set_rng_state(known["cpu"])
        if "cuda" in known and torch.cuda.is_available():
            torch.cuda.set_rng_state(known["cuda"])
    return state


def load_weights(path: Path, model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Load the trained weights of a checkpoint into a model; returns them by name. If weights are sharded over
    processes, each reads its slices, whichever processes wrote the checkpoint.
    """
    reader, names = ShareReader(path), trained(model)
    known = {name for name in reader.tensors if ":" not in name and name not in _DRAWN}
    if missing := names.keys() ^ known:
        raise UserError(f"{path}: this checkpoint holds other parameters than the model trains: {sorted(missing)[:3]}")
    reader.read_into({name: parameter.detach() for name, parameter in names.items()}, alone=not _dealt_out(names))
    return names


def _load_moments(path: Path, names: dict[str, torch.nn.Parameter], optimizer: Any) -> None:
    """Load the optimizer's state of each parameter, sharded as the parameter is if it has the same shape."""
    reader, shared = ShareReader(path), dict[str, torch.Tensor]()
    counts_there = {  # parameters on whose device the optimizer counts steps
        parameter
        for group in optimizer.param_groups if group.get("fused") or group.get("capturable")
        for parameter in group["params"]
    }  # fmt: skip
    if begin := getattr(optimizer, "begin", None):  # moments of several parts, which are filled in place
        optimizer.state.update({parameter: begin(parameter) for parameter in names.values()})
    with safe_open(path / "optimizer.safetensors", "pt") as alike:
        for key, known in reader.tensors.items():
            kind, _, name = key.partition(":")
            if not name:
                continue
            parameter = names[name]
            if begin and kind != "step":
                shared[key] = next(
                    parts[kind]
                    for moment, value in optimizer.state[parameter].items()
                    if kind in (parts := parts_of(moment, value))
                )
                continue
            if kind == "step":
                found: torch.Tensor = alike.get_tensor(key)
                found = found.to(parameter.device) if parameter in counts_there else found
            elif known.size == parameter.shape:
                found = torch.zeros_like(parameter, dtype=known.properties.dtype, requires_grad=False)
                shared[key] = found
            else:
                found = torch.zeros(known.size, dtype=known.properties.dtype, device=parameter.device)
                shared[key] = found
            optimizer.state[parameter][kind] = found
    reader.read_into(shared, alone=not _dealt_out(names))


def _dealt_out(names: dict[str, torch.nn.Parameter]) -> bool:
    return any(isinstance(parameter, DTensor) for parameter in names.values())
