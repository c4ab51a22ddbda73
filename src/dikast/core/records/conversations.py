"""Texts inside lists and objects: conversations as data sets spell them, as the instruction and the responses of an
item.

OpenAI and trl: a list of `{"role": ..., "content": ...}`; ShareGPT and LLaVA: `{"from": "human", "value": ...}`.
Calls of tools and their results are turns of the assistant, as text. If a response is a conversation, it consists of
the turns after those that it shares with the prompt.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from dikast.core.errors import DataError
from dikast.core.item import ROLES, plain_name
from dikast.core.part import number_as_text
from dikast.core.records.column_names import Recognised
from dikast.core.runs.judge_lock import NAMES_OF

_ROLES = {
    **dict.fromkeys(("gpt", "chatgpt", "bot", "model"), "assistant"),
    "human": "user",
    "developer": "system",
}
_PLACE = "<image>"
_CANNOT_BE_READ = (
    "a conversation as Python prints it, which cannot be read back: write the table as JSONL or Parquet"
    " (frame.to_parquet, or frame.to_json with lines=True)"
)
_UNSPACED = re.compile(r"[\u2e80-\u9fff\u0e00-\u0e7f]")  # Chinese, Japanese, Thai
_PRINTED = re.compile(r"\s*\[\s*\{'(role|content|from|value)':")


def turns_in(value: Any) -> list[dict[str, Any]] | None:
    """The turns of a conversation with `role` and `content`; None for a value that is none."""
    if isinstance(value, dict):
        value = [value]
    if isinstance(value, str) and value.lstrip()[:2] in ("[{", "[ "):  # in a cell of a table
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    if not isinstance(value, list | tuple) or not value:
        return None
    found = []
    for turn in value:
        if not isinstance(turn, dict):
            return None
        role, content = turn.get("role", turn.get("from")), turn.get("content", turn.get("value"))
        if content is None or content == "":
            content = _called(turn) or content
        if role is None or content is None:
            return None
        if role in ("tool", "function") and isinstance(
            content, str
        ):  # what a tool answered, which the user did not say
            role, content = "assistant", f"[tool result] {content}"
        found.append({"role": _ROLES.get(str(role), role), "content": content})
    return found


def _called(turn: Mapping[str, Any]) -> str:
    """The calls of tools in a turn without a text, as text; "" for none."""
    calls = turn.get("tool_calls") or ([{"function": turn["function_call"]}] if turn.get("function_call") else [])
    told = []
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            return ""
        given = function.get("arguments") or ""
        given = given if isinstance(given, str) else orjson.dumps(given).decode()
        told.append(f"[tool call] {function.get('name')}({given})")
    return "\n".join(told)


def asked_in_context(found: Recognised, keys: Collection[str], value: Mapping[str, Any]) -> Recognised:
    """What was recognised; a context that is a conversation is the instruction where no column is one."""
    moves = dict(found.moves)
    column = moves.get("context", "context" if "context" in keys else "")
    if {"instruction"} & {*moves, *keys} or found.messages or isinstance(value.get(column), str):
        return found
    if column in {each for field, each in moves.items() if field != "context"} or not turns_in(value.get(column)):
        return found
    left = tuple((field, each) for field, each in found.moves if field != "context")
    return found._replace(moves=(*left, ("instruction", column)))


def with_conversations(value: dict[str, Any], messages: str, *, names: int = NAMES_OF) -> dict[str, Any]:
    """The fields of a record with its conversations taken apart; `messages` is the column of one that holds both.

    Those that are written as text are read as such in responses since version 2 of `names`, in prompts since 3.
    """
    asked = value.get("instruction")
    value = _prompt_from_text(value) if names > 2 else value
    value = _read_from_text(value, spelt=value.get("instruction") is not asked) if names > 1 else value
    if messages and (turns := turns_in(value.get(messages))) is not None:
        value = {key: each for key, each in value.items() if key != messages}
        if value.get("response") is None and value.get("responses") is None and turns[-1]["role"] == "assistant":
            value["response"] = turns.pop()["content"]
        if turns:
            value["instruction"] = turns
    elif messages:
        raise DataError("expected a conversation: a list of turns with 'role' and 'content'", field=messages)
    if (
        isinstance(value.get("instruction"), str)
        and isinstance(value.get("response"), str)
        and "responses" not in value
    ):
        return value  # as nearly every record is
    prompt = turns_in(value.get("instruction")) if not isinstance(value.get("instruction"), str) else None
    if prompt is not None:
        value = {**value, "instruction": prompt}
    several = value.get("responses")
    said = several if isinstance(several, list) else [value["response"]] if "response" in value else []
    talks = [None if isinstance(each, str) else turns_in(each) for each in said]
    if talks and None not in talks:
        shared = _shared([talk for talk in talks if talk is not None])
        whole, asked = value.get("instruction"), prompt or []
        replies = []
        for talk in talks:
            assert talk is not None
            replies.append(_reply(talk[len(shared) :], "responses" if several is not None else "response"))
        if shared and (whole is None or len(shared) > len(asked)):
            value = {**value, "instruction": shared}
        value = {**value, **({"responses": replies} if several is not None else {"response": replies[0]})}
    return _placed(value)


def _prompt_from_text(value: dict[str, Any]) -> dict[str, Any]:
    """The record with the turns of a prompt that is a conversation written as JSON."""
    asked = value.get("instruction")
    if not isinstance(asked, str) or asked.lstrip()[:1] != "[":
        return value
    if _PRINTED.match(asked):
        raise DataError(_CANNOT_BE_READ, field="instruction")
    turns = turns_in(asked) or []
    return {**value, "instruction": turns} if turns and {turn["role"] for turn in turns} <= {*ROLES} else value


def _read_from_text(value: dict[str, Any], *, spelt: bool) -> dict[str, Any]:
    """The record with responses that are conversations written as JSON, as CSV tables of preferences have them: each as
    a list of turns, or prompt and responses each as a list with the texts of that side. Other text stays, such as lists
    of turns that were asked for, and so does a single response unless it holds the prompt, which stands nowhere else,
    or the prompt was written in the same way (`spelt`).
    """
    said, asked = value.get("responses"), value.get("instruction")
    if said is None and (spelt or asked is None) and isinstance(value.get("response"), str):
        talk = turns_in(value["response"]) or []
        begun = spelt or (len(talk) > 1 and talk[0]["role"] in ("system", "user"))
        return {**value, "response": talk} if talk and begun and talk[-1]["role"] == "assistant" else value
    if not isinstance(said, list) or not said:
        return value
    if not all(isinstance(each, str) and each.lstrip()[:1] == "[" for each in said):
        return value
    if any(map(_PRINTED.match, said)):
        raise DataError(_CANNOT_BE_READ, field="responses")
    talks = [turns_in(each) or [] for each in said]
    if all(talk and talk[-1]["role"] == "assistant" for talk in talks):
        first = talks[0][0]["content"]
        prompt = not isinstance(asked, str) or not isinstance(first, str) or first.strip() == asked.strip()
        alike = prompt and all(talk[0] == talks[0][0] for talk in talks)
        return {**value, "responses": talks} if alike or {len(talk) for talk in talks} == {1} else value
    sides = [_texts_in(each) for each in (asked, *said)]
    if not sides[0] or any(len(side) != len(sides[0]) for side in sides):
        return value
    talks = [
        [
            {"role": role, "content": text}
            for both in zip(sides[0], side, strict=True)
            for role, text in zip(("user", "assistant"), both, strict=True)
        ]
        for side in sides[1:]
    ]
    return {**value, "responses": talks}


def _texts_in(cell: Any) -> list[str]:
    """The texts of a JSON list in a cell, null as an empty one; none for any other cell."""
    try:
        found = orjson.loads(cell) if isinstance(cell, str) else None
    except orjson.JSONDecodeError:
        return []
    if not isinstance(found, list) or not all(each is None or isinstance(each, str) for each in found):
        return []
    return [each or "" for each in found]


def with_system_turn(value: dict[str, Any], column: str, *, names: int = NAMES_OF) -> dict[str, Any]:
    """The record with the text of `column` as the system turn of its instruction, where that has none yet; of a column
    `system`, which may hold the name of a system, only what is no name.
    """
    said, asked = value.get(column), value.get("instruction")
    named = plain_name(column) == "system"
    if named and isinstance(said, list) and said and all(isinstance(each, dict) and "text" in each for each in said):
        said = "\n".join(str(each["text"]) for each in said)  # blocks, as in Anthropic's requests
    if not (column and isinstance(said, str) and said.strip()) or asked is None or asked in ("", []):
        return value
    if named and not _is_told(said, names):
        return value
    spoken = isinstance(asked, list) and any(isinstance(turn, dict) and "role" in turn for turn in asked)
    turns = asked if spoken else [{"role": "user", "content": number_as_text(asked)}]
    if any(isinstance(turn, dict) and turn.get("role") == "system" for turn in turns):
        return value
    kept = {key: each for key, each in value.items() if key != column}
    return {**kept, "instruction": [{"role": "system", "content": said}, *turns]}


def _is_told(text: str, names: int) -> bool:
    """Whether a text tells a model something, and is not a name: a sentence, several lines, or five words or more of
    which most begin in lower case and have no digit. Where words are written without spaces, nine characters are long.

    Folders begun with an earlier table of `names` read any five words as told.
    """
    words = text.split()
    if words[-1][-1] in "。！？" or (len(words) > 1 and words[-1][-1] in ".!?:") or "\n" in text.strip():
        return True
    if names < 4:
        return len(words) > 4
    proper = sum(word[:1].isupper() or any(map(str.isdigit, word)) for word in words)
    return (len(words) > 4 and 2 * proper <= len(words)) or len(_UNSPACED.findall(text)) > 8


def _shared(talks: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The turns before the reply that all conversations begin with."""
    least = min(len(talk) for talk in talks) - 1
    n = next((i for i in range(least) if any(talk[i] != talks[0][i] for talk in talks)), least)
    if len(talks) == 1:
        return talks[0][:-1]
    return talks[0][:n]


