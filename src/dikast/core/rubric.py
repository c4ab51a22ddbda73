"""Rubrics: the meaning of scores, as data with a fingerprint."""

import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.scale import HOW_TO_WRITE, Scale
from dikast.core.text import Located, counted, near_miss, nearest, one_line, parse_located, read_located

RUBRIC_KEYS = ("name", "criterion", "scale", "levels", "weight", "lower_is_better")
_WHOLE = re.compile(r"-?\d{1,18}")  # keys of a JSON object are text, also where they are numbers
_SEVERAL = (
    "several rubrics make a sheet: write a YAML file such as criteria: [{name: right, criterion: 'Is it "
    "right?'}, {name: short, criterion: 'Is it short?'}], and give its name"
)
_SETTLED = 2_000_000_000  # nanoseconds; file systems' clocks have steps of this length, which hide a second change
_MOST_GAPS = 1000  # levels looked at in search of missing ones
_LONGEST_NAME = 40  # characters of a name made of a criterion
SHEET_KEYS = ("name", "criteria", "scale")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Rubric:
    """One criterion on one scale.

    `levels` describes any subset of the scale's labels, as (label, description) from low to high. `weight` counts in a
    `Sheet`. In Python `scale` may be written as `load_rubric` reads it (`"1-5"`, `"pass/fail"`) and `levels` as a
    mapping in any order; UserError for what is no scale, or a level that is not on it.
    """

    name: str
    criterion: str
    scale: Scale
    levels: tuple[tuple[str, str], ...] = ()
    weight: float = 1.0

    def __init__(
        self,
        name: str = "rubric",
        criterion: str | None = None,
        scale: Scale | str = "1-5",
        levels: Mapping[Any, str] | tuple[tuple[str, str], ...] = (),
        weight: float = 1.0,
    ) -> None:
        if criterion is None:
            raise UserError(f"rubric {name!r}: it needs a criterion, the question that the score answers")
        if isinstance(scale, str):
            scale = Scale.parse(scale)
        elif not isinstance(scale, Scale):
            raise UserError(f"rubric {name!r}: scale {scale!r}: {HOW_TO_WRITE}")
        if isinstance(levels, Mapping):
            levels = _in_order(name, levels, scale)
        for field, value in zip(self.__slots__, (name, criterion, scale, levels, weight), strict=True):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"Rubric({self.name!r}, {self.criterion!r}, {str(self.scale)!r})"

    @property
    def hash(self) -> str:
        """Fingerprint of what a judge is shown or scored by; `weight` is not part of it."""
        return fingerprint({key: value for key, value in self.to_dict().items() if key != "weight"})

    @property
    def bare(self) -> "Rubric":
        """The scale alone, with a criterion that only asks for quality: for ablations."""
        return Rubric(self.name, "How good is the response?", self.scale, (), self.weight)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `load_rubric` reads back."""
        return {
            "name": self.name,
            "criterion": self.criterion,
            "scale": {"labels": list(self.scale.labels), "values": list(self.scale.values)},
            "lower_is_better": self.scale.lower_is_better,
            "levels": dict(self.levels),
            "weight": self.weight,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Sheet:
    """A weighted rubric: several rubrics that are graded one by one and summed up by weight. Names are distinct."""

    name: str
    rubrics: tuple[Rubric, ...]

    def __iter__(self) -> Iterator[Rubric]:
        return iter(self.rubrics)

    def __repr__(self) -> str:
        count = counted(len(self.rubrics), "criterion", "criteria")
        return f"Sheet({self.name!r}, {count}: {', '.join(each.name for each in self.rubrics)})"

    @property
    def hash(self) -> str:
        """Fingerprint of the rubrics with their weights."""
        return fingerprint([rubric.to_dict() for rubric in self.rubrics])

    @property
    def bare(self) -> "Sheet":
        """The scales of the rubrics alone."""
        return Sheet(self.name, tuple(rubric.bare for rubric in self.rubrics))

    def total(self, scores: Mapping[str, float | None]) -> float | None:
        """The weighted mean of goodness (0 worst, 1 best) over the criteria; None when any criterion has no score."""
        sum_, weights = 0.0, 0.0
        for rubric in self.rubrics:
            score = scores.get(rubric.name)
            if score is None:
                return None
            sum_ += rubric.weight * rubric.scale.goodness(score)
            weights += rubric.weight
        return sum_ / weights


def _in_order(name: str, levels: Mapping[Any, str], scale: Scale) -> tuple[tuple[str, str], ...]:
    found = []
    for key, description in levels.items():
        label = scale.match(str(key))
        if label is None:
            raise UserError(f"rubric {name!r}: the level {key!r} is not on the scale {scale}")
        found.append((label, description))
    return tuple(sorted(found, key=lambda level: scale.value(level[0])))


def load_rubric(
    source: "str | Path | Mapping[str, Any] | Rubric | Sheet", *, root: str | None = None
) -> Rubric | Sheet:
    """A rubric or a weighted sheet from a YAML/JSON file, a dict, the name of a built-in one, or a criterion in words.

    Words are text of several words that names no file, such as "Is the answer polite?"; their scale is 1-5. A relative
    path starts at `root`, the folder of the file that names it, which may name no pipe or device: reading one may never
    end. Without `root` somebody typed it, and it starts at the working folder. Raises DataError with file, line and
    field for anything invalid; all keys are checked.
    """
    if isinstance(source, Rubric | Sheet):
        return source
    if isinstance(source, Mapping):
        spelt = _spelt(source)
        return _from_json(spelt) if spelt else _read(Located(dict(source), "rubric"))
    if str(source) in _builtin_names():
        return _builtin(str(source))
    path = os.path.join(root or "", os.path.expanduser(source))
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        if in_words(str(source)):
            return _worded(" ".join(str(source).split()))
        near = near_miss(str(source), _builtin_names()) or nearest(path)
        word = str(source) if str(source).isalpha() and not near else ""
        criterion = f"Is the answer good in this respect: {word}?" if word else "Is the answer polite?"
        if len([each for each in str(source).split(",") if each.strip()]) > 1:
            raise UserError(f"{source}: {_SEVERAL}") from None
        raise UserError(
            f"{path}: there is no such rubric file, and no built-in rubric of that name"
            f' (built in: {", ".join(_builtin_names())}; or write a criterion in words: "{criterion}")'
            + (f"; did you mean {near!r}?" if near else "")
        ) from None
    if root is not None and not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise UserError(f"{path}: a pipe or a device in the place of a rubric, which is not read: name a file")
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    if time.time_ns() - changed < _SETTLED:
        return _read(read_located(path))
    return _from_file(os.path.abspath(path), path, found.st_size, changed)


def in_words(text: str) -> bool:
    """Whether a rubric is given as a criterion in words: several words, and no name of a file."""
    return len(text.split()) > 1 and not text.endswith((".yaml", ".yml", ".json"))


def _worded(criterion: str) -> Rubric:
    """The rubric of a criterion in words, named after them."""
    name = re.sub(r"\W+", "-", criterion.casefold()).strip("-")
    return Rubric(name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME].rpartition("-")[0], criterion)


@lru_cache(maxsize=256)  # by time of change: every record of a file may name the same rubric
def _from_file(absolute: str, path: str, size: int, changed_ns: int) -> Rubric | Sheet:
    return _read(read_located(path))


@lru_cache(maxsize=1024)  # every record of a set may hold one of a few thousand rubrics, written out
def _from_json(text: bytes) -> Rubric | Sheet:
    return _read(Located(orjson.loads(text), "rubric"))


def _spelt(source: Mapping[Any, Any]) -> bytes:
    """A rubric as JSON, empty for one that JSON cannot spell as it is."""
    try:
        text = orjson.dumps(source)
    except TypeError:
        return b""
    return text if orjson.loads(text) == source else b""


@lru_cache(maxsize=1)
def _builtin_names() -> tuple[str, ...]:
    folder = resources.files("dikast.core").joinpath("rubrics")
    return tuple(sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml")))


@cache
def _builtin(name: str) -> Rubric | Sheet:
    text = resources.files("dikast.core").joinpath("rubrics", f"{name}.yaml").read_text("utf-8")
    return _read(parse_located(text, f"{name}.yaml"))


def with_scale(rubric: Rubric | Sheet, text: str) -> Rubric | Sheet:
    """The rubric on another scale, such as `1-10`.

    A description stays as far between lowest and highest as it was: the best of 1-5 is the best of 1-10. One that would
    would be between two labels of the new scale is left out. UserError when `text` is no scale.
    """
    if isinstance(rubric, Sheet):
        return Sheet(rubric.name, tuple(_on(each, text) for each in rubric))
    return _on(rubric, text)


def _on(rubric: Rubric, text: str) -> Rubric:
    scale = replace(Scale.parse(text), lower_is_better=rubric.scale.lower_is_better)
    places = {round(_place(scale, label), 9): label for label in scale.labels}
    moved = [(places.get(round(_place(rubric.scale, label), 9)), told) for label, told in rubric.levels]
    return replace(rubric, scale=scale, levels=tuple((label, told) for label, told in moved if label is not None))


def _place(scale: Scale, label: str) -> float:
    return (scale.value(label) - scale.low) / (scale.high - scale.low)


def builtin_rubrics() -> list[str]:
    """The names of the rubrics that ship with Dikast."""
    return list(_builtin_names())


def _read(document: Located) -> Rubric | Sheet:
    value = document.value
    if not isinstance(value, dict):
        shown = f", such as criterion: {one_line(value, 80)}" if isinstance(value, str) else ""
        raise document.error(f"a rubric is a mapping with at least 'criterion'{shown}; see docs/core.md")
    if isinstance(value.get("criteria"), str):
        raise document.error(
            "a sheet needs a list of at least one rubric: did you mean 'criterion', the one question?", "criteria"
        )
    if "criteria" not in value:
        return _rubric(document, value, (), None)
    _known(document, value, SHEET_KEYS, ())
    entries = value["criteria"]
    if not isinstance(entries, list) or not entries:
        raise document.error("a sheet needs a list of at least one rubric", "criteria")
    shared = _scale(document, value, (), None) if "scale" in value else None
    rubrics: list[Rubric] = []
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise document.error("each entry of a sheet is a rubric, with at least 'criterion'", "criteria", i)
        rubric = _rubric(document, entry, ("criteria", i), shared)
        if rubric.name in {each.name for each in rubrics}:
            raise document.error(f"two criteria are called {rubric.name!r}: rename one", "criteria", i, "name")
        rubrics.append(rubric)
    return Sheet(str(value.get("name", Path(document.path).stem)), tuple(rubrics))


def _rubric(document: Located, value: dict[Any, Any], at: tuple[object, ...], shared: Scale | None) -> Rubric:
    _known(document, value, RUBRIC_KEYS, at)
    criterion = value.get("criterion")
    if not isinstance(criterion, str) or not criterion.strip():
        raise document.error("a rubric needs a 'criterion': the question that the score answers", *at, "criterion")
    name = value.get("name", Path(document.path).stem if not at else f"criterion-{at[-1]}")
    if not isinstance(name, str) or not name:
        raise document.error("the name must be text", *at, "name")
    weight = value.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= sys.float_info.max:
        raise document.error(f"the weight must be a number above 0, got {weight!r}", *at, "weight")
    scale = _scale(document, value, at, shared)
    return Rubric(name, criterion.strip(), scale, _levels(document, value, at, scale), float(weight))


def _known(document: Located, value: dict[Any, Any], known: tuple[str, ...], at: tuple[object, ...]) -> None:
    for key in value:
        if key not in known:
            near = near_miss(str(key), known)
            hint = f"did you mean {near!r}?" if near else f"known keys: {', '.join(known)}"
            raise document.error(f"unknown key {key!r}: {hint}", *at, key)


def _scale(document: Located, value: dict[Any, Any], at: tuple[object, ...], shared: Scale | None) -> Scale:
    """The stated scale, else the sheet's, else the one the level labels span."""
    lower = value.get("lower_is_better", shared.lower_is_better if shared else False)
    if not isinstance(lower, bool):
        raise document.error("lower_is_better must be true or false", *at, "lower_is_better")
    stated, levels = value.get("scale"), value.get("levels")
    try:
        if isinstance(stated, dict):
            scale = _spelt_out(document, stated, (*at, "scale"))
        elif stated is not None:
            scale = stated if isinstance(stated, Scale) else Scale.parse(str(stated))
        elif shared is not None:
            scale = shared
        elif isinstance(levels, dict) and levels and all(_WHOLE.fullmatch(str(key)) for key in levels):
            scale = _spanned(document, [int(key) for key in levels], at)
        elif levels:
            raise document.error(f"levels with these labels need a 'scale': {HOW_TO_WRITE}", *at, "levels")
        else:
            scale = Scale.parse("1-5")
    except (TypeError, ValueError) as error:
        raise document.error(f"the values of a scale must be numbers: {error}", *at, "scale") from None
    except UserError as error:
        if isinstance(error, DataError):
            raise
        raise document.error(str(error), *at, "scale") from None
    return Scale(scale.labels, scale.values, lower)


