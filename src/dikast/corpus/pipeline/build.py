"""`corpus build`: runs the stages of a recipe into a folder that keeps every answer."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.errors import UserError
from dikast.core.output_folder import identity_of, one_writer
from dikast.core.runs.run_files import CHECKSUMS, changed_files, forget_missing, recorded, write_checked
from dikast.corpus.pipeline.build_run import BuildEstimate, BuildRun, Built, Progress
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.recipe_file import checked_files
from dikast.corpus.pipeline.stage import Asking, check_sampling, prompt
from dikast.corpus.recipes import KINDS
from dikast.corpus.teachers.world_teacher import as_begun
from dikast.engines.base import Engine
from dikast.engines.budget import Budget
from dikast.engines.http.prices import Price
from dikast.engines.http.providers import PROVIDERS
from dikast.engines.priced import Priced, price_of_engine
from dikast.engines.spec import parse_spec
from dikast.engines.wrapper import found_in, notes_in_words

_SERVERS = ("http", "https", *PROVIDERS)
LOCK, REPORT = "build.json", "report.json"


def open_teacher(recipe: Recipe, engine: Engine | None = None) -> Engine:
    """The recipe's teacher, or `engine` if one is given."""
    if engine is not None:
        return engine
    if recipe.world:
        return KINDS[recipe.recipe].world(recipe, recipe.options)
    return recipe.engine(recipe.teacher)


def build(
    recipe: Recipe,
    out: str | Path,
    *,
    teacher: Engine | None = None,
    budget: Mapping[str, Any] | None = None,
    price: Price | None = None,
    progress: Progress | None = None,
) -> Built:
    """Run a recipe into the folder `out`; running it again asks only what is missing.

    Writes one journal for each stage, `items.jsonl` once all stages are answered, and `report.json`. When the `budget`
    (calls, tokens, money) is spent, the build stops and can be resumed; `price` counts over the teacher's
    own. UserError for a folder that another recipe wrote; RunError if too many replies are rejected.
    """
    kind = KINDS[recipe.recipe]
    checked_files(recipe, kind)
    engine = open_teacher(recipe, teacher)
    with one_writer(Path(out), "building"):
        return _build(recipe, Path(out), engine, budget, price, progress)


def _build(
    recipe: Recipe,
    folder: Path,
    engine: Engine,
    budget: Mapping[str, Any] | None,
    price: Price | None,
    progress: Progress | None,
) -> Built:
    kind = KINDS[recipe.recipe]
    notes = _claim(folder, recipe, engine)
    if price is not None:
        engine = Priced(engine, price)
    if budget:
        engine = Budget(engine, **budget)
    sampling = check_sampling(recipe.temperature, recipe.max_tokens, recipe.seed)
    asking = Asking(engine, sampling, recipe.tries, recipe.stop_after_rejects)
    run = BuildRun(recipe, folder, asking, progress, Built(str(folder), notes=notes))
    run.wrote[folder / LOCK] = identity_of(folder / LOCK)
    try:
        kind.run(run, recipe.options)
        run.check_in_place()
    finally:
        run.built.notes += notes_in_words(engine)
        if folder.is_dir():  # else its own error is the one to tell
            write_checked(folder / REPORT, orjson.dumps(run.built.to_dict(), option=orjson.OPT_INDENT_2))
    return run.built


def estimate(recipe: Recipe) -> list[BuildEstimate]:
    """The calls of each stage, about how many tokens they read, at most how many they write or reason; asks nothing."""
    kind = KINDS[recipe.recipe]
    checked_files(recipe, kind)
    found, thinking = kind.estimate(recipe, recipe.options), int(found_in(_server(recipe), "thinking", 0))
    return [replace(each, most_tokens_out=each.most_tokens_out + each.calls * thinking) for each in found]


def known_price(recipe: Recipe) -> Price | None:
    """The price of the recipe's teacher from the user's table of prices; None for a teacher that is not a server."""
    return price_of_engine(_server(recipe))


def _server(recipe: Recipe) -> Engine | None:
    """The recipe's teacher if it is a server that can be asked."""
    if recipe.world or parse_spec(recipe.teacher).scheme not in _SERVERS:
        return None
    with suppress(UserError):  # such as a missing key: an estimate asks nothing
        return recipe.engine(recipe.teacher)
    return None


