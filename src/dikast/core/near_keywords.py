"""Keywords that a function of Python does not have: an error that names the nearest one."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from dikast.core.checking import Mistakes
from dikast.core.text import Located, hint, near_miss

P = ParamSpec("P")
R = TypeVar("R")
_LEAST = 0.7  # as short a name as `rubik` is as near to `rubric` as a single slip can be
_VARIOUS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NOTHING: Mapping[str, str] = MappingProxyType({})


def unknown_keyword(key: str, known: Iterable[str], within: Mapping[str, str] = _NOTHING) -> str:
    """The message about an unknown keyword. `within`: names inside the value of a keyword, with how they are spelt."""
    names = sorted(known)
    near = key if key in within else near_miss(key, [*names, *within], _LEAST)
    told = hint(key, names) if near is None else f"did you mean {near!r}?"
    if near is not None and near in within:
        told = f"write {within[near]}" if near == key else f"{told} Write {within[near]}"
    return f"unknown keyword {key!r}: {told}"


def near_keywords(
    within: Mapping[str, str] = _NOTHING, passes_to: Callable[..., Any] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function called with an unknown keyword raise a UserError that names the nearest one (not a TypeError).

    within: as in `unknown_keyword`. passes_to: what takes those keywords that the function does not have itself.
    """

    def around(function: Callable[P, R]) -> Callable[P, R]:
        plain = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                plain.bind(*args, **kwargs)
                fits = passes_to is None
            except TypeError:
                fits = False
            if not fits:
                shown = inspect.signature(call)  # which can name more than the function itself does
                names = {*_names(shown), *(_names(inspect.signature(passes_to)) if passes_to else ())}
                _check(plain, names, args, kwargs, within)
            return function(*args, **kwargs)

        return call

    return around


def _names(signature: inspect.Signature) -> list[str]:
    return [each.name for each in signature.parameters.values() if each.kind not in _VARIOUS and each.name != "self"]


def _check(
    plain: inspect.Signature,
    names: set[str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    within: Mapping[str, str],
) -> None:
    """UserError with all unknown keywords; one that is like no other was meant for the parameter that is missing."""
    required = [each.name for each in plain.parameters.values() if each.default is each.empty]
    lacking = [name for name in required[len(args) :] if name in names and name not in kwargs]
    mistakes = Mistakes(Located({}, "options"))
    for key in sorted(kwargs.keys() - names):
        if len(lacking) == 1 and key not in within and near_miss(key, [*names, *within], _LEAST) is None:
            mistakes.tell(f"unknown keyword {key!r}: did you mean {lacking[0]!r}, which is missing?")
            continue
        mistakes.tell(unknown_keyword(key, names, within))
    mistakes.raise_all()
