"""Files behind addresses: copies in the cache, so that they can be read twice, by the code that reads files.

http(s) needs nothing more; every other scheme is fsspec's (`pip install 'dikast[s3]'` for `s3://`, `'dikast[gs]'` for
`gs://`, else `'dikast[remote]'` and the scheme's own package, which read their keys from the usual places).
"""

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from dikast.core.errors import RunError, UserError
from dikast.core.media.fetch import MOST_SOURCE_BYTES, download, shown_url
from dikast.core.media.stores import CURE, WORKING, copy_from_store
from dikast.core.output_folder import replacing
from dikast.core.records.sniffing import refuse_foreign

_UNREAD = (
    "ftp",
    "sftp",
    "ssh",
    "smb",
    "git",
    "data",
    "reference",
)  # by fsspec: protocols not tested here


def local_copy(address: str) -> str:
    """The path of a copy of what an address names, fetched now. UserError with the cure where that cannot be done."""
    scheme = address.partition("://")[0].lower()
    if scheme in _UNREAD or "::" in address.partition("?")[0].replace("[::", "["):
        what = f"{scheme}:// is" if scheme in _UNREAD else "chained addresses (::) are"
        raise UserError(f"{shown_url(address)}: {what} not read here: {WORKING}; {CURE}")
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
            copy_from_store(address, file, MOST_SOURCE_BYTES)
        file.flush()
        with open(part, "rb") as got:
            refuse_foreign(got.read(512), shown_url(address))
    return str(folder / name)


def _cache() -> str:
    from platformdirs import user_cache_dir

    return os.path.join(user_cache_dir("dikast", appauthor=False), "inputs")
