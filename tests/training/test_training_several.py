"""Several processes: two on the CPU, sharded by FSDP2, reach the same weights as a single one."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

import tiny_models
from dikast.core.errors import UserError
from dikast.core.output_folder import one_writer
from dikast.training.sft import sft
from ports import free_port

Write = Callable[..., Path]
SHIPPED = resources.files("dikast.training").joinpath("recipes")


def launched(config: Path, shipped: str, folder: Path) -> dict[str, object]:
    """The final output of the main one of two processes."""
    settings = yaml.safe_load(SHIPPED.joinpath(shipped).read_text("utf-8"))
    settings.update(num_processes=2, use_cpu=True, mixed_precision="no", main_process_port=0)
    (folder / "accelerate.yaml").write_text(yaml.safe_dump(settings), "utf-8")
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(folder / "accelerate.yaml")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [*command, "-m", "dikast", "train", "sft", "--config", str(config), "--json"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    lines = run.stdout.splitlines()
    found: dict[str, object]
    found, _ = json.JSONDecoder().raw_decode("\n".join(lines[lines.index("{") :]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [{}, {"optimizer": "muon"}, {"precision": "bf16-master"}, {"train": "projector"}],
    ids=["adamw", "muon", "bf16-master", "projector"],
)
def test_two_processes_with_fsdp2_end_with_the_weights_of_one(
    changed: dict[str, str], write_config: Write, tmp_path: Path
) -> None:
    # batches of 3 over 2 processes: one of them has a row that does not count
    alone = write_config("alone", batch_size=3, steps=2, **changed)
    together = write_config("together", batch_size=3, steps=2, max_seconds=1e-6, **changed)
    sft(alone)
    for step in (1, 2):  # each time from the checkpoint of the last
        done = launched(together, "fsdp2.yaml", tmp_path)
        assert (done["processes"], done["steps"]) == ("2, FSDP2", step)
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("alone", "together"))
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=5e-3 if "precision" in changed else 5e-4), name
    assert "| processes | 2, FSDP2 |" in (tmp_path / "run-together/model/README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("pack", ["rows", "trees"])
def test_packed_rows_of_two_processes_end_with_the_weights_of_one(
    pack: str, write_config: Write, world: Path, tmp_path: Path
) -> None:
    # three rows or pairs a step: the second process has one less; the second step goes on from a checkpoint
    pairs = {"items": [str(world / "pairs" / "items-*.jsonl")], "formats": ["pairwise-short.yaml"]}
    data = {"data": [pairs], "augment": {"swap": "both"}} if pack == "trees" else {}
    settings = {"batch_size": 6 if pack == "trees" else 3, "steps": 2, "pack": pack, **data}
    sft(write_config("alone", **settings))
    together = write_config("together", **settings, max_seconds=1e-6)
    for step in (1, 2):
        assert launched(together, "fsdp2.yaml", tmp_path)["steps"] == step
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("alone", "together"))
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=5e-4), name


def test_deepspeed_is_refused_with_what_to_take_instead(write_config: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match=r"cannot follow: use fsdp2\.yaml"):
        sft(write_config())


@pytest.mark.slow
def test_adapters_in_shards_end_as_adapters_in_one_process_do(
    write_config: Write, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    lora = {"train": "lora", "lora": {"rank": 4}, "batch_size": 4, "steps": 2}
    alone = sft(write_config("alone", **lora))
    together = launched(write_config("together", **lora), "fsdp2.yaml", tmp_path)
    assert (together["processes"], together["steps"]) == ("2, FSDP2", 2)
    base, one, two = (
        load_file(folder / "model.safetensors")
        for folder in (tiny("llava"), *(Path(str(done["model"])) for done in (alone, together)))
    )
    assert one.keys() == two.keys() == base.keys()  # adapters are folded into the weights
    assert any(not torch.equal(tensor, base[name]) for name, tensor in one.items())
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=5e-4), name


@pytest.mark.slow
def test_shares_are_written_and_read_by_any_number_of_processes(write_config: Write, tmp_path: Path) -> None:
    # the first checkpoint is one process's, whole; two go on from it and write shares, from which one ends the run
    settings: dict[str, Any] = {"family": "llama", "batch_size": 2, "steps": 3, "save_every": 1, "shards": None}
    sft(write_config("alone", **settings))
    out = tmp_path / "run-mixed"
    sft(write_config("mixed", **settings, stop_at=1))
    assert launched(write_config("mixed", **settings, stop_at=2), "fsdp2.yaml", tmp_path)["steps"] == 2
    assert len(list(out.glob("checkpoints/step-00000002/shard-*.safetensors"))) == 2
    assert not (out / "checkpoints/step-00000002/weights.safetensors").exists()
    sft(write_config("mixed", **settings))
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("alone", "mixed"))
    assert one.keys() == two.keys()
    assert all(torch.allclose(tensor, two[name], atol=5e-4) for name, tensor in one.items())


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_shares_of_adapters_go_on_bit_for_bit_and_past_a_damaged_checkpoint(
    precision: str, write_config: Write, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"train": "lora", "lora": {"rank": 4}, "precision": precision, "checkpointing": True}
    settings |= {"init": None, "model": str(tiny("llava")), "batch_size": 2, "steps": 3, "save_every": 1, "keep": 3}
    sft(write_config("alone", **settings))
    together = write_config("together", **settings)
    launched(together, "fsdp2.yaml", tmp_path)
    out = tmp_path / "run-together"
    unbroken = load_file(out / "model/model.safetensors")
    alone = load_file(tmp_path / "run-alone/model/model.safetensors")
    near = 5e-4 if precision == "fp32" else 5e-3
    assert all(torch.allclose(tensor, alone[name], atol=near) for name, tensor in unbroken.items())
    for part in ("model", "checkpoints/step-00000003"):
        shutil.rmtree(out / part)
    newest = max(out.glob("checkpoints/step-00000002/shard-*.safetensors"))
    data = bytearray(newest.read_bytes())
    data[len(data) * 3 // 4] ^= 4
    newest.write_bytes(data)
    assert launched(together, "fsdp2.yaml", tmp_path)["steps"] == 3
    assert (out / "checkpoints/damaged-step-00000002").is_dir()
    resumed = load_file(out / "model/model.safetensors")
    assert all(torch.equal(tensor, unbroken[name]) for name, tensor in resumed.items())


RANK = """
import os, sys
from pathlib import Path
import dikast.training.checkpoint as checkpoint, dikast.training.loop as loop
from dikast.core.errors import UserError
from dikast.core.output_folder import one_writer
from dikast.training.sft import sft

