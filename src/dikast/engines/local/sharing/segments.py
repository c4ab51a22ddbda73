"""Attention of many segments, each with its own keys, in one launch of a kernel.

On a GPU a small segment takes longer to launch than to compute, so there all segments of a layer are computed
together, where the kernel that does so exists. Everything about where they stand is laid out once for all layers.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self

import torch

from dikast.engines.local.sharing.attention_part import Part, attend

_ONE_LAUNCH = {("cuda", torch.float16), ("cuda", torch.bfloat16)}  # devices and types with such a kernel
_FEW = 512  # queries of a segment that keep a GPU busy only if it reads its keys in several places at a time
_KEYS = 1024  # keys in each of these


def in_one_launch(like: torch.Tensor) -> bool:
    """Whether segments of tensors like this, (..., width), are computed in one launch."""
    return (like.device.type, like.dtype) in _ONE_LAUNCH and like.shape[-1] % 8 == 0 and like.shape[-1] <= 256


class Segments(NamedTuple):
    """Where segments stand: `queries` are their boundaries, `keys` the first key of each and one number more, `tokens`
    how many keys each has. In int32 on the device of the attention.
    """

    queries: torch.Tensor
    keys: torch.Tensor
    tokens: torch.Tensor
    most_queries: int
    most_keys: int

    @classmethod
    def of(cls, queries: Sequence[int], keys: Sequence[int], tokens: Sequence[int], device: torch.device) -> Self:
        """From the number of queries, the first key and the number of keys of each segment."""
        told = ((0, *accumulate(queries)), (*keys, 0), tokens)
        bounds, first, count = (torch.tensor(each, dtype=torch.int32).to(device) for each in told)
        return cls(bounds, first, count, max(queries), max(tokens))

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, *, causal: bool = False
    ) -> Part:
        """The attention of all segments: `out` as `query`, `log_sum` (queries, heads).

        query: (queries, heads, width); key, value: (tokens, key heads, width).
        """
        if query.device.type == "cuda":
            ops: Any = torch.ops.aten
            made = ops._flash_attention_forward(
                query, key, value, self.queries, self.keys, self.most_queries, self.most_keys, 0.0, causal, False,
                scale=scale, seqused_k=self.tokens,
            )  # fmt: skip
            return Part(made[0], made[1].T)
        found = []
        bounds, keys = self.queries.tolist(), self.keys.tolist()
        for start, end, at, tokens in zip(bounds, bounds[1:], keys, self.tokens.tolist(), strict=False):
            rows = query[start:end], key[at : at + tokens], value[at : at + tokens]
            asked, keys_of, values_of = (each.transpose(0, 1)[None] for each in rows)
            part = attend(asked, keys_of, values_of, scale, causal=causal)
            found.append((part.out[0].transpose(0, 1), part.log_sum[0, ..., 0].T))
        return Part(*(torch.cat(each) for each in zip(*found, strict=True)))


class KeysSeen(NamedTuple):
    """Queries `start` to `end` see `tokens` keys from `key` on."""

    start: int
    end: int
    key: int
    tokens: int


class Merged:
    """Queries that see more than the keys of their own segment, and how all that they see is merged.

    Heads that share keys are queries of one head here, so that keys are read once: `heads` for each key head.
    """

    def __init__(self, seen: Sequence[KeysSeen], heads: int, device: torch.device) -> None:
        cut = [
            each._replace(key=each.key + at, tokens=min(size, each.tokens - at))
            for each in seen
            for size in [_KEYS if (each.end - each.start) * heads <= _FEW else each.tokens]
            for at in range(0, each.tokens, size)
        ]
        rows = [row for each in cut for row in range(each.start, each.end)]
        numbers: dict[int, list[int]] = {row: [at] for at, row in enumerate(sorted(set(rows)))}
        for number, row in enumerate(rows, len(numbers)):
            numbers[row].append(number)
        most = max(map(len, numbers.values()))
        gaps = [[0.0] * len(each) + [-torch.inf] * (most - len(each)) for each in numbers.values()]
        self._rows = torch.tensor(rows).to(device)
        self._which = torch.tensor(list(numbers)).to(device)
        self._numbers = torch.tensor([each + [0] * (most - len(each)) for each in numbers.values()]).to(device)
        self._gaps = torch.tensor(gaps)[..., None, None].to(device)
        self._segments = Segments.of(
            [(each.end - each.start) * heads for each in cut], [each.key for each in cut],
            [each.tokens for each in cut], device,
        )  # fmt: skip

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, own: Part
    ) -> torch.Tensor:
        """The attention to everything, given that to the own segments; like `query`, merged in float32.

        query and `own.out`, which may be changed: (queries, folded, key heads, width); `own.log_sum` without the width.
        """
        asked = query.index_select(0, self._rows).flatten(0, 1)
        found = self._segments.attend(asked, key, value, scale)
        everything = len(self._which) == len(query)
        parts = [
            torch.cat([mine if everything else mine[self._which], each.unflatten(0, (-1, query.shape[1]))])
            for mine, each in zip(own, found, strict=True)
        ]
        share = (parts[1][self._numbers] + self._gaps).softmax(1)[..., None]
        merged = (share * parts[0][self._numbers]).sum(1).to(query.dtype)
        if everything:
            return merged
        own.out[self._which] = merged
        return own.out


def folded(tensor: torch.Tensor, key_heads: int) -> torch.Tensor:
    """(queries, heads, ...) as (queries, heads for each key head, key heads, ...): a view."""
    return tensor.unflatten(1, (key_heads, -1)).transpose(1, 2)


def unfolded(tensor: torch.Tensor) -> torch.Tensor:
    """The inverse of `folded`."""
    return tensor.transpose(1, 2).flatten(1, 2)
