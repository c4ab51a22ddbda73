"""Items: what is judged, and the table of the names that columns have for their fields.

`docs/core.md` shows the table; a test holds the page to it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Literal, cast

from dikast.core.canonical import MOST_LEVELS, too_deep
from dikast.core.errors import DataError, UserError
from dikast.core.key_slips import slip_in
from dikast.core.part import (
    Content,
    Image,
    Part,
    Text,
    Turn,
    Video,
    content_from,
    content_to,
    images_of,
    number_as_text,
    text_of,
    type_names,
)
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.core.text import counted, hint, one_line

ITEM_KEYS = (
    "id", "instruction", "response", "responses", "reference", "context", "rubric", "gold", "gold_from", "image",
    "images", "meta",
)  # fmt: skip
SPOKEN = ("instruction", "response", "reference", "context")  # fields of content, beside `responses`
_CONTENT = (*SPOKEN, "image", "images")
GOLD_LIKE = ("human_score", "human_rating", "human_label", "human", "rating", "label")  # columns that may hold gold
ASKERS, REQUESTS = ("user", "customer"), ("prompt", "question", "query", "message", "input", "request")
ANSWERERS = ("model", "llm", "ai", "assistant", "bot", "chatbot", "agent", "generated", "predicted", "student")
ANSWERS = ("response", "answer", "output", "reply", "completion", "text")
RIGHT = (
    ("reference", "response"), ("reference", "output"), ("expected", "answer"), ("expected", "response"),
    ("correct", "answer"), ("correct", "response"), ("ground_truth", "answer"), ("golden", "answer"),
)  # fmt: skip
FILES = ("file_name", "filename")  # columns that hold pictures where they name files of such
NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "uid"),
    "instruction": (
        "instruction", "prompt", "question", "query",
        *(f"{who}_{what}" for who in ASKERS for what in REQUESTS), "prompt_text", "question_text", "input",
    ),
    "response": (
        "response", "output", "completion", "prediction", "model_output", "actual_output",
        *(f"{who}_{what}" for who in ANSWERERS for what in ANSWERS if (who, what) != ("model", "output")), "answer",
    ),
    "reference": (
        "reference", "expected", "expected_output", "ideal", "ground_truth", "reference_answer", "gold_answer",
        *(f"{which}_{what}" for which, what in RIGHT), "target", "answer",
    ),
    "context": ("context", "contexts", "retrieved_contexts", "retrieval_context", "input"),
    "image": ("image", "image_path", "image_url", "img", "image_file", "image_filename", "img_path", *FILES),
    "images": ("images", "image_paths"),
    "messages": ("messages", "conversations", "conversation"),
    "system turn": ("system_prompt", "system_message"),
    "gold": GOLD_LIKE,
    "gold of a pair": (
        "winner", "preference", "human_preference", "preferred", "better", "better_response", "better_response_id",
    ),
}  # fmt: skip
_RANGE = re.compile(r"[(\[]\s*\d+\s*(?:-|–|to|\.\.)\s*\d+\s*[)\]]$")  # a scale behind a column's name: Rating (1-5)
_KNOWN = frozenset(ITEM_KEYS)
ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to judge: an instruction and one or more responses, each of text, images or clips.

    `instruction` is a conversation; a plain instruction is one user turn. `reference` is an answer known to be good,
    `context` what the answer should rest on. `rubric` overrides the judge's. `gold` is whatever people or a generator
    said is right; it is never shown to a judge, nor is `meta`. `gold_from` is the column that gold was guessed from,
    empty for gold that was named. `origin` (`file:line`) is for messages only.
    """

    id: str
    instruction: tuple[Turn, ...] = ()
    responses: tuple[Content, ...] = ()
    reference: Content | None = None
    context: Content | None = None
    rubric: Rubric | Sheet | None = None
    gold: Any = field(default=None, hash=False)
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)
    origin: str = field(default="", compare=False)
    gold_from: str = field(default="", compare=False)

    def __repr__(self) -> str:
        asked = one_line("\n".join(text_of(turn.content) for turn in self.instruction), 60)
        return f"<Item {self.id!r}: {counted(len(self.responses), 'response')} to {asked!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with text as text: objects of Python's own types take a fraction of the time of others."""
        name, instruction, responses, *rest = _fields_of(self)
        turns = [(turn.role, _plain(turn.content)) for turn in instruction]
        return _restored, (name, turns, [_plain(each) for each in responses], *rest)

    @property
    def response(self) -> Content:
        """The response of an item that has exactly one."""
        if len(self.responses) != 1:
            raise DataError(
                f"item {self.id!r} has {len(self.responses)} responses where one is needed", path=self.origin
            )
        return self.responses[0]

    @property
    def images(self) -> list[Image]:
        """Every image a judge of this item is shown, clip frames included."""
        return images_of(self._parts)

    @property
    def videos(self) -> list[Video]:
        """Every video file that a judge of this item is shown frames of."""
        return [part for part in self._parts if isinstance(part, Video) and part.source]

    @property
    def _parts(self) -> list[Part]:
        parts: list[Part] = [part for turn in self.instruction for part in turn.content]
        for content in (self.context, self.reference, *self.responses):
            parts.extend(content or ())
        return parts

    def text_only(self) -> "Item":
        """The item without its images and clips; DataError if a response consists of nothing else."""
        turns = tuple(replace(turn, content=_texts(turn.content)) for turn in self.instruction)
        reference, context = (part and _texts(part) for part in (self.reference, self.context))
        responses = tuple(map(_texts, self.responses))
        if not all(responses):
            raise DataError(
                f"item {self.id!r} has a response of pictures alone: nothing is left of it without media",
                path=self.origin,
            )
        return replace(self, instruction=turns, responses=responses, reference=reference, context=context)

    @classmethod
    def of(cls, instruction: object = (), response: object = None, **fields: Any) -> "Item":
        """An item from Python values: `Item.of("What is this?", "A cat.", image="cat.png")`; `id` may be left out.

        Numbers are their text. Keywords that are no field are metadata; UserError for those that files use as the name
        of a field of content which is not given here (`question` without an instruction), and for a response that is a
        list of several texts, which may be several responses or the parts of one (`Text("...")` each).
        """
        given: dict[str, Any] = {"id": "item", "instruction": instruction, **fields}
        if response is not None:
            given["response"] = response
        if slip := misnamed(given):
            raise UserError(f"unknown keyword {slip!r}: {meant(slip)} (metadata of this name goes into meta={{...}})")
        given |= {name: number_as_text(given[name]) for name in SPOKEN if name in given}
        if isinstance(several := given.get("responses"), list | tuple):
            given["responses"] = [number_as_text(each) for each in several]
        said = given.get("responses")
        if is_of_texts(given.get("response")) or (isinstance(said, list | tuple) and any(map(is_of_texts, said))):
            cure = "responses=[...] if each is one, [Text(...), ...] if they are parts of one"
            raise UserError(f"a list of texts stands where one response is needed: give {cure}")
        return item_from(given)


