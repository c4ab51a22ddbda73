"""Features of pictures and clips for the language model, computed once for each distinct one."""

import inspect
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch

from dikast.core.machine.bounded import Bounded
from dikast.engines.local.loading import Loaded
from dikast.engines.local.seeing.seen import Medium, Seen, joined

_KNOWN = 2**30  # bytes of features; in tree order only the pictures of one row are needed


class Features(NamedTuple):
    """The features of consecutive placeholder tokens: (tokens, width), for the first layer and for later ones."""

    first: torch.Tensor
    deeper: tuple[torch.Tensor, ...] = ()

    @property
    def bytes(self) -> int:
        """What the tensors take."""
        return sum(level.nbytes for level in (self.first, *self.deeper))

    def between(self, start: int, end: int) -> "Features":
        """Those of the tokens from `start` to `end`."""
        return Features(self.first[start:end], tuple(level[start:end] for level in self.deeper))


class Encoder:
    """Runs the vision tower once for each key."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._known: Bounded[int, Features] = Bounded(_KNOWN, lambda features: features.bytes)
        self._encoded = 0

    def features(self, seen: Seen, clip: bool, number: int) -> Features:
        """The features of one of a prompt's pictures or clips."""
        number += len(seen.images) if clip else 0
        key = seen.keys[number]
        if (found := self._known.get(key)) is None:
            found = self._encode(seen.media[number])
            self._known.put(key, found)
        return found

    def taken(self) -> int:
        """How often the vision tower ran since the last call."""
        found, self._encoded = self._encoded, 0
        return found

    def _encode(self, medium: Medium) -> Features:
        base = self._loaded.model.model
        run = base.get_video_features if medium.clip else base.get_image_features
        taken = inspect.signature(run).parameters
        dtype = self._loaded.model.dtype
        inputs = {
            name: tensor.to(self._loaded.device, dtype if name.startswith("pixel_values") else tensor.dtype)
            for name, tensor in joined([medium]).items()
            if name in taken
        }
        made = run(**inputs, return_dict=True)
        self._encoded += 1
        deeper = getattr(made, "deepstack_features", None) or ()
        return Features(made.pooler_output[0], tuple(level[0] for level in deeper))


def outputs_of(parts: Mapping[bool, Sequence[Features]], model: Any) -> dict[str, Any]:
    """Features of consecutive placeholders as a forward call takes them in the place of pixels."""
    outputs = {}
    for clip, name in ((False, "image"), (True, "video")):
        if not parts[clip]:
            continue
        first: Any = [part.first for part in parts[clip]]
        if clip and model.config.model_type == "llava_onevision":  # it flattens a tensor here
            first = torch.cat(first)[None]
        levels = zip(*(part.deeper for part in parts[clip]), strict=True)
        outputs[name] = SimpleNamespace(pooler_output=first, deepstack_features=[list(level) for level in levels])
    return outputs
