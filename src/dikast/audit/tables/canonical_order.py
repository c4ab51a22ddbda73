"""Rows in a canonical order that depends on their content alone, so that no figure depends on the order of a file.

Sums of floats, folds, bootstrap draws and ties in confidence all go by position. Rows are therefore sorted by all that
is known of them and then shuffled by a fixed seed: whatever depends on position is the same for every order of the
file, and is independent of content. Names are numbered in their own order, not in that of their first appearance.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from dikast.audit.tables.columns import Words
from dikast.audit.tables.load import Data

Codes = NDArray[np.int64]
_SEED = 20_261_122
_MANY = 1_000  # names; for more, plain text order is enough, since no table shows them
_NUMBERS = re.compile(r"(\d+)")


def in_canonical_order(data: Data) -> Data:
    """The same rows in the order of this module, names numbered in their order."""
    renamed: dict[int, tuple[Words, Words]] = {}  # by identity: two roles may share a column
    for role, words in data.words.items():
        data.words[role] = renamed.setdefault(id(words), (words, _renamed(words)))[1]
    for role, values in data.numbers.items():
        data.numbers[role] = values + 0.0  # -0.0 is 0.0
    keys = [*data.numbers.values(), *(words.codes for _, words in renamed.values())]
    if not data.plan.file.is_dir():  # rows of a run differ in item, criterion or response, which are among the words
        keys += [_spelt(values) for values in data.objects.values()]
    data.keys = []  # files have been joined by now
    order = np.lexsort([_narrow(each) for each in keys]) if keys else np.arange(len(data))
    return data.rows(np.random.default_rng(_SEED).permutation(order))


def _renamed(words: Words) -> Words:
    names = sorted_names(words.names)
    if names == words.names:
        return words
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([*(place[name] for name in words.names), -1], np.int64)  # the last is that of a missing one
    return Words(codes[words.codes], names)


def _spelt(values: Sequence[Any]) -> Codes:
    """Codes of nested values by how they are written."""
    texts = [orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS) for value in values]
    place = {text: code for code, text in enumerate(sorted(set(texts)))}
    return np.array([place[text] for text in texts], np.int64)


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Few distinct values as small codes, which sort several times faster."""
    distinct, codes = np.unique(column, return_inverse=True)
    return codes.ravel().astype(np.int16) if len(distinct) < 2**15 else column


def sorted_names(names: Sequence[str]) -> list[str]:
    """Names in natural order: m2 before m10."""
    return sorted(names, key=_natural) if len(names) <= _MANY else sorted(names)


def _natural(name: str) -> tuple[list[str | tuple[int, str]], str]:
    parts = _NUMBERS.split(name)
    return [(int(part), "") if i % 2 else part for i, part in enumerate(parts)], name