def _spelt_out(document: Located, stated: dict[Any, Any], at: tuple[object, ...]) -> Scale:
    """`{labels: [...], values: [...]}`; without values, numbers mean themselves and words count from 1."""
    _known(document, stated, ("labels", "values"), at)
    labels, values = stated.get("labels"), stated.get("values")
    if not isinstance(labels, list | tuple) or not all(isinstance(each, str | int | float) for each in labels):
        raise document.error("a scale that is spelt out has a list of 'labels', from the lowest to the highest", *at)
    names = tuple(map(str, labels))
    if values is None:
        return Scale.of_labels(names)
    if not isinstance(values, list | tuple):
        raise document.error("'values' is a list of numbers, one for each label", *at, "values")
    return Scale(names, tuple(map(float, values)))


def _spanned(document: Located, keys: list[int], at: tuple[object, ...]) -> Scale:
    low, high = min(keys), max(keys)
    missing = sorted(set(range(low, min(high, low + _MOST_GAPS) + 1)) - set(keys))
    if missing or len(keys) < 2:
        gap = f"leave out {', '.join(map(str, missing[:10]))}" if missing else "are fewer than two"
        raise document.error(
            f"the levels {gap} and no scale is stated: describe every level, or state 'scale: LOW-HIGH'", *at, "levels"
        )
    return Scale.parse(f"{low}-{high}")


