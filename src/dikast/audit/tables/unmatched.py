"""Notes on rows that match nothing or match twice."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dikast.audit.tables.columns import Words, duplicates
from dikast.core.text import counted


def duplicate_note(keys: Sequence[str], columns: Sequence[str]) -> list[str]:
    """A note if several rows of a table have one id, made of `columns`."""
    if not columns:
        return []
    count, first = duplicates(keys)
    if not count:
        return []
    return [
        f"{counted(count, 'id')} {'occurs' if count == 1 else 'occur'} more than once (the first is {first!r}): "
        f"every row counts by itself, nothing is averaged; --cluster {columns[0]} resamples them together"
    ]


def unmatched_items(items: Words | None, gold: Mapping[str, Mapping[str, Any]], left_out: Collection[str]) -> list[str]:
    """Which items lack gold or a verdict; those of pairs that were `left_out` were judged."""
    if not gold or items is None:
        return []
    judged = set(items.names)
    known = set().union(*gold.values())
    found = []
    if without := len(judged - known):
        found.append(f"{counted(without, 'judged item')} without gold")
    if unused := len(known - judged - set(left_out)):
        found.append(f"{counted(unused, 'item')} with gold that were not judged")
    return found
