"""A reply's bytes as values. Replies are not always strictly valid JSON, and may have been paid for."""

import json
import re
from typing import Any

import orjson

_LONE = re.compile("[\ud800-\udfff]")


def decoded(raw: bytes) -> Any:
    """The JSON value in `raw`; ValueError if there is none, or not all of it.

    It also reads bytes that are not UTF-8 (replaced), halves of surrogate pairs (replaced, since they cannot be written
    to a file), NaN and Infinity, control characters inside strings, and numbers of any size (as far as a float goes).
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        value = json.loads(raw.decode(json.detect_encoding(raw), "replace"), strict=False, parse_int=_number)
        spelt = json.dumps(value, ensure_ascii=False)
        return json.loads(_LONE.sub("\ufffd", spelt), parse_int=_number) if _LONE.search(spelt) else value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def said(value: object) -> str:
    """A value of any type as text."""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, default=str).decode()
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def count_of(value: object) -> int | None:
    """A number of tokens; None for a value that cannot be one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


_MOST_TOKENS = 10**9  # of one reply; sums over any run stay within 64 bits


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) < 19 else float(digits)
