"""An integer rasteriser: the same scene gives the same pixels on every machine.

Shapes are sampled in integers on a grid four times finer than the pixels; the number of a pixel's 16 samples inside the
shape is its cover (anti-aliasing). No floating point and no drawing library.
"""

import struct
import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dikast.worlds.domains.protocol import Picture
from dikast.worlds.domains.scene_graph import Scene, Thing
from dikast.worlds.drawing.font import text_mask
from dikast.worlds.sampling.rng import Stream, noise_of

RGB = {
    "red": (214, 40, 40),
    "orange": (243, 140, 30),
    "yellow": (240, 218, 60),
    "green": (62, 160, 66),
    "teal": (44, 182, 176),
    "blue": (48, 88, 214),
    "purple": (128, 58, 172),
    "pink": (244, 136, 190),
}
INK = (40, 40, 44)
_RADIUS = {"small": 25, "medium": 35, "large": 46}  # hundredths of a cell
_BACKGROUND = ((238, 238, 234), (196, 212, 230))
_SPECK = ((204, 204, 200), (168, 184, 204))
_COVER = (150, 150, 154)
_STAR = tuple(
    (x, y)
    for x, y in (
        (0, -1000),
        (235, -324),
        (951, -309),
        (380, 124),
        (588, 809),
        (0, 400),
        (-588, 809),
        (-380, 124),
        (-951, -309),
        (-235, -324),
    )
)


