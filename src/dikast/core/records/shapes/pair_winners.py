"""Which of two responses is better, as columns of other programs say it."""

from collections.abc import Mapping, Sequence
from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import plain_name
from dikast.core.records.column_names import PAIRS, ResponseColumn, part_of
from dikast.core.text import number_in

_TIES = ("tie", "both", "equal", "draw", "same", "tie (bothbad)", "tie (both bad)", "neither", "both bad", "bothbad")


def winner(value: Any, systems: Sequence[str], columns: Sequence[str]) -> str:
    """Which response is better, as gold says it of pairs: "a", "b" or "tie"; what says neither stays, as text.

    `columns` hold the responses. A number is read only if it is the number of a column, or halfway between the
    two that there are (a tie): where columns have none, 1 could be the first or the second.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    said = plain_name(str(value))
    if str(value).strip().casefold() in _TIES or said in _TIES:
        return "tie"
    if value in systems and len(set(systems)) == len(systems):
        return "ab"[list(systems).index(value)] if systems.index(value) < 2 else str(value)
    parts = [part_of(each) or ResponseColumn("", plain_name(each).rpartition("_")[2]) for each in columns[:2]]
    numbers = [int(part.end) for part in parts if part.end.isdigit()]
    if len(columns) == len(numbers) == 2 and str(value).strip() == str(sum(numbers) / 2):
        return "tie"
    if len(columns) == 2 and numbers == [1, 2] and isinstance(share := number_in(str(value).strip()), float):
        return "ab"[share > 1.5] if 1 < share < 2 else str(value)  # as AlpacaEval weighs them
    for place, (column, part) in enumerate(zip(map(plain_name, columns[:2]), parts, strict=True)):
        end = part.end if part.stem else "ab"[place]
        words = {end, ("first", "second")[place], ("left", "right")[place], *(["ab"[place]] if end.isdigit() else [])}
        stems = [f"{stem}{mark}" for stem in (*PAIRS, "model", "system") for mark in ("_", "")]
        if said in {*words, column, *(stem + each for stem in stems for each in words)}:
            return "ab"[place]
    return str(value)


def one_hot_winner(value: Mapping[str, Any], columns: Sequence[str]) -> str | None:
    """The winner, "a", "b" or "tie", by which of three columns holds 1; None where all are empty. DataError for rows
    that have no 1, several, or anything but 0 and 1.
    """
    said = [value.get(each) for each in columns]
    if all(each in (None, "") or each != each for each in said):
        return None
    marks = [str(each).strip().casefold() for each in said]
    ones = [each in ("1", "1.0", "true") for each in marks]
    if sum(ones) != 1 or any(
        each not in ("0", "0.0", "false") for each, one in zip(marks, ones, strict=True) if not one
    ):
        shown = ", ".join(f"{name!r} {each!r}" for name, each in zip(columns, said, strict=True))
        told = f"one of the columns that say who won holds 1 and the others 0, here they are {shown}"
        raise DataError(f"{told}: correct the row, or keep them as metadata with --map gold=", field=columns[0])
    return ("a", "b", "tie")[ones.index(True)]
