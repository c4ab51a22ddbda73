"""Fifty templates of levels: ten wordings of lost points, times five ways to write a range."""

from collections.abc import Sequence
from typing import NamedTuple


class _Lost(NamedTuple):
    """The wording of a level's lost points: none, one, and more of them."""

    none: str
    one: str
    many: str


_LOST = (
    _Lost("nothing lost", "{n} point lost", "{n} points lost"),
    _Lost("no points off", "{n} point off", "{n} points off"),
    _Lost("no cost", "a cost of {n}", "a cost of {n}"),
    _Lost("no points deducted", "{n} point deducted", "{n} points deducted"),
    _Lost("free of deductions", "{n} point taken off", "{n} points taken off"),
    _Lost("nothing taken off", "{n} taken off", "{n} taken off"),
    _Lost("a total of 0", "a total of {n}", "a total of {n}"),
    _Lost("no penalty", "a penalty of {n}", "a penalty of {n}"),
    _Lost("0 points charged", "{n} point charged", "{n} points charged"),
    _Lost("nothing charged", "{n} charged", "{n} charged"),
)
_RANGES = (  # from 0 to n, from m to n, more than n
    ("at most {n}", "{m} to {n}", "more than {n}"),
    ("up to {n}", "{m}-{n}", "over {n}"),
    ("0 to {n}", "from {m} to {n}", "{m} or more"),
    ("{n} or less", "between {m} and {n}", "above {n}"),
    ("no more than {n}", "at least {m} but no more than {n}", "at least {m}"),
)
TEMPLATES = len(_LOST) * len(_RANGES)
SEEN = tuple(i for i in range(TEMPLATES) if i % 7 != 3)
HELD_OUT = tuple(i for i in range(TEMPLATES) if i % 7 == 3)


def levels(cuts: Sequence[int], template: int) -> list[str]:
    """The description of every level, best first. `cuts`: the highest penalty of each level but the worst."""
    lost, (most, between, above) = _LOST[template // len(_RANGES)], _RANGES[template % len(_RANGES)]
    found, low = [], 0
    for cut in cuts:
        if cut == 0:
            found.append(lost.none)
        elif low == cut:
            found.append((lost.one if cut == 1 else lost.many).format(n=cut))
        else:
            said = (most if low == 0 else between).format(m=low, n=cut)
            found.append((lost.one if low == 0 and cut == 1 else lost.many).format(n=said))
        low = cut + 1
    last = above.format(n=low - 1, m=low)
    return [*found, (lost.one if last.endswith(" 1") else lost.many).format(n=last)]
