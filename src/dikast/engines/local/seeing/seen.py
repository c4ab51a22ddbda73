"""The images and clips of prompts as tensors: of a prompt, one by one, and of several prompts as one batch."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dikast.core.canonical import fingerprint

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Seen:
    """The media of one prompt for one model: ids that replace each placeholder, in order, and the tensors of all.

    `shape` is equal for prompts that may share a batch: whether there are images, clips, and, where the model takes
    clips only as one block, how many frames.
    """

    images: tuple[tuple[int, ...], ...] = ()
    clips: tuple[tuple[int, ...], ...] = ()
    tensors: "Mapping[str, torch.Tensor]" = field(default_factory=dict)
    shape: tuple[int, ...] = (0, 0)

    @property
    def bytes(self) -> int:
        """What the tensors take."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    @cached_property
    def media(self) -> "list[Medium]":
        """The pictures and clips one by one: pictures in their order, then clips in theirs."""
        return separated(self.tensors)

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """A number of 60 bits for each of `media`, equal for media that are equal to the model."""
        shown = zip(self.media, (*self.images, *self.clips), strict=True)
        return tuple(int(fingerprint([medium.key, ids])[:15], 16) for medium, ids in shown)  # clips may differ in times


@dataclass(frozen=True, slots=True)
class Medium:
    """One picture or clip of a prompt, as the processor gave it.

    `alone` says whether a picture is the only one of its prompt, if the model depends on that (LLaVA-OneVision uses
    more tiles for it), else None.
    """

    clip: bool
    tensors: "Mapping[str, torch.Tensor]"
    alone: bool | None = None

    @property
    def key(self) -> int:
        """63 bits, equal for media that are equal to the model."""
        digest = hashlib.blake2b(repr((self.clip, self.alone)).encode(), digest_size=8)
        for name, tensor in sorted(self.tensors.items()):
            digest.update(repr((name, tuple(tensor.shape))).encode())
            digest.update(tensor.contiguous().numpy())  # type: ignore[arg-type]  # a buffer
        return int.from_bytes(digest.digest()) >> 1


def separated(tensors: "Mapping[str, torch.Tensor]") -> list[Medium]:
    """The media of one example, from its tensors: pictures in their order, then clips in theirs."""
    found = []
    for clip in (False, True):
        mine = {name: tensor for name, tensor in tensors.items() if ("video" in name or "second" in name) == clip}
        counted = mine.pop("batch_num_images", None)
        grid = next((tensor for name, tensor in mine.items() if name.endswith("_grid_thw")), None)
        patches = None if grid is None else grid.prod(-1).tolist()
        parts: dict[str, Sequence[torch.Tensor]] = {
            name: tensor.split(patches if patches is not None and name.startswith("pixel_values") else 1)
            for name, tensor in mine.items()
        }
        count = max((len(part) for part in parts.values()), default=0)
        alone = None if counted is None else count == 1
        found += [Medium(clip, {name: part[i] for name, part in parts.items()}, alone) for i in range(count)]
    return found


def joined(media: Sequence[Medium]) -> "dict[str, torch.Tensor]":
    """The tensors of media as inputs of a model: pictures and clips each in their order.

    Pictures that are not alone come after those that are.
    """
    import torch

    inputs: dict[str, torch.Tensor] = {}
    for clip in (False, True):
        inputs |= together([Seen(tensors=each.tensors) for each in media if each.clip == clip])
    if any(each.alone is not None for each in media):
        alone, others = sum(each.alone is True for each in media), sum(each.alone is False for each in media)
        # the model reads "not alone" from a count other than 1, and takes no more pictures than there are
        inputs["batch_num_images"] = torch.tensor([1] * alone + ([max(2, others)] if others else []))
    return inputs


def together(seen: Sequence[Seen]) -> "dict[str, torch.Tensor]":
    """The tensors of several prompts as one batch, in order; images of fewer tiles are filled up with empty ones."""
    import torch

    found: dict[str, torch.Tensor] = {}
    for name in seen[0].tensors if seen else ():
        rows = [each.tensors[name] for each in seen]
        if name == "pixel_values" and rows[0].ndim == 5:  # (images, tiles, channels, height, width)
            most = max(row.shape[1] for row in rows)
            rows = [torch.nn.functional.pad(row, (0, 0, 0, 0, 0, 0, 0, most - row.shape[1])) for row in rows]
        found[name] = torch.cat(rows)
    return found
