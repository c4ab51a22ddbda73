"""Frames out of video files, by PyAV. Which frames are sampled depends on the file and the number asked for alone.

Of a video with N frames in the order they are shown, `n` are taken evenly from the first to the last: the k-th is
number round(k (N - 1) / (n - 1)), all of them where N <= n, the middle one for n = 1. N is counted in the file, not
taken from its header. Frames are turned upright and given as 8-bit RGB.
"""

import io
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from dikast.core.errors import DataError, MissingExtra, require
from dikast.core.media.decoding import MOST_PIXELS

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_FRAMES = 1_000_000  # in a file: nine hours at 30 frames a second
MOST_SAMPLED_PIXELS = 512_000_000  # of all frames taken at once: 2 GB; 61 frames of 3840 x 2160
# What FFmpeg may open: containers of one file. Playlists (HLS, concat, image sequences) name other files and hosts.
_CONTAINERS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,m4v,h264,hevc,flv,ogg,gif,asf,ivf,wav,mp3"
)
_OPTIONS = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "file"}
SAMPLING = "even-1"  # part of every key of a question about a video; another sampling rule gets another name
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
        _check_size(stream, len(indices), name)
        found = Sampled(indices, tuple(float((packets[i].pts - packets[0].pts) * stream.time_base) for i in indices))
    return found, frames(file, indices, name)


def frames(file: str | bytes, indices: Sequence[int], name: str) -> list["Picture"]:
    """The frames of these numbers, which ascend."""
    with _opened(file, name) as (container, stream):
        _check_size(stream, len(indices), name)
        packets = _packets(container, stream, name)
        keys = [packet.pts for packet in packets if packet.is_key]
        found: list[Picture] = []
        container.seek(packets[0].pts, stream=stream)
        decoder, at = container.decode(stream), packets[0].pts
        for index in indices:
            target = packets[index].pts
            key = max((pts for pts in keys if pts <= target), default=packets[0].pts)
            if key > at:  # no frame in between is needed
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
        source = io.BytesIO(file) if isinstance(file, bytes) else f"file:{file}"  # never the name of a protocol
        with av.open(source, options=_OPTIONS) as container:
            if not container.streams.video:
                raise DataError(f"{name} has no video in it (only {_streams(container)}): {_CURE}")
            stream = container.streams.video[0]
            stream.codec_context.options = {"max_pixels": str(MOST_PIXELS)}  # frames may grow after the first
            yield container, stream
    except (av.FFmpegError, ValueError, OverflowError) as error:
        raise DataError(f"{name} is not a video that can be read ({error}): {_CURE}") from None


def _check_size(stream: Any, n: int, name: str) -> None:
    """Refuse a video that would not fit into memory, by the size in its header."""
    width, height = stream.codec_context.width, stream.codec_context.height
    if width * height > MOST_PIXELS:
        raise DataError(f"{name} has frames of {width} x {height} pixels, more than {MOST_PIXELS:,}: scale it down")
    if n * width * height > MOST_SAMPLED_PIXELS:
        most = MOST_SAMPLED_PIXELS // (width * height)
        raise DataError(f"{name}: {n} frames of {width} x {height} pixels do not fit; take {most} or scale it down")


def _streams(container: Any) -> str:
    return ", ".join(sorted({str(stream.type) for stream in container.streams})) or "nothing"


def _packets(container: Any, stream: Any, name: str) -> list[_Packet]:
    """One for each frame, in the order they are shown."""
    shown = (
        _Packet(packet.pts, packet.is_keyframe)
        for packet in container.demux(stream)
        if packet.pts is not None and packet.size and not packet.is_discard
    )
    found = list(itertools.islice(shown, MOST_FRAMES + 1))
    if len(found) > MOST_FRAMES:
        raise DataError(f"{name} has more than {MOST_FRAMES:,} frames: cut it")
    if not found:
        raise DataError(f"{name} has 0 frames: {_CURE}")
    return sorted(found)


def _picture(frame: Any) -> "Picture":
    picture: Picture = frame.to_image()
    return picture.rotate(frame.rotation, expand=True) if frame.rotation else picture
