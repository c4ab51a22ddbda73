"""Files behind addresses: copies in the cache, so that they can be read twice, by the code that reads files.

http(s) needs nothing more; every other scheme is fsspec's (`pip install 'dikast[remote]'`, and for `s3://` `s3fs`, for
`gs://` `gcsfs`, which take the keys from where they always do).
"""

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from dikast.core.errors import DataError, MissingExtra, RunError, UserError, require
from dikast.core.fetch import download, shown_url

_CHUNK = 2**20


def local_copy(address: str) -> str:
    """The path of a copy of what an address names, fetched now. UserError with the cure where that cannot be done."""
    name = re.sub(r"[^\w.\-]", "_", urlsplit(address).path.rpartition("/")[2])[-80:] or "data"
    folder = Path(_cache()) / hashlib.sha256(address.encode()).hexdigest()[:16]
    target, part = folder / name, folder / f"{name}.{os.getpid()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            if address.startswith(("http://", "https://")):
                download(address, file)
            else:
                _by_fsspec(address, file)
        part.replace(target)
    except OSError as error:
        raise RunError(
            f"{folder}: cannot write the copy of {shown_url(address)} ({error.strerror or error})"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return str(target)


def _cache() -> str:
    from platformdirs import user_cache_dir

    return os.path.join(user_cache_dir("dikast", appauthor=False), "inputs")


def _by_fsspec(address: str, file: BinaryIO) -> None:
    fsspec = require("fsspec", "remote")
    shown = shown_url(address)
    try:
        source = fsspec.open(address, "rb")
    except ImportError as error:  # the package of one scheme
        raise MissingExtra(f"{shown}: {error}") from None
    except ValueError as error:
        raise UserError(f"{shown}: {error}") from None
    try:
        with source as stream:
            shutil.copyfileobj(stream, file, _CHUNK)
    except ImportError as error:
        raise MissingExtra(f"{shown}: {error}") from None
    except Exception as error:  # of any of fsspec's file systems, which have no error in common
        raise DataError(
            f"cannot be fetched ({type(error).__name__}: {error}): check the address and the login", path=shown
        ) from None
