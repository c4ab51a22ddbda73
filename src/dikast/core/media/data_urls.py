"""The bytes that a data URL holds."""

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

from dikast.core.errors import DataError

_DATA_URL = re.compile(r"data:(?P<mime>[^;,]*)(?P<parameters>(?:;[^;,]*)*),", re.ASCII)


def from_data_url(source: str, name: str) -> bytes:
    """The bytes; DataError, which calls it `name`, for what is no complete data URL."""
    cure = "write data:image/png;base64,... with the whole file in base64"
    head = _DATA_URL.match(source)
    if head is None:
        raise DataError(f"{name} is not a complete data URL: {cure}")
    body = source[head.end() :]
    if "base64" not in head["parameters"].lower().split(";"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote_to_bytes(body) if "%" in body else body, validate=True)
    except (binascii.Error, ValueError):
        raise DataError(f"{name} is broken base64: {cure}") from None
