"""Marks: spans in a response's text and boxes on its pictures, as forms send them, as they are stored, and their
similarity.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import orjson

Span = tuple[int, int]
Box = tuple[int, float, float, float, float]  # picture (from 0); left, top, width, height as shares of its sides
MOST_BOXES = 100
# a word, or a character of a script that has no spaces between words
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")
_GRID = 100  # cells of a picture's side in which boxes are compared
_LEAST, _MOST = 0.002, 1.0001  # of a picture's side
_BOX = "a box is a line of five numbers: picture, left, top, width, height in per cent"


def words_of(text: str) -> list[Span]:
    """The words of a text that can be marked, as characters from start to end (excluded)."""
    return [each.span() for each in _WORD.finditer(text)]


def spans_from(numbers: Sequence[str], text: str) -> str:
    """The label of marked words, neighbours joined: `[[start, end], ...]`; ValueError where no such word exists."""
    words = words_of(text)
    found: list[list[int]] = []
    before = -2
    if not all(each.isdecimal() and len(each) < 12 and int(each) < len(words) for each in numbers):
        raise ValueError("there is no such word")
    for number in sorted({int(each) for each in numbers}):
        if number == before + 1:
            found[-1][1] = words[number][1]
        else:
            found.append(list(words[number]))
        before = number
    return orjson.dumps(found).decode()


def boxes_from(lines: str, pictures: int) -> str:
    """The label of boxes, one a line: number of the picture (from 1), left, top, width, height in per cent of it.

    ValueError for a line that is not a box on an existing picture.
    """
    found = []
    for line in filter(str.strip, lines.splitlines()):
        try:
            picture, *ends = (float(each) for each in line.replace(",", " ").split())
            left, top, width, height = (each / 100 for each in ends)
        except ValueError:
            raise ValueError(_BOX) from None
        if picture not in range(1, pictures + 1):
            raise ValueError(_BOX)
        inside = min(left, top) >= 0 and left + width <= _MOST and top + height <= _MOST
        if not (inside and min(width, height) >= _LEAST):
            raise ValueError("a box has a size, and lies on its picture: from 0 to 100 per cent")
        found.append([int(picture) - 1, *(round(each, 4) for each in (left, top, width, height))])
    if len(found) > MOST_BOXES:
        raise ValueError(f"at most {MOST_BOXES} boxes")
    return orjson.dumps(sorted(found)).decode()


def span_alike(one: str, other: str) -> float:
    """Characters that both marked, as a share of those that either marked; 1 if neither marked any."""
    return _jaccard(*({i for start, end in orjson.loads(each) for i in range(start, end)} for each in (one, other)))


def box_alike(one: str, other: str) -> float:
    """The area in both raters' boxes as a share of the area in either's, over all pictures, on a grid of 100 by 100."""
    return _jaccard(*(_cells(each) for each in (one, other)))


def most_marked(labels: Sequence[str]) -> str:
    """The spans of characters that more than half of the raters marked."""
    counts = Counter(i for each in labels for start, end in orjson.loads(each) for i in range(start, end))
    found: list[list[int]] = []
    for place in sorted(i for i, n in counts.items() if 2 * n > len(labels)):
        if found and found[-1][1] == place:
            found[-1][1] += 1
        else:
            found.append([place, place + 1])
    return orjson.dumps(found).decode()


def _cells(label: str) -> set[int]:
    found: set[int] = set()
    for picture, left, top, width, height in orjson.loads(label):
        across = np.arange(round(left * _GRID), max(round((left + width) * _GRID), round(left * _GRID) + 1))
        down = np.arange(round(top * _GRID), max(round((top + height) * _GRID), round(top * _GRID) + 1))
        found.update((picture * _GRID * _GRID + (down[:, None] * _GRID + across)).ravel().tolist())
    return found


def _jaccard(one: set[int], other: set[int]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0
