"""Flipped bits in the folder of a build: detected on opening, repaired by the next run, or harmless."""

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import DataError
from dikast.core.records import read_items
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.recipe_file import load_recipe
from runs import dikast_here, files_in, flips

_MOVING = ("checksums.json", "report.json")  # what they say of the run that was damaged


def told(path: Path) -> Any:
    """The items of a finished set, or the error that refuses it."""
    try:
        return list(read_items(path))
    except DataError:
        return None


def content(folder: Path, names: str = "*") -> dict[str, list[bytes]]:
    """The lines of all files except those about the last run, and of lines that were moved aside."""
    found = {path.name: sorted(raw.splitlines()) for path, raw in files_in(folder).items() if path.match(names)}
    return {name: lines for name, lines in found.items() if name not in _MOVING and ".damaged." not in name}


@pytest.mark.soak(500)
@pytest.mark.parametrize(
    "half", [pytest.param(False, marks=pytest.mark.slow, id="finished"), pytest.param(True, id="half-done")]
)
def test_flipped_bits_never_change_an_item_silently(tmp_path: Path, tries: int, *, half: bool) -> None:
    path, out = tmp_path / "recipe.yaml", tmp_path / "out"
    path.write_bytes(
        orjson.dumps(
            {
                "recipe": "feedback",
                "teacher": "world:text",
                "rubrics": 2,
                "a_call": 4,
                "near": False,
                "splits": {"a": 0.7, "b": 0.3},
            }
        )
    )
    recipe = load_recipe(path)
    build(recipe, out)
    clean, items = content(out, "items*" if half else "*"), told(out / "items.jsonl")  # journals keep what went wrong
    assert items
    if half:
        shutil.rmtree(out)
        assert build(recipe, out, budget={"calls": 8}).waits
        assert not (out / "items.jsonl").exists()
    found = 0
    for number, flipped in enumerate(flips(out, files_in(out), tries // 2, seed=5)):
        if not half:
            assert told(out / "items.jsonl") in (items, None), (number, flipped)
        sick = dikast_here("doctor", out).returncode
        found += sick
        assert sick or half or told(out / "items.jsonl") == items, (number, flipped)
        if sick:
            dikast_here("doctor", out, "--repair")
        assert not build(recipe, out).waits, (number, flipped)
        assert content(out, "items*" if half else "*") == clean, (number, flipped)
        assert dikast_here("doctor", out).returncode == 0, (number, flipped)
    assert found > tries // 4


def test_a_changed_set_is_refused_by_all_that_read_it_and_listed(tmp_path: Path) -> None:
    path, out = tmp_path / "recipe.yaml", tmp_path / "out"
    path.write_bytes(orjson.dumps({"recipe": "feedback", "teacher": "world:text", "rubrics": 2, "a_call": 4}))
    assert dikast_here("corpus", "build", path, "--out", out, "-q").returncode == 0
    assert dikast_here("doctor", out).stdout.endswith("nothing to repair\n")
    before = (out / "items.jsonl").read_bytes()
    (out / "items.jsonl").write_bytes(before.replace(b"e", b"i", 1))
    for verb in (
        ("corpus", "check", out / "items.jsonl"),
        ("corpus", "convert", out / "items.jsonl", tmp_path / "x.csv", "--to", "dikast"),
        ("grade", out / "items.jsonl", "--judge", "mock:oracle", "--out", tmp_path / "run"),
    ):
        done = dikast_here(*verb)
        assert done.returncode == 2
        assert "items.jsonl: the file has changed since it was written (checksum); restore it" in done.stderr
    listed = dikast_here("doctor", out)
    assert listed.returncode == 1
    assert "items.jsonl: the file has changed since it was written" in listed.stdout
    done = dikast_here("corpus", "build", path, "--out", out)
    assert "note: items.jsonl: the file has changed since it was written (checksum): it is written anew" in done.stdout
    assert (out / "items.jsonl").read_bytes() == before


def test_a_build_of_before_checksums_goes_on(tmp_path: Path) -> None:
    path, out = tmp_path / "recipe.yaml", tmp_path / "out"
    path.write_bytes(orjson.dumps({"recipe": "feedback", "teacher": "world:text", "rubrics": 2, "a_call": 4}))
    recipe = load_recipe(path)
    stages = [stage.attempts for stage in build(recipe, out).stages]
    clean = content(out)
    for journal in out.glob("[0-9]-*.jsonl"):
        old = [
            {k: v for k, v in orjson.loads(line).items() if k != "crc"} for line in journal.read_bytes().splitlines()
        ]
        journal.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in old))
    (out / "checksums.json").unlink()
    assert dikast_here("doctor", out).returncode == 0
    built = build(recipe, out)
    assert ([stage.attempts for stage in built.stages], built.notes) == (stages, [])
    assert content(out)["items.jsonl"] == clean["items.jsonl"]
