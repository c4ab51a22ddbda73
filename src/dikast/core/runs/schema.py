"""The types of every record in a run folder, which readers may rely on.

`misfit` finds values in JSON that do not fit; it is made from type hints, once for each type. Verdicts have the form of
`core.verdict.Verdict`, the other files that of the types below.
"""

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from dikast.core.canonical import read_json
from dikast.core.errors import DataError
from dikast.core.runs.run_files import SUMMARY, check, cure_of
from dikast.core.verdict import DISAGREE, Attempt, Status, Usage

_Outcome = Literal["a", "b", "tie", "disagree"]
_WHOLE = 2**53  # larger whole numbers are not exact in JSON
_MOST = 1e100  # of an amount; sums and squares of larger ones overflow


class PreferenceLine(TypedDict):
    """A line of `preferences.jsonl`: `Preference`, with the keys of its orders, and its joint outcome."""

    item: str
    criterion: str
    pair: tuple[int, int]
    choice: Literal["a", "b", "tie"] | None
    status: Status
    orders: tuple[str, ...]
    reason: str
    logit_a: NotRequired[float | None]
    position_bias: NotRequired[float | None]
    consistent: NotRequired[bool | None]
    outcome: NotRequired[_Outcome | None]


class RankingLine(TypedDict):
    """A line of `rankings.jsonl`: the places of an item's responses, as `ranking.item_ranking.Ranking` says."""

    item: str
    schedule: str
    values: str
    order: tuple[int, ...]
    ranks: tuple[int | None, ...]
    rewards: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    best: tuple[float | None, ...]
    cycles: int
    triples: int
    comparisons: int
    missing: int
    left_out: Mapping[str, Any]
    grades: tuple[float | None, ...] | None
    reason: str
    position_bias: NotRequired[float | None]
    tokens_in: NotRequired[int | None]
    tokens_out: NotRequired[int | None]


class TotalLine(TypedDict):
    """A line of `totals.jsonl`: the weighted total of a response, and the scores that it is made of."""

    item: str
    response: int
    total: float | None
    scores: NotRequired[Mapping[str, float | None]]


class PanelLine(TypedDict):
    """A line of `panel.jsonl`: the judges' verdicts on one question."""

    item: str
    criterion: str
    responses: tuple[int, ...]
    sample: int
    scores: tuple[float | None, ...]
    labels: tuple[str | None, ...]
    mean: float | None
    median: float | None
    spread: float | None
    majority: str | None


class MetaLine(TypedDict):
    """A line of `meta.jsonl`: an item's metadata, the systems that wrote its responses, the lengths of these in
    characters, and of a single response a fingerprint of its prompt.
    """

    item: str
    meta: NotRequired[dict[str, Any]]
    systems: NotRequired[tuple[str | float | bool | None, ...]]
    prompt: NotRequired[str]
    lengths: NotRequired[tuple[int, ...]]


class RubricLine(TypedDict):
    """A line of `rubrics.jsonl`: a rubric under the hash that verdicts name it by."""

    hash: str
    rubric: dict[str, Any]


class SheetCriterion(TypedDict):
    """One criterion of an item's own sheet."""

    hash: str
    weight: float


class SheetLine(TypedDict):
    """A line of `sheets.jsonl`: the sheet that an item brought itself."""

    item: str
    name: str
    criteria: tuple[SheetCriterion, ...]


class GoldLine(TypedDict):
    """A line of `gold.jsonl`: an item's gold as it was given, and the scale of its own that it lies on."""

    item: str
    gold: NotRequired[Any]
    scale: NotRequired[str]


class LockForm(TypedDict, total=False):
    """The part of `judge.lock.json` that readers use; versions of Dikast add to it."""

    judge: str
    identity: dict[str, Any]
    format: dict[str, Any]
    rubric: dict[str, Any] | None
    samples: int
    way: dict[str, Any]
    items: str
    columns: Mapping[str, str]
    ids: str
    equate: str
    versions: dict[str, Any]
    hash: str


