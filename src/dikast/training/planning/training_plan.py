"""The plan of a training run: memory by part, hours, disk; whether it fits, and which settings would make it fit."""

import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dikast.core.errors import UserError, require
from dikast.training.config import Config

if TYPE_CHECKING:
    from dikast.training.planning.step_cost import Work

_log = logging.getLogger(__name__)
GB = 1e9
SHARE = 0.3  # assumed: of a card's peak in training
_LOOSE = 0.2  # weights, gradients and moments of less than this share of the memory: a run starts without a full plan
# optimizer's bytes a trained weight; of Muon at most; of Adafactor for matrices of 64 x 64, of larger ones less
_STATE = {"adamw": 8, "muon": 8, "bf16-master": 10, "adamw8bit": 2.04, "adafactor": 0.13}
# temporary bytes of a step, a weight of the largest tensor
_IN_STEP = {"adamw": 8, "muon": 12, "bf16-master": 28, "adamw8bit": 16, "adafactor": 16}

_ALONE = ("adamw8bit", "adafactor")  # their state is not cut as the weights are


@dataclass(frozen=True, slots=True)
class Accelerator:
    """An accelerator: bytes of memory, and operations a second in bfloat16 (NVIDIA's data sheets)."""

    name: str
    memory: float
    peak: float


