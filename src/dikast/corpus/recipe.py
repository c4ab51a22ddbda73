"""A recipe: one YAML file that says what to build, checked whole before anything is asked."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.text import Located, near_miss, read_located

RECIPES = ("feedback", "preference")
_ONLY = {
    "feedback": ("seeds", "rubrics", "rounds", "a_call", "instructions", "words", "regrade",
                 "complete", "near", "against"),
    "preference": ("source", "ties"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to build. Shares lie in 0..1; `folder` is where relative paths start.

    feedback: from the rubrics in `seeds` to `rubrics` of them in at most `rounds` rounds, `a_call` a reply;
    `instructions` for each; a response of about `words` words for each score, graded again by the teacher (`regrade`);
    `complete` keeps instructions with a response of every score; `near` drops near duplicates; `against` are benchmark
    files. preference: pairs from the feedback data `source`, equal scores as ties (`ties`).

    `tolerance`: how far a response's length may be from its instruction's median (and from `words`), as a share.
    `tries`: replies asked for until one can be read. `language`: written in, "" for the teacher's choice.
    """

    recipe: str
    teacher: str
    seed: int = 0
    seeds: str = ""
    rubrics: int = 100
    rounds: int = 10
    a_call: int = 4
    instructions: int = 2
    words: int = 120
    regrade: bool = True
    complete: bool = True
    near: bool = True
    against: tuple[str, ...] = ()
    source: str = ""
    ties: bool = True
    tolerance: float = 0.5
    tries: int = 3
    stop_after_rejects: float = 0.5
    language: str = ""
    temperature: float = 0.7
    max_tokens: int = 2048
    folder: str = ""

    @property
    def world(self) -> str:
        """The world that teaches, "" for an engine."""
        return self.teacher.removeprefix("world:") if self.teacher.startswith("world:") else ""

    @property
    def hash(self) -> str:
        """Fingerprint of everything but where the file lies."""
        return fingerprint({key: value for key, value in asdict(self).items() if key != "folder"})

    def path(self, name: str) -> Path:
        """A path of the recipe, from its own folder."""
        return Path(self.folder, name).expanduser()


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
    values = {**document.value, "folder": str(Path(path).parent)}
    values["against"] = tuple(values.get("against", ()))
    return Recipe(**values)


def _mistakes(document: Located, value: dict[Any, Any]) -> Iterable[DataError]:
    kind = value.get("recipe")
    if kind not in RECIPES:
        near = near_miss(str(kind), RECIPES)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(RECIPES)}"
        yield document.error(f"{kind!r} is not a recipe: {hint}", "recipe")
        return
    known = [each.name for each in fields(Recipe) if each.name != "folder"]
    others = {name for recipe, names in _ONLY.items() if recipe != kind for name in names}
    for key in value:
        if key not in known:
            near = near_miss(str(key), known)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(known)}"
            yield document.error(f"unknown key {key!r}: {hint}", key)
        elif key in others:
            yield document.error(f"{key!r} is not of the recipe {kind!r}", key)
    for each in fields(Recipe):
        if each.name in value and each.name not in ("against", "folder") and not _fits(value[each.name], each.type):
            yield document.error(f"{each.name!r} is {_named(each.type)}, got {value[each.name]!r}", each.name)
    against = value.get("against", [])
    if not isinstance(against, list) or not all(isinstance(each, str) for each in against):
        yield document.error("'against' is a list of files", "against")
    yield from _ranges(document, value)
    if not value.get("teacher"):
        yield document.error("a recipe needs a 'teacher': an engine such as http://HOST/v1#MODEL, or world:text")
    elif kind == "feedback" and not value.get("seeds") and not str(value["teacher"]).startswith("world:"):
        yield document.error("a teacher other than a world needs 'seeds': a file of rubrics to begin with")
    if kind == "preference" and not value.get("source"):
        yield document.error("the recipe 'preference' needs 'source': a file of feedback data")


def _ranges(document: Located, value: dict[Any, Any]) -> Iterable[DataError]:
    for name in ("rubrics", "rounds", "a_call", "instructions", "words", "tries", "max_tokens"):
        if type(value.get(name)) is int and value[name] < 1:
            yield document.error(f"{name!r} is 1 or more, got {value[name]}", name)
    for name in ("tolerance", "stop_after_rejects", "temperature"):
        most = 2 if name == "temperature" else 1
        given = value.get(name)
        if isinstance(given, int | float) and not isinstance(given, bool) and not 0 <= given <= most:
            yield document.error(f"{name!r} lies in 0..{most}, got {given}", name)


def _fits(value: Any, kind: Any) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is kind


def _named(kind: Any) -> str:
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "text")


def checked_files(recipe: Recipe) -> None:
    """UserError for a file of the recipe that is not there."""
    for name in (recipe.source, recipe.seeds, *recipe.against):
        if name and not recipe.path(name).is_file():
            raise UserError(f"{recipe.path(name)}: the recipe names this file, and it is not there")
