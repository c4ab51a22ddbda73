"""Which columns hold what: the one table of names that are recognised, and the rules for names that have two meanings.

`docs/core.md` shows the table; a test holds the page to it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dikast.core.errors import DataError
from dikast.core.gold import GOLD_LIKE
from dikast.core.item import ITEM_KEYS, Item
from dikast.core.text import hint

NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "uid"),
    "instruction": ("instruction", "prompt", "question", "query", "input"),
    "response": ("response", "output", "completion", "prediction", "model_output", "actual_output", "answer"),
    "reference": (
        "reference", "expected", "expected_output", "ideal", "ground_truth", "reference_answer", "target", "answer",
    ),
    "context": ("context", "contexts", "retrieved_contexts", "retrieval_context", "input"),
    "image": ("image", "image_path", "image_url", "img"),
    "images": ("images", "image_paths"),
    "messages": ("messages", "conversations", "conversation"),
    "gold": GOLD_LIKE,
    "gold of a pair": ("winner", "preference", "human_preference"),
}  # fmt: skip
PAIRS = ("answer", "response", "output", "completion", "prediction", "assistant", "conversation")  # before _a, _b, _1
SYSTEMS = (("model_a", "model_b"), ("system_a", "system_b"), ("model_1", "model_2"), ("chosen_model", "rejected_model"))
SYSTEM = ("system", "model")
_LAST = {"instruction": "input", "response": "answer"}  # these names mean the field only where no other name does
_PART = re.compile(rf"({'|'.join(PAIRS)})_([ab]|\d{{1,3}})")
_SAID = re.compile(r"answer|respon|output|reply|replies|generat|predict|complet|candidate|said|result")
_TIES = ("tie", "both", "equal", "draw", "same", "tie (bothbad)", "tie (both bad)", "neither", "both bad", "bothbad")


class Recognised(NamedTuple):
    """What is done to records with a given set of keys."""

    moves: tuple[tuple[str, str], ...] = ()  # (field, column)
    responses: tuple[str, ...] = ()  # columns that become the list of responses
    gold: str = ""  # the column that gold is guessed from
    messages: str = ""  # the column of a conversation that ends with the response
    numbered: int | None = None  # the number of the first response where the columns have numbers

    def told(self) -> dict[str, str]:
        """The field of each column that was guessed."""
        found = {column: field for field, column in self.moves if field != column}
        if self.responses and not self.responses[0].startswith("response_"):
            found |= {column: f"responses[{i}]" for i, column in enumerate(self.responses)}
        if self.messages:
            found[self.messages] = "instruction and response"
        if self.gold:
            found[self.gold] = f"{found[self.gold]} and gold (guessed)" if self.gold in found else "gold (guessed)"
        return found


def plain_name(name: str) -> str:
    """A column's name as the table spells names: small letters, underscores."""
    return re.sub(r"[\s\-.]+", "_", name.strip().casefold())


def recognise(keys: Sequence[str], named: Mapping[str, str]) -> Recognised:
    """What the columns of a record hold. `named` fields are settled; "" as a column settles that there is none.

    A field's own name wins. DataError where two columns could be the same field, with the `--map` to write.
    """
    taken = set(named.values())
    free = {plain_name(key): key for key in reversed(keys) if key not in taken}
    has = {*named, *(key for key in keys if key not in taken and key in ITEM_KEYS)}
    moves: dict[str, str] = {}
    pair, numbered = _pair(free, has)
    if pair:
        for each in pair:
            free.pop(plain_name(each))
    responded = bool(pair) or bool(has & {"response", "responses"})

    def one(field: str) -> None:
        if field in has:
            return
        found = [free[name] for name in NAMES[field] if name in free and free[name] not in moves.values()]
        last = _LAST.get(field)
        strong = [each for each in found if plain_name(each) != last]
        if len(strong) > 1:
            raise DataError(_unclear(field, strong, keys), field=field)
        if found:
            moves[field] = (strong or found)[0]

    for field in ("id", "instruction"):
        one(field)
    if not responded:
        one("response")
    elif "response" in keys and not {"response", "responses"} & named.keys():
        rivals = [free[name] for name in NAMES["response"][1:-1] if name in free and free[name] not in moves.values()]
        if rivals:
            raise DataError(_unclear("response", [*rivals, "response"], keys), field="response")
    for field in ("reference", "context", "image", "images"):
        if field in ("reference", "context"):
            _second(field, free, has, moves)
        else:
            one(field)
    talk = next((free[name] for name in NAMES["messages"] if name in free), "")
    complete = (responded or "response" in moves) and ("instruction" in moves or "instruction" in has)
    gold = "" if "gold" in has else _gold(free, pair=bool(pair) or "responses" in has, chosen="chosen" in pair)
    return Recognised(
        tuple((field, column) for field, column in moves.items() if field != column),
        pair,
        gold,
        "" if complete else talk,
        numbered,
    )


