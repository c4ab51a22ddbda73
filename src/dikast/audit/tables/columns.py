"""Columns of any record file as arrays: read in one pass, with every value checked.

Memory is 8 bytes a number and 4 bytes plus one copy of each distinct word a text, so a million verdicts fit easily.
"""

import functools
import itertools
import operator
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from dikast.audit.plan import is_number
from dikast.audit.tables.record_rows import Rows
from dikast.core.errors import DataError, UserError
from dikast.core.records.reading import NO_RECORDS
from dikast.core.scale import Scale
from dikast.core.text import counted, near_miss, number_in

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
MISSING = frozenset({"", "nan", "NaN", "null", "None", "NA", "N/A"})
_SEEN = 200  # records whose keys are gathered to suggest a column


class Words(NamedTuple):
    """A text column: `codes[i]` indexes `names`, or is -1 where the text is missing."""

    codes: Codes
    names: list[str]

    def at(self, index: int) -> str:
        """The text of one row."""
        return self.names[self.codes[index]] if self.codes[index] >= 0 else ""


def group_codes(words: Sequence[Words]) -> tuple[Codes, list[str]]:
    """One code a row for the combination of several columns, -1 where one is missing, and the names of the groups."""
    known = np.all([each.codes >= 0 for each in words], axis=0)
    stacked = np.column_stack([each.codes for each in words])
    distinct, codes = np.unique(stacked[known], axis=0, return_inverse=True)
    out = np.full(len(known), -1, np.int64)
    out[known] = codes.ravel()
    names = [" | ".join(each.names[code] for each, code in zip(words, row, strict=True)) for row in distinct]
    return out, names


def rows_by(codes: Codes, count: int) -> list[Codes]:
    """The rows with each code from 0 to `count` - 1, rising; rows with -1 are in none."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(count)))[1:]


@dataclass(slots=True)
class Frame:
    """Some columns of one file. `lines` says where each row stands, for messages."""

    path: str
    lines: NDArray[np.int64]
    numbers: dict[str, Floats] = field(default_factory=dict)
    words: dict[str, Words] = field(default_factory=dict)
    objects: dict[str, list[Any]] = field(default_factory=dict)
    places: dict[str, tuple[str, NDArray[np.int64]]] = field(default_factory=dict)  # of columns in another file

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which columns to read as numbers, as words, or as they are; `scale` lets numbers be written as its labels."""

    numbers: Sequence[str] = ()
    words: Sequence[str] = ()
    objects: Sequence[str] = ()
    scale: Scale | None = None
    failed: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()  # of `objects`, those that no record need have
    log: frozenset[str] = frozenset()  # columns of logarithms, in which minus infinity stands for nothing


def read_frame(rows: Rows, wanted: Wanted, each: Callable[[Mapping[str, Any]], object] | None = None) -> Frame:
    """Read the wanted columns; DataError names file, line and value for text where a number is due.

    `each` is called with every record as it is read.
    """
    numbers = {name: NumberColumn(name, rows.path, wanted) for name in dict.fromkeys(wanted.numbers)}
    words = {name: WordColumn(name, rows.path) for name in dict.fromkeys(wanted.words)}
    objects = {name: _ObjectColumn(name, rows.path) for name in dict.fromkeys(wanted.objects)}
    columns: list[NumberColumn | WordColumn | _ObjectColumn] = [*numbers.values(), *words.values(), *objects.values()]
    takers = [column.add for column in columns]
    lines = array("q")
    known: dict[str, None] = {}
    elsewhere = {name: array("q") for name in rows.elsewhere if name in {*numbers, *words, *objects}}
    for record, line in rows:
        if len(lines) < _SEEN:
            known.update(dict.fromkeys(_paths(record)))
        lines.append(line)
        if each is not None:
            each(record)
        for name, at in elsewhere.items():
            at.append(rows.place(name, record, line)[1])
        try:
            for take in takers:
                take(record, line)
        except DataError as error:
            path, at_line = rows.place(error.field, record, line)
            told = str(error).removeprefix(f"{error.path}:{error.line}: field {error.field!r}: ")
            raise DataError(told, path=path, line=at_line or None, field=error.field) from None
    if not lines:
        raise DataError(NO_RECORDS, path=rows.path)
    for column in columns:
        if not column.seen and column.name not in wanted.optional:
            raise _no_column(column.name, rows.path, known)
    return Frame(
        rows.path,
        np.frombuffer(lines, np.int64).copy(),
        {name: column.array() for name, column in numbers.items()},
        {name: column.finish() for name, column in words.items()},
        {name: column.values for name, column in objects.items()},
        {name: (rows.elsewhere[name], np.frombuffer(at, np.int64).copy()) for name, at in elsewhere.items()},
    )


