"""One spelling for every value, so that equal values have equal fingerprints on every machine."""

import hashlib
from typing import Any

import orjson


def canonical_json(value: Any) -> bytes:
    """Compact JSON with sorted keys, UTF-8. The spelling is a contract: fingerprints on disk depend on it."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def fingerprint(value: Any) -> str:
    """32 hexadecimal digits (BLAKE2b, 128 bits) of the canonical JSON of `value`."""
    return hashlib.blake2b(canonical_json(value), digest_size=16).hexdigest()
