"""Replies that must be JSON of a schema, or one of some choices: which tokens may come next, by llguidance."""

import json
from collections.abc import Sequence
from typing import Any

import torch

from dikast.core.errors import EngineError, require
from dikast.engines.base import Request
from dikast.engines.local.tokens import Piece, Tokens


class Grammars:
    """Makes constraints for one tokenizer; the tokenizer's table is built once, on first use."""

    def __init__(self, tokens: Tokens, vocabulary: int, ends: Sequence[int]) -> None:
        self._tokens = tokens
        self._vocabulary = vocabulary
        self._ends = list(ends)
        self._table: Any = None

    def constraint(self, request: Request) -> "Constraint | None":
        """What the request's `schema` or `choices` allow, None if it has neither.

        It holds for the whole reply: a prefill is taken as its beginning. JSON comes without free whitespace.
        """
        if request.schema is None and not request.choices:
            return None
        library = require("llguidance", "hf")
        if self._table is None:
            hf = require("llguidance.hf", "hf")
            self._table = hf.from_tokenizer(self._tokens.tokenizer, n_vocab=self._vocabulary, eos_token=self._ends)
        matcher = library.LLMatcher(self._table, _grammar(request, library.LLMatcher), log_level=0)
        if request.prefill:
            matcher.consume_tokens(self._tokens.encode([Piece(request.prefill)]))
        if matcher.is_error():
            raise EngineError(f"schema, choices or prefill cannot be followed: {matcher.get_error()}", kind="schema")
        return Constraint(matcher, self._vocabulary, self._ends)


class Constraint:
    """The position of one reply in its grammar."""

    def __init__(self, matcher: Any, vocabulary: int, ends: Sequence[int]) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._ends = list(ends)

    def take(self, token: int) -> None:
        """The reply was continued with `token`."""
        if not self._matcher.is_stopped():
            self._matcher.consume_token(token)

    def allowed(self) -> torch.Tensor:
        """Which tokens may come next: booleans (vocabulary)."""
        allowed = torch.zeros(self._vocabulary, dtype=torch.bool)
        if self._matcher.is_stopped():
            allowed[self._ends] = True
            return allowed
        bits = torch.frombuffer(bytearray(self._matcher.compute_bitmask()), dtype=torch.uint8)
        spread = (bits[:, None] >> torch.arange(8, dtype=torch.uint8)) & 1
        known = spread.flatten()[: self._vocabulary].bool()
        allowed[: len(known)] = known
        return allowed


def _grammar(request: Request, matcher: Any) -> str:
    if request.choices:
        return matcher.grammar_from_lark("start: " + " | ".join(json.dumps(choice) for choice in request.choices))
    compact = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
    return matcher.grammar_from_json_schema(json.dumps(request.schema), defaults=compact)