def keys_of(frame: Frame, names: Sequence[str]) -> list[str]:
    """One key a row from several word columns; a row without any of them has the key ""."""
    columns = [frame.words[name] for name in names]
    if len(columns) == 1:
        return [columns[0].names[code] if code >= 0 else "" for code in columns[0].codes]
    return ["\x1f".join(column.at(i) for column in columns) for i in range(len(frame))]


class Match(NamedTuple):
    """`partner[i]` is the other file's row that belongs to row i, or -1; `unused` counts its rows without a partner."""

    partner: Codes
    unused: int


def match(frame: Frame, keys: Sequence[str], other: Frame, other_keys: Sequence[str]) -> Match:
    """Match two files on keys; a key that occurs twice in the other file is an error, since it is ambiguous."""
    del frame
    place: dict[str, int] = {}
    for i, key in enumerate(other_keys):
        if key in place:
            raise DataError(
                f"the key {key.replace(chr(31), ', ')!r} is repeated here (first on line {other.lines[place[key]]}): "
                "keep one, or name more columns with --id so that keys differ",
                path=other.path,
                line=int(other.lines[i]),
            )
        if key:
            place[key] = i
    index = np.fromiter((place.get(key, -1) for key in keys), np.int64, len(keys))
    used = np.unique(index[index >= 0])
    return Match(index, len(place) - len(used))


def duplicates(keys: Sequence[str]) -> tuple[int, str]:
    """How many keys occur more than once, and the first of them."""
    seen: set[str] = set()
    again: dict[str, None] = {}
    for key in keys:
        if key and key in seen:
            again[key] = None
        seen.add(key)
    return len(again), next(iter(again), "").replace("\x1f", ", ")


def text_of(value: Any) -> str:
    """A value as a key: whole numbers alike whether they were written 3, 3.0 or "3"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _paths(record: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in record.items():
        yield prefix + str(key)
        if isinstance(value, dict) and len(value) <= 50:
            yield from _paths(value, f"{prefix}{key}.")
        elif isinstance(value, list) and 0 < len(value) <= 20 and not isinstance(value[0], dict | list):
            yield from (f"{prefix}{key}.{i}" for i in range(len(value)))


def _no_column(name: str, path: str, known: Iterable[str]) -> UserError:
    hint = near_miss(name, known)
    if hint is not None:
        return UserError(f"{path}: there is no column {name!r}; did you mean {hint!r}?")
    listed = ", ".join(itertools.islice(known, 30))
    return UserError(f"{path}: there is no column {name!r}; the columns are: {listed}")


ABSENT = object()


def getter(name: str) -> Callable[[dict[str, Any]], Any]:
    """Look up a column by its whole name first, then as a path (`question.item`, `scores.0`)."""
    path = name.split(".")
    if len(path) == 1:
        return operator.methodcaller("get", name, ABSENT)

    def get(record: dict[str, Any]) -> Any:
        if name in record:
            return record[name]
        value: Any = record
        for i, step in enumerate(path):
            if type(value) is str and value[:1] in ("[", "{"):  # a list in the cell of a table
                value = from_json_text(value)
            if step == "*" and i == len(path) - 1:
                return value if isinstance(value, dict | list | tuple) else ABSENT
            if isinstance(value, dict):
                rest = ".".join(path[i:])
                if rest in value:
                    return value[rest]
                value = value.get(step, ABSENT)
            elif (
                isinstance(value, list | tuple) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value)
            ):
                value = value[int(step)]
            else:
                return ABSENT
        return value

    return get


@functools.lru_cache(maxsize=1024)
def _decoded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def from_json_text(value: Any) -> Any:
    """The list or object that a text spells as JSON; any other value as it is. Shared: not to be changed."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        found = _decoded(value)
        return found if isinstance(found, dict | list) else value
    return value


def entries_of(value: Any) -> dict[str, Any]:
    """The entries of an object by name, of a list (also as JSON text) by position from 1; any other value as `1`."""
    value = from_json_text(value)
    if isinstance(value, dict):
        return {str(name): each for name, each in value.items()}
    return {str(i): each for i, each in enumerate(value if isinstance(value, list | tuple) else [value], 1)}


_INFINITE = (float("inf"), float("-inf"))


