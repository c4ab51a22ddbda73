"""Unknown keys that are most likely misspelt known ones."""

import re
from functools import lru_cache

from dikast.core.text import near_miss

_WORDS = frozenset((
    "content", "contents", "contest", "goal", "goals", "idx", "ids", "inspection", "preference", "preferences",
    "respondent", "mean",
))  # fmt: skip


@lru_cache(maxsize=256)  # the records of a file share a few sets of keys, and looking for near misses is slow
def slip_in(keys: frozenset[str], known: tuple[str, ...]) -> tuple[str, str] | None:
    """An unknown key and the known one, not among `keys`, that was most likely meant."""
    given = {each.removesuffix("s") for each in keys.intersection(known)}  # 'response_time' with 'response' is a name
    free = [each for each in known if each.removesuffix("s") not in given]
    for key in sorted(keys.difference(known)):
        near = near_miss(key, free)
        if near is not None and not _is_a_name(key, near):
            return key, near
    return None


def _is_a_name(key: str, near: str) -> bool:
    """Whether a key similar to a known one is a separate name: `image_id`, `image2`, `goal`."""
    plain = key.casefold().replace("-", "_").replace(" ", "_")
    return plain in _WORDS or bool(re.fullmatch(rf"{near.removesuffix('s')}s?(_\w+|\d+)", plain))
