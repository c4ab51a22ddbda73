"""Training with damaged folders, full disks and two processes: an error message, and the weights of a sound run."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.output_folder import one_writer
from dikast.training.checkpoint import sound_checkpoint
from dikast.training.processes import SingleProcess
from dikast.training.sft import sft
from runs import files_of_at_most

Write = Callable[..., Path]
SMALL = {"family": "llama", "batch_size": 2, "keep": 3, "save_every": 1}


def last(out: Path) -> Path:
    return max((out / "checkpoints").glob("step-*"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) * 3 // 4] ^= 4
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "model" / "model.safetensors")


def test_two_trainings_in_one_folder_are_refused(write_config: Write, tmp_path: Path) -> None:
    refused = pytest.raises(RunError, match="run-c: another process is training here; wait for it")
    with one_writer(tmp_path / "run-c", "training"), refused:
        sft(write_config(**SMALL))


@pytest.fixture
def stopped(write_config: Write, tmp_path: Path) -> Path:
    """A run of four steps that was stopped after three, with a checkpoint of each step."""
    sft(write_config(steps=4, stop_at=3, **SMALL))
    return tmp_path / "run-c"


def test_a_damaged_checkpoint_falls_back_to_the_one_before_it(
    stopped: Path, write_config: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = write_config(steps=4, **SMALL)
    shutil.copytree(stopped, tmp_path / "sound")
    sft(config)
    whole = weights(stopped)
    shutil.rmtree(stopped)
    (tmp_path / "sound").rename(stopped)
    assert last(stopped).name == "step-00000003"
    flip(last(stopped) / "optimizer.safetensors")
    assert sft(config)["complete"]
    (said,) = [each.message for each in caplog.records if "checkpoint is damaged" in each.message]
    assert "step-00000003: this checkpoint is damaged (optimizer.safetensors: the file has changed" in said
    assert said.endswith("resuming from the one before it")
    found = weights(stopped)
    assert all(torch.equal(whole[each], found[each]) for each in whole)


def test_any_damage_to_any_file_of_a_checkpoint_is_found(stopped: Path) -> None:
    folder = stopped / "checkpoints"
    newest = last(stopped)
    shutil.copytree(newest, stopped / "sound")
    names = sorted(path.name for path in newest.iterdir())
    assert len(names) == 5
    for name in names:
        for damage in (cut, flip, empty, Path.unlink):
            if (name, damage) == ("checksums.json", Path.unlink):
                continue  # as in a checkpoint that an earlier version wrote
            damage(newest / name)
            found = sound_checkpoint(folder, SingleProcess())
            assert found is not None
            assert found.name == "step-00000002", (name, damage)
            assert (folder / "damaged-step-00000003").is_dir()
            shutil.copytree(stopped / "sound", newest)
            assert sound_checkpoint(folder, SingleProcess()) == newest


def test_where_no_checkpoint_is_whole_the_run_says_so(stopped: Path, write_config: Write) -> None:
    for path in (stopped / "checkpoints").glob("step-*"):
        cut(path / "weights.safetensors")
    with pytest.raises(UserError, match=r"this checkpoint is damaged .* no earlier one is undamaged: restore it, or"):
        sft(write_config(steps=4, **SMALL))
    assert len(list((stopped / "checkpoints").glob("step-*"))) == 3


def test_damaged_examples_are_prepared_anew_and_a_damaged_log_is_told(stopped: Path, write_config: Write) -> None:
    shards = stopped.parent / "shards"
    (tokens,) = shards.rglob("tokens.npy")
    before = tokens.read_bytes()
    flip(tokens)
    config = write_config(steps=4, **SMALL)
    log = stopped / "train.jsonl"
    kept = log.read_bytes()
    log.write_bytes(b"junk\n" + kept)
    with pytest.raises(DataError, match=r"train.jsonl:1: cannot be read .*remove this line"):
        sft(config)
    assert tokens.read_bytes() == before
    log.write_bytes(kept)
    assert sft(config)["complete"]


@pytest.mark.parametrize("size", [30_000, 300_000])
def test_a_limit_on_file_sizes_ends_with_a_message_and_the_next_run_goes_on(
    size: int, write_config: Write, tmp_path: Path
) -> None:
    config = write_config(steps=2, **SMALL)
    with files_of_at_most(size), pytest.raises(RunError, match=r"(?i)too large|requested and"):
        sft(config)
    assert sft(config)["complete"]


@pytest.mark.parametrize("lost", [Path.unlink, lambda log: log.rename(log.with_name("old.jsonl")),
                                  lambda log: shutil.rmtree(log.parent)])  # fmt: skip
def test_a_log_that_is_removed_during_training_ends_it(
    lost: Callable[[Path], object], write_config: Write, tmp_path: Path
) -> None:
    log = tmp_path / "run-c" / "train.jsonl"

    def watch(line: dict[str, object]) -> None:
        if line["step"] == 2:
            lost(log)

    config = write_config(**SMALL, log_every=1)
    with pytest.raises(
        RunError, match=r"run-c.*(train.jsonl: was removed, moved or replaced|cannot be read or written)"
    ):
        sft(config, watch=watch)