class NumberColumn:
    """Gathers a column of numbers, record by record; DataError for text that is none."""

    def __init__(self, name: str, path: str, wanted: Wanted) -> None:
        self.name, self.path, self.scale, self.failed = name, path, wanted.scale, wanted.failed
        self.failed_numbers = frozenset(float(text) for text in wanted.failed if is_number(text))  # of cells that are
        self.log = name in wanted.log
        self.get, self.values, self.seen = getter(name), array("d"), False
        self.spelt: dict[str, float] = {}

    def add(self, record: dict[str, Any], line: int) -> None:
        """Take the value of one record."""
        value = self.get(record)
        if type(value) is str and (known := self.spelt.get(value)) is not None:
            self.values.append(known)
            return
        if type(value) is float:
            if value in _INFINITE and not self.log:
                raise self._error(value, line)
            self.values.append(np.nan if value in self.failed_numbers else value)
            self.seen = True
            return
        if value is ABSENT:
            self.values.append(np.nan)
            return
        self.seen = True
        if isinstance(value, str):
            number = self._number(value, line)
            if len(self.spelt) < 100_000:
                self.spelt[value] = number
            self.values.append(number)
        elif value is None:
            self.values.append(np.nan)
        elif isinstance(value, bool) and self.scale is not None:  # true is a label of a two-valued scale, not a number
            if len(self.scale.values) != 2:
                raise self._error(value, line)
            self.values.append(self.scale.values[value])
        elif isinstance(value, int | float):
            self.values.append(np.nan if value in self.failed_numbers else float(value))
        else:
            raise self._error(value, line)

    def _number(self, text: str, line: int) -> float:
        text = text.strip()
        if text in self.failed:
            return float("nan")
        if self.scale is not None and (label := self.scale.match(text)) is not None:  # "None" may be a label
            return self.scale.value(label)
        if text in MISSING:
            return float("nan")
        try:
            found = float(text)
        except ValueError:
            comma = number_in(text)  # a decimal comma, as spreadsheets of many languages write it
            if isinstance(comma, str):
                raise self._error(text, line) from None
            found = float(comma)
        if found in _INFINITE and not self.log:
            raise self._error(text, line)
        return found

    def _error(self, value: object, line: int) -> DataError:
        shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
        worded = self.scale is not None and not is_number(self.scale.labels[0])
        told = (
            f"{shown} is not on the scale {self.scale}: name it with --failed if it marks a failure, or correct --scale"
            if worded
            else f"expected a number here, not {shown}: name it with --failed if it marks a failure, "
            "say --pairwise if these are choices, or give the --scale whose labels these are"
        )
        return DataError(
            told,
            path=self.path,
            line=line,
            field=self.name,
        )

    def array(self) -> Floats:
        """The numbers (n,), NaN where there is none."""
        found = np.frombuffer(self.values, np.float64).copy()
        found[~np.isfinite(found)] = np.nan
        return found


class WordColumn:
    """Gathers a column of words, record by record."""

    def __init__(self, name: str, path: str) -> None:
        del path
        self.name, self.get, self.seen = name, getter(name), False
        self.codes, self.index = array("i"), dict[str, int]()

    def add(self, record: dict[str, Any], line: int) -> None:
        """Take the value of one record."""
        value = line if self.name == "line" and "line" not in record else self.get(record)
        if type(value) is str and (code := self.index.get(value)) is not None:
            self.codes.append(code)
            return
        if value is not ABSENT:
            self.seen = True
        if value is None or value is ABSENT or (text := text_of(value)) in MISSING:
            self.codes.append(-1)
        else:
            self.codes.append(self.index.setdefault(text, len(self.index)))

    def finish(self) -> Words:
        """The words (n,)."""
        return Words(np.frombuffer(self.codes, np.int32).astype(np.int64), list(self.index))


class _ObjectColumn:
    def __init__(self, name: str, path: str) -> None:
        del path
        self.name, self.get, self.seen = name, getter(name), False
        self.values: list[Any] = []

    def add(self, record: dict[str, Any], line: int) -> None:
        del line
        value = self.get(record)
        if value is ABSENT:
            value = None
        else:
            self.seen = True
        self.values.append(value)


def duplicate_note(keys: Sequence[str], columns: Sequence[str]) -> list[str]:
    """A note if several rows of a table have one id, made of `columns`."""
    if not columns:
        return []
    count, first = duplicates(keys)
    if not count:
        return []
    return [
        f"{counted(count, 'id')} {'occurs' if count == 1 else 'occur'} more than once (the first is {first!r}): "
        "every row counts by itself, nothing is averaged"
    ]
