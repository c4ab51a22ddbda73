"""One spelling for every value, so that equal values have equal fingerprints on every machine."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

MOST_LEVELS = 100
"""Levels of lists and objects in the value of a record. orjson reads 1,024 and writes 254, in which a record is only a
part of what is written.
"""


def too_deep(record: Mapping[Any, Any]) -> str | None:
    """The first key of a record whose value is nested in more than MOST_LEVELS levels; None for no such key."""
    for key, value in record.items():
        if type(value) in _NESTING and _nested(value, MOST_LEVELS):
            return str(key)
    return None


_NESTING = frozenset({dict, list, tuple})


def read_json(raw: bytes) -> Any:
    """The value that JSON of a file spells; ValueError for what is no JSON, or is nested in more than MOST_LEVELS."""
    value = orjson.loads(raw)
    if raw.count(b"[") + raw.count(b"{") > MOST_LEVELS and _nested([value], MOST_LEVELS + 2):
        raise ValueError(f"nested in more than {MOST_LEVELS} levels")
    return value


def _nested(value: Any, levels: int) -> bool:
    if not levels:
        return True
    for each in value.values() if isinstance(value, dict) else value:
        if type(each) in _NESTING and _nested(each, levels - 1):
            return True
    return False


def canonical_json(value: Any) -> bytes:
    """Compact JSON with sorted keys, UTF-8. The spelling is a contract: fingerprints on disk depend on it."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def fingerprint(value: Any) -> str:
    """32 hexadecimal digits (BLAKE2b, 128 bits) of the canonical JSON of `value`."""
    return hashlib.blake2b(canonical_json(value), digest_size=16).hexdigest()
