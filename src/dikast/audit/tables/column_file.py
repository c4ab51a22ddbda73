"""Derived columns as a configuration spells them: `NAME: {OPERATOR: [COLUMN, ...], OPTION: VALUE}`."""

from typing import Any

from dikast.audit.plan import OPERATORS, Column
from dikast.audit.tables.derived import definition_mistakes
from dikast.core.checking import Key, Mistakes, Option, keys_of, read_keys
from dikast.core.errors import UserError
from dikast.core.text import Located

SECTION = "columns"
_INPUTS = Key(tuple[str | int, ...], Option(), required=False)
_NOT_OPTIONS = ("name", "operator", "inputs")


def read_columns(document: Located) -> tuple[list[Column], list[str]]:
    """The columns of a configuration's `columns` section, and every mistake in it with file, line and field."""
    section = document.value.get(SECTION) if isinstance(document.value, dict) else None
    mistakes, columns = Mistakes(document), list[Column | None]()
    if isinstance(section, dict):
        columns = [_column(str(name), value, mistakes, SECTION, name) for name, value in section.items()]
    elif section is not None:
        mistakes.add("columns are a mapping, such as 'overall: {mean: [clarity, accuracy]}'", SECTION)
    found = [each for each in columns if each is not None]
    for name, told in definition_mistakes(found).items():
        mistakes.add(told, SECTION, name)
    return found, list(map(str, mistakes))


def _column(name: str, value: Any, mistakes: Mistakes, *at: object) -> Column | None:
    if not isinstance(value, dict):
        mistakes.add("a column is a mapping with one operator, such as {mean: [clarity, accuracy]}", *at)
        return None
    if not name or "@" in name:
        mistakes.add("a column's name is a word without @", *at)
        return None
    before = len(mistakes)
    options = {key: each for key, each in keys_of(Column).items() if key not in _NOT_OPTIONS}
    given = read_keys({**dict.fromkeys(OPERATORS, _INPUTS), **options}, value, mistakes.add, *at)
    operators = [key for key in value if key in OPERATORS]
    if len(operators) != 1:
        count = f"has {len(operators)} operators ({', '.join(operators)})" if operators else "has no operator"
        if operators or len(mistakes) == before:
            mistakes.add(f"the column {count}; it needs one of {', '.join(OPERATORS)}", *at)
    if len(mistakes) > before:
        return None
    inputs = tuple(map(str, given.pop(operators[0])))
    try:
        return Column(name, operators[0], inputs, **given)
    except UserError as error:
        mistakes.add(str(error).removeprefix(f"column {name!r}: "), *at)
        return None
