"""Damaged folders, newer ones, runs of different items: said as such on the first screen, and by the viewer alike."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import runs
from dikast.core.runs.folder_fault import fault_of
from dikast.surface.viewer.run_folders import read_facts


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _newer(lock: Path) -> None:
    lock.write_text(json.dumps(json.loads(lock.read_bytes()) | {"schema": 7}, indent=2))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 items whose report is green."""
    folder = tmp_path_factory.mktemp("whole")
    items = runs.write_jsonl(folder / "items.jsonl", runs.rows(60))
    done = runs.dikast_here("grade", items, "--judge", "mock:oracle,r=.98", "--rubric", "helpfulness", "--out",
                            folder / "run", "-q")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert _concluded(folder / "run", folder)["light"] == "green"
    return folder / "run"


def _concluded(run: Path, folder: Path, *more: Path) -> dict[str, str]:
    done = runs.dikast_here("report", run, *more, "-o", folder / "r.json", "-o", folder / "r.html", "--draws", 50)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads((folder / "r.json").read_bytes())["runs"][0]["conclusion"]
    assert found["text"].replace("'", "&#39;") in (folder / "r.html").read_text()
    return found


@pytest.mark.parametrize(
    ("name", "harm", "light"),
    [
        ("verdicts.jsonl", Path.unlink, "red"),
        ("verdicts.jsonl", lambda path: path.write_bytes(b""), "red"),
        ("verdicts.jsonl", _as_folder, "red"),
        ("summary.json", _cut, "amber"),
        ("summary.json", _as_folder, "amber"),
        ("judge.lock.json", Path.unlink, "amber"),
        ("judge.lock.json", _cut, "amber"),
        ("judge.lock.json", _as_folder, "amber"),
        ("keys.txt", Path.unlink, "red"),
        ("keys.txt", _as_folder, "red"),
        ("gold.jsonl", Path.unlink, "red"),
        ("gold.jsonl", _as_folder, "red"),
        ("rubrics.jsonl", _cut, "red"),
        ("checksums.json", _cut, "red"),
    ],
)
def test_report_and_viewer_say_the_same_of_a_damaged_folder(
    name: str, harm: Callable[[Path], object], light: str, whole: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    assert fault_of(run) == ""
    harm(run / name)
    found, facts, fault = _concluded(run, tmp_path), read_facts(tmp_path, "run"), fault_of(run)
    assert name in fault
    assert (facts.state, facts.why) == ("damaged", fault)
    assert (found["light"], fault in found["text"]) == (light, True), found


def test_without_a_lock_nothing_is_said_of_where_the_items_came_from(whole: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    (run / "judge.lock.json").unlink()
    _concluded(run, tmp_path)
    missing = json.loads((tmp_path / "r.json").read_bytes())["runs"][0]["missing"]
    assert [each.partition(":")[0] for each in missing] == [
        "judge.lock.json is missing", "it is not known where the items are"
    ]  # fmt: skip


def test_a_panel_of_which_a_run_is_gone_is_damaged(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(60))
    judges = [word for seed in (1, 2, 3) for word in ("--judge", f"mock:oracle,r=.98,seed={seed}")]
    done = runs.dikast_here("grade", items, *judges, "--rubric", "helpfulness", "--out", tmp_path / "run", "-q")
    assert done.returncode == 0, done.stderr
    assert _concluded(tmp_path / "run", tmp_path)["light"] == "green"
    next((tmp_path / "run").glob("2-*/summary.json")).unlink()
    found = _concluded(tmp_path / "run", tmp_path)
    assert found["light"] == "amber"
    assert "; the run is damaged: 1 judge of the panel has no finished run in it; run the command" in found["text"]


def test_a_run_that_merely_stopped_is_not_damaged(whole: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    (run / "summary.json").unlink()
    assert fault_of(run) == ""
    assert read_facts(tmp_path, "run").state == "unfinished"


def test_a_folder_of_a_newer_version_is_refused_as_elsewhere(whole: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    _newer(run / "judge.lock.json")
    told = "field 'schema': the run folder has version 7, and this Dikast reads up to 1: update Dikast"
    for command in (
        ("report", run, "-o", tmp_path / "r.html"), ("replay", run, "--out", tmp_path / "again"), ("audit", run),
        ("export", run, tmp_path / "v.csv"),
    ):  # fmt: skip
        done = runs.dikast_here(*command)
        assert (done.returncode, told in done.stderr) == (2, True), (command, done.stderr)
    assert not [path for name in ("r.html", "v.csv") if (path := tmp_path / name).exists()]


def test_runs_of_different_items_stand_by_themselves(whole: Path, tmp_path: Path) -> None:
    rows = [{**row, "id": f"other{k}", "instruction": f"What is {k}?"} for k, row in enumerate(runs.rows(60))]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    done = runs.dikast_here("grade", items, "--judge", "mock:oracle,r=.5", "--rubric", "helpfulness", "--out",
                            tmp_path / "other", "-q")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert _concluded(whole, tmp_path, tmp_path / "other")["light"] == "green"
    other = json.loads((tmp_path / "r.json").read_bytes())["runs"][1]
    assert other["audit"] is not None
    assert "not compared in pairs with run: they share no items, so each run stands by itself" in other["missing"]
    page = (tmp_path / "r.html").read_text()
    assert "Which judge agrees best with gold cannot be told: no item of other is one of run." in page
    assert "has the highest correlation" not in page
