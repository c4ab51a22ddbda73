"""The content of an item that is shown: its slots by name for a template, or its turns as they are."""

from dataclasses import replace
from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.message import Message, Span
from dikast.core.part import Content, Text, Turn, is_empty
from dikast.prompts.render import Piece, Slots, plain_pieces

ROLES = {"absolute": ("response",), "pairwise": ("first", "second")}
NAMES = (
    "criterion", "levels", "scale", "low", "high", "lower_is_better", "context", "reference", "instruction",
    "conversation", "images", "words",
)  # fmt: skip


def names_for(
    kind: str, slots: Slots, item: Item, responses: tuple[int, ...], *, apart: bool = False
) -> dict[str, Any]:
    """What a template of that kind may use, by name, but for `words`. Missing fields are None.

    `apart` moves the instruction's media into `images`, for prompts that show them elsewhere.
    """
    roles = ROLES[kind]
    if len(responses) != len(roles):
        raise UserError(f"a format of kind {kind!r} shows {len(roles)} response(s), and was given {len(responses)}")
    shown = [response_of(item, index) for index in responses]
    turns, media = _apart(item.instruction) if apart else (item.instruction, ())
    single = len(turns) == 1 and turns[0].role == "user"
    instruction = None
    if turns:
        instruction = slots.content(turns[0].content) if single else slots.turns(turns)
    return {
        **slots.of_rubric,
        "context": slots.content(item.context) if item.context else None,
        "reference": slots.content(item.reference) if item.reference else None,
        "instruction": instruction,
        "conversation": not single,
        "images": slots.content(media) if media else None,
        **{role: slots.content(content) for role, content in zip(roles, shown, strict=True)},
    }


def _apart(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], Content]:
    """The turns without their media, and the media in order."""
    words = tuple(Turn(turn.role, tuple(part for part in turn.content if isinstance(part, Text))) for turn in turns)
    return words, tuple(part for turn in turns for part in turn.content if not isinstance(part, Text))


def check_item(needs: tuple[str, ...], item: Item, where: str) -> None:
    """DataError if the item lacks something that the prompt needs."""
    for need in needs:
        if need != "levels" and not getattr(item, need):
            message = f"{where} cannot ask without a {need}, and item {item.id!r} has none: give it one, or use another"
            raise DataError(f"{message} format (--format)", path=item.origin, field=need)


def response_of(item: Item, index: int) -> Content:
    """The response of that index; DataError if there is none or nothing in it."""
    field = "response" if len(item.responses) <= 1 else f"responses[{index}]"
    if not 0 <= index < len(item.responses):
        count = len(item.responses)
        message = f"item {item.id!r} has {count} response(s), but number {index + 1} is to be judged: add it"
        if not count:
            message = f"item {item.id!r} has no response (none is given, or null): add it, or leave the item out"
        raise DataError(message, path=item.origin, field="response" if count == 0 else "responses")
    content = item.responses[index]
    if is_empty(content):
        message = f"the response of item {item.id!r} is empty: give it text or an image, or leave the item out"
        raise DataError(message, path=item.origin, field=field)
    return content


def prompt_alone(item: Item) -> tuple[Message, ...]:
    """The item's own turns without any response: what the model whose responses are judged is asked."""
    return as_given(replace(item, responses=()), ())


def as_given(item: Item, responses: tuple[int, ...]) -> tuple[Message, ...]:
    """The item's own turns; the response, if there is one, closes the last user turn."""
    messages: list[Message] = []
    for turn in item.instruction:
        messages.append(Message(turn.role, plain_pieces(turn.content)))
    if item.responses:
        shown: tuple[Piece, ...] = plain_pieces(response_of(item, responses[0] if responses else 0))
        if messages and messages[-1].role == "user":
            shown = (*messages.pop().parts, Span("\n\n", trusted=True), *shown)
        messages.append(Message("user", shown))
    if not any(message.parts for message in messages):
        message = f"item {item.id!r} has neither an instruction nor a response to send: give it one"
        raise DataError(message, path=item.origin, field="instruction")
    return tuple(messages)
