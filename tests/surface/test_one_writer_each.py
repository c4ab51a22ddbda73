"""Every verb that writes an output folder is refused while another process holds it, and leaves it as it was."""

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dikast.core.output_folder import one_writer
from runs import dikast_here, files_in, pairs, rows, write_jsonl

_JUDGE = ("--judge", "mock:oracle", "--rubric", "helpfulness")
VERBS: dict[str, Callable[[Path, Path], Sequence[object]]] = {
    "grade-panel": lambda at, out: ("grade", at / "items.jsonl", *_JUDGE, "--judge", "mock:random", "--out", out),
    "compare-panel": lambda at, out: ("compare", at / "pairs.jsonl", *_JUDGE, "--judge", "mock:random", "--out", out),
    "probe": lambda at, out: ("probe", "--judge", "mock:oracle", "--items", at / "items.jsonl", "--out", out),
    "probe-plan": lambda at, out: (
        "probe",
        "--judge",
        "mock:oracle",
        "--items",
        at / "items.jsonl",
        "--dry-run",
        "--out",
        out,
    ),
    "corpus-build": lambda at, out: ("corpus", "build", at / "recipe.yaml", "--out", out),
    "world-make": lambda at, out: ("world", "make", "-n", 2, "--out", out),
    "world-suite": lambda at, out: ("world", "make", "--suite", "probe", "--out", out),
    "world-teach": lambda at, out: ("world", "teach", "-n", 2, "--out", out),
    "train-new": lambda at, out: ("train", "new", "--config", at / "train.yaml", "--out", out),
    "train-look": lambda at, out: ("train", "look", "--config", at / "train.yaml"),
    "train-sft": lambda at, out: ("train", "sft", "--config", at / "train.yaml"),
    "demo": lambda at, out: ("demo", "--out", out),
}


@pytest.fixture
def given(tmp_path: Path) -> Path:
    write_jsonl(tmp_path / "items.jsonl", rows(30))
    write_jsonl(tmp_path / "pairs.jsonl", pairs(2))
    (tmp_path / "recipe.yaml").write_text("{recipe: feedback, teacher: 'world:text', rubrics: 2}")
    (tmp_path / "train.yaml").write_text("{init: nowhere, out: out, data: [{items: [items.jsonl]}]}")
    return tmp_path


@pytest.mark.parametrize("name", VERBS)
def test_a_folder_that_is_held_is_refused(name: str, given: Path) -> None:
    out = given / "out"
    with one_writer(out, "writing"):
        done = dikast_here(*VERBS[name](given, out))
        assert done.returncode == 1, done.stderr
        assert f"{out}: another process is" in done.stderr
        assert not files_in(out)


@pytest.mark.parametrize("verb", ["grade", "replay"])
def test_a_run_that_is_being_written_is_refused(verb: str, given: Path) -> None:
    out = given / "out"
    assert dikast_here("grade", given / "items.jsonl", *_JUDGE, "--out", given / "run").returncode == 0
    out.mkdir()
    held = os.open(out / "verdicts.jsonl", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        asked = ("grade", given / "items.jsonl", *_JUDGE) if verb == "grade" else ("replay", given / "run")
        done = dikast_here(*asked, "--out", out)
    finally:
        os.close(held)
    assert done.returncode in (1, 2), done.stderr
    assert "another process is writing" in done.stderr or "already holds verdicts" in done.stderr
