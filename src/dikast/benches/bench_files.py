"""The files of a bench: downloaded into the user's cache or found in a folder, verified by their SHA-256."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dikast.benches.definition import Bench
from dikast.core.errors import UserError
from dikast.core.records.files import blaming, open_bytes
from dikast.core.records.sources import files_of

_CHUNK = 1 << 20
_COMMIT = re.compile(r"[0-9a-f]{40}")
_POINTER = b"version https://git-lfs.github.com"


@dataclass(frozen=True, slots=True)
class BenchFile:
    """One file of a bench: its published path, its local path, its SHA-256, and whether that is the published one."""

    path: str
    local: Path
    sha256: str
    published: bool | None  # None: no hash is known


def fetch(bench: Bench, data: Path | None = None, *, unverified: bool = False) -> list[BenchFile]:
    """The files of a bench, from its source or from the folder `data`, where they have their published paths or names.

    A path with `*` is every file that matches.

    UserError for a missing file, and for one whose hash differs (with `unverified` it is used and reported).
    """
    return [
        _file(bench, _name(path, local), digest, local, data, unverified=unverified)
        for path, digest in bench.source.files.items()
        for local in _places(bench, path, data)
    ]


def _name(path: str, local: Path) -> str:
    """What one of the files of a path is called: its name, or with the folders of a path that has a star in them."""
    if "*" not in path:
        return path
    parts = path.split("/")
    return "/".join(local.parts[-len(parts) :]) if "*" in "/".join(parts[:-1]) else local.name


def resolved(files: Sequence[BenchFile]) -> str:
    """The commit that files of the Hub were fetched at, by the names of its cache; "" for others."""
    parts = files[0].local.parts if files else ()
    place = next((i for i, part in enumerate(parts[:-1]) if part == "snapshots"), -1)
    found = parts[place + 1] if place > 0 and parts[place - 1].startswith("datasets--") else ""
    return found if _COMMIT.fullmatch(found) else ""


def fetch_file(bench: Bench, path: str, digest: str, data: Path | None, *, unverified: bool) -> BenchFile:
    """One other file of a bench's source, such as its rubrics; UserError as `fetch`."""
    [local] = _places(bench, path, data)
    return _file(bench, path, digest, local, data, unverified=unverified)


def _places(bench: Bench, path: str, data: Path | None) -> list[Path]:
    if data is None:
        try:
            return [Path(each) for each in files_of(bench.source.address(path))]
        except UserError as error:
            raise UserError(f"{bench.name}: {error}; a folder with its files may be given as --data") from error
    if "*" not in path:
        return [_in_folder(bench, path, data)]
    folders = (data / bench.name, data)
    found = next((files for each in folders if (files := sorted(each.glob(path)))), [])
    return found or [_in_folder(bench, path, data)]


def _file(bench: Bench, path: str, digest: str, local: Path, data: Path | None, *, unverified: bool) -> BenchFile:
    with local.open("rb") as file:
        if file.read(len(_POINTER)) == _POINTER:
            raise UserError(f"{local}: is a pointer of Git LFS and holds no rows: get the file itself (`git lfs pull`)")
    found = sha256_of(local)
    if digest and found != digest and not unverified:
        told = "it has moved since, or was changed" if data is None else "it is another revision, or was changed"
        if data is not None and data == bench.source.beside:
            told = "it was changed since (if that was meant, write its hash under 'files')"
        raise UserError(
            f"{bench.name}: {path}: the file's SHA-256 is {found[:16]}..., the bench's {digest[:16]}...: {told}. "
            "Refused, since figures would not be comparable (--unverified-rows accepts it, and every figure says so)"
        )
    return BenchFile(path, local, found, found == digest if digest else None)


def _in_folder(bench: Bench, path: str, data: Path) -> Path:
    of_bench = data == bench.source.beside
    if not data.is_dir():
        told = f"{bench.name}: 'folder' of its source: {data}" if of_bench else f"--data {data}"
        raise UserError(f"{told}: is not a folder")
    if found := found_in(data, path, bench.name):
        return found
    cure = f"get it from {bench.source.name}, or leave out --data"
    cure = "put it there, or correct its name under 'files'" if of_bench else cure
    raise UserError(f"{bench.name}: {data}: has no {path}: {cure}")


def found_in(data: Path, path: str, name: str = "") -> Path | None:
    """A file in a folder by its published path or name, below the bench's `name` too, packed or not."""
    tried = [*([data / name / path] if name else []), data / path, data / Path(path).name]
    return next((each for each in (*tried, *(Path(f"{each}.gz") for each in tried)) if each.is_file()), None)


def sha256_of(path: Path) -> str:
    """The SHA-256 of the published bytes; a compressed copy is decompressed first. DataError for a damaged one."""
    digest = hashlib.sha256()
    with open_bytes(str(path)) as file, blaming(str(path)):
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
