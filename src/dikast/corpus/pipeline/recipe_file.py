"""Reading a recipe: one YAML file that says what to build, checked completely before anything is asked."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dikast.core.checking import Mistakes, keys_of, read_keys
from dikast.core.errors import UserError
from dikast.core.text import hint, read_located
from dikast.corpus.pipeline.build_run import Kind
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.rubric_splits import wrong_splits
from dikast.corpus.recipes import KINDS
from dikast.engines.key_use import key_uses


def load_recipe(path: str | Path, *, teacher: str = "", allow_keys: Iterable[str] = ()) -> Recipe:
    """Read a recipe; DataError lists every mistake with its line.

    `teacher` counts over the file's, and is trusted with the key that it names. `allow_keys` as in `Recipe`.
    """
    mistakes = Mistakes(read_located(str(path)))
    value = mistakes.document.value
    if not isinstance(value, dict):
        raise mistakes.document.error("a recipe is a mapping with at least 'recipe' and 'teacher'")
    name = str(value.get("recipe"))
    if name not in KINDS:
        raise mistakes.document.error(f"{name!r} is not a recipe: {hint(name, KINDS)}", "recipe")
    kind = KINDS[name]
    own = keys_of(kind.options)
    others = {key for other in KINDS.values() for key in keys_of(other.options)}

    def unknown(key: str) -> str:
        return f"{key!r} is not an option of the recipe {name!r}" if key in others else ""

    values = read_keys({**keys_of(Recipe), **own}, value, mistakes.add, unknown=unknown)
    values = {key: value[key] if type(value[key]) is int else each for key, each in values.items()}  # hashed as written
    options = kind.options(**{key: each for key, each in values.items() if key in own})
    common = {**kind.defaults, **{key: each for key, each in values.items() if key not in own}}
    recipe = Recipe(**{"teacher": "", **common}, options=options, folder=str(Path(path).parent))
    if not recipe.teacher:
        mistakes.add("a recipe needs a 'teacher': an engine such as http://HOST/v1#MODEL, or world:text")
    else:
        for key, told in (*_wrong_splits(recipe), *kind.check(recipe, options)):
            if key in values or key not in value:
                mistakes.add(told, *((key,) if key in value else ()))
    mistakes.raise_all()
    if teacher:
        recipe = replace(recipe, teacher=teacher)
        allow_keys = (*allow_keys, *map(str, key_uses(teacher)))
    return replace(recipe, allow_keys=tuple(allow_keys))


def _wrong_splits(recipe: Recipe) -> Iterable[tuple[str, str]]:
    if told := wrong_splits(recipe.splits):
        yield "splits", f"'splits': {told}"


def checked_files(recipe: Recipe, kind: Kind[Any], *, due: Iterable[Path] = ()) -> None:
    """UserError for a missing file that the recipe names, unless it is `due`: built before it is read."""
    built = [path.resolve() for path in due]
    named = [getattr(recipe.options, key) for key in kind.files]
    flat = [name for each in named for name in ((each,) if isinstance(each, str) else each)]
    for name in (*flat, *recipe.against):
        if name and not recipe.path(name).is_file() and recipe.path(name).resolve() not in built:
            raise UserError(f"{recipe.path(name)}: the recipe names this file, but it does not exist")
