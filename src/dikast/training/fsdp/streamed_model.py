"""The model of a run over several processes, assembled from its last checkpoint one tensor at a time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dikast.core.errors import UserError
from dikast.engines.local.loading import Loaded
from dikast.engines.local.trusted import model_config
from dikast.training.config import Config
from dikast.training.fsdp.sharded_checkpoint import ShareReader
from dikast.training.models.folders import Weights
from dikast.training.models.model import blank_model, source_of
from dikast.training.models.tensor_files import Stored, write_tensors

_FILE = 2 * 2**30
_NAMES = {torch.float32: "F32", torch.bfloat16: "BF16"}
Make = Callable[[str], torch.Tensor]


def streamed(loaded: Loaded, config: Config, checkpoint: Path) -> Callable[[Path], None] | None:
    """A function that writes weights and configuration of the trained model into a folder; None if it cannot be
    streamed.

    A trained tensor is the checkpoint's, any other the source's with its adapter merged. Streaming needs a source of
    safetensors files that hold the same tensors as the model, under any names.
    """
    folder = source_of(config).folder
    if not config.model:
        return None
    try:
        source = Weights(folder)
    except UserError:  # no safetensors
        return None
    shape = model_config(folder)
    blank = blank_model(shape)
    spelt = _spelt(blank, getattr(loaded.model, "_weight_conversions", None))
    if spelt is None or not spelt.keys() <= source.files.keys():
        return None
    kind = torch.bfloat16 if config.precision == "bf16-master" else torch.float32

    def write(target: Path) -> None:
        with source:
            make = _maker(loaded, config, source, ShareReader(checkpoint), spelt, kind)
            kinds = {name: _NAMES[kind] if "F" in source.kinds[name] else source.kinds[name] for name in spelt}
            layout = {name: Stored(kinds[name], source.shapes[name]) for name in sorted(spelt)}
            write_tensors(target, layout, make, _FILE)
        shape.architectures = [type(blank).__name__]
        shape.dtype = kind
        shape.save_pretrained(target)
        loaded.model.generation_config.save_pretrained(target)

    return write


def _spelt(model: Any, conversions: Any) -> dict[str, str] | None:
    """The model's name of each tensor by its name in files; None if some are combined from several."""
    from transformers.core_model_loading import revert_weight_conversion

    state: dict[str, torch.Tensor] = dict(model.named_parameters())
    kept = model.state_dict().keys()
    state |= {name: each for name, each in model.named_buffers() if name in kept}
    names = {id(each): name for name, each in state.items()}
    model._weight_conversions = conversions
    found = {spelt: names.get(id(each)) for spelt, each in revert_weight_conversion(model, dict(state)).items()}
    if None in found.values() or len(found) != len(state):
        return None
    return {spelt: name for spelt, name in found.items() if name is not None}


def _maker(
    loaded: Loaded, config: Config, source: Weights, reader: ShareReader, spelt: dict[str, str], kind: torch.dtype
) -> Make:
    """A function that makes a tensor of the trained model by its name in files."""
    trained = {name for name in reader.tensors if ":" not in name}
    scaling = config.lora.alpha / config.lora.rank

    def make(name: str) -> torch.Tensor:
        inside = spelt[name]
        found = reader.whole(inside) if inside in trained else source.read(name)
        found = found.to(kind if found.is_floating_point() else found.dtype)
        module = inside.removesuffix(".weight")
        if f"{module}.lora_A.default.weight" in trained:
            first, second = (reader.whole(f"{module}.lora_{part}.default.weight") for part in "AB")
            found += ((second @ first) * scaling).to(found.dtype)
        return found

    return make
