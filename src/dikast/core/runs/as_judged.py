"""What a question shows of an item, as a fingerprint, and whether an item is still the one that a verdict is about."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dikast.core.canonical import canonical_json
from dikast.core.errors import DataError, RunError
from dikast.core.item import Item
from dikast.core.media import image_sha256, video_sha256
from dikast.core.media.video import SAMPLING
from dikast.core.part import REMOTE, Content, Image, Text, Video, images_of


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

    References and media may have been left out. Files of pictures and clips are read and hashed, not decoded. Items
    whose media are on the web or cannot be read, and verdicts without a fingerprint, are taken for unchanged.
    """
    asked = {(tuple(each["question"]["responses"]), (each.get("hashes") or {}).get("item")) for each in records}
    return all(not known or _is_same(item, shown, known) for shown, known in asked)


def _is_same(item: Item, shown: Sequence[int], known: str) -> bool:
    sources = [*(image.source for image in item.images), *(clip.source for clip in item.videos)]
    on_the_web = any(source.startswith(REMOTE) for source in sources)
    for each in _ways(item):
        if on_the_web and (each.images or each.videos):
            return True
        for reads_gold in (False, True):
            try:
                found, _, unreadable = content_hash(each, shown, reads_gold)
            except RunError:  # a failing disk, say
                return True
            if found == known or unreadable:
                return True
    return False


def _ways(item: Item) -> Iterator[Item]:
    """The item as it may have been asked about: without and with its media, with and without its reference."""
    ways = [item]
    if item.images or item.videos:
        with suppress(DataError):  # a response of pictures alone
            ways.insert(0, item.text_only())
    for each in ways:
        yield each
        if each.reference is not None:
            yield replace(each, reference=None)


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


def as_changed(items: int, cure: str = "name the file that was judged with --items") -> str:
    """What is said of so many items that are not as they were judged, and what to do."""
    told = "1 item is" if items == 1 else f"{items:,} items are"
    return f"{told} no longer what was judged: the texts and pictures are left out; {cure}"
