"""From a trainer's batch to items: prompts and completions as text or messages, images as columns or parts.

An item without an id gets one from its content, as in `dikast grade`; images given as objects or bytes count by the
hash of their encoded file.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dikast.core.canonical import canonical_json
from dikast.core.errors import DataError
from dikast.core.item import ROLES, Item, item_from
from dikast.core.machine.bounded import Bounded
from dikast.core.media import image_of_picture, image_sha256
from dikast.core.part import Content, Image, Part, Text, Turn, Video, content_from, content_to, is_empty
from dikast.core.records.content_ids import content_id
from dikast.core.text import counted

COLUMNS = ("reference", "context", "rubric")  # columns of a trainer's dataset that a judge is shown
_TOOL = "tool"
_MOST_BYTES = 64 * 2**20


class Pictures:
    """Images with content hashes, each encoded once while it is in use."""

    def __init__(self) -> None:
        self._known: Bounded[tuple[Any, ...], Image] = Bounded(_MOST_BYTES, lambda image: len(image.source))

    def of(self, value: Any, field: str) -> Image:
        """An image of a trainer: a PIL image, bytes, a path or URL, or the `bytes`/`path` of datasets."""
        if isinstance(value, Mapping):
            value = value.get("bytes") or value.get("path") or value.get("image") or value.get("url")
        if isinstance(value, Image):
            return value
        if hasattr(value, "tobytes") and hasattr(value, "save"):
            key = (value.mode, value.size, hash(value.tobytes()), _palette(value))
            image = self._known.get(key)
            if image is None:
                image = image_of_picture(value)
                self._known.put(key, image)
            return image
        if isinstance(value, str | bytes) and value:
            return Image.of(value)
        raise DataError(f"expected a picture, its bytes or its path, got {type(value).__name__}", field=field)


def _palette(picture: Any) -> bytes:
    return bytes(picture.palette.tobytes()) if getattr(picture, "palette", None) is not None else b""


def item_of_rollout(
    prompt: object, completion: object, columns: Mapping[str, Any], pictures: Pictures, *, id: str = ""
) -> Item:
    """The item of one prompt and one completion. `columns` may hold `images` and what COLUMNS names.

    Placeholders in the prompt (`{"type": "image"}`) take the pictures of `images` in order; where the prompt has none
    and shows no picture itself, all of them stand at the head of the last user turn. The response is the last message
    of the completion, empty where that is a tool's; calls of tools and what these return are shown before it, as turns
    of the assistant. DataError names the field.
    """
    given = columns.get("images", columns.get("image"))
    listed = [] if given is None else list(given) if isinstance(given, list | tuple) else [given]
    images = [pictures.of(each, f"images[{i}]") for i, each in enumerate(listed)]
    left = iter(images)
    turns = list(_turns(prompt, "prompt", pictures, left))
    shows = any(isinstance(part, Image | Video) for turn in turns for part in turn.content)
    unused = len(list(left))
    if unused and shows and unused != len(images):
        raise DataError(
            f"{counted(len(images), 'image')} for {counted(len(images) - unused, 'placeholder')} in the prompt",
            field="images",
        )
    said = list(_turns(completion, "completion", pictures, iter(())))
    response = said.pop().content if said and not _is_of_tool(completion) else ()
    turns += said
    told = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
    item = item_from({"id": id or "row", **told}) if told else Item(id or "row")
    item = replace(item, instruction=_headed(turns, [] if shows else images), responses=(response,))
    return item if id else replace(item, id=named(item))


def _headed(turns: Sequence[Turn], images: Sequence[Image]) -> tuple[Turn, ...]:
    """The turns, with the images at the start of the last user turn."""
    if not images:
        return tuple(turns)
    last = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=None)
    if last is None:
        return (*turns, Turn("user", tuple(images)))
    return tuple(Turn(t.role, (*images, *t.content)) if i == last else t for i, t in enumerate(turns))


def _turns(value: object, field: str, pictures: Pictures, left: Iterator[Image]) -> Iterator[Turn]:
    """The turns: one for text, one for each message of a list."""
    role: Any = "assistant" if field == "completion" else "user"
    if isinstance(value, str):
        yield Turn(role, (Text(value),))
        return
    messages = [value] if isinstance(value, Mapping) else value
    if not isinstance(messages, Sequence) or not all(isinstance(each, Mapping) for each in messages):
        told = f"expected text or a list of messages, got {type(value).__name__}"
        raise DataError(told, field=field)
    for i, message in enumerate(messages):
        if message.get("role") not in (*ROLES, _TOOL):
            told = f"{message.get('role')!r} is not a role that a judge is shown: use {', '.join((*ROLES, _TOOL))}"
            raise DataError(told, field=f"{field}[{i}].role")
        shown = _content(message.get("content"), f"{field}[{i}].content", pictures, left)
        if message["role"] == _TOOL:
            yield Turn("assistant", (Text(f"[result of {message.get('name') or 'the tool'}]"), *shown))
        else:
            calls = tuple(_calls(message, f"{field}[{i}].tool_calls"))
            yield Turn(message["role"], calls if calls and is_empty(shown) else (*shown, *calls))


def _is_of_tool(completion: object) -> bool:
    """Whether a completion ends with what a tool returned, without a reply to it."""
    last = completion[-1] if isinstance(completion, Sequence) and completion else completion
    return isinstance(last, Mapping) and last.get("role") == _TOOL


def _calls(message: Mapping[str, Any], field: str) -> Iterator[Text]:
    """The calls of tools in a message, as text."""
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or not all(isinstance(each, Mapping) for each in calls):
        raise DataError(f"expected a list of calls, got {type(calls).__name__}", field=field)
    for call in calls:
        named = call["function"] if isinstance(call.get("function"), Mapping) else call
        given = named.get("arguments")
        told = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False, default=str)
        yield Text(f"[call of {named.get('name') or 'a tool'}: {told}]")


def _content(value: object, field: str, pictures: Pictures, left: Iterator[Image]) -> Content:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        return content_from(value, field=field)
    parts: list[Any] = []
    for i, part in enumerate(value):
        if isinstance(part, Mapping) and part.get("type") == "image":
            shown = next((part[key] for key in ("image", "path", "url") if part.get(key) is not None), None)
            if shown is None and (shown := next(left, None)) is None:
                raise DataError("an image placeholder without an image", field=f"{field}[{i}]")
            parts.append(pictures.of(shown, f"{field}[{i}]"))
        elif not (isinstance(part, Mapping) and part.get("type") == "text" and not part.get("text")):
            parts.extend(content_from(part, field=f"{field}[{i}]"))
    return tuple(parts)


def named(item: Item) -> str:
    """The id of an item by what it shows; one with pictures inside is named by their hashes, which are short."""
    if not any(image.source.startswith("data:") for image in item.images):
        return content_id(item)
    rubric = None if item.rubric is None else item.rubric.hash
    said = [[turn.role, *map(_spelt, turn.content)] for turn in item.instruction]
    rest = [
        None if each is None else list(map(_spelt, each)) for each in (*item.responses, item.reference, item.context)
    ]
    return "row-" + hashlib.blake2b(canonical_json([said, rest, rubric]), digest_size=6).hexdigest()


def _spelt(part: Part) -> Any:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Image) and part.source.startswith("data:"):
        try:
            return ["sha256", image_sha256(part)]
        except DataError:  # reported when it is judged
            return ["image", part.source]
    return content_to((part,))