config, blind, told = sys.argv[1], sys.argv[2], Path(sys.argv[3])
fault, choose = checkpoint._fault, checkpoint.sound_checkpoint

def sick(path):
    cannot = blind == "nobody reads any" or (os.environ["RANK"] == blind and path.name == "step-00000003")
    return "cannot be read here" if cannot else fault(path)

def chosen(folder, team):
    try:
        found = choose(folder, team)
        told.joinpath(os.environ["RANK"]).write_text(found.name if found else "")
    except UserError as error:
        told.joinpath(os.environ["RANK"]).write_text(str(error))
        raise SystemExit(2)
    return found

checkpoint._fault, loop.sound_checkpoint = sick, chosen
sft(config)
"""


def two_ranks(config: Path, blind: str, folder: Path) -> tuple[list[int], list[str]]:
    """Two processes over gloo, one of which cannot read the newest checkpoint: exit codes, and where each resumes."""
    told = folder / f"told-{blind}"
    told.mkdir()
    codes, _ = ranks(["-c", RANK, str(config), blind, str(told)])
    return codes, [(told / rank).read_text() for rank in "01"]


def ranks(arguments: list[str], *, limit: int | None = None) -> tuple[list[int], list[str]]:
    """Two processes of Python over gloo: exit codes, what each says. limit: bytes a file of the main one may have."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
    }  # fmt: skip
    started = [
        subprocess.Popen(
            [sys.executable, *arguments],
            env={**environment, "RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limited if rank == "0" else None,
        )
        for rank in "01"
    ]
    try:
        with ThreadPoolExecutor(2) as both:
            said = [err for _, err in both.map(lambda each: each.communicate(timeout=240), started)]
    finally:
        for each in started:
            each.kill()
    return [each.returncode for each in started], said


GATHERED = """
import sys, torch
from torch.distributed.fsdp import FSDPModule
from dikast.training.config import load_config
from dikast.training.models.model import open_model
from dikast.training.processes import Distributed

config = load_config(sys.argv[1])
Distributed(config)
model = open_model(config, shards=2).model
units = [each for each in model.modules() if isinstance(each, FSDPModule) and each is not model]
groups = [each._get_fsdp_state()._fsdp_param_group for each in units]
most = 0

def count(gradient):
    global most
    most = max(most, sum(each.is_unsharded or each._all_gather_result is not None for each in groups))

def watched(module, given, made):
    (made[0] if isinstance(made, tuple) else made).register_hook(count)

for layer in model.get_decoder().layers:
    layer.register_forward_hook(watched)
model(input_ids=torch.ones(1, 8, dtype=torch.long)).logits.sum().backward()
print(f"gathered {most} of {len(groups)}", file=sys.stderr)
"""


@pytest.mark.slow
def test_one_layer_is_gathered_at_a_time_in_the_backward_pass_on_a_cpu(write_config: Write, tmp_path: Path) -> None:
    """FSDP2 gathers the next layer ahead, which hides nothing on a CPU and holds a layer more."""
    small = tiny_models.build("llama", tmp_path / "deep", num_hidden_layers=5)
    codes, said = ranks(["-c", GATHERED, str(write_config("one", family="llama", init=None, model=str(small)))])
    assert codes == [0, 0], "\n".join(said)
    for each in said:
        assert [line for line in each.splitlines() if line.startswith("gathered")] == ["gathered 1 of 8"]


TWICE = """
import os, sys, torch.distributed
from dikast.core.errors import UserError
from dikast.training.sft import sft

for config in sys.argv[1:]:
    try:
        sft(config)
        print("trained", file=sys.stderr)
    except UserError:
        print("refused", file=sys.stderr)
    assert not torch.distributed.is_initialized()
"""


@pytest.mark.slow
def test_the_process_group_is_closed_when_training_ends_and_when_it_fails(
    write_config: Write, world: Path, tmp_path: Path
) -> None:
    """Left open, the second process was now and then aborted while it ended, as the first had gone."""
    small = {"family": "llama", "batch_size": 2, "steps": 1, "shards": None}
    (tmp_path / "bad.jsonl").write_text("{}\n", "utf-8")
    bad = write_config("bad", **{**small, "data": [{"items": ["bad.jsonl"], "formats": ["absolute-short.yaml"]}]})
    configs = [write_config("one", **small), bad, write_config("two", **small)]
    codes, said = ranks(["-c", TWICE, *map(str, configs)])
    assert codes == [0, 0], "\n".join(said)
    for each in said:
        assert [line for line in each.splitlines() if line in ("trained", "refused")] == [
            "trained",
            "refused",
            "trained",
        ]
    one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("one", "two"))
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


