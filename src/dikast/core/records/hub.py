"""Data sets of the Hugging Face Hub, as the Hub writes their addresses: `hf://datasets/ORG/NAME@REVISION/PATH`.

Files are fetched by `huggingface_hub` into its own cache, which also serves them without a network. Only data files are
read; nothing of a data set is executed.
"""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote

from dikast.core.errors import DataError, UserError, require
from dikast.core.records.data_files import DATA, refuse_scripts
from dikast.core.secrets import without_secrets
from dikast.core.text import hint, listing, one_line, parse_located

_ADDRESS = re.compile(
    r"hf://datasets/(?P<repo>[^/@?]+/[^/@?]+)(@(?P<revision>[^/?]+))?(/(?P<path>[^?]*))?(\?(?P<query>.*))?"
)
_SPLITS = ("train", "validation", "valid", "val", "dev", "test")
_FORM = "write hf://datasets/ORG/NAME, hf://datasets/ORG/NAME@REVISION/PATH, or the path of a file"


class Address(NamedTuple):
    """What an address names; `config` and `split` choose among the files of a data set."""

    repo: str
    revision: str | None
    path: str
    config: str = ""
    split: str = ""

    @classmethod
    def of(cls, text: str) -> "Address":
        """Read an address; UserError for one that is none."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise UserError(f"{text}: not the address of a data set on the Hub: {_FORM}")
        revision = unquote(match["revision"]) if match["revision"] else None
        if ".." in unquote(text.partition("?")[0]).replace("\\", "/").split("/"):
            raise UserError(f"{text}: '..' is no part of an address on the Hub: {_FORM}")
        asked = {key: values[0] for key, values in parse_qs(match["query"] or "").items()}
        revision = f"refs/convert/{revision[1:]}" if revision and revision.startswith("~") else revision
        return cls(
            match["repo"],
            revision,
            unquote(match["path"] or "").strip("/"),
            asked.get("config", ""),
            asked.get("split", ""),
        )


def with_choice(source: str, config: str | None, split: str | None) -> str:
    """The address with the configuration and the split that were chosen; UserError elsewhere than on the Hub."""
    chosen = "&".join(
        f"{key}={quote(value, safe='')}" for key, value in (("config", config), ("split", split)) if value
    )
    if not chosen:
        return source
    if not source.startswith("hf://"):
        raise UserError(
            "--config-name and --split choose among the files of a data set on the Hub: give hf://datasets/..."
        )
    return f"{source}{'&' if '?' in source else '?'}{chosen}"


def files_on_hub(text: str) -> tuple[str, ...]:
    """The local copies of the data files that an address names, in order. UserError with the cure."""
    address = Address.of(text)
    hub = require("huggingface_hub", "remote")
    if address.path and address.path.removesuffix(".gz").endswith(DATA) and "*" not in address.path:
        return (_fetched(hub, address, address.path),)
    listed = _asked(
        address, lambda: hub.HfApi().list_repo_files(address.repo, repo_type="dataset", revision=address.revision)
    )
    return tuple(_fetched(hub, address, name) for name in _chosen(hub, address, sorted(listed), text))


def _fetched(hub: Any, address: Address, name: str) -> str:
    def fetch() -> Any:
        return hub.hf_hub_download(address.repo, name, repo_type="dataset", revision=address.revision)

    return str(_asked(address, fetch))


def _asked(address: Address, step: Any) -> Any:
    """The Hub's answer; its errors become Dikast's."""
    import httpx2  # of huggingface_hub, which lets its errors of the network through
    from huggingface_hub import errors

    at = f"hf://datasets/{address.repo}" + (f"@{address.revision}" if address.revision else "")
    try:
        return step()
    except errors.GatedRepoError:
        told = "asks for its terms to be accepted: do so on its page, and log in with `hf auth login`"
    except errors.RepositoryNotFoundError:
        told = "there is no such data set, or it is private: check the name, or log in with `hf auth login`"
    except errors.RevisionNotFoundError:
        told = "the data set has no such revision: leave it out, or name a branch, a tag or a commit"
    except errors.LocalEntryNotFoundError:
        told = "the Hub cannot be reached, and the file is not in the cache: check the network (and HF_HUB_OFFLINE)"
    except errors.EntryNotFoundError:
        told = f"the data set has no file {address.path!r}: leave the path out to see what it holds"
    except errors.OfflineModeIsEnabled:
        told = "the Hub is needed to list its files, and HF_HUB_OFFLINE is set: unset it, or name one file"
    except (errors.HfHubHTTPError, errors.HFValidationError, httpx2.HTTPError, OSError, ValueError) as error:
        reason = one_line(without_secrets((str(error).splitlines() or [type(error).__name__])[0]))
        told = f"cannot be fetched ({reason}): try again, or download the file and give its path"
    raise UserError(f"{at}: {told}")


def _chosen(hub: Any, address: Address, listed: Sequence[str], text: str) -> list[str]:
    """The data files of an address that names no file."""
    name = address.repo.partition("/")[2]
    data = [
        each for each in listed if each.removesuffix(".gz").endswith(DATA) and not each.endswith("dataset_infos.json")
    ]
    if address.path and any(letter in address.path for letter in "*?["):
        return _some(fnmatch.filter(data, address.path), text, data)
    if address.path:
        data = [each for each in data if each.startswith(address.path + "/")]
        return _split(_some(data, text, listed), address, text)
    refuse_scripts(text, [each for each in listed if each == f"{name}.py"])
    card = _configurations(hub, address, listed)
    if card:
        config = address.config or ("default" if "default" in card else next(iter(card)) if len(card) == 1 else "")
        if config not in card:
            told = hint(address.config, card) if address.config else f"choose with --config-name: {listing(list(card))}"
            raise UserError(f"{text}: the data set has several configurations; {told}")
        return _by_card(card[config], address, data, text)
    if address.config:
        folders = sorted({each.partition("/")[0] for each in data if "/" in each})
        data = [each for each in data if each.startswith(f"{address.config}/")]
        if not data:
            raise UserError(f"{text}: no configuration {address.config!r}: {hint(address.config, folders)}")
    return _split(_some(data, text, listed), address, text)


def _configurations(hub: Any, address: Address, listed: Sequence[str]) -> dict[str, Any]:
    """`data_files` of each configuration that the data set's card states."""
    if "README.md" not in listed:
        return {}
    path = _fetched(hub, address, "README.md")
    with open(path, encoding="utf-8", errors="replace") as file:
        head = re.match(r"---\r?\n(.*?)\r?\n---", file.read(2**20), re.DOTALL)
    try:
        stated = parse_located(head[1], f"{address.repo}/README.md").value if head else None
    except DataError:
        return {}
    configs = stated.get("configs") if isinstance(stated, dict) else None
    listed_ones = [
        each
        for each in (configs if isinstance(configs, list) else ())
        if isinstance(each, dict) and each.get("data_files")
    ]
    return {str(each.get("config_name", "default")): each["data_files"] for each in listed_ones}


