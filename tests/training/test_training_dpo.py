"""Preferences: loss and weights as trl's, the reference stored, pictures seen once, runs that resume, bad input."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file
from typer.testing import CliRunner

from dikast.core.errors import DataError, UserError
from dikast.surface.cli import app
from dikast.training import dpo as dpo_module
from dikast.training.data.collate import Pack, collate
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.dpo import REFERENCE, PreferenceLoop, dpo, preference_losses, replies_of
from dikast.training.log import read_log
from dikast.training.models.export import export_trl
from dikast.training.models.model import about, open_model
from dikast.training.packed_attention import use_packed_attention
from dikast.training.preferences import PreferenceConfig, load_preference_config
from dikast.training.processes import SingleProcess

SAID = [
    ("It follows the instruction.", "The claim is wrong"),
    ("good", "The response is good, but one claim is wrong; the answer helps."),
    ("The answer is clear.", "The answer is short."),
    ("A red square left of a blue circle.", "A"),
]


def pairs(folder: Path, *, pictures: bool) -> list[dict[str, Any]]:
    rows = []
    for n, (better, worse) in enumerate(SAID):
        said = [f" {worse}", f" {better}"] if pictures else [worse, better]
        row: dict[str, Any] = {
            "id": f"p{n}", "instruction": f"What is {n}?", "responses": said, "gold": {"preference": "b"},
        }  # fmt: skip
        if pictures:
            place = folder / f"{n}.png"
            Image.fromarray(np.random.default_rng(n).integers(0, 256, (56, 56, 3), np.uint8)).save(place)
            row["image"] = place.name
        rows.append(row)
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


@pytest.fixture
def configured(tiny: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """Writes pairs, and a configuration that learns from them; returns its path."""

    def write(name: str = "c", family: str = "llava", **values: Any) -> Path:
        pairs(tmp_path, pictures=family != "llama")
        settings = {
            "model": str(tiny(family)), "out": f"run-{name}", "shards": "shards", "data": [{"items": "pairs.jsonl"}],
            "batch_size": 4, "learning_rate": 1e-4, "schedule": "constant", "warmup": 0, "epochs": 5, "device": "cpu",
            "log_every": 1, **values,
        }  # fmt: skip
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(settings))
        return path

    return write


def prepared(config: Path) -> tuple[PreferenceConfig, Any, Any]:
    settings = load_preference_config(config)
    loaded = open_model(settings)
    return settings, loaded, prepare_shards(settings, loaded, about(loaded), data_hash(settings), SingleProcess())


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "llava"])
def test_five_steps_end_as_those_of_trl(
    family: str, configured: Callable[..., Path], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    pytest.importorskip("trl")
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

    from trl_alone import DPOConfig, DPOTrainer

    config = configured(family=family)
    done = dpo(config)
    ours = read_log(tmp_path / "run-c/train.jsonl")
    _, _, shards = prepared(config)

    sees = family == "llava"
    rows = []
    for row, (better, worse) in zip(pairs(tmp_path, pictures=sees), SAID, strict=True):
        if sees:  # trl's tokenizer puts the space before the reply, and its template neither begins nor ends a row
            asked = f"<s>USER: <image>\n{row['instruction']} ASSISTANT:"
            picture = [Image.open(tmp_path / row["image"]).convert("RGB")]
            rows.append({"prompt": asked, "chosen": f"{better}</s>", "rejected": f"{worse}</s>", "images": picture})
        else:
            said = [[{"role": "assistant", "content": each}] for each in (better, worse)]
            turn = {"role": "user", "content": row["instruction"]}
            rows.append({"prompt": [turn], "chosen": said[0], "rejected": said[1]})
    kind: Any = AutoModelForImageTextToText if sees else AutoModelForCausalLM
    processing: Any = AutoProcessor if sees else AutoTokenizer
    folder = tiny(family)
    trainer = DPOTrainer(
        model=kind.from_pretrained(folder, dtype=torch.float32),
        ref_model=kind.from_pretrained(folder, dtype=torch.float32),
        processing_class=processing.from_pretrained(folder),
        train_dataset=Dataset.from_list(rows),
        args=DPOConfig(
            output_dir=str(tmp_path / "trl"), max_steps=5, per_device_train_batch_size=4, learning_rate=1e-4,
            lr_scheduler_type="constant", warmup_steps=0, weight_decay=0.0, max_length=None, logging_steps=1,
            save_strategy="no", report_to=[], use_cpu=True, bf16=False, disable_tqdm=True,
        ),
    )  # fmt: skip
    (batch,) = list(trainer.get_train_dataloader())
    theirs = {
        tuple(ids[mask.bool()].tolist()) for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    }
    assert theirs == {tuple(part.ids(i).tolist()) for part, i in map(shards.find, range(len(shards)))}
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert len(losses) == len(ours) == 5
    assert losses[0] == pytest.approx(math.log(2), abs=1e-5)
    assert losses[4] < losses[0] - 0.005
    for line, loss in zip(ours, losses, strict=True):
        assert line["loss"] == pytest.approx(loss, abs=1e-5)
    found = load_file(Path(str(done["model"])) / "model.safetensors")
    trainer.save_model(str(tmp_path / "theirs"))
    known = load_file(tmp_path / "theirs/model.safetensors")
    start = load_file(folder / "model.safetensors")
    assert found.keys() == known.keys()
    assert max(float((found[name] - known[name]).abs().max()) for name in found) <= 1e-5
    assert max(float((found[name] - start[name]).abs().max()) for name in found) > 1e-4


def test_the_loss_of_a_pair_by_hand() -> None:
    """Log-ratios -1 and -3: beta .5 times 2 is 1, and -log sigmoid(1) = log(1 + e^-1)."""
    ratios, likelihood = torch.tensor([[-1.0, -3.0], [2.0, 2.0]]), torch.tensor([-0.25, -4.0])

    def losses(**values: float) -> list[float]:
        config = PreferenceConfig(out="", data=(), beta=0.5, **values)  # type: ignore[arg-type]
        return preference_losses(ratios, likelihood, config).tolist()

    assert losses() == pytest.approx([math.log1p(math.exp(-1)), math.log(2)])
    # dpop 3: the first has lost 1 nat, so 2 - 3 = -1 is left of the edge; the second has lost nothing
    assert losses(dpop=3.0) == pytest.approx([math.log1p(math.exp(0.5)), math.log(2)])
    assert losses(dpo_alpha=0.0, sft_weight=2.0) == pytest.approx([0.5, 8.0])
    assert losses(dpo_alpha=2.0, sft_weight=1.0) == pytest.approx(
        [2 * math.log1p(math.exp(-1)) + 0.25, 4 + math.log(4)]
    )


@pytest.mark.parametrize("family", ["llama", "llava", "qwen3_vl"])
def test_log_probabilities_are_those_of_each_row_alone(family: str, configured: Callable[..., Path]) -> None:
    settings, loaded, shards = prepared(configured(family=family))
    alone = []
    for number in range(len(shards)):
        batch = collate(shards, [number], loaded)
        with torch.no_grad():
            logits = loaded.model(**batch.inputs).logits
        alone.append(float(logits.log_softmax(-1)[torch.arange(len(batch.targets)), batch.targets].sum()))
    use_packed_attention(loaded.model)
    packs: tuple[Pack, ...] = ("none", "rows", "trees")
    for pack in packs:
        batch = collate(shards, range(len(shards)), loaded, pack=pack)
        with torch.no_grad():
            found, tokens = replies_of(loaded.model, batch, loaded, settings)
        assert found.flatten().tolist() == pytest.approx(alone, abs=1e-4), pack
        assert tokens.flatten().tolist() == (shards.lengths - shards.prompts).tolist()


def test_a_picture_goes_through_the_tower_once_a_pair(configured: Callable[..., Path]) -> None:
    settings, loaded, shards = prepared(configured())
    seen = list[int]()
    loaded.model.model.vision_tower.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(len(kwargs.get("pixel_values", args[0] if args else ()))),
        with_kwargs=True,
    )
    use_packed_attention(loaded.model)
    layouts: dict[Pack, int] = {"none": 2, "trees": 1}
    for pack, pictures in layouts.items():
        seen.clear()
        with torch.no_grad():
            replies_of(loaded.model, collate(shards, [0, 1], loaded, pack=pack), loaded, settings)
        assert sum(seen) == pictures


def test_the_reference_is_computed_once_and_used_after_an_interruption(
    configured: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"save_every": 2, "epochs": 2, "batch_size": 2}
    whole = dpo(configured("whole", **settings))
    calls = list[int]()
    compute = dpo_module._computed

    def counted(*given: Any) -> Any:
        calls.append(1)
        return compute(*given)

    monkeypatch.setattr(dpo_module, "_computed", counted)
    config = configured("parts", **settings, max_seconds=1e-6)
    for step in range(1, 5):
        assert dpo(config)["steps"] == step
    assert len(calls) == 1
    assert (tmp_path / "run-parts" / REFERENCE).read_bytes() != b""
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    lines = read_log(tmp_path / "run-parts/train.jsonl")
    assert len(lines) == whole["total"] == 4
    assert lines[0]["accuracy"] == pytest.approx(0.5, abs=0.51)
    assert lines[-1]["margin"] > 0
    card = (tmp_path / "run-parts/model/README.md").read_text()
    assert "A policy trained with Dikast." in card
    assert "| examples | 4 |" in card
    with safe_open(tmp_path / "run-parts" / REFERENCE, "np") as file:
        stored = file.get_tensor("logprobs")
    with (tmp_path / "run-parts" / REFERENCE).open("r+b") as raw:  # a damaged one is computed again
        raw.seek(-4, 2)
        raw.write(b"\0\0\0\0")
    dpo(config)
    with safe_open(tmp_path / "run-parts" / REFERENCE, "np") as file:
        assert np.array_equal(file.get_tensor("logprobs"), stored)
    assert len(calls) == 2


@pytest.mark.parametrize("pack", ["none", "rows"])
def test_any_layout_and_any_size_of_pass_learns_the_same(
    pack: str, configured: Callable[..., Path], tmp_path: Path
) -> None:
    dpo(configured("trees", epochs=2))
    dpo(configured("other", epochs=2, pack=pack, max_tokens_per_micro_batch=1))
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("trees", "other"))
    assert max(float((tensor - two[name]).abs().max()) for name, tensor in one.items()) < 2e-5


def test_adapters_learn_with_the_reference_of_the_model_below(configured: Callable[..., Path], tmp_path: Path) -> None:
    done = dpo(configured(train="lora", lora={"rank": 4}, learning_rate=1e-2))
    lines = read_log(tmp_path / "run-c/train.jsonl")
    assert lines[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.01
    assert done["complete"]


def test_a_loss_that_is_no_number_names_the_pair(
    configured: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PreferenceLoop._loss

    def broken(self: PreferenceLoop, model: Any, batch: Any) -> torch.Tensor:
        return real(self, model, batch) * (float("nan") if 4 in batch.numbers else 1.0)

    monkeypatch.setattr(PreferenceLoop, "_loss", broken)
    with pytest.raises(Exception, match=r"pairs\.jsonl:3: step 1: the loss of example 'p2/better' is nan"):
        dpo(configured())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"responses": ["one"]}, r"pairs\.jsonl:1.*1 response, and a preference is between two"),
        ({"gold": {"preference": "tie"}}, r"pairs\.jsonl:1.*got 'tie'; a tie teaches no preference"),
        ({"gold": None}, r"pairs\.jsonl:1.*got None"),
        ({"responses": ["same", "same"]}, r"pairs\.jsonl:1.*both responses are the same"),
        ({"responses": ["x", [{"type": "image", "image": "0.png"}]]}, r"pairs\.jsonl:1.*responses\[1\].*write text"),
        ({"instruction": None}, r"pairs\.jsonl:1.*neither an instruction"),
    ],
)
def test_a_row_that_teaches_no_preference_is_named(
    change: dict[str, Any], said: str, configured: Callable[..., Path], tmp_path: Path
) -> None:
    config = configured()
    (first, *_) = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    row = {name: value for name, value in {**first, "image": None, **change}.items() if value is not None}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=said):
        dpo(config)


def test_settings_of_judges_are_refused(configured: Callable[..., Path]) -> None:
    for values, said in (
        ({"label_loss_weight": 3.0}, "label_loss_weight.*applies to judges"),
        ({"label_smoothing": 0.1}, "label_smoothing.*applies to judges"),
        ({"augment": {"swap": "both"}}, "augment.*applies to judges"),
        (
            {"data": [{"items": "pairs.jsonl", "formats": ["pairwise"], "rubric": "x"}]},
            "(?s)formats|rubric.*leave it out",
        ),
        ({"dpo_alpha": 0}, "nothing is learnt"),
        ({"beta": 0}, "beta.*above 0"),
        ({"betta": 0.1}, "unknown key.*beta"),
    ):
        with pytest.raises(DataError, match=said):
            load_preference_config(configured(**values))


def test_another_run_in_the_folder_is_refused(configured: Callable[..., Path]) -> None:
    dpo(configured(epochs=1))
    with pytest.raises(UserError, match="belongs to a run with other data or settings"):
        dpo(configured(epochs=1, beta=0.2))


@pytest.mark.slow
def test_trl_runs_the_export(configured: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("trl")
    out = tmp_path / "out"
    command = ["train", "dpo", "--config", str(configured(epochs=1, sft_weight=0.5)), "--export", "trl"]
    exported = CliRunner().invoke(app, [*command, "--out", str(out)])
    assert exported.stdout == f"4 examples; run: cd {out} && trl dpo --config dpo.yaml\n"
    settings = yaml.safe_load((out / "dpo.yaml").read_text())
    assert (settings["beta"], settings["loss_type"], settings["loss_weights"]) == (0.1, ["sigmoid", "sft"], [1.0, 0.5])
    assert settings["max_length"] is None
    done = subprocess.run(
        [str(Path(sys.executable).with_name("trl")), "dpo", "--config", "dpo.yaml"], cwd=out, capture_output=True,
        text=True, env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    with pytest.raises(UserError, match="no counterpart of 'dpop'"):
        export_trl(load_preference_config(configured(dpop=1.0)), tmp_path / "other")


@pytest.mark.slow
def test_two_processes_with_fsdp2_end_with_the_weights_of_one(configured: Callable[..., Path], tmp_path: Path) -> None:
    # three pairs a step: the second process has one less; the second step goes on from a checkpoint
    settings = {"batch_size": 3, "epochs": 1, "learning_rate": 1e-3}
    dpo(configured("alone", **settings))
    together = configured("together", **settings, max_seconds=1e-6)
    shipped = resources.files("dikast.training").joinpath("recipes", "fsdp2.yaml").read_text("utf-8")
    (tmp_path / "accelerate.yaml").write_text(
        yaml.safe_dump(
            yaml.safe_load(shipped)
            | {"num_processes": 2, "use_cpu": True, "mixed_precision": "no", "main_process_port": 0}
        )
    )
    for step in (1, 2):
        done = subprocess.run(
            [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(tmp_path / "accelerate.yaml"),
             "-m", "dikast", "train", "dpo", "--config", str(together), "--json"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        assert f'"steps": {step}' in done.stdout
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("alone", "together"))
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=5e-4), name
