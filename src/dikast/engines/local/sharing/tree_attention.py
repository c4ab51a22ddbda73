"""Tree attention, computed in parts that are merged by log-sum-exp.

A segment of a tree attends causally to itself, and to the whole of every segment that it continues. In preorder,
everything that continues a segment follows it without a gap, so this is one call of a fused kernel without a mask,
which reads the keys once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

from dikast.engines.local.sharing.attention_part import Part, attend, merge
from dikast.engines.local.sharing.segments import KeysSeen, Merged, Segments, folded, in_one_launch, unfolded

_NAME = "dikast_tree"


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
    _together: "_Together | None" = field(default=None, init=False)

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """The attention of one layer: (1, heads, tokens, width)."""
        together = in_one_launch(query)
        views = together and sum(end - start for start, end, _ in self.kept) == key.shape[2]  # nothing else is kept
        for start, end, into in self.kept:
            for kept, of in ((into.keys, key), (into.values, value)):
                kept.append(of[:, :, start:end] if views else of[:, :, start:end].clone())
        if together:
            if self._together is None:
                self._together = _Together(self, query.shape[1] // key.shape[1], query.device)
            return self._together.attend(layer, query, key, value, scale)
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


class _Together:
    """The attention of a `TreePass` in one launch for all own segments, and one for everything else that is seen."""

    def __init__(self, tree: TreePass, heads: int, device: torch.device) -> None:
        sizes = [end - start for start, end in tree.own]
        self._own = Segments.of(sizes, [start for start, _ in tree.own], sizes, device)
        self._blocks = list({id(each.block): each.block for each in tree.seen if each.block is not None}.values())
        first, at = dict[int, int](), tree.own[-1][1]  # where the keys of each block begin behind those of the pass
        for block in self._blocks:
            first[id(block)] = at
            at += block.tokens
        seen = [
            KeysSeen(each.start, each.end, first.get(id(each.block), 0) + each.begin, each.tokens) for each in tree.seen
        ]
        self._merged = Merged(seen, heads, device) if seen else None

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """The attention of one layer: (1, heads, tokens, width)."""
        query, key, value = (each[0].transpose(0, 1) for each in (query, key, value))
        own = self._own.attend(query, key, value, scale, causal=True)
        out = own.out
        if self._merged is not None:
            if self._blocks:
                key = torch.cat([key, *(block.keys[layer][0].transpose(0, 1) for block in self._blocks)])
                value = torch.cat([value, *(block.values[layer][0].transpose(0, 1) for block in self._blocks)])
            of = key.shape[1]
            mine = Part(folded(out, of), folded(own.log_sum, of))
            out = unfolded(self._merged.attend(folded(query, of), key, value, scale, mine))
        return out.transpose(0, 1)[None]


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
