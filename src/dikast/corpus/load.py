"""Reading a recipe: one YAML file that says what to build, checked whole before anything is asked."""

from collections.abc import Iterable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.core.text import Located, near_miss, read_located
from dikast.corpus.recipe import HIGH, LOW, Recipe
from dikast.corpus.recipes import KINDS
from dikast.corpus.run import Kind
from dikast.corpus.splits import wrong_splits

_COMMON = [each for each in fields(Recipe) if each.name not in ("options", "folder")]
_NAMED = {
    int: "a whole number", float: "a number", bool: "true or false", tuple[str, ...]: "a list of text",
    dict[str, float]: "a mapping of names to numbers", dict[str, Any]: "a mapping of names to values",
}  # fmt: skip


def load_recipe(path: str | Path) -> Recipe:
    """Read a recipe; DataError tells every mistake at once, with its line."""
    document = read_located(str(path))
    if not isinstance(document.value, dict):
        raise document.error("a recipe is a mapping with at least 'recipe' and 'teacher'")
    mistakes = list(_mistakes(document, document.value))
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise DataError("\n".join([f"{path}: {len(mistakes)} mistakes", *(f"  {each}" for each in mistakes)]))
    kind = KINDS[document.value["recipe"]]
    return _recipe(document.value, kind, str(Path(path).parent))


def _recipe(value: dict[Any, Any], kind: Kind[Any], folder: str = "") -> Recipe:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    own = {each.name for each in fields(kind.options)}
    options = kind.options(**{key: each for key, each in values.items() if key in own})
    common = {**kind.defaults, **{key: each for key, each in values.items() if key not in own}}
    return Recipe(**common, options=options, folder=folder)


def _mistakes(document: Located, value: dict[Any, Any]) -> Iterable[DataError]:
    name = value.get("recipe")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        near = near_miss(str(name), list(KINDS))
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(KINDS)}"
        yield document.error(f"{name!r} is not a recipe: {hint}", "recipe")
        return
    known = {each.name: each for each in (*_COMMON, *fields(kind.options))}
    others = {each.name for other in KINDS.values() for each in fields(other.options)} - set(known)
    right = {}
    for key, given in value.items():
        if key in others:
            told = f"{key!r} is not of the recipe {name!r}"
        elif key not in known:
            near = near_miss(str(key), list(known))
            told = f"unknown key {key!r}: " + (f"did you mean {near!r}?" if near else f"known: {', '.join(known)}")
        else:
            told = _wrong(known[key], given)
        if told:
            yield document.error(told, key)
        else:
            right[key] = given
    if not value.get("teacher"):
        yield document.error("a recipe needs a 'teacher': an engine such as http://HOST/v1#MODEL, or world:text")
        return
    recipe = _recipe({"teacher": "", **right}, kind)
    for key, told in (*_wrong_last(recipe), *kind.check(recipe, recipe.options)):
        if key in right or key not in value:
            yield document.error(told, *((key,) if key in value else ()))


def _wrong_last(recipe: Recipe) -> Iterable[tuple[str, str]]:
    if told := wrong_splits(recipe.splits):
        yield "splits", f"'splits': {told}"
    if recipe.parquet_images not in ("bytes", "path"):
        yield "parquet_images", f"'parquet_images' is bytes or path, got {recipe.parquet_images!r}"
    if not recipe.apart:
        yield "apart", "'apart' is above 0: with 0 all rubrics would stay together"


def _wrong(each: Field[Any], given: Any) -> str:
    """What is wrong with the value of a key, "" if nothing."""
    if not _fits(given, each.type):
        return f"{each.name!r} is {_NAMED.get(each.type, 'text')}, got {given!r}"  # type: ignore[arg-type]
    low, high = each.metadata.get(LOW), each.metadata.get(HIGH)
    if low is not None and high is not None and not low <= given <= high:
        return f"{each.name!r} lies in {low}..{high}, got {given}"
    if low is not None and high is None and given < low:
        return f"{each.name!r} is {low} or more, got {given}"
    return ""


def _fits(value: Any, kind: Any) -> bool:
    if kind == tuple[str, ...]:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind == dict[str, Any]:
        return isinstance(value, dict) and all(isinstance(name, str) for name in value)
    if kind == dict[str, float]:
        return isinstance(value, dict) and all(
            isinstance(name, str) and _fits(each, float) for name, each in value.items()
        )
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is kind


def checked_files(recipe: Recipe, kind: Kind[Any]) -> None:
    """UserError for a file of the recipe that is not there."""
    named = [getattr(recipe.options, key) for key in kind.files]
    flat = [name for each in named for name in ((each,) if isinstance(each, str) else each)]
    for name in (*flat, *recipe.against):
        if name and not recipe.path(name).is_file():
            raise UserError(f"{recipe.path(name)}: the recipe names this file, and it is not there")
