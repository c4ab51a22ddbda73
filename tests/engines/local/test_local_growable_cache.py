"""Keys and values in blocks: the same numbers as the cache of transformers, copied seldom."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from transformers import DynamicCache, LlamaConfig, MistralConfig

from dikast.core.message import Message, Span
from dikast.engines.base import Request, Sampling
from dikast.engines.local import growable_cache as cache
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.growable_cache import GrowableLayer, growable_cache

LLAMA = LlamaConfig(num_hidden_layers=2, num_attention_heads=2, hidden_size=8)


def test_what_is_kept_is_what_transformers_keeps_and_it_moves_only_when_a_block_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "ROOM", 3)
    ours, theirs = growable_cache(SimpleNamespace(config=LLAMA)), DynamicCache(config=LLAMA)
    assert ours is not None
    places: tuple[list[int], list[int]] = ([], [])
    for tokens in (5, 1, 1, 1, 1, 2, 1):  # a prompt, then its reply; the blocks hold 8 tokens, then 12
        for layer in (0, 1):
            keys, values = torch.randn(2, 2, tokens, 4), torch.randn(2, 2, tokens, 4)
            kept = ours.update(keys, values, layer)
            for got, due in zip(kept, theirs.update(keys, values, layer), strict=True):
                assert torch.equal(got, due)
            places[layer].append(kept[0].data_ptr())
        assert ours.get_seq_length() == theirs.get_seq_length()
    for each in places:
        assert [each.index(place) for place in each] == [0, 0, 0, 0, 4, 4, 4]


def test_replies_run_over_the_end_of_a_block(
    monkeypatch: pytest.MonkeyPatch, engine: Callable[[str], LocalEngine]
) -> None:
    asked = [Request(str(i), (Message("user", (Span("good " * (1 + i)),)),), Sampling(max_tokens=12)) for i in range(3)]
    roomy = [done.text for done in engine("llama").stream(asked)]
    monkeypatch.setattr(cache, "ROOM", 2)
    assert [done.text for done in engine("llama").stream(asked)] == roomy
    monkeypatch.setattr("dikast.engines.local.generating.growable_cache", lambda model: None)
    assert [done.text for done in engine("llama").stream(asked)] == roomy


def test_layers_that_forget_are_left_to_transformers() -> None:
    whole = growable_cache(SimpleNamespace(config=MistralConfig(num_hidden_layers=2, sliding_window=None)))
    assert whole is not None
    assert {type(layer) for layer in whole.layers} == {GrowableLayer}
    assert growable_cache(SimpleNamespace(config=MistralConfig(num_hidden_layers=2, sliding_window=16))) is None
    stateful = SimpleNamespace(config=LLAMA, _supports_default_dynamic_cache=lambda: False)
    assert growable_cache(stateful) is None
