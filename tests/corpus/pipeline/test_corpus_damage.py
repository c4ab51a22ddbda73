"""Builds with damaged folders, full disks and two processes: an error message, answers kept, and resumable."""

import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.output_folder import one_writer
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.pipeline.stage import StageReport
from runs import files_of_at_most


def recipe(tmp_path: Path, **values: object) -> Recipe:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(orjson.dumps({"recipe": "feedback", "teacher": "world:text", "rubrics": 2, "a_call": 4, **values}))
    return load_recipe(path)


def test_two_builds_in_one_folder_are_refused(tmp_path: Path) -> None:
    refused = pytest.raises(RunError, match="another process is building here")
    with one_writer(tmp_path / "out", "building"), refused:
        build(recipe(tmp_path), tmp_path / "out")
    assert build(recipe(tmp_path), tmp_path / "out").items > 0


@pytest.mark.parametrize("size", [0, 500, 3_000, 12_000])
def test_a_limit_on_file_sizes_ends_with_a_message_and_the_next_run_goes_on(size: int, tmp_path: Path) -> None:
    build(recipe(tmp_path), tmp_path / "whole")
    told = recipe(tmp_path)
    with files_of_at_most(size), pytest.raises(RunError, match=r"File too large"):
        build(told, tmp_path / "out")
    built = build(recipe(tmp_path), tmp_path / "out")
    assert built.waits == ""
    assert (tmp_path / "out" / "items.jsonl").read_bytes() == (tmp_path / "whole" / "items.jsonl").read_bytes()


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[]", b'{"recipe": 3}'])
def test_a_damaged_build_json_is_written_anew_and_nothing_is_asked_twice(damage: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out"
    attempts = [stage.attempts for stage in build(recipe(tmp_path), out).stages]
    items = (out / "items.jsonl").read_bytes()
    (out / "build.json").write_bytes(damage)
    built = build(recipe(tmp_path), out)
    assert any("build.json was damaged or gone and is written anew" in note for note in built.notes)
    assert [stage.attempts for stage in built.stages] == attempts
    assert (out / "items.jsonl").read_bytes() == items
    assert not build(recipe(tmp_path), out).notes
    with pytest.raises(UserError, match=r"was built by another recipe \(rubrics differ\)"):
        build(recipe(tmp_path, rubrics=3), out)


@pytest.mark.parametrize(
    "line",
    [b"junk\n", b"[]\n", b'{"key": 7, "at": [0], "status": "ok"}\n', b'{"key": "zz", "at": [0], "status": "ok"}\n',
     b'{"key": "0a", "at": 3, "status": "ok"}\n', b'{"key": "0a", "at": [0], "status": "ok", "made": 1}\n'],
)  # fmt: skip
def test_junk_in_a_journal_is_told_with_its_cure(line: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(recipe(tmp_path), out)
    journal = min(out.glob("[0-9]-*.jsonl"))
    before = journal.read_bytes()
    journal.write_bytes(line + before)
    with pytest.raises(DataError, match=r"jsonl:1: a damaged record .*dikast doctor .* --repair"):
        build(recipe(tmp_path), out)
    journal.write_bytes(before)
    assert build(recipe(tmp_path), out).waits == ""


def _moved(out: Path) -> None:
    out.rename(out.with_name("moved"))


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        (shutil.rmtree, r"1-\S+\.jsonl"),
        (_moved, r"1-\S+\.jsonl"),
        (lambda out: next(out.glob("1-*.jsonl")).unlink(), r"1-\S+\.jsonl"),
        (lambda out: (out / "build.json").unlink(), r"build\.json"),
    ],
)
@pytest.mark.parametrize("when", [1, -1])
def test_what_is_removed_during_a_build_ends_it(
    lost: Callable[[Path], object], named: str, when: int, tmp_path: Path
) -> None:
    """In the first stage, or after its last answer: what an earlier stage wrote is needed by the later ones."""
    out, counted = tmp_path / "out", 0
    build(recipe(tmp_path), tmp_path / "whole", progress=lambda report: None)
    first = next((tmp_path / "whole").glob("1-*.jsonl")).read_bytes().count(b"\n")

    def progress(report: StageReport) -> None:
        nonlocal counted
        counted += 1
        if counted == (when if when > 0 else first):
            lost(out)

    with pytest.raises(RunError, match=named + ".*was removed, moved or replaced"):
        build(recipe(tmp_path), out, progress=progress)
    assert counted <= first
    assert not (out / "items.jsonl").exists()
    if (tmp_path / "moved").exists():
        (tmp_path / "moved").rename(out)
    built = build(recipe(tmp_path), out)
    assert (out / "items.jsonl").read_bytes() == (tmp_path / "whole" / "items.jsonl").read_bytes()
    assert built.waits == ""
