"""Conversations as LLaVA JSON and as trl columns."""

from itertools import takewhile
from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.part import Content, Text, images_of
from dikast.corpus.schemas.public_schema import (
    Row,
    gold_of,
    image_sources,
    own_id,
    pictured,
    put,
    tokened,
)

_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system"}
_FROM = {"user": "human", "assistant": "gpt", "system": "system"}


def images_at(row: Row) -> list[str]:
    """The row's `image` or `images`, each a path, a URL or a data URL."""
    found = row.get("images", row.get("image"))
    listed = found if isinstance(found, list) else [] if found is None or found == "" else [found]
    given = [each.get("path") or each.get("bytes") if isinstance(each, dict) else each for each in listed]
    sources = [each for each in given if isinstance(each, str)]
    if len(sources) < len(given):
        raise DataError("images are paths, URLs or data URLs", field="image")
    return sources


def turns_of(row: Row) -> list[tuple[str, str]]:
    """The conversation as (role, text)."""
    turns = row.get("conversations")
    if not isinstance(turns, list) or not turns:
        raise DataError("the row has no conversation: a list of {'from': ..., 'value': ...}", field="conversations")
    found = []
    for i, turn in enumerate(turns):
        role = _ROLES.get(str(turn.get("from", turn.get("role")))) if isinstance(turn, dict) else None
        text = turn.get("value", turn.get("content")) if isinstance(turn, dict) else None
        if role is None or not isinstance(text, str):
            raise DataError("a turn has 'from' (human, gpt, system) and 'value' (text)", field=f"conversations[{i}]")
        found.append((role, text))
    return found


def human_and_reply(row: Row) -> tuple[str, str]:
    """The first human turn and the last reply ("" if there is none)."""
    turns = turns_of(row)
    human = next((text for role, text in turns if role == "user"), "")
    return human, turns[-1][1] if turns[-1][0] == "assistant" else ""


def read_llava(row: Row) -> Row:
    """The last reply is the response, the turns before it are the instruction; images replace `<image>`."""
    turns, images = turns_of(row), images_at(row)
    response = turns.pop()[1] if turns[-1][0] == "assistant" else None
    placed: list[Row] = []
    left = list(images)
    for i, (role, text) in enumerate(turns):
        last = not any("<image>" in later for _, later in turns[i + 1 :])
        here = text.count("<image>")
        mine = left if here and last else left[:here]
        left = left[len(mine) :]
        placed.append({"role": role, "content": pictured(text, mine)})
    if left and placed:
        placed[0]["content"] = pictured(turns[0][1], left + _sources(placed[0]["content"]))
    single = len(placed) == 1 and placed[0]["role"] == "user"
    record: Row = {"instruction": placed[0]["content"] if single else placed}
    return put(record, id=None if row.get("id") is None else str(row["id"]), response=response)


def _sources(content: Any) -> list[str]:
    return [part["image"] for part in content if "image" in part] if isinstance(content, list) else []


def write_llava(item: Item) -> Row:
    """A conversation that ends with the item's one response."""
    turns = [{"from": _FROM[turn.role], "value": tokened(turn.content)} for turn in item.instruction]
    if len(item.responses) > 1:
        raise DataError(f"item {item.id!r} has {len(item.responses)} responses, a conversation has one reply")
    if item.responses:
        if images_of(item.responses[0]):
            raise DataError(f"item {item.id!r}: a reply of this schema is text", field="response")
        turns.append({"from": "gpt", "value": tokened(item.responses[0])})
    images = image_sources(item)
    row = put({}, id=own_id(item))
    if images:
        row["image"] = images[0] if len(images) == 1 else images
    return row | {"conversations": turns}


def _talk(item: Item) -> list[Row]:
    """The prompt as messages of text, to which trl adds the pictures before the text of the first user turn.

    Messages of parts, with an image part for each picture, where they stand elsewhere, or a later user turn could be
    taken for theirs.
    """
    turns, pictures = item.instruction, len(image_sources(item))
    asked = [turn.content for turn in turns if turn.role == "user"]
    if not pictures or (len(asked) == 1 and _leading(asked[0]) == pictures):
        return [{"role": turn.role, "content": _text(turn.content)} for turn in turns]
    return [{"role": turn.role, "content": _parts(turn.content)} for turn in turns]


