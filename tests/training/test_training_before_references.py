"""A training folder whose shards hold pixels, as an earlier version stored them, goes on with files of pictures."""

import shutil
from pathlib import Path

import orjson
import pytest

from dikast.training.log import read_log
from dikast.training.sft import sft

BEFORE = Path(__file__).parent / "before_references"


def test_a_run_on_stored_pixels_goes_on_with_the_same_losses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    run = tmp_path / "run"
    ((shard,)) = run.glob("shards/*/shard-*")
    assert (shard / "floats.npy").stat().st_size > 50_000
    log, state = (run / "train.jsonl").read_bytes(), run / "checkpoints" / "step-00000002" / "state.json"
    known = orjson.loads(state.read_bytes())["run"]
    done = sft(tmp_path / "config.yaml")
    assert (done["steps"], done["complete"], done["run"]) == (4, True, known)
    assert (run / "train.jsonl").read_bytes().startswith(log)  # the first two steps were not taken again
    losses = [line["loss"] for line in read_log(run / "train.jsonl")]
    assert losses == pytest.approx(orjson.loads((BEFORE / "losses.json").read_bytes()), rel=1e-5)
    assert f"{shard.parent}: an earlier version stored pictures here" in caplog.text
    assert not list(run.rglob("floats.npy"))
    assert sum(path.stat().st_size for path in shard.iterdir()) < 10_000
