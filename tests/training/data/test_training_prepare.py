"""Preparing shards: one file is cut for many workers, and what was finished before a kill is kept."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from transformers import AutoTokenizer

from dikast.training.config import load_config
from dikast.training.data import prepare
from dikast.training.data.examples import rows_of_file
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.data.shards import Shards
from dikast.training.log import read_log
from dikast.training.models.model import about, open_model
from dikast.training.processes import SingleProcess
from dikast.training.sft import sft

Write = Callable[..., Path]
_PREPARE = """
import sys
from pathlib import Path
from dikast.training.config import load_config
from dikast.training.data import prepare
from dikast.training.models.model import about, open_model
from dikast.training.processes import SingleProcess
prepare._SLICE = 3
config = load_config(Path(sys.argv[1]))
loaded = open_model(config)
prepare.prepare_shards(config, loaded, about(loaded), prepare.data_hash(config), SingleProcess())
"""


def prepared(path: Path) -> Shards:
    config = load_config(path)
    loaded = open_model(config)
    return prepare_shards(config, loaded, about(loaded), data_hash(config), SingleProcess())


def told(shards: Shards) -> list[object]:
    found = [(shards.find(n), shards.name(n)) for n in range(len(shards))]
    media = [[tensor.tolist() for tensor in each.values()] for each in shards.load(range(len(shards)))]
    ids = [part.ids(row).tolist() for (part, row), _ in found]
    return [shards.shown, ids, media, [name for _, name in found]]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_slices_of_one_file_give_what_the_whole_file_gives(
    workers: int, write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = prepared(write_config("whole", shards="whole"))
    monkeypatch.setattr(prepare, "_SLICE", 5)
    cut = prepared(write_config("cut", shards="cut", workers=workers))
    assert (len(whole), len(whole.parts), len(cut.parts)) == (12, 1, 3)
    assert told(cut) == told(whole)
    assert sorted(path.name for path in cut.folder.glob("s*.json")) == ["shown-00000.json"]


def test_a_file_is_read_once_to_count_and_once_to_prepare_its_slices(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each slice read all rows before it again: of a million rows a hundred times as many."""
    taken: list[object] = []

    def counted(*given: object, **more: object) -> Iterator[object]:
        for row in rows_of_file(*given, **more):  # type: ignore[arg-type]
            taken.append(row)
            yield row

    monkeypatch.setattr(prepare, "rows_of_file", counted)
    monkeypatch.setattr(prepare, "_SLICE", 2)
    cut = prepared(write_config())
    assert (len(cut), len(cut.parts)) == (12, 6)
    assert len(taken) == 2 * 12


def test_a_killed_preparation_goes_on_behind_its_finished_slices(
    write_config: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = prepared(write_config("whole", shards="whole"))
    path = write_config("cut", shards="cut")
    command = [sys.executable, "-c", _PREPARE, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = subprocess.Popen(command, env=environment)
    while running.poll() is None and not list(tmp_path.glob("cut/*/slice-00001.json")):
        time.sleep(0.0005)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL, "it ended before it was killed: take more slices"
    (folder,) = tmp_path.glob("cut/*")
    before = (folder / "shard-00000-0000" / "tokens.npy").stat().st_mtime_ns
    monkeypatch.setattr(prepare, "_SLICE", 3)
    assert told(prepared(path)) == told(whole)
    assert (folder / "shard-00000-0000" / "tokens.npy").stat().st_mtime_ns == before


def test_a_tokenizer_without_a_token_for_padding_trains_the_same(
    tiny: Callable[[str], Path], write_config: Write, tmp_path: Path
) -> None:
    bare = shutil.copytree(tiny("llama"), tmp_path / "bare")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if (bare / name).exists():
            told = orjson.loads((bare / name).read_bytes())
            told.pop("pad_token", None)
            (bare / name).write_bytes(orjson.dumps(told))
    settings = orjson.loads((bare / "config.json").read_bytes())
    settings.pop("pad_token_id", None)
    (bare / "config.json").write_bytes(orjson.dumps(settings))
    assert AutoTokenizer.from_pretrained(bare).pad_token is None
    losses = []
    for name, model in (("padded", tiny("llama")), ("bare", bare)):
        rows = {"batch_size": 4, "steps": 2, "max_tokens_per_micro_batch": 100_000, "group_by_length": False}
        assert sft(write_config(name, "llama", init=str(model), shards=f"shards-{name}", **rows))["complete"]
        losses.append([line["loss"] for line in read_log(tmp_path / f"run-{name}" / "train.jsonl")])
    assert len(losses[0]) == 2
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
