"""Where a model's files are: a folder, or a model of the Hugging Face Hub at one revision; and what identifies them."""

import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import UserError, require
from dikast.core.runs.run_files import check_model, refuse_special
from dikast.core.text import near_miss
from dikast.engines.local.trusted import refuse_foreign_code

WEIGHTS = ("*.safetensors", "*.bin")
_WANTED = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors")
_PICKLED = ("pytorch_model*.bin", "adapter_model.bin")
_SAFE = ("model.safetensors", "model.safetensors.index.json", "adapter_model.safetensors")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_REVISION = re.compile(r"[0-9a-f]{40}")

_hashes: dict[tuple[str, int, int], str] = {}


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The folder with a model's files. From the Hub, `hub_id` and `revision` (a commit hash) say what they are.

    `adapter` is the source of a PEFT adapter that goes over this model.
    """

    folder: Path
    hub_id: str = ""
    revision: str = ""
    adapter: "ModelSource | None" = None

    @property
    def tokenizer_folder(self) -> Path:
        """Where the tokenizer is: with the adapter, where training saved it there."""
        own = self.adapter is not None and (self.adapter.folder / "tokenizer_config.json").is_file()
        return self.adapter.folder if own and self.adapter is not None else self.folder

    def identity(self) -> dict[str, Any]:
        """Hub id and commit, or for a folder a hash of its weights' contents (wherever the folder lies).

        Those of an adapter are under `adapter`.
        """
        more = {} if self.adapter is None else {"adapter": self.adapter.identity()}
        if self.hub_id and _REVISION.fullmatch(self.revision):
            return {"model": self.hub_id, "revision": self.revision, **more}
        return {"weights": fingerprint({path.name: file_sha256(path) for path in self.weights()}), **more}

    def check(self) -> None:
        """DataError where a file of a model that Dikast wrote has changed since; the Hub has hashes of its own."""
        if not self.hub_id:
            check_model(self.folder)
        if self.adapter is not None:
            self.adapter.check()

    def weights(self) -> list[Path]:
        """The weight files, adapters included, by name."""
        safe, pickled = (sorted(self.folder.glob(pattern)) for pattern in WEIGHTS)
        if not any((self.folder / name).is_file() for name in _SAFE):  # others beside `.bin` files are not the model
            safe += pickled
        if not (found := safe or pickled):
            raise UserError(f"{self.folder}: no weights (*.safetensors) in this folder")
        return [*found, *sorted(self.folder.glob("adapter_config.json"))]


def on_hub(source: str) -> bool:
    """Whether a name that is no folder would be looked up on the Hub; see `locate`."""
    name, explicit = source.removeprefix("hf:").partition("@")[0], source.startswith("hf:")
    fits = re.fullmatch(r"[\w.-]+", name) if explicit and "/" not in name else _HUB_ID.fullmatch(name)
    return fits is not None and not name.startswith((".", "/", "~")) and (explicit or not Path(name).parent.is_dir())


def locate(source: str, revision: str | None = None, *, base: str | None = None, under: str = "") -> ModelSource:
    """Find a model by `hf:ORG/NAME[@REV]`, `ORG/NAME[@REV]` or a folder; UserError says what is wrong with it.

    A folder that exists wins. Anything that looks like a path (it starts with `.`, `/` or `~`, has more than one slash,
    or, without `hf:`, none, or lies in a folder that exists) is never looked up on the Hub. A PEFT adapter leads to the
    model it goes over: the one that its configuration names, or `base`.

    under: the configuration of the adapter whose model this is, which is no adapter itself.
    """
    name = source.removeprefix("hf:")
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _checked(ModelSource(folder), source, base, under, "this folder holds no model")
    name, _, written = name.partition("@")
    if not on_hub(source):
        raise UserError(f"{source}: {_no_such_folder(folder)}")
    if written and revision and written != revision:
        raise UserError(f"{source}: names the revision {written!r}, but the option says {revision!r}: give one")
    found = _from_hub(name, written or revision)
    return _checked(found, source, base, under, "this repository holds no transformers model")


def _checked(found: ModelSource, name: str, base: str | None, under: str, nothing: str) -> ModelSource:
    """The source itself if it is a model; the base that it goes over, with it, if it is an adapter."""
    written = found.folder / "adapter_config.json"
    refuse_special(found.folder)
    refuse_foreign_code(found.folder)
    if (found.folder / "config.json").is_file() and not (base and written.is_file()):
        if base:
            raise UserError(f"{name}: this is a whole model, not an adapter: leave base={base} out")
        return found
    if not written.is_file():
        raise UserError(f"{name}: {nothing} (no config.json in it)")
    if under:
        raise UserError(f"{under}: the base model of this adapter is another adapter: merge that one first")
    try:
        config = json.loads(written.read_text("utf-8"))
        model, revision = config["base_model_name_or_path"], config.get("revision")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{written}: no adapter of PEFT can be read from it ({error!r}): save it again") from None
    try:
        if not base and not model:
            raise UserError("'base_model_name_or_path' is empty")
        below = locate(base or str(model), None if base else revision, under=str(written))
    except UserError as error:
        cure = "fix 'base_model_name_or_path' there, or open the adapter with base=FOLDER or base=ORG/NAME"
        raise UserError(f"{written}: the base model of the adapter is not found: {error}; {cure}") from None
    return replace(below, adapter=found)


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


def _has_pickled(hub: Any, hub_id: str, revision: str | None) -> bool:
    """Whether a repository has pickled weights, as many of 2023 have alone; false if that cannot be looked up."""
    try:
        files = hub.HfApi().list_repo_files(hub_id, revision=revision)
    except (hub.errors.HfHubHTTPError, hub.errors.OfflineModeIsEnabled, OSError):
        return False
    return any(fnmatch(name, pattern) for name in files for pattern in _PICKLED)


def _from_hub(hub_id: str, revision: str | None) -> ModelSource:
    hub = require("huggingface_hub", "hf")
    try:
        folder = Path(hub.snapshot_download(hub_id, revision=revision, allow_patterns=list(_WANTED)))
        if not any(folder.glob("*.safetensors")) and _has_pickled(hub, hub_id, revision):
            folder = Path(hub.snapshot_download(hub_id, revision=revision, allow_patterns=[*_WANTED, *_PICKLED]))
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
    return ModelSource(folder, hub_id, folder.name)
