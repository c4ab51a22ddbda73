"""The memory and the operations of one forward and backward pass, counted without computing anything.

The model is built of tensors that have a shape and no values (torch's fake tensors), and the pass is run on them: the
same classes, kernels, autograd graph and activation checkpointing as in training, so the tensors alive at the peak are
counted, not estimated. On a CPU the count is that of torch's profiler on real tensors within 10 %.
"""

import weakref
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import AttentionInterface

from dikast.engines.local.trusted import configured
from dikast.training.config import Config
from dikast.training.data.collate import Batch, summed_loss
from dikast.training.models.model import blank_model, frozen_in_bf16, made_ready

_NAME = "dikast_planned"


@dataclass(frozen=True, slots=True)
class Work:
    """The content of one forward pass: `rows` of `tokens` each, of which `learnt` count in the loss; `tiles` are the
    image tiles that go through the vision tower.
    """

    rows: int
    tokens: int
    learnt: int
    tiles: int = 0


@dataclass(frozen=True, slots=True)
class StepCost:
    """`peak`: most bytes at one time of weights, gradients and activations; `operations`: of the pass."""

    peak: int
    operations: int


class _Alive(TorchDispatchMode):
    """Adds up the storages that are alive, and the operations of matrix products and attention."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[int] = set()
        self.bytes = self.peak = self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if (count := flop_registry.get(func._overloadpacket)) is not None:
            self.operations += count(*args, **(kwargs or {}), out_val=made)
        elif "flash_attention_for_cpu_backward" in func.name():  # torch counts attention on accelerators alone
            self.operations += sdpa_backward_flop_count(*(each.shape for each in args[:4]))
        elif "flash_attention_for_cpu" in func.name():
            self.operations += sdpa_flop_count(*(each.shape for each in args[:3]))
        self.add(tree_leaves(made))
        return made

    def add(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                if key not in self._known:
                    self._known.add(key)
                    self.bytes += size
                    self.peak = max(self.peak, self.bytes)
                    weakref.finalize(storage, self._gone, key, size)

    def _gone(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.bytes -= size


def step_cost(config: Config, shape: Any, work: Work, *, summed: bool) -> StepCost:
    """Count one pass of a model of this `shape` (its transformers configuration).

    summed: whether gradients of an earlier pass of the step are there already.
    """
    model = unloaded(config, shape).train()
    language = model.get_decoder()
    if language._supports_attention_backend:
        AttentionInterface.register(_NAME, _causal_attention)
        language.set_attn_implementation(_NAME)
    with FakeTensorMode():
        _placed_on_cpu(model)
        trained = [each for each in model.parameters() if each.requires_grad]
        if summed:
            for parameter in trained:
                parameter.grad = torch.zeros_like(parameter)
        alive = _Alive()
        for group in (model.parameters(), model.buffers(), (each.grad for each in trained)):
            alive.add(group)
        with alive:
            _pass(model, config, work)
        return StepCost(alive.peak, alive.operations)


def _causal_attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any) -> Any:
    """Attention as in training, without a mask: for tensors without values transformers would create one."""
    return sdpa_attention_forward(module, query, key, value, None, **{**kwargs, "is_causal": True})


def unloaded(config: Config, shape: Any) -> Any:
    """The model as it would be trained, with its types and adapters, on the device `meta`: without weights."""
    with configured(shape._name_or_path):
        model = blank_model(shape)
        if config.precision == "bf16-master" or (frozen_in_bf16(config) and config.train == "lora"):
            model.to(torch.bfloat16)
        return made_ready(model, config)


def _placed_on_cpu(model: torch.nn.Module) -> None:
    """Give a model without weights fake ones on the CPU, whose kernels and autocast are then counted."""
    made: dict[int, torch.Tensor] = {}
    for module in model.modules():
        for held in (module._parameters, module._buffers):
            for name, each in held.items():
                if each is not None:
                    if id(each) not in made:
                        empty = torch.empty(each.shape, dtype=each.dtype)
                        trained = each.requires_grad
                        made[id(each)] = torch.nn.Parameter(empty, trained) if held is module._parameters else empty
                    held[name] = made[id(each)]  # type: ignore[assignment]


def _pass(model: Any, config: Config, work: Work) -> None:
    reduced = config.precision == "bf16"
    with torch.autocast("cpu", torch.bfloat16) if reduced else nullcontext():
        features = _seen(model, work.tiles)
        count = 0 if features is None else min(len(features), work.rows * work.tokens)
        ids = torch.zeros(work.rows * work.tokens - count, dtype=torch.long)
        embedded = model.get_input_embeddings()(ids)
        if features is not None:
            embedded = torch.cat([features[:count].to(embedded), embedded])
        rows = embedded.view(work.rows, work.tokens, -1)
        hidden = model.base_model(inputs_embeds=rows, use_cache=False).last_hidden_state
        logits = model.get_output_embeddings()(hidden.flatten(0, 1)[: work.learnt])
    places = torch.arange(work.learnt)
    batch = Batch({}, torch.zeros_like(places), places, torch.ones(work.learnt), numbers=(), learnt=work.learnt)
    summed_loss(logits, batch).backward()


def _seen(model: Any, tiles: int) -> torch.Tensor | None:
    """The features of pictures of a model with a tower and a projector, (tokens, width); None for other models."""
    inner = getattr(model, "model", model)
    tower, projector = (getattr(inner, name, None) for name in ("vision_tower", "multi_modal_projector"))
    if not tiles or tower is None or projector is None:
        return None
    side = model.config.vision_config.image_size
    pixels = torch.zeros(tiles, model.config.vision_config.num_channels, side, side, dtype=model.dtype)
    hidden = tower(pixels, output_hidden_states=True).hidden_states[model.config.vision_feature_layer]
    found: torch.Tensor = projector(hidden)
    return found.flatten(0, 1)
