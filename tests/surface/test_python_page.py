"""The page on Python: every snippet does what it shows."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8").replace("\n```\n", "\n\n")  # the end of a block is no output
    test = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(PAGE), 0)
    told: list[str] = []
    done = doctest.DocTestRunner().run(test, out=told.append)
    assert not done.failed, "".join(told)
    assert PAGE.read_text("utf-8").count("```pycon") >= 20
