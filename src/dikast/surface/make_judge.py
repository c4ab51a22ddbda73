"""From recipes to an audited judge: build, check, describe, train, grade what was held out, audit, report.

Every stage calls the function of its verb, and each of these resumes where it stopped, so the same command resumes too.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from dikast.core.checking import MOST_COUNT, Mistakes, option, read_settings
from dikast.core.errors import RunError, UserError
from dikast.core.output_folder import one_writer
from dikast.core.records.items import read_items
from dikast.core.records.sources import is_data
from dikast.core.records.writing import write_items
from dikast.core.runs.run_files import write_checked
from dikast.core.secrets import without_secrets
from dikast.core.text import read_located
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.recipe_file import checked_files, load_recipe
from dikast.corpus.recipes import KINDS
from dikast.training.config import Config, load_config

Say = Callable[[str], None]
_PATHS = ("model", "init")


@dataclass(frozen=True, slots=True)
class Corpus:
    """A set that is built and trained on: a corpus `recipe`; `formats` and `repeat` as in a training configuration."""

    recipe: str
    formats: tuple[str, ...] = ()
    repeat: int = option(1, least=1, most=MOST_COUNT)


@dataclass(frozen=True, slots=True)
class Held:
    """What the judge is examined on: a corpus `recipe` that is built, or a file of `items` with gold.

    `limit`: items graded (0: all). `format` and `compare_format` ask, "" for the judge's own. `without`: `rubric` and
    `reference` are left out of the questions.
    """

    recipe: str = ""
    items: str = ""
    limit: int = option(0, least=0, most=MOST_COUNT)
    format: str = ""
    compare_format: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeRecipe:
    """A judge from start to end. Paths start at the recipe's folder.

    `corpus`: what is built to train on. `train`: a training configuration without `data` and `out`; `model` or `init`
    says what is trained. `held`: what the judge is examined on.
    """

    corpus: tuple[Corpus, ...]
    train: dict[str, Any]
    held: Held = field(default_factory=Held)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything that is known before the first call."""

    out: Path
    recipes: dict[str, Recipe]
    held: Recipe | None
    items: Path
    config: Config
    told: JudgeRecipe


def make_judge(source: str | Path, out: str | Path, *, say: Say = lambda line: None) -> dict[str, Any]:
    """Make the judge that a recipe describes in the folder `out`; running it again resumes.

    `out` gets `corpus/NAME/` with its card, `held/`, `judge/` (the training run, with `judge/model/`), `graded/` and
    `compared/`, `report.html` with `report.json` (every figure of the audit), and `made.json`. say: hears what is
    begun. Returns what `made.json` holds. UserError, for all mistakes of the recipe and what it names, before anything
    is asked; RunError for a stage that cannot be finished.
    """
    plan = _plan(Path(source), Path(out))
    with one_writer(plan.out, "making a judge"):
        return _make(plan, say)


def _plan(source: Path, out: Path) -> _Plan:
    document = read_located(source)
    mistakes = Mistakes(document)
    told = read_settings(JudgeRecipe, mistakes)
    mistakes.raise_all()
    assert told is not None
    if not told.corpus:
        raise document.error("there is nothing to train on: name recipes under 'corpus'", "corpus")
    if bool(told.held.recipe) == bool(told.held.items):
        raise document.error("give 'held' a 'recipe' or a file of 'items', one of them", "held")
    if taken := sorted({"data", "out"} & told.train.keys()):
        raise document.error(f"{taken[0]!r} follows from the rest: leave it out", "train", taken[0])
    from dikast.engines.local.trusted import refuse_foreign_code

    folder, out = source.resolve().parent, out.resolve()
    named: list[tuple[Any, ...]] = [
        ("corpus", place, "recipe", folder / each.recipe) for place, each in enumerate(told.corpus)
    ]
    named += [("held", "recipe", folder / told.held.recipe)] if told.held.recipe else []
    named += [("held", key, Path(getattr(told.held, key))) for key in ("format", "compare_format")]
    for *keys, path in named:
        if os.path.exists(path) and not is_data(path):  # of a name that no file system takes, False
            raise document.error(f"{path}: a pipe or a device, which is not read: name a file", *keys)
    recipes: dict[str, Recipe] = {}
    data: list[dict[str, Any]] = []
    for corpus in told.corpus:
        name = Path(corpus.recipe).stem
        if name in recipes:
            raise document.error(f"two recipes are called {name!r}: give their files different names", "corpus")
        recipes[name] = load_recipe(folder / corpus.recipe)
        source_ = {"items": [str(out / "corpus" / name / "items.jsonl")], "repeat": corpus.repeat}
        data.append({**source_, **({"formats": list(corpus.formats)} if corpus.formats else {})})
    train = {**told.train, "data": data, "out": str(out / "judge")}
    for key in _PATHS:
        if isinstance(train.get(key), str) and (folder / train[key]).exists():
            train[key] = str((folder / train[key]).resolve())
            refuse_foreign_code(Path(train[key]))
    config = load_config(train)
    held = load_recipe(folder / told.held.recipe) if told.held.recipe else None
    sets = [out / "corpus" / name / "items.jsonl" for name in recipes]
    for due, recipe in enumerate((*recipes.values(), *([held] if held is not None else []))):
        checked_files(recipe, KINDS[recipe.recipe], due=sets[:due])
    items = out / "held" / "items.jsonl" if held is not None else folder / told.held.items
    if held is None and not items.is_file():
        raise document.error(f"{told.held.items}: there is no such file", "held", "items")
    for item in read_items(str(items)) if held is None and "rubric" not in told.held.without else ():
        if item.rubric is None:
            raise UserError(f"{item.origin}: item {item.id!r} has no rubric to examine the judge by: add a 'rubric'")
    return _Plan(out, recipes, held, items, config, told)


