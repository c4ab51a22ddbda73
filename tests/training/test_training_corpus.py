"""`train sft` reads what `corpus build` writes: items and Parquet shards."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from PIL import Image as Pillow
from typer.testing import CliRunner

from dikast.core.item import Item
from dikast.core.records import write_items
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.parquet_shards import write_shards
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.surface.cli import app


def trained(config: Path, out: Path) -> list[float]:
    done = CliRunner().invoke(app, ["train", "sft", "--config", str(config), "--json"])
    assert done.exit_code == 0, done.output
    assert orjson.loads(done.stdout)["complete"]
    return [orjson.loads(line)["loss"] for line in (out / "train.jsonl").read_bytes().splitlines()]


@pytest.mark.slow
def test_a_built_set_is_learnt_from_as_items_and_as_parquet(write_config: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "{recipe: feedback, teacher: world:text, rubrics: 4, instructions: 1, regrade: false,"
        " splits: {train: .75, test: .25}, parquet: 6}"
    )
    build(load_recipe(recipe), tmp_path / "set")
    losses = []
    for name, files in (("items", "set/items.train.jsonl"), ("parquet", "set/parquet/train-*.parquet")):
        source = {"items": [str(tmp_path / files)], "formats": ["score-only"]}
        config = write_config(name, "qwen", data=[source], steps=2, workers=1)
        losses.append(trained(config, tmp_path / f"run-{name}"))
    assert losses[0] == losses[1]
    assert len(losses[0]) == 2


@pytest.mark.slow
def test_shards_with_pictures_are_learnt_from(write_config: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for i in range(4):
        Pillow.new("RGB", (56, 56), (60 * i, 99, 10)).save(tmp_path / f"p{i}.png")
    write_items(
        tmp_path / "items.jsonl",
        [
            Item.of("Which?", "A.", id=str(i), image=str(tmp_path / f"p{i}.png"), rubric="helpfulness", gold=i + 1)
            for i in range(4)
        ],
    )
    write_shards(tmp_path / "items.jsonl", tmp_path / "parquet", "train", rows=2, embed=True)
    losses = []
    for name, files in (("items", "items.jsonl"), ("parquet", "parquet/*.parquet")):
        source = {"items": [str(tmp_path / files)], "formats": ["score-only"]}
        losses.append(trained(write_config(name, data=[source], steps=2, workers=1), tmp_path / f"run-{name}"))
    assert losses[0] == losses[1]
