"""Packed rows: loss and gradients as row by row, in every family, and runs that can be interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import tiny_models
from dikast.core.errors import UserError
from dikast.core.runs.run_files import record_all
from dikast.engines.local.loading import Loaded
from dikast.training.checkpoint import trained
from dikast.training.config import load_config
from dikast.training.data.batches import micro_batches
from dikast.training.data.collate import Batch, collate, summed_loss, units_of
from dikast.training.data.distinct_media import shown_again
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.data.shards import Shards
from dikast.training.log import read_log
from dikast.training.loop import placed
from dikast.training.models.model import about, open_model
from dikast.training.packed_attention import packed_attention, segment_table, use_packed_attention
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
        with shown_again(loaded.model, made.places):
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
    weighed = partial(collate, label_weight=2.0, label_smoothing=0.2)
    loaded, shards = prepared(write_config(family=family, train=train, label_loss_weight=2.0, label_smoothing=0.2))
    numbers = [0, 3, 5, 9]
    assert len({int(shards.lengths[n]) for n in numbers}) > 1
    alone = learnt(loaded, [weighed(shards, [n], loaded) for n in numbers])
    use_packed_attention(loaded.model)
    packed = weighed(shards, numbers, loaded, pack="rows")
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
    step = [(int(n),) for n in np.argsort(-shards.lengths)]
    runs = micro_batches(units_of(step, shards, loaded, "rows"), 100_000, packed=True)
    numbers = [[unit.numbers[0] for unit in run] for run in runs]
    loss, gradients = learnt(loaded, [collate(shards, run, loaded, pack="rows") for run in numbers])
    assert loss == pytest.approx(alone[0], rel=1e-5)
    assert difference(alone[1], gradients) <= 1e-5


def graded(folder: Path, *, images: bool) -> Path:
    """Items of three tasks: four graded responses of each, in mixed order; the last two tasks show two pictures."""
    rows, rng = [], np.random.default_rng(0)
    for name, shape in (("one", (60, 90)), ("two", (120, 60)), ("other", (60, 60))):
        Image.fromarray(rng.integers(0, 255, (*shape, 3), np.uint8)).save(folder / f"{name}.png")
    claim = {"text": "It is red.", "verdict": "right"}
    shown = (["one.png"], ["one.png", "two.png"], ["one.png", "other.png"])
    for task, pictures in enumerate(shown):
        for k, response in enumerate(
            ("Yes.", "No, it is " + "very " * 20 + "red.", "No, it is " + "very " * 20, "Yes.")
        ):
            row = {
                "id": f"{task}-{k}", "instruction": f"Task {task}: is the first thing that is shown " + "very " * 20,
                "response": response, "gold": {"label": str(k + 1), "claims": [claim] * (k + 1)},
                "rubric": {"name": "right", "criterion": "Is it right?", "scale": "1-5"},
            }  # fmt: skip
            rows.append({**row, "images": pictures} if images else row)
    path = folder / "graded.jsonl"
    path.write_text("".join(json.dumps(rows[i]) + "\n" for i in rng.permutation(len(rows))), "utf-8")
    return path


@pytest.mark.parametrize("train", ["full", "lora"])
@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_trees_are_learnt_from_as_rows_alone(family: str, train: str, write_config: Write, tmp_path: Path) -> None:
    images = family in tiny_models.IMAGE_FAMILIES
    data = [{"items": [str(graded(tmp_path, images=images))], "formats": ["absolute-short.yaml"]}]
    weighed = partial(collate, label_weight=2.0, label_smoothing=0.2)
    config = write_config(
        family=family, train=train, data=data, label_loss_weight=2.0, label_smoothing=0.2, augment={"blank": 0}
    )
    loaded, shards = prepared(config)
    numbers = list(range(12))
    assert all(len(part.others(i)) == 4 for part, i in map(shards.find, numbers))  # of labels 1 to 5
    assert sorted(np.bincount(shards.siblings)) == [4, 4, 4]
    loss, gradients = learnt(loaded, [weighed(shards, [n], loaded) for n in numbers])
    use_packed_attention(loaded.model)
    for pack in ("rows", "trees"):
        batch = weighed(shards, numbers, loaded, pack=pack)
        assert batch.learnt == int((shards.lengths - shards.prompts).sum())
        labels = np.concatenate([part.rows["label"] for part in shards.parts])
        assert float(batch.weights.sum()) == pytest.approx(
            batch.learnt + int(np.diff(labels).sum())
        )  # they count twice
        packed = learnt(loaded, [batch])
        assert packed[0] == pytest.approx(loss, rel=1e-5)
        assert difference(gradients, packed[1]) <= 1e-5
    total = int(shards.lengths.sum())
    shared = total - batch.size[1]
    assert shared > 0.4 * total
    units = units_of([tuple(np.flatnonzero(shards.siblings == k).tolist()) for k in range(3)], shards, loaded, "trees")
    assert sum(unit.tokens for unit in units) == batch.size[1]


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
def test_each_picture_is_looked_at_once_in_a_pass(family: str, write_config: Write, tmp_path: Path) -> None:
    data = [{"items": [str(graded(tmp_path, images=True))], "formats": ["absolute-short.yaml"]}]
    loaded, shards = prepared(write_config(family=family, data=data))
    for pack in ("rows", "trees"):
        inputs = collate(shards, range(12), loaded, pack=pack).inputs
        tower = inputs["image_grid_thw"] if "image_grid_thw" in inputs else inputs["pixel_values"]
        # three pictures; OneVision looks closer at the first where it is alone, so it sees that one twice
        assert len(tower) == (4 if family == "llava_onevision" else 3)
    padded = collate(shards, range(12), loaded).inputs
    assert len(padded["image_grid_thw"] if "image_grid_thw" in padded else padded["pixel_values"]) == 4 * 5


def test_masks_of_trees_are_on_the_device_of_what_attends() -> None:
    query, key, value = (torch.empty(1, 2, 30, 8, device="meta") for _ in range(3))
    table = segment_table([10, 20, 30], [-1, 0, 0])  # the last segment sees itself and the first
    out, _ = packed_attention(SimpleNamespace(), query, key, value, table)
    assert (out.device.type, out.shape) == ("meta", (1, 30, 2, 8))


def test_micro_batches_of_packed_rows_count_their_tokens_alone(write_config: Write) -> None:
    loaded, shards = prepared(write_config())
    step = units_of([(int(n),) for n in np.argsort(-shards.lengths, kind="stable")], shards, loaded, "rows")
    total, longest = int(shards.lengths.sum()), int(shards.lengths.max())
    assert micro_batches(step, total, packed=True) == [step]
    assert len(micro_batches(step, total)) == 2  # padding counts
    for parts in (1, 2):
        runs = micro_batches(step, longest * 2, parts, packed=True)
        assert [unit for run in runs for unit in run] == step
        dealt = [run[part::parts] for run in runs for part in range(parts)]
        assert all(sum(unit.tokens for unit in units) <= longest * 2 for units in dealt)


def test_a_packed_run_ends_with_the_weights_of_a_padded_one(write_config: Write, tmp_path: Path) -> None:
    # the items of the world have no siblings, so as trees they are drawn and computed as rows
    for name in ("none", "rows", "trees"):
        done = sft(write_config(name, pack=name, steps=3))
        assert done["complete"]
    one, two, three = (load_file(tmp_path / f"run-{n}/model/model.safetensors") for n in ("none", "rows", "trees"))
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=2e-4), name
        assert torch.equal(two[name], three[name]), name
    assert {line["shared"] for line in read_log(tmp_path / "run-trees/train.jsonl")} == {0.0}
    assert not any("shared" in line for line in read_log(tmp_path / "run-rows/train.jsonl"))


@pytest.mark.slow
def test_a_run_on_trees_says_how_much_is_shared_and_is_judged_between(write_config: Write, tmp_path: Path) -> None:
    items = str(graded(tmp_path, images=True))
    data = [{"items": [items], "formats": ["absolute-short.yaml"]}]
    held = {"items": [items], "formats": ["absolute-short.yaml"], "every": 2, "read": "only", "min_mass": 0}
    settings = {"data": data, "pack": "trees", "batch_size": 8, "eval": held}
    sft(write_config("whole", **settings))
    parts = [sft(write_config("parts", max_seconds=1e-6, **settings))["steps"] for _ in range(4)]
    assert parts == [1, 2, 3, 4]
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    lines = read_log(tmp_path / "run-whole/train.jsonl")
    assert all(0.4 < line["shared"] < 1 for line in lines)
    assert lines[-1]["loss"] < lines[0]["loss"]


def test_shards_from_before_packing_are_made_anew(write_config: Write, tmp_path: Path) -> None:
    sft(write_config("first", steps=1))
    for name in ("openings.npy", "shown.npy"):
        (path,) = (tmp_path / "shards").glob(f"*/shard-*/{name}")
        path.unlink()
    folder = path.parents[1]
    (folder / "checksums.json").unlink()
    record_all(folder)
    sft(write_config("first", steps=1))  # a run without packing reads them as they are
    assert not list((tmp_path / "shards").glob("*/shard-*/openings.npy"))
    assert sft(write_config("second", steps=1, pack="trees"))["complete"]
    assert list((tmp_path / "shards").glob("*/shard-*/openings.npy"))


def test_a_run_goes_on_only_as_it_was_packed(write_config: Write) -> None:
    sft(write_config(steps=4, max_seconds=1e-6))
    with pytest.raises(UserError, match="belongs to a run with other data or settings"):
        sft(write_config(steps=4, pack="rows"))
    assert load_config(write_config()).hash != load_config(write_config(pack="rows")).hash


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
@pytest.mark.parametrize("pack", ["rows", "trees"])
def test_a_killed_packed_run_ends_with_the_weights_of_an_unbroken_one(
    pack: str, write_config: Write, tmp_path: Path
) -> None:
    data = [{"items": [str(graded(tmp_path, images=True))], "formats": ["absolute-short.yaml"]}]
    lora = {"train": "lora", "lora": {"dropout": 0.3}}
    settings: dict[str, Any] = {"steps": 40, "save_every": 2, "pack": pack, "data": data, **lora}
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
