"""`--config FILE`: any flag of a verb, as YAML; flags on the command line win."""

from collections.abc import Callable, Mapping
from typing import Any

import typer

from dikast.core.text import Located, near_miss, read_located


def load_config(context: typer.Context, path: str | None) -> str | None:
    """Make the file's values the defaults of the verb; unknown keys are errors with the near match, told at once."""
    read_config(context, path, {})
    return path


def read_config(
    context: typer.Context, path: str | None, sections: Mapping[str, Callable[[Located], list[str]]]
) -> Located | None:
    """As `load_config`, for a verb whose file may also hold `sections`: name -> what finds the mistakes in one.

    Gives the document, which is read once: it may come through a pipe.
    """
    if path is None:
        return None
    document = read_located(path)
    if not isinstance(document.value, dict):
        raise document.error("a configuration is a mapping from flags to values, such as 'judge: mock:constant'")
    known = {_flag(each): each for each in context.command.params if each.name != "config"}
    mistakes: list[str] = []
    defaults: dict[str, Any] = {}
    for key, value in document.value.items():
        if key in sections:
            mistakes += sections[key](document)
            continue
        parameter = known.get(str(key).replace("_", "-"))
        if parameter is None:
            near = near_miss(str(key), (*known, *sections))
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(sorted((*known, *sections)))}"
            mistakes.append(str(document.error(f"unknown key: {hint}", key)))
        else:
            defaults[parameter.name] = [value] if parameter.multiple and not isinstance(value, list) else value
    if mistakes:
        raise document.error("the configuration cannot be used:\n" + "\n".join(f"  {each}" for each in mistakes))
    context.default_map = {**(context.default_map or {}), **defaults}
    return document


def _flag(parameter: Any) -> str:
    long = [option for option in parameter.opts if option.startswith("--")]
    name: str = long[0].removeprefix("--") if long else parameter.name
    return name.casefold()
