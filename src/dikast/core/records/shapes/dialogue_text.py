"""Dialogues written out as one text, as in Anthropic's hh-rlhf: `Human: ...` and `Assistant: ...` after blank lines."""

import re
from typing import Any

_BEGINS = re.compile(r"\s*Human: ")
_TURN = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_ROLES = {"Human": "user", "Assistant": "assistant"}


def turns_written(text: Any) -> list[dict[str, Any]] | None:
    """The turns of a dialogue that begins with `Human: ` and ends with a turn of the assistant; None for other text."""
    if not isinstance(text, str) or not _BEGINS.match(text):
        return None
    _, *parts = _TURN.split(text.strip("\n"))
    turns = [
        {"role": _ROLES[role], "content": said.strip()} for role, said in zip(parts[::2], parts[1::2], strict=True)
    ]
    return turns if len(turns) > 1 and turns[-1]["role"] == "assistant" else None


def with_dialogues(value: dict[str, Any]) -> dict[str, Any] | None:
    """The record with responses that hold their prompt as lists of turns, and a prompt that ends where the assistant is
    to speak as one; None unless all responses begin with the same turn and the record has no other prompt, or the
    prompt is such a text.
    """
    asked, several = value.get("instruction"), value.get("responses")
    said = several if isinstance(several, list) else [value.get("response")]
    if asked is None:
        talks = [turns_written(each) for each in said]
        if not talks or any(talk is None or talk[0] != (talks[0] or [])[0] for talk in talks):
            return None
        return {**value, **({"response": talks[0]} if several is None else {"responses": talks})}
    prompt = turns_written(asked)
    if prompt is None or prompt[-1]["content"] or any(_TURN.match(each) for each in said if isinstance(each, str)):
        return None
    texts = [each.strip() if isinstance(each, str) else each for each in said]
    value = {**value, "instruction": prompt[:-1]}
    return {**value, **({"response": texts[0]} if several is None else {"responses": texts})}
