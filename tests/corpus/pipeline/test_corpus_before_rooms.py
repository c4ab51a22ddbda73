"""Builds from before modules, rooms and fields were renamed are resumed without a call."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dikast.corpus.pipeline.build import build, open_teacher
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.engines.base import Completion, Request
from dikast.engines.wrapper import Wrapper

BEFORE = Path(__file__).parent / "before_rooms"
RECIPES = sorted(path.stem for path in BEFORE.glob("*.yaml"))


class Refusing(Wrapper):
    """The recipe's teacher, which must not be asked."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            raise AssertionError(f"asked again: {request.about}")
        yield from ()


@pytest.mark.parametrize("name", RECIPES)
def test_a_build_of_before_is_resumed_without_a_call(tmp_path: Path, name: str) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    out = tmp_path / name
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != "report.json"}
    recipe = load_recipe(tmp_path / f"{name}.yaml")
    built = build(recipe, out, teacher=Refusing(open_teacher(recipe)))
    assert built.waits == ""
    assert built.items == len((BEFORE / name / "items.jsonl").read_bytes().splitlines())
    assert {path: path.read_bytes() for path in kept} == kept


@pytest.mark.parametrize("name", RECIPES)
def test_a_build_made_anew_is_the_build_of_before(tmp_path: Path, name: str) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / name)
    build(load_recipe(tmp_path / f"{name}.yaml"), tmp_path / name)
    made, before = ((folder / name / "items.jsonl").read_bytes() for folder in (tmp_path, BEFORE))
    assert made == before
