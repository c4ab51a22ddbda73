"""What a question shows of an item, as a fingerprint, and whether an item is still the one that a verdict is about."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dikast.core.canonical import canonical_json
from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.media import image_sha256, video_sha256
from dikast.core.media.video import SAMPLING
from dikast.core.part import Content, Image, Text, Video, images_of


def content_hash(item: Item, responses: Sequence[int], reads_gold: bool) -> tuple[str, tuple[Image, ...], str]:
    """The fingerprint of what is shown, media by their bytes, every image in it, and why one of its media cannot be
    read.
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
    digest = hashlib.blake2b(canonical_json(spelt), digest_size=16).hexdigest()
    return digest, tuple(images), str(errors[0]) if errors else ""


def is_as_judged(item: Item, records: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the item is still what these records of its verdicts are about, by their fingerprints of what was shown.

    References may have been left out. Items with pictures and clips, which would have to be read, and verdicts without
    a fingerprint are taken for unchanged.
    """
    if item.images or item.videos:
        return True
    asked = {(tuple(each["question"]["responses"]), (each.get("hashes") or {}).get("item")) for each in records}
    return all(_is_same(item, shown, known) for shown, known in asked)


def _is_same(item: Item, shown: Sequence[int], known: str | None) -> bool:
    ways = ((item, False), (item, True), (bare := replace(item, reference=None), False), (bare, True))
    return not known or any(content_hash(each, shown, reads_gold)[0] == known for each, reads_gold in ways)


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


def as_changed(items: int) -> str:
    """What is said of so many items that are not as they were judged."""
    told = "1 item is" if items == 1 else f"{items:,} items are"
    return f"{told} no longer what was judged: the texts are left out; name the file that was judged with --items"
