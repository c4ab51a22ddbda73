"""Rounds of self-improvement: the corpus room prepares them, the training room trains them, and they meet on disk."""

from pathlib import Path
from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.round_training import training, training_due
from dikast.surface.terminal import echo
from dikast.training.config import load_config
from dikast.training.sft import sft


def check_training(recipe: Recipe) -> None:
    """UserError when the recipe's `train` is no training configuration; asks and trains nothing."""
    try:
        load_config({**training(recipe, recipe.options.train), "data": [{"items": ["graded.jsonl"]}]})
    except DataError as error:
        raise UserError(f"the recipe's 'train': {str(error).replace('configuration', 'train')}") from None


def train_round(folder: Path, *, quiet: bool = False) -> bool:
    """Train the round that waits for it; False when none does, or when its training stopped before its end."""
    config = training_due(folder)
    if config is None:
        return False

    def tell(line: dict[str, Any]) -> None:
        if not quiet:
            shown = ", ".join(f"{key} {each:.4g}" for key, each in line.items() if isinstance(each, int | float))
            echo(f"{config.parent.name}: {shown}", err=True)

    return bool(sft(config, watch=tell)["complete"])