class RateForm(TypedDict):
    """A share or a mean of a summary; the value is missing if n is 0, the ends if there is no interval."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: NotRequired[float]


class PreferencesForm(TypedDict, total=False):
    """The part of a summary's `preferences` that readers use."""

    choices: Mapping[str, int]
    one_order: bool
    position_bias_nats: RateForm
    position_bias_bounded: int


class RankingForm(TypedDict, total=False):
    """The part of a summary's `ranking` that readers use: with which schedule and values it was asked for."""

    schedule: str
    values: Literal["auto", "logit", "probability", "verdict"]


class SummaryForm(TypedDict, total=False):
    """The part of `summary.json` that readers use; versions of Dikast add to it."""

    kind: str
    judge: str
    judges: tuple[str, ...]
    format: str
    items: int
    questions: int
    verdicts: int
    status: Mapping[str, int]
    failures: Mapping[str, int]
    criteria: dict[str, Any]
    preferences: PreferencesForm
    ranking: RankingForm
    usage: Usage
    notes: tuple[Any, ...]
    last_verdict: str
    seconds: float


Misfit = Callable[[Any], str]
_OPEN = (
    LockForm,
    SummaryForm,
    PreferencesForm,
    RankingForm,
    RateForm,
    MetaLine,
    GoldLine,
)  # may hold more than is said here


