"""Questions, with keys that change whenever the answer could."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal

from dikast.core.canonical import canonical_json
from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.media import image_sha256, video_sha256
from dikast.core.media.video import SAMPLING
from dikast.core.part import Content, Image, Text, Video, images_of
from dikast.core.rubric import Rubric, Sheet
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
            content, images, unreadable = _content(item, responses, reads_gold)
            item_hash = hashlib.blake2b(canonical_json(content), digest_size=16).hexdigest()
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


def _content(item: Item, responses: tuple[int, ...], reads_gold: bool) -> tuple[Any, tuple[Image, ...], str]:
    """The content of the item that is shown, in the form of its fingerprint, every image in it, and why one of its
    media cannot be read.
    """
    images: list[Image] = []
    errors: list[DataError] = []
    spelt = [
        [[turn.role, _spell(turn.content, images, errors)] for turn in item.instruction],
        None if item.context is None else _spell(item.context, images, errors),
        None if item.reference is None else _spell(item.reference, images, errors),
        [_spell(item.responses[i], images, errors) for i in responses if i < len(item.responses)],
        item.gold if reads_gold else None,
    ]
    return spelt, tuple(images), str(errors[0]) if errors else ""


def _spell(content: Content, images: list[Image], errors: list[DataError]) -> list[Any]:
    if len(content) == 1 and isinstance(content[0], Text):
        return [content[0].text]
    images.extend(images_of(content))
    return [_spell_part(part, errors) for part in content]


def _spell_part(part: Text | Image | Video, errors: list[DataError]) -> Any:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Image):
        try:
            return ["image", image_sha256(part)]
        except DataError as error:
            errors.append(error)
            return ["unreadable", part.source]
    if part.source:
        try:
            return ["video file", video_sha256(part), part.count, SAMPLING]
        except DataError as error:
            errors.append(error)
            return ["unreadable", part.source]
    return ["video", [_spell_part(frame, errors) for frame in part.frames], list(part.seconds)]