_fields_of = attrgetter(*(each.name for each in fields(Item)))


def is_of_texts(value: object) -> bool:
    """Whether a value is a list of several texts and nothing else."""
    return isinstance(value, list | tuple) and len(value) > 1 and all(isinstance(each, str) for each in value)


def _plain(content: Content) -> str | Content:
    """The text of content that is a single text; other content as it is."""
    return content[0].text if len(content) == 1 and isinstance(content[0], Text) else content


def _restored(name: str, turns: list[tuple[Any, str | Content]], said: list[str | Content], *rest: Any) -> Item:
    """The item that was pickled."""
    instruction = tuple(Turn(role, _contained(content)) for role, content in turns)
    return Item(name, instruction, tuple(map(_contained, said)), *rest)


def _contained(content: str | Content) -> Content:
    return (Text(content),) if isinstance(content, str) else content


def _texts(content: Content) -> Content:
    return tuple(part for part in content if isinstance(part, Text))


def plain_name(name: str) -> str:
    """A column's name as the table spells names: small letters, underscores, without a scale in brackets."""
    return re.sub(r"[\s\-.]+", "_", _RANGE.sub("", name.strip()).strip().casefold())


def _field_named(column: str) -> str:
    """The field that a column of this name is; "" for none."""
    name = plain_name(column)
    return next((field for field, names in NAMES.items() if field in ITEM_KEYS and name in names), "")


