"""From the bytes of an image file to a picture: the first frame, upright, in 8-bit RGB, in bounded memory."""

import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING

from dikast.core.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

LEAST_SIDE = 28  # pixels; one merged patch of the smallest grid that current vision encoders take
MOST_PIXELS = 80_000_000  # 0.8 GB while decoding (WebP 1.4 GB); checked in the header, before decoding
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")  # formats whose decoders never start another program
_BAND = 1 << 20  # pixels that are laid on white at a time
_BYTES_SHOWN = re.compile(r"\bb(['\"]).*?\1")

_TOO_MANY = f"the maximum is {MOST_PIXELS:,} pixels: scale it down"


def check_size(width: int, height: int, name: str) -> None:
    """DataError for a picture that is too large to decode, or too small to be seen."""
    if width * height > MOST_PIXELS:
        raise DataError(f"{name} is {width} x {height} pixels; {_TOO_MANY}")
    if min(width, height) < LEAST_SIDE:
        raise DataError(
            f"{name} is {width} x {height} pixels; each side needs at least {LEAST_SIDE}: give a larger one"
        )


def decode(raw: bytes, name: str) -> "Picture":
    """The picture in the bytes of an image file; DataError, which calls it `name`, for a file that is not an image or
    is damaged.
    """
    import io

    import PIL.Image

    try:
        with _quiet(), PIL.Image.open(io.BytesIO(raw), formats=FORMATS) as opened:
            check_size(*opened.size, name)
            _check_tiles(opened, name)
            if opened.format == "PNG":
                _check_pixels(raw)
            opened.load()
            return _rgb(_upright(opened), opened.format, name)
    except DataError:
        raise
    except PIL.Image.DecompressionBombError as error:
        raise DataError(f"{name}: {error}; {_TOO_MANY}") from None
    except PIL.UnidentifiedImageError:
        looks = "it looks like a web page: " if raw[:200].lstrip()[:1] == b"<" else ""
        raise DataError(
            f"{name} is not an image that can be read: {looks}give PNG, JPEG, WebP, GIF, BMP or TIFF"
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # decoders raise OSError, SyntaxError, struct.error, ... for damaged files
        why = _BYTES_SHOWN.sub("...", str(error))  # a message never shows what is in a file
        raise DataError(f"{name} is damaged or cut short ({why}): make or download the file again") from None


def _check_tiles(picture: "Picture", name: str) -> None:
    """DataError for a TIFF whose tiles are too large: each is decoded whole, whatever the size of the picture."""
    tags = getattr(picture, "tag_v2", {})
    width, height = (each if isinstance(each := tags.get(tag), int | float) else 0 for tag in (322, 323))  # or text
    if width * height > MOST_PIXELS:
        raise DataError(f"{name} has tiles of {width} x {height} pixels; {_TOO_MANY}")


def _check_pixels(raw: bytes) -> None:
    """ValueError for a PNG whose pixels have another checksum than the file says, which Pillow does not compare."""
    view, at = memoryview(raw), 8
    while at + 12 <= len(raw):
        end = at + 8 + int.from_bytes(view[at : at + 4])
        whole = raw[at + 4 : at + 8] == b"IDAT" and end + 4 <= len(raw)
        if whole and zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4]):
            raise ValueError("its pixels do not match their checksum")
        at = end + 4


def _upright(picture: "Picture") -> "Picture":
    from PIL import ImageOps

    with suppress(Exception):  # damaged EXIF, of any kind: the pixels are sound, and viewers show them unchanged
        ImageOps.exif_transpose(picture, in_place=True)
    return picture


def _rgb(picture: "Picture", file_format: str | None, name: str) -> "Picture":
    import PIL.Image

    if picture.mode.startswith("I;16") or (picture.mode == "I" and file_format == "PNG"):
        return picture.convert("I").point(lambda value: value * (1 / 256)).convert("L").convert("RGB")
    if picture.mode in ("I", "F"):
        raise DataError(f"{name} has 32-bit pixels, whose range is not known: save it with 8 or 16 bits a channel")
    if picture.has_transparency_data:
        whole, rows = PIL.Image.new("RGB", picture.size), max(1, _BAND // picture.width)
        for top in range(0, picture.height, rows):  # in bands: whole copies would take three times the memory
            box = (0, top, picture.width, min(top + rows, picture.height))
            layer = picture.crop(box).convert("RGBA")
            white = PIL.Image.new("RGBA", layer.size, (255, 255, 255, 255))
            whole.paste(PIL.Image.alpha_composite(white, layer).convert("RGB"), box[:2])
        return whole
    return picture.convert("RGB")


_quiet_lock = Lock()
_quiet_users = 0
_quiet_scope: "warnings.catch_warnings[None] | None" = None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences Pillow's warnings while any thread decodes.

    `catch_warnings` alone, left in another order than entered, would restore the wrong filters for good.
    """
    global _quiet_users, _quiet_scope
    with _quiet_lock:
        _quiet_users += 1
        if _quiet_users == 1:
            _quiet_scope = warnings.catch_warnings()
            _quiet_scope.__enter__()
            warnings.filterwarnings("ignore", module=r"PIL\b")
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet_users -= 1
            if _quiet_users == 0 and _quiet_scope is not None:
                _quiet_scope.__exit__(None, None, None)
                _quiet_scope = None
