"""The pictures and clips of examples one by one, so that a pass computes the features of each picture once."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from dikast.engines.local.vision import Seen, together


@dataclass(frozen=True, slots=True)
class Medium:
    """One picture or clip of a prompt, as the processor gave it.

    `alone` says whether a picture is the only one of its prompt, where the model asks for that (LLaVA-OneVision looks
    closer at it), else None.
    """

    clip: bool
    tensors: Mapping[str, torch.Tensor]
    alone: bool | None = None

    @property
    def key(self) -> int:
        """63 bits that are equal for what a model sees as equal."""
        digest = hashlib.blake2b(repr((self.clip, self.alone)).encode(), digest_size=8)
        for name, tensor in sorted(self.tensors.items()):
            digest.update(repr((name, tuple(tensor.shape))).encode())
            digest.update(tensor.contiguous().numpy())  # type: ignore[arg-type]  # a buffer
        return int.from_bytes(digest.digest()) >> 1


def separated(tensors: Mapping[str, torch.Tensor]) -> list[Medium]:
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


def joined(media: Sequence[Medium]) -> dict[str, torch.Tensor]:
    """The tensors of media as inputs of a model: pictures and clips each in their order.

    Pictures that are not alone come after those that are.
    """
    inputs: dict[str, torch.Tensor] = {}
    for clip in (False, True):
        inputs |= together([Seen(tensors=each.tensors) for each in media if each.clip == clip])
    if any(each.alone is not None for each in media):
        alone, others = sum(each.alone is True for each in media), sum(each.alone is False for each in media)
        # the model reads "not alone" from a count other than 1, and takes no more pictures than there are
        inputs["batch_num_images"] = torch.tensor([1] * alone + ([max(2, others)] if others else []))
    return inputs


def distinct(media: Sequence[Medium], keys: Sequence[int]) -> tuple[list[Medium], list[int]]:
    """Each medium once, in an order that `joined` takes, and where each given one stands among the pictures kept.

    Clips are kept as they are.
    """
    pictures = [i for i, each in enumerate(media) if not each.clip]
    first: dict[int, int] = {}
    for i in pictures:
        first.setdefault(keys[i], i)
    order = sorted(first.values(), key=lambda i: media[i].alone is False)
    place = {keys[i]: n for n, i in enumerate(order)}
    return [*(media[i] for i in order), *(each for each in media if each.clip)], [place[keys[i]] for i in pictures]


@contextmanager
def shown_again(model: Any, places: Sequence[int] | None) -> Iterator[None]:
    """While the context lasts, the model puts the features of picture `places[i]` where its i-th picture stands.

    The features of each picture are computed once; gradients of all its places are summed. None changes nothing.
    """
    if places is None:
        yield
        return
    base = model.model
    features = base.get_image_features

    def repeated(*args: Any, **kwargs: Any) -> Any:
        made = features(*args, **kwargs)
        made.pooler_output = [made.pooler_output[i] for i in places]
        if getattr(made, "deepstack_features", None) is not None:
            made.deepstack_features = [[level[i] for i in places] for level in made.deepstack_features]
        return made

    base.get_image_features = repeated
    try:
        yield
    finally:
        del base.get_image_features