@cache
def misfit(kind: Any) -> Misfit:
    """A function that says where and how a value is none of the type, such as `.question.sample is not a whole number
    of at least 0: -1`; "" if it is one.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return misfit(inner[0])
    if origin in (Union, types.UnionType):
        return _one_of([misfit(each) for each in inner if each is not types.NoneType], types.NoneType in inner)
    if origin is Literal:
        return _test(lambda value: isinstance(value, str) and value in inner, f"one of {', '.join(inner)}")
    if origin is tuple:
        return _listed([misfit(each) for each in inner if each is not ...], None if inner[-1] is ... else len(inner))
    if origin in (dict, Mapping):
        return _mapping(misfit(inner[1]))
    if is_dataclass(kind) or is_typeddict(kind):
        return _members(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _test(lambda value: isinstance(value, str) and value in set(kind), f"one of {', '.join(kind)}")
    return {
        Any: lambda value: "",
        str: _test(lambda value: isinstance(value, str), "text"),
        bool: _test(lambda value: isinstance(value, bool), "true or false"),
        int: _test(lambda value: type(value) is int and 0 <= value <= _WHOLE, "a whole number of at least 0"),
        float: _test(_is_number, "a number"),
    }[kind]


def fields_misfit(value: Any, kinds: Mapping[str, Any], *needed: str) -> str:
    """As `misfit`, for an object of which only some fields are known: their `kinds`, of which some are `needed`."""
    if told := misfit(dict[str, Any])(value):
        return told
    for name, kind in kinds.items():
        if name not in value and name in needed:
            return f" has no {name!r}"
        if name in value and (told := misfit(kind)(value[name])):
            return f", field {name!r}{told}"
    return ""


def _is_number(value: Any) -> bool:
    return (type(value) is float and abs(value) <= _MOST) or (type(value) is int and abs(value) <= _WHOLE)


def _test(holds: Callable[[Any], bool], told: str) -> Misfit:
    return lambda value: "" if holds(value) else f" is not {told}: {_shown(value)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _one_of(members: list[Misfit], none: bool) -> Misfit:
    def told(value: Any) -> str:
        if value is None and none:
            return ""
        found = [each(value) for each in members]
        return "" if "" in found else found[0]

    return told


def _listed(members: list[Misfit], length: int | None) -> Misfit:
    def told(value: Any) -> str:
        if not isinstance(value, list):
            return f" is not a list: {_shown(value)}"
        if length is not None and len(value) != length:
            return f" has not {length} values: {_shown(value)}"
        for i, each in enumerate(value):
            if found := members[i if length is not None else 0](each):
                return f"[{i}]{found}"
        return ""

    return told


def _mapping(member: Misfit) -> Misfit:
    def told(value: Any) -> str:
        if not isinstance(value, dict):
            return f" is not an object: {_shown(value)}"
        return next((f".{key}{found}" for key, each in value.items() if (found := member(each))), "")

    return told


def _members(kind: Any) -> Misfit:
    own = _OWN.get(kind, {})
    known = {name: own.get(name) or misfit(each) for name, each in get_type_hints(kind, include_extras=True).items()}
    if is_typeddict(kind):
        needed = kind.__required_keys__
    else:
        needed = {each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING}

    def told(value: Any) -> str:
        if not isinstance(value, dict):
            return f" is not an object: {_shown(value)}"
        if unknown := sorted(value.keys() - known.keys()) if kind not in _OPEN else ():
            return f" has fields that this version does not know: {', '.join(unknown)}; is Dikast out of date?"
        if missing := sorted(needed - value.keys()):
            return f" has no {missing[0]!r}"
        wrong = (f".{name}{found}" for name, each in value.items() if name in known and (found := known[name](each)))
        return next(wrong, "") or (_contradiction(value) if kind is PreferenceLine else "")

    return told


def outcome_of(record: Mapping[str, Any]) -> str | None:
    """The joint verdict of a line of `preferences.jsonl`; lines of earlier versions do not name it."""
    return DISAGREE if record.get("consistent") is False else record["choice"]


def _contradiction(record: Mapping[str, Any]) -> str:
    if (record["choice"] is None) == (record["status"] == Status.OK):
        return f" has the choice {record['choice']!r} and the status {record['status']!r}"
    said, joint = record.get("outcome", outcome_of(record)), outcome_of(record)
    return "" if said == joint else f" has the outcome {said!r}, where its choice and its orders give {joint!r}"


def _spent(value: Any) -> str:
    return "" if _is_number(value) and value >= 0 else f" is not an amount: {_shown(value)}"


def _logprobs(value: Any) -> str:
    """By label, null for -infinity; what earlier versions wrote in other forms is not read."""
    return misfit(Mapping[str, float | None])(value) if isinstance(value, dict) else ""


_OWN: Mapping[Any, Mapping[str, Misfit]] = {
    Usage: {"seconds": _spent, "cost": lambda value: "" if value is None else _spent(value)},
    Attempt: {"label_logprobs": _logprobs},
}


def summary_of(folder: Path) -> dict[str, Any] | None:
    """The content of a run's `summary.json`; None where it is missing, or cannot be read as one."""
    try:
        value: dict[str, Any] = read_json((folder / SUMMARY).read_bytes())
    except (OSError, ValueError):
        return None
    return value if not misfit(SummaryForm)(value) else None


def _no_ranking(line: Mapping[str, Any]) -> str:
    """What contradicts itself in a line that has the types of a ranking; "" for nothing."""
    n = len(line["ranks"])
    if any(len(line[name]) != n for name in ("rewards", "low", "high", "best")) or len(line["grades"] or [0] * n) != n:
        return " has lists of different lengths"
    named = [*map(str, line["order"]), *line["left_out"]]
    return "" if {str(i) for i in range(n)}.issuperset(named) else " names a response that is not among its ranks"


def derived_lines(folder: Path, name: str, kind: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """The records of a file that a run derives from its verdicts, with their lines; nothing where it is not there.

    DataError, with the cure, for one that has changed since it was written, or holds what no run writes.
    """
    path = folder / name
    if not path.exists():
        return
    check(folder, name)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                record = read_json(line)
                told = misfit(kind)(record) or (_no_ranking(record) if kind is RankingLine else "")
            except ValueError as error:
                told = f" cannot be read ({error})"
            if told:
                raise DataError(f"the record{told}: {cure_of(folder)}", path=str(path), line=number)
            yield record, number
