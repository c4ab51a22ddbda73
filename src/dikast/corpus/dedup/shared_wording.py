"""Which of many texts share wording: an exact similarity join on word trigrams, without comparing every pair."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from dikast.corpus.observations import words_of

RUN = 3  # words
_BLOCK = 2048
_MOST_PAIRS = 1 << 18  # candidate pairs verified at once

Numbers = NDArray[np.int64]


def runs_of(words: Sequence[str]) -> set[str]:
    """The word trigrams of a text; all of its words as one run if it has fewer than three."""
    return {" ".join(words[i : i + RUN]) for i in range(max(1, len(words) - RUN + 1))} if words else set()


def alike(texts: Sequence[str], likeness: float) -> NDArray[np.int64]:
    """Every pair i < j whose word trigrams have a Jaccard index of at least `likeness`, in (0, 1]: an array (pairs, 2).

    Exact. Two sets that are this similar share one of their rarest trigrams, so only those are looked up (prefix
    filtering); the candidates are then compared in full. Texts without words match nothing.
    """
    numbers: dict[str, int] = {}
    rows = [np.array([numbers.setdefault(run, len(numbers)) for run in runs_of(words_of(text))]) for text in texts]
    sizes = np.array([len(row) for row in rows], np.int64)
    columns = np.concatenate(rows).astype(np.int64) if numbers else np.zeros(0, np.int64)
    rare = np.argsort(np.argsort(np.bincount(columns, minlength=len(numbers)), kind="stable"))
    shape = (len(texts), max(1, len(numbers)))
    whole = _table([rare[row.astype(np.int64)] for row in rows], shape)
    most = [size - math.ceil(likeness * size - 1e-9) + 1 for size in sizes.tolist()]
    heads = _table([np.sort(rare[row.astype(np.int64)])[:n] for row, n in zip(rows, most, strict=True)], shape)
    found, turned = [np.zeros((0, 2), np.int64)], csr_array(heads.T)
    for start in range(0, len(texts), _BLOCK):
        shared = (heads[start : start + _BLOCK] @ turned).tocoo()
        first, second = shared.row.astype(np.int64) + start, shared.col.astype(np.int64)
        first, second = first[first < second], second[first < second]
        for at in range(0, len(first), _MOST_PAIRS):
            i, j = first[at : at + _MOST_PAIRS], second[at : at + _MOST_PAIRS]
            both = np.asarray(whole[i].multiply(whole[j]).sum(axis=1)).ravel()
            close = both >= likeness * (sizes[i] + sizes[j] - both) - 1e-9
            found.append(np.stack([i[close], j[close]], axis=1))
    return np.concatenate(found)


def components(n: int, pairs: Numbers) -> Numbers:
    """The connected component, numbered from 0, of each of `n` texts; `pairs` (m, 2) are the edges."""
    graph = csr_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _table(rows: Sequence[NDArray[np.int64]], shape: tuple[int, int]) -> csr_array:
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    columns = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    return csr_array((np.ones(len(columns), np.int32), columns, starts), shape=shape)
