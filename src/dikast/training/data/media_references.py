"""What shards keep of pictures and clips: where each file is, and the hash of its content.

Files that items hold themselves (data URLs, rows of Parquet), or that an address names, are kept as they are, encoded,
so that nothing is fetched during training.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from dikast.core.media import image_sha256, resolved
from dikast.core.part import Image, Video
from dikast.engines.local.seeing.shown import Media, key_of


class MediaReference(NamedTuple):
    """The media of an example, and the SHA-256 of each image and of each clip's frames as they were prepared."""

    media: Media
    images: tuple[str, ...]
    frames: tuple[tuple[str, ...], ...]

    @property
    def key(self) -> object:
        """Equal for media that show the same, as `seeing.shown` has it."""
        return key_of(self.media, self.images, self.frames)

    def files(self) -> Iterator[tuple[Image, str]]:
        """Each image and frame with its hash."""
        yield from zip(self.media.images, self.images, strict=True)
        for clip, hashes in zip(self.media.clips, self.frames, strict=True):
            yield from zip(clip.frames, hashes, strict=True)


def is_local(image: Image) -> bool:
    """Whether an image or a frame is in a file of this machine."""
    return "://" not in image.source and not image.source.startswith("data:")


def relative_root(image: Image, root: str) -> str:
    """The folder of an image relative to that of the configuration, so that both may be moved together."""
    return os.path.relpath(image.root or ".", root or ".")


def written(media: Media, root: str, keep: Callable[[Image], list[int]]) -> bytes:
    """The reference as JSON. keep: stores a file that is not on this machine; where it is (first byte, bytes)."""

    def told(image: Image) -> list[Any]:
        if is_local(image):
            return [image.source, relative_root(image, root), image.frame, image_sha256(image)]
        return [keep(replace(image, frame=None)), "", image.frame, image_sha256(image)]

    clips = [[[told(frame) for frame in clip.frames], clip.seconds] for clip in media.clips]
    return orjson.dumps({"images": [told(image) for image in media.images], "clips": clips})


def read(raw: bytes, root: str, kept: Callable[[int, int], bytes]) -> MediaReference:
    """The reference that `written` made of it. kept: the bytes of a file that was kept."""
    told: Mapping[str, Any] = orjson.loads(raw)

    def image(reference: list[Any]) -> Image:
        source, beside, frame, _ = reference
        if isinstance(source, str):
            return Image(source, root if beside == "." else os.path.join(root, beside), frame)
        return replace(Image.of(kept(*source)), frame=frame)

    return MediaReference(
        Media(
            tuple(image(each) for each in told["images"]),
            tuple(Video(tuple(image(each) for each in frames), tuple(seconds)) for frames, seconds in told["clips"]),
        ),
        tuple(each[3] for each in told["images"]),
        tuple(tuple(each[3] for each in frames) for frames, _ in told["clips"]),
    )


def path_of(image: Image) -> str:
    """The file of an image or a frame that was not kept; "" for one that was."""
    return resolved(image) if is_local(image) else ""