def misnamed(given: Mapping[str, Any]) -> str:
    """The first key that files use as the name of a field of content which is not given here; "" for none."""
    unknown = [name for name in given if name not in _KNOWN]
    lacking = {name for name in _CONTENT if given.get(name) in (None, "", ())} if unknown else set()
    if "responses" in given:
        lacking.discard("response")
    return next((name for name in unknown if _field_named(name) in lacking), "")


def meant(name: str) -> str:
    """The field that a wrong keyword most likely means, for a message."""
    found = _field_named(name)
    return f"did you mean {found!r}?" if found else hint(name, ITEM_KEYS)


def item_from(value: object, *, path: str = "", line: int | None = None, root: str = "") -> Item:
    """Read one record. Unknown keys are kept in `meta`; a near miss of a known key, or a wrong type, is a DataError.

    `image` / `images` put pictures at the head of the last user turn. Relative paths, of images and of rubric files,
    start at `root`.
    """
    try:
        if not isinstance(value, dict):
            raise DataError(f"a record is an object with 'id' and 'response', got {_type(value)}")
        _check_keys(value)
        if (deep := too_deep(value)) is not None:
            raise DataError(f"the value is nested in more than {MOST_LEVELS} levels: flatten it", field=deep)
        responses = _responses(value, root)
        return Item(
            id=_id(value.get("id"), line),
            instruction=_with_images(_conversation(value.get("instruction"), root), value, root),
            responses=responses,
            reference=_optional(value, "reference", root),
            context=_optional(value, "context", root),
            rubric=_rubric(value.get("rubric"), root),
            gold=value.get("gold"),
            meta=_meta(value),
            origin=path + (f":{line}" if line is not None else ""),
            gold_from=_gold_from(value),
        )
    except DataError as error:
        if error.path:
            raise
        raise DataError(
            str(error).removeprefix(f"field {error.field!r}: "), path=path, line=line, field=error.field
        ) from None


def item_to(item: Item) -> dict[str, Any]:
    """The JSON form that `item_from` reads back; missing fields are left out."""
    value: dict[str, Any] = {"id": item.id}
    single = len(item.instruction) == 1 and item.instruction[0].role == "user"
    if single:
        value["instruction"] = _present(item.instruction[0].content)
    elif item.instruction:
        value["instruction"] = [{"role": t.role, "content": content_to(t.content)} for t in item.instruction]
    if len(item.responses) == 1:
        value["response"] = content_to(item.responses[0])
    elif item.responses:
        value["responses"] = [content_to(response) for response in item.responses]
    for key in ("reference", "context"):
        content = getattr(item, key)
        if content is not None:
            value[key] = _present(content)
    if isinstance(item.rubric, Rubric):
        value["rubric"] = item.rubric.to_dict()
    elif isinstance(item.rubric, Sheet):
        value["rubric"] = {"name": item.rubric.name, "criteria": [rubric.to_dict() for rubric in item.rubric]}
    if item.gold is not None:
        value["gold"] = item.gold
        if item.gold_from:
            value["gold_from"] = item.gold_from
    if item.meta:
        value["meta"] = dict(item.meta)
    return value


def _present(content: Content) -> object:
    """As `content_to`, for fields in which a bare empty string would mean that the field is missing."""
    return content_to(content) or [{"type": "text", "text": each.text} for each in content if isinstance(each, Text)]


def _type(value: object) -> str:
    return "nothing" if value is None else type_names.get(type(value), f"a {type(value).__name__}")


