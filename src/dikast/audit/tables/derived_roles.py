"""Derived columns in the roles of an audit: as numbers, as words, or as they are; undefined rows are reported."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dikast.audit.plan import AuditPlan, Column
from dikast.audit.tables.columns import NumberColumn, Wanted, WordColumn, Words
from dikast.audit.tables.derived import NO_INPUT, OK, TWO_DUE, Made, Setting, definition_mistakes, in_order, make
from dikast.core.errors import UserError
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
MOST_UNREAD = 0.1  # of recorded replies, or of the values in a column of choices
_UNREAD = ("unparsed", "off_scale")
_SHOWN = 5
Gathered = TypeVar("Gathered", NumberColumn, WordColumn)


@dataclass(slots=True)
class Inputs:
    """Columns as they stand in their files, and the file and line of each row (n,)."""

    values: Mapping[str, Sequence[Any]]
    places: Mapping[str, tuple[str, Codes]]


@dataclass(slots=True)
class Derived:
    """The roles that derived columns play."""

    numbers: dict[str, Floats] = field(default_factory=dict)
    words: dict[str, Words] = field(default_factory=dict)
    objects: dict[str, list[Any]] = field(default_factory=dict)
    why: dict[str, Words] = field(default_factory=dict)  # role -> ok, or why there is no value
    reasons: dict[str, Words] = field(default_factory=dict)  # column -> the same, a missing input among the reasons


def derive(plan: AuditPlan, roles: Mapping[str, str], inputs: Inputs, n: int) -> Derived:
    """Make what `roles` (`KIND:ROLE` -> column) need. UserError or DataError for what cannot be computed."""
    setting = Setting(plan.scale, frozenset(plan.failed), plan.pair_labels, plan.pairwise, plan.replies)
    made, found = dict[str, Made](), Derived()
    for column in in_order(plan.columns, list(roles.values())):
        given = [made[name].values if name in made else inputs.values[name] for name in column.all_inputs]

        def where(row: int, at: int, column: Column = column) -> tuple[str, int | None]:
            path, lines = inputs.places.get(column.all_inputs[at], (str(plan.file), None))
            return path, None if lines is None else int(lines[row])

        made[column.name] = make(column, given, setting, where)
        _refuse_number_of_inputs(plan, column, made[column.name])
        if column.operator == "parse":
            _refuse_unread(plan, column, made[column.name], given[0])
        found.reasons[column.name] = _words(made[column.name].why, hidden="")
    for place, name in roles.items():
        kind, _, role = place.partition(":")
        values = made[name].values
        if kind == "numbers":
            numbers = NumberColumn(name, str(plan.file), Wanted(scale=plan.scale))
            found.numbers[role] = _fed(numbers, name, values).array()
        elif kind == "words":
            found.words[role] = _fed(WordColumn(name, str(plan.file)), name, values).finish()
        else:
            found.objects[role] = values
        found.why[role] = _words(made[name].why, hidden=NO_INPUT)
    return found


def check_definitions(plan: AuditPlan, record: Mapping[str, Any], has: Callable[[str], str]) -> None:
    """UserError with every mistake in the definitions of derived columns, also of those that no role asks for.

    `record` is one of the audited file; `has(column)` says what is wrong with an input, "" if nothing.
    """
    wrong = [f"column {name!r}: {told}" for name, told in definition_mistakes(plan.columns).items()]
    names = {column.name for column in plan.columns}
    for column in plan.columns:
        if column.name in record:
            wrong.append(f"the file has a column {column.name!r} already: give the derived one another name")
        for name in column.all_inputs:
            if name not in names and (told := has(name)):
                wrong.append(f"column {column.name!r} is made of {name!r}: {told}")
    if wrong:
        if len(wrong) > 1:
            raise UserError("\n  ".join([f"{plan.file}: {len(wrong)} mistakes in the columns:", *wrong]))
        raise UserError(f"{plan.file}: {wrong[0]}")


def _fed(into: Gathered, name: str, values: Sequence[Any]) -> Gathered:
    for i, value in enumerate(values, 1):
        into.add({name: value}, i)
    return into


def undefined_told(column: str, why: Words) -> str:
    """How many rows of a column have no value, by reason; nothing where all have one."""
    counts = {name: int((why.codes == code).sum()) for code, name in enumerate(why.names) if name != OK}
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), key=lambda x: -x[1]) if count)
    lost = counted(sum(counts.values()), "row")
    return f"column {column!r}: {lost} of {len(why.codes):,} undefined ({told})" if told else ""


def _words(texts: Sequence[str], *, hidden: str) -> Words:
    """Texts as words, of which `hidden` is none."""
    names = list(dict.fromkeys(texts))
    place = {name: code for code, name in enumerate(names)}
    return Words(np.array([place[text] if text != hidden else -1 for text in texts], np.int64), names)


def _refuse_number_of_inputs(plan: AuditPlan, column: Column, made: Made) -> None:
    """UserError for an operator on two numbers that never has two inputs."""
    reasons = {why for why in made.why if why != NO_INPUT}
    if len(reasons) == 1 and (told := next(iter(reasons))).endswith(TWO_DUE):
        raise UserError(
            f"{plan.file}: column {column.name!r}: {column.operator} takes two columns, or one of two entries; "
            f"every row of {', '.join(column.inputs)} has {told}"
        )


def _refuse_unread(plan: AuditPlan, column: Column, made: Made, replies: Sequence[Any]) -> None:
    lost = [i for i, why in enumerate(made.why) if why in _UNREAD]
    held = sum(why != NO_INPUT for why in made.why)
    if plan.allow_unread or len(lost) <= MOST_UNREAD * held:
        return
    endings = dict.fromkeys("..." + str(replies[i]).strip()[-60:] for i in lost)
    shown = ", ".join(map(repr, list(endings)[:_SHOWN]))
    raise UserError(
        f"{plan.file}: the dialect {column.dialect} reads no verdict in {len(lost):,} of the {held:,} replies in "
        f"column {column.inputs[0]!r}; they end in {shown}. Name another dialect, or go on with --allow-unread"
    )