def _by_card(stated: Any, address: Address, data: Sequence[str], text: str) -> list[str]:
    """The files of the split that is meant, by the patterns of the card."""
    entries = stated if isinstance(stated, list) else [stated]
    splits: dict[str, list[str]] = {}
    for each in entries:
        split, paths = (each.get("split", "train"), each.get("path")) if isinstance(each, dict) else ("train", each)
        for pattern in paths if isinstance(paths, list) else [paths]:
            splits.setdefault(str(split), []).extend(fnmatch.filter(data, str(pattern).replace("**/", "*")))
    return _some(_one_split(splits, address, text), text, data)


def _split(data: Sequence[str], address: Address, text: str) -> list[str]:
    """The files of one split, told by their names; all of them where no name tells one."""
    splits: dict[str, list[str]] = {}
    for each in data:
        found = next((split for split in _SPLITS if re.search(rf"(^|[/._-]){split}([/._-]|$)", each)), "")
        splits.setdefault(found, []).append(each)
    if list(splits) == [""] and not address.split:
        kinds = {each.removesuffix(".gz").rpartition(".")[2] for each in data}
        if len(kinds) > 1:
            raise UserError(f"{text}: holds files of several kinds ({listing(list(data))}): name one of them")
        return list(data)
    return _one_split({split or "without a split": names for split, names in splits.items()}, address, text)


def _one_split(splits: Mapping[str, list[str]], address: Address, text: str) -> list[str]:
    if address.split in splits:
        return splits[address.split]
    if address.split:
        raise UserError(f"{text}: no split {address.split!r}: {hint(address.split, splits)}")
    if len(splits) > 1:
        raise UserError(f"{text}: the data set has several splits; choose with --split: {listing(list(splits))}")
    return next(iter(splits.values()), [])


def _some(found: Sequence[str], text: str, listed: Sequence[str]) -> list[str]:
    if not found:
        refuse_scripts(text, [each for each in listed if each.endswith(".py")])
        raise UserError(f"{text}: no data files there; the data set holds {listing(list(listed)) or 'nothing'}")
    return list(found)
