"""What the verbs as functions share: keywords as dataclasses of options, and rows in memory named in errors."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dikast.core.checking import Mistakes, fit, keys_of
from dikast.core.errors import DikastError
from dikast.core.text import Located, hint

ROWS = "rows"  # what rows in memory are called in messages, with their number from 0: `rows:3`
Groups = Mapping[str, type[Any]]


def filled(
    groups: Groups, keywords: Mapping[str, Any], own: Iterable[str] = (), named: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """The values of the keywords by group, each as its option asks for it; UserError reports all mistakes.

    `own` are options that are parameters of the function itself, or of the command line alone, and no keywords.
    `named` are the parameters of the function, for near misses.
    """
    known = {key: name for name, kind in groups.items() for key in keys_of(kind) if key not in own}
    mistakes = Mistakes(Located({}, "options"))
    given: dict[str, dict[str, Any]] = {name: {} for name in groups}
    for key, value in keywords.items():
        if key not in known:
            mistakes.tell(f"unknown keyword {key!r}: {hint(key, sorted({*known, *named}))}")
            continue
        asked = keys_of(groups[known[key]])[key]
        if key == "map" and isinstance(value, Mapping):
            value = [f"{field}={column}" for field, column in value.items()]
        given[known[key]][key] = fit(
            asked.type, value, lambda told, *at, key=key: mistakes.tell(f"{key}: {told}"), option=asked.option
        )
    mistakes.raise_all()
    return given


def show_keywords(
    function: Callable[..., Any], groups: Groups, own: Iterable[str] = (), also: Callable[..., Any] | None = None
) -> None:
    """Let `help` and editors see the options by name in the place of `**options`, and the keywords of `also`."""
    signature, more = inspect.signature(function), inspect.signature(also).parameters.values() if also else ()
    named = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    named += [each for each in more if each.kind is inspect.Parameter.KEYWORD_ONLY]
    for kind in groups.values():
        defaults = {each.name: each.default for each in dataclasses.fields(kind)}
        named += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=key.type)
            for name, key in keys_of(kind).items()
            if name not in own
        ]
    function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]  # read by inspect


@contextmanager
def named_rows(file: Path) -> Iterator[None]:
    """Make errors about the file that rows in memory were written to name the rows instead."""
    try:
        yield
    except DikastError as error:
        told = re.sub(rf"{re.escape(str(file))}:(\d+)", lambda line: f"{ROWS}:{int(line[1]) - 1}", str(error))
        error.args = (told.replace(str(file), ROWS),)
        raise
