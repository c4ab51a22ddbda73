"""`dikast rubric list`, `show`, `new`, `lint`, rubrics in words, and what shells complete."""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from dikast.core.rubric import Rubric, builtin_rubrics, load_rubric
from dikast.surface.rubric_advice import advice
from runs import dikast_here as dikast
from runs import environment, rows, write_jsonl


def test_list_and_show() -> None:
    listed = dikast("rubric", "list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == builtin_rubrics()
    assert {each["name"] for each in orjson.loads(dikast("rubric", "list", "--json").stdout)} == set(builtin_rubrics())
    shown = dikast("rubric", "show", "helpfulness").stdout
    assert "scale 1-5" in shown
    assert "5  Answers fully and directly" in shown
    assert orjson.loads(dikast("rubric", "show", "helpfulness", "--json").stdout)["scale"]["labels"] == list("12345")
    near = dikast("rubric", "show", "helpfullness")
    assert (near.returncode, "did you mean 'helpfulness'?" in near.stderr) == (2, True)


@pytest.mark.parametrize("scale", ["1-5", "pass/fail", "A-E", "0-100", "0-1/0.1"])
def test_new_writes_a_file_that_judges_at_once(tmp_path: Path, scale: str) -> None:
    file, asked = tmp_path / "polite: or not.yaml", 'Is it "polite": yes, or #no?'
    done = dikast("rubric", "new", file, "--criterion", asked, "--scale", scale)
    assert done.returncode == 0, done.stderr
    rubric = load_rubric(file)
    assert isinstance(rubric, Rubric)
    assert (rubric.name, rubric.criterion, str(rubric.scale)) == ("polite: or not", asked, scale)
    assert "# What labels mean" in file.read_text("utf-8")
    filled = file.read_text("utf-8").replace("#  ", "  ")
    file.write_text(filled, "utf-8")
    assert len(load_rubric(file).levels) == 2  # type: ignore[union-attr]
    again = dikast("rubric", "new", file)
    assert (again.returncode, file.read_text("utf-8")) == (2, filled)
    assert "already exists" in again.stderr


def test_lint_tells_lines_and_advice(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("criteria: Is it polite?\n", "utf-8")
    done = dikast("rubric", "lint", bad, "helpfulness")
    assert done.returncode == 2
    assert (
        "bad.yaml:1: field 'criteria': a sheet needs a list of at least one rubric: did you mean 'criterion'"
        in done.stderr
    )
    assert "helpfulness: ok" in done.stdout
    told = dikast("rubric", "lint", "Is it polite? Is it short?")
    assert told.returncode == 0
    assert "no level is described" in told.stdout
    assert "asks 2 questions" in told.stdout
    assert advice(Rubric("a", "b?", "0-100", {"0": "x", "100": "X"})) == [
        "101 labels: judges use few of them; 1-5 or 1-10 tells as much",
        "two levels have the same description: say what is different",
    ]
    assert advice(Rubric("a", "b?", "1-3", {"1": "x"})) == ["levels without a description: 2, 3"]


def test_a_criterion_in_words_judges(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "a.jsonl", rows(3)), tmp_path / "run"
    done = dikast("grade", items, "--judge", "mock:constant", "--rubric", "Is the answer polite?", "--out", run)
    assert done.returncode == 0
    assert "is-the-answer-polite: mean" in done.stdout
    rubric = load_rubric("Is  the answer\npolite?")
    assert isinstance(rubric, Rubric)
    assert (rubric.criterion, str(rubric.scale)) == ("Is the answer polite?", "1-5")
    scaled = dikast("rubric", "show", "Is it short?", "--json")
    assert orjson.loads(scaled.stdout)["name"] == "is-it-short"
    for wrong in ("no such file.yaml", "helpfulnes"):  # a file that is not there, a slip: never a criterion
        assert dikast("rubric", "show", wrong).returncode == 2


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("grade a.jsonl --rubric help", "helpfulness"),
        ("grade a.jsonl --judge mock:orac", "mock:oracle"),
        ("grade a.jsonl --judge sco", "scout"),
        ("compare a.jsonl --format pair", "pairwise"),
        ("rubric show corr", "correctness"),
    ],
)
def test_shells_complete_rubrics_judges_and_formats(line: str, found: str) -> None:
    words = f"dikast {line}"
    script = "import sys; sys.argv = ['dikast']; from dikast.surface.cli import main; main()"
    asked = {"_DIKAST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(**asked), capture_output=True, text=True, check=False
    )
    assert found in done.stdout.split(), done
    assert all(each.startswith(words.split()[-1]) for each in done.stdout.split()), "nothing else is offered"
