"""Changes of images: blanked, replaced by noise, captioned. Written as PNG files next to the probe's items."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from dikast.core.media import load_image
from dikast.core.part import Image

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_GREY = (128, 128, 128)


def blanked(image: Image, folder: str) -> Image:
    """All grey, of the same size."""
    from PIL import Image as Pictures

    return _kept(Pictures.new("RGB", load_image(image).size, _GREY), folder)


def noised(image: Image, folder: str) -> Image:
    """Every pixel replaced by noise, seeded by the image's hash."""
    import numpy as np
    from PIL import Image as Pictures

    loaded = load_image(image)
    width, height = loaded.size
    rng = np.random.default_rng(int(loaded.sha256[:16], 16))
    pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return _kept(Pictures.fromarray(pixels, "RGB"), folder)


def painted(image: Image, words: str, folder: str) -> Image:
    """`words` in black on a white strip that is added at the bottom, so that nothing is covered."""
    from PIL import Image as Pictures
    from PIL import ImageDraw, ImageFont

    loaded = load_image(image)
    width, height = loaded.size
    strip = max(14, height // 8)
    canvas = Pictures.new("RGB", (width, height + strip), (255, 255, 255))
    canvas.paste(loaded.picture, (0, 0))
    font = ImageFont.load_default(size=max(8, min(strip - 4, 2 * width // len(words))))
    ImageDraw.Draw(canvas).text((3, height + 2), words, fill=(0, 0, 0), font=font)
    return _kept(canvas, folder)


def _kept(picture: "Picture", folder: str) -> Image:
    """The image as a file named by the hash of its pixels, so that the same image is written once."""
    name = hashlib.sha256(repr(picture.size).encode() + picture.tobytes()).hexdigest()[:20]
    path = Path(folder) / f"{name}.png"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path, "PNG")
    return Image(str(path.resolve()))
