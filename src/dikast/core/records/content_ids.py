"""Ids made from an item's content, so that inserting a row does not change other ids."""

import hashlib
from dataclasses import replace

from dikast.core.canonical import canonical_json
from dikast.core.item import Item, item_to
from dikast.core.records.arranging import Arrangement
from dikast.core.records.ids import Ids

_NOT_SHOWN = ("id", "gold", "gold_from", "meta")
_TOLD = 5  # equal items in a message


def content_id(item: Item) -> str:
    """A fingerprint of the visible content of the item, without gold and metadata; images count by their names."""
    shown = {key: value for key, value in item_to(item).items() if key not in _NOT_SHOWN}
    return "row-" + hashlib.blake2b(canonical_json(shown), digest_size=6).hexdigest()


def prompt_id(item: Item) -> str:
    """A fingerprint of the prompt: equal for the responses of several systems to one prompt."""
    shown = item_to(replace(item, id="", responses=(), reference=None, rubric=None, gold=None, meta={}))
    return hashlib.blake2b(canonical_json(shown), digest_size=6).hexdigest()


class ContentIds:
    """Names the items of one pass; equal ones get `#2`, `#3`, ... in order, and are counted in the reading."""

    def __init__(self, reading: Arrangement, seen: Ids) -> None:
        self._seen, self._more, self._reading = seen, dict[str, int](), reading

    def named(self, item: Item) -> Item:
        """The item with its id."""
        name = content_id(item)
        if self._seen.add(name, 1) is None:
            return replace(item, id=name)
        n = self._more[name] = self._more.get(name, 1) + 1
        self._reading.equal += 1
        if len(self._reading.equal_at) < _TOLD:
            self._reading.equal_at.append(item.origin)
        return replace(item, id=f"{name}#{n}")
