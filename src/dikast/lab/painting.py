"""Sentences in pictures: what a judge reads that looks at them."""

import hashlib
import textwrap
from dataclasses import replace
from pathlib import Path

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.media import load_image
from dikast.core.part import Image, Part, Turn

_SIZE = 8  # pixels of a letter's height
_LINE = 9
_LINES = 2  # room for so many at least, so that pictures with different words are alike


def with_sentence(item: Item, words: str, folder: Path) -> Item:
    """The item with `words` in black on a white strip over the bottom of each of its pictures, which keep their size.

    The new pictures are written to `folder`. UserError for an item without a picture.
    """
    if not item.images:
        raise UserError(f"in_picture: item {item.id!r} has no picture to write on")

    def painted(part: Part) -> Part:
        return _painted(part, words, folder) if isinstance(part, Image) else part

    turns = (Turn(turn.role, tuple(map(painted, turn.content))) for turn in item.instruction)
    return replace(item, instruction=tuple(turns))


def _painted(image: Image, words: str, folder: Path) -> Image:
    from PIL import ImageDraw, ImageFont

    loaded = load_image(image)
    width, height = loaded.size
    font = ImageFont.load_default(size=_SIZE)
    lines = textwrap.wrap(words, max(8, int(width / font.getlength("n"))))
    canvas, top = loaded.picture.convert("RGB"), height - _LINE * max(_LINES, len(lines)) - 2
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((0, top, width, height), fill=(255, 255, 255))
    draw.text((2, top), "\n".join(lines), fill=(0, 0, 0), font=font, spacing=_LINE - _SIZE)
    name = hashlib.sha256(repr(canvas.size).encode() + canvas.tobytes()).hexdigest()[:20]
    folder.mkdir(parents=True, exist_ok=True)
    canvas.save(folder / f"{name}.png", "PNG")
    return Image(f"{folder.name}/{name}.png", str(folder.parent))
