"""Where records are: a file, a folder, or an address, as the local files that hold them.

- a folder: shards of one kind (also of a world), or images with captions (`records.image_folder`);
- `hf://datasets/ORG/NAME[@REVISION][/PATH]`, as the Hugging Face Hub writes it (`records.hub`);
- an http(s) address, and any other that fsspec reads (`s3://`, `gs://`, ...), by a copy in the cache.

Nothing that a source holds is ever executed.
"""

import re
from functools import lru_cache
from pathlib import Path

from dikast.core.errors import UserError
from dikast.core.records.data_files import DATA, TABLES, pictures_of, refuse_scripts, told_names

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://")


def is_address(path: str) -> bool:
    """Whether a source is an address, not a path on this machine."""
    return _SCHEME.match(path) is not None


@lru_cache(maxsize=64)
def files_of(path: str) -> tuple[str, ...]:
    """The local files that hold a source, in order; a folder of images stands for itself."""
    if is_address(path):
        if path.startswith("hf://"):
            from dikast.core.records.hub import files_on_hub

            return files_on_hub(path)
        from dikast.core.records.remote import local_copy

        return (local_copy(path),)
    return _in_folder(Path(path)) if path != "-" and Path(path).is_dir() else (path,)


def forget() -> None:
    """Look again at folders and addresses that were looked at before."""
    files_of.cache_clear()


def _in_folder(folder: Path) -> tuple[str, ...]:
    if (folder / "verdicts.jsonl").exists():
        raise UserError(
            f"{folder}: a run folder, which holds verdicts: audit or report it, or give the items it judged"
        )
    names = sorted(each.name for each in folder.iterdir() if each.is_file() and not each.name.startswith("."))
    if any(name in names for name in TABLES) and pictures_of(folder):
        return (str(folder),)
    shards = [name for name in names if re.fullmatch(r"items-\d+\.jsonl(\.gz)?", name)]
    kinds = {end: [name for name in names if name.removesuffix(".gz").endswith(end)] for end in DATA}
    if (folder / "world.json").exists() and shards:
        return tuple(str(folder / name) for name in shards)
    found = {end: held for end, held in kinds.items() if held and end != ".json"}
    if len(found) == 1:
        return tuple(str(folder / name) for name in next(iter(found.values())))
    if found:
        listed = [name for held in found.values() for name in held]
        raise UserError(f"{folder}: holds files of several kinds ({told_names(listed)}): name one of them")
    if pictures_of(folder):
        return (str(folder),)
    if kinds[".json"]:
        return (
            tuple(str(folder / name) for name in kinds[".json"][:1])
            if len(kinds[".json"]) == 1
            else _unclear(folder, names)
        )
    return _unclear(folder, names)


def _unclear(folder: Path, names: list[str]) -> tuple[str, ...]:
    refuse_scripts(str(folder), names)
    inside = sorted(f"{each.name}/" for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    held = told_names([*inside, *names]) or "nothing"
    raise UserError(f"{folder}: no folder of items: it holds {held}; name a file, or a folder of images with captions")
