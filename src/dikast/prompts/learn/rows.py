"""Rows of a published dataset as prompts: the columns that hold them, and the sample to learn from."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.core.records import read_records
from dikast.core.text import near_miss

PLACEHOLDER = "<image>\n"
_ASKERS = ("human", "user")
_MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Rendered:
    """One rendered prompt: the position of its row in the file (from 1), its column, and the row.

    A prompt that begins with the line `<image>` has an image there: `pictured`, and `text` lacks the line.
    """

    row: int
    column: str
    text: str
    record: Mapping[str, Any] = field(default_factory=dict, hash=False)
    pictured: bool = False


def read_rows(path: str | Path, *, where: Mapping[str, str] | None = None, limit: int | None = None) -> list[Any]:
    """The records of a file as (position, record), filtered by `where` (column to value); at most 100,000."""
    records = ((i, record.value) for i, record in enumerate(read_records(path), 1))
    kept = [
        (i, value)
        for i, value in islice(records, limit or _MOST_ROWS)
        if all(str(value.get(column)) == wanted for column, wanted in (where or {}).items())
    ]
    if not kept:
        raise DataError("no row is left: fix --where", path=str(path))
    return kept


def prompts_of(rows: Iterable[tuple[int, Mapping[str, Any]]], columns: Sequence[str], path: str) -> list[Rendered]:
    """The prompts in those columns; a conversation's prompt is its first human turn. DataError names row and column."""
    found = []
    for place, record in rows:
        for column in columns:
            if column not in record:
                near = near_miss(column, record)
                hint = f"did you mean {near!r}? " if near else ""
                message = f"row {place} has no column {column!r}: {hint}it has {', '.join(record)}"
                raise DataError(message, path=path, field=column)
            text = _prompt(record[column])
            if text is None:
                message = f"row {place}: a prompt is text, or a conversation that begins with a human turn"
                raise DataError(message, path=path, field=column)
            pictured = text.startswith(PLACEHOLDER)
            found.append(Rendered(place, column, text.removeprefix(PLACEHOLDER), record, pictured))
    return found


def find_prompt(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    """The column with the longest text in every row; UserError when there is no such column."""
    longest = set()
    for _, record in rows[:200]:
        sizes = {name: len(text) for name, value in record.items() if (text := _prompt(value)) is not None}
        if not sizes:
            raise UserError(f"no column of row {rows[0][0]} holds text: name the one with the prompt (--prompt COLUMN)")
        longest.add(max(sizes, key=lambda name: sizes[name]))
    if len(longest) > 1:
        raise UserError(f"which column holds the prompt? --prompt COLUMN, such as {' or '.join(sorted(longest))}")
    return longest.pop()


def draw(prompts: Sequence[Rendered], count: int, seed: int) -> tuple[list[Rendered], list[Rendered]]:
    """Prompts of `count` random rows, and those of all other rows. If rows are few, a third is held out."""
    rows = sorted({each.row for each in prompts})
    if len(rows) < 2:
        raise UserError("a format is learnt from some rows and verified on others: give a file of two rows or more")
    count = min(count, len(rows) - max(1, len(rows) // 3))
    drawn = set(random.Random(seed).sample(rows, count))
    return [each for each in prompts if each.row in drawn], [each for each in prompts if each.row not in drawn]


def _prompt(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and isinstance(value[0], dict):
        turn = value[0]
        role, text = turn.get("from", turn.get("role")), turn.get("value", turn.get("content"))
        return text if role in _ASKERS and isinstance(text, str) else None
    return None
