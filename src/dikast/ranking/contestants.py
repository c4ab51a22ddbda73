"""The responses of an item that are compared: all but empty ones and repetitions."""

from typing import NamedTuple

from dikast.core.item import Item
from dikast.core.part import Content, is_empty


class Contestants(NamedTuple):
    """The indices of the responses that are compared, and why not the others: `empty`, or the index it repeats."""

    inside: tuple[int, ...]
    left_out: dict[int, int | str]


def contestants_of(item: Item) -> Contestants:
    """Responses are repetitions when their content is equal; those of white space alone are empty."""
    first: dict[Content, int] = {}
    out: dict[int, int | str] = {}
    for i, content in enumerate(item.responses):
        if is_empty(content):
            out[i] = "empty"
        elif content in first:
            out[i] = first[content]
        else:
            first[content] = i
    return Contestants(tuple(first.values()), out)
