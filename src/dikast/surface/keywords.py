"""What the verbs as functions share: keywords as dataclasses of options, and rows in memory named in errors."""

import dataclasses
import functools
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from dikast.core.checking import Mistakes, fit, keys_of, unknown_keyword
from dikast.core.errors import DikastError
from dikast.core.text import Located

ROWS = "rows"  # what rows in memory are called in messages, with their number from 0: `rows:3`
_SPELT = ("budget", "price")  # options that are text on the command line and need not be in Python
_ELSEWHERE = {  # options of the command line alone: what stands in their place
    "max_failures": 'run.summary["status"] counts the verdicts and what failed, by reason',
    "report": "dikast.report(run, FILE) writes a report",
    "json": "run.summary holds what --json prints",
    "quiet": "nothing is printed; watch=FUNCTION is called with the progress",
    "dry_run": "dikast grade FILE --dry-run checks everything without asking",
}
_OF_A_JUDGE = "it belongs to the judge, as in 'openai:MODEL,concurrency=8'"
_MEANT = {  # keywords of other libraries
    **dict.fromkeys(("model", "llm", "engine", "evaluator"), "the judge is the second argument, judge='openai:MODEL'"),
    **dict.fromkeys(("criterion", "criteria", "prompt"), "rubric= takes words, a file or a built-in name"),
    **dict.fromkeys(("output", "output_dir", "save", "folder"), "out= names the run folder"),
    **dict.fromkeys(("concurrency", "max_concurrency", "timeout", "retries", "batch_size"), _OF_A_JUDGE),
    **dict.fromkeys(("columns", "mapping"), "map={FIELD: COLUMN} reads a field from a column"),
    **dict.fromkeys(("progress", "verbose", "show_progress"), "watch=FUNCTION is called with the progress"),
}
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
            if key in _ELSEWHERE:
                mistakes.tell(f"{key} is an option of the command line alone: {_ELSEWHERE[key]}")
                continue
            told = unknown_keyword(key, {*known, *named})
            mistakes.tell(f"unknown keyword {key!r}: {_MEANT[key]}" if key in _MEANT else told)
            continue
        asked = keys_of(groups[known[key]])[key]
        if key == "map" and isinstance(value, Mapping):
            value = [f"{field}={column}" for field, column in value.items()]
        elif key in _SPELT:
            value = _as_flag(value)
        given[known[key]][key] = fit(
            asked.type, value, lambda told, *at, key=key: mistakes.tell(f"{key}: {told}"), option=asked.option
        )
    mistakes.raise_all()
    return given


def _as_flag(value: Any) -> Any:
    """A number, a mapping or a pair as the flag spells it: `5`, `calls=10,money=5`, `0.1,0.5`; others as they are."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={each}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


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
    wrapped: Any = function
    while wrapped is not None:  # each wrapper looks up the keywords of its own
        wrapped.__signature__ = signature.replace(parameters=named)  # read by inspect
        wrapped = getattr(wrapped, "__wrapped__", None)


Wrapped = TypeVar("Wrapped", bound=Callable[..., Any])
_COMMAND = r"`?dikast [a-z]+[^;:)`]*"  # of which the flags stay flags
_MAPS = r"--map (?:'[^']*'|[^\s;,)]+)(?: --map (?:'[^']*'|[^\s;,)]+))*"
_FLAG = (
    r"--(?P<name>[a-z][a-z-]+)"
    r"(?: (?P<value>'[^']*'|[A-Z][A-Z,|]+\b|[a-z]+=(?:\.\.\.|\d+)|[\w@./<-]*[\d_@./<][\w@./<-]*\w|none\b))?"
)
_SPELT_APART = {"id": "key", "mean": "means"}  # keywords that are called otherwise than their flags


def told_in_keywords(function: Wrapped) -> Wrapped:
    """A function whose errors name its keywords where they would name the flags of the command line."""

    @functools.wraps(function)
    def wrapped(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except DikastError as error:
            known = inspect.signature(wrapped).parameters
            error.args = (in_keywords(str(error), {name: each.annotation is bool for name, each in known.items()}),)
            raise

    return cast(Wrapped, wrapped)


def in_keywords(told: str, known: Mapping[str, bool]) -> str:
    """A message with flags as the keywords that are `known` (of each, whether it is true or false): `--scale 1-5` as
    `scale='1-5'`, `--map response=output` as `map={'response': 'output'}`.
    """

    def spelt(match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith(("dikast ", "`")):
            return text
        if text.startswith("--map ") and "map" in known:
            pairs = [each.partition("=")[::2] for each in shlex.split(text) if each != "--map"]
            return f"map={dict(pairs)}"
        flag = match["name"] or ""
        name = _SPELT_APART.get(flag, flag.replace("-", "_"))
        if name not in known:
            return text
        value = (match["value"] or "").strip("'")
        if known[name]:
            return f"{name}=True" + f" {match['value']}" * bool(value)
        return f"{name}={value if value.isupper() or not value else repr(value)}"

    return re.sub(f"{_COMMAND}|{_MAPS}|{_FLAG}", spelt, told)


@contextmanager
def named_rows(file: Path) -> Iterator[None]:
    """Make errors about the file that rows in memory were written to name the rows instead."""
    try:
        yield
    except DikastError as error:
        told = re.sub(rf"{re.escape(str(file))}:(\d+)", lambda line: f"{ROWS}:{int(line[1]) - 1}", str(error))
        error.args = (told.replace(str(file), ROWS),)
        raise
