"""Flipped bits in the folder of a training run: detected, repaired by the next run, or harmless."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dikast.core.errors import DataError
from dikast.engines.local.source import locate
from dikast.training.log import read_log
from dikast.training.sft import sft
from runs import dikast_here, files_in, flips

Write = Callable[..., Path]
SMALL = {"family": "llama", "batch_size": 2, "keep": 3, "save_every": 1, "shards": None, "steps": 3}


def learnt(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "model" / "model.safetensors")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def losses(out: Path) -> list[Any]:
    return [(line["step"], line["loss"], line["rate"], line["norm"]) for line in read_log(out / "train.jsonl")]


def refused(folder: Path) -> bool:
    """Whether opening a judge from this folder is refused."""
    try:
        locate(str(folder)).check()
    except DataError as error:
        return any(
            cure in str(error) for cure in ("write or copy the model again", "checksums.json: the file is damaged")
        )
    return False


@pytest.mark.slow  # half a minute; what each kind of damage does is in test_training_damage.py
@pytest.mark.soak(400)
@pytest.mark.parametrize("half", [False, True], ids=["finished", "half-done"])
def test_flipped_bits_never_change_a_model_silently(
    write_config: Write, tmp_path: Path, tries: int, *, half: bool
) -> None:
    config, out = write_config(**SMALL), tmp_path / "run-c"
    sft(config)
    clean, log = learnt(out), losses(out)
    if half:
        shutil.rmtree(out)
        sft(write_config("c", **{**SMALL, "stop_at": 2}))
        config = write_config(**SMALL)
    found, card, before = 0, out / "model" / "README.md", learnt(out)
    for number, flipped in enumerate(flips(out, files_in(out), tries // 2, seed=3)):
        sick = dikast_here("doctor", out).returncode
        found += sick
        if flipped.parent == out / "model" and flipped != card:
            assert refused(out / "model") or (same(learnt(out), before) and flipped.name == "checksums.json"), (
                number,
                flipped,
            )
        if sick:
            dikast_here("doctor", out, "--repair")
        assert sft(config)["complete"], (number, flipped)
        assert same(learnt(out), clean), (number, flipped)
        assert set(losses(out)) <= set(log), (number, flipped)
        assert len(losses(out)) >= len(log) - (flipped.name == "train.jsonl"), (number, flipped)
        assert dikast_here("doctor", out).returncode == 0, (number, flipped)
        assert not refused(out / "model")
    assert found > tries // 4


def test_a_model_of_before_checksums_is_opened(write_config: Write, tmp_path: Path) -> None:
    sft(write_config(**SMALL))
    model = tmp_path / "run-c" / "model"
    assert dikast_here("doctor", model).stdout.endswith("nothing to repair\n")
    (model / "checksums.json").unlink()
    assert not refused(model)
    (model / "config.json").write_bytes((model / "config.json").read_bytes() + b" ")
    assert not refused(model)
