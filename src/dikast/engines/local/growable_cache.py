"""A growable key-value cache of a reply while it is generated, in blocks of memory.

The cache that transformers makes by itself copies all keys and values of a layer for every new token. Here a token is
written into reserved memory, and everything is copied only when that is full, every `ROOM` tokens.
"""

from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

ROOM = 256  # tokens


class GrowableLayer(DynamicLayer):
    """`DynamicLayer` whose `keys` and `values` are the used part of a larger block."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put the new keys and values, (rows, heads, tokens, width), behind those known; returns all."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._blocks = (key_states[..., :0, :], value_states[..., :0, :])
        known, new = self.get_seq_length(), (key_states, value_states)
        used = known + key_states.shape[-2]
        if used > self._blocks[0].shape[-2]:
            keys, values = (larger(block, known, used, ROOM) for block in self._blocks)
            self._blocks = (keys, values)
        for block, states in zip(self._blocks, new, strict=True):
            block[..., known:used, :] = states
        self.keys, self.values = (block[..., :used, :] for block in self._blocks)
        return self.keys, self.values


def larger(block: torch.Tensor, known: int, used: int, room: int) -> torch.Tensor:
    """A copy of the first `known` tokens with room for `used` and `room` more."""
    found = block.new_empty((*block.shape[:-2], used + room, block.shape[-1]))
    found[..., :known, :] = block[..., :known, :]
    return found


def growable_cache(model: Any) -> DynamicCache | None:
    """An empty cache for a model; None for one whose layers keep anything but all keys and values (sliding windows,
    states), which transformers serves better.
    """
    if not getattr(model, "_supports_default_dynamic_cache", lambda: True)():
        return None
    cache = DynamicCache(config=model.config)
    if not cache.layers or any(type(layer) is not DynamicLayer for layer in cache.layers):
        return None
    cache.layers = [GrowableLayer() for _ in cache.layers]
    return cache
