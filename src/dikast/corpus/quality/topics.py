"""Topics of instructions: clusters of those that share rare words (leader clustering of tf-idf vectors)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from dikast.corpus.observations import words_of

LIKENESS = 0.25  # least cosine similarity to the first instruction (leader) of a topic
_BLOCK = 512
_COMMON = 0.8  # words in more than this share of the instructions are ignored
_SHOWN = 4
_NUMBER = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Topics:
    """The topic, from 0, of each text, and a name for each topic: the highest-weighted words of its leader."""

    of: NDArray[np.int64]
    names: tuple[str, ...]


def topics(texts: Sequence[str], likeness: float = LIKENESS) -> Topics:
    """Leader clustering: each text joins the most similar earlier leader, or becomes a leader itself.

    Similar: the cosine of tf-idf vectors (tf 1, idf ln(n / df)) is at least `likeness`. Words in over four fifths of
    the texts, in one text alone, or with digits are left out; with fewer than 20 texts no word is too common. A text
    with no words left is a topic of its own. Only words are compared, not meanings: two wordings of one question are
    two topics, and the order of the texts matters.
    """
    numbers: dict[str, int] = {}
    rows = [
        np.array([numbers.setdefault(w, len(numbers)) for w in sorted(set(words_of(text))) if not _NUMBER.search(w)])
        for text in texts
    ]
    names = list(numbers)
    table = _weighed(rows, len(names))
    leaders: list[csr_array] = []
    at: list[int] = []  # the leader of each topic
    of = np.zeros(len(texts), np.int64)
    for start in range(0, len(texts), _BLOCK):
        block = table[start : start + _BLOCK]
        best, place = _nearest(block, leaders)
        new: list[int] = []
        near = (block @ block.T).toarray()
        for i in range(block.shape[0]):
            if new:
                closest = int(near[i, new].argmax())
                if near[i, new[closest]] > best[i]:
                    best[i], place[i] = near[i, new[closest]], len(at) - len(new) + closest
            if best[i] >= likeness:
                of[start + i] = place[i]
            else:
                of[start + i] = len(at)
                at.append(start + i)
                new.append(i)
        if new:
            leaders.append(block[new])
    return Topics(of, tuple(_name(table, i, names) for i in at))


def _weighed(rows: list[NDArray[np.int64]], width: int) -> csr_array:
    """Rows of idf weights, normalised to length 1 (or 0)."""
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    columns = np.concatenate(rows).astype(np.int64) if width else np.zeros(0, np.int64)
    seen, n = np.bincount(columns, minlength=width), len(rows)
    weight = np.log(n / np.maximum(1, seen))
    weight[(seen < 2) | ((seen > _COMMON * n) & (n >= 20))] = 0
    table = csr_array((weight[columns], columns, starts), shape=(n, max(1, width)))
    table.eliminate_zeros()
    norms = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
    counts = np.diff(table.indptr)
    table.data /= np.repeat(np.maximum(norms, 1e-12), counts)
    return table


def _nearest(block: csr_array, leaders: list[csr_array]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each row the largest cosine to a leader, and the leader's index; -1 if there is none."""
    best, place = np.full(block.shape[0], -1.0), np.full(block.shape[0], -1, np.int64)
    if leaders:
        if len(leaders) > 1:
            leaders[:] = [vstack(leaders, format="csr")]
        shared = (block @ leaders[0].T).tocsr()
        for i in range(block.shape[0]):
            low, high = shared.indptr[i], shared.indptr[i + 1]
            if high > low:
                most = low + int(shared.data[low:high].argmax())
                best[i], place[i] = shared.data[most], shared.indices[most]
    return best, place


def _name(table: csr_array, row: int, names: list[str]) -> str:
    low, high = table.indptr[row], table.indptr[row + 1]
    heaviest = table.indices[low:high][np.argsort(-table.data[low:high], kind="stable")][:_SHOWN]
    return " ".join(names[i] for i in heaviest)
