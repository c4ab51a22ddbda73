"""The interface of a schema: a reader of rows and a writer of items, with shared helpers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.part import Content, Image, Text, images_of, text_of
from dikast.core.rubric import Rubric
from dikast.core.text import counted, parse_located
from dikast.prompts.format import Format, format_from

Row = dict[str, Any]
NO_ID = "row"  # the id of an item during conversion if its row has none


@dataclass(frozen=True, slots=True)
class Schema:
    """One public schema of feedback data.

    `reads` turns a row into an item in JSON form; `writes` turns an item into a row. Both drop what the other side
    cannot express, which `convert` keeps in `meta`. `fits` says whether a row looks like one of this schema.
    """

    name: str
    about: str
    fits: Callable[[Row], bool]
    reads: Callable[[Row], Row]
    writes: Callable[[Item], Row]


def text_at(row: Row, *names: str) -> str | None:
    """The text in the first of these columns that is present and not null; DataError if it is not text."""
    for name in names:
        value = row.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise DataError(f"expected text, got {value!r:.60}", field=name)
        return value
    return None


def need(row: Row, *names: str) -> str:
    """As `text_at`; DataError if none of the columns is present."""
    found = text_at(row, *names)
    if found is None:
        raise DataError(f"the row has no {' or '.join(map(repr, names))}; it has {', '.join(row)}", field=names[0])
    return found


def number_of(value: object, field: str) -> float | None:
    """A score given as a number or as text such as "3"; None for null; DataError for anything else."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            raise DataError(f"{value!r:.40} is not a score", field=field) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{value!r:.40} is not a score", field=field)
    return float(value)


def put(record: Row, **fields: Any) -> Row:
    """Add those fields to `record` that are not None."""
    record.update((key, value) for key, value in fields.items() if value is not None)
    return record


def plain(number: float) -> int | float:
    """Whole numbers without a decimal point."""
    return int(number) if number == int(number) else number


def own_id(item: Item) -> str | None:
    """The id of an item, None if its record has none."""
    return None if item.id == NO_ID else item.id


def the_rubric(item: Item) -> Rubric:
    """The item's rubric; DataError, with the cure, if it has none or a sheet."""
    if not isinstance(item.rubric, Rubric):
        told = "a sheet of several" if item.rubric else "none"
        raise DataError(f"item {item.id!r}: this schema needs one rubric, the item has {told}", field="rubric")
    return item.rubric


def responses_of(item: Item, n: int) -> list[str]:
    """The texts of the item's `n` responses."""
    if len(item.responses) != n:
        raise DataError(
            f"item {item.id!r} has {counted(len(item.responses), 'response')}, this schema holds {n}:"
            " choose another with --to",
            field="responses",
        )
    for each in item.responses:
        if images_of(each):
            raise DataError(f"item {item.id!r}: this schema cannot hold an image as a response", field="responses")
    return [text_of(each) for each in item.responses]


def asked(item: Item) -> str:
    """The text of the instruction; for a conversation, every turn with its role."""
    if len(item.instruction) == 1:
        return text_of(item.instruction[0].content)
    return "\n\n".join(f"{turn.role}: {text_of(turn.content)}" for turn in item.instruction)


def image_sources(item: Item) -> list[str]:
    """The sources of the instruction's images, in order."""
    return [image.source for turn in item.instruction for image in images_of(turn.content)]


def pictured(text: str, images: list[str], token: str = "<image>") -> Any:
    """Content for `item_from`: text with each `token` replaced by the next image; remaining images come first."""
    pieces = text.split(token)
    inside = min(len(pieces) - 1, len(images))
    first = images[: len(images) - inside]
    parts: list[Row] = [{"type": "image", "image": each} for each in first]
    for i, piece in enumerate(pieces):
        if i and i <= inside:
            parts.append({"type": "image", "image": images[len(first) + i - 1]})
        piece = piece if i <= inside else token + piece
        if piece:
            parts.append({"type": "text", "text": piece})
    return text if not images else parts


def tokened(content: Content, token: str = "<image>") -> str:
    """The text of a content with `token` in place of each image."""
    found = ""
    for part in content:
        if isinstance(part, Text):
            found += part.text
        else:
            count = 1 if isinstance(part, Image) else len(part.frames)
            found += f"{token}\n" * count if not found else token * count
    return found


def gold_of(item: Item) -> Mapping[str, Any]:
    """The gold as an object; a bare number or word is a score or a preference."""
    gold = item.gold
    if isinstance(gold, Mapping):
        return gold
    if gold is None:
        return {}
    if len(item.responses) == 2:
        return {"scores": gold} if isinstance(gold, list) else {"preference": gold}
    return {"score": gold}


@cache
def own_format(name: str) -> Format:
    """A prompt of the package's `corpus/prompts`, by the name of its file."""
    path = f"{name}.yaml"
    text = resources.files("dikast.corpus").joinpath("prompts", path).read_text("utf-8")
    return format_from(parse_located(text, path).value, path=path)


def rendered(item: Item) -> str:
    """Dikast's prompt for grading an item's one response, or comparing its two, as one text."""
    rubric = replace(the_rubric(item), name="")
    return _rendered(replace(item, id="", gold=None, meta={}, origin="", rubric=rubric))


@lru_cache(maxsize=16)  # a written row is read back at once to find what it does not express
def _rendered(item: Item) -> str:
    form = own_format("row" if len(item.responses) == 1 else "row-pair")
    messages = form.ask(item, the_rubric(item), tuple(range(len(item.responses))))
    return "\n\n".join(message.text for message in messages)
