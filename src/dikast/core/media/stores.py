"""Files in object stores, and wherever else fsspec reads: with the keys that its packages find in the usual places."""

import io
from typing import BinaryIO

from dikast.core.errors import DataError, MissingExtra, UserError, is_machine_error, machine_error, require
from dikast.core.media.fetch import fetch, shown_url
from dikast.core.secrets import without_secrets
from dikast.core.text import one_line

_CHUNK = 2**20
WORKING = "addresses of http, https, hf, s3 and gs are, and those of other stores that fsspec has a package for"
CURE = "or download the file and give its path"
_EXTRAS = {"s3": "s3", "gs": "gs", "gcs": "gs"}  # every other scheme has "remote", and a package that fsspec names


def fetched(address: str, most: int, timeout: float, *, kind: str, private: bool) -> bytes:
    """What is at an address of http(s), as `fetch` has it, or of a store: at most `most` bytes."""
    if address.startswith(("http://", "https://")):
        return fetch(address, most, timeout, kind=kind, private=private)
    raw = io.BytesIO()
    try:
        copy_from_store(address, raw, most)
    except MissingExtra as error:  # which other items do without
        shown = shown_url(address)
        raise DataError(f"{kind} {shown}: {str(error).removeprefix(f'{shown}: ')}") from None
    return raw.getvalue()


def copy_from_store(address: str, file: BinaryIO, most: int) -> None:
    """Write what is at an address that fsspec reads to a file: at most `most` bytes, and at least one.

    DataError, with the address as its path, for what cannot be fetched; MissingExtra where a package is missing.
    """
    if "::" in address:
        raise DataError(
            "chained addresses (::) are not read: download the file and give its path", path=shown_url(address)
        )
    extra = _EXTRAS.get(address.partition("://")[0].lower(), "remote")
    fsspec = require("fsspec", extra)
    shown, size = shown_url(address), 0
    try:
        with fsspec.open(address, "rb") as stream:
            while size <= most and (chunk := stream.read(_CHUNK)):
                size += len(chunk)
                file.write(chunk)
    except ImportError as error:  # the package of one scheme
        cure = f": pip install 'dikast[{extra}]'" if extra != "remote" else " (with pip install)"
        raise MissingExtra(f"{shown}: {error}{cure}") from None
    except Exception as error:  # of any of fsspec's file systems, which have no error in common
        if isinstance(error, OSError) and is_machine_error(error):
            raise machine_error(error) from error
        if isinstance(error, ValueError) and str(error).startswith("Protocol not known"):
            scheme = one_line(address.partition("://")[0])
            raise UserError(f"{shown}: {scheme}:// is not known: {WORKING}; {CURE}") from None
        told = one_line(without_secrets(str(error)))
        raise DataError(
            f"cannot be fetched ({type(error).__name__}: {told}): check the address and the login", path=shown
        ) from None
    if not size:
        raise DataError("an empty file, or a folder: name a file", path=shown)
    if size > most:
        raise DataError(f"has more than {most:,} bytes: download it and give a smaller one", path=shown)
