"""Columns made from others: means, totals, ratios, the winner of two scores, checklists, replies read by a dialect.

Each is one operator on named inputs; nothing is evaluated as an expression. What cannot be computed (an input that is
missing, a division by zero) is undefined, and counted by its reason.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from dikast.audit.plan import Column, PairLabels, ReplyReader, spelling
from dikast.audit.tables.checklist import checklist
from dikast.audit.tables.columns import MISSING, entries_of
from dikast.core.errors import DataError, UserError
from dikast.core.scale import Scale
from dikast.core.text import counted

OK = "ok"
NO_INPUT = "no input"
BY_ZERO = "divided by zero"
TWO_DUE = " where two are needed"
_CIRCLE, _ARROW = " is a cycle", " -> "
Values = Sequence[Any]
Pairs = list[tuple[float, Fraction]]  # numbers with their weights


class Made(NamedTuple):
    """A derived column: a value for each row (None where undefined), and `why`: ok, or the reason of each row."""

    values: list[Any]
    why: list[str]


@dataclass(frozen=True, slots=True)
class Setting:
    """What the audit says about all columns: the scale, words that mark a failure, spellings of choices, dialects."""

    scale: Scale | None = None
    failed: frozenset[str] = frozenset()
    labels: PairLabels | None = None
    pairwise: bool = False
    replies: ReplyReader | None = None
    spelt_failed: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        object.__setattr__(self, "spelt_failed", frozenset(map(spelling, self.failed)))


class _Undefined(Exception):
    """There is no value here; the message is the reason."""


def make(
    column: Column, inputs: Sequence[Values], setting: Setting, where: Callable[[int, int], tuple[str, int | None]]
) -> Made:
    """Compute a column from its inputs, each a value a row (n,). `where(row, input)` is the file and line, for errors.

    DataError where a value is no number (or no answer) and is not named as a failure.
    """
    one = _READ.get(column.operator, _numeric)(column, setting)
    values, why = list[Any](), list[str]()
    for i, row in enumerate(zip(*inputs, strict=True)):
        try:
            values.append(one(row))
            why.append(OK)
        except _Undefined as reason:
            values.append(None)
            why.append(str(reason))
        except _BadValue as bad:
            path, line = where(i, bad.at)
            raise DataError(
                f"{bad} (for the column {column.name!r}): name it with --failed if it marks a failure",
                path=path,
                line=line,
                field=column.inputs[bad.at],
            ) from None
    return Made(values, why)


class _BadValue(Exception):
    """A value that cannot be used; `at` is the input it is of."""

    def __init__(self, message: str, at: int) -> None:
        self.at = at
        super().__init__(message)


def _number(value: Any, at: int, setting: Setting, scale: Scale | None) -> float:
    """A value as a number; NaN where it is missing, marks a failure, or is off the column's own scale."""
    if value is None or (isinstance(value, str) and value.strip() in MISSING):
        return math.nan
    if isinstance(value, str | float | int) and spelling(str(value)) in setting.spelt_failed:
        return math.nan
    if isinstance(value, str):
        spelt = scale or setting.scale
        if spelt is not None and (label := spelt.match(value)) is not None:
            return spelt.value(label)
        try:
            value = float(value)
        except ValueError:
            shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
            raise _BadValue(f"expected a number here, not {shown}", at) from None
    if not isinstance(value, int | float):
        raise _BadValue(f"expected a number here, not {type(value).__name__}", at)
    found = float(value)
    if not math.isfinite(found) or (scale is not None and found not in scale.values):
        return math.nan
    return found


def _numbers(row: Values, column: Column, setting: Setting) -> Pairs:
    """The numbers of a row with their weights, lists and objects entry by entry.

    A weight is that of an input: in a mean its entries share it, however many there are. An empty list is missing.
    """
    found, lost = Pairs(), False
    shared = bool(column.weights) and column.operator != "total"
    weights = [_exact(each) for each in column.weights] or [Fraction(1)] * len(row)
    for at, (value, weight) in enumerate(zip(row, weights, strict=True)):
        entries = [_number(each, at, setting, column.scale) for each in entries_of(value).values()]
        known = [each for each in entries if not math.isnan(each)]
        lost |= not entries or len(known) < len(entries)
        found.extend((each, weight / len(known) if shared else weight) for each in known)
    if not found or (lost and column.missing != "skip"):
        raise _Undefined(NO_INPUT)
    return found


def _numeric(column: Column, setting: Setting) -> Callable[[Values], float]:
    combine = _COMBINE[column.operator]

    def one(row: Values) -> float:
        return float(combine(_numbers(row, column, setting)))

    return one


def _exact(value: float) -> Fraction:
    """The number as it is written: 0.1 is a tenth, so that sums that should be equal are."""
    return Fraction(int(value)) if value.is_integer() else Fraction(repr(value))


def _total(known: Pairs) -> Fraction:
    return sum((_exact(each) * weight for each, weight in known), Fraction())


def _mean(known: Pairs) -> Fraction:
    weight = sum((weight for _, weight in known), Fraction())
    if weight == 0:
        raise _Undefined(BY_ZERO)
    return _total(known) / weight


