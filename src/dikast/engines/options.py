"""Options of an engine as typed on a command line: names with near misses, values by their annotation."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union

from dikast.core.errors import UserError
from dikast.core.text import near_miss

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def options_of(factory: Callable[..., Any]) -> Mapping[str, Any] | None:
    """The keyword-only parameters of `factory` with their annotations; None when it takes any keyword (`**options`)."""
    parameters = inspect.signature(factory, eval_str=True).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return {each.name: each.annotation for each in parameters if each.kind is each.KEYWORD_ONLY}


def read_options(given: Mapping[str, Any], known: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """`given` with text turned into what `known` (name to annotation) asks for; UserError tells all mistakes at once.

    Values that are not text come from Python and are passed on as they are.
    """
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for name, value in given.items():
        if name not in known:
            near = near_miss(name, known)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(known)) or 'no options'}"
            wrong.append(f"unknown option {name!r}: {hint}")
            continue
        try:
            found[name] = _read(value, known[name]) if isinstance(value, str) else value
        except ValueError:
            wrong.append(f"option {name}={value}: expected {_spelt(known[name])}")
    if wrong:
        raise UserError(f"{where}: " + "; ".join(wrong))
    return found


def _read(text: str, annotation: Any) -> Any:
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return _first(text, typing.get_args(annotation))
    if typing.get_origin(annotation) is Literal:
        return (
            {str(value): value for value in typing.get_args(annotation)}[text] if _is_one(text, annotation) else _no()
        )
    if annotation is bool:
        return _WORDS[text.lower()] if text.lower() in _WORDS else _no()
    if annotation is types.NoneType:
        return None if text.lower() == "none" else _no()
    return annotation(text) if annotation in (int, float) else text


def _first(text: str, members: tuple[Any, ...]) -> Any:
    """The first member of a union that can read `text`; plain text is tried last, as it reads everything."""
    for member in sorted(members, key=lambda member: member is str):
        try:
            return _read(text, member)
        except ValueError:
            continue
    raise ValueError


def _is_one(text: str, annotation: Any) -> bool:
    return text in map(str, typing.get_args(annotation))


def _no() -> Any:
    raise ValueError


def _spelt(annotation: Any) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", types.NoneType: "none"}
    if typing.get_origin(annotation) in (Union, types.UnionType, Literal):
        return " or ".join(words.get(each, repr(each)) for each in typing.get_args(annotation))
    return words.get(annotation, str(annotation))
