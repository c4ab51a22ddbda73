"""Frames out of video files, by PyAV. Which frames are sampled depends on the file and the number asked for alone.

Of a video with N frames in the order they are shown, `n` are taken evenly from the first to the last: the k-th is
number round(k (N - 1) / (n - 1)), all of them where N <= n, the middle one for n = 1. N is counted in the file, not
taken from its header. Frames are turned upright and given as 8-bit RGB.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from dikast.core.errors import DataError, MissingExtra, require

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

SAMPLING = "even-1"  # part of every key of a question about a video; another rule gets another name
DEFAULT_FRAMES = 8


class Sampled(NamedTuple):
    """The numbers of the frames in the file, from 0, and the seconds after the first frame that each is shown at."""

    indices: tuple[int, ...]
    seconds: tuple[float, ...]


class _Packet(NamedTuple):
    pts: int
    is_key: bool


def even(total: int, n: int) -> tuple[int, ...]:
    """The numbers of the frames to take of `total`, as the module says."""
    if n >= total:
        return tuple(range(total))
    if n == 1:
        return ((total - 1) // 2,)
    return tuple((2 * k * (total - 1) + (n - 1)) // (2 * (n - 1)) for k in range(n))


def sample(file: str | bytes, n: int, name: str) -> tuple[Sampled, list["Picture"]]:
    """Take `n` frames of a video, by path or content; DataError says what is wrong with it and what to do."""
    with _opened(file, name) as (container, stream):
        packets = _packets(container, stream, name)
        indices = even(len(packets), n)
        found = Sampled(indices, tuple(float((packets[i].pts - packets[0].pts) * stream.time_base) for i in indices))
    return found, frames(file, indices, name)


def frames(file: str | bytes, indices: Sequence[int], name: str) -> list["Picture"]:
    """The frames of these numbers, which ascend."""
    with _opened(file, name) as (container, stream):
        packets = _packets(container, stream, name)
        keys = [packet.pts for packet in packets if packet.is_key]
        found: list[Picture] = []
        container.seek(packets[0].pts, stream=stream)
        decoder, at = container.decode(stream), packets[0].pts
        for index in indices:
            target = packets[index].pts
            key = max((pts for pts in keys if pts <= target), default=packets[0].pts)
            if key > at:  # nothing between here and there is needed
                container.seek(key, stream=stream)
                decoder = container.decode(stream)
            frame = next((frame for frame in decoder if frame.pts is not None and frame.pts >= target), None)
            if frame is None:
                raise DataError(f"{name}: frame {index} of {len(packets)} cannot be decoded: {_CURE}")
            at = target
            found.append(_picture(frame))
    return found


_CURE = "make the file again (ffmpeg -i IN -c:v libx264 -pix_fmt yuv420p OUT.mp4), or list frames as images"


@contextmanager
def _opened(file: str | bytes, name: str) -> Iterator[tuple[Any, Any]]:
    """The container and its first video stream; what PyAV raises becomes a DataError."""
    try:
        av = require("av", "video")
    except MissingExtra:
        raise DataError(
            f"{name} cannot be read without PyAV: pip install 'dikast[video]', or list its frames as images"
        ) from None
    try:
        with av.open(io.BytesIO(file) if isinstance(file, bytes) else file) as container:
            if not container.streams.video:
                raise DataError(f"{name} has no video in it (only {_streams(container)}): {_CURE}")
            yield container, container.streams.video[0]
    except (av.FFmpegError, ValueError, OverflowError) as error:
        raise DataError(f"{name} is not a video that can be read ({error}): {_CURE}") from None


def _streams(container: Any) -> str:
    return ", ".join(sorted({str(stream.type) for stream in container.streams})) or "nothing"


def _packets(container: Any, stream: Any, name: str) -> list[_Packet]:
    """One for each frame, in the order they are shown."""
    found = [
        _Packet(packet.pts, packet.is_keyframe)
        for packet in container.demux(stream)
        if packet.pts is not None and packet.size and not packet.is_discard
    ]
    if not found:
        raise DataError(f"{name} has 0 frames: {_CURE}")
    return sorted(found)


def _picture(frame: Any) -> "Picture":
    picture: Picture = frame.to_image()
    return picture.rotate(frame.rotation, expand=True) if frame.rotation else picture
