"""Ids made from an item's content, so that inserting a row does not change other ids; and which ids have been seen."""

import hashlib
from dataclasses import replace

from dikast.core.canonical import canonical_json
from dikast.core.item import Item, item_to
from dikast.core.machine.spilled import zeros
from dikast.core.records.shapes.arrangement import Arrangement

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


class Ids:
    """The line on which each id first stood: 12 bytes a slot, 24 MiB for a million ids, in files where they are more.

    An open-addressing table of 64-bit hashes (SipHash of CPython, rekeyed in each process). That two different ids
    among n share a hash has odds of about n^2 / 2^65: 3e-8 for a million. Callers confirm a hit where they can.
    """

    def __init__(self) -> None:
        self._mask, self._count = 2**12 - 1, 0
        self._hashes = zeros("Q", self._mask + 1)  # 0 is an empty slot
        self._lines = zeros("I", self._mask + 1)

    def add(self, name: str, line: int) -> int | None:
        """Remember `name`; the line on which (very probably) the same name stood before, or None."""
        hashed = hash(name) & 0xFFFF_FFFF_FFFF_FFFF or 1
        hashes, mask = self._hashes, self._mask
        at = hashed & mask
        while hashes[at]:
            if hashes[at] == hashed:
                return self._lines[at]
            at = (at + 1) & mask
        hashes[at], self._lines[at] = hashed, line
        self._count += 1
        if self._count * 4 > mask * 3:
            self._grow()
        return None

    def _grow(self) -> None:
        old_hashes, old_lines = self._hashes, self._lines
        self._mask = 2 * self._mask + 1
        hashes, lines, mask = zeros("Q", self._mask + 1), zeros("I", self._mask + 1), self._mask
        for hashed, line in zip(old_hashes, old_lines, strict=True):
            if hashed:
                at = hashed & mask
                while hashes[at]:
                    at = (at + 1) & mask
                hashes[at], lines[at] = hashed, line
        self._hashes, self._lines = hashes, lines


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