def _levels(
    document: Located, value: dict[Any, Any], at: tuple[object, ...], scale: Scale
) -> tuple[tuple[str, str], ...]:
    """The levels from low to high. In a file, numbers that run backwards are a mistake; a dict's order says nothing."""
    levels = value.get("levels") or {}
    if not isinstance(levels, dict):
        raise document.error("levels are a mapping from label to description", *at, "levels")
    found: list[tuple[str, str]] = []
    for key, description in levels.items():
        label = scale.match(str(key))
        if label is None:
            raise document.error(
                f"{key!r} is not on the scale {scale}: change the label, or state another 'scale'", *at, "levels", key
            )
        if not isinstance(description, str) or not description.strip():
            raise document.error(f"the level {key!r} needs a description, or leave the line out", *at, "levels", key)
        if any(label == other for other, _ in found):
            raise document.error(f"the level {label!r} is described twice: keep one", *at, "levels", key)
        numbered = label[-1].isdigit()  # letters and words are often listed from the best down
        if document.lines and numbered and found and scale.value(label) < scale.value(found[-1][0]):
            raise document.error(
                f"level {label!r} comes after {found[-1][0]!r}: list the levels from the lowest value to the highest"
                " (a scale where low is good says 'lower_is_better: true')",
                *at, "levels", key,
            )  # fmt: skip
        found.append((label, description.strip()))
    return tuple(sorted(found, key=lambda level: scale.value(level[0])))
