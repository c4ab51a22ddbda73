"""Lists of servers: addresses separated by commas, lines of a file, or the machines of a host name."""

import asyncio
import socket
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit, urlunsplit

from dikast.core.errors import UserError
from dikast.core.secrets import without_secrets
from dikast.core.text import one_line
from dikast.engines.http.server_settings import Address, address_of

_MOST, _MOST_BYTES = 10_000, 4_000_000  # servers of one list; bytes of a file of servers


class Location(NamedTuple):
    """One server: its base URL, and its host name if the URL holds an IP address."""

    url: str
    host: str = ""


class ServerList(Protocol):
    """The source of the addresses. `name` represents them in the keys of verdicts."""

    name: str
    changes: bool

    async def read(self) -> list[Location]:
        """The present list of servers; UserError if it cannot be determined."""
        ...


class TypedList:
    """Addresses separated by commas: `http://A/v1,http://B/v1`."""

    changes = False

    def __init__(self, urls: list[str]) -> None:
        self.places = [Location(url) for url in urls]
        self.name = ",".join(sorted(urls))

    async def read(self) -> list[Location]:
        """All of them."""
        return self.places


class FileList:
    """A file with one address per line; blank lines and lines that begin with `#` are ignored."""

    changes = True

    def __init__(self, path: str, model: str) -> None:
        self.path, self.model, self.name = Path(path).expanduser(), model, f"servers:{path}"
        self._stamp: tuple[int, int] | None = None
        self._places = self._read()

    async def read(self) -> list[Location]:
        """The present content of the file."""
        try:
            stat = self.path.stat()
        except OSError as error:
            raise UserError(f"servers:{self.path}: {error.strerror}") from None
        if (stat.st_mtime_ns, stat.st_size) != self._stamp:
            self._places = self._read()
        return self._places

    def _read(self) -> list[Location]:
        try:
            stat = self.path.stat()
            if not self.path.is_file():
                raise UserError(f"servers:{self.path}: not a file: name a file with one address per line")
            with self.path.open("rb") as file:
                raw = file.read(_MOST_BYTES + 1)
            if len(raw) > _MOST_BYTES:
                raise UserError(f"servers:{self.path}: has more than {_MOST_BYTES:,} bytes")
            lines = raw.decode("utf-8-sig").splitlines()
        except OSError as error:
            raise UserError(f"servers:{self.path}: {error.strerror}: name a file with one address per line") from None
        except UnicodeDecodeError:
            raise UserError(f"servers:{self.path}: not a text file: name a file with one address per line") from None
        typed = {
            n: line.strip() for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")
        }
        _refuse_too_many(len(typed), f"servers:{self.path}")
        urls: list[str] = []
        for n, line in typed.items():
            try:
                urls.append(_one(line, self.model))
            except UserError as error:
                raise UserError(f"{self.path}:{n}: {error}") from None
        places = [Location(url) for url in _distinct(urls, str(self.path))]
        self._stamp = (stat.st_mtime_ns, stat.st_size)
        return places


class ResolvedList:
    """The machines that the host of an address resolves to; each is a server."""

    changes = True

    def __init__(self, address: Address) -> None:
        self.name, self._parts = address.url, urlsplit(address.url)

    async def read(self) -> list[Location]:
        """A server for each machine that the name resolves to now."""
        parts, host = self._parts, self._parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise UserError(f"{host}: the name cannot be resolved: {error.strerror or error}") from None
        numbers = dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found)
        spelt = [f"[{number}]" if ":" in number else number for number in numbers]
        return [Location(urlunsplit(parts._replace(netloc=f"{number}:{port}")), parts.netloc) for number in spelt]


def several(text: str) -> tuple[Address, TypedList]:
    """Parse `http://A/v1,http://B/v1#MODEL`: the first address, and the list of all."""
    urls, mark, model = text.partition("#")
    parts = [part.strip() for part in urls.split(",")]
    if "#" in model or "," in model:
        raise UserError(
            f"engine {text!r}: the model is named once, behind the last address, and is the same on every server"
        )
    if "" in parts:
        raise UserError(f"engine {text!r}: an address between commas is empty")
    _refuse_too_many(len(parts), "engine")
    found = _distinct([_one(part, model if mark else "") for part in parts], f"engine {text!r}")
    return address_of(f"{found[0]}#{model}"), TypedList(found)


def from_file(target: str) -> tuple[Address, FileList]:
    """Parse `FILE#MODEL`, and read the file."""
    path, _, model = target.rpartition("#")
    if not path or not model:
        raise UserError(f"engine 'servers:{target}' does not say which file or model: write servers:FILE#MODEL")
    found = FileList(path, model)
    return address_of(f"{found._places[0].url}#{model}"), found


def resolved(address: Address) -> ResolvedList:
    """The machines behind the host of an address. UserError for a host that is already an IP address."""
    host = urlsplit(address.url).hostname or ""
    if host.replace(".", "").isdigit() or ":" in host:
        raise UserError(f"engine {address}: resolve=yes needs the name of a host, and {host} is a single machine")
    return ResolvedList(address)


def _one(text: str, model: str) -> str:
    """The base URL of one server. What does not look like one is not repeated: it may be a key, or another file's."""
    if not text.startswith(("http://", "https://")):
        raise UserError("not an address of a server: write http://HOST:PORT/v1")
    shown = repr(one_line(without_secrets(text.partition("?")[0].partition("#")[0])))
    if "#" in text:
        raise UserError(f"{shown} names a model: write it once, behind the list (servers:FILE#MODEL)")
    if "?" in text:
        raise UserError(f"{shown} has a query: several servers are distinguished by host, port and path alone")
    return address_of(f"{text}#{model}").url


def _refuse_too_many(n: int, where: str) -> None:
    if n > _MOST:
        raise UserError(f"{where}: {n:,} addresses; the maximum is {_MOST:,}")


def _distinct(urls: list[str], where: str) -> list[str]:
    if len(set(urls)) < len(urls):
        raise UserError(f"{where}: the address {Counter(urls).most_common(1)[0][0]} is listed twice")
    if not urls:
        raise UserError(f"{where}: no address: write one a line, such as http://HOST:PORT/v1")
    return urls
