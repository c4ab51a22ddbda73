"""Published rows and templates, from a folder of the user's, the Hub's cache, GitHub, or the Hub at one commit."""

import ast
import importlib.metadata
import importlib.util
import os
import string
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from dikast.core.errors import DataError, UserError, require
from dikast.core.records import read_records
from dikast.prompts.learn.levels import LEVEL
from dikast.prompts.learn.skeleton import Skeleton
from dikast.prompts.released.catalog import Origin, Variant

DATA = "DIKAST_CATALOG_DATA"
GITHUB = "https://raw.githubusercontent.com"
MOST_ROWS = 400
_FIRST_BYTES = 8 * 2**20  # of a large JSON file, enough for the rows that are learnt from
_SECONDS = 60
_SLOTS = {
    "instruction": "instruction", "response": "response", "response_A": "first", "response_B": "second",
    "reference_answer": "reference", "criteria": "criterion", "relevant_context": "context",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fetched:
    """Rows with their places, and their source: a commit, a version, or a folder."""

    rows: list[tuple[int, dict[str, Any]]]
    at: str


def fetch_rows(origin: Origin, variant: Variant) -> Fetched:
    """The first rows of a published file; UserError says why they cannot be had."""
    local = _local(origin, variant.file)
    if local is not None:
        return Fetched(_first(local), f"folder {data_folder()}")
    if origin.way == "github":
        url = f"{GITHUB}/{origin.repo}/{origin.revision}/{variant.file}"
        return Fetched(_parsed(_get(url), variant.file), origin.revision)
    return _from_hub(origin, variant)


def template_skeleton(origin: Origin, variant: Variant) -> tuple[Skeleton, str, str]:
    """The skeleton of a published Python template, its system prompt, and the version or commit it is from.

    The module is read, not run: a template is a text constant at its top level. UserError if it is not there.
    """
    if origin.way == "package":
        source, at = _installed(origin)
    else:
        local = _local(origin, origin.module)
        url = f"{GITHUB}/{origin.repo}/{origin.revision}/{origin.module}"
        source = (local.read_bytes() if local else _get(url)).decode()
        at = f"folder {data_folder()}" if local else origin.revision
    constants = _constants(source)
    wanted = [variant.file, *([origin.system] if origin.system else ())]
    for name in wanted:
        if name not in constants:
            raise UserError(f"{origin.repo} at {at} has no template {name}")
    template = constants[variant.file]
    rubric = constants.get("SCORE_RUBRIC_TEMPLATE", "")
    return _skeleton(template, rubric, pair="{response_A}" in template), constants.get(origin.system, ""), at


def offline() -> bool:
    """Whether the user asked for no network, as the Hub's own tools understand it."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")


def _installed(origin: Origin) -> tuple[str, str]:
    """The source of a module of an installed package, without importing the package, and the package's version."""
    try:
        version = importlib.metadata.version(origin.repo)
    except importlib.metadata.PackageNotFoundError:
        raise UserError("it is not installed") from None
    found = importlib.util.find_spec(origin.repo.replace("-", "_"))
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder, origin.module)
        if path.is_file():
            return path.read_text("utf-8"), version
    raise UserError(f"version {version} has no {origin.module}")


def _constants(source: str) -> dict[str, str]:
    """The text constants of a module, `.strip()` applied where it is called."""
    found: dict[str, str] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        value, strip = node.value, False
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "strip":
            value, strip = value.func.value, True
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found[node.targets[0].id] = value.value.strip() if strip else value.value
    return found


def _skeleton(template: str, rubric: str, *, pair: bool) -> Skeleton:
    """From a template of `str.format`; the rubric's own template takes its place, for a pair only its criterion."""
    if pair:
        rubric = rubric.split("\n")[0]
    literals, slots = [""], []
    for text, name, *_ in string.Formatter().parse(template.replace("{rubric}", rubric)):
        literals[-1] += text
        if name is None:
            continue
        level = name.removeprefix("score").removesuffix("_description")
        slot = LEVEL + level if level != name and level.isdigit() else _SLOTS.get(name)
        if slot is None:
            raise UserError(f"the template has a slot {name!r} that is not known here")
        slots.append(slot)
        literals.append("")
    return Skeleton(tuple(literals), tuple(slots))


