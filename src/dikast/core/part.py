"""The parts of an instruction, a response, a reference or a context: text, images, video frames, turns."""

import base64
import io
import math
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from dikast.core.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_FRAMES = 1024  # sampled from one video
STORES = ("s3://", "gs://", "gcs://", "az://", "abfs://", "abfss://")
"""Addresses of object stores, as media of items have them; fsspec reads them with the keys that their packages find."""
REMOTE = ("http://", "https://", *STORES)
_URL = ("data:", *REMOTE)

type_names = {
    str: "text",
    bytes: "bytes",
    int: "a number",
    float: "a number",
    bool: "true/false",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True, slots=True)
class Text:
    """Text, exactly as the user gave it."""

    text: str

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return Text, (self.text,)  # items are sent to workers: eight times as fast as what slots make of themselves


@dataclass(frozen=True, slots=True)
class Image:
    """One image, by `source`: a path, an http(s) URL, an address in an object store, or a data URL. Decoded and checked
    by `core.media`.

    Relative paths resolve against the folder of the record's file (`root`); beside a file that an address names they
    are addresses, too. With `frame`, the source is a video and this is its frame of that number, from 0.
    """

    source: str
    root: str = ""
    frame: int | None = None

    @classmethod
    def of(cls, source: "str | PathLike[str] | bytes | Picture", root: str = "") -> "Image":
        """Wrap a path, URL, data URL, the bytes of an image file, or a PIL image."""
        if isinstance(source, bytes):
            return cls(_data_url(source, "application/octet-stream"))
        if isinstance(source, str | PathLike):
            return cls(*_placed(str(source), root))
        buffer = io.BytesIO()
        source.save(buffer, "PNG")
        return cls(_data_url(buffer.getvalue(), "image/png"))

    @property
    def name(self) -> str:
        """The source, short enough for a message."""
        return self.source if len(self.source) <= 120 else self.source[:60] + "..."


@dataclass(frozen=True, slots=True)
class Video:
    """A clip as sampled frames in order, with the second of each if that is known.

    Or a video file by its `source` (path, URL, data URL), from which `core.media.sample_video` takes `count` frames, or
    as many as the judge is set to. Such a video has no frames until then.
    """

    frames: tuple[Image, ...] = ()
    seconds: tuple[float, ...] = ()
    source: str = ""
    root: str = ""
    count: int | None = None


Part = Text | Image | Video
Content = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: Content

    def __reduce__(self) -> tuple[type, tuple[str, Content]]:
        return Turn, (self.role, self.content)


def text_of(content: Content) -> str:
    """The text parts, joined by line breaks; media are left out."""
    return "\n".join(part.text for part in content if isinstance(part, Text))


def is_empty(content: Content) -> bool:
    """Whether there is nothing but white space."""
    return all(isinstance(part, Text) and not part.text.strip() for part in content)


def images_of(content: Iterable[Part]) -> list[Image]:
    """Every image in order, frames of clips included."""
    found: list[Image] = []
    for part in content:
        if isinstance(part, Image):
            found.append(part)
        elif isinstance(part, Video):
            found.extend(part.frames)
    return found


def number_as_text(value: Any) -> Any:
    """A number or truth value as the text that a table of text holds for it (`42`, `0.5`, `True`); others as they are.

    NaN and infinities stay numbers, which content refuses.
    """
    return str(value) if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)) else value


def content_from(value: object, *, field: str, root: str = "") -> Content:
    """Read text, one part, or a list of parts, in Dikast's or OpenAI's spelling; DataError names `field`.

    `{"type": "text", "text": ...}`, `{"type": "image", "image": PATH-OR-URL}`, `{"type": "image_url", "image_url":
    {"url": ...}}`, `{"type": "video", "video": PATH-OR-URL, "frames": 8}` (the number may be left out), `{"type":
    "video_url", "video_url": {"url": ...}}`, `{"type": "video", "frames": [...], "seconds": [...]}`.
    """
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, Text | Image | Video):
        return (value,)
    if isinstance(value, dict):
        return (_part_from(value, field=field, root=root),)
    if isinstance(value, list | tuple):
        parts: list[Part] = []
        for i, element in enumerate(value):
            parts.extend(content_from(element, field=f"{field}[{i}]", root=root))
        return tuple(parts)
    if isinstance(value, bytes | PathLike) or hasattr(value, "save"):  # only an image can be meant
        return (Image.of(value, root),)  # type: ignore[arg-type]
    shown = f" ({value!r}): write it as text (in pandas .astype(str))" if isinstance(value, int | float) else ""
    told = f"expected text or a list of parts, got {type_names.get(type(value), type(value).__name__)}{shown}"
    raise DataError(told, field=field)


