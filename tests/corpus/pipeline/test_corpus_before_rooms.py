"""Builds from before modules, rooms and fields were renamed are resumed without a call."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dikast.corpus.pipeline.build import build, open_teacher
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.pipeline.round_training import training_due
from dikast.corpus.teachers.world_teacher import as_begun
from dikast.engines.base import Completion, Request
from dikast.engines.wrapper import Wrapper
from dikast.training.config import load_config

BEFORE = Path(__file__).parent / "before_rooms"
ROUNDS = "self-improvement"  # not finished: its first round waits for training
RECIPES = sorted(path.stem for path in BEFORE.glob("*.yaml") if path.stem != ROUNDS)


class Refusing(Wrapper):
    """The recipe's teacher, which must not be asked."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            raise AssertionError(f"asked again: {request.about}")
        yield from ()


def content(folder: Path, *but: str) -> dict[Path, bytes]:
    """Every file of a folder except those named."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name not in but}


@pytest.mark.parametrize("name", RECIPES)
def test_a_build_of_before_is_resumed_without_a_call(tmp_path: Path, name: str) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    out = tmp_path / name
    kept = content(out, "report.json")
    recipe = load_recipe(tmp_path / f"{name}.yaml")
    built = build(recipe, out, teacher=Refusing(open_teacher(recipe)))
    assert built.waits == ""
    assert built.items == len((BEFORE / name / "items.jsonl").read_bytes().splitlines())
    assert {path: path.read_bytes() for path in kept} == kept


@pytest.mark.parametrize("name", RECIPES)
def test_a_build_made_anew_is_the_build_of_before(tmp_path: Path, name: str) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / name)
    recipe = load_recipe(tmp_path / f"{name}.yaml")
    teacher = open_teacher(recipe)
    as_begun(teacher, {})
    build(recipe, tmp_path / name, teacher=teacher)
    made, before = ((folder / name / "items.jsonl").read_bytes() for folder in (tmp_path, BEFORE))
    assert made == before


def test_a_round_of_before_is_resumed_without_a_call(tmp_path: Path) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    out = tmp_path / ROUNDS
    kept = content(out, "report.json", "summary.json")
    recipe = load_recipe(tmp_path / f"{ROUNDS}.yaml")
    built = build(recipe, out, teacher=Refusing(open_teacher(recipe)))
    assert built.waits.startswith("round 1 is ready to train")
    assert {path: path.read_bytes() for path in kept} == kept
    assert training_due(out) == out / "round-1" / "train.yaml"
    assert load_config(out / "round-1" / "train.yaml").min_lr_ratio == 0.2  # written as `final_rate`
