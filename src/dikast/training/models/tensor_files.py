"""Weights as safetensors files, written one tensor at a time."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


class Stored(NamedTuple):
    """How a tensor stands in a file: its type by safetensors' name, and its shape."""

    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * SIZES[self.kind]


def write_tensors(
    folder: Path, layout: Mapping[str, Stored], make: "Callable[[str], torch.Tensor]", shard_bytes: int
) -> list[str]:
    """Write tensors, in their order, into files of about `shard_bytes`, with an index where there are several.

    make: gives a tensor by name; one is in memory at a time. Returns the names of the files.
    """
    groups: list[list[str]] = [[]]
    room = shard_bytes
    for name, stored in layout.items():
        if groups[-1] and stored.size > room:
            groups.append([])
            room = shard_bytes
        groups[-1].append(name)
        room -= stored.size
    files = (
        ["model.safetensors"]
        if len(groups) == 1
        else [f"model-{i:05d}-of-{len(groups):05d}.safetensors" for i in range(1, len(groups) + 1)]
    )
    for file, names in zip(files, groups, strict=True):
        _write_file(folder / file, names, layout, make)
    if len(files) > 1:
        placed = {name: file for file, names in zip(files, groups, strict=True) for name in names}
        index = {"metadata": {"total_size": sum(each.size for each in layout.values())}, "weight_map": placed}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2), encoding="utf-8")
    return files


def _write_file(
    path: Path, names: Sequence[str], layout: Mapping[str, Stored], make: "Callable[[str], torch.Tensor]"
) -> None:
    """A safetensors file whose header is known before its tensors are."""
    import torch

    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name in names:
        end = at + layout[name].size
        header[name] = {"dtype": layout[name].kind, "shape": list(layout[name].shape), "data_offsets": [at, end]}
        at = end
    spelt = json.dumps(header, separators=(",", ":")).encode()
    spelt += b" " * (-len(spelt) % 8)
    with path.open("wb") as file:
        file.write(len(spelt).to_bytes(8, "little") + spelt)
        for name in names:
            file.write(make(name).contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
