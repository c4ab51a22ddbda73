"""Folders of panels and probes from before rooms and fields were renamed (commit c5cb13d) are resumed without a call.

Folders of `grade` and `compare` are in tests/judging, of `corpus build` in tests/corpus, of `train sft` in
tests/training.
"""

import shutil
from pathlib import Path

import pytest

from runs import dikast_here, summary

BEFORE = Path(__file__).parent / "before_rooms"
ASKED = ("--rubric", "helpfulness", "--judge", "mock:oracle,r=.8")
PANEL = ("grade", BEFORE / "items.jsonl", *ASKED, "--judge", "mock:constant")
PROBE = ("probe", "--items", BEFORE / "items.jsonl", *ASKED, "--calls", 12)


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return shutil.copytree(BEFORE, tmp_path / "before")


@pytest.mark.parametrize(("name", "command", "runs"), [("panel", PANEL, 2), ("probe", PROBE, 2)])
def test_the_folder_is_resumed_without_a_call(before: Path, name: str, command: tuple[object, ...], runs: int) -> None:
    done = dikast_here(*command, "--out", before / name)
    assert done.returncode == 0, done.stderr
    verdicts = sorted((before / name).glob("*/verdicts.jsonl"))
    assert len(verdicts) == runs
    for path in verdicts:
        assert path.read_bytes() == (BEFORE / path.relative_to(before)).read_bytes()
        found = summary(path.parent)
        assert (found["asked"], found["answered_before"]) == (0, len(path.read_bytes().splitlines()))
    assert dikast_here("doctor", verdicts[0].parent).returncode == 0


def test_a_run_is_replayed_audited_and_reported(before: Path) -> None:
    run = before / "panel" / "1-mock-oracle-r--8"
    done = dikast_here("replay", run, "--out", before / "replayed")
    assert done.returncode == 0, done.stderr
    assert summary(before / "replayed")["replay"] == {"verdicts": 4, "changed": 0, "fields": {}}
    assert dikast_here("audit", run).returncode == 0
    assert dikast_here("report", run, "--out", before / "page.html", cwd=before).returncode == 0