def _polygon(points: tuple[tuple[int, int], ...], x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples lie inside, by the crossing rule; `points` in thousandths of the radius, x and y likewise."""
    inside = np.zeros(x.shape, dtype=bool)
    for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1], strict=True):
        spans = (y1 > y) != (y2 > y)
        side = (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)
        inside ^= spans & ((side > 0) if y2 > y1 else (side < 0))
    return inside


def _inside(shape: str, x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples are in a shape of radius 1000 at the origin."""
    square = x * x + y * y
    if shape == "circle":
        return square <= 940 * 940
    if shape == "ring":
        return (square <= 980 * 980) & (square >= 560 * 560)
    if shape == "square":
        return (abs(x) <= 820) & (abs(y) <= 820)
    if shape == "diamond":
        return 3 * abs(x) + 2 * abs(y) <= 2000
    if shape == "cross":
        return ((abs(x) <= 300) | (abs(y) <= 300)) & (abs(x) <= 950) & (abs(y) <= 950)
    if shape == "triangle":
        return _polygon(((0, -960), (980, 800), (-980, 800)), x, y)
    if shape == "star":
        return _polygon(_STAR, x, y)
    lobes = (abs(x) - 480) ** 2 + (y + 350) ** 2 <= 500 * 500
    point = (y >= -350) & (y <= 950) & (abs(x) * 1300 <= 980 * (950 - y))
    return lobes | point


@lru_cache(maxsize=16384)
def _stamp(shape: str, texture: str, radius: int, phase_x: int, phase_y: int, style: int) -> tuple[Picture, Picture]:
    """Cover (0 to 16) of the shape, and of the dark part of its texture; radius and phases in quarter pixels."""
    half = radius // 4 + 2
    at = np.arange(-4 * half, 4 * half, dtype=np.int64)
    x = ((at - phase_x)[None, :] * 2 + 1) * 500 // radius + np.zeros((len(at), 1), dtype=np.int64)
    y = ((at - phase_y)[:, None] * 2 + 1) * 500 // radius + np.zeros((1, len(at)), dtype=np.int64)
    inside = _inside(shape, x, y)
    u, v = (at - phase_x)[None, :] + radius + 4000, (at - phase_y)[:, None] + radius + 4000
    period = max(14, radius * 5 // 8)
    if texture == "striped":
        dark = ((v if style == 0 else u) + np.zeros_like(x)) % period * 2 >= period
    elif texture == "dotted":
        a, b = u % period - period // 2, v % period - period // 2
        dark = 11 * (a * a + b * b) <= period * period
    else:
        dark = np.zeros_like(inside)
    return _pool(inside), _pool(inside & dark)


def _pool(mask: NDArray[np.bool_]) -> Picture:
    side = mask.shape[0] // 4
    pooled: Picture = mask.reshape(side, 4, side, 4).sum((1, 3)).astype(np.uint8)
    return pooled


def blend(picture: NDArray[np.int32], cover: Picture, colour: tuple[int, int, int], top: int, left: int) -> None:
    """Blend a colour in at (top, left) by cover out of 16; parts beyond the edge are clipped."""
    height, width = cover.shape
    y0, x0 = max(0, -top), max(0, -left)
    y1, x1 = min(height, picture.shape[0] - top), min(width, picture.shape[1] - left)
    if y1 <= y0 or x1 <= x0:
        return
    part = cover[y0:y1, x0:x1, None].astype(np.int32)
    into = picture[top + y0 : top + y1, left + x0 : left + x1]
    into += (np.array(colour, dtype=np.int32) - into) * part // 16


def draw_thing(picture: NDArray[np.int32], thing: Thing, grid: int, style: int = 0) -> None:
    """One thing at its place."""
    size = picture.shape[0]
    radius = max(8, size * 4 * _RADIUS[thing.size] // (100 * grid))
    cx = size * 4 * (100 * thing.col + 50 + thing.dx) // (100 * grid)
    cy = size * 4 * (100 * thing.row + 50 + thing.dy) // (100 * grid)
    body, dark = _stamp(thing.shape, thing.texture, radius, cx % 4, cy % 4, style)
    if style:
        body, dark = (body >= 8).astype(np.uint8) * 16, (dark >= 8).astype(np.uint8) * 16
    half = body.shape[0] // 2
    colour = RGB[thing.colour]
    blend(picture, body, colour, cy // 4 - half, cx // 4 - half)
    if thing.texture != "plain":
        r, g, b = colour
        blend(picture, dark, (r * 2 // 5, g * 2 // 5, b * 2 // 5), cy // 4 - half, cx // 4 - half)


def fill(picture: NDArray[np.int32], x0: int, y0: int, x1: int, y1: int, colour: tuple[int, int, int]) -> None:
    """A filled rectangle, right and bottom edge excluded."""
    picture[max(0, y0) : max(0, y1), max(0, x0) : max(0, x1)] = colour


def write_text(
    picture: NDArray[np.int32], text: str, x: int, y: int, scale: int, colour: tuple[int, int, int] = INK
) -> None:
    """Text with its top left corner at (x, y)."""
    blend(picture, text_mask(text, scale).astype(np.uint8) * 16, colour, y, x)


def draw_scene(scene: Scene, size: int) -> Picture:
    """The scene as an RGB picture of size x size pixels."""
    picture = np.empty((size, size, 3), dtype=np.int32)
    picture[:] = _BACKGROUND[scene.style]
    if scene.clutter:
        _specks(picture, scene)
    for thing in scene.things:
        draw_thing(picture, thing, scene.grid, scene.style)
    for index in scene.bars:
        _bar(picture, scene.things[index], scene.grid)
    for col, row in scene.covers:
        _cover(picture, col, row, scene.grid)
    if scene.overlay:
        scale = max(1, size // 64)
        wide, high = (6 * len(scene.overlay) + 3) * scale, 11 * scale
        x, y = (size - wide) // 2, (0, size - high)[scene.seed % 2]
        fill(picture, x, y, x + wide, y + high, (250, 250, 250))
        write_text(picture, scene.overlay, x + 2 * scale, y + 2 * scale, scale)
    return finish(picture, scene.noise, scene.seed)


def finish(picture: NDArray[np.int32], noise: int, seed: int) -> Picture:
    """Add grey noise from -`noise` to `noise` and clip to 0..255."""
    if noise:
        off = noise_of(seed, picture.shape[:2]).astype(np.int32) * (2 * noise + 1) // 256 - noise
        picture = np.clip(picture + off[:, :, None], 0, 255)
    return picture.astype(np.uint8)


def _specks(picture: NDArray[np.int32], scene: Scene) -> None:
    size, rng = picture.shape[0], Stream(scene.seed, "specks")
    for _ in range(scene.clutter):
        x, y = rng.below(size), rng.below(size)
        wide, high = ((1, 1), (3, 1), (1, 3), (2, 2))[rng.below(4)]
        fill(picture, x, y, x + wide, y + high, _SPECK[scene.style])


def _bar(picture: NDArray[np.int32], thing: Thing, grid: int) -> None:
    """A thin grey bar across the upper part of a thing; it hides no more than a fifth of it."""
    size = picture.shape[0]
    cell = size // grid
    y = size * (100 * thing.row + 42 + thing.dy) // (100 * grid)
    fill(picture, thing.col * cell, y, (thing.col + 1) * cell, y + max(1, cell // 12), _COVER)


def _cover(picture: NDArray[np.int32], col: int, row: int, grid: int) -> None:
    size = picture.shape[0]
    x0, x1, y0, y1 = size * col // grid, size * (col + 1) // grid, size * row // grid, size * (row + 1) // grid
    fill(picture, x0, y0, x1, y1, _COVER)
    for k in range(x0 + y0, x1 + y1, 5):
        for x in range(max(x0, k - y1 + 1), min(x1, k - y0 + 1)):
            picture[k - x, x] = (118, 118, 122)


def png(picture: Picture) -> bytes:
    """The picture as a PNG file. Only its decoded pixels are guaranteed to stay the same, not its bytes."""
    height, width = picture.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)
    rows[:, 1:] = picture.reshape(height, -1)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(rows.tobytes(), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
