"""Column recognition: the rules for names that have two meanings, beside the table of `core.item`."""

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dikast.core.errors import DataError
from dikast.core.item import FILES, ITEM_KEYS, NAMES, RIGHT, Item, plain_name

PAIRS = ("answer", "response", "output", "completion", "prediction", "assistant", "conversation")  # before _a, _b, _1
_LETTERS = "abcdefgh"  # that responses may end in
_WHO = "model|system|assistant|candidate"  # before or after the number of a response: model_1_response
SYSTEMS = (
    ("model_a", "model_b"),
    ("system_a", "system_b"),
    ("model_1", "model_2"),
    ("model1", "model2"),
    ("generator_1", "generator_2"),
    ("chosen_model", "rejected_model"),
    ("response_0_source", "response_1_source"),
)
ONE_HOT = tuple((f"{stem}_a", f"{stem}_b", "winner_tie") for stem in ("winner_model", "winner"))
SINCE = {
    **dict.fromkeys(("gold_answer", "human_label", *NAMES["system turn"], *itertools.chain(*ONE_HOT)), 2),
    "system": 3,
    **dict.fromkeys(("preferred", "better", "better_response", "better_response_id"), 7),
    **dict.fromkeys(("image_file", "image_filename", "img_path", *FILES), 7),
    **dict.fromkeys((f"{which}_{what}" for which, what in RIGHT), 4),
    **dict.fromkeys((f"{stem}_{letter}" for stem in PAIRS for letter in _LETTERS[2:]), 4),
}
"""As `since`, of names that are recognised since a later version than the first."""
SYSTEM = ("system", "model", "model_id", "model_name", "generator")
_FIRST = {"instruction": 4, "response": 6, "image": 7}  # clear names; the last means the field only if no other does
_SAID, _END = "|".join((*PAIRS[:5], "reply", "text")), rf"[{_LETTERS}]|\d{{1,3}}"
_PART = re.compile(
    rf"({'|'.join(PAIRS)})_?({_END})|({_WHO})_?({_END})_({_SAID})|({_SAID})_({_WHO})_?({_END})"  # answer_a, answer1
)
_MODEL = (  # the name of a well-known model, as it begins and as it goes on
    "(?:(?:chat_?)?gpt|o[134]|claude|opus|sonnet|haiku|gemini|gemma|llama|mistral|mixtral|qwen|deepseek|phi|grok|vicuna|"
    r"command_r|nova|kimi|glm|olmo)(?:_?[vr]?\d+[a-z]{0,2}|_(?:mini|nano|micro|small|medium|large|pro|plus|flash|lite|turbo|"
    "ultra|opus|sonnet|haiku|chat|instruct|oss|it|thinking|preview|latest))*"
)
_NAMED_MODEL = re.compile(rf"(?:\w+/)?(?:meta_)?{_MODEL}")
_OF_MODEL = re.compile(rf"({_MODEL})_({_SAID})|({_SAID})_({_MODEL})")


class Recognised(NamedTuple):
    """What is done to records with a given set of keys."""

    moves: tuple[tuple[str, str], ...] = ()  # (field, column)
    responses: tuple[str, ...] = ()  # columns that become the list of responses
    gold: str = ""  # the column that gold is guessed from
    preferred: tuple[str, ...] = ()  # two columns that repeat the responses, the better first
    messages: str = ""  # the column of a conversation that ends with the response
    answered: bool = False  # whether responses have columns of their own, beside a conversation
    system: str = ""  # the column of the system turn before the instruction
    one_hot: tuple[str, ...] = ()  # columns of which the one that holds 1 says that a is better, b is, or neither
    models: tuple[str, ...] = ()  # the models that the columns of the responses are named after

    def guessed(self) -> dict[str, str]:
        """The field of each column that was guessed."""
        found = {column: field for field, column in self.moves if field != column}
        of = [f" of {each}" for each in self.models] or [""] * len(self.responses)
        found |= {column: f"response_{i}{of[i]}" for i, column in enumerate(self.responses)}
        if self.messages:
            found[self.messages] = "instruction" if self.answered else "instruction and response"
        if self.system:
            found |= {self.system: "system turn"} if plain_name(self.system) != "system" else {}  # or a system's name
        found |= dict.fromkeys(self.one_hot, "gold (guessed)")
        if self.gold and not self.one_hot:
            found[self.gold] = f"{found[self.gold]} and gold (guessed)" if self.gold in found else "gold (guessed)"
        return found


