"""Options of an engine as typed on a command line: names with near misses, values by their annotation."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dikast.core.checking import fit
from dikast.core.errors import UserError
from dikast.core.text import hint

_OF_A_RUN = ("temperature", "top_p", "max_tokens", "seed", "samples")


def options_of(factory: Callable[..., Any]) -> Mapping[str, Any] | None:
    """The keyword-only parameters of `factory` with their annotations; None when it takes any keyword (`**options`)."""
    parameters = inspect.signature(factory, eval_str=True).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return {each.name: each.annotation for each in parameters if each.kind is each.KEYWORD_ONLY}


def spec_with(base: str, options: Mapping[str, Any]) -> str:
    """The spec of `base` with these options as they were written, but for `served_as`, which a message corrects."""
    told = (f",{name}={value}" for name, value in options.items() if name != "served_as" and value is not None)
    return base + "".join(told)


def read_options(given: Mapping[str, Any], known: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """`given` with text turned into what `known` (name to annotation) asks for; UserError reports all mistakes at once.

    Values that are not text come from Python and are passed on as they are.
    """
    found: dict[str, Any] = {}
    mistakes: list[str] = []

    def wrong(message: str, name: str) -> None:
        mistakes.append(f"option {name!r}: {message}")

    for name, value in given.items():
        if name not in known:
            flag = f"it belongs to the run: --{name.replace('_', '-')} {value} ({name}={value} in Python)"
            mistakes.append(f"unknown option {name!r}: {flag if name in _OF_A_RUN else hint(name, sorted(known))}")
        else:
            found[name] = fit(known[name], value, wrong, name, text=True) if isinstance(value, str) else value
    if mistakes:
        raise UserError(f"{where}: " + "; ".join(mistakes))
    return found
