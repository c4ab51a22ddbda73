"""An engine whose replies are begun with the feedback of the item's gold: only the verdict is left to the model."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dikast.core.errors import UserError
from dikast.engines.base import Completion, Request
from dikast.engines.wrapper import Wrapper


class GoldFeedback(Wrapper):
    """`engine`, made to begin each reply with what stands as feedback in the item's gold; UserError without any."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The answers to the requests, begun."""
        return self.engine.stream(map(_begun, requests))

    def identity(self) -> Mapping[str, Any]:
        """The engine's own, and how its replies begin."""
        return {**self.engine.identity(), "begin": "feedback"}


def _begun(request: Request) -> Request:
    gold = request.about.get("gold")
    told = gold.get("feedback") if isinstance(gold, Mapping) else None
    if not told:
        raise UserError(f"begin: item {request.about.get('item')!r} has no gold feedback to begin the reply with")
    readout = request.readout and replace(request.readout, generate=False)
    return replace(request, prefill=str(told), readout=readout)