def recognise(keys: Sequence[str], named: Mapping[str, str], numbered: Sequence[str] = ()) -> Recognised:
    """What the columns of a record hold. `named` fields are settled; "" as a column settles that there is none.

    `numbered` are columns whose own names say that they are responses (`response_0`, ...), unless some were named.
    A field's own name wins. DataError where two columns could be the same field, with the `--map` to write.
    """
    taken = {*named.values(), *numbered}
    free = {plain_name(key): key for key in reversed(keys) if key not in taken}
    has = {*named, *(key for key in keys if key not in taken and key in ITEM_KEYS)}
    moves: dict[str, str] = {}
    pair, preferred = ((), ()) if "responses" in has or named.get("response") else _pair(free, keys, tuple(numbered))
    free = {name: key for name, key in free.items() if key not in {*pair, *preferred}}
    responded = bool(pair) or bool(has & {"response", "responses"})

    def one(field: str) -> None:
        if field in has:
            return
        found = [free[name] for name in NAMES[field] if name in free and free[name] not in moves.values()]
        best = min((_tier(field, each) for each in found), default=0)
        strong = [each for each in found if _tier(field, each) == best]
        if len(strong) > 1:
            raise DataError(_unclear(field, strong, keys), field=field)
        if found:
            moves[field] = strong[0]

    for field in ("id", "instruction"):
        one(field)
    if not responded:
        one("response")
    elif not {"response", "responses"} & named.keys():
        clear = NAMES["response"][1 : _FIRST["response"]]
        rivals = [free[name] for name in clear if name in free and free[name] not in moves.values()]
        if "response" in keys:
            rivals.append("response")
        if pair and rivals:
            raise DataError(two_groups([*([each] for each in rivals), pair], keys), field="responses")
        if "response" in keys and len(rivals) > 1:
            raise DataError(_unclear("response", rivals, keys), field="response")
    for field in ("reference", "context", "image", "images"):
        if field in ("reference", "context"):
            _second(field, free, has, moves, answered=responded or "response" in moves)
        else:
            one(field)
    pictured = {"image", "images"} & {*has, *moves}
    if pictured and not responded and "response" not in moves and "caption" in free:
        moves["response"] = free["caption"]
    talk = next((free[name] for name in NAMES["messages"] if name in free), "")
    answered = responded or "response" in moves
    complete = answered and ("instruction" in moves or "instruction" in has)
    gold = ""
    if "gold" not in has:
        gold = _better(pair, preferred, named) or _gold(free, pair=bool(pair) or "responses" in has)
    one_hot = () if gold or "gold" in has else _one_hot(free, pair)
    return Recognised(
        tuple((field, column) for field, column in moves.items() if field != column),
        () if pair == tuple(numbered) else pair,
        one_hot[0] if one_hot else gold,
        preferred,
        "" if complete else talk,
        answered,
        _system(free, moves.get("instruction") or has & {"instruction"} or talk),
        one_hot,
        _models(pair),
    )


def since(name: str) -> int:
    """The version of the table (`core.runs.judge_lock.NAMES_OF`) since which a name is recognised."""
    plain = plain_name(name)
    match = _PART.fullmatch(plain)
    if is_model(plain) or (match and any(f"{match[i]}{match[j]}" in plain for i, j in ((1, 2), (3, 4), (7, 8)))):
        return 7
    return SINCE.get(plain, 5 if _OF_MODEL.fullmatch(plain) or (match and not match[1]) else 1)


def is_model(column: str) -> bool:
    """Whether a column is called like a well-known model and no more."""
    return _NAMED_MODEL.fullmatch(plain_name(column)) is not None


class ResponseColumn(NamedTuple):
    """A column that holds one of several responses: what the others are called too, and its letter or number."""

    stem: str
    end: str


def part_of(column: str) -> ResponseColumn | None:
    """Which of several responses a column holds, by its name; None for a column that holds no response."""
    match = _PART.fullmatch(plain_name(column))
    if match is None:
        return None
    stem, end, *others = match.groups()
    if stem:
        return ResponseColumn(stem, end)
    who, end, said = others[:3] if others[0] else (others[4], others[5], others[3])
    return ResponseColumn(f"{who} {said}", end)


