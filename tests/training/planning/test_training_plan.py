"""A plan's memory against what torch's profiler counts in a real step, and what a run that cannot fit is told."""

import json
import resource
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from torch.profiler import ProfilerActivity, profile

import tiny_models
from dikast.core.errors import MissingExtra, UserError
from dikast.surface.cli import app
from dikast.training.config import load_config
from dikast.training.data.collate import collate, summed_loss
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.loop import logits_of
from dikast.training.models.model import about, open_model
from dikast.training.optimizer import optimizer_of
from dikast.training.planning import training_plan as planning
from dikast.training.planning.plan_lines import PlanAsked, planned
from dikast.training.planning.step_cost import Work
from dikast.training.planning.training_plan import check_before_loading, fits, plan, shape_of, work_of
from dikast.training.processes import SingleProcess
from dikast.training.sft import sft

Write = Callable[..., Path]
WIDER = {"hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 4}


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Models of a few million bytes, so that tensors and not bookkeeping make the peak."""
    folder = tmp_path_factory.mktemp("wide")

    def built(family: str) -> Path:
        path = folder / family
        return path if path.is_dir() else tiny_models.build(family, path, **WIDER)

    return built


def peak_of(work: Callable[[], None]) -> int:
    """Most bytes that torch's allocator held at one time beyond what it held before, by the profiler's own record."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    events: Any = seen.profiler
    changes = sorted((e.start_ns(), e.nbytes()) for e in events.kineto_results.events() if e.name() == "[memory]")
    held = most = 0
    for _, size in changes:
        held += size
        most = max(most, held)
    return most


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("llama", {"precision": "bf16", "checkpointing": True}),
        pytest.param("llama", {}, marks=pytest.mark.slow),
        pytest.param("llama", {"precision": "bf16-master"}, marks=pytest.mark.slow),
        pytest.param("llama", {"optimizer": "adafactor"}, marks=pytest.mark.slow),
        pytest.param("llava", {"train": "lora", "precision": "bf16"}, marks=pytest.mark.slow),
        pytest.param("llava", {"train": "projector"}, marks=pytest.mark.slow),
    ],
    ids=["bf16-checkpointing", "full", "bf16-master", "adafactor", "llava-lora", "llava-projector"],
)
def test_the_planned_peak_is_the_measured_one(
    family: str, settings: dict[str, Any], wide: Callable[[str], Path], write_config: Write
) -> None:
    rows = {"batch_size": 6, "max_tokens_per_micro_batch": 100_000, "group_by_length": False}
    config = load_config(write_config(family=family, init=str(wide(family)), **rows, **settings))
    loaded = open_model(config)
    loaded.model.train()
    shards = prepare_shards(config, loaded, about(loaded), data_hash(config), SingleProcess())
    batch = collate(shards, range(6), loaded)
    optimizer = optimizer_of(loaded.model, config)

    def step() -> None:
        loss = summed_loss(*logits_of(loaded.model, batch, loaded, reduced=config.precision == "bf16"))
        SingleProcess().backward(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()  # the moments are there, as in every step but the first
    held = [*loaded.model.parameters(), *(t for state in optimizer.state.values() for t in state.values())]
    measured = peak_of(step) + sum(each.nbytes for each in held)
    seen = batch.inputs.get("pixel_values")
    work = Work(6, batch.size[1] // 6, int(batch.inputs["logits_to_keep"].sum()), 0 if seen is None else len(seen))
    made = plan(config, shape_of(config), work)
    assert made.total == pytest.approx(measured, rel=0.1)
    assert made.counts.parameters == sum(each.numel() for each in loaded.model.parameters())


def test_operations_are_those_of_the_matrices_and_of_attention(
    wide: Callable[[str], Path], write_config: Write
) -> None:
    config = load_config(write_config(family="llama", init=str(wide("llama"))))
    shape = shape_of(config)
    made = plan(config, shape, Work(2, 64, 128))
    products = made.counts.parameters - shape.vocab_size * 96  # a look-up takes no products
    norms = 96 * (2 * 4 + 1)
    attention = 4 * 96 * 64 * 4 * 3.5  # queries by keys, weights by values: twice, and 2.5 times that backward
    assert made.operations == pytest.approx(6 * (products - norms) + attention, rel=0.02)
    again = plan(replace(config, checkpointing=True), shape, Work(2, 64, 128))
    assert 1.2 < again.operations / made.operations < 1.4  # the layers once more, the head not


@pytest.mark.slow
def test_what_would_make_a_run_fit_is_named(write_config: Write) -> None:
    config = load_config(write_config(family="llama", max_tokens=256))
    shape, work = shape_of(config), Work(4, 256, 512)
    made = plan(config, shape, work)
    assert fits(config, shape, work, cards=1, memory=made.total) == made
    with pytest.raises(UserError, match=r"at its worst moment \(weights .* it would fit with checkpointing: true$"):
        fits(config, shape, work, cards=1, memory=made.total * 0.9)
    with pytest.raises(UserError, match="max_tokens_per_micro_batch: 256"):
        fits(config, shape, work, cards=1, memory=made.total * 0.4)
    with pytest.raises(UserError, match="no setting makes it fit"):
        fits(config, shape, work, cards=1, memory=1e3)
    dealt = plan(config, shape, work, cards=4)
    for part in ("weights", "gradients", "optimizer"):
        assert dealt.memory[part] == made.memory[part] / 4
    assert dealt.memory["gathered"] > 0
    assert dealt.memory["activations"] == made.memory["activations"]


def test_optimizers_that_cannot_be_used_are_told_before_the_model_is_made(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torchao", None)
    monkeypatch.delitem(sys.modules, "torchao.optim", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'dikast\[lowbit\]'"):
        sft(write_config("bits", optimizer="adamw8bit"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="optimizer: adafactor trains in one process, not in 2: use adamw"):
        planning.check_before_loading(load_config(write_config("two", optimizer="adafactor")))


def test_a_model_that_cannot_fit_is_refused_before_it_is_made(tiny: Callable[[str], Path], write_config: Write) -> None:
    config = write_config(family="llama", init=str(folder := tiny("llama").parent / "huge"))
    shutil.copytree(tiny("llama"), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    shape = json.loads((folder / "config.json").read_text("utf-8"))
    shape |= {"hidden_size": 65536, "intermediate_size": 131072, "head_dim": 32768}
    (folder / "config.json").write_text(json.dumps(shape), "utf-8")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match=r"this run takes \d+\.\d GB|the run writes up to"):
        sft(config)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KB; the weights would take 360 GB
    assert not (config.parent / "run-c" / "shards").exists()


def test_a_disk_too_small_for_the_checkpoints_is_told_beforehand(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(write_config(keep=3))
    counts = planning.counts_of(config, shape_of(config))
    # float32: four checkpoints of weights and two moments, and the model
    assert planning.disk_of(config, counts) == 4 * counts.parameters * 12 + counts.parameters * 4
    needed = planning.disk_of(config, counts)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=needed))
    check_before_loading(config)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=needed - 1))
    with pytest.raises(UserError, match=r"'keep' 3 and one more.*lower 'keep'"):
        sft(config)
    assert not (config.path(config.out) / "shards").exists()


@pytest.mark.parametrize(
    ("precision", "processor", "told"),
    [("bf16", "AVX2", True), ("bf16-master", "AVX2", True), ("fp32", "AVX2", False), ("bf16", "AVX512", False)],
)
def test_bf16_on_a_processor_that_has_no_instructions_for_it_is_told(
    precision: str,
    processor: str,
    told: bool,
    write_config: Write,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: processor)
    check_before_loading(load_config(write_config(precision=precision, device="cpu")))
    assert ("no AVX-512" in caplog.text) is told


def test_the_verb_prints_a_plan_and_hours_at_a_given_rate(write_config: Write) -> None:
    config = write_config(steps=None, epochs=2, max_tokens=500)
    asked = ["train", "plan", "--config", str(config), "--rows", "1000", "--length", "300", "--rate", "100"]
    done = CliRunner().invoke(app, [*asked, "--cards", "2", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["hours"] == pytest.approx(2 * 1000 * 300 / 200 / 3600)
    parts = found["memory_gb_a_card"]
    assert sum(parts.values()) - min(parts["in_step"], found["total_gb_a_card"]) <= found["total_gb_a_card"] * 1.001
    told = CliRunner().invoke(app, ["train", "plan", "--config", str(config)])
    assert "12 rows" not in told.output
    assert "assumed: 30% of the card's peak" in told.output
    assert work_of(load_config(config)).tokens == 500


@pytest.mark.slow
def test_the_recipe_of_72b_fits_32_cards_by_its_configuration_alone() -> None:
    """73.18 billion weights: 2 + 2 + 10 bytes each on 32 cards, and hours at 30 % of the card's peak."""
    recipe = Path(__file__).parents[3] / "recipes" / "llava-critic"
    shape = recipe / "shapes" / "72b"
    asked = PlanAsked(shape=shape, cards=32, rows=112_936, length=4000, learnt=150, tiles=5)
    found = planned(recipe / "train-72b.yaml", asked)
    assert found["fits"]
    assert found["trained"] == found["parameters"] == 73_180_522_016
    parts = found["memory_gb_a_card"]
    held = parts["weights"] + parts["gradients"] + parts["optimizer"]
    assert held == pytest.approx(found["parameters"] * 14 / 32 / 1e9, rel=1e-6)
    assert found["hours"] == pytest.approx(
        112_936 * 4000 * found["operations_a_token"] / (0.3 * 989e12) / 32 / 3600, rel=1e-6
    )
