"""From dataclasses of options to flags: a verb's parameters that are dataclasses are given field by field.

`core.checking.Option` says how a field is spelt as a flag; here Typer's signature is made of it, the values given are
collected into the dataclass, and `--config FILE` gives any of them as YAML.
"""

import dataclasses
import inspect
import typing
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dikast.core.checking import Key, Mistakes, fit, keys_of, option
from dikast.core.errors import UserError
from dikast.core.output_folder import refuse_address
from dikast.core.text import Located, hint, read_located
from dikast.surface.completion import COMPLETERS

Sections = Mapping[str, Callable[[Located], list[str]]]
CONFIG = "YAML file with flags; the command line takes precedence."
_PLAIN = (str, int, float, bool, Path)


@dataclass(frozen=True, kw_only=True)
class JsonOptions:
    """In which form a result is printed."""

    json: bool = option(False, help="Print the result as JSON.")


@dataclass(frozen=True, kw_only=True)
class ShowOptions(JsonOptions):
    """What is printed."""

    quiet: bool = option(False, "--quiet", "-q", help="Do not show progress.")


_WRITTEN = ("out", "report")  # names of parameters that say where a verb writes


class Verb(TyperCommand):
    """A command that refuses an option which takes one value and is given twice: all but the last would be ignored; and
    an address where it writes.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is left of `args`; BadParameter for an option that is repeated, UserError for an address to write to."""
        if not ctx.resilient_parsing:  # of what a shell completes
            *_, order = self.make_parser(ctx).parse_args(list(args))
            for each, times in Counter(order).items():
                flag = getattr(each, "is_flag", False) or getattr(each, "count", False)
                if times > 1 and not flag and not getattr(each, "multiple", False):
                    raise typer.BadParameter(f"given {times} times; it takes one value", param_hint=f"'{each.opts[0]}'")
        left = super().parse_args(ctx, args)
        for name in _WRITTEN:
            value = ctx.params.get(name)
            for place in value if isinstance(value, list | tuple) else [value]:
                if isinstance(place, Path) or "://" in str(place):  # `hf:/data/x` is a folder that `export` writes
                    refuse_address(place)
        return left


class Verbs(typer.Typer):
    """A group of verbs, each a `Verb`."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As Typer's."""
        return super().command(name, **{"cls": Verb, **settings})


def verb(run: Callable[..., None], config: str = "", sections: Sections | None = None) -> Callable[..., None]:
    """`run` as Typer takes it: each parameter that is a dataclass becomes the flags of its fields.

    A field that is itself such a group of options gives the flags of its own fields. A group with a method `held` gives
    a context that the verb runs in. Mistakes in flags are raised together, or handed to `run` where it has a parameter
    of the type `Mistakes`. `config` is the help text of `--config FILE`; without it the verb has no such flag; its file
    may also hold `sections` (name -> what finds the mistakes in one), and `run` gets its document as the parameter
    `config` where it has one.
    """
    hints = typing.get_type_hints(run, include_extras=True)
    groups = {name: leaves_of(typing.cast(type[Any], kind)) for name, kind in hints.items() if is_dataclass(kind)}
    leaves = [kind for each in groups.values() for kind in each.values()]
    given = [name for name, kind in hints.items() if kind is Mistakes]
    flags: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(run).parameters.items():
        if name in groups:
            for kind in groups[name].values():
                defaults = {each.name: _default(each) for each in dataclasses.fields(kind)}
                flags += [_flag(each, key, defaults[each]) for each, key in keys_of(kind).items()]
        elif name not in given and not (config and name == "config"):
            flags.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
    flags.sort(key=lambda each: each.default is not inspect.Parameter.empty)  # what must be given comes first
    if config:
        flags.append(
            _config_flag(config, {key: each for kind in leaves for key, each in keys_of(kind).items()}, sections or {})
        )

    def call(**values: Any) -> None:
        mistakes = Mistakes(Located({}, "flags"))
        held: list[Any] = []
        for name, kinds in groups.items():
            parts = {part: _collected(kind, values, mistakes) for part, kind in kinds.items()}
            held += [part for part in parts.values() if hasattr(part, "held")]
            values[name] = parts[""] if "" in parts else hints[name](**parts)
        if "config" in values and "config" not in hints:
            values.pop("config")
        if not given:
            mistakes.raise_all()
        with ExitStack() as rules:
            for part in held:
                rules.enter_context(part.held())
            run(**values, **dict.fromkeys(given, mistakes))

    call.__name__, call.__doc__, call.__module__ = run.__name__, run.__doc__, run.__module__
    call.__annotations__ = {each.name: each.annotation for each in flags}
    call.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]  # what inspect.signature looks at
    return call


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _shown(key: Key, default: Any) -> Any:
    """A default as Typer shows it."""
    if isinstance(default, tuple):
        return ",".join(default) if key.option.commas else list(default)
    return "" if default is None and _typer_type(key) is str and not _takes(key, str) else default


