"""Prefix sharing: rows with a common prefix as a prefix tree (trie) whose shared tokens are computed once.

The tree is cut into forward passes; a shared prefix that does not fit one pass is cut as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

_LEAST = 16  # tokens; shorter common prefixes do not get a segment, and are computed again

Row = NDArray[np.int64]


class Tree:
    """A packed layout of rows. Everything that follows a segment in any row comes right after it (preorder).

    `ends` and `parents` are those of its segments, as `segment_table` takes them; `firsts` are rows that go through
    them. `places[i]` is where each token of row i stands, (its tokens,), and `leaves[i]` is its last segment, -1 for a
    row without tokens. Rows are token ids; where a picture or clip stands, ids are replaced by its key, so that only
    equal ones are shared. `least`: rows share a segment if they have as many tokens in common. `groups`: a name for
    each row; rows of different names share nothing.
    """

    def __init__(self, rows: Sequence[Row], *, least: int = _LEAST, groups: Sequence[object] | None = None) -> None:
        self.ends: list[int] = []
        self.parents: list[int] = []
        self.firsts: list[int] = []
        self.places = [np.zeros(len(row), np.int64) for row in rows]
        self.leaves = [-1] * len(rows)
        self._rows, self._least = rows, least
        members: dict[object, list[int]] = {}
        for i in sorted_rows(rows):
            members.setdefault(None if groups is None else groups[i], []).append(i)
        growing = [(each, 0, -1) for each in reversed(members.values())]
        while growing:
            growing.extend(reversed(self._grow(*growing.pop())))

    @property
    def tokens(self) -> int:
        """Tokens that are computed."""
        return self.ends[-1] if self.ends else 0

    def _grow(self, members: list[int], start: int, parent: int) -> list[tuple[list[int], int, int]]:
        """Lay out what sorted rows that are equal up to token `start` share next; returns the branches."""
        rows = self._rows
        common = agreed(rows[members[0]], rows[members[-1]], start)  # of the rows in between as well: they are sorted
        ended = [i for i in members if len(rows[i]) == common]
        if common - start >= self._least or (ended and len(ended) == len(members)):
            start, parent = self._add(members, start, common, parent)
        elif ended:
            self._add(ended, start, common, parent)
        rest = [i for i in members if len(rows[i]) > common]
        return [(list(branch), start, parent) for _, branch in groupby(rest, lambda i: int(rows[i][common]))]

    def _add(self, members: list[int], start: int, end: int, parent: int) -> tuple[int, int]:
        """A segment of tokens `start` to `end` of rows; returns where the next begins in them, and its number."""
        if start == end:  # rows that end where their parent does, or have no tokens
            number = parent
        else:
            at = self.tokens
            for i in members:
                self.places[i][start:end] = at + np.arange(end - start)
            self.ends.append(at + end - start)
            self.parents.append(parent)
            self.firsts.append(members[0])
            number = len(self.ends) - 1
        for i in members:
            if len(self._rows[i]) == end:
                self.leaves[i] = number
        return end, number


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens `start` to `end` of row `row`; `parent` is the number of the segment before it in the row, or -1."""

    row: int
    start: int
    end: int
    parent: int


@dataclass(frozen=True, slots=True)
class Walk:
    """A tree cut into forward passes of a bounded number of tokens, in preorder.

    `segments` are those of the tree, cut where a pass ends; `passes` are ranges of them. `leaves[i]` is the last
    segment of row i, and `until[n]` is the last pass that needs segment n: its own unless others continue it. These
    are the segments after it up to `stops[n]`.
    """

    segments: list[Segment]
    passes: list[range]
    leaves: list[int]
    until: list[int]
    stops: list[int]

    @property
    def held(self) -> int:
        """The maximum number of tokens whose keys and values are held at once between passes."""
        change = np.zeros(len(self.passes) + 1, np.int64)
        for number, part in enumerate(self.passes):
            for n in part:
                if self.until[n] > number:
                    tokens = self.segments[n].end - self.segments[n].start
                    change[number] += tokens
                    change[self.until[n]] -= tokens
        return int(change.cumsum().max())


def walk(tree: Tree, most: int) -> Walk:
    """Cut a tree into passes of at most `most` tokens."""
    segments: list[Segment] = []
    passes: list[range] = []
    last = list[int]()  # by segment of the tree, the last of the segments that it was cut into
    begun, used, begin = 0, 0, 0
    for end, parent, row in zip(tree.ends, tree.parents, tree.firsts, strict=True):
        before = last[parent] if parent >= 0 else -1
        at = segments[before].end if before >= 0 else 0
        left = end - begin
        begin = end
        while left:
            if used == most:
                passes.append(range(begun, len(segments)))
                begun, used = len(segments), 0
            taken = min(left, most - used)
            segments.append(Segment(row, at, at + taken, before))
            before, at, left, used = len(segments) - 1, at + taken, left - taken, used + taken
        last.append(before)
    if begun < len(segments):
        passes.append(range(begun, len(segments)))
    until = [number for number, part in enumerate(passes) for _ in part]
    stops = [n + 1 for n in range(len(segments))]
    for n in range(len(segments) - 1, -1, -1):
        if (parent := segments[n].parent) >= 0:
            until[parent] = max(until[parent], until[n])
            stops[parent] = max(stops[parent], stops[n])
    return Walk(segments, passes, [last[leaf] if leaf >= 0 else -1 for leaf in tree.leaves], until, stops)


def sorted_rows(rows: Sequence[Row]) -> list[int]:
    """The indices of rows, those with common prefixes next to each other; equal ones keep their order."""
    keys = [row.astype(">i8").tobytes() for row in rows]
    return sorted(range(len(rows)), key=keys.__getitem__)


def agreed(one: Row, other: Row, start: int = 0) -> int:
    """The length of the common prefix of two rows, of which `start` tokens are known to be equal."""
    shortest = min(len(one), len(other))
    apart = np.flatnonzero(one[start:shortest] != other[start:shortest])
    return start + int(apart[0]) if len(apart) else shortest


def parting(rows: Sequence[Row]) -> int:
    """Where to cut sorted rows, within their middle half, so that the parts share least; of equally good places the
    most central one.
    """
    middle = range(max(1, len(rows) // 4), len(rows) - len(rows) // 4)
    return min(middle, key=lambda n: (agreed(rows[n - 1], rows[n]), abs(2 * n - len(rows))))