def _models(columns: Sequence[str]) -> tuple[str, ...]:
    """The models that columns of responses are named after, as these are written; empty if any names none."""
    found = []
    for column in columns:
        if is_model(column):
            found.append(column.strip())
            continue
        match = _OF_MODEL.fullmatch(plain_name(column))
        if match is None:
            return ()
        name, stem = (match[1], match[2]) if match[1] else (match[4], match[3])
        name = column.strip()[-len(name) :] if match[4] else column.strip()[: len(column.strip()) - len(stem)]
        found.append(name.strip(" _-."))
    return tuple(found)


def _tier(field: str, column: str) -> int:
    """How clearly a column's name denotes the field: 0 for the clearest names."""
    names, clear = NAMES[field], _FIRST.get(field, len(NAMES[field]))
    at = names.index(plain_name(column))
    return 0 if at < clear else 1 if at < len(names) - 1 else 2


def _second(field: str, free: Mapping[str, str], has: set[str], moves: dict[str, str], *, answered: bool) -> None:
    """A reference or a context: the first of its names that no other field has taken."""
    if field not in has:
        for name in NAMES[field]:
            if name in free and free[name] not in moves.values():
                if (name, field) == ("answer", "reference") and not answered:
                    continue
                moves[field] = free[name]
                return


def _pair(
    free: Mapping[str, str], keys: Sequence[str], numbered: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of several responses, and `chosen` and `rejected` where these repeat two of them."""
    better = (free["chosen"], free["rejected"]) if {"chosen", "rejected"} <= free.keys() else ()
    pairs = [each for each in (better, numbered) if each]
    gap: list[str] = []
    series: dict[str, dict[str, str]] = {}
    for name, key in free.items():
        if part := part_of(name):
            series.setdefault(part.stem, {})[part.end] = key
    for _, found in sorted(series.items(), key=lambda each: PAIRS.index(each[0]) if each[0] in PAIRS else len(PAIRS)):
        letters = "".join(sorted(each for each in found if not each.isdigit()))
        if len(letters) > 1 and not _LETTERS.startswith(letters):
            gap = gap or sorted(found[each] for each in letters)
        elif len(letters) > 1:
            pairs.append(tuple(found[each] for each in letters))
        numbers = sorted(int(each) for each in found if each.isdigit())
        if len(numbers) > 1:
            if numbers[0] > 1 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
                gap = gap or sorted(found.values())
            else:
                pairs.append(tuple(found[str(number)] for number in numbers))
    if better and len(pairs) == len(pairs[-1]) == 2:
        return pairs[1], better  # the records show whether the texts are the same
    if len(pairs) > 1:
        raise DataError(two_groups(pairs, keys), field="responses")
    if gap and not pairs:
        raise DataError(
            f"responses are numbered from 0 or lettered from a without a gap, this has {', '.join(gap)}",
            field="responses",
        )
    return pairs[0] if pairs else _named_after_models(free, keys), ()


def _named_after_models(free: Mapping[str, str], keys: Sequence[str]) -> tuple[str, ...]:
    """Columns named after well-known models (`gpt4_answer`, `claude_answer`; `gpt-4o`, `claude`), where no other is the
    response.
    """
    if {*NAMES["response"][:-1], "responses"} & free.keys():
        return ()
    series: dict[str, list[str]] = {}
    for name, key in free.items():
        if match := _OF_MODEL.fullmatch(name):
            series.setdefault(match[2] or match[3], []).append(key)
        elif is_model(key):
            series.setdefault("", []).append(key)
    several = [each for each in series.values() if len(each) > 1]
    return tuple(sorted(several[0], key=list(keys).index)) if len(several) == 1 else ()


def two_groups(groups: Sequence[Sequence[str]], keys: Sequence[str]) -> str:
    """What to say where several groups of columns could be the responses, with the flags that name each."""
    told = " and ".join(f"({', '.join(map(repr, each))})" if len(each) > 1 else repr(each[0]) for each in groups)
    flags = [
        in_words([(f"response_{i}" if len(each) > 1 else "response", column) for i, column in enumerate(each)])
        for each in groups
    ]
    both = "both" if len(groups) == 2 else "all"
    told += f" could {both} be the responses; the columns are {', '.join(keys)}: name those that are with"
    return f"{told} {', or '.join(flags)}"


def _better(pair: Sequence[str], preferred: Sequence[str], named: Mapping[str, str]) -> str:
    """The column of the better of two responses, recognised or named, where one is called so; "" for none."""
    responses = [named[field] for field in ("response_0", "response_1") if named.get(field)]
    for both in (pair, preferred, responses if "response_2" not in named else ()):
        names = {plain_name(column): column for column in both}
        if names.keys() == {"chosen", "rejected"}:
            return names["chosen"]
    return ""


def _gold(free: Mapping[str, str], *, pair: bool) -> str:
    found = [free[name] for name in NAMES["gold of a pair" if pair else "gold"] if name in free]
    return found[0] if len(found) == 1 else ""  # of several none is taken


def _system(free: Mapping[str, str], asked: object) -> str:
    """The column of the system turn, where something is asked after it; `system` is one where its texts are."""
    found = [free[name] for name in NAMES["system turn"] if name in free] or [
        free[name] for name in ("system",) if name in free
    ]
    return found[0] if asked and len(found) == 1 else ""  # of several none is taken


def _one_hot(free: Mapping[str, str], pair: Sequence[str]) -> tuple[str, ...]:
    """The columns of the outcomes of a pair whose order its names say; none beside another column of gold."""
    in_order = len(pair) == 2 and all(map(part_of, pair))
    if not in_order or any(name in free for name in NAMES["gold of a pair"]):
        return ()
    return next((tuple(free[name] for name in names) for names in ONE_HOT if free.keys() >= {*names}), ())


def _unclear(field: str, found: Sequence[str], keys: Sequence[str]) -> str:
    names = " and ".join(map(repr, found))
    return (
        f"{names} could both be the {field}; the columns are {', '.join(keys)}: name the one that is with "
        f"--map {field}={found[0]}"
    )


def in_words(moves: Sequence[tuple[str, str]]) -> str:
    """The `--map` flags that read fields from columns, to be copied to a shell."""
    return " ".join(f"--map {shlex.quote(f'{field}={column}')}" for field, column in moves)


def check_order(columns: Sequence[str], keys: Sequence[str]) -> None:
    """DataError where `columns`, named as the first and the second response, are in the other order by their names,
    and `keys` have names of systems, which follow that of the names.
    """
    ends = [part.end for each in columns[:2] if (part := part_of(each))]
    names = {plain_name(key): key for key in keys}
    systems = next(((names[a], names[b]) for a, b in SYSTEMS if a in names and b in names), ())
    if systems and len(ends) == 2 and ends[0] > ends[1]:
        told = f"{systems[0]!r} names the system of {columns[1]!r}, which is to be response_1: write"
        first, second, *_ = columns
        told += f" {in_words([('response_0', second), ('response_1', first)])}"
        raise DataError(told, field="response_0")


def system_columns(item: Item) -> tuple[str, ...]:
    """The columns that name the systems which wrote the responses; empty if none do."""
    names = {plain_name(key): key for key, value in item.meta.items() if isinstance(value, str) and value}
    if len(item.responses) == 1:
        return next(((names[name],) for name in SYSTEM if name in names), ())
    lettered = (tuple(f"{who}_{_LETTERS[i]}" for i in range(len(item.responses))) for who in ("model", "system"))
    of_each = SYSTEMS if len(item.responses) == 2 else lettered if 2 < len(item.responses) <= len(_LETTERS) else ()
    return next((tuple(names[each] for each in columns) for columns in of_each if names.keys() >= {*columns}), ())


def with_models(value: dict[str, Any], models: Sequence[str]) -> dict[str, Any]:
    """The record with the models that its columns of responses are named after as systems, where it names none."""
    named = [f"model_{letter}" for letter in _LETTERS[: len(models)]]
    if len(named) < len(models) or any(plain_name(str(key)) in (*itertools.chain(*SYSTEMS), *named) for key in value):
        return value
    return {**value, **dict(zip(named, models, strict=True))}


def systems_of(item: Item) -> tuple[str, ...]:
    """The systems that wrote the responses, by the columns that name them; empty if none does."""
    return tuple(item.meta[column] for column in system_columns(item))
