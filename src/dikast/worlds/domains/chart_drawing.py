"""One chart: its values and how bars, lines, pies, axes and legends are drawn, in whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from dikast.worlds.domains.protocol import Picture
from dikast.worlds.drawing.raster import INK, RGB, fill, finish, write_text

LOOKS = ("bar", "line", "pie")
LEGEND_FITS = 72  # pixels of height that eight lines of a legend need
TOP = 100  # of the value axis


@dataclass(slots=True)
class Chart:
    """One series of values over letters. `look` is bar, line or pie; `colour` is for bars and lines without a legend.

    `legend`, if any, holds every letter's colour in the order of drawing, which is not alphabetical; the chart itself
    then has no letters. A pie's legend also gives the values but for the `hidden` letters: slices cannot be read to
    within five of a hundred, but which one is larger can be seen.
    """

    look: str
    values: dict[str, int]
    colour: str
    noise: int = 0
    overlay: str = ""
    seed: int = 0
    legend: list[tuple[str, str]] = field(default_factory=list)
    hidden: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The chart as JSON."""
        value = {name: getattr(self, name) for name in self.__slots__ if name != "hidden" or self.hidden}
        return {**value, "legend": [list(line) for line in self.legend]}


def draw_chart(chart: Chart, size: int) -> Picture:
    """The chart as an RGB picture of size x size pixels."""
    picture = np.full((size, size, 3), 248, dtype=np.int32)
    order = [(letter, hue) for letter, hue in chart.legend if letter in chart.values]
    right = size - 1 - (0 if not order else 35 if chart.look == "pie" and len(chart.hidden) < len(order) else 15)
    if order:
        _legend(picture, chart, right + 2)
    if chart.look == "pie":
        _pie(picture, [(chart.values[letter], hue) for letter, hue in order], right)
    else:
        _axes(picture, chart, right, order or [(letter, chart.colour) for letter in chart.values])
    if chart.overlay:
        write_text(picture, chart.overlay, *((2, size - 9) if chart.look == "pie" else (_left(size) + 4, 0)), 1)
    return finish(picture, chart.noise, chart.seed)


def _left(size: int) -> int:
    return max(size // 5, 19)


def _axes(picture: Any, chart: Chart, right: int, order: Sequence[tuple[str, str]]) -> None:
    """Bars or a line over both axes: a grid line every 25, and a letter under each value unless there is a legend."""
    size = picture.shape[0]
    left, top, bottom = _left(size), size // 12, size - 12
    for level in range(0, TOP + 1, 25):
        y = bottom - (bottom - top) * level // TOP
        fill(picture, left, y, right, y + 1, INK if level == 0 else (206, 206, 206))
        if level % 50 == 0:
            label = str(level)
            write_text(picture, label, left - 6 * len(label) - 1, max(0, y - 3), 1)
    fill(picture, left, top, left + 1, bottom, INK)
    wide = (right - left) // max(1, len(order))
    points = []
    for i, (letter, hue) in enumerate(order):
        x, y = left + i * wide + wide // 2, bottom - (bottom - top) * chart.values[letter] // TOP
        points.append((x, y))
        if not chart.legend:
            write_text(picture, letter, x - 2, bottom + 3, 1)
        if chart.look == "bar":
            fill(picture, x - wide // 3, y, x + wide // 3 + 1, bottom, RGB[hue])
    if chart.look == "line":
        _line(picture, points, RGB[chart.colour])


def _legend(picture: Any, chart: Chart, x: int) -> None:
    """A legend entry for every letter, alphabetically: its colour, and for a pie its value."""
    high = min(11, (picture.shape[0] - 2) // len(chart.legend))
    for i, (letter, hue) in enumerate(sorted(chart.legend)):
        y = 1 + i * high
        fill(picture, x, y + 1, x + 5, y + 6, RGB[hue])
        write_text(picture, letter, x + 7, y, 1)
        if chart.look == "pie" and letter not in chart.hidden:
            write_text(picture, str(chart.values[letter]), x + 15, y, 1)


def _pie(picture: Any, slices: Sequence[tuple[int, str]], right: int) -> None:
    """Slices clockwise from the top, proportional to their values. Cross products decide which slice a pixel is in."""
    if not slices:
        return
    size = picture.shape[0]
    radius = min(right, size) // 2 - 2
    at = 2 * np.arange(size, dtype=np.int64) + 1
    x, y = (at - right)[None, :] + 0 * at[:, None], (at - size)[:, None] + 0 * at[None, :]  # in half pixels
    inside = x * x + y * y <= 4 * radius * radius
    passed = np.zeros((size, size), dtype=np.int64)
    total = sum(n for n, _ in slices)
    for edge in list(accumulate(n for n, _ in slices))[:-1]:
        turn = 3600 * edge // total  # tenths of a degree
        ahead = x * _sine(turn + 900) + y * _sine(turn) >= 0
        passed += np.where(x > 0, ahead & (turn < 1800), ahead | (turn < 1800))
    for i, (_, hue) in enumerate(slices):
        picture[inside & (passed == i)] = RGB[hue]


def _sine(tenths: int) -> int:
    """1000 x the sine of an angle in tenths of a degree, by Bhaskara's formula (error below 2), in integers."""
    tenths %= 3600
    half, sign = tenths % 1800, 1 if tenths < 1800 else -1
    arc = half * (1800 - half)
    return sign * (4000 * arc // (4050000 - arc))


def _line(picture: Any, points: Sequence[tuple[int, int]], colour: tuple[int, int, int]) -> None:
    """A line through the points, a square at each."""
    for (x0, y0), (x1, y1) in pairwise(points):
        for x in range(x0, x1 + 1):
            y = y0 + (y1 - y0) * (x - x0) // max(1, x1 - x0)
            after = y0 + (y1 - y0) * (min(x + 1, x1) - x0) // max(1, x1 - x0)
            fill(picture, x, min(y, after), x + 1, max(y, after) + 1, colour)
    for x, y in points:
        fill(picture, x - 1, y - 1, x + 2, y + 2, INK)
