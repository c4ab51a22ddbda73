"""Images in base64, each file encoded once while it is in use."""

import base64
import io
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from dikast.core.errors import DataError, EngineError
from dikast.core.media import image_file, image_sha256, load_image
from dikast.core.media.decoding import FORMATS
from dikast.core.part import Image

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_BYTES = 128 * 2**20
_MIMES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
_ORIENTATION = 0x0112


class Encoded:
    """MIME type and base64 by image, as bytes ready for a JSON string; the least recently used are dropped.

    PNG, JPEG, WebP and GIF files go out as they are if every decoder sees the same in them: 8 bits, upright, opaque,
    one frame. Others are sent as a PNG made by `core.media`.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most, self._total = most, 0
        self._known: OrderedDict[str, tuple[bytes, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def url(self, image: Image) -> bytes:
        """The data URL of an image."""
        mime, data = self.base64(image)
        return b"data:" + mime + b";base64," + data

    def base64(self, image: Image) -> tuple[bytes, bytes]:
        """The MIME type and the base64 of an image; EngineError `bad_media` says why there is none."""
        try:
            key = image_sha256(image)
            with self._lock:
                found = self._known.get(key)
                if found is not None:
                    self._known.move_to_end(key)
                    return found
            made = _encoded(image)
        except DataError as error:
            raise EngineError(str(error), kind="bad_media") from error
        with self._lock:
            if key not in self._known:
                self._known[key] = made
                self._total += len(made[1])
            while self._total > self._most and len(self._known) > 1:
                self._total -= len(self._known.popitem(last=False)[1][1])
        return made


def _encoded(image: Image) -> tuple[bytes, bytes]:
    picture = load_image(image).picture  # checks it, too
    raw = image_file(image)
    mime = _plain_mime(raw)
    if mime is None:
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        raw, mime = buffer.getvalue(), "image/png"
    return mime.encode(), base64.b64encode(raw)


def _plain_mime(raw: bytes) -> str | None:
    """The MIME type of a file that may go out as it is, else None."""
    import PIL.Image

    with PIL.Image.open(io.BytesIO(raw), formats=FORMATS) as opened:
        plain = opened.mode in ("RGB", "L") and not opened.has_transparency_data
        try:
            upright = opened.getexif().get(_ORIENTATION, 1) in (0, 1)
        except Exception:  # damaged EXIF of any kind: `core.media` leaves the picture as it is
            upright = True
        return _MIMES.get(opened.format or "") if plain and upright and _is_still(opened) else None


def _is_still(opened: "Picture") -> bool:
    """Whether there is one frame. They are not counted: hundreds of thousands in a TIFF would take hours."""
    try:
        opened.seek(1)
    except EOFError:
        return True
    except Exception:  # the next frame is damaged, in any way: only the first, which is sound, goes out
        return False
    return False
