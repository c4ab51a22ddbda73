"""Every verb that writes an output folder is refused while another process holds it, or where a file in it is a link to
one elsewhere, and leaves everything as it was.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import tiny_models
from dikast.core.output_folder import one_writer
from runs import dikast_here, files_in, pairs, rows, write_jsonl

_JUDGE = ("--judge", "mock:oracle", "--rubric", "helpfulness")
VERBS: dict[str, Callable[[Path, Path], Sequence[object]]] = {
    "grade-panel": lambda at, out: ("grade", at / "items.jsonl", *_JUDGE, "--judge", "mock:random", "--out", out),
    "compare-panel": lambda at, out: ("compare", at / "pairs.jsonl", *_JUDGE, "--judge", "mock:random", "--out", out),
    "probe": lambda at, out: ("probe", *_JUDGE, "--items", at / "items.jsonl", "--calls", 60, "--out", out),
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
    "train-dpo": lambda at, out: ("train", "dpo", "--config", at / "train.yaml"),
    "train-merge": lambda at, out: ("train", "merge", at / "model", at / "model", "--out", out),
    "train-release": lambda at, out: ("train", "release", at / "model", "--out", out),
    "train-export": lambda at, out: ("train", "sft", "--config", at / "export.yaml", "--export", "trl", "--out", out),
    "demo": lambda at, out: ("demo", "--out", out),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llava", tmp_path_factory.mktemp("tiny") / "llava")


@pytest.fixture
def given(tmp_path: Path, model: Path) -> Path:
    (tmp_path / "model").symlink_to(model)
    (tmp_path / "export.yaml").write_text("{model: model, out: run, data: [{items: [items.jsonl]}]}")
    write_jsonl(tmp_path / "items.jsonl", rows(30))
    write_jsonl(tmp_path / "pairs.jsonl", pairs(2))
    (tmp_path / "recipe.yaml").write_text(
        "{recipe: feedback, teacher: 'world:text', rubrics: 2, near: false, parquet: 50}"
    )
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


@pytest.mark.parametrize("name", VERBS)
def test_a_folder_with_a_link_to_a_file_elsewhere_is_refused(name: str, given: Path) -> None:
    out, elsewhere = given / "out", given / "elsewhere"
    elsewhere.write_text("somebody's")
    for place in ("x.jsonl", "images/0.png", "a/b/c.part"):
        for target in (elsewhere, given / "missing"):
            link = out / place
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
            before = files_in(given)
            done = dikast_here(*VERBS[name](given, out))
            assert done.returncode == 2, done.stderr
            others = name == "demo" and f"{out} contains other files" in done.stderr  # it looks for files first
            assert others or f"{link}: is a link to a file outside of this folder" in done.stderr
            assert files_in(given) == before
            shutil.rmtree(out)


WRITTEN = {  # files that each verb writes again into a folder that it wrote before
    "corpus-build": (
        "items.jsonl",
        "report.json",
        "build.json",
        "checksums.json",
        "[0-9]-*.jsonl",
        "parquet/*.parquet",
    ),
    "world-make": ("items-00000.jsonl", "images/**/*.png", "world.json"),
    "world-teach": ("items-00000.jsonl", "images/**/*.png"),
    "probe": ("plan.json", "absolute.jsonl", "card.json", "card.md", "absolute/verdicts.jsonl"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_link_in_the_place_of_a_written_file_leads_to_stays_as_it_is(name: str, given: Path) -> None:
    """Files that the verb wrote lie elsewhere, as they would in an archive that somebody else packed."""
    out, elsewhere = given / "out", given / "elsewhere"
    asked = VERBS[name](given, out)
    assert dikast_here(*asked).returncode == 0
    for pattern in WRITTEN[name]:
        path = min(out.glob(pattern))
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        content = elsewhere.read_bytes()
        done = dikast_here(*asked)
        assert (done.returncode, elsewhere.read_bytes()) == (2, content), done.stderr
        assert f"{path}: is a link to a file outside of this folder" in done.stderr
        path.unlink()
        elsewhere.rename(path)
    kept = min(out.glob(WRITTEN[name][0]))
    kept.rename(out / "kept")
    kept.symlink_to("kept")  # inside the folder links are followed
    assert dikast_here(*asked).returncode == 0


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
