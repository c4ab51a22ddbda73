"""Runs over parts of a file, made one: the folder of one run over all of it."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import DataError, UserError
from dikast.core.runs.current_verdicts import current_records
from dikast.core.runs.run_files import write_checked
from dikast.engines.base import Sampling
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, compare_file_by_scores, grade_file
from dikast.judging.recorded.merging import merge_runs
from runs import lines, pairs, rows, write_jsonl

SPEC = "mock:failing,seed=1"


def judged(way: str, items: list[dict[str, Any]], out: Path, spec: str = SPEC) -> dict[str, Any]:
    path = str(write_jsonl(out.with_suffix(".jsonl"), items))
    if way == "pairs":
        return compare_file(Judge(spec, "helpfulness"), path, out)
    if way == "by scores":
        return compare_file_by_scores(Judge(spec, "helpfulness"), path, out)
    if way == "samples":
        return grade_file(Judge(spec, "helpfulness", samples=3, sampling=Sampling(temperature=1.0)), path, out)
    return grade_file(Judge(spec, "helpfulness"), path, out)


@pytest.mark.parametrize("way", ["grades", "samples", "pairs", "by scores"])
def test_the_parts_make_the_folder_of_the_whole(tmp_path: Path, way: str) -> None:
    items = rows(60) if way in ("grades", "samples") else pairs(60)
    whole = judged(way, items, tmp_path / "whole")
    parts = [tmp_path / f"part{at}" for at in range(3)]
    for at, part in enumerate(parts):
        judged(way, items[at * 20 : at * 20 + 20], part)
    out = tmp_path / "merged"
    merged = merge_runs(parts, out)
    assert merged["last_verdict"] == orjson.loads((parts[-1] / "summary.json").read_bytes())["last_verdict"]
    for key in merged.keys() - {"merged", "last_verdict"}:
        assert merged[key] == whole[key], key
    names = {"verdicts.jsonl", "keys.txt", "gold.jsonl", "meta.jsonl", "sheets.jsonl", "rubrics.jsonl", "summary.json"}
    for name in {*names, *(each.name for each in (tmp_path / "whole").glob("*.jsonl"))} - {"summary.json"}:
        one, other = (sorted((each / name).read_bytes().splitlines()) for each in (tmp_path / "whole", out))
        assert one == other, name
    assert judged(way, items, out)["asked"] <= sum(each["status"] == "engine_error" for each in current_records(out))


def test_runs_that_read_columns_by_other_names_are_merged_with_a_note(tmp_path: Path) -> None:
    parts = [tmp_path / "before", tmp_path / "after"]
    for at, part in enumerate(parts):
        judged("grades", rows(40)[at * 20 : at * 20 + 20], part, "mock:oracle")
    assert "notes" not in merge_runs(parts, tmp_path / "alike")
    lock = orjson.loads((parts[0] / "judge.lock.json").read_bytes())
    del lock["names"]  # as versions wrote it that recognised fewer names
    write_checked(parts[0] / "judge.lock.json", orjson.dumps(lock))
    notes = merge_runs(parts, tmp_path / "apart")["notes"]
    assert [note for note in notes if "recognise other names of columns" in note]


def test_what_cannot_be_one_run(tmp_path: Path) -> None:
    items = rows(30)
    one, other, again = (tmp_path / name for name in ("one", "other", "again"))
    judged("grades", items[:10], one)
    judged("grades", items[10:20], other)
    judged("grades", items[9:12], again)
    judged("grades", items[20:], tmp_path / "seeded", "mock:failing,seed=2")
    for folders, why in (
        ([one], "at least two"),
        ([one, other, tmp_path / "other" / ".." / "one"], "named twice"),
        ([one, tmp_path], "no readable judge.lock.json"),
        ([one, tmp_path / "seeded"], r"differ in judge"),
    ):
        with pytest.raises(UserError, match=why):
            merge_runs(folders, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match=f"item '{items[9]['id']}' and 0 more were judged by an earlier run"):
        merge_runs([one, again], tmp_path / "out")
    with pytest.raises(UserError, match="already holds verdicts"):
        merge_runs([one, other], tmp_path / "out")
    assert merge_runs([one, other], tmp_path / "well")["verdicts"] == 20
    with pytest.raises(UserError, match="already holds verdicts"):
        merge_runs([one, other], tmp_path / "well")
    (other / "summary.json").unlink()
    with pytest.raises(UserError, match="has not ended"):
        merge_runs([one, other], tmp_path / "out2")


def test_a_merge_that_did_not_end_begins_again(tmp_path: Path) -> None:
    items, out = rows(20), tmp_path / "merged"
    parts = [tmp_path / "one", tmp_path / "two"]
    for at, part in enumerate(parts):
        judged("grades", items[at * 10 : at * 10 + 10], part)
    merge_runs(parts, out)
    whole = sorted(lines(out / "verdicts.jsonl"), key=orjson.dumps)
    (out / "summary.json").unlink()
    with (out / "verdicts.jsonl").open("r+b") as file:
        file.truncate(700)
    assert merge_runs(parts, out)["verdicts"] == 20
    assert sorted(lines(out / "verdicts.jsonl"), key=orjson.dumps) == whole
