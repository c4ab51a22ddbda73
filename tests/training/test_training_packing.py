"""Packed rows: loss and gradients as row by row, in every family, and runs that can be interrupted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import tiny_models
from dikast.core.errors import UserError
from dikast.engines.local.loading import Loaded
from dikast.training.checkpoint import trained
from dikast.training.config import load_config
from dikast.training.data.batches import Batch, collate, micro_batches, summed_loss
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.data.shards import Shards
from dikast.training.loop import placed
from dikast.training.models.model import about, open_model
from dikast.training.packed_attention import use_packed_attention
from dikast.training.processes import SingleProcess
from dikast.training.sft import sft

Write = Callable[..., Path]
Gradients = dict[str, torch.Tensor]


def prepared(config: Path) -> tuple[Loaded, Shards]:
    settings = load_config(config)
    loaded = open_model(settings)
    return loaded, prepare_shards(settings, loaded, about(loaded), data_hash(settings), SingleProcess())


def learnt(loaded: Loaded, batches: list[Batch]) -> tuple[float, Gradients]:
    """The summed loss of batches, and the gradient of each trained parameter that has one."""
    loss = 0.0
    for batch in batches:
        made = placed(batch, loaded)
        each = summed_loss(loaded.model(**made.inputs, use_cache=False).logits, made)
        each.backward()  # type: ignore[no-untyped-call]
        loss += float(each.detach())
    found = {n: p.grad.clone() for n, p in trained(loaded.model).items() if p.grad is not None}
    loaded.model.zero_grad(set_to_none=True)
    return loss, found


def difference(one: Gradients, other: Gradients) -> float:
    """The norm of the difference of two gradients as a share of the norm of the first."""
    assert one.keys() == other.keys()
    apart = sum(float((tensor - other[name]).double().square().sum()) for name, tensor in one.items())
    return float((apart / sum(float(tensor.double().square().sum()) for tensor in one.values())) ** 0.5)


@pytest.mark.parametrize("train", ["full", "lora"])
@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_packed_rows_are_learnt_from_as_rows_alone(family: str, train: str, write_config: Write) -> None:
    loaded, shards = prepared(write_config(family=family, train=train, label_loss_weight=2.0))
    numbers = [0, 3, 5, 9]
    assert len({int(shards.lengths[n]) for n in numbers}) > 1
    alone = learnt(loaded, [collate(shards, [n], loaded, label_weight=2.0) for n in numbers])
    use_packed_attention(loaded.model)
    packed = collate(shards, numbers, loaded, label_weight=2.0, packed=True)
    assert packed.size == (4, int(shards.lengths[numbers].sum()))  # no padding
    loss, gradients = learnt(loaded, [packed])
    assert loss == pytest.approx(alone[0], rel=1e-5)
    assert difference(alone[1], gradients) <= 1e-5


@pytest.mark.parametrize("family", tiny_models.VIDEO_FAMILIES)
def test_packed_clips_are_learnt_from_as_clips_alone(family: str, write_config: Write, world: Path) -> None:
    clips = {"items": [str(world / "clips" / "items-*.jsonl")], "formats": ["absolute-short.yaml"]}
    loaded, shards = prepared(write_config(family=family, data=[clips]))
    alone = learnt(loaded, [collate(shards, [n], loaded) for n in range(3)])
    use_packed_attention(loaded.model)
    runs = micro_batches(np.argsort(-shards.lengths), shards, 100_000, packed=True)
    loss, gradients = learnt(loaded, [collate(shards, run, loaded, packed=True) for run in runs])
    assert loss == pytest.approx(alone[0], rel=1e-5)
    assert difference(alone[1], gradients) <= 1e-5


def test_micro_batches_of_packed_rows_count_their_tokens_alone(write_config: Write) -> None:
    _, shards = prepared(write_config())
    step = np.argsort(-shards.lengths, kind="stable")
    total, longest = int(shards.lengths.sum()), int(shards.lengths.max())
    assert micro_batches(step, shards, total, packed=True) == [step.tolist()]
    assert len(micro_batches(step, shards, total)) == 2  # padding counts
    for parts in (1, 2):
        runs = micro_batches(step, shards, longest * 2, parts, packed=True)
        assert [number for run in runs for number in run] == step.tolist()
        assert all(int(shards.lengths[run[part::parts]].sum()) <= longest * 2 for run in runs for part in range(parts))


def test_a_packed_run_ends_with_the_weights_of_a_padded_one(write_config: Write, tmp_path: Path) -> None:
    for name in ("none", "rows"):
        done = sft(write_config(name, pack=name, steps=3))
        assert done["complete"]
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("none", "rows"))
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=2e-4), name


def test_a_run_goes_on_only_as_it_was_packed(write_config: Write) -> None:
    sft(write_config(steps=4, max_seconds=1e-6))
    with pytest.raises(UserError, match="belongs to a run with other data or settings"):
        sft(write_config(steps=4, pack="rows"))
    assert load_config(write_config()).hash != load_config(write_config(pack="rows")).hash


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_a_killed_packed_run_ends_with_the_weights_of_an_unbroken_one(write_config: Write, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"steps": 40, "save_every": 2, "pack": "rows", "train": "lora", "lora": {"dropout": 0.3}}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    train = [sys.executable, "-m", "dikast", "train", "sft", "--config"]
    subprocess.run([*train, str(write_config("whole", **settings))], env=environment, check=True, capture_output=True)
    command = [*train, str(write_config("killed", **settings))]
    saved = tmp_path / "run-killed" / "checkpoints"
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while running.poll() is None and not any(int(each.name[5:]) >= 4 for each in saved.glob("step-????????")):
        time.sleep(0.001)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL, "the run ended before it was killed: make it longer"
    subprocess.run(command, env=environment, check=True, capture_output=True)
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


@pytest.mark.parametrize("window", ["mistral", "gpt"])
def test_a_model_that_cannot_be_packed_is_refused_before_the_first_step(
    window: str, write_config: Write, tmp_path: Path
) -> None:
    import transformers

    folder = tmp_path / "model"
    tiny_models.build("mistral", folder)
    if window == "mistral":
        config = transformers.AutoConfig.from_pretrained(folder)
        config.sliding_window = 64
        config.save_pretrained(folder)
    else:
        ids = transformers.AutoConfig.from_pretrained(folder)
        state = transformers.RwkvConfig(vocab_size=ids.vocab_size, hidden_size=32, num_hidden_layers=2, eos_token_id=2)
        state.save_pretrained(folder)
    with pytest.raises(UserError, match=r"pack: .* (cannot be set|sliding windows or states)"):
        sft(write_config(family="mistral", init=str(folder), pack="rows"))
    assert not (tmp_path / "run-c" / "checkpoints").exists()
