"""When the last verdict of a run was given."""

import os
import shutil
import time
from pathlib import Path

import orjson
import pytest

from dikast.core.runs.last_verdict import last_verdict, latest, recorded_at
from dikast.core.runs.run_files import write_checked
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.recorded.merging import merge_runs
from dikast.judging.recorded.replay_run import replay
from runs import dikast, rows, write_jsonl

DAY = "2025-03-09T23:30:00+00:00"
AT = 1741563000.0


def graded(folder: Path, first: int, last: int) -> Path:
    """A run whose last verdict was given on `DAY`."""
    items = write_jsonl(folder / f"items-{first}.jsonl", rows(last)[first:])
    grade_file(Judge("mock:oracle", "helpfulness"), str(items), folder / f"run-{first}")
    dated(folder / f"run-{first}", DAY)
    return folder / f"run-{first}"


def dated(run: Path, day: object) -> None:
    summary = orjson.loads((run / "summary.json").read_bytes())
    write_checked(run / "summary.json", orjson.dumps({**summary, "last_verdict": day}))


def test_a_run_records_it_and_a_copy_has_it(tmp_path: Path) -> None:
    began = int(time.time())
    run = graded(tmp_path, 0, 4)
    shutil.copytree(run, tmp_path / "copy")
    os.utime(tmp_path / "copy" / "verdicts.jsonl", (1e9, 1e9))
    assert last_verdict(tmp_path / "copy") == (AT, True)
    items = tmp_path / "items-0.jsonl"
    judge = Judge("mock:oracle", "helpfulness")
    grade_file(judge, str(items), run)  # nothing was left to be asked
    assert last_verdict(run) == (AT, True)
    write_jsonl(items, rows(6))
    grade_file(judge, str(items), run)
    assert began <= (recorded_at(run) or 0) <= time.time()


@pytest.mark.parametrize("told", [None, "yesterday", 7, "2025-03-09T23:30:00"])  # the last of no time zone
def test_where_it_is_not_known_the_date_of_the_file_is_told_as_such(told: object, tmp_path: Path) -> None:
    run = graded(tmp_path, 0, 2)
    dated(run, told)
    os.utime(run / "verdicts.jsonl", (1e9, 1e9))
    assert last_verdict(run) == (1e9, False)
    assert last_verdict(run / "verdicts.jsonl") == (1e9, False)
    assert last_verdict(tmp_path / "none") is None


def test_what_is_made_of_runs_has_the_date_of_their_verdicts(tmp_path: Path) -> None:
    one, two = graded(tmp_path, 0, 4), graded(tmp_path, 4, 8)
    dated(two, "2025-03-01T00:00:00+00:00")
    merge_runs([two, one], tmp_path / "merged")
    replay(one, out=tmp_path / "replayed")
    assert last_verdict(tmp_path / "merged") == last_verdict(tmp_path / "replayed") == (AT, True)
    dated(two, None)
    assert latest([one, two]) is None


def test_a_panel_has_the_date_of_its_judges(tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(3))
    judges = ("--judge", "mock:oracle", "--judge", "mock:oracle,r=.5")
    dikast("grade", items, *judges, "--rubric", "helpfulness", "--out", tmp_path / "panel", "-q")
    inner = sorted(each.parent for each in tmp_path.glob("panel/*/verdicts.jsonl"))
    assert last_verdict(tmp_path / "panel") == (latest(inner), True)
    dated(tmp_path / "panel", None)
    os.utime(inner[0] / "verdicts.jsonl", (1e9, 1e9))
    os.utime(inner[1] / "verdicts.jsonl", (1.1e9, 1.1e9))
    assert last_verdict(tmp_path / "panel") == (1.1e9, False)
