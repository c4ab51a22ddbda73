"""Where a model's files are: a folder, or a model of the Hugging Face Hub at one revision; and what identifies them."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import UserError, require
from dikast.core.text import near_miss

WEIGHTS = ("*.safetensors", "*.bin")
_WANTED = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_REVISION = re.compile(r"[0-9a-f]{40}")

_hashes: dict[tuple[str, int, int], str] = {}


@dataclass(frozen=True, slots=True)
class Source:
    """The folder with a model's files. From the Hub, `hub_id` and `revision` (a commit hash) say what they are."""

    folder: Path
    hub_id: str = ""
    revision: str = ""

    def identity(self) -> dict[str, Any]:
        """Hub id and commit, or for a folder a hash of its weights' contents (wherever the folder lies)."""
        if self.hub_id and _REVISION.fullmatch(self.revision):
            return {"model": self.hub_id, "revision": self.revision}
        return {"weights": fingerprint({path.name: file_sha256(path) for path in self.weights()})}

    def weights(self) -> list[Path]:
        """The weight files, adapters included, by name."""
        for pattern in WEIGHTS:
            if found := sorted(self.folder.glob(pattern)):
                return [*found, *sorted(self.folder.glob("adapter_config.json"))]
        raise UserError(f"{self.folder}: no weights (*.safetensors) in this folder")


def locate(source: str, revision: str | None = None) -> Source:
    """Find a model by `hf:ORG/NAME[@REV]`, `ORG/NAME[@REV]` or a folder; UserError says what is wrong with it.

    A folder that exists wins. Anything that looks like a path (it starts with `.`, `/` or `~`, has more than one slash,
    or, without `hf:`, none, or lies in a folder that exists) is never looked up on the Hub.
    """
    name = source.removeprefix("hf:")
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UserError(f"{source}: this folder holds no model (no config.json in it)")
        return Source(folder)
    name, _, written = name.partition("@")
    explicit = source.startswith("hf:")
    on_hub = re.fullmatch(r"[\w.-]+", name) if explicit and "/" not in name else _HUB_ID.fullmatch(name)
    if name.startswith((".", "/", "~")) or not on_hub or (not explicit and Path(name).parent.is_dir()):
        raise UserError(f"{source}: {_no_such_folder(folder)}")
    if written and revision and written != revision:
        raise UserError(f"{source}: names the revision {written!r}, but the option says {revision!r}: give one")
    return _from_hub(name, written or revision)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, read in blocks; remembered in this process while size and time of change stay."""
    stat = path.stat()
    key = (str(path.resolve()), stat.st_size, stat.st_mtime_ns)
    if key not in _hashes:
        with path.open("rb") as file:
            _hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return _hashes[key]


def _no_such_folder(folder: Path) -> str:
    if folder.is_file():
        return "this is a file; give the folder that holds the model"
    known = sorted(path.name for path in folder.parent.iterdir() if path.is_dir()) if folder.parent.is_dir() else []
    near = near_miss(folder.name, known)
    hint = f"; did you mean {str(folder.parent / near)!r}?" if near else ""
    return f"no such folder{hint} (a model of the Hugging Face Hub is written hf:ORG/NAME)"


def _from_hub(hub_id: str, revision: str | None) -> Source:
    hub = require("huggingface_hub", "hf")
    try:
        folder = Path(hub.snapshot_download(hub_id, revision=revision, allow_patterns=list(_WANTED)))
    except hub.errors.GatedRepoError:
        cure = f"accept its terms on https://huggingface.co/{hub_id} and log in with `hf auth login`"
        raise UserError(f"hf:{hub_id}: this model is gated: {cure}") from None
    except hub.errors.RevisionNotFoundError:
        raise UserError(f"hf:{hub_id}: has no revision {revision!r}") from None
    except hub.errors.RepositoryNotFoundError:
        raise UserError(f"hf:{hub_id}: no such model on the Hugging Face Hub (or it is private)") from None
    except (hub.errors.LocalEntryNotFoundError, hub.errors.OfflineModeIsEnabled, OSError) as error:
        offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")
        why = "HF_HUB_OFFLINE is set and it is not in the cache" if offline else f"cannot reach the Hub ({error})"
        raise UserError(f"hf:{hub_id}: {why}; a folder with the model's files works without the Hub") from None
    if not (folder / "config.json").is_file():
        raise UserError(f"hf:{hub_id}: this repository holds no transformers model (no config.json in it)")
    return Source(folder, hub_id, folder.name)
