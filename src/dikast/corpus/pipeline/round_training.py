"""What a round of self-improvement hands to training: its data, its formats and its configuration, in a folder."""

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
    """The training configuration of the round that waits for its model, None if none does."""
    configs = sorted(Path(folder).glob(f"round-*/{CONFIG}"), key=lambda path: int(path.parent.name.split("-")[1]))
    return next((path for path in configs if not trained(path.parent)), None)


def trained(folder: Path) -> bool:
    """Whether a round has its model."""
    return (folder / "model" / "config.json").is_file()


def configure(
    folder: Path, recipe: Recipe, train: Mapping[str, Any], judge: Judge, n: Mapping[str, int], model: Path | None
) -> None:
    """Write the training configuration of a round, with the formats that it asks in beside it.

    `n` counts the items of each file; `model` is what is gone on from, None for the weights of the teacher.
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
    """The training configuration without its data: the recipe's keys, and what is gone on from.

    Paths in it start at the recipe's folder, as those of the recipe do.
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
    """The weights of the teacher, as a training configuration names them; "" where it has none that can be taught."""
    scheme, target, _ = parse_spec(recipe.teacher)
    if scheme == "hf" and not Path(target).is_dir():
        return f"hf:{target}"
    return str(Path(target).resolve()) if scheme in ("", "hf") and Path(target).is_dir() else ""


def named(recipe: Recipe, name: str) -> str:
    """A file beside the recipe, or the name of something built in."""
    return str(recipe.path(name)) if name and recipe.path(name).is_file() else name
