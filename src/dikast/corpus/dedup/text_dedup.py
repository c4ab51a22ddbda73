"""Deduplication of texts, exact and near: hashes of case-folded words, and MinHash with locality-sensitive hashing.

`datasketch` (extra `dedup`) does the hashing and chooses the bands. Its own index takes 3 kB a text; this one finds the
same and takes about 1: 256 bytes of signature, the rest for its bands, the hash of its words and its name.
"""

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.core.canonical import fingerprint
from dikast.core.errors import require
from dikast.corpus.observations import words_of

_HASHES = 64
_RUN = 3  # words that are hashed together


@dataclass(frozen=True, slots=True)
class Match:
    """The name of an earlier text. `likeness` is 1 for the same words, else the estimated Jaccard index."""

    name: str
    likeness: float


class Index:
    """An index of texts that finds near duplicates: those that share at least `likeness` of their word trigrams.

    With `near` false only equal words match, and datasketch is not needed.
    """

    def __init__(self, likeness: float = 0.8, *, near: bool = True) -> None:
        self.likeness, self.near = likeness, near
        self._exact: dict[bytes, str] = {}
        if near:
            self._sketch = require("datasketch", "dedup")
            self._bands = self._sketch.MinHashLSH(threshold=likeness, num_perm=_HASHES).hashranges
            self._names: list[str] = []
            self._signatures = np.zeros((64, _HASHES), np.uint32)
            self._last: dict[int, int] = {}  # by a band of a signature: the last text that has it
            self._before = array("i")  # by text and band: the one before that has the same band, -1 for none

    def __len__(self) -> int:
        return len(self._exact)

    def find(self, text: str) -> Match | None:
        """The most similar text added before, None if none is similar enough; texts without words match nothing."""
        return self._look(text)[0]

    def add(self, text: str, name: str) -> Match | None:
        """As `find`; a text that matches nothing is added under `name`, which must be new."""
        match, words, hashed = self._look(text)
        if match is None and words:
            self._exact[_digest(words)] = name
            if hashed is not None:
                self._insert(name, hashed)
        return match

    def _insert(self, name: str, hashed: NDArray[np.uint32]) -> None:
        number = len(self._names)
        if number == len(self._signatures):
            self._signatures = np.concatenate([self._signatures, np.zeros_like(self._signatures)])
        self._signatures[number] = hashed
        self._names.append(name)
        for band in self._banded(hashed):
            self._before.append(self._last.get(band, -1))
            self._last[band] = number

    def _banded(self, hashed: NDArray[np.uint32]) -> Iterator[int]:
        """A number of 64 bits for each band of a signature."""
        for number, (start, end) in enumerate(self._bands):
            told = hashlib.blake2b(hashed[start:end].tobytes(), digest_size=8, person=bytes([number]))
            yield int.from_bytes(told.digest())

    def _alike(self, hashed: NDArray[np.uint32]) -> set[int]:
        """The texts that share a band."""
        found = set[int]()
        for band, key in enumerate(self._banded(hashed)):
            number = self._last.get(key, -1)
            while number >= 0:
                found.add(number)
                number = self._before[number * len(self._bands) + band]
        return found

    def _look(self, text: str) -> tuple[Match | None, list[str], Any]:
        words = words_of(text)
        if not words:
            return None, words, None
        same = self._exact.get(_digest(words))
        if same is not None:
            return Match(same, 1.0), words, None
        if not self.near:
            return None, words, None
        hashed = self._hashed(words)
        likes = ((float((self._signatures[n] == hashed).mean()), self._names[n]) for n in self._alike(hashed))
        best = max(likes, default=(0.0, ""))
        return (Match(best[1], best[0]) if best[0] >= self.likeness else None), words, hashed

    def _hashed(self, words: list[str]) -> NDArray[np.uint32]:
        hashed = self._sketch.MinHash(num_perm=_HASHES, seed=1)
        runs = {" ".join(words[i : i + _RUN]) for i in range(max(1, len(words) - _RUN + 1))}
        hashed.update_batch([run.encode() for run in sorted(runs)])
        return np.asarray(hashed.hashvalues, np.uint32)


def _digest(words: list[str]) -> bytes:
    return bytes.fromhex(fingerprint(words))
