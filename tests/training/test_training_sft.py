"""Runs end to end: trained and frozen weights, files, and that an interrupted run ends like an uninterrupted one."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

import dikast
import tiny_models
from dikast.core.errors import DataError, UserError
from dikast.core.records.items import read_items
from dikast.engines.local.engine import LocalEngine
from dikast.judging.judge import Judge
from dikast.training.config import load_config
from dikast.training.data.collate import collate, summed_loss
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.log import read_log
from dikast.training.loop import placed
from dikast.training.models.model import about, open_model
from dikast.training.processes import SingleProcess
from dikast.training.sft import sft

Write = Callable[..., Path]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def same(one: Path, two: Path) -> bool:
    a, b = weights(one), weights(two)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_learns_and_its_model_judges(write_config: Write, world: Path, tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    done = sft(write_config(steps=8, log_every=2, label_loss_weight=2.0), watch=told.append)
    out = tmp_path / "run-c"
    assert (done["complete"], done["steps"], done["examples"]) == (True, 8, 12)
    assert [line["step"] for line in told] == [1, 2, 4, 6, 8]
    assert told == read_log(out / "train.jsonl")
    assert told[-1]["loss"] < 0.95 * told[0]["loss"]
    assert told[-1]["tokens_per_second"] > told[-1]["learnt_per_second"] > 0
    assert all(0 <= line["waiting"] <= 1 for line in told if "waiting" in line)
    assert any("waiting" in line for line in told)
    assert (out / "curves.svg").read_text("utf-8").count("<svg") == 1
    assert not list((out / "model").glob("*.part"))

    # the model folder is an ordinary checkpoint: it judges, and learnt more than the untrained one
    engine = LocalEngine(str(out / "model"), device="cpu")
    judge = Judge(engine, format=str(tmp_path / "absolute-short.yaml"), read="only", min_mass=0.0)
    item = next(read_items(world / "scenes" / "items-00000.jsonl"))
    (verdict,) = judge.grade_many([item])
    assert verdict.mass is not None
    assert verdict.status == "ok"


def test_rows_in_memory_are_learnt_from(write_config: Write, tmp_path: Path) -> None:
    config = yaml.safe_load(write_config().read_text("utf-8"))
    del config["data"], config["shards"]  # which would lie in the working directory
    rows = [{"instruction": f"{k} + 1?", "response": f"{k + 1}.", "gold": k % 5 + 1} for k in range(6)]
    rubric = {"name": "right", "criterion": "Is it right?", "scale": "1-5"}
    told = {**config, "out": str(tmp_path / "out"), "shards": str(tmp_path / "shards"), "steps": 2, "eval": {}}
    done = dikast.train(told, data=[{**row, "rubric": rubric} for row in rows], formats=["score-only"])
    assert (done["complete"], done["steps"], done["examples"]) == (True, 2, 6)
    assert Path(done["model"], "model.safetensors").exists()
    with pytest.raises(UserError, match="data needs the configuration as a mapping"):
        dikast.train("config.yaml", data=rows)
    with pytest.raises(DataError, match="configuration: field 'stepps': unknown key: did you mean 'steps'"):
        dikast.train({**told, "stepps": 3, "data": [{"items": ["x.jsonl"]}]})


SLOW = pytest.mark.slow  # torchao compiles its step, for each shape of a tensor


@pytest.mark.parametrize(
    "optimizer",
    ["adamw", "muon", pytest.param("adafactor", marks=SLOW), pytest.param("adamw8bit", marks=SLOW)],
)
def test_a_resumed_run_ends_with_the_weights_of_an_unbroken_one(
    optimizer: str, write_config: Write, tmp_path: Path
) -> None:
    # dropout draws random numbers, which must go on too
    lora: dict[str, Any] = {"train": "lora", "lora": {"dropout": 0.3, "rank": 4}, "optimizer": optimizer}
    if optimizer == "adamw8bit":  # only larger tensors have moments in 8 bits
        pytest.importorskip("torchao")
        wide = tiny_models.build("llama", tmp_path / "wide", hidden_size=64, intermediate_size=128)
        lora = {"optimizer": optimizer, "family": "llama", "init": str(wide)}
    sft(write_config("whole", **lora))
    parts = [sft(write_config("parts", max_seconds=1e-6, **lora))["steps"] for _ in range(4)]
    assert parts == [1, 2, 3, 4]
    assert same(tmp_path / "run-whole", tmp_path / "run-parts")
    logs = [read_log(tmp_path / f"run-{name}" / "train.jsonl") for name in ("whole", "parts")]
    assert [line["loss"] for line in logs[0]] == [line["loss"] for line in logs[1]]
    again = sft(write_config("whole", **lora))
    assert again["complete"]
    moments = load_file(next((tmp_path / "run-parts" / "checkpoints").rglob("optimizer.safetensors")))
    assert any(".codes:" in key for key in moments) == (optimizer == "adamw8bit")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_a_killed_run_ends_with_the_weights_of_an_unbroken_one(write_config: Write, tmp_path: Path) -> None:
    steps = {"steps": 40, "save_every": 2}
    # all in processes of their own and on one thread: sums over more threads may differ in their last bits
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    train = [sys.executable, "-m", "dikast", "train", "sft", "--config"]
    subprocess.run([*train, str(write_config("whole", **steps))], env=environment, check=True, capture_output=True)
    command = [*train, str(write_config("killed", **steps))]
    saved = tmp_path / "run-killed" / "checkpoints"
    for step in (2, 6):
        running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while running.poll() is None and not any(int(each.name[5:]) >= step for each in saved.glob("step-????????")):
            time.sleep(0.001)
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL, "the run ended before it was killed: make it longer"
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert same(tmp_path / "run-whole", tmp_path / "run-killed")


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_padding_and_batching_do_not_change_the_loss(family: str, write_config: Write) -> None:
    config = load_config(write_config(family=family))
    loaded = open_model(config)
    shards = prepare_shards(config, loaded, about(loaded), data_hash(config), SingleProcess())
    model = loaded.model.double().eval()

    def losses(numbers: list[int]) -> torch.Tensor:
        batch = placed(collate(shards, numbers, loaded), loaded)
        assert float(batch.weights.sum()) == sum(int(shards.lengths[n] - shards.prompts[n]) for n in numbers)
        with torch.no_grad():
            return summed_loss(model(**batch.inputs, use_cache=False).logits, batch)

    numbers = [0, 3, 5]
    assert len({int(shards.lengths[n]) for n in numbers}) == 3
    # transformers' own loss on each row alone, with everything but the reply masked
    expected = 0.0
    for n in numbers:
        part, row = shards.find(n)
        batch = placed(collate(shards, [n], loaded), loaded)
        labels = batch.inputs["input_ids"].clone()
        labels[0, : int(part.rows[row]["prompt"])] = -100
        whole = {name: tensor for name, tensor in batch.inputs.items() if name != "logits_to_keep"}
        with torch.no_grad():
            expected += float(model(**whole, labels=labels).loss) * float(batch.weights.sum())
    assert float(losses(numbers)) == pytest.approx(expected, rel=1e-6)


def trainable(config: Path) -> tuple[set[str], set[str]]:
    """Names of parameters that a run changed, and those it left bit for bit as they were."""
    settings = load_config(config)
    before = {
        name: p.detach().clone() for name, p in open_model(replace(settings, train="full")).model.named_parameters()
    }
    sft(config)
    model = open_model(replace(settings, train="full", init="", model=str(settings.path(settings.out) / "model"))).model
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    return changed, before.keys() - changed


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
def test_projector_only_leaves_all_else_as_it_was(family: str, write_config: Write) -> None:
    changed, kept = trainable(write_config(family=family, train="projector", steps=1))
    assert changed
    assert all(any(part in name for part in ("projector", "merger", "image_newline")) for name in changed)
    assert any("lm_head" in name for name in kept)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_lora_changes_the_language_layers_alone(family: str, write_config: Write) -> None:
    changed, kept = trainable(write_config(family=family, train="lora", steps=1))
    assert any(name.endswith("q_proj.weight") for name in changed)
    assert all("_proj.weight" in name and "vision" not in name and "visual" not in name for name in changed)
    assert any("embed" in name for name in kept)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile writes C++ for processors, and needs a compiler")
def test_compiled_layers_learn_what_plain_ones_do(write_config: Write, tmp_path: Path) -> None:
    from torch._dynamo.utils import counters

    sft(write_config("plain", steps=3))
    counters.clear()
    sft(write_config("compiled", steps=3, compile=True))
    assert counters["stats"]["unique_graphs"] > 0
    plain, compiled = weights(tmp_path / "run-plain"), weights(tmp_path / "run-compiled")
    assert plain.keys() == compiled.keys()
    for name, tensor in plain.items():
        assert torch.allclose(tensor, compiled[name], atol=5e-4), name


def test_frozen_parameters_stay(write_config: Write) -> None:
    changed, _ = trainable(write_config(frozen=["vision_tower", "lm_head"], steps=1))
    assert changed
    assert not any("vision_tower" in name or "lm_head" in name for name in changed)


@pytest.mark.parametrize("precision", ["bf16", "bf16-master"])
def test_half_precision_and_recomputed_activations_run(precision: str, write_config: Write, tmp_path: Path) -> None:
    done = sft(write_config(precision=precision, checkpointing=True, steps=2))
    assert done["complete"]
    stored = {tensor.dtype for tensor in weights(tmp_path / "run-c").values()}
    assert stored == {torch.bfloat16 if precision == "bf16-master" else torch.float32}


def test_accumulated_micro_batches_give_the_step_of_a_whole_batch(write_config: Write, tmp_path: Path) -> None:
    sft(write_config("whole", max_tokens_per_micro_batch=100_000, steps=2))
    sft(write_config("parts", max_tokens_per_micro_batch=1, steps=2))
    one, two = weights(tmp_path / "run-whole"), weights(tmp_path / "run-parts")
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=2e-4), name
