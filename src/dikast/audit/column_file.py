"""Derived columns as a configuration spells them: `NAME: {OPERATOR: [COLUMN, ...], OPTION: VALUE}`."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from dikast.audit.plan import OPERATORS, Column
from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.core.text import Located, near_miss

SECTION = "columns"
_OPTIONS = tuple(each.name for each in dataclasses.fields(Column)[3:])


def read_columns(document: Located) -> tuple[list[Column], list[str]]:
    """The columns of a configuration's `columns` section, and every mistake in it with file, line and field."""
    section = document.value.get(SECTION) if isinstance(document.value, dict) else None
    if section is None:
        return [], []
    if not isinstance(section, dict):
        told = "columns are a mapping, such as 'overall: {mean: [clarity, accuracy]}'"
        return [], [str(document.error(told, SECTION))]
    columns, mistakes = list[Column](), list[str]()
    for name, value in section.items():
        found, wrong = _column(document, str(name), value, (SECTION, name))
        mistakes += wrong
        columns += [found] if found is not None and not wrong else []
    return columns, mistakes


def _column(document: Located, name: str, value: Any, at: tuple[object, ...]) -> tuple[Column | None, list[str]]:
    def told(message: str, *key: object) -> str:
        return str(document.error(message, *at, *key))

    if not isinstance(value, dict):
        return None, [told("a column is a mapping with one operator, such as {mean: [clarity, accuracy]}")]
    if not name or "@" in name:
        return None, [told("a column's name is a word without @")]
    mistakes = list[str]()
    operators = [key for key in value if key in OPERATORS]
    for key in value:
        if key not in OPERATORS and key not in _OPTIONS:
            near = near_miss(str(key), (*OPERATORS, *_OPTIONS))
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join((*OPERATORS, *_OPTIONS))}"
            mistakes.append(told(f"unknown key: {hint}", key))
    if len(operators) != 1:
        count = f"has {len(operators)} operators ({', '.join(operators)})" if operators else "has no operator"
        if operators or not mistakes:
            mistakes.append(told(f"the column {count}; it needs one of {', '.join(OPERATORS)}"))
        return None, mistakes
    options, wrong = _options(value)
    mistakes += [told(message, key) for key, message in wrong]
    inputs = _names(value[operators[0]])
    if inputs is None:
        mistakes.append(told("write the columns it is made of: one name, or a list of names", operators[0]))
    if mistakes or inputs is None:
        return None, mistakes
    try:
        return Column(name, operators[0], inputs, **options), []
    except UserError as error:
        return None, [told(str(error).removeprefix(f"column {name!r}: "))]


def _names(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str | int):
        return (str(value),)
    if isinstance(value, list) and value and all(isinstance(each, str | int) for each in value):
        return tuple(map(str, value))
    return None


def _options(value: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The options as Column takes them, and what is wrong with each."""
    found, wrong = dict[str, Any](), list[tuple[str, str]]()
    for name in (each for each in _OPTIONS if each in value):
        given = value[name]
        if name == "scale":
            try:
                found[name] = Scale.parse(str(given))
            except UserError as error:
                wrong.append((name, str(error)))
        elif name == "weights":
            if isinstance(given, list) and all(_is_number(each) for each in given):
                found[name] = tuple(map(float, given))
            else:
                wrong.append((name, "weights are a list of numbers, one for each column"))
        elif name == "within":
            if _is_number(given):
                found[name] = float(given)
            else:
                wrong.append((name, "within is a number"))
        elif name == "parents":
            if isinstance(given, str | dict):
                found[name] = {str(k): each for k, each in given.items()} if isinstance(given, dict) else given
            else:
                wrong.append((name, "parents are a mapping, answer: [answers it depends on], or the name of a column"))
        elif isinstance(given, str):
            found[name] = given
        else:
            wrong.append((name, f"{name} is a word"))
    return found, wrong


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