def _make(plan: _Plan, say: Say) -> dict[str, Any]:
    from dikast.training.planning.training_plan import check_before_loading
    from dikast.training.sft import sft

    check_before_loading(plan.config)  # before a teacher is asked, and paid
    made: dict[str, Any] = {"corpus": {}}
    for name, recipe in plan.recipes.items():
        say(f"corpus      {name}: {recipe.recipe}, taught by {without_secrets(str(recipe.teacher))}")
        made["corpus"][name] = _built(recipe, plan.out / "corpus" / name)
    if plan.held is not None:
        say(f"held out    {plan.held.recipe}, taught by {without_secrets(str(plan.held.teacher))}")
        made["held"] = _built(plan.held, plan.out / "held")
    say("train       sft")
    done = sft(plan.config)
    if not done["complete"]:
        raise RunError(
            f"training stopped after {done['steps']} of {done['total']} steps: run the same command to resume"
        )
    made["train"] = {key: done[key] for key in ("steps", "examples", "run")}
    say("examine     what was held out")
    made["runs"] = _examined(plan)
    write_checked(plan.out / "made.json", orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")
    return made


def _built(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Build a set, check it and write its card; RunError if requests are left without an answer."""
    from dikast.core.records import write_file
    from dikast.corpus.quality.check import check_file
    from dikast.corpus.quality.data_card import card

    built = build(recipe, folder)
    if built.waits:
        raise RunError(f"{folder}: {built.waits}")
    if not built.items:
        raise RunError(f"{folder}: no item was left ({dict(built.dropped)}): see its report.json")
    found = check_file(str(folder / "items.jsonl"))
    write_file(folder / "card.md", card(found, title=folder.name).encode())
    return {
        "items": built.items, "kept": dict(sorted(built.kept.items())), "dropped": dict(sorted(built.dropped.items())),
        "findings": {name: each.found for name, each in found.findings.items() if each.found},
    }  # fmt: skip


def _examined(plan: _Plan) -> dict[str, Any]:
    """Grade single responses and compare pairs with the trained judge, and report on the audit of both."""
    from dikast.surface.functions import compare, grade
    from dikast.surface.measuring import report

    held, judge, runs = plan.told.held, str(plan.out / "judge" / "model"), []
    found: dict[str, Any] = {}
    for name, many, ask, format_ in (
        ("graded", False, grade, held.format), ("compared", True, compare, held.compare_format),
    ):  # fmt: skip
        file = plan.out / f"{name}.jsonl"
        shown = (item for item in read_items(str(plan.items)) if (len(item.responses) > 1) == many)
        shown = (replace(item, meta={**item.meta, "source": None}) for item in shown)
        if not write_items(file, islice(shown, held.limit or None)):
            file.unlink()
            continue
        options: dict[str, Any] = {"without": held.without} | ({"format": format_} if format_ else {})
        run = ask(str(file), judge, out=plan.out / name, **options)
        runs.append(run)
        found[name] = {"verdicts": run.summary["verdicts"], "status": run.summary["status"]}
    if not runs:
        raise UserError(f"{plan.items}: holds nothing to examine the judge on")
    report(runs, [plan.out / "report.html", plan.out / "report.json"])
    return found
