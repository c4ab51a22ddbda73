"""Rows that trainers of preferences read: a prompt with the better and the worse response, or with one and a mark.

Which of two responses is better stands in an item's gold; read back, the better one is the first (`a`). A mark is a
gold of 1 (wanted) or 0 (not).
"""

from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.corpus.schemas.conversation import (
    images_at,
    read_llava,
    read_trl,
    write_llava,
    write_trl,
)
from dikast.corpus.schemas.public_schema import Row, gold_of, image_sources, own_id, put, responses_of, tokened

_FROM = {"user": "human", "assistant": "gpt", "system": "system"}
_SOURCE = "dikast"


def better_and_worse(item: Item) -> tuple[str, str]:
    """The texts of an item's two responses, the preferred one first; DataError where none is preferred."""
    said = gold_of(item).get("preference")
    if said not in ("a", "b") or len(item.responses) != 2:
        told = "is a tie" if said == "tie" else "has no preference between two responses"
        raise DataError(f"item {item.id!r} {told}, which this schema cannot express; --skip leaves it out")
    first, second = responses_of(item, 2)
    return (first, second) if said == "a" else (second, first)


def wanted(item: Item) -> bool:
    """Whether an item's one response is wanted; DataError where its gold says neither 1 nor 0."""
    said = gold_of(item).get("score")
    if said not in (0, 1):
        raise DataError(f"item {item.id!r}: this schema marks responses as wanted or not, gold 1 or 0", field="gold")
    return bool(said)


def _marked(record: Row, mark: object, field: str) -> Row:
    if not isinstance(mark, bool | int) or mark not in (0, 1):
        raise DataError(f"a mark is true or false, got {mark!r:.40}", field=field)
    return record | {"gold": int(mark)}


def write_trl_kto(item: Item) -> Row:
    """`prompt`, `completion`, `label` and, with pictures, `images`."""
    return write_trl(item) | {"label": wanted(item)}


def read_trl_kto(row: Row) -> Row:
    """The row of trl with its label as gold."""
    return _marked(read_trl(row), row.get("label"), "label")


def write_llava_preference(item: Item) -> Row:
    """`id`, `image`, `prompt`, `chosen`, `rejected` as LLaVA-NeXT reads them: plain text, `<image>` for pictures."""
    chosen, rejected = better_and_worse(item)
    if any(turn.role != "user" for turn in item.instruction) or len(item.instruction) != 1:
        raise DataError(f"item {item.id!r}: the prompt of this schema is one turn of a user", field="instruction")
    images = image_sources(item)
    row = put({}, id=own_id(item), image=(images[0] if len(images) == 1 else images) if images else None)
    return row | {"prompt": tokened(item.instruction[0].content), "chosen": chosen, "rejected": rejected}


def read_llava_preference(row: Row) -> Row:
    """As rows of trl, with the id."""
    return put(read_trl(row), id=None if row.get("id") is None else str(row["id"]))


def _turns(item: Item) -> list[Row]:
    return [{"from": _FROM[turn.role], "value": tokened(turn.content)} for turn in item.instruction]


def write_llamafactory(item: Item) -> Row:
    """`conversations` that end with the question, `chosen`, `rejected`, `images` (`ranking: true`)."""
    chosen, rejected = ({"from": "gpt", "value": text} for text in better_and_worse(item))
    row: Row = {"conversations": _turns(item), "chosen": chosen, "rejected": rejected}
    return put(row, images=image_sources(item) or None)


def read_llamafactory(row: Row) -> Row:
    """The conversation with both replies."""
    return read_llava({key: row[key] for key in ("conversations", "images") if key in row}) | _both(
        _value(row, "chosen"), _value(row, "rejected")
    )


def _value(row: Row, field: str) -> str:
    said = row.get(field)
    text = said.get("value") if isinstance(said, dict) else None
    if not isinstance(text, str):
        raise DataError("a reply is {'from': 'gpt', 'value': ...}", field=field)
    return text


def _both(chosen: str, rejected: str) -> Row:
    return {"responses": [chosen, rejected], "gold": {"preference": "a"}}


def write_llamafactory_kto(item: Item) -> Row:
    """`conversations` that end with the reply, `kto_tag`, `images`."""
    row = {key: each for key, each in write_llava(item).items() if key == "conversations"}
    return put(row | {"kto_tag": wanted(item)}, images=image_sources(item) or None)


def read_llamafactory_kto(row: Row) -> Row:
    """The conversation with its mark as gold."""
    return _marked(read_llava(row), row.get("kto_tag"), "kto_tag")


def write_swift(item: Item) -> Row:
    """`messages` that end with the better reply, `rejected_response`, `images`."""
    chosen, rejected = better_and_worse(item)
    messages = [{"role": turn.role, "content": tokened(turn.content)} for turn in item.instruction]
    row: Row = {"messages": [*messages, {"role": "assistant", "content": chosen}], "rejected_response": rejected}
    return put(row, images=image_sources(item) or None)


def read_swift(row: Row) -> Row:
    """The messages before the last one, which is the better reply."""
    record = read_llava({**row, "conversations": row.get("messages")})
    rejected = row.get("rejected_response")
    if "response" not in record or not isinstance(rejected, str):
        raise DataError("the messages end with a reply, and rejected_response is text", field="rejected_response")
    return record | _both(record.pop("response"), rejected)


def write_openrlhf(item: Item) -> Row:
    """`prompt`, `chosen` and `rejected` as lists of messages, for its chat template; text alone."""
    if image_sources(item):
        raise DataError(f"item {item.id!r} shows a picture, and OpenRLHF's pairs are text", field="images")
    chosen, rejected = better_and_worse(item)
    prompt = [{"role": turn.role, "content": tokened(turn.content)} for turn in item.instruction]
    said = ([{"role": "assistant", "content": text}] for text in (chosen, rejected))
    return dict(zip(("prompt", "chosen", "rejected"), (prompt, *said), strict=True))


def write_verl(item: Item) -> Row:
    """A prompt to sample from: `data_source`, `prompt`, `images`, `reward_model`, `extra_info` with both responses.

    The prompt stands in `extra_info` too, where a reward function is handed it.
    """
    chosen, rejected = better_and_worse(item)
    prompt = [{"role": turn.role, "content": tokened(turn.content)} for turn in item.instruction]
    images = image_sources(item)
    extra: Row = {"prompt": prompt, "chosen": chosen, "rejected": rejected}
    row: Row = {"data_source": _SOURCE, "prompt": prompt}
    if images:
        row["images"] = [{"image": each} for each in images]
        extra["images"] = images
    return row | {"reward_model": {"style": "model", "ground_truth": ""}, "extra_info": put(extra, id=own_id(item))}


def read_verl(row: Row) -> Row:
    """The prompt with both responses."""
    extra = row.get("extra_info")
    told = extra if isinstance(extra, dict) else {}
    given = row.get("images")
    listed = [each.get("image", each) if isinstance(each, dict) else each for each in given or ()]
    record = read_llava({"conversations": row.get("prompt"), "image": images_at({"images": listed})})
    if not all(isinstance(told.get(name), str) for name in ("chosen", "rejected")):
        raise DataError("extra_info has no chosen and rejected responses", field="extra_info")
    name: Any = told.get("id")
    return put(record | _both(told["chosen"], told["rejected"]), id=None if name is None else str(name))
