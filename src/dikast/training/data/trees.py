"""Rows that begin alike, laid out as a tree whose shared tokens stand once."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

_LEAST = 16  # tokens; fewer are not worth a segment of their own, and are computed again


class Tree:
    """A packed layout of rows. `ends` and `parents` are those of its segments, as `segment_table` takes them.

    `places[i]` is where each token of row i stands, (its tokens,). Rows are token ids; where a picture or clip stands,
    ids are replaced by its key, so that only equal ones are shared.
    """

    def __init__(self, rows: Sequence[NDArray[np.int64]]) -> None:
        self.ends: list[int] = []
        self.parents: list[int] = []
        self.places = [np.zeros(len(row), np.int64) for row in rows]
        self._rows = rows
        self._grow(sorted(range(len(rows)), key=lambda i: rows[i].tolist()), 0, -1)

    @property
    def tokens(self) -> int:
        """Tokens that are computed."""
        return self.ends[-1]

    def _grow(self, members: list[int], start: int, parent: int) -> None:
        """Lay out what follows token `start` of sorted rows that are equal up to there."""
        rows = self._rows
        common = _agreed(rows[members[0]], rows[members[-1]], start)  # of the rows in between as well: they are sorted
        ended = [i for i in members if len(rows[i]) == common]
        if common - start >= _LEAST or len(ended) == len(members):
            start, parent = self._add(members, start, common, parent)
        elif ended:
            self._add(ended, start, common, parent)
        rest = [i for i in members if len(rows[i]) > common]
        for _, branch in groupby(rest, lambda i: int(rows[i][common])):
            self._grow(list(branch), start, parent)

    def _add(self, members: list[int], start: int, end: int, parent: int) -> tuple[int, int]:
        """A segment of tokens `start` to `end` of rows; returns where the next begins in them, and its number."""
        at = self.ends[-1] if self.ends else 0
        for i in members:
            self.places[i][start:end] = at + np.arange(end - start)
        self.ends.append(at + end - start)
        self.parents.append(parent)
        return end, len(self.ends) - 1


def _agreed(one: NDArray[np.int64], other: NDArray[np.int64], start: int) -> int:
    shortest = min(len(one), len(other))
    apart = np.flatnonzero(one[start:shortest] != other[start:shortest])
    return start + int(apart[0]) if len(apart) else shortest
