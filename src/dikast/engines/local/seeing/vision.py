"""Images and clips as model inputs: the token ids that stand for each, and the tensors of all.

The processor is the checkpoint's own class, made from image processor and tokenizer alone. A processor for video needs
torchvision even to be created, so `clips` stands in for it. Images are resized by Pillow on every machine
(`backend="pil"`), whether or not torchvision is installed, so that the same image gives the same numbers.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dikast.core.errors import EngineError, UserError
from dikast.core.machine.bounded import Bounded
from dikast.engines.local.install_hints import TORCHVISION_CURE
from dikast.engines.local.seeing.seen import Seen
from dikast.engines.local.seeing.video_tensors import Clip, Clips, load_clips
from dikast.engines.local.trusted import pretrained

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

# By `model_type`. Other vision-language models differ in how images become tokens, so they are refused, not guessed.
FAMILIES = {
    "llava": "LLaVA-1.5",
    "llava_onevision": "LLaVA-OneVision",
    "qwen2_5_vl": "Qwen2.5-VL",
    "qwen3_vl": "Qwen3-VL",
}

_MOST_EDGE = 4_096  # pixels
_MOST_PIXELS = 2**26  # that a picture may be made of
_REMEMBERED = 64 * 2**20  # bytes of tensors: questions about one picture follow each other, and others come once
_PARTS = ("image_processor", "tokenizer")


class Processed(NamedTuple):
    """What image processor and `Clips` make of the media of one prompt; `frames` are counts, by clip."""

    images: Any
    clips: Any
    frames: tuple[int, ...]
    pictures: int


class Vision:
    """A processor of images, and of clips where the model knows them (else a clip is its frames, one image each)."""

    def __init__(self, processor: Any, clips: Clips | None = None) -> None:
        self.processor, self.clips = processor, clips
        self.image_token = str(processor.image_token)
        self.video_token = str(getattr(processor, "video_token", None) or "")
        ids = processor.tokenizer.convert_tokens_to_ids
        self.image_token_id = int(ids(self.image_token))
        self.video_token_id = int(ids(self.video_token)) if clips is not None else None
        self.placeholders = tuple(token for token in (self.image_token, self.video_token) if token)
        self.types_tokens = bool(getattr(processor, "return_mm_token_type_ids", False))  # older ones have none
        counts = hasattr(processor.image_processor, "merge_size")  # all pixels, whatever the sides are
        self._edge = 0 if counts else _shortest_edge(processor.image_processor)
        self._counts_images = "batch_num_images" in processor.image_processor.model_input_names
        self.remembered: Bounded[object, Seen] = Bounded(_REMEMBERED, lambda seen: seen.bytes)  # the latest
        if clips is not None:
            processor.video_processor = clips  # for `replace_video_token`, which asks it for its patch sizes

    def see(self, pictures: "Sequence[Picture]", clips: Sequence[Clip] = ()) -> Seen:
        """Run the processor on all images and clips of one prompt; some models look closer at a single image."""
        return self.seen(self.process(pictures, clips))

    def process(self, pictures: "Sequence[Picture]", clips: Sequence[Clip] = ()) -> Processed:
        """The first part of `see`, which takes nearly all of its time: the tensors. Several threads may call it."""
        images = shown = None
        for width, height in (picture.size for picture in pictures):
            if self._edge**2 * max(width, height) > _MOST_PIXELS * min(width, height):
                raise EngineError(
                    f"this model makes the shorter side of each picture {self._edge} pixels long, and one of {width} x"
                    f" {height} would be too large then: cut it",
                    kind="bad_media",
                )
        if pictures:
            given = [list(pictures)] if self._counts_images else list(pictures)
            images = self.processor.image_processor(given, return_tensors="pt")
        if clips:
            assert self.clips is not None
            if self.clips.in_one_block and len({len(clip.frames) for clip in clips}) > 1:
                told = ", ".join(str(len(clip.frames)) for clip in clips)
                raise EngineError(
                    f"the clips have {told} frames, and this model takes clips of one length together: sample the same "
                    "number of frames from each, or open it with clips=frames",
                    kind="bad_media",
                )
            shown = self.clips(clips)
        return Processed(images, shown, tuple(len(clip.frames) for clip in clips), len(pictures))

    def seen(self, made: Processed) -> Seen:
        """The second part: the token ids."""
        images: list[tuple[int, ...]] = []
        shown: list[tuple[int, ...]] = []
        if made.images is not None:
            images = [
                self._ids(self.processor.replace_image_token(made.images, image_idx=i)) for i in range(made.pictures)
            ]
        frames = 0
        if made.clips is not None:
            assert self.clips is not None
            shown = [
                self._ids(self.processor.replace_video_token(made.clips, video_idx=i)) for i in range(len(made.frames))
            ]
            frames = made.frames[0] if self.clips.in_one_block else 1
        return Seen(tuple(images), tuple(shown), self.tensors(made), (int(made.images is not None), frames))

    def tensors(self, made: Processed) -> dict[str, Any]:
        """What the model takes of the first part. Several threads may call it."""
        tensors = dict(made.images or {})
        if made.clips is not None and self.clips is not None:
            tensors |= self.clips.inputs(made.clips)
        return tensors

    def settings(self) -> dict[str, Any]:
        """The settings that determine the tensors of images and clips, as JSON values."""
        images = self.processor.image_processor
        settings = {name: value for name, value in images.to_dict().items() if name != "processor_class"}
        clips = {} if self.clips is None else {"clips": self.clips.settings()}
        return {"class": type(images).__name__, **settings, **clips}

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.processor.tokenizer(text, add_special_tokens=False)["input_ids"])


def load_vision(folder: Path, config: Any, tokenizer: Any, *, as_video: bool = True) -> Vision | str:
    """The processor of a checkpoint, or why its images cannot be processed, with the cure.

    Without `as_video` a clip is its frames, one image each, also for a model that knows clips.
    """
    from transformers import AutoImageProcessor
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    try:
        base: Any = PROCESSOR_MAPPING[type(config)]
        images = pretrained(AutoImageProcessor, folder, backend="pil")
        edge = _shortest_edge(images)
        if edge > _MOST_EDGE:
            raise UserError(f"{folder}: its image processor makes sides of {edge:,} pixels of each picture")
        settings, _ = base.get_processor_dict(folder, local_files_only=True)
        processor = _without_video(base).from_args_and_dict([images, tokenizer], settings)
        return Vision(processor, load_clips(folder, config.model_type) if as_video else None)
    except UserError:
        raise
    except Exception as error:  # whatever a processor of any family raises
        return f"its image processor cannot be made ({error}): {TORCHVISION_CURE}; see `dikast doctor`"


def _shortest_edge(images: Any) -> int:
    """Pixels of the shorter side of every resized picture; of a square one where the setting counts all its pixels."""
    edge = dict(images.size or {}).get("shortest_edge") or 0
    return math.isqrt(edge) if hasattr(images, "merge_size") else edge


def _without_video(base: type[Any]) -> type[Any]:
    """A processor class of the same name that consists of image processor and tokenizer."""
    if list(base.get_attributes())[:2] != list(_PARTS):
        raise TypeError(f"{base.__name__} does not start with {_PARTS}")
    return type(base.__name__, (base,), {"get_attributes": classmethod(lambda cls: list(_PARTS))})
