"""Files behind addresses: copies in the cache, so that they can be read twice, by the code that reads files.

http(s) needs nothing more; every other scheme is fsspec's (`pip install 'dikast[s3]'` for `s3://`, `'dikast[gs]'` for
`gs://`, else `'dikast[remote]'` and the scheme's own package, which read their keys from the usual places).
"""

import hashlib
import os
import re
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from dikast.core.errors import DataError, MissingExtra, RunError, UserError, is_machine_error, machine_error, require
from dikast.core.media.fetch import MOST_SOURCE_BYTES, download, shown_url
from dikast.core.output_folder import replacing
from dikast.core.records.sniffing import refuse_foreign
from dikast.core.secrets import without_secrets
from dikast.core.text import one_line

_CHUNK = 2**20
_UNREAD = (
    "ftp",
    "sftp",
    "ssh",
    "smb",
    "git",
    "data",
    "reference",
)  # by fsspec: protocols not tested here


_WORKING = "addresses of http, https, hf, s3 and gs are, and those of other stores that fsspec has a package for"
_EXTRAS = {"s3": "s3", "gs": "gs", "gcs": "gs"}  # every other scheme has "remote", and a package that fsspec names
_CURE = "or download the file and give its path"


def local_copy(address: str) -> str:
    """The path of a copy of what an address names, fetched now. UserError with the cure where that cannot be done."""
    scheme = address.partition("://")[0].lower()
    if scheme in _UNREAD or "::" in address.partition("?")[0].replace("[::", "["):
        what = f"{scheme}:// is" if scheme in _UNREAD else "chained addresses (::) are"
        raise UserError(f"{shown_url(address)}: {what} not read here: {_WORKING}; {_CURE}")
    try:
        name = re.sub(r"[^\w.\-]", "_", urlsplit(address).path.rpartition("/")[2])[-80:] or "data"
    except ValueError:
        raise UserError(f"{shown_url(address)}: not an address: fix it") from None
    folder = Path(_cache()) / hashlib.sha256(address.encode(errors="surrogateescape")).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot keep a copy of {shown_url(address)} ({error.strerror or error})") from error
    with replacing(str(folder / name)) as part, open(part, "wb") as file:
        if scheme in ("http", "https"):
            download(address, file)
        else:
            _by_fsspec(address, file)
        file.flush()
        with open(part, "rb") as got:
            refuse_foreign(got.read(512), shown_url(address))
    return str(folder / name)


def _cache() -> str:
    from platformdirs import user_cache_dir

    return os.path.join(user_cache_dir("dikast", appauthor=False), "inputs")


def _by_fsspec(address: str, file: BinaryIO) -> None:
    extra = _EXTRAS.get(address.partition("://")[0].lower(), "remote")
    fsspec = require("fsspec", extra)
    shown, size = shown_url(address), 0
    try:
        with fsspec.open(address, "rb") as stream:
            while size <= MOST_SOURCE_BYTES and (chunk := stream.read(_CHUNK)):
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
            raise UserError(f"{shown}: {scheme}:// is not known: {_WORKING}; {_CURE}") from None
        told = one_line(without_secrets(str(error)))
        raise DataError(
            f"cannot be fetched ({type(error).__name__}: {told}): check the address and the login", path=shown
        ) from None
    if not size:
        raise DataError("an empty file, or a folder: name a file that holds records", path=shown)
    if size > MOST_SOURCE_BYTES:
        raise DataError(f"has more than {MOST_SOURCE_BYTES:,} bytes: download it and give a smaller one", path=shown)