def data_folder() -> Path:
    """The folder for published rows that a user provides: `ORG/NAME/FILE` under DIKAST_CATALOG_DATA, else under the
    cache.
    """
    given = os.environ.get(DATA)
    return Path(given) if given else user_cache_path("dikast", appauthor=False) / "data"


def _local(origin: Origin, file: str) -> Path | None:
    path = data_folder() / origin.repo / file
    return next((each for each in (path, Path(f"{path}.gz")) if each.is_file()), None)


def _from_hub(origin: Origin, variant: Variant) -> Fetched:
    hub = require("huggingface_hub", "hf")
    revision = origin.revision or None
    cached = hub.try_to_load_from_cache(origin.repo, variant.file, repo_type="dataset", revision=revision)
    if isinstance(cached, str):
        return Fetched(_first(Path(cached)), origin.revision or Path(cached).parts[-2])
    if offline():
        raise UserError(f"HF_HUB_OFFLINE is set, and {origin.repo} is not in the Hub's cache")
    try:
        commit = origin.revision or hub.HfApi().dataset_info(origin.repo).sha
        if variant.file.endswith(".parquet"):
            hub.get_hf_file_metadata(hub.hf_hub_url(origin.repo, variant.file, repo_type="dataset", revision=commit))
            path = hub.hf_hub_download(origin.repo, variant.file, repo_type="dataset", revision=commit)
            return Fetched(_first(Path(path)), commit)
        return Fetched(_parsed(_stream(hub, origin, variant.file, commit), variant.file), commit)
    except UserError:
        raise
    except Exception as error:  # the Hub's client raises its own kinds and those of its HTTP library
        raise UserError(_short(error)) from None


def _stream(hub: Any, origin: Origin, file: str, commit: str) -> bytes:
    """The first bytes of a file of the Hub. Its own client keeps the user's key from hosts it redirects to."""
    url = hub.hf_hub_url(origin.repo, file, repo_type="dataset", revision=commit)
    headers = {**hub.utils.build_hf_headers(), "Range": f"bytes=0-{_FIRST_BYTES - 1}"}
    found = bytearray()
    with hub.utils.get_session().stream("GET", url, headers=headers, follow_redirects=True, timeout=_SECONDS) as reply:
        reply.raise_for_status()
        for chunk in reply.iter_bytes():
            found += chunk
            if len(found) >= _FIRST_BYTES:
                break
    return bytes(found[:_FIRST_BYTES])


def _get(url: str) -> bytes:
    if offline():
        raise UserError(f"HF_HUB_OFFLINE is set, and {url} is on the network")
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as reply:
            body: bytes = reply.read(_FIRST_BYTES)
            return body
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise UserError(f"{url}: {_short(error)}") from None


def _parsed(body: bytes, name: str) -> list[tuple[int, dict[str, Any]]]:
    """The whole records of a file, or of its downloaded part."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        path.write_bytes(body)
        return _first(path, cut=len(body) == _FIRST_BYTES)


def _first(path: Path, *, cut: bool = False) -> list[tuple[int, dict[str, Any]]]:
    found: list[tuple[int, dict[str, Any]]] = []
    try:
        found.extend(islice(_records(path), MOST_ROWS))
    except DataError:
        if not cut:
            raise
        found = list(islice(_whole(path), MOST_ROWS))
    return found


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for place, record in enumerate(read_records(path), 1):
        yield place, record.value


def _whole(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records before the place where a file was cut off."""
    try:
        yield from _records(path)
    except DataError:
        return


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
