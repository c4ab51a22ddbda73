"""The vocabulary of scenes: properties of things, held-out pairs, and distances between words."""

import re

_AN = re.compile(r"\b([Aa]) (?=[aeiou])")
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "star", "ring", "heart")
COLOURS = ("red", "orange", "yellow", "green", "teal", "blue", "purple", "pink")  # in the order of the colour wheel
SIZES = ("small", "medium", "large")
TEXTURES = ("plain", "striped", "dotted")
DIRECTIONS = ("left of", "right of", "above", "below")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
REGIONS = ("top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right")
CORNERS = ("top left", "top right", "bottom left", "bottom right")
PLURALS = {shape: "crosses" if shape == "cross" else f"{shape}s" for shape in SHAPES}

# Twelve of the 64 pairs; every colour and every shape keeps at least six partners.
HELD_OUT_PAIRS = frozenset(
    [(COLOURS[(3 * i + 1) % 8], shape) for i, shape in enumerate(SHAPES)]
    + [(COLOURS[(3 * i + 4) % 8], shape) for i, shape in enumerate(SHAPES) if i % 2 == 0]
)


def sentence_of(template: str, first: object, second: object) -> str:
    """A sentence about two things: `a` before a vowel becomes `an`, and the first letter is a capital."""
    text = _AN.sub(r"\1n ", template.format(a=first, b=second))
    return text[0].upper() + text[1:]


def colour_steps(a: str, b: str) -> int:
    """Steps between two colours on the wheel of eight, 0 to 4."""
    apart = abs(COLOURS.index(a) - COLOURS.index(b))
    return min(apart, 8 - apart)


def third(index: int, grid: int) -> int:
    """0, 1 or 2: the first row or column of the grid, one in between, the last."""
    return 0 if index == 0 else 2 if index == grid - 1 else 1


def region_of(col: int, row: int, grid: int) -> str:
    """The region a grid cell lies in."""
    return REGIONS[3 * third(row, grid) + third(col, grid)]


def region_steps(a: str, b: str) -> int:
    """Steps between two regions, sideways plus up or down, 0 to 4."""
    i, j = REGIONS.index(a), REGIONS.index(b)
    return abs(i // 3 - j // 3) + abs(i % 3 - j % 3)
