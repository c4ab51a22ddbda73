"""The page of the room does what it says."""

import re
import shlex
from pathlib import Path

import pytest

from runs import dikast_here

PAGE = Path(__file__).parents[2] / "docs" / "judging.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    files = iter(("items.jsonl", "pairs.jsonl"))
    ran = 0
    for language, text in blocks:
        if language == "json":
            Path(next(files)).write_text(text)
        elif language == "python":
            exec(compile(text, str(PAGE), "exec"), {})
        else:
            assert language == "sh"
            for command in text.splitlines():
                program, *arguments = shlex.split(command)
                assert program == "dikast"
                done = dikast_here(*arguments)
                assert done.returncode == 0, done.stderr
                ran += 1
    assert ran == 6
    told = PAGE.read_text("utf-8")
    for file in {each.name for run in ("first", "pairs", "scores") for each in Path("runs", run).iterdir()}:
        assert f"`{file}`" in told, f"{file} is not in the table of files"
