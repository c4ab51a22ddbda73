"""`dikast demo`: the main job on fresh items, offline."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dikast.core.errors import MissingExtra, UserError
from dikast.surface.cli import app
from dikast.surface.demo import demo

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_a_small_demo_leaves_everything_and_says_what_next(tmp_path: Path) -> None:
    out = tmp_path / "a demo"
    done = CliRunner().invoke(app, ["demo", "--out", str(out), "-n", "20", "--pairs", "4", "--seed", "3"])
    assert done.exit_code == 0, done.output
    for name in ("items", "pairs", "graded", "compared"):
        assert (out / name).is_dir()
    assert (out / "graded" / "summary.json").is_file()
    assert (out / "compared" / "preferences.jsonl").is_file()
    assert "Demo: scout on newly generated items" in (out / "report.html").read_text()
    commands = [line for line in done.output.split("\n") if line.startswith("  ") and str(out) in line]
    assert len(commands) == 3
    for command in commands:  # as they are copied
        subprocess.run(command, shell=True, check=True, capture_output=True)


@pytest.mark.parametrize("made", ["file", "folder"])
def test_what_is_there_already_is_not_written_over(made: str, tmp_path: Path) -> None:
    out = tmp_path / "x"
    if made == "file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / "report.html").write_text("mine")
    with pytest.raises(UserError, match="contains other files: name a new folder with --out"):
        demo(out, tell=lambda line: None)
    assert (out if made == "file" else out / "report.html").read_text() == "mine"


def test_a_seed_that_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="seed"):
        demo(tmp_path / "x", seed=2**70, tell=lambda line: None)
    assert not (tmp_path / "x").exists()


def test_the_command_line_asks_scout_as_it_was_taught(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    items.write_text('{"id": "1", "instruction": "Say what you see.", "response": "The circle is red."}')
    arguments = ["grade", str(items), "--judge", "scout", "--rubric", "helpfulness", "--out", str(tmp_path / "run")]
    CliRunner().invoke(app, arguments)
    lock = json.loads((tmp_path / "run" / "judge.lock.json").read_text())
    assert lock["format"]["name"] == "scout"


def test_too_few_items_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "x"), "-n", "1"])
    assert done.exit_code == 1
    assert "at least 20" in str(done.exception)


def test_without_the_extra_one_line_says_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    real = importlib.import_module

    def absent(name: str, *rest: Any) -> Any:
        if name == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=r"pip install 'dikast\[hf\]'"):
        demo(tmp_path / "x", tell=lambda line: None)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_the_whole_demo_agrees_with_gold_and_a_constant_judge_does_not(tmp_path: Path) -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    done = demo(tmp_path / "demo", tell=lambda line: None)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    tables = {table.title: table for table in done.graded}
    assert done.graded.rows == 120
    assert done.compared.rows == 60
    assert tables
