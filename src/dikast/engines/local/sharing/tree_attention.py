"""Tree attention, computed in parts that are merged by log-sum-exp.

A segment of a tree attends causally to itself, and to the whole of every segment that it continues. In preorder,
everything that continues a segment follows it without a gap, so this is one call of a fused kernel without a mask,
which reads the keys once. `attend` gives a part and the logarithm of the sum that its softmax divided by, with which
parts of the same query are merged exactly (up to rounding), as blockwise attention does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

_NAME = "dikast_tree"


class Part(NamedTuple):
    """Attention to some of the keys: `out` (rows, heads, queries, width), `log_sum` (rows, heads, queries, 1)."""

    out: torch.Tensor
    log_sum: torch.Tensor

    def exact(self) -> "Part":
        """In float32, for parts to be merged into it."""
        return Part(self.out.float(), self.log_sum.float())


@dataclass(slots=True, eq=False)
class Block:
    """Keys and values of consecutive tokens, by layer: (1, key heads, tokens, width) each."""

    tokens: int
    keys: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """What the tensors take."""
        return sum(each.numel() * each.element_size() for each in (*self.keys, *self.values))


class SeenKeys(NamedTuple):
    """Queries `start` to `end` see the first `tokens` tokens of a block, or of the pass itself from `begin` on."""

    start: int
    end: int
    block: Block | None
    begin: int
    tokens: int


@dataclass(slots=True)
class TreePass:
    """What the tokens of a forward pass (one row) attend to, and which of its keys and values are kept.

    own: segments by start and end, each causal. seen: everything else that is attended to. kept: segments by start, end
    and the block that their keys and values go to.
    """

    own: list[tuple[int, int]]
    seen: list[SeenKeys]
    kept: list[tuple[int, int, Block]]

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """The attention of one layer: (1, heads, tokens, width)."""
        for start, end, into in self.kept:
            into.keys.append(key[:, :, start:end].clone())
            into.values.append(value[:, :, start:end].clone())
        parts = [
            attend(query[:, :, start:end], key[:, :, start:end], value[:, :, start:end], scale, causal=True)
            for start, end in self.own
        ]
        whole = Part(*(torch.cat(each, 2) for each in zip(*parts, strict=True))).exact()
        for start, end, block, begin, tokens in self.seen:
            keys, values = (key, value) if block is None else (block.keys[layer], block.values[layer])
            stop = begin + tokens
            part = attend(query[:, :, start:end], keys[:, :, begin:stop], values[:, :, begin:stop], scale)
            merge(Part(whole.out[:, :, start:end], whole.log_sum[:, :, start:end]), part)
        return whole.out.to(query.dtype)


def merge(into: Part, part: Part) -> None:
    """Merge the attention of `part` into `into`, which is in float32, in place."""
    share = torch.sigmoid(part.log_sum - into.log_sum)  # of what the part's keys weigh in the sum of both
    into.out.lerp_(part.out.to(into.out), share)
    torch.logaddexp(into.log_sum, part.log_sum, out=into.log_sum)


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, *, causal: bool = False,
    mask: torch.Tensor | None = None,
) -> Part:  # fmt: skip
    """Softmax attention with its log-sum-exp, by a fused kernel where there is one.

    query: (rows, heads, queries, width); key, value: (rows, key heads, tokens, width). mask: what is added to the
    scores, (rows, 1, queries or 1, tokens).
    """
    folded = query.shape[1] // key.shape[1]
    shape = query.shape
    if folded > 1 and not causal:
        # heads that share keys become queries of one head, so that keys are read once
        query = query.reshape(shape[0], key.shape[1], folded * shape[2], shape[3])
        if mask is not None and mask.shape[2] > 1:
            mask = mask.repeat(1, 1, folded, 1)
        out, log_sum = _kernel(query, key, value, scale, causal, mask)
        return Part(out.reshape(shape), log_sum.reshape(*shape[:3], 1))
    out, log_sum = _kernel(query, key, value, scale, causal, mask)
    return Part(out, log_sum[..., None])


def _kernel(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, causal: bool, mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The attention and its log-sum-exp (rows, heads, queries), the latter in float32."""
    ops: Any = torch.ops.aten
    if query.device.type == "cpu" and query.dtype in (torch.float32, torch.bfloat16):
        made = ops._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, causal, attn_mask=mask, scale=scale
        )
        return made[0], made[1]
    if query.shape[1] > key.shape[1]:
        key, value = (each.repeat_interleave(query.shape[1] // key.shape[1], 1) for each in (key, value))
    if query.device.type == "cuda" and mask is None and query.shape[-1] % 8 == 0 and query.shape[-1] <= 256:
        if query.dtype in (torch.float16, torch.bfloat16):
            made = ops._scaled_dot_product_flash_attention(query, key, value, 0.0, causal, False, scale=scale)
        else:
            made = ops._scaled_dot_product_efficient_attention(query, key, value, None, True, 0.0, causal, scale=scale)
        return made[0], made[1][..., : query.shape[2]].float()
    scores = (query.float() @ key.float().mT) * scale
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~seen, -torch.inf)
    if mask is not None:
        scores = scores + mask.float()
    log_sum = scores.logsumexp(-1)
    return ((scores - log_sum[..., None]).exp() @ value.float()).to(query.dtype), log_sum


def tree_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    tree: Any = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention by `tree` (a `TreePass`, or another object with `attend`) if the forward call was given one."""
    if tree is None:
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
        return found
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return tree.attend(module.layer_idx, query, key, value, scale).transpose(1, 2), None


@contextmanager
def attending_to_trees(model: Any) -> Iterator[None]:
    """While the context lasts, layers of the model's language part attend through `tree_attention`."""
    AttentionInterface.register(_NAME, tree_attention)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    language = model.get_decoder()
    before = language.config._attn_implementation
    language.set_attn_implementation(_NAME)
    try:
        yield
    finally:
        language.set_attn_implementation(before)
