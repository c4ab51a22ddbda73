"""What an instruction, a response, a reference or a context is made of: text, images, video frames, turns."""

import base64
import io
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from dikast.core.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_URL = ("data:", "http://", "https://")

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


@dataclass(frozen=True, slots=True)
class Image:
    """One image, by `source`: a path, an http(s) URL, or a data URL. Decoded and checked by `core.media`.

    Relative paths resolve against the folder of the record's file (`root`).
    """

    source: str
    root: str = ""

    @classmethod
    def of(cls, source: "str | PathLike[str] | bytes | Picture", root: str = "") -> "Image":
        """Wrap a path, URL, data URL, the bytes of an image file, or a PIL image."""
        if isinstance(source, bytes):
            return cls(_data_url(source, "application/octet-stream"))
        if isinstance(source, str | PathLike):
            return cls(str(source), "" if str(source).startswith(_URL) else root)
        buffer = io.BytesIO()
        source.save(buffer, "PNG")
        return cls(_data_url(buffer.getvalue(), "image/png"))

    @property
    def name(self) -> str:
        """The source, short enough for a message."""
        return self.source if len(self.source) <= 120 else self.source[:60] + "..."


@dataclass(frozen=True, slots=True)
class Video:
    """A clip as sampled frames in order, with the second each was taken at where that is known."""

    frames: tuple[Image, ...]
    seconds: tuple[float, ...] = ()


Part = Text | Image | Video
Content = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: Content


def text_of(content: Content) -> str:
    """The text parts, joined by line breaks; media are left out."""
    return "\n".join(part.text for part in content if isinstance(part, Text))


def images_of(content: Iterable[Part]) -> list[Image]:
    """Every image in order, frames of clips included."""
    found: list[Image] = []
    for part in content:
        if isinstance(part, Image):
            found.append(part)
        elif isinstance(part, Video):
            found.extend(part.frames)
    return found


def content_from(value: object, *, field: str, root: str = "") -> Content:
    """Read text, one part, or a list of parts, in Dikast's or OpenAI's spelling; DataError names `field`.

    `{"type": "text", "text": ...}`, `{"type": "image", "image": PATH-OR-URL}`, `{"type": "image_url", "image_url":
    {"url": ...}}`, `{"type": "video", "frames": [...], "seconds": [...]}`.
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
    if isinstance(value, bytes | PathLike) or hasattr(value, "save"):  # nothing but an image can be meant
        return (Image.of(value, root),)  # type: ignore[arg-type]
    raise DataError(
        f"expected text or a list of parts, got {type_names.get(type(value), type(value).__name__)}", field=field
    )


def _part_from(value: dict[str, Any], *, field: str, root: str) -> Part:
    kind = value.get("type", "image" if "image" in value else "text" if "text" in value else None)
    if kind == "text" and isinstance(value.get("text"), str):
        return Text(value["text"])
    if kind == "image":
        return _image_from(value.get("image", value.get("path", value.get("url"))), field=field, root=root)
    if kind == "image_url":
        url = value.get("image_url")
        return _image_from(url.get("url") if isinstance(url, dict) else url, field=field, root=root)
    if kind == "video":
        frames = value.get("frames")
        if not isinstance(frames, list) or not frames:
            raise DataError('a video part needs its sampled frames: {"type": "video", "frames": [...]}', field=field)
        seconds = value.get("seconds", [])
        numeric = isinstance(seconds, list) and all(isinstance(s, int | float) for s in seconds)
        if not numeric or len(seconds) not in (0, len(frames)):
            raise DataError(f"'seconds' must be one number for each of the {len(frames)} frames", field=field)
        images = tuple(_image_from(frame, field=f"{field}.frames[{i}]", root=root) for i, frame in enumerate(frames))
        return Video(images, tuple(map(float, seconds)))
    raise DataError(
        f"unknown part {kind!r}: write text, or a part of type text, image, image_url or video", field=field
    )


def _image_from(value: object, *, field: str, root: str) -> Image:
    if isinstance(value, dict) and set(value) & {"bytes", "path"}:  # the struct of Parquet files with images
        value = value.get("bytes") or value.get("path")
    if isinstance(value, str) and value:
        return Image(value, "" if value.startswith(_URL) else root)
    if isinstance(value, bytes | PathLike) or hasattr(value, "save"):
        return Image.of(value, root)  # type: ignore[arg-type]
    raise DataError("expected an image: a path, a URL, a data URL, bytes or a PIL image", field=field)


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
    seconds: dict[str, object] = {"seconds": list(part.seconds)} if part.seconds else {}
    return {"type": "video", "frames": [frame.source for frame in part.frames], **seconds}


def _data_url(raw: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(raw).decode()}"
