"""Sharded checkpoints: each process writes and reads its own shard, through torch's distributed checkpoint.

The files are safetensors, so nothing is unpickled; a reader may be one process or any number of them.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

if TYPE_CHECKING:
    from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

_FILES = 16  # files of a process: a file is assembled in memory before it is written,
_LEAST = 2**26  # and holds at least this many bytes of the whole tensors


def save_shares(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write the share of each process into `folder`; a collective call."""
    room = max(_LEAST, sum(each.numel() * each.element_size() for each in tensors.values()) // _FILES)
    file, filled, placed = 1, 0, {}
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        if filled and filled + size > room:
            file, filled = file + 1, 0
        placed[name] = file
        filled += size
    writer = HuggingFaceStorageWriter(str(folder), fqn_to_index_mapping=placed, save_distributed=True)
    save(dict(tensors), storage_writer=writer)


def is_sharded(folder: Path) -> bool:
    """Whether a checkpoint's weights are in the shares of several processes."""
    return next(folder.glob("shard-*.safetensors"), None) is not None


class ShareReader(HuggingFaceStorageReader):
    """Reads tensors from the shares in a folder, or their slices; the files' headers are read once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self._metadata: Metadata | None = None

    def read_metadata(self) -> "Metadata":
        """The shapes and types of all tensors and the files that hold their parts."""
        if self._metadata is None:
            self._metadata = super().read_metadata()
        return self._metadata

    @property
    def tensors(self) -> "dict[str, TensorStorageMetadata]":
        """Shape and type of each whole tensor."""
        return self.read_metadata().state_dict_metadata  # type: ignore[return-value]

    def read_into(self, tensors: Mapping[str, torch.Tensor], *, alone: bool = False) -> None:
        """Fill tensors in place; of sharded ones each process reads its slices. alone: in this process."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            load(dict(tensors), storage_reader=self, no_dist=alone)

    def whole(self, name: str) -> torch.Tensor:
        """One tensor in full, read by this process alone."""
        known = self.tensors[name]
        found = torch.empty(known.size, dtype=known.properties.dtype)
        self.read_into({name: found}, alone=True)
        return found
