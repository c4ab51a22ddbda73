"""What prompts show of images and clips: loaded, and prepared for a model, those of several prompts side by side."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby, islice
from typing import NamedTuple

from dikast.core.errors import DataError, EngineError
from dikast.core.media import LoadedImage, image_sha256, load_images
from dikast.core.message import Message
from dikast.core.part import Image, Video
from dikast.engines.base import Request
from dikast.engines.local.processor import Processor
from dikast.engines.local.seeing.seen import Seen
from dikast.engines.local.seeing.video_tensors import Clip
from dikast.engines.local.seeing.vision import Processed, Vision

_MOST_PICTURES = 2048  # of one prompt, frames included
_SIDE_BY_SIDE = 8  # prompts whose media are prepared at a time, and held until it is their turn


class Media(NamedTuple):
    """What a model is shown besides text, by kind, each in order."""

    images: tuple[Image, ...] = ()
    clips: tuple[Video, ...] = ()


class Prepared(NamedTuple):
    """Media as tensors; `key` is what `key_of` makes of the files that were read."""

    key: object
    made: Processed


def media_of(messages: Sequence[Message], vision: Vision | None) -> Media:
    """The images and clips of all messages; for a model that knows no clips their frames are images."""
    images: list[Image] = []
    clips: list[Video] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, Image):
                images.append(part)
            elif isinstance(part, Video) and vision is not None and vision.clips is not None:
                clips.append(part)
            elif isinstance(part, Video):
                images.extend(part.frames)
    return Media(tuple(images), tuple(clips))


def see(media: Media, processor: Processor) -> Seen:
    """The media as the model takes them; EngineError if it cannot see, or one of them cannot be loaded."""
    if not media.images and not media.clips:
        return Seen()
    if (vision := processor.vision) is None:
        raise EngineError(
            f"the request has images, but this model cannot see them: {processor.blind}; use a vision-language model",
            kind="no_vision",
        )
    found = vision.remembered.get(_key(media))
    return _remember(prepare(media, vision), vision) if found is None else found


def in_turn(requests: Sequence[Request], processor: Processor) -> Iterator[Request]:
    """The requests in order, each when its media are remembered, while those of the next ones are prepared in threads.

    Media that cannot be prepared are left to `see`, which then says so of each request that shows them.
    """
    vision = processor.vision
    shown = [_named(media_of(request.messages, vision)) for request in requests]
    distinct = [media for media in dict.fromkeys(shown) if any(media)]
    threads = min(_SIDE_BY_SIDE, len(distinct), os.cpu_count() or 1)
    if vision is None or threads < 2:
        yield from requests
        return
    coming, ahead = iter(distinct), dict[Media, Future[Prepared | None]]()
    with ThreadPoolExecutor(threads) as pool:
        for request, media in zip(requests, shown, strict=True):
            for each in islice(coming, threads - len(ahead)):
                ahead[each] = pool.submit(_unknown, each, vision)
            if (preparing := ahead.pop(media, None)) is not None:
                with suppress(Exception):
                    if (prepared := preparing.result()) is not None:
                        _remember(prepared, vision)
            yield request


def _named(media: Media) -> Media:
    """Equal and hashable where the media are the same."""
    clips = (replace(clip, frames=tuple(clip.frames), seconds=tuple(clip.seconds)) for clip in media.clips)
    return Media(media.images, tuple(clips))


def _unknown(media: Media, vision: Vision) -> Prepared | None:
    """The media as tensors; None where they are remembered."""
    return None if vision.remembered.get(_key(media)) is not None else prepare(media, vision)


def _key(media: Media) -> object:
    """What is the same for media of the same content, without decoding them."""
    return key_of(
        media,
        [_hash(image) for image in media.images],
        [[_hash(frame) for frame in clip.frames] for clip in media.clips],
    )


def key_of(media: Media, images: Sequence[str], frames: Sequence[Sequence[str]]) -> object:
    """What is equal for media that show the same, by the SHA-256 of each image and of each clip's frames."""
    timed = [(tuple(each), tuple(clip.seconds)) for each, clip in zip(frames, media.clips, strict=True)]
    return tuple(images), tuple(timed)


def prepare(media: Media, vision: Vision) -> Prepared:
    """Load media and make their tensors, in any thread: nothing here asks the tokenizer, which is not for several.

    EngineError if one of them cannot be loaded.
    """
    count = len(media.images) + sum(len(clip.frames) for clip in media.clips)
    if count > _MOST_PICTURES:  # their tensors are in memory before their tokens are known
        raise EngineError(
            f"the prompt has {count:,} images and frames, at most {_MOST_PICTURES:,} are prepared for a prompt: show"
            " fewer",
            kind="context_length",
        )
    images = _loaded(media.images)
    frames = [_loaded(clip.frames) for clip in media.clips]
    clips = [
        Clip([each.picture for each in shown], clip.seconds) for shown, clip in zip(frames, media.clips, strict=True)
    ]
    made = vision.process([image.picture for image in images], clips)
    hashes = [[each.sha256 for each in shown] for shown in frames]  # of what was read: a file may have changed
    return Prepared(key_of(media, [image.sha256 for image in images], hashes), made)


def _remember(prepared: Prepared, vision: Vision) -> Seen:
    seen = vision.seen(prepared.made)
    vision.remembered.put(prepared.key, seen)
    return seen


def _loaded(images: Sequence[Image]) -> list[LoadedImage]:
    found: list[LoadedImage] = []
    for _, group in groupby(images, lambda image: (image.source, image.root)):
        same = list(group)
        with _said_of(same[0]):
            found += load_images(same)
    return found


def _hash(image: Image) -> str:
    with _said_of(image):
        return image_sha256(image)


@contextmanager
def _said_of(image: Image) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise EngineError(f"image {image.name}: {error}", kind="bad_media") from error
