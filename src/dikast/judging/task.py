"""Questions, with keys that change whenever the answer could."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.part import Image
from dikast.core.rubric import Rubric, Sheet
from dikast.core.runs.as_judged import content_hash
from dikast.core.verdict import Hashes, Question

Shape = Literal["each", "pairs", "both-orders"] | Callable[[Item], Sequence[tuple[int, int]]]  # or the pairs themselves


@dataclass(frozen=True, slots=True)
class Task:
    """One question about one item, with everything needed to ask it; `unreadable` says which of its media cannot be."""

    key: str
    item: Item
    rubric: Rubric
    question: Question
    hashes: Hashes
    images: tuple[Image, ...]
    unreadable: str = ""


def tasks_of(
    item: Item,
    rubric: Rubric | Sheet,
    *,
    judge: str,
    format: str,
    shape: Shape,
    samples: range,
    reads_gold: bool = False,
) -> Iterator[Task]:
    """Every question about an item: each response, or each pair in one order or both; by criterion; by sample.

    `judge` and `format` are fingerprints. The key covers them, the rubric, the id, and whatever of the item is shown,
    media by their bytes; an item whose media cannot be read has a key too, so that it can be reported.
    """
    rubric = item.rubric or rubric
    for one in rubric if isinstance(rubric, Sheet) else (rubric,):
        rubric_hash = _hash_of(one)
        for responses in _shown(item, shape):
            item_hash, images, unreadable = content_hash(item, responses, reads_gold)
            hashes = Hashes(judge, format, rubric_hash, item_hash)
            for sample in samples:
                question = Question(item.id, one.name, responses, sample)
                spelt = f"{judge}{format}{rubric_hash}{item_hash}{responses}{sample}\0{one.name}\0{item.id}"
                key = hashlib.blake2b(spelt.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
                yield Task(key, item, one, question, hashes, images, unreadable)


def questions_of(item: Item, rubric: Rubric | Sheet | None, shape: Shape, samples: range) -> int:
    """How many questions `tasks_of` makes of an item."""
    rubric = item.rubric or rubric
    criteria = len(tuple(rubric)) if isinstance(rubric, Sheet) else 1
    return criteria * sum(1 for _ in _shown(item, shape)) * len(samples)


@lru_cache(maxsize=1024)
def _hash_of(rubric: Rubric) -> str:
    return rubric.hash


def _shown(item: Item, shape: Shape) -> Iterator[tuple[int, ...]]:
    count = len(item.responses)
    if shape == "each":
        yield from ((i,) for i in range(max(count, 1)))
        return
    if callable(shape):
        yield from shape(item)
        return
    if count < 2:
        raise DataError(
            f"item {item.id!r} has {count} response{'s' * (count != 1)}; comparing needs two or more in 'responses'",
            path=item.origin,
            field="responses",
        )
    for i, j in combinations(range(count), 2):
        yield (i, j)
        if shape == "both-orders":
            yield (j, i)