def _claim(folder: Path, recipe: Recipe, engine: Engine) -> list[str]:
    """Record in the folder what is built there; UserError if it belongs to another recipe. Returns remarks."""
    path = folder / LOCK
    if recipe.world and (begun := _read(path)) is not None:
        as_begun(engine, begun.get("teacher") or {})
    told: dict[str, Any] = {
        "recipe": recipe.told,
        "hash": recipe.hash,
        "prompts": {name: prompt(name).hash for name in KINDS[recipe.recipe].prompts},
        "teacher": dict(engine.identity()),
    }
    inputs = _inputs(recipe)
    notes: list[str] = []
    if any(each.name != CHECKSUMS and each.suffix != ".part" for each in folder.iterdir()):
        if not path.is_file() and (path.exists() or LOCK not in recorded(folder)):
            raise UserError(f"{folder}: is not empty and not a build; name a new folder, or empty it")
        notes += _changed(folder)
        before = _read(path)
        if recipe.world and before is not None:  # a world reads no prompts, and a task's key covers what it was asked
            told["prompts"] = before.get("prompts", told["prompts"])
        now = orjson.loads(orjson.dumps(told))
        if before is not None:  # when a build stops decides nothing that is asked
            before["recipe"] = before["recipe"] | {"stop_after_rejects": recipe.stop_after_rejects}
            before["hash"] = now["hash"]
        if before is None:  # a task's key covers recipe, teacher and prompt, so no answer is taken for that of another
            notes.append(f"{LOCK} was damaged or gone and is written anew; answers of another recipe are not used")
        differs = [key for key in now if before is not None and before.get(key) != now[key]]
        if differs:
            old, new = (before or {}).get("recipe") or {}, now["recipe"]
            keys = [key for key in new if old.get(key) != new[key]] or differs
            if keys == ["prompts"]:
                asked = (before or {}).get("prompts") or {}
                prompts = ", ".join(name for name, each in now["prompts"].items() if asked.get(name) != each)
                raise UserError(
                    f"{folder}: was begun with another version of Dikast, whose prompts differ ({prompts}): name a new"
                    " folder, or finish it with that version"
                )
            was, version = ((each.get("teacher") or {}).get("version") for each in (before or now, now))
            if recipe.world and differs == ["teacher"] and was != version:
                raise UserError(
                    f"{folder}: was begun with another version of Dikast, whose worlds differ ({was}, now {version}):"
                    " name a new folder, or finish it with that version"
                )
            raise UserError(f"{folder}: was built by another recipe ({', '.join(keys)} differ); name a new folder")
        _check_inputs(folder, recipe, inputs, (before or {}).get("inputs"))
    write_checked(path, orjson.dumps(told | ({"inputs": inputs} if inputs else {}), option=orjson.OPT_INDENT_2))
    return notes


def _inputs(recipe: Recipe) -> dict[str, str]:
    """Fingerprints of the seeds and the plan of a recipe; none where a world is the teacher, which reads neither."""
    read = {} if recipe.world else KINDS[recipe.recipe].inputs(recipe, recipe.options)
    return {key: fingerprint(value) for key, value in read.items()}


def _check_inputs(folder: Path, recipe: Recipe, now: Mapping[str, str], before: Any) -> None:
    """UserError for seeds or a plan that differ from those that the folder was begun with, as far as it says."""
    for key, value in now.items():
        if not isinstance(before, dict) or before.get(key, value) == value:
            continue
        if name := getattr(recipe.options, key):
            raise UserError(
                f"{recipe.path(name)}: the file of {key!r} has changed since {folder} was begun with it: restore the"
                " file, or name a new folder with --out"
            )
        raise UserError(
            f"{folder}: was begun with another version of Dikast, which brings another file of {key!r}: name a new"
            " folder with --out, or finish it with that version"
        )


def _changed(folder: Path) -> list[str]:
    """Remarks on files that have changed since they were written, all of which this run writes anew."""
    found = changed_files(folder)
    forget_missing(folder)
    return [f"{name}: {why}: it is written anew" for name, why in found.items() if name != LOCK]


def _read(path: Path) -> dict[str, Any] | None:
    """What an earlier run recorded; None if the file is damaged."""
    if changed_files(path.parent, path.name):
        return None
    try:
        value = orjson.loads(path.read_bytes())
    except (ValueError, FileNotFoundError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("recipe"), dict) else None
