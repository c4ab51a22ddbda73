"""Model folders: reading with the file named in every error, and writing all files or none."""

import errno
import math
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.output_folder import move, one_writer, refill_folder
from dikast.core.runs.run_files import (
    CHECKSUMS,
    changed_files,
    check_model,
    checksum,
    record_all,
    recorded,
    refuse_special,
)
from dikast.engines.local.trusted import refuse_elsewhere
from dikast.training.models.tensor_files import SIZES

if TYPE_CHECKING:
    import torch

_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"


def read_json(path: Path) -> dict[str, Any]:
    """The mapping in a JSON file; DataError if there is none."""
    if not path.is_file():
        raise DataError("is missing: save the model with its tokenizer and processor", path=str(path))
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read as JSON ({_why(error)}): save the model again", path=str(path)) from None
    if not isinstance(value, dict):
        raise DataError("is not a JSON object: save the model again", path=str(path))
    return value


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of the model in a folder; UserError if there is none."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    refuse_special(folder)
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder}: this folder holds no model (no config.json in it)")
    return read_json(folder / "config.json")


class Weights:
    """The tensors of a checkpoint folder, read one at a time from the files that transformers would read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = read_config(folder)
        check_model(folder)
        if (folder / "adapter_config.json").is_file():
            raise UserError(f"{folder}: this is an adapter, not a model: merge it into its model first")
        self.files: dict[str, Path] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.kinds: dict[str, str] = {}
        self._open: dict[Path, Any] = {}
        placed = self._placed()
        for path in sorted(set(placed.values()) or {folder / _WHOLE}):
            self._look(path)
        if missing := placed.keys() - self.files.keys():
            raise DataError(f"{min(missing)} is in none of its files: save the model again", path=str(folder / _INDEX))
        if not self.files:
            raise UserError(f"{folder / _WHOLE}: holds no tensor: save the model again")
        if strange := set(self.kinds.values()) - SIZES.keys():
            raise UserError(f"{folder}: holds tensors of the type {min(strange)}: save the model in bf16 or fp32")

    def _placed(self) -> dict[str, Path]:
        """The file of each tensor by the index; empty if a single file holds all, which overrides an index."""
        index = self.folder / _INDEX
        if (self.folder / _WHOLE).is_file():
            return {}
        if not index.is_file():
            raise UserError(f"{self.folder}: no weights (neither {_WHOLE} nor {_INDEX}): save the model in that format")
        refuse_elsewhere(self.folder)
        placed = read_json(index).get("weight_map")
        if not isinstance(placed, dict) or not placed or not all(isinstance(each, str) for each in placed.values()):
            raise DataError("names no file for each tensor: save the model again", path=str(index), field="weight_map")
        return {name: self.folder / file for name, file in placed.items()}

    def _look(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "pt") as file:
                for name in file.keys():  # noqa: SIM118 - not a mapping
                    self.files[name] = path
                    stored = file.get_slice(name)
                    self.shapes[name], self.kinds[name] = tuple(stored.get_shape()), stored.get_dtype()
        except (OSError, SafetensorError) as error:
            cure = "copy the file again, or save the model again"
            raise DataError(f"no weights can be read from it ({_why(error)}): {cure}", path=str(path)) from None

    def size(self, name: str) -> int:
        """Bytes of a tensor."""
        return math.prod(self.shapes[name]) * SIZES[self.kinds[name]]

    def __enter__(self) -> "Weights":
        self._stack = ExitStack()
        from safetensors import safe_open

        for path in set(self.files.values()):
            self._open[path] = self._stack.enter_context(safe_open(path, "pt"))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, name: str) -> "torch.Tensor":
        """One tensor, as stored."""
        tensor: torch.Tensor = self._open[self.files[name]].get_tensor(name)
        return tensor


@contextmanager
def laid_out(out: Path, *, replace: bool = False) -> Iterator[Path]:
    """A temporary folder beside `out`, whose files are moved to `out` at the end; none is moved after an error.

    `replace`: `out` may hold files; those that are not written again are removed, except README.md. Otherwise UserError
    if it holds any, or if no folder can be made there. RunError if files cannot be written or another process writes.
    A call that is killed while it moves files into an existing folder leaves a model that cannot be opened, since its
    checksums name missing files; the next call treats such a folder as empty.
    """
    target = out.resolve()
    if target.exists() and not target.is_dir():
        raise UserError(f"{out}: is a file: name a folder")
    there, around = target.is_dir(), target.parent / f".{target.name}.part"
    with ExitStack() as stack:
        stack.enter_context(one_writer(target, "writing a model"))
        if not (replace or _half_moved(around, target)) and any(target.iterdir()):
            raise UserError(f"{out}: exists already: name a new folder, or empty it")
        shutil.rmtree(around, ignore_errors=True)  # left by a call that was killed
        stack.callback(shutil.rmtree, around, ignore_errors=True)
        try:
            around.mkdir()
            yield around
            record_all(around)
            if there:
                refill_folder(around, target, first=CHECKSUMS, keep="README.md")  # it lists the files that are due
            else:
                move(around, target)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # copying names its source even so
            path = Path(error.filename or target).resolve()
            if not full and not any(path.is_relative_to(own) for own in (around, target)):
                raise DataError(f"cannot be read ({_why(error)}): copy the file again", path=error.filename) from error
            raise RunError(f"{out}: cannot be written ({_why(error)}): free space, or name another folder") from error


def _half_moved(around: Path, target: Path) -> bool:
    """Whether a call was killed while it moved files from `around` to `target`, and nothing else is in either."""
    if not (target / CHECKSUMS).is_file() or not around.is_dir():
        return False
    try:
        sums = recorded(target)
        left = {path.name: checksum(path) for path in around.iterdir()}
        there = {path.name for path in target.iterdir()} - {CHECKSUMS}
        due = set(changed_files(target)) & left.keys()
    except (OSError, DataError):
        return False
    return bool(due) and there <= sums.keys() and all(sum in sums.get(name, ()) for name, sum in left.items())


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
