"""Sources of records: a file, a folder, or an address, resolved to the local files that hold them.

- a folder: shards of one kind (also of a world), or images with captions (`records.image_folder`);
- `hf://datasets/ORG/NAME[@REVISION][/PATH]`, as the Hugging Face Hub writes it (`records.hub`);
- an http(s) address, and any other that fsspec reads (`s3://`, `gs://`, ...), by a copy in the cache;
- a `file://` address, which is the path that it names.

Nothing that a source holds is ever executed.
"""

import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dikast.core.errors import UserError
from dikast.core.media.fetch import shown_url
from dikast.core.records.data_files import DATA, TABLES, pictures_of, refuse_scripts
from dikast.core.secrets import looks_secret, secret_parameter, without_secrets
from dikast.core.text import in_shell, listing, one_line

_VARIABLES = {
    "hf": "HF_TOKEN=...", "s3": "AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS=FILE", "gcs": "GOOGLE_APPLICATION_CREDENTIALS=FILE",
}  # fmt: skip
_CONTAINERS = ("abfs", "abfss", "az", "ssh", "sftp", "hdfs", "webhdfs")  # abfs://CONTAINER@ACCOUNT...
_PAGE = re.compile(  # of a data set; `resolve` in place of `blob` is the address of the file itself
    r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/datasets/([\w.-]+/[\w.-]+)"
    r"(?:/(?:tree|blob)/([^/?#]+)(?:/([^?#]+?))?/?|/viewer(?:/([^/?#]+))?(?:/([^/?#]+))?/?|/)?(?:[?#].*)?$"
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://")


def is_address(path: str) -> bool:
    """Whether a source is an address, not a path on this machine."""
    return _SCHEME.match(path) is not None


def is_data(path: str | Path) -> bool:
    """Whether a path that a file names is a file or a folder on this machine; a pipe or a device is not read."""
    try:
        return Path(path).is_file() or Path(path).is_dir()
    except (OSError, ValueError):  # such as a name that is too long, or has a NUL
        return False


@lru_cache(maxsize=64)
def files_of(path: str) -> tuple[str, ...]:
    """The local files that hold a source, in order; a folder of images stands for itself."""
    path = local_path(path)
    if (page := hub_page(path)) and not is_data(path):
        raise UserError(f"{one_line(path.partition('?')[0])}: a page of the Hugging Face Hub: write {page}")
    if is_address(path):
        refuse_secrets(path)
        if path.startswith("hf://"):
            from dikast.core.records.hub import files_on_hub

            return files_on_hub(path)
        from dikast.core.records.remote import local_copy

        return (local_copy(path),)
    return _in_folder(Path(path)) if path != "-" and Path(path).is_dir() else (path,)


def local_path(source: str) -> str:
    """A source as a path where it is a `file://` address, which is read where it lies; others as they are."""
    if source[:7].lower() != "file://":
        return source
    host, slash, path = source[7:].partition("/")
    if host not in ("", "localhost") or not slash:
        raise UserError(f"{one_line(source)}: no file of this machine; write file:///PATH, or the path alone")
    return "/" + unquote(path)


def hub_page(address: str) -> str:
    """The `hf://` address of the data set, or of its file, whose page on the Hub has this address; "" for others."""
    if (match := _PAGE.match(address)) is None:
        return ""
    repo, revision, path, config, split = match.groups()
    found = f"hf://datasets/{repo}" + (f"@{revision}" if revision else "") + (f"/{path}" if path else "")
    chosen = [f"config={config}"] * bool(config) + [f"split={split}"] * bool(split)
    return in_shell(f"{found}?{'&'.join(chosen)}" if chosen else found)


def refuse_secrets(address: str) -> None:
    """UserError for an address that holds a login: it would be written down with the run, and the shell keeps it."""
    scheme = address.partition("://")[0].lower()
    try:
        parts = urlsplit(address)
        login = parts.password is not None or (parts.username is not None and scheme not in _CONTAINERS)
    except ValueError:
        parts, login = None, "@" in address
    where = "a name or password" if login else ""
    if not where and parts is not None and (name := secret_parameter(parts.query)):
        where = repr(one_line(name, 40))
    if not where and looks_secret(address):
        where = "something that has the form of a key"
    if where:
        variable = _VARIABLES.get(scheme)
        cure = f"export {variable} instead" if variable else "download the file (such as with curl) and give its path"
        raise UserError(
            f"{one_line(without_secrets(shown_url(address)))}: {where} in the address is a secret or looks like one;"
            f" addresses are written down with every run and saved by shells: {cure}"
        )


def forget() -> None:
    """Look again at folders and addresses that were looked at before."""
    files_of.cache_clear()


def _in_folder(folder: Path) -> tuple[str, ...]:
    if (folder / "verdicts.jsonl").exists():
        raise UserError(
            f"{folder}: a run folder, which holds verdicts: audit or report it, or give the items it judged"
        )
    names = sorted(each.name for each in folder.iterdir() if each.is_file() and not each.name.startswith("."))
    refuse_scripts(str(folder), [name for name in names if name == f"{folder.resolve().name}.py"])  # as on the Hub
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
        raise UserError(f"{folder}: holds files of several kinds ({listing(listed)}): name one of them")
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
    held = listing([*inside, *names]) or "nothing"
    raise UserError(f"{folder}: no folder of items: it holds {held}; name a file, or a folder of images with captions")
