"""A training folder from before modules and fields were renamed is resumed where it stopped."""

import shutil
from pathlib import Path

import orjson
import pytest

from dikast.training.log import read_log
from dikast.training.sft import sft

BEFORE = Path(__file__).parent / "before_rooms"


def test_a_run_of_before_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    run = tmp_path / "run"
    [shards] = (run / "shards").iterdir()
    marked = shards / "not-made-anew"
    marked.touch()
    log, state = (run / "train.jsonl").read_bytes(), run / "checkpoints" / "step-00000002" / "state.json"
    known = orjson.loads(state.read_bytes())["run"]
    done = sft(tmp_path / "config.yaml")
    assert (done["steps"], done["complete"], done["run"]) == (4, True, known)
    assert (run / "train.jsonl").read_bytes().startswith(log)  # the first two steps were not taken again
    assert list((run / "shards").iterdir()) == [shards]
    assert marked.exists()  # nor were the examples prepared again
    losses = [line["loss"] for line in read_log(run / "train.jsonl")]
    assert losses == pytest.approx(orjson.loads((BEFORE / "losses.json").read_bytes()), rel=1e-4)
    again = (run / "train.jsonl").read_bytes()
    assert sft(tmp_path / "config.yaml")["complete"]
    assert (run / "train.jsonl").read_bytes() == again