@pytest.mark.slow
def test_all_processes_go_on_from_the_checkpoint_that_the_main_one_finds(write_config: Write, tmp_path: Path) -> None:
    small = {"family": "llama", "batch_size": 2, "keep": 3, "save_every": 1, "shards": None}
    sft(write_config("alone", steps=4, **small))
    sft(write_config("together", steps=4, stop_at=3, **small))
    out = tmp_path / "run-together"
    shutil.copytree(out, tmp_path / "stopped")
    config = write_config("together", steps=4, **small)
    for blind, start in (("1", "step-00000003"), ("0", "step-00000002")):
        assert two_ranks(config, blind, tmp_path) == ([0, 0], [start] * 2)
        assert (out / "checkpoints" / "damaged-step-00000003").exists() == (blind == "0")
        one, two = (load_file(tmp_path / f"run-{name}/model/model.safetensors") for name in ("alone", "together"))
        assert all(torch.allclose(tensor, two[name], atol=5e-4) for name, tensor in one.items())
        shutil.rmtree(out)
        shutil.copytree(tmp_path / "stopped", out)
    codes, said = two_ranks(config, "nobody reads any", tmp_path)
    assert codes == [2, 2]
    assert said[0] == said[1]
    assert "no earlier one is undamaged" in said[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "code", "why"),
    [
        ("a record", 2, "bad.jsonl:3: field 'gold'"),
        ("another process", 1, "another process is training here; wait for it"),
        ("no room for examples", 1, "what was written before is kept"),
        ("no room for a checkpoint", 1, "File too large"),
    ],
)
def test_what_ends_the_main_process_ends_all_with_its_message(
    fault: str, code: int, why: str, write_config: Write, world: Path, tmp_path: Path
) -> None:
    """Only the main process makes the examples, holds the folder and writes: the other one would wait for ever."""
    lines = (world / "texts" / "items-00000.jsonl").read_text("utf-8").splitlines()[:6]
    if fault == "a record":
        lines[2] = json.dumps({key: value for key, value in json.loads(lines[2]).items() if key != "gold"})
    (tmp_path / "bad.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    data = [{"items": ["bad.jsonl"], "formats": ["absolute-short.yaml"]}]
    config = write_config("c", "llama", data=data, shards=None, batch_size=2, steps=2, save_every=1)
    limit = {"no room for examples": 200, "no room for a checkpoint": 60_000}.get(fault)
    with one_writer(tmp_path / "run-c", "training") if fault == "another process" else nullcontext():
        codes, said = ranks(["-m", "dikast", "train", "sft", "--config", str(config)], limit=limit)
    assert codes == [code, code], said
    for each in said:
        assert why in each
        assert "Traceback" not in each, each
    assert limit or not list((tmp_path / "run-c").glob("shards/*/*"))