def _check_keys(value: dict[Any, Any]) -> None:
    unknown = value.keys() - _KNOWN
    if unknown:
        for key in unknown:
            if not isinstance(key, str):
                raise DataError(f"keys must be text, got {key!r}")
        slip = slip_in(frozenset(value), ITEM_KEYS)
        if slip is not None:
            key, near = slip
            told = f"did you mean {near!r}? Then write --map {near}={key}; if not, rename it or put it under 'meta'"
            raise DataError(f"unknown key {key!r}: {told}", field=key)


def _id(value: object, line: int | None) -> str:
    if value is None and line is not None:
        return str(line)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        got = "empty text" if value == "" else _type(value)
        raise DataError(f"expected text or a whole number, got {got}", field="id")
    return value


def _responses(value: dict[str, Any], root: str) -> tuple[Content, ...]:
    one, several = value.get("response"), value.get("responses")
    if one is not None and several is not None:
        raise DataError("a record has 'response' or 'responses', not both", field="responses")
    if one is not None:
        return (content_from(one, field="response", root=root),)
    if several is None:
        return ()
    if not isinstance(several, list | tuple):
        raise DataError(f"expected a list of responses, got {_type(several)}", field="responses")
    return tuple(content_from(each, field=f"responses[{i}]", root=root) for i, each in enumerate(several))


def _conversation(value: object, root: str) -> tuple[Turn, ...]:
    """A conversation is a list of objects with `role`; anything else is the content of one user turn."""
    if value is None or value == "" or value == ():
        return ()
    if isinstance(value, str):
        return (Turn("user", (Text(value),)),)
    if not (isinstance(value, list) and value and any(isinstance(t, dict) and "role" in t for t in value)):
        return (Turn("user", content_from(value, field="instruction", root=root)),)
    turns = []
    for i, turn in enumerate(value):
        where = f"instruction[{i}]"
        if not isinstance(turn, dict) or "role" not in turn or "content" not in turn:
            raise DataError("each turn of a conversation is an object with 'role' and 'content'", field=where)
        if turn["role"] not in ROLES:
            raise DataError(f"{turn['role']!r} is not a role: use {', '.join(ROLES)}", field=f"{where}.role")
        role = cast(Literal["system", "user", "assistant"], turn["role"])
        turns.append(Turn(role, content_from(turn["content"], field=f"{where}.content", root=root)))
    return tuple(turns)


def _with_images(turns: tuple[Turn, ...], value: dict[str, Any], root: str) -> tuple[Turn, ...]:
    found: list[Part] = []
    for key in ("image", "images"):
        given = value.get(key)
        if given is None:
            continue
        listed = given if isinstance(given, list | tuple) else [given]
        for i, each in enumerate(listed):
            where = key if given is each else f"{key}[{i}]"
            found.extend(content_from({"type": "image", "image": each}, field=where, root=root))
    if not found:
        return turns
    last = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=None)
    if last is None:
        return (*turns, Turn("user", tuple(found)))
    return tuple(Turn(t.role, (*found, *t.content)) if i == last else t for i, t in enumerate(turns))


def _optional(value: dict[str, Any], key: str, root: str) -> Content | None:
    given = value.get(key)
    return None if given is None or given == "" else content_from(given, field=key, root=root)


def _rubric(value: object, root: str) -> Rubric | Sheet | None:
    if value is None:
        return None
    if not isinstance(value, str | dict | Rubric | Sheet):
        raise DataError(
            f"expected a rubric, a rubric file or the name of a built-in one, got {_type(value)}", field="rubric"
        )
    try:
        return load_rubric(value, root=root)
    except UserError as error:
        raise DataError(str(error), field="rubric") from None


def _gold_from(value: dict[str, Any]) -> str:
    column = value.get("gold_from") or ""
    if not isinstance(column, str):
        raise DataError(f"expected the name of a column, got {_type(column)}", field="gold_from")
    return column


def _meta(value: dict[str, Any]) -> dict[str, Any]:
    meta = value.get("meta") or {}
    if not isinstance(meta, dict):
        raise DataError(f"expected an object, got {_type(meta)}", field="meta")
    if not meta and value.keys() <= _KNOWN:
        return {}
    return {**{key: each for key, each in value.items() if key not in _KNOWN}, **meta}
