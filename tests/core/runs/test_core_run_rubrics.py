"""The rubrics of a run folder, where there are none or they cannot be read."""

from pathlib import Path

import orjson
import pytest

from dikast.core.errors import DataError
from dikast.core.rubric import Rubric, load_rubric
from dikast.core.runs.rubrics import load_rubrics, readable_rubrics, scales_of, written_rubrics


def test_missing_damaged_and_whole_rubrics(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the rubrics of the run are missing"):
        load_rubrics(tmp_path)
    assert written_rubrics(tmp_path) == readable_rubrics(tmp_path) == {}
    assert scales_of(tmp_path) == {}
    rubric = load_rubric("helpfulness")
    assert isinstance(rubric, Rubric)
    line = orjson.dumps({"hash": "h", "rubric": rubric.to_dict()}) + b"\n"
    (tmp_path / "rubrics.jsonl").write_bytes(line)
    assert written_rubrics(tmp_path) == readable_rubrics(tmp_path) == {"h": rubric}
    assert scales_of(tmp_path) == {"h": rubric.scale}
    (tmp_path / "rubrics.jsonl").write_bytes(line + b"{}\n")
    with pytest.raises(DataError, match=r"rubrics\.jsonl:2"):
        written_rubrics(tmp_path)
    assert readable_rubrics(tmp_path) == {}
