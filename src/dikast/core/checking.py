"""Checking configuration against dataclasses: every mistake at once, each with file, line, field and cure.

A frozen dataclass is the one definition of a configuration: its fields give names, types and defaults, and `option`
adds bounds and how a field is spelt as a flag. YAML files, options of engines and flags are all read by `fit`.
`near_keywords` lets functions name the keyword that was meant.
"""

import dataclasses
import functools
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin

from dikast.core.errors import DataError, UserError, told_once
from dikast.core.former_names import present_name, present_value
from dikast.core.secrets import HIDDEN, names_a_secret
from dikast.core.text import Located, hint, near_miss

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
Wrong = Callable[..., None]  # called with a message and the keys that lead to the value
MOST_COUNT = 10**9  # of steps, rows, rounds, tokens: a larger number is a mistake, and would not end
MOST_NUMBER = 1e38  # of rates and weights: float32 holds no more than 3.4e38
MOST_SEED = 2**63 - 1
_OPTION = "option"
_LEAST = 0.7  # how alike keywords are, as `rubik` and `rubric`
_VARIOUS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NOTHING: Mapping[str, str] = types.MappingProxyType({})
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NAMES = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", types.NoneType: "none", Path: "a path"
}  # fmt: skip
_INNER = {str: "text", float: "numbers", int: "whole numbers", Any: "values"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Additional properties of a field, besides its name, type and default.

    `least` and `most` are inclusive bounds of a number (of each number of a list), `above` and `below` exclusive ones.
    An `internal` field is no key of a file and no flag. The rest spells a flag: `names` (made from the field's name if
    there are none), `help`, `metavar`, `panel` (the heading in the help), `argument` (given by position), and `commas`
    (the values of a list are separated by commas instead of repeating the flag), and `complete` (the name of the
    function in `surface.completion` that completes its value).
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    internal: bool = False
    names: tuple[str, ...] = ()
    help: str = ""
    metavar: str | None = None
    panel: str | None = None
    argument: bool = False
    commas: bool = False
    complete: str = ""

    def holds(self, value: float) -> bool:
        """Whether a number is within the bounds; NaN never is."""
        if (self.least, self.most, self.above, self.below) == (-math.inf, math.inf, -math.inf, math.inf):
            return True
        return self.least <= value <= self.most and self.above < value < self.below

    def bounds(self, value: float = math.inf) -> str:
        """The bounds in words, such as `from 0 to 1`; for a `value` that is too small without the general limits."""
        if self.most in (MOST_COUNT, MOST_NUMBER) and not value > self.most:
            return dataclasses.replace(self, most=math.inf).bounds()
        if self.least > -math.inf and min(self.most, self.below) < math.inf:
            return f"from {self.least} to " + (f"{self.most}" if self.most < math.inf else f"below {self.below}")
        low = f"above {self.above}" if self.above > -math.inf else f"of at least {self.least}"
        high = f"at most {self.most}" if self.most < math.inf else f"below {self.below}"
        words = [low] if max(self.above, self.least) > -math.inf else []
        words += [high] if min(self.most, self.below) < math.inf else []
        return " and ".join(words)


def option(default: Any = dataclasses.MISSING, *names: str, more: Mapping[str, Any] | None = None, **told: Any) -> Any:
    """A field of a configuration: its default (none: it is required) and an `Option`; `more` is further metadata."""
    metadata = {_OPTION: Option(names=names, **told), **(more or {})}
    return field(metadata=metadata) if default is dataclasses.MISSING else field(default=default, metadata=metadata)


def like(kind: type[Any], name: str, **told: Any) -> Any:
    """A field with default and `Option` of the field `name` of another configuration; `told` takes precedence."""
    same = next(each for each in dataclasses.fields(kind) if each.name == name)
    metadata = {**same.metadata, _OPTION: dataclasses.replace(same.metadata[_OPTION], **{"panel": None, **told})}
    return field(default=same.default, metadata=metadata)


class Key(NamedTuple):
    """One key of a configuration: the type of its value, its option, and whether it must be there."""

    type: Any
    option: Option
    required: bool


def keys_of(kind: type[Any]) -> Mapping[str, Key]:
    """The keys of a configuration that a dataclass describes, in the order of its fields."""
    hints, found = typing.get_type_hints(kind), {}
    for each in dataclasses.fields(kind):
        told = each.metadata.get(_OPTION, Option())
        required = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if not told.internal:
            found[each.name] = Key(hints[each.name], told, required)
    return found


class Mistakes(list[UserError]):
    """Mistakes gathered so that all are reported at once."""

    def __init__(self, document: Located) -> None:
        super().__init__()
        self.document = document

    def add(self, message: str, *at: object) -> None:
        """Keep a mistake at the key of the document that `at` leads to."""
        self.append(self.document.error(message, *at))

    def tell(self, message: str) -> None:
        """Keep a mistake that has no place in the document."""
        self.append(UserError(message))

    def of(self, step: Callable[[], T]) -> T | None:
        """The result of `step`, or None if it raises a UserError, which is kept."""
        try:
            return step()
        except UserError as error:
            self.append(error)
            return None

    def raise_all(self) -> None:
        """Raise the mistake, or one error that lists all of them; nothing if there are none."""
        if len(self) == 1:
            raise self[0]
        if self:
            told = [f"  {line}" for each in told_once(self) for line in each.splitlines()]
            raise DataError("\n".join([f"{len(self)} mistakes", *told]), path=self.document.path)


def read_settings(kind: type[T], mistakes: Mistakes, *at: object) -> T | None:
    """The value that `at` leads to as a `kind`; None where there is a mistake in it, which is added to `mistakes`."""
    before = len(mistakes)
    value = fit(kind, mistakes.document.find(*at), mistakes.add, *at)
    return value if len(mistakes) == before else None


def read_keys(
    known: Mapping[str, Key], value: Any, wrong: Wrong, *at: object, unknown: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """The values of a mapping that fit the `known` keys; `wrong` gets what does not fit, is unknown or missing.

    A key may be given under its former name (`core.former_names`). `unknown` says what is wrong with a key that is
    not known, "" for the near match.
    """
    if not isinstance(value, dict):
        wrong(f"expected a mapping, got {_shown(value)}", *at)
        return {}
    found: dict[str, Any] = {}
    given_names = {key: present_name(key, known) for key in value}
    for key, given in value.items():
        name = given_names[key]
        if name != key and name in value:
            wrong(f"is the former name of {name!r}, which is given too: remove one of them", *at, key)
        elif name in known:
            told: list[str] = []
            fitted = fit(
                known[name].type, present_value(name, given), _noting(wrong, told), *at, key, option=known[name].option
            )
            if not told:
                found[name] = fitted
        else:
            wrong((unknown and unknown(str(key))) or f"unknown key: {hint(str(key), known)}", *at, key)
    for key, each in known.items():
        if each.required and key not in given_names.values():
            wrong(f"the key {key!r} is missing", *at)
    return found


def _noting(wrong: Wrong, told: list[str]) -> Wrong:
    def both(message: str, *at: object) -> None:
        told.append(message)
        wrong(message, *at)

    return both


def fit(kind: Any, value: Any, wrong: Wrong, *at: object, option: Option = Option(), text: bool = False) -> Any:
    """`value` as the type `kind`: scalars, tuples, mappings, dataclasses, unions, literals, and classes with `parse`.

    A value that does not fit is reported to `wrong`, with the keys that lead to it, and gives None. With `text` the
    value is as typed on a command line: `3`, `true` and `none` are read as what `kind` asks for.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and not hasattr(kind, "parse"):
        told: list[str] = []
        values = read_keys(keys_of(typing.cast(type[Any], kind)), value, _noting(wrong, told), *at)
        return None if told else typing.cast(Any, kind)(**values)
    if origin is tuple:
        return _listed(inner, value, wrong, *at, option=option)
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            wrong(f"expected {spelt(kind)}, got {_shown(value)}", *at)
            return None
        return {str(key): fit(inner[1], each, wrong, *at, key, option=option) for key, each in value.items()}
    if origin in (Union, types.UnionType):
        for member in sorted(inner, key=lambda member: member is str):  # text is tried last, as it reads everything
            missed: list[str] = []
            found = fit(member, value, _noting(lambda *_: None, missed), *at, option=option, text=text)
            if not missed:
                return found
        if len(inner) == 2 and types.NoneType in inner:
            return fit(next(each for each in inner if each is not types.NoneType), value, wrong, *at, option=option)
        wrong(f"expected {spelt(kind)}, got {_shown(value)}", *at)
        return None
    try:
        found = _scalar(kind, value, text=text)
    except UserError as error:
        wrong(str(error), *at)
        return None
    except (ValueError, TypeError, KeyError):
        wrong(_expected(kind, value, text=text), *at)
        return None
    if isinstance(found, int | float) and not isinstance(found, bool) and not option.holds(found):
        finite = "" if math.isfinite(found) else " and finite"
        wrong(f"expected {spelt(kind)} {option.bounds(found)}{finite}, got {value}", *at)
    return found


def _listed(inner: tuple[Any, ...], value: Any, wrong: Wrong, *at: object, option: Option) -> Any:
    each = inner[0]
    if not isinstance(value, list | tuple):
        missed: list[str] = []
        found = None if dataclasses.is_dataclass(each) else fit(each, value, _noting(lambda *_: None, missed))
        if found is None or missed:
            one = get_origin(each) is Literal and isinstance(value, str)  # a word that stands for a list of it
            due = _expected(each, value, text=False) if one else f"expected a list{_of(each)}, got {_shown(value)}"
            wrong(due, *at)
            return None
        value = [value]
    if inner[-1] is not ... and len(value) != len(inner):
        wrong(f"expected {len(inner)} values, got {len(value)}", *at)
        return None
    return tuple(fit(each, one, wrong, *at, i, option=option) for i, one in enumerate(value))


def _scalar(kind: Any, value: Any, *, text: bool) -> Any:
    """ValueError, TypeError or KeyError for a value of another kind; a UserError of its own from a `parse`."""
    if get_origin(kind) is Literal:
        return {(str(each) if text else each): each for each in get_args(kind)}[value]
    if kind is Any or (
        isinstance(kind, type) and isinstance(value, kind) and (kind is bool) == isinstance(value, bool)
    ):
        return value
    if hasattr(kind, "parse") and not isinstance(value, dict | list | None):
        return kind.parse(str(value))
    if text and kind is int:
        return int(value)
    if text and kind is bool:
        return _WORDS[value.lower()]
    if text and kind is types.NoneType and value.lower() == "none":
        return None
    if kind is float and not isinstance(value, bool) and isinstance(value, int | float | str):  # YAML: 1e-5 is text
        return float(value)
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError


def _expected(kind: Any, value: Any, *, text: bool) -> str:
    """What was expected in the place of a scalar, with the near match of a misspelt word."""
    typed = kind is bool and text
    words = list(_WORDS) if typed else [str(each) for each in get_args(kind)] if get_origin(kind) is Literal else []
    near = near_miss(value, words) if isinstance(value, str) else None
    told = f"expected {'yes or no' if typed else spelt(kind)}, got {_shown(value)}"
    return told if near is None else f"{told}: did you mean {near!r}?"


def spelt(kind: Any) -> str:
    """A type in words, such as `a whole number`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return f"a list{_of(inner[0])}"
    if origin in (dict, Mapping):
        return f"a mapping of names to {_INNER.get(inner[1], 'values')}"
    if origin is Literal or origin in (Union, types.UnionType):
        *most, last = [repr(each) if origin is Literal else spelt(each) for each in inner if each != ""]
        return f"{', '.join(most)} or {last}" if most else last
    return _NAMES.get(kind, getattr(kind, "__name__", str(kind)).lower())


def _of(kind: Any) -> str:
    return f" of {_INNER[kind]}" if kind in _INNER else ""


def _shown(value: Any) -> str:
    """A value in a message, without what stands in fields that are named like secrets."""

    def told(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [told(each) for each in value]
        if isinstance(value, dict):
            return {key: HIDDEN if names_a_secret(str(key)) else told(each) for key, each in value.items()}
        return value

    return repr(told(value))


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
