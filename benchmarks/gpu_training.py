"""Training and alignment on one GPU, for `benchmarks.gpu`: the loops of `dikast train` on models that are in memory."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks import packing
from benchmarks.gpu_models import PEAK, model_folder, operations, random_model
from dikast.alignment.policy_samples import Draw, sampled
from dikast.alignment.round_pairs import PAIRS, SAMPLES, make_pairs
from dikast.core.item import Item
from dikast.core.message import Message, Span
from dikast.core.part import Image, Text, Turn
from dikast.engines.base import Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.trusted import model_config
from dikast.judging.judge import Judge
from dikast.prompts.target import Reply
from dikast.training.config import Config, load_config
from dikast.training.data.collate import collate, summed_loss
from dikast.training.data.encode import encode, end_of_reply
from dikast.training.data.examples import Example
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.data.shards import Shards, ShardWriter
from dikast.training.dpo import PreferenceLoop
from dikast.training.loop import Loop, logits_of
from dikast.training.models.model import about, made_ready
from dikast.training.packed_attention import use_packed_attention
from dikast.training.planning.step_cost import Work
from dikast.training.planning.training_plan import plan
from dikast.training.preferences import load_preference_config
from dikast.training.processes import SingleProcess

if TYPE_CHECKING:
    from benchmarks.gpu import Asked


class _Enough(Exception):
    """The steps that are measured are done; nothing is saved."""


def gradients(folder: Path, model: str, device: torch.device, examples: int) -> dict[str, float]:
    """How far float32 gradients of packed rows and trees are from those of padded rows, as a share of their norm."""
    loaded = LocalEngine(model, device=str(device), dtype="float32")._loaded
    loaded.model.requires_grad_(True)
    use_packed_attention(loaded.model)
    shards = packing.made(folder, "graded")
    found: dict[str, packing.Gradients] = {}
    for layout in (packing.PADDED, packing.ROWS, packing.TREES):
        batch = collate(shards, range(examples), loaded, pack=layout.pack)
        summed_loss(*logits_of(loaded.model, batch, loaded, reduced=False)).backward()  # type: ignore[no-untyped-call]
        found[layout.pack] = [p.grad.clone() for p in loaded.model.parameters() if p.grad is not None]
        loaded.model.zero_grad(set_to_none=True)
    return {pack: packing.difference(found["none"], found[pack]) for pack in ("rows", "trees")}


LORA: dict[str, Any] = {
    "train": "lora", "lora": {"rank": 64, "alpha": 128}, "precision": "bf16", "batch_size": 16,
    "max_tokens_per_micro_batch": 8192,
}  # fmt: skip
FULL: dict[str, Any] = {
    "train": "full", "precision": "bf16-master", "checkpointing": True, "batch_size": 32,
    "max_tokens_per_micro_batch": 16384,
}  # fmt: skip


def training(asked: "Asked") -> None:
    """Full training and LoRA of the OneVision shape, packed: operations a second, peak of memory, resuming."""
    with tempfile.TemporaryDirectory() as at:
        folder = model_folder("onevision", Path(at) / "model", small=asked.small)
        shards, tiles = _shards(asked, folder, Path(at))
        fitting, layers = _fitting(asked, Path(at))
        asked.report.tell("training", full_layers=layers)
        _measured(asked, fitting, Path(at) / "full", shards, tiles)
        if asked.left < 4 * asked.steps + 20:
            asked.report.tell("training", lora="no time")
            return
        _resumed(asked, folder, Path(at) / "lora", shards, tiles)


def planned(asked: "Asked") -> None:
    """The plan of both, and the measured peak as a share of it where `training` has run."""
    with tempfile.TemporaryDirectory() as at:
        folder = model_folder("onevision", Path(at) / "model", small=asked.small)
        shards, tiles = _shards(asked, folder, Path(at))
        for name, given in (("lora", LORA), ("full", FULL)):
            if name == "full":
                folder, _ = _fitting(asked, Path(at))
            config = load_config(_settings(asked, folder, Path(at), given))
            rows, longest = _pass(config, shards)
            learnt = max(_learnt(shards))
            made = plan(config, model_config(folder), Work(rows, longest, rows * learnt, rows * tiles))
            peak = asked.report.found.get(f"training {name}", {}).get("peak_gb")
            asked.report.tell(
                f"plan {name}", planned_gb=made.total / 1e9, of_plan=peak and peak * 1e9 / made.total,
                parts={part: size / 1e9 for part, size in made.memory.items()}, rows=rows, row_tokens=longest,
            )  # fmt: skip


def _fitting(asked: "Asked", at: Path) -> tuple[Path, int]:
    """The model with as many layers as full training in this memory allows, and their number."""
    from benchmarks.gpu import memory_of

    layers = 28
    while True:
        folder = model_folder("onevision", at / f"model-{layers}", small=asked.small, layers=layers)
        sizes = [each.numel() for each in random_model(folder, torch.device("meta")).model.parameters()]
        # weights, gradients, moments and lower halves; the step on the largest tensor; activations
        if asked.small or 14 * sum(sizes) + 28 * max(sizes) + 3e9 < memory_of(asked.device):
            return folder, layers
        layers -= 7


def _settings(asked: "Asked", folder: Path, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    found = {
        "init": str(folder), "out": str(out), "data": [{"items": ["items.jsonl"]}], "learning_rate": 1e-5, "steps": 20,
        "max_tokens": 4096, "pack": "rows", "log_every": 1, "save_every": 0, "keep": 1, **given,
    }  # fmt: skip
    return {**found, "max_tokens_per_micro_batch": 512} if asked.small else found


def _pass(config: Config, shards: Shards) -> tuple[int, int]:
    """The rows of a forward pass, and the tokens of the longest."""
    longest = int(shards.lengths.max())
    return min(max(1, config.max_tokens_per_micro_batch // longest), config.batch_size), longest


def _learnt(shards: Shards) -> list[int]:
    """How many tokens of each row count in the loss."""
    return [int(part.rows[i]["length"] - part.rows[i]["prompt"]) for part, i in map(shards.find, range(len(shards)))]


def _shards(asked: "Asked", folder: Path, at: Path) -> tuple[Shards, int]:
    """32 rows, each with a picture of its own, and how many tiles a picture has."""
    from benchmarks.gpu import noise, words

    loaded = random_model(folder, torch.device("meta"))
    writer, end = ShardWriter(at / "shards", 0), end_of_reply(loaded)
    task, reply, edge = (20, 8, 56) if asked.small else (300, 50, 384)
    for n in range(32):
        asks = (Message("user", (noise(edge, n), Span(words(task, n)))),)
        example = Example(f"{n}", "benchmark", asks, Reply(words(reply, 1000 + n), ""), opening=asks)
        made = encode(example, loaded, end=end, most=4096, find_label=False)
        writer.add(example.id, example.origin, made)
    writer.flush()
    shards = Shards.open(at / "shards", loaded.processor.vision, threads=8)
    tiles = 0
    for tensors in shards.load(range(len(shards))):
        tiles = max(tiles, *(each.shape[-4] for name, each in tensors.items() if name.startswith("pixel_values")))
    return shards, tiles


def _loop(asked: "Asked", folder: Path, config: Config, out: Path, shards: Shards) -> Loop:
    """The loop of `dikast train sft` on a model that was drawn on the device."""
    from benchmarks.gpu import empty

    empty(asked.device)
    loaded = random_model(folder, asked.device)
    made_ready(loaded.model, config)
    return Loop(config, loaded, shards, out, SingleProcess(), runs=("random",))


def _told(
    asked: "Asked", name: str, config: Config, shards: Shards, tiles: int, lines: list[dict[str, Any]], **more: Any
) -> None:
    """Report the pace of the steps after the first two, the share of the device's peak, and the peak of memory."""
    from benchmarks.gpu import most_bytes

    peak = most_bytes(asked.device)
    paces = np.diff([0.0, *(line["seconds"] for line in lines)])
    step = median(paces[min(2, len(paces) - 1) :])
    lengths, share = shards.lengths.tolist(), config.batch_size / len(shards)
    count = share * operations(
        model_config(config.path(config.init)), lengths, sum(_learnt(shards)), tiles * len(shards),
        lora=config.train == "lora",
    )  # fmt: skip
    rows, longest = _pass(config, shards)
    asked.report.tell(
        f"training {name}",
        steps=len(lines), tokens_a_step=sum(lengths) * share, seconds_a_step=step,
        tokens_a_second=sum(lengths) * share / step,
        operations_a_step=count, tflops=count / step / 1e12, of_peak=count / step / PEAK, rows_a_pass=rows,
        row_tokens=longest, losses=[line["loss"] for line in lines], waiting=lines[-1]["waiting"], peak_gb=peak / 1e9,
        **more,
    )  # fmt: skip