def _geometric(known: Pairs) -> float:
    if any(each < 0 for each, _ in known):
        raise _Undefined("geometric mean of a negative number")
    if any(each == 0 and weight for each, weight in known):
        return 0.0
    total = sum((weight for _, weight in known), Fraction())
    if total == 0:
        raise _Undefined(BY_ZERO)
    logs = math.fsum(math.log(each) * float(weight / total) for each, weight in known if weight)
    return float(f"{math.exp(logs):.12g}")  # the root of 2 times 8 is 4


def _two(known: Pairs) -> tuple[Fraction, Fraction]:
    if len(known) != 2:
        raise _Undefined(f"{counted(len(known), 'number')}{TWO_DUE}")
    return _exact(known[0][0]), _exact(known[1][0])


def _difference(known: Pairs) -> Fraction:
    first, second = _two(known)
    return first - second


def _ratio(known: Pairs) -> Fraction:
    first, second = _two(known)
    if second == 0:
        raise _Undefined(BY_ZERO)
    return first / second


_COMBINE: Mapping[str, Callable[[Pairs], float | Fraction]] = {
    "mean": _mean,
    "geometric": _geometric,
    "least": lambda known: min(each for each, _ in known),
    "greatest": lambda known: max(each for each, _ in known),
    "total": _total,
    "difference": _difference,
    "ratio": _ratio,
}


def _winner(column: Column, setting: Setting) -> Callable[[Values], str]:
    words, within = _outcomes(setting), _exact(column.within)

    def one(row: Values) -> str:
        first, second = _two(_numbers(row, column, setting))
        if abs(first - second) <= within:
            return words[2]
        return words[0] if first > second else words[1]

    return one


def _outcomes(setting: Setting) -> tuple[str, str, str]:
    """How the audit spells the first, the second and a tie."""
    return ("first", "second", "tie") if setting.labels is None else setting.labels.one_each()


def _checklist(column: Column, setting: Setting) -> Callable[[Values], float]:
    def one(row: Values) -> float:
        answers = dict[str, Any]()
        given = row[: len(column.inputs)]
        for name, value in zip(column.inputs, given, strict=False):
            entries = entries_of(value)
            answers |= entries if len(given) == 1 or entries.keys() != {"1"} else {name: value}
        if isinstance(column.parents, str):
            parents: Mapping[str, Any] = {} if row[-1] is None else entries_of(row[-1])
        else:
            parents = column.parents
        try:
            found = checklist(answers, parents, skip=column.missing == "skip", failed=setting.spelt_failed)
        except UserError as error:
            raise _BadValue(str(error), 0) from None
        if math.isnan(found):
            raise _Undefined(NO_INPUT)
        return found

    return one


_STRONG = {"A>>B": "first", "B>>A": "second"}


def _parse(column: Column, setting: Setting) -> Callable[[Values], float | str]:
    if setting.replies is None:
        raise UserError(
            f"column {column.name!r}: give AuditPlan a `replies` (dikast.prompts.recorded.reply_reader) to read replies"
        )
    scale = None if setting.pairwise else column.scale or setting.scale
    if scale is None and not setting.pairwise:
        raise UserError(f"column {column.name!r}: say what the replies state: --scale, or --pairwise for choices")
    read = setting.replies(column.dialect, scale)
    slots = dict(zip(("first", "second", "tie"), _outcomes(setting), strict=True))

    def one(row: Values) -> float | str:
        (reply,) = row
        if reply is None or reply == "" or (isinstance(reply, str) and reply in setting.failed):
            raise _Undefined(NO_INPUT)
        label, status = read(str(reply))
        if label is None:
            raise _Undefined(status)
        if scale is not None:
            return scale.value(label)
        if label in _STRONG and setting.labels is None:
            return label  # as `read_choices` reads it, with its strength
        return slots[_STRONG.get(label, label)]

    return one


_READ: Mapping[str, Callable[[Column, Setting], Callable[[Values], Any]]] = {
    "winner": _winner,
    "checklist": _checklist,
    "parse": _parse,
}


def definition_mistakes(columns: Sequence[Column]) -> dict[str, str]:
    """What is wrong between columns, by the name of one of each: names that stand twice, and circles."""
    found, circles = dict[str, str](), set[frozenset[str]]()
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            found[name] = "this name stands for several columns: give each its own"
            continue
        try:
            list(in_order(columns, [name]))
        except UserError as error:
            told = str(error).removeprefix("columns: ")
            nodes = frozenset(told.removesuffix(_CIRCLE).split(_ARROW))
            if nodes not in circles and name in nodes:
                found[name] = told
                circles.add(nodes)
    return found


def in_order(columns: Sequence[Column], wanted: Sequence[str]) -> Iterator[Column]:
    """The wanted columns and those they are made of, each after its inputs. UserError for a circle."""
    known = {column.name: column for column in columns}
    done, open_ = set[str](), list[str]()

    def visit(name: str) -> Iterator[Column]:
        if name in open_:
            raise UserError(f"columns: {_ARROW.join([*open_[open_.index(name) :], name])}{_CIRCLE}")
        if name in done or name not in known:
            return
        open_.append(name)
        for each in known[name].all_inputs:
            yield from visit(each)
        open_.pop()
        done.add(name)
        yield known[name]

    for name in wanted:
        yield from visit(name)
