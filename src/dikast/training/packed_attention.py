"""Attention over packed rows: every token attends to its own row up to itself, and to nothing else.

A packed forward pass has one row of tokens and a table of its segments in the place of the attention mask, which
transformers passes on unchanged since it has four dimensions. Each segment is one call of PyTorch's fused attention, so
that time and memory grow with the tokens that attend to each other, not with the square of the pass.
"""

from typing import Any

import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

from dikast.core.errors import UserError
from dikast.engines.local.growable_cache import growable_cache

_NAME = "dikast_packed"


def segment_table(ends: list[int], parents: list[int]) -> torch.Tensor:
    """The segments of a packed pass as an attention mask: (1, 1, segments, 2) integers, on the CPU.

    ends: where each segment ends; the next one begins there. parents: the number of the segment that each one
    continues, which comes before it, or -1.
    """
    return torch.tensor([ends, parents]).T[None, None]


def packed_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention within segments and what they continue, where the mask is a `segment_table`; else plain attention.

    query: (1, heads, tokens, width); key, value: (1, key heads, tokens, width). Returns (1, tokens, heads, width).
    """
    if attention_mask is None or attention_mask.dtype != torch.int64:
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return found
    shared_heads = query.shape[1] > key.shape[1]
    made, spans = [], list[list[tuple[int, int]]]()
    start = 0
    for end, parent in attention_mask[0, 0].tolist():
        seen = [*(spans[parent] if parent >= 0 else []), (start, end)]
        if len(seen) > 1 and seen[-2][1] == start:  # it follows directly after the segment that it continues
            seen[-2:] = [(seen[-2][0], end)]
        spans.append(seen)
        known = sum(stop - begin for begin, stop in seen)
        mask = None
        if known > end - start:
            mask = _causal(end - start, known, query.device)
        made.append(
            scaled_dot_product_attention(
                query[:, :, start:end], _gathered(key, seen), _gathered(value, seen), mask,
                dropout_p=dropout, is_causal=mask is None, scale=scaling, enable_gqa=shared_heads,
            )
        )  # fmt: skip
        start = end
    return torch.cat(made, 2).transpose(1, 2).contiguous(), None


def _causal(queries: int, keys: int, device: torch.device) -> torch.Tensor:
    """A mask by which the last query sees all keys, and each before it one key less.

    On CUDA one that PyTorch knows kernels for, which with any other mask computes all scores.
    """
    if device.type == "cuda":
        return causal_lower_right(queries, keys)
    return torch.ones((queries, keys), dtype=torch.bool, device=device).tril(keys - queries)


def _gathered(tensor: torch.Tensor, spans: list[tuple[int, int]]) -> torch.Tensor:
    parts = [tensor[:, :, start:end] for start, end in spans]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 2)


def use_packed_attention(model: Any) -> None:
    """Let the layers of a model's language part attend through `packed_attention`; other calls stay as they are.

    UserError for a model whose attention cannot be set, or whose layers keep anything but all keys and values.
    """
    language = model.get_decoder()
    if not language._supports_attention_backend:
        raise UserError(
            f"pack: the attention of {type(model).__name__} cannot be set: leave 'pack' out, or use a model of the "
            "Llama, Mistral, Qwen or LLaVA families"
        )
    if growable_cache(model) is None:
        raise UserError(
            f"pack: {type(model).__name__} has layers with sliding windows or states, which rows laid end to end would "
            "cross: leave 'pack' out"
        )
    AttentionInterface.register(_NAME, packed_attention)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    language.set_attn_implementation(_NAME)