def _takes(key: Key, kind: type) -> bool:
    return key.type is kind or kind in typing.get_args(key.type)


def _typer_type(key: Key) -> Any:
    """The type that Typer reads: its own where it has one, else text, which is read when flags are collected."""
    inner = [each for each in typing.get_args(key.type) if each is not type(None)]
    if typing.get_origin(key.type) is tuple:
        return str if key.option.commas else list[inner[0]]  # type: ignore[valid-type]  # made at run time
    if key.type in _PLAIN or (len(inner) == 1 and inner[0] in _PLAIN):
        return key.type
    return str


def _spelt(name: str, key: Key) -> str:
    return next((each for each in key.option.names if each.startswith("--")), "--" + name.replace("_", "-"))


_METAVARS: Mapping[Any, str] = {
    int: "N",
    int | None: "N",
    float: "X",
    float | None: "X",
    Path: "PATH",
    Path | None: "PATH",
    str: "TEXT",
    str | None: "TEXT",
    list[str]: "TEXT",
}
"""What stands for a number or a path in help, short so that the text beside it has room on a terminal of 80 columns."""


def _flag(name: str, key: Key, default: Any) -> inspect.Parameter:
    option = key.option
    metavar = option.metavar or (None if option.argument else _METAVARS.get(_typer_type(key)))
    told: dict[str, Any] = {"help": option.help, "metavar": metavar, "rich_help_panel": option.panel}
    told |= {"autocompletion": COMPLETERS[option.complete]} if option.complete else {}
    told |= {"min": option.least} if option.least > float("-inf") else {}
    told |= {"max": option.most} if option.most < float("inf") else {}
    info = typer.Argument(**told) if option.argument else typer.Option(*(option.names or (_spelt(name, key),)), **told)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if key.required else _shown(key, default),
        annotation=Annotated[_typer_type(key), info],
    )


def leaves_of(kind: type[Any]) -> dict[str, type[Any]]:
    """The groups of options that a group is made of, by its fields; itself under "" where its fields are options."""
    hints = typing.get_type_hints(kind)
    inner = {each.name: hints[each.name] for each in dataclasses.fields(kind)}
    return inner if inner and all(map(is_dataclass, inner.values())) else {"": kind}


def _collected(kind: type[Any], given: dict[str, Any], mistakes: Mistakes) -> Any:
    """The dataclass that the flags fill, which are taken out of `given`.

    One that is wrong keeps its default, or what was given, for further checks.
    """
    values: dict[str, Any] = {}
    defaults = {each.name: _default(each) for each in dataclasses.fields(kind)}
    for name, key in keys_of(kind).items():
        value = given.pop(name)
        if not key.required and value == _shown(key, defaults[name]):
            continue
        if key.option.commas:
            value = [part.strip() for part in value.split(",") if part.strip()]

        def wrong(message: str, *at: object, flag: str = _spelt(name, key)) -> None:
            mistakes.tell(message if message.startswith(flag) else f"{flag}: {message}")

        before = len(mistakes)
        found = fit(key.type, value, wrong, option=key.option)
        if len(mistakes) == before or key.required:
            values[name] = found
    return mistakes.of(lambda: kind(**values))


def _config_flag(told: str, keys: Mapping[str, Key], sections: Sections) -> inspect.Parameter:
    def load(context: typer.Context, path: str | None) -> Any:
        return None if path is None else read_config(context, path, keys, sections)

    info = typer.Option("--config", is_eager=True, callback=load, help=told)
    return inspect.Parameter(
        "config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, info]
    )


def read_config(context: typer.Context, path: str, keys: Mapping[str, Key], sections: Sections) -> Located:
    """Make the values of a file the defaults of the verb, all mistakes in it reported at once; returns the document.

    It is read once, as it may come through a pipe.
    """
    mistakes = Mistakes(read_located(path))
    document = mistakes.document
    if not isinstance(document.value, dict):
        raise document.error("a configuration is a mapping from flags to values, such as 'judge: mock:constant'")
    known = {_long(each): each for each in context.command.params if each.name != "config"}
    defaults: dict[str, Any] = {}
    for key, value in document.value.items():
        if key in sections:
            mistakes += map(UserError, sections[key](document))
        elif (parameter := known.get(str(key).replace("_", "-"))) is None:
            mistakes.add(f"unknown key: {hint(str(key), sorted((*known, *sections)))}", key)
        else:
            asked = keys.get(parameter.name)
            if asked and value is not None and not asked.option.commas:
                fit(asked.type, value, mistakes.add, key, option=asked.option)
            several = parameter.multiple or parameter.nargs == -1
            defaults[parameter.name] = [value] if several and not isinstance(value, list) else value
    mistakes.raise_all()
    context.default_map = {**(context.default_map or {}), **defaults}
    return document


def _long(parameter: Any) -> str:
    long = [option for option in parameter.opts if option.startswith("--")]
    name: str = long[0].removeprefix("--") if long else parameter.name
    return name.casefold()