def _second(field: str, free: Mapping[str, str], has: set[str], moves: dict[str, str]) -> None:
    """A reference or a context: the first of its names that no other field has taken."""
    if field not in has:
        for name in NAMES[field]:
            if name in free and free[name] not in moves.values():
                if (name, field) == ("answer", "reference") and not (
                    has & {"response", "responses"} or "response" in moves
                ):
                    continue
                moves[field] = free[name]
                return


def _pair(free: Mapping[str, str], has: set[str]) -> tuple[tuple[str, ...], int | None]:
    """The columns of several responses, and the number of the first where they are numbered."""
    if "responses" in has:
        return (), None
    if "chosen" in free and "rejected" in free:
        return (free["chosen"], free["rejected"]), None
    series: dict[str, dict[str, str]] = {}
    for name, key in free.items():
        if match := _PART.fullmatch(name):
            series.setdefault(match[1], {})[match[2]] = key
    for stem in PAIRS:
        found = series.get(stem, {})
        if {"a", "b"} <= found.keys():
            return (found["a"], found["b"]), None
        numbers = sorted(int(each) for each in found if each.isdigit())
        if len(numbers) > 1 and stem != "response":  # `response_0`, ... are fields of their own
            if numbers[0] > 1 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
                told = f"responses are numbered from 0 without a gap, this has {', '.join(sorted(found.values()))}"
                raise DataError(told, field="responses")
            return tuple(found[str(number)] for number in numbers), numbers[0]
    return (), None


def _gold(free: Mapping[str, str], *, pair: bool, chosen: bool) -> str:
    if chosen:
        return free.get("chosen", "chosen")
    found = [free[name] for name in NAMES["gold of a pair" if pair else "gold"] if name in free]
    return found[0] if len(found) == 1 else ""  # of several none is taken


def _unclear(field: str, found: Sequence[str], keys: Sequence[str]) -> str:
    names = " and ".join(map(repr, found))
    return (
        f"{names} could both be the {field}; the columns are {', '.join(keys)}: name the one that is with "
        f"--map {field}={found[0]}"
    )


def meant(name: str) -> str:
    """The field that a wrong keyword most likely means, for a message."""
    found = next((field for field, names in NAMES.items() if field in ITEM_KEYS and plain_name(name) in names), "")
    return f"did you mean {found!r}?" if found else hint(name, ITEM_KEYS)


def lacking(
    needed: int, columns: Sequence[str], mapped: Mapping[str, str], lengths: Mapping[str, int] | None = None
) -> str:
    """What to say where no record has as many responses as are needed; `lengths` of the texts in each column tell
    which are most likely responses.
    """
    used = {column for column, field in mapped.items() if field != "gold (guessed)"}
    left = [
        each for each in columns if each not in used and each not in ITEM_KEYS and plain_name(each) not in GOLD_LIKE
    ]
    likely = sorted(left, key=lambda each: _likelihood(each, lengths or {}), reverse=True)[:needed]
    one, two = (*(each for each in left if each in likely), "COLUMN", "OTHER")[:2] if left else ("COLUMN", "OTHER")
    cure = f"--map response={one}" if needed == 1 else f"--map response_0={one} --map response_1={two}"
    what = "the response" if needed == 1 else "two responses"
    return f"no column is recognised as {what}; the columns are {', '.join(columns)}: name it with {cure}"


def _likelihood(column: str, lengths: Mapping[str, int]) -> tuple[bool, int]:
    """How likely a column holds responses: its name says so, or its texts are long."""
    return bool(_SAID.search(plain_name(column))), lengths.get(column, 0)


def winner(value: Any, systems: Sequence[str], numbered: int | None) -> Any:
    """Which response is better, as gold says it of pairs: "a", "b" or "tie"; other spellings stay as they are."""
    said = plain_name(str(value))
    if str(value).strip().casefold() in _TIES or said in _TIES:
        return "tie"
    if value in systems and len(set(systems)) == len(systems):
        return "ab"[list(systems).index(value)] if systems.index(value) < 2 else value
    first = None if numbered is None else str(numbered)
    for place, letter in enumerate("ab"):
        number = None if first is None else str(int(first) + place)
        ends = {letter, ("first", "second")[place], ("left", "right")[place]} | ({number} if number else set())
        if said in ends or any(said == f"{stem}_{end}" for stem in (*PAIRS, "model", "system") for end in ends):
            return letter
    return value


def systems_of(item: Item) -> tuple[str, ...]:
    """Whose the responses are, by the columns that name them; empty where none does."""
    meta = {plain_name(key): value for key, value in item.meta.items() if isinstance(value, str) and value}
    if len(item.responses) == 1:
        return next(((meta[name],) for name in SYSTEM if name in meta), ())
    both = next(((meta[a], meta[b]) for a, b in SYSTEMS if a in meta and b in meta), ())
    return both if len(both) == len(item.responses) else ()