def _reply(turns: list[dict[str, Any]], field: str) -> Any:
    """The assistant's text in the turns after the shared ones: one reply, or a dialogue written out."""
    if len(turns) == 1 and turns[0]["role"] == "assistant":
        return turns[0]["content"]
    if not turns or turns[-1]["role"] != "assistant" or not all(isinstance(each["content"], str) for each in turns):
        raise DataError("a response that is a conversation ends with a turn of the assistant", field=field)
    return "\n\n".join(f"{each['role'].capitalize()}: {each['content']}" for each in turns)


def _placed(value: dict[str, Any]) -> dict[str, Any]:
    """Pictures where `<image>` or an image part without a picture (trl) stands in the turns of a conversation; those
    without a place stay in `images`.
    """
    turns, given = value.get("instruction"), value.get("images", value.get("image"))
    if given is None or not isinstance(turns, list):
        return value
    left = list(given) if isinstance(given, list | tuple) else [given]
    placed = []
    for turn in turns:
        content = turn.get("content") if isinstance(turn, dict) else None
        if isinstance(content, str) and _PLACE in content and content.count(_PLACE) <= len(left):
            first, *texts = content.split(_PLACE)
            parts: list[Any] = [first.strip("\n")] if first.strip() else []
            for text in texts:
                parts.append({"type": "image", "image": left.pop(0)})
                parts += [text.strip("\n")] if text.strip() else []
            turn = {**turn, "content": parts}
        elif isinstance(content, list):
            turn = {**turn, "content": [_filled(part, left) for part in content]}
        placed.append(turn)
    kept = {key: each for key, each in value.items() if key not in ("image", "images")}
    return {**kept, "instruction": placed, **({"images": left} if left else {})}


def _filled(part: Any, left: list[Any]) -> Any:
    """The part; one of an image without a picture with the next one that is left."""
    told = {key: each for key, each in part.items() if each is not None} if isinstance(part, dict) else {}
    return {**told, "image": left.pop(0)} if left and told == {"type": "image"} else part