def _measured(asked: "Asked", folder: Path, out: Path, shards: Shards, tiles: int) -> None:
    """Some steps of full training without a checkpoint."""
    steps = max(4, asked.steps // 4)
    config = load_config(_settings(asked, folder, out, FULL))
    loop = _loop(asked, folder, config, out, shards)
    lines: list[dict[str, Any]] = []

    def watch(line: dict[str, Any]) -> None:
        lines.append(line)
        print("training full step", len(lines), line["seconds"], flush=True)
        if len(lines) >= steps or asked.left < 1.3 * line["seconds"] / len(lines):
            raise _Enough

    with suppress(_Enough):
        loop.train(watch=watch)
    _told(asked, "full", config, shards, tiles, lines)


def _resumed(asked: "Asked", folder: Path, out: Path, shards: Shards, tiles: int) -> None:
    """LoRA, stopped half way with a checkpoint, and resumed from it by another loop."""
    half, spent = asked.steps // 2, dict[str, float]()
    for part, stop in (("first", half), ("resumed", 0)):
        config = load_config(_settings(asked, folder, out, {**LORA, "steps": asked.steps, "stop_at": stop}))
        with _timed(spent, f"{part}_opening_seconds"):
            loop = _loop(asked, folder, config, out, shards)
        if part == "resumed" and loop.done != half:
            raise RuntimeError(f"resumed at step {loop.done}, expected {half}")
        lines: list[dict[str, Any]] = []
        with _timed(spent, f"{part}_seconds"):
            loop.train(watch=lines.append)
        del loop
    size = sum(path.stat().st_size for path in (out / "checkpoints").rglob("*.safetensors"))
    _told(asked, "lora", config, shards, tiles, lines, resumed_at=half, checkpoint_gb=size / 1e9, **spent)


def align(asked: "Asked") -> None:
    """One round: samples, rewards and pairs, and a run of `train dpo` on the pairs, each timed."""
    from benchmarks.gpu import empty, noise, words

    prompts, tokens, edge = (3, 8, 56) if asked.small else (4, 48, 384)
    with tempfile.TemporaryDirectory() as at:
        empty(asked.device)
        here = Path(at)
        loaded = random_model(model_folder("onevision", here / "model", small=asked.small), asked.device)
        items = []
        for n in range(prompts):
            shown = _saved(noise(edge, n), here / f"{n}.png")
            items.append(Item(f"{n}", instruction=(Turn("user", (shown, Text(words(20, n)))),), responses=()))
        engine = LocalEngine.of(loaded, name="random", window=4096)
        times: dict[str, float] = {}
        with _timed(times, "sample"):
            drawn = sampled(
                items, Draw("round-1", 5, Sampling(0.7, 0.9, tokens, 0)), lambda: engine, here / "round" / SAMPLES,
                lambda done, total: None,
            )  # fmt: skip
        asked.report.tell("align", sample_seconds=times["sample"], replies=5 * len(drawn))
        judge = Judge(engine, "helpfulness", format="score-only", compare_format="choice-only", read="only", min_mass=0)
        with _timed(times, "judge"):
            found = make_pairs(judge, drawn, here / "round", "full", 0.0, lambda n: n)
        asked.report.tell("align", judge_seconds=times["judge"], questions=found.verdicts, pairs=found.pairs)
        config = load_preference_config({
            "init": str(here / "model"), "out": str(here / "dpo"), "data": [{"items": [str(here / "round" / PAIRS)]}],
            "train": "lora", "precision": "bf16", "batch_size": 4, "log_every": 1, "max_tokens_per_micro_batch": 8192,
            "checkpointing": True,
        })  # fmt: skip
        with _timed(times, "train"):
            (here / "dpo").mkdir()
            made_ready(loaded.model, config)
            shards = prepare_shards(config, loaded, about(loaded), data_hash(config), SingleProcess())
            loop = PreferenceLoop(config, loaded, shards, here / "dpo", SingleProcess(), runs=("random",))
            lines: list[dict[str, Any]] = []
            loop.train(watch=lines.append)
        asked.report.tell(
            "align", prompts=prompts, samples=5, tokens=tokens, pairs=found.pairs, questions=found.verdicts,
            missing=found.missing, seconds=times, steps=len(lines), losses=[line["loss"] for line in lines],
        )  # fmt: skip


def _saved(image: Image, path: Path) -> Image:
    """The picture in a file, which the samples name."""
    from dikast.core.media import load_image

    load_image(image).picture.save(path)
    return Image(str(path))


@contextmanager
def _timed(into: dict[str, float], name: str) -> Iterator[None]:
    since = time.monotonic()
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    into[name] = time.monotonic() - since