def _part_from(value: dict[str, Any], *, field: str, root: str) -> Part:
    kind = value.get("type", next((name for name in ("image", "video", "text") if name in value), None))
    if kind == "text" and isinstance(value.get("text"), str):
        return Text(value["text"])
    if kind == "image":
        return _image_from(value.get("image", value.get("path", value.get("url"))), field=field, root=root)
    if kind == "image_url":
        url = value.get("image_url")
        return _image_from(url.get("url") if isinstance(url, dict) else url, field=field, root=root)
    if kind == "video_url":
        url = value.get("video_url")
        return _video_from(url.get("url") if isinstance(url, dict) else url, None, field=field, root=root)
    if kind == "video" and "video" in value:
        return _video_from(value["video"], value.get("frames"), field=field, root=root)
    if kind == "video":
        frames = value.get("frames")
        if not isinstance(frames, list) or not frames:
            raise DataError(
                'a video part needs its file or its sampled frames: {"type": "video", "video": "clip.mp4"} or '
                '{"type": "video", "frames": [...]}',
                field=field,
            )
        seconds = value.get("seconds", [])
        numeric = isinstance(seconds, list) and all(isinstance(s, int | float) for s in seconds)
        if not numeric or len(seconds) not in (0, len(frames)):
            raise DataError(f"'seconds' must be one number for each of the {len(frames)} frames", field=field)
        images = tuple(_image_from(frame, field=f"{field}.frames[{i}]", root=root) for i, frame in enumerate(frames))
        return Video(images, tuple(map(float, seconds)))
    what = f"unknown part {kind!r}" if kind else "an object that is no part of a text"
    raise DataError(f"{what}: write text, or a part of type text, image, image_url, video or video_url", field=field)


def _video_from(value: object, count: object, *, field: str, root: str) -> Video:
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_FRAMES):
        raise DataError(
            f"'frames' next to 'video' is how many to sample, a whole number from 1 to {MOST_FRAMES}", field=field
        )
    if isinstance(value, bytes):
        value = _data_url(value, "application/octet-stream")
    if isinstance(value, PathLike):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise DataError("expected a video: a path, a URL, a data URL or bytes", field=field)
    source, root = _placed(value, root)
    return Video(source=source, root=root, count=count)


def _image_from(value: object, *, field: str, root: str) -> Image:
    if isinstance(value, dict) and set(value) & {"bytes", "path"}:  # the struct of Parquet files with images
        value = value.get("bytes") or value.get("path")
    if isinstance(value, str) and value:
        return Image(*_placed(value, root))
    if isinstance(value, bytes | PathLike) or hasattr(value, "save"):
        return Image.of(value, root)  # type: ignore[arg-type]
    raise DataError("expected an image: a path, a URL, a data URL, bytes or a PIL image", field=field)


def _placed(source: str, root: str) -> tuple[str, str]:
    """A source and the folder that it is relative to; one beside records that an address names is an address."""
    source = plain_scheme(source)
    if source.startswith(_URL):
        return source, ""
    if not root.startswith(REMOTE) or source.startswith(("/", "~")):
        return source, root
    beside = posixpath.normpath(source)
    return f"{root}/{quote(beside) if root.startswith('http') else beside}", ""


def plain_scheme(source: str) -> str:
    """The same source, whose scheme is in small letters if it is an address that media can have."""
    if source.startswith(_URL) or not source[:8].lower().startswith(_URL):
        return source
    scheme, _, rest = source.partition(":")
    return f"{scheme.lower()}:{rest}"


def content_to(content: Content) -> object:
    """The JSON form: a bare string for a single text, else a list of parts that `content_from` reads back."""
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    return [_part_to(part) for part in content]


def _part_to(part: Part) -> dict[str, object]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "image", "image": part.source}
    if part.source:
        count: dict[str, object] = {"frames": part.count} if part.count is not None else {}
        return {"type": "video", "video": part.source, **count}
    seconds: dict[str, object] = {"seconds": list(part.seconds)} if part.seconds else {}
    return {"type": "video", "frames": [frame.source for frame in part.frames], **seconds}


def _data_url(raw: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(raw).decode()}"
