"""Images to what a model takes in for them: the token ids that stand for one, and its tensors.

The processor is the checkpoint's own class, made from image processor and tokenizer alone. A processor for video needs
torchvision even to be created, so it is left out: no image needs it. Images are resized by Pillow on every machine
(`backend="pil"`), whether or not torchvision is installed, so that the same image gives the same numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image as Picture

TORCHVISION_CURE = (
    "install the torchvision that matches your torch (https://pytorch.org/get-started/locally pairs them), "
    "or remove it: pip uninstall torchvision"
)

_PARTS = ("image_processor", "tokenizer")


@dataclass(frozen=True, slots=True)
class SeenImage:
    """One image for one model. `ids` replace its placeholder; `aligned` are rows as long as `ids` (modality types)."""

    ids: tuple[int, ...]
    tensors: "Mapping[str, torch.Tensor]"
    aligned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


class Vision:
    """A processor of images."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor
        self.image_token = str(processor.image_token)
        self.image_token_id = int(processor.tokenizer.convert_tokens_to_ids(self.image_token))
        video = getattr(processor, "video_token", None)
        self.placeholders = tuple(token for token in (self.image_token, video) if token)

    def see(self, picture: "Picture") -> SeenImage:
        """Run the processor on one image."""
        made = self.processor(text=[self.image_token], images=[picture], return_tensors="pt", add_special_tokens=False)
        made = dict(made)
        ids = made.pop("input_ids")
        made.pop("attention_mask", None)
        aligned = {name: value for name, value in made.items() if value.shape == ids.shape and value.ndim == 2}
        aligned = {name: value for name, value in aligned.items() if name.endswith("type_ids")}
        return SeenImage(
            tuple(ids[0].tolist()),
            {name: value for name, value in made.items() if name not in aligned},
            {name: tuple(value[0].tolist()) for name, value in aligned.items()},
        )

    def settings(self) -> dict[str, Any]:
        """What decides how an image becomes numbers, as JSON values."""
        images = self.processor.image_processor
        settings = {name: value for name, value in images.to_dict().items() if name != "processor_class"}
        return {"class": type(images).__name__, **settings}


def load_vision(folder: Path, config: Any, tokenizer: Any) -> Vision | str:
    """The processor of a checkpoint, or why its images cannot be processed, with the cure."""
    from transformers import AutoImageProcessor, AutoProcessor
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    try:
        base: Any = PROCESSOR_MAPPING[type(config)]
        images = AutoImageProcessor.from_pretrained(folder, backend="pil", local_files_only=True)
        settings, _ = base.get_processor_dict(folder, local_files_only=True)
        return Vision(_without_video(base).from_args_and_dict([images, tokenizer], settings))
    except Exception as error:  # whatever a processor of any family raises, the plain way comes next
        first = error
    try:
        return Vision(AutoProcessor.from_pretrained(folder, local_files_only=True))
    except Exception as error:
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return f"its image processor cannot be made ({first}; {said}): {TORCHVISION_CURE}; `dikast doctor` tells more"


def _without_video(base: type[Any]) -> type[Any]:
    """A processor class of the same name that consists of image processor and tokenizer."""
    if list(base.get_attributes())[:2] != list(_PARTS):
        raise TypeError(f"{base.__name__} does not start with {_PARTS}")
    return type(base.__name__, (base,), {"get_attributes": classmethod(lambda cls: list(_PARTS))})


def together(images: Sequence[SeenImage]) -> "dict[str, torch.Tensor]":
    """The tensors of several images as one batch, in order."""
    import torch

    return {
        name: torch.cat([image.tensors[name] for image in images]) for name in (images[0].tensors if images else ())
    }
