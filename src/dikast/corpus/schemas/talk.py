"""Rows that are taught as they are: what is asked, and the reply, of Dikast's own `talk` and of published forms.

The published forms are Feedback- and Preference-Collection (`instruction`, `input`, `output`), conversations
(Perception-Collection, LLaVA-Critic-113k, LLaVA; each reply is taught) and trl (`prompt` and `completion`, or
`messages`). Their prompts stay theirs.
"""

from collections.abc import Iterator
from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import Item, item_to
from dikast.core.part import text_of
from dikast.corpus.schemas.conversation import images_at, read_llava, read_trl, turns_of
from dikast.corpus.schemas.llava_critic import write_critic
from dikast.corpus.schemas.public_schema import Row, gold_of, own_id, pictured, put

TALK_KEYS = ("id", "messages", "parts", "instruction", "image", "images", "target", "meta")
_PUBLISHED = ("conversations", "output", "completion", "messages")


def fits_talk(row: Row) -> bool:
    """Whether a row is Dikast's own talk."""
    return "target" in row and not {"response", "responses", "rubric", "gold"} & row.keys()


def taught_rows(row: Row) -> Iterator[Row]:
    """The rows of talk (`instruction`, `target`, and `id` and `meta` if there are any) that a row teaches.

    DataError, naming the field, for a row without a prompt or a reply.
    """
    if "target" not in row and (found := next((key for key in _PUBLISHED if key in row), None)):
        yield from _READERS[found](row)
    else:
        yield _own(row)


def _own(row: Row) -> Row:
    unknown = sorted(row.keys() - set(TALK_KEYS))
    if unknown:
        raise DataError(
            f"unknown key {unknown[0]!r}: a row of talk may have {', '.join(TALK_KEYS)}, or is a row of a published"
            f" form, with {', '.join(_PUBLISHED)}",
            field=unknown[0],
        )
    target = row.get("target")
    if not isinstance(target, str) or not target.strip():
        raise DataError("a row of talk needs a target: give 'target' some text", field="target")
    asked = [row[key] for key in ("messages", "parts", "instruction") if row.get(key) is not None]
    if len(asked) > 1:
        raise DataError("give one of 'messages', 'parts' and 'instruction'")
    given: Row = {key: row[key] for key in ("id", "image", "images", "meta") if key in row}
    return {**given, "instruction": asked[0] if asked else None, "target": target}


def _conversation(row: Row) -> Iterator[Row]:
    """A row for each reply, the turns before it being what is asked."""
    turns = turns_of(row)
    replies = [i for i, (role, _) in enumerate(turns) if role == "assistant"]
    if not replies or replies[0] == 0:
        raise DataError("the conversation has no reply to what is asked", field="conversations")
    images = images_at(row)
    for number, i in enumerate(replies, 1):
        upto = {"conversations": row["conversations"][: i + 1]} | ({"images": images} if images else {})
        asked = read_llava(upto)["instruction"]
        yield _row(row, asked, turns[i][1], f"/{number}" if len(replies) > 1 else "", f"conversations[{i}]")


def _columns(row: Row) -> Iterator[Row]:
    """Instruction tuning: `instruction`, `input` below it if there is any, and `output`."""
    asked, more = row.get("instruction"), row.get("input") or ""
    if not isinstance(asked, str) or not isinstance(more, str):
        raise DataError("'instruction' and 'input' are text in rows with an 'output'", field="instruction")
    yield _row(row, pictured(f"{asked}\n\n{more}" if more else asked, images_at(row)), row.get("output"), "", "output")


def _completion(row: Row) -> Iterator[Row]:
    read = read_trl(row)
    yield _row(row, read["instruction"], read["response"], "", "completion")


def _messages(row: Row) -> Iterator[Row]:
    messages = row["messages"]
    if not isinstance(messages, list) or not messages or not isinstance(messages[-1], dict):
        raise DataError("messages are a list of 'role' and 'content'", field="messages")
    if messages[-1].get("role") != "assistant":
        raise DataError(
            "the last message is no reply: end with one of role 'assistant', or give 'target'", field="messages"
        )
    read = read_trl({**row, "prompt": messages[:-1], "completion": messages[-1:]})
    yield _row(row, read["instruction"], read["response"], "", "messages")


_READERS = {"conversations": _conversation, "output": _columns, "completion": _completion, "messages": _messages}


def _row(row: Row, asked: Any, target: object, tag: str, field: str) -> Row:
    if not isinstance(target, str) or not target.strip():
        raise DataError(f"there is no reply to teach: {field!r} has no text", field=field)
    made = {"instruction": asked, "target": target.strip()}
    return put({}, id=f"{row['id']}{tag}" if row.get("id") is not None else None) | made


def read_talk(row: Row) -> Row:
    """Talk as an item: the target is the response."""
    own = _own(row)
    return {key: value for key, value in own.items() if key != "target"} | {"response": own["target"]}


def write_talk(item: Item) -> Row:
    """What is taught of an item: Dikast's prompt and the reply that says its gold; its response if it has none."""
    if item.gold is None:
        if len(item.responses) != 1:
            raise DataError(f"item {item.id!r} has neither gold nor one response: nothing in it can be taught")
        made: Row = {key: value for key, value in item_to(item).items() if key in ("id", "instruction")}
        return put({}, id=own_id(item)) | {**made, "target": text_of(item.response)}
    if not gold_of(item).get("feedback"):
        raise DataError(
            f"item {item.id!r} has no feedback to teach: train on the items, with a format without prose", field="gold"
        )
    return last_taught(write_critic(item))


def last_taught(row: Row) -> Row:
    """What the last reply of a row teaches."""
    return list(taught_rows(row))[-1]


def published(row: Row) -> bool:
    """Whether a row has a prompt and a reply of a published form."""
    return any(key in row for key in _PUBLISHED)
