"""Deduplication of texts, exact and near: hashes of case-folded words, and MinHash with locality-sensitive hashing.

`datasketch` (extra `dedup`) does the hashing. Its index takes about 1.5 kB a text.
"""

from dataclasses import dataclass
from typing import Any

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
        self._exact: dict[str, str] = {}
        self._hashes: dict[str, Any] = {}
        if near:
            self._sketch = require("datasketch", "dedup")
            self._lsh = self._sketch.MinHashLSH(threshold=likeness, num_perm=_HASHES)

    def __len__(self) -> int:
        return len(self._exact)

    def find(self, text: str) -> Match | None:
        """The most similar text added before, None if none is similar enough; texts without words match nothing."""
        return self._look(text)[0]

    def add(self, text: str, name: str) -> Match | None:
        """As `find`; a text that matches nothing is added under `name`, which must be new."""
        match, words, hashed = self._look(text)
        if match is None and words:
            self._exact[fingerprint(words)] = name
            if hashed is not None:
                self._hashes[name] = hashed
                self._lsh.insert(name, hashed)
        return match

    def _look(self, text: str) -> tuple[Match | None, list[str], Any]:
        words = words_of(text)
        if not words:
            return None, words, None
        same = self._exact.get(fingerprint(words))
        if same is not None:
            return Match(same, 1.0), words, None
        if not self.near:
            return None, words, None
        hashed = self._hashed(words)
        likes = [(hashed.jaccard(self._hashes[name]), name) for name in self._lsh.query(hashed)]
        best = max(likes, default=(0.0, ""))
        return (Match(best[1], best[0]) if best[0] >= self.likeness else None), words, hashed

    def _hashed(self, words: list[str]) -> Any:
        hashed = self._sketch.MinHash(num_perm=_HASHES, seed=1)
        runs = {" ".join(words[i : i + _RUN]) for i in range(max(1, len(words) - _RUN + 1))}
        hashed.update_batch([run.encode() for run in sorted(runs)])
        return hashed
