"""Files that replace others together, and folders that do."""

import os
from pathlib import Path

import pytest

from dikast.core.output_folder import move, refill_folder, replace_folder
from dikast.core.runs.run_files import CHECKSUMS, changed_files, recorded, written_together


def test_files_written_together_replace_the_old_ones_with_their_checksums(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    paths[0].write_text("old")
    with written_together(*paths) as parts:
        for part in parts:
            part.write_text(f"new {part.name}")
        assert paths[0].read_text() == "old"
        assert not paths[1].exists()
    assert [path.read_text() for path in paths] == ["new a.jsonl.part", "new b.jsonl.part"]
    assert recorded(tmp_path).keys() == {"a.jsonl", "b.jsonl"}
    assert not changed_files(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "b.jsonl", CHECKSUMS]


def test_after_an_error_nothing_is_replaced_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), written_together(path, tmp_path / "b.jsonl") as parts:
        parts[0].write_text((tmp_path / "gone").read_text())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.jsonl"]


def test_checksums_may_be_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with written_together(tmp_path / "data" / "a.parquet", sums=tmp_path) as (part,):
        part.write_text("rows")
    assert recorded(tmp_path).keys() == {"data/a.parquet"}
    assert os.listdir(tmp_path / "data") == ["a.parquet"]


def made(folder: Path) -> Path:
    folder.mkdir()
    for name in ("weights", "sums"):
        (folder / name).write_text("new")
    return folder


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "other").write_text("old")
    with pytest.raises(OSError, match="not empty"):
        move(made(tmp_path / "part"), target)
    replace_folder(tmp_path / "part", target)
    assert sorted(os.listdir(target)) == ["sums", "weights"]
    assert os.listdir(tmp_path) == ["model"]


def test_a_folder_that_stays_itself_is_filled_anew(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    for name in ("README.md", "other", "weights"):
        (target / name).write_text("old")
    held = target.stat().st_ino
    refill_folder(made(tmp_path / "part"), target, first="sums", keep="README.md")
    assert target.stat().st_ino == held
    assert {path.name: path.read_text() for path in target.iterdir()} == {
        "README.md": "old", "weights": "new", "sums": "new",
    }  # fmt: skip
