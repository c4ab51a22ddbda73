"""Attention to some of the keys, and how it is merged with attention to the others.

`attend` gives a part and the logarithm of the sum that its softmax divided by, with which parts of the same query are
merged exactly (up to rounding), as blockwise attention does.
"""

from typing import Any, NamedTuple

import torch


class Part(NamedTuple):
    """Attention to some of the keys: `out` (rows, heads, queries, width), `log_sum` (rows, heads, queries, 1)."""

    out: torch.Tensor
    log_sum: torch.Tensor

    def exact(self) -> "Part":
        """In float32, for parts to be merged into it."""
        return Part(self.out.float(), self.log_sum.float())


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