def _text(content: Content) -> str:
    return "".join(part.text for part in content if isinstance(part, Text))


def _leading(content: Content) -> int:
    """How many pictures stand before the first text."""
    return len(images_of(tuple(takewhile(lambda part: not isinstance(part, Text), content))))


def _parts(content: Content) -> list[Row]:
    parts: list[Row] = []
    for part in content:
        if isinstance(part, Text):
            parts.append({"type": "text", "text": part.text})
        else:
            parts.extend({"type": "image"} for _ in images_of((part,)))
    return parts


def _reply(content: Content) -> list[Row]:
    if images_of(content):
        raise DataError("trl's replies are text: this response holds an image", field="response")
    return [{"role": "assistant", "content": _text(content)}]


def write_trl(item: Item) -> Row:
    """`prompt`, `completion` and, with pictures, `images`."""
    if len(item.responses) != 1:
        raise DataError(f"item {item.id!r} has {len(item.responses)} responses, `completion` is one", field="response")
    row: Row = {"prompt": _talk(item), "completion": _reply(item.responses[0])}
    return put(row, images=image_sources(item) or None)


def write_trl_preference(item: Item) -> Row:
    """`prompt`, `chosen`, `rejected`; DataError for a tie, which these columns would turn into a preference."""
    said = gold_of(item).get("preference")
    if said not in ("a", "b") or len(item.responses) != 2:
        told = "is a tie" if said == "tie" else "has no preference between two responses"
        raise DataError(f"item {item.id!r} {told}, which chosen and rejected cannot express; --skip leaves it out")
    better, worse = item.responses if said == "a" else item.responses[::-1]
    row: Row = {"prompt": _talk(item), "chosen": _reply(better), "rejected": _reply(worse)}
    return put(row, images=image_sources(item) or None)


def read_trl(row: Row) -> Row:
    """`completion` is the response; `chosen` and `rejected` are a pair whose first response is preferred (`a`)."""
    images = images_at(row)
    record: Row = {"instruction": _given(row.get("prompt"), images, "prompt")}
    if "completion" in row:
        return put(record, response=_said(row["completion"], "completion"))
    record["responses"] = [_said(row.get("chosen"), "chosen"), _said(row.get("rejected"), "rejected")]
    return record | {"gold": {"preference": "a"}}


def _given(prompt: Any, images: list[str], field: str) -> Any:
    if isinstance(prompt, str):
        return pictured(prompt, images)
    if not isinstance(prompt, list):
        raise DataError("a prompt is text or a list of messages", field=field)
    left, turns = list(images), []
    for i, message in enumerate(prompt):
        if not isinstance(message, dict) or message.get("role") not in _FROM:
            raise DataError("a message has 'role' (system, user, assistant) and 'content'", field=f"{field}[{i}]")
        content = message.get("content")
        if isinstance(content, list):
            content = [_placed(part, left) for part in content]
        turns.append({"role": message["role"], "content": content})
    if left and turns:
        first = next((turn for turn in turns if turn["role"] == "user"), turns[0])
        said = first["content"]
        rest = [said] if isinstance(said, str) and said else list(said or ())
        first["content"] = [*({"type": "image", "image": each} for each in left), *rest]
    single = len(turns) == 1 and turns[0]["role"] == "user"
    return turns[0]["content"] if single else turns


def _placed(part: Any, left: list[str]) -> Any:
    if isinstance(part, dict) and part.get("type") == "image" and "image" not in part and left:
        return {"type": "image", "image": left.pop(0)}
    return part


def _said(value: Any, field: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        content = value[0].get("content")
        if isinstance(content, str):
            return content
        if isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content):
            return "".join(part["text"] for part in content)
    raise DataError("a reply is text or one assistant message", field=field)