CARDS = {each.name: each for each in (
    Accelerator("A100", 80e9, 312e12), Accelerator("H100", 80e9, 989e12), Accelerator("H200", 141e9, 989e12),
)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelCounts:
    """Weights of a model, in all and trained, their bytes; `root` and `layer`: bytes that processes gather at a time.

    `largest`: weights of the largest trained tensor.
    """

    parameters: int
    trained: int
    weights: int
    gradients: int
    root: int
    layer: int
    largest: int


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """`memory`: bytes a card by part; `tokens` of a whole run; `operations` a token; disk in bytes.

    Memory is the larger of two moments: the backward pass, and the optimizer's step (where `in_step` takes the place of
    activations and logits).
    """

    counts: ModelCounts
    cards: int
    memory: dict[str, float]
    operations: float
    checkpoint: float
    disk: float

    @property
    def total(self) -> float:
        """Bytes a card at the worst moment."""
        fixed = sum(self.memory[name] for name in ("weights", "gradients", "optimizer"))
        passing = sum(self.memory[name] for name in ("gathered", "activations", "logits"))
        return fixed + max(passing, self.memory["in_step"])

    def hours(self, tokens: float, card: Accelerator, rate: float = 0.0) -> float:
        """Hours for so many tokens; rate: tokens a second of one card, 0 for `SHARE` of its peak."""
        return tokens / ((rate or SHARE * card.peak / self.operations) * self.cards) / 3600


def shape_of(config: Config, folder: Path | None = None) -> Any:
    """The transformers configuration of the model that is trained, or of a `folder` that has its shape alone."""
    from dikast.engines.local.trusted import model_config
    from dikast.training.models.model import source_of

    return model_config(folder or source_of(config).folder)


def counts_of(config: Config, shape: Any) -> ModelCounts:
    """The number of weights of the model, without creating them."""
    from dikast.training.planning.step_cost import unloaded

    model = unloaded(config, shape)
    sizes = {name: (each.numel(), each.numel() * each.element_size()) for name, each in model.named_parameters()}
    trained = [each for each in model.parameters() if each.requires_grad]
    kinds = set(model._no_split_modules or ())
    layers = [sum(p.numel() * p.element_size() for p in module.parameters())
              for module in model.modules() if type(module).__name__ in kinds]  # fmt: skip
    weights = sum(size for _, size in sizes.values())
    return ModelCounts(
        parameters=sum(number for number, _ in sizes.values()),
        trained=sum(each.numel() for each in trained),
        weights=weights,
        gradients=sum(each.numel() * each.element_size() for each in trained),
        root=weights - sum(layers),
        layer=max(layers, default=0),
        largest=max(each.numel() for each in trained),
    )


def _kind(config: Config) -> str:
    return config.precision if config.precision == "bf16-master" else config.optimizer


def plan(config: Config, shape: Any, work: "Work", *, cards: int = 1) -> TrainingPlan:
    """The plan for this number of cards, over which FSDP2 shards weights, gradients and moments; `work` is one card's
    pass.
    """
    from dikast.engines.local.trusted import configured
    from dikast.training.planning.step_cost import step_cost

    check_optimizer(config, cards)
    counts = counts_of(config, shape)
    summed = config.batch_size > work.rows * cards
    with configured(shape._name_or_path):
        cost = step_cost(config, shape, work, summed=summed)
    state = counts.trained * _STATE[_kind(config)]
    vocabulary = shape.get_text_config().vocab_size
    width = 4 if config.precision == "fp32" else 2
    logits = float(work.learnt * vocabulary * (width + 8))  # as the head gives them, in float32, and their gradient
    passing = max(cost.peak - counts.weights - counts.gradients - logits, 0.0)
    memory = {
        "weights": counts.weights / cards,
        "gradients": counts.gradients / cards,
        "optimizer": state / cards,
        "gathered": counts.root + 3.0 * counts.layer if cards > 1 else 0.0,
        "activations": passing,
        "logits": logits,
        "in_step": counts.largest * _IN_STEP[_kind(config)] / cards,
    }
    checkpoint = float(counts.gradients + state)  # trained weights have the type of their gradients
    return TrainingPlan(
        counts, cards, memory, cost.operations / (work.rows * work.tokens), checkpoint, disk_of(config, counts)
    )


def disk_of(config: Config, counts: ModelCounts) -> float:
    """Bytes that a run writes at most at one time: `keep` checkpoints and the next, and the model that it ends with."""
    checkpoint = counts.gradients + counts.trained * _STATE[_kind(config)]
    return float((config.keep + 1) * checkpoint + counts.parameters * (2 if config.precision == "bf16-master" else 4))


def work_of(config: Config, *, length: int = 0, learnt: int = 0, tiles: int = 0) -> "Work":
    """The largest forward pass that the configuration allows, of rows of `length` tokens (0: `max_tokens`).

    learnt: tokens of a row that count in the loss (0: a quarter); tiles: image tiles of a row.
    """
    from dikast.training.planning.step_cost import Work

    length = min(length or config.max_tokens, config.max_tokens)
    rows = max(1, min(config.max_tokens_per_micro_batch // length, config.batch_size))
    return Work(rows, length, rows * (learnt or max(1, length // 4)), rows * tiles)


def fits(config: Config, shape: Any, work: "Work", *, cards: int, memory: float) -> TrainingPlan:
    """The plan, if the memory of a card holds it; else UserError, with the settings that would make it fit."""
    made = plan(config, shape, work, cards=cards)
    if made.total <= memory:
        return made
    raise UserError(
        f"{config.source}: this run takes {made.total / GB:.1f} GB a card at its worst moment "
        f"({_in_words(made.memory)}), and there are {memory / GB:.1f} GB: {cure(config, shape, work, cards, memory)}"
    )


def _in_words(memory: dict[str, float]) -> str:
    """The parts of a card's memory in words."""
    parts = ((name, size / GB) for name, size in memory.items() if name != "in_step" and size)
    return ", ".join(f"{name} {size:.3g}" for name, size in parts) + f"; in the step {memory['in_step'] / GB:.3g}"


def cure(config: Config, shape: Any, work: "Work", cards: int, memory: float) -> str:
    """The first change, or set of changes, with which the run fits."""
    told: list[str] = []
    changed, pass_ = config, work
    for name, changed, pass_ in _milder(config, work):
        told.append(name)
        if plan(changed, shape, pass_, cards=cards).total <= memory:
            return f"it would fit with {', '.join(told)}"
    if changed.optimizer in _ALONE:
        changed = replace(changed, optimizer="adamw")
        told.append("optimizer: adamw")
    for more in (2, 8, 64):
        if plan(changed, shape, pass_, cards=more * cards).total <= memory:
            return f"it would fit with {', '.join([*told, f'{more * cards} cards (fsdp2.yaml)'])}"
    return "no setting makes it fit: take a smaller model"


def _milder(config: Config, work: "Work") -> Iterator[tuple[str, Config, "Work"]]:
    """Settings that need less and less memory, each in addition to those before it."""
    if not config.checkpointing:
        config = replace(config, checkpointing=True)
        yield "checkpointing: true", config, work
    if work.rows > 1:
        most = config.max_tokens
        config = replace(config, max_tokens_per_micro_batch=most)
        one = work.learnt // work.rows, work.tiles // work.rows
        work = replace(work, rows=1, learnt=one[0], tiles=one[1])
        yield f"max_tokens_per_micro_batch: {most}", config, work
    if config.precision != "bf16-master" and config.train == "full" and config.optimizer == "adamw":
        config = replace(config, precision="bf16-master")
        yield "precision: bf16-master", config, work
    if config.train == "full" and not config.frozen:
        config = replace(config, train="lora", precision="bf16")
        yield "train: lora and precision: bf16", config, work


def check_before_loading(config: Config) -> None:
    """UserError for a run that cannot fit into this machine's memory, or whose checkpoints cannot fit on its disk.

    Exact for weights, gradients and moments. Where these take more than a fifth of the memory, a pass of one row of
    `max_tokens` is counted too; where they take less, as in all small models, it is not, so that starting is not
    delayed. Says where bfloat16 would be slow.
    """
    _tell_slow_bf16(config)
    cards, memory = int(os.environ.get("WORLD_SIZE", "1")), memory_of(config)
    check_optimizer(config, cards)
    shape = shape_of(config)
    counts = counts_of(config, shape)
    check_disk(config, counts)
    dealt = cards if os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true" else 1
    if (counts.weights + counts.gradients + counts.trained * _STATE[_kind(config)]) / dealt > _LOOSE * memory:
        row = work_of(replace(config, max_tokens_per_micro_batch=config.max_tokens))
        fits(config, shape, row, cards=dealt, memory=memory)


def _tell_slow_bf16(config: Config) -> None:
    """Say that this processor does bfloat16 without instructions for it, several times slower than float32."""
    import torch

    from dikast.training.models.model import device_of

    without = torch.backends.cpu.get_cpu_capability() == "AVX2"
    if config.precision != "fp32" and without and device_of(config).type == "cpu":
        _log.warning(
            "%s: precision: %s takes several times as long as fp32 here, since this processor has no AVX-512",
            config.source, config.precision,
        )  # fmt: skip


def check_optimizer(config: Config, processes: int) -> None:
    """UserError for an optimizer that several processes cannot use; MissingExtra for one that is not installed."""
    if processes > 1 and config.optimizer in _ALONE:
        told = f"{config.source}: optimizer: {config.optimizer} trains in one process, not in {processes}"
        raise UserError(f"{told}: use adamw, or start it without accelerate or torchrun")
    if config.optimizer == "adamw8bit":
        require("torchao.optim", "lowbit")


def check_disk(config: Config, counts: ModelCounts) -> None:
    """UserError if the disk of `out` would not hold the checkpoints and the model; existing ones count."""
    out = config.path(config.out)
    there = next(each for each in (out, *out.parents) if each.is_dir())
    written = sum(path.stat().st_size for part in ("checkpoints", "model") for path in (out / part).rglob("*.*"))
    free, needed = shutil.disk_usage(there).free, disk_of(config, counts)
    if needed - written > free:
        each = (counts.gradients + counts.trained * _STATE[_kind(config)]) / GB
        raise UserError(
            f"{out}: the run writes up to {needed / GB:.1f} GB (checkpoints of {each:.1f} GB each, 'keep' "
            f"{config.keep} and one more, and the model) and {(free + written) / GB:.1f} GB are free: free space, name "
            "another 'out', lower 'keep', or train less of the model (train: lora)"
        )


def memory_of(config: Config) -> float:
    """Bytes of memory of the device that the configuration names; of a CPU the part of each process."""
    import torch

    from dikast.training.models.model import device_of

    device = device_of(config)
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    found = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (told := limit.read_text().strip()).isdigit():
        found = min(found, float(told))
    return found / int(os.environ.get("LOCAL_WORLD_SIZE", os.environ.get("WORLD_SIZE", "1")))
