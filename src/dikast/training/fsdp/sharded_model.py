"""A model that FSDP2 shards over processes: each process reads its own slices of the weight files and never holds more.
transformers creates the model without weights, shards it by a plan, and reads the process's slices from the files.

The plan names the units that are gathered one at a time: every repeated layer, the embeddings and the head.
"""

import os
import re
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from dikast.training.config import Config

_NUMBER = re.compile(r"\.\d+(?=\.|$)")
_FREED = "free_full_weight"  # transformers' name for units that are gathered again for the backward pass


def launched_for_fsdp() -> bool:
    """Whether this process is one of several that were launched with a configuration for FSDP."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    return several and os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true"


def sharding(config: Config, model: Any, processes: int) -> Any:
    """The configuration with which transformers shards a model like this one (its weights do not matter) over the
    processes.
    """
    from transformers.distributed.configuration_utils import DistributedConfig

    return DistributedConfig(
        fsdp_size=processes, fsdp_plan=units_of_model(model), fsdp_mixed_precision=config.precision == "bf16"
    )


def units_of_model(model: Any) -> dict[str, str]:
    """The modules that are gathered one at a time, their layers' numbers written as `*`."""
    kinds = [type(module).__name__ for module in model.modules()]
    repeated = {kind for kind in model._no_split_modules or () if kinds.count(kind) > 1}
    ends = [model.get_input_embeddings(), model.get_output_embeddings()]
    return {
        _NUMBER.sub(".*", name): _FREED
        for name, module in model.named_modules()
        if type(module).__name__ in repeated or any(module is end for end in ends)
    }


def dealt_out(model: Any, config: Config, processes: int) -> Any:
    """Shard a model that already has its weights, such as one drawn from scratch, over the processes."""
    settings, _, mesh = type(model).prepare_distribute_model(sharding(config, model, processes))
    return type(model).maybe_distribute_model(model, settings, mesh)


def gather_when_due(model: Any) -> None:
    """Gather a layer for the backward pass when it is its turn, not while the layer after it is computed: on a CPU this
    hides no transfer, and holds one layer more.
    """
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_modules_to_backward_prefetch([module])  # an empty list would leave the default in place


def deal_out_adapters(model: Any, config: Config) -> None:
    """Shard adapters that were added to a model after it was sharded, by the layer's parts that hold them."""
    from peft.tuners.lora import LoraLayer

    mesh = model._mesh_manager.get_mesh("fsdp")
    policy = MixedPrecisionPolicy()
    if config.precision == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    others = {each for name, each in model.named_parameters() if "lora_" not in name}
    modules: list[Any] = list(model.modules())
    layers: list[Any] = [each for each in modules if isinstance(each, FSDPModule) and each is not model]
    parts: list[Any] = [child for layer in layers for child in layer.children()]
    for part in (*parts, *(each for each in modules if isinstance(each, LoraLayer))):
        whole = any("lora_" in name and not isinstance(each, DTensor) for name, each in part.named_parameters())
        if whole and not isinstance(part, FSDPModule):
            fully_shard(part, mesh=mesh, mp_policy=policy, ignored_params=others)


def dealt_out_again(model: Any) -> None:
    """Reshard what passes without gradients leave gathered; only then are a process's parameters its shards."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()
