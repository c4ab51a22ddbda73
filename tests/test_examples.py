"""The files in `examples` do what they are there for, with a server that stands in for the API.

`DIKAST_WRITE_GOLDEN=1` writes the outputs in the notebook anew.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dikast.testing.faults import FaultServer
from stand_in import ROOT, environment, reply

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(reply, model="gpt-4.1-mini") as opened:
        yield opened


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder of its own with copies of the examples."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_every_example_is_run_by_a_test() -> None:
    kinds = {path.name for path in EXAMPLES.iterdir()}
    shown = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "tutorials").glob("*.md"))
    run_here = {"github-action.yml", "data-frame.ipynb"}
    assert {name for name in kinds - run_here if name not in shown} == set()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_gives_the_outputs_it_shows(path: Path, server: FaultServer, here: Path) -> None:
    runner = ROOT / "tests" / "run_notebook.py"
    done = subprocess.run(
        [sys.executable, runner, path.name], cwd=here, env=environment(server, here), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = json.loads(done.stdout)
    if os.environ.get("DIKAST_WRITE_GOLDEN") == "1":
        for cell, found in zip(cells, outputs, strict=True):
            cell["outputs"] = found
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert [cell["outputs"] for cell in cells] == outputs
    assert sum(map(len, outputs)) >= 5


@pytest.mark.slow
def test_the_action_passes_on_good_answers_and_fails_on_bad_ones(server: FaultServer, here: Path) -> None:
    action = yaml.safe_load((EXAMPLES / "github-action.yml").read_text("utf-8"))
    steps = [step for job in action["jobs"].values() for step in job["steps"] if "run" in step]
    assert [step["run"].split()[0] for step in steps] == ["pip", "dikast", "dikast", "pytest", "cat"]
    variables = {**environment(server, here), "GITHUB_STEP_SUMMARY": str(here / "summary.md")}

    def run(step: dict[str, Any]) -> int:
        return subprocess.run(
            ["bash", "-e", "-c", step["run"]], cwd=here, env=variables, capture_output=True
        ).returncode

    assert [run(step) for step in steps[1:]] == [0, 0, 0, 0]
    assert "pearson" in (here / "summary.md").read_text("utf-8")
    assert re.search(r"<testsuite", (here / "junit.xml").read_text("utf-8"))
    restored, saved = [
        step for job in action["jobs"].values() for step in job["steps"] if "key" in step.get("with", {})
    ]
    kept = saved["with"]["path"]
    assert (saved["if"], restored["with"]["path"]) == ("always()", kept)  # what a stopped build paid for is kept
    assert all((here / path).exists() for path in kept.split())
    table = (here / "answers.csv").read_text("utf-8").splitlines()
    worse = [re.sub(r",[1-5](,|$)", lambda m: f",{6 - int(m[0][1])}{m[1]}", row) for row in table[1:]]
    (here / "answers.csv").write_text("\n".join([table[0], *worse]) + "\n", "utf-8")
    assert [run(step) for step in steps[1:3]] == [0, 4]


def test_the_tests_of_the_tutorial_are_the_example() -> None:
    page = (ROOT / "docs" / "tutorials" / "gate.md").read_text("utf-8")
    assert f"```py\n{(EXAMPLES / 'test_answers.py').read_text('utf-8')}```" in page
