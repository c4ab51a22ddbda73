"""The model in training: opening or initialising it, choosing what is trained (LoRA included), and saving it."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers

from dikast.core.errors import UserError, require
from dikast.core.machine.endless_patterns import refuse_endless
from dikast.core.output_folder import replace_folder
from dikast.core.runs.run_files import record_all
from dikast.engines.local.loading import Loaded, fixed_settings, limits, load, opening, sees_images
from dikast.engines.local.processor import load_processor
from dikast.engines.local.source import ModelSource, locate
from dikast.engines.local.trusted import configured, model_config, pretrained
from dikast.training.config import Config
from dikast.training.fsdp.sharded_model import (
    deal_out_adapters,
    dealt_out,
    gather_when_due,
    launched_for_fsdp,
    sharding,
)

PROJECTORS = re.compile(r"(^|\.)(multi_modal_projector|image_newline|visual\.(merger|deepstack_merger_list))(\.|$)")
_NOT_LANGUAGE = re.compile(r"(^|\.)(vision_tower|visual|vision_model|multi_modal_projector|lm_head)(\.|$)")
_BESIDE_WEIGHTS = ("*.json", "*.jinja", "*.model", "*.txt")
_WRITTEN_ANEW = re.compile(r"config\.json|generation_config\.json|adapter_config\.json|checksums\.json|.*\.index\.json")


def source_of(config: Config) -> ModelSource:
    """The location of the model or, to start from scratch, of its configuration and tokenizer."""
    name = config.model or config.init
    beside = config.path(name)
    return locate(str(beside) if beside.is_dir() else name)


def open_model(config: Config, *, shards: int = 1) -> Loaded:
    """Open the model for training: trained parameters require gradients, the others do not.

    shards: the number of processes that it is sharded over; each reads only its share (a model from scratch is drawn
    whole by each).
    """
    source = source_of(config)
    adapters = frozen_in_bf16(config) and config.train == "lora"  # nothing that is trained is in the file
    dtype = "bfloat16" if config.precision == "bf16-master" or adapters else "float32"
    if config.model:
        shape = model_config(source.folder) if shards > 1 else None
        dealt = sharding(config, blank_model(shape), shards) if shards > 1 else None
        loaded = load(source, device=config.device, dtype=dtype, distributed=dealt)
    else:
        loaded = _assembled(source, blank=False, seed=config.seed)
        loaded.model.to(device_of(config), getattr(torch, dtype))
        if shards > 1:
            loaded = replace(loaded, model=dealt_out(loaded.model, config, shards))
    made_ready(loaded.model, config, sharded=shards > 1)
    if shards > 1 and device_of(config).type == "cpu":
        gather_when_due(loaded.model)
    return loaded


def made_ready(model: Any, config: Config, *, sharded: bool = False) -> Any:
    """The model itself with the trained parameters chosen, frozen weights in their type and checkpointing as
    configured.
    """
    choose_trained(model, config)
    if sharded and config.train == "lora":  # frozen weights were read in their type
        for parameter in model.parameters():
            if parameter.requires_grad and config.precision != "bf16-master":
                parameter.data = parameter.data.float()
        deal_out_adapters(model, config)
    elif frozen_in_bf16(config) and not sharded:
        for parameter in model.parameters():  # norms take no weights of another type than their input
            whole = parameter.requires_grad or parameter.ndim < 2
            parameter.data = parameter.data.to(torch.float32 if whole else torch.bfloat16)
    if config.checkpointing:
        enable = getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)
        enable()
    return model


def blank_model(shape: Any, device: str = "meta") -> Any:
    """A model of a transformers configuration, drawn anew; without weights on the device `meta`."""
    sees = hasattr(shape, "vision_config")
    kind: Any = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    with configured(shape._name_or_path), torch.device(device):
        return kind.from_config(shape)


def frozen_in_bf16(config: Config) -> bool:
    """Whether matrices that are not trained are held in bfloat16. Where processes hold shares of the model, only under
    adapters, whose weights are sharded separately: a shard has one type.
    """
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    kept = config.train != "full" or bool(config.frozen)
    return config.precision == "bf16" and kept and (alone or (launched_for_fsdp() and config.train == "lora"))


def device_of(config: Config) -> torch.device:
    """The device that the configuration names; `auto` is CUDA if available, else the CPU."""
    if config.device != "auto":
        return torch.device(config.device)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def open_blank(config: Config) -> Loaded:
    """The model without weights, which is enough for making prompts."""
    return _assembled(source_of(config), blank=True, seed=0)


def about(loaded: Loaded) -> dict[str, Any]:
    """The properties of a model that determine tokens and images, as JSON values."""
    kept = ("tokenizer", "chat_template", "images", "ends", "context")
    return {key: value for key, value in fixed_settings(loaded).items() if key in kept}


def _assembled(source: ModelSource, *, blank: bool, seed: int) -> Loaded:
    with opening(source, "cpu"):
        config = model_config(source.folder)
        sees = sees_images(config, source)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = blank_model(config, "meta" if blank else "cpu")
        habits = source.folder / "generation_config.json"
        if habits.is_file():
            said = pretrained(transformers.GenerationConfig, source.folder)
            ids = {name: getattr(said, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
            model.generation_config = transformers.GenerationConfig(**ids)
        return limits(model, load_processor(source, config, sees=sees))


def choose_trained(model: Any, config: Config) -> None:
    """Mark the trained parameters; UserError if there are none."""
    model.requires_grad_(config.train == "full")
    if config.train == "lora":
        _add_lora(model, config)
    if config.train == "projector":
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(PROJECTORS.search(name) is not None)
    refuse_endless(config.frozen, (name for name, _ in model.named_parameters()), "frozen")
    for pattern in config.frozen:
        found = [p for name, p in model.named_parameters() if re.search(pattern, name)]
        if not found:
            raise UserError(f"frozen: no parameter's name matches {pattern!r}; names are like {_example(model)}")
        for parameter in found:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        why = "the model has no known projector" if config.train == "projector" else "everything is frozen"
        raise UserError(f"train: {config.train} leaves nothing to train: {why}")


def _add_lora(model: Any, config: Config) -> None:
    peft = require("peft", "train")
    lora = config.lora
    linear = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    if lora.targets == "language":
        chosen = [name for name in linear if not _NOT_LANGUAGE.search(name)]
    else:
        refuse_endless([lora.targets], linear, "lora: targets")
        chosen = [name for name in linear if re.search(lora.targets, name)]
    if not chosen:
        raise UserError(f"lora: no linear layer's name matches {lora.targets!r}; names are like {linear[:3]}")
    settings = peft.LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=chosen, bias="none"
    )
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        peft.inject_adapter_in_model(settings, model)


def _example(model: Any) -> str:
    names = [name for name, _ in model.named_parameters()]
    return ", ".join(names[:: max(1, len(names) // 3)][:3])


def save_model(loaded: Loaded, config: Config, folder: Path, *, write: Callable[[Path], None] | None = None) -> None:
    """Save the model, with adapters merged, as a checkpoint that any engine opens; all files are written or none.

    write: writes weights and configuration, in place of what `loaded` holds.
    """
    temporary = folder.with_name(folder.name + ".part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    source = source_of(config)
    for beside in dict.fromkeys((source.folder, source.tokenizer_folder)):
        for path in (path for pattern in _BESIDE_WEIGHTS for path in beside.glob(pattern)):
            if not _WRITTEN_ANEW.fullmatch(path.name):
                shutil.copyfile(path, temporary / path.name)
    if write is not None:
        write(temporary)
    else:
        _write_whole(_merged(loaded.model) if config.train == "lora" else loaded.model, temporary)
    record_all(temporary)
    replace_folder(temporary, folder)


def _write_whole(model: Any, folder: Path) -> None:
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        model.save_pretrained(folder)
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()


def _merged(model: Any) -> Any:
    """A copy with the adapters merged into the weights."""
    import copy

    from peft.tuners.lora import LoraLayer

    merged = copy.deepcopy(model)
    for name, module in list(merged.named_modules()):
        if isinstance(module, LoraLayer):
            module.merge()
            parent, _, child = name.rpartition(".")
            setattr(merged.get_submodule(parent), child, module.get_base_layer())
    vars(merged).pop("peft_config", None)
    return merged
