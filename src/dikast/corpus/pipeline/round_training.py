"""What a round of self-improvement passes to training: its data, formats and configuration, in one folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from dikast.core.runs.run_files import write_checked
from dikast.corpus.pipeline.recipe import Recipe
from dikast.engines.spec import parse_spec
from dikast.judging.judge import Judge
from dikast.prompts.format import Format

CONFIG = "train.yaml"
GRADED, PAIRS = "graded.jsonl", "pairs.jsonl"


def training_due(folder: str | Path) -> Path | None:
    """The training configuration of the round that has no model yet, None if there is no such round."""
    configs = sorted(Path(folder).glob(f"round-*/{CONFIG}"), key=lambda path: int(path.parent.name.split("-")[1]))
    return next((path for path in configs if not trained(path.parent)), None)


def trained(folder: Path) -> bool:
    """Whether the model of a round has been trained."""
    return (folder / "model" / "config.json").is_file()


def configure(
    folder: Path, recipe: Recipe, train: Mapping[str, Any], judge: Judge, n: Mapping[str, int], model: Path | None
) -> None:
    """Write the training configuration of a round, and the formats it uses beside it.

    `n` counts the items of each file; `model` is the model to continue from, None for the weights of the teacher.
    """
    data = []
    for name, kind in ((GRADED, "absolute"), (PAIRS, "pairwise")):
        if n[name]:
            form = judge.format if kind == "absolute" else judge.compare_format
            write_checked(folder / f"{kind}.yaml", _spelt(form))
            data.append({"items": [name], "formats": [f"{kind}.yaml"]})
    config = {**training(recipe, train, model), "data": data}
    write_checked(folder / CONFIG, orjson.dumps(config, option=orjson.OPT_INDENT_2) + b"\n")  # JSON is YAML


def _spelt(form: Format) -> bytes:
    told = {key: each for key, each in form.to_dict().items() if key != "hash"}
    return orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n"


def training(recipe: Recipe, train: Mapping[str, Any], model: Path | None = None) -> dict[str, Any]:
    """The training configuration without its data: the recipe's keys and the model to continue from.

    Relative paths start at the recipe's folder.
    """
    told = dict(train)
    for key in ("model", "init", "shards"):
        path = recipe.path(str(told[key])) if told.get(key) else None
        if path is not None and (path.exists() or key == "shards"):
            told[key] = str(path.resolve())
    if "model" not in told and "init" not in told:
        told["model"] = str(model.resolve()) if model is not None else start_of(recipe)
    return {"seed": recipe.seed, **told, "out": "."}


def start_of(recipe: Recipe) -> str:
    """The weights of the teacher as a training configuration names them; "" if it has none that can be trained."""
    scheme, target, _ = parse_spec(recipe.teacher)
    if scheme == "hf" and not Path(target).is_dir():
        return f"hf:{target}"
    return str(Path(target).resolve()) if scheme in ("", "hf") and Path(target).is_dir() else ""


def named(recipe: Recipe, name: str) -> str:
    """The path of a file beside the recipe, or the name of something built in."""
    return str(recipe.path(name)) if name and recipe.path(name).is_file() else name
