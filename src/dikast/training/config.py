"""The configuration of a training run (data, hyperparameters): a YAML file, with all mistakes reported at once."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from dikast.core.canonical import fingerprint
from dikast.core.checking import MOST_COUNT, MOST_NUMBER, MOST_SEED, Mistakes, option, read_settings
from dikast.core.former_names import under_former_names
from dikast.core.media.video import DEFAULT_FRAMES
from dikast.core.part import MOST_FRAMES
from dikast.core.text import Located, read_located

MOST_WORKERS = 1024
OWN = "own"
FORMATS = ("absolute", "pairwise")
_DEVICE = re.compile(r"auto|cpu|(cuda|xpu)(:\d+)?|mps")


@dataclass(frozen=True, slots=True)
class Data:
    """One source of examples: files of items with gold, each asked in every format of its kind; or rows of `talk`.

    The format `own` is the prompt that a built item was made with (a template of pairs, an evaluation prompt of the
    pool): if it is named, an item that has one is asked in that alone. Rows of `talk` may be of published forms:
    `instruction` and `output`, `conversations`, trl's; relative paths of their pictures start at the folder `images`.
    `items` or `talk` are paths relative to the configuration; patterns are allowed (`world/items-*.jsonl`). With
    several formats each item is asked in all of them, or, with `one_format`, in one drawn for it. `repeat`: passes over
    the source, each with new augmentation. `limit`: only the first records (0: all). `rubric` is for items without one.
    """

    items: tuple[str, ...] = ()
    talk: tuple[str, ...] = ()
    formats: tuple[str, ...] = (OWN, *FORMATS)
    images: str = ""
    one_format: bool = False
    rubric: str = ""
    repeat: int = option(1, least=1, most=MOST_COUNT)
    limit: int = option(0, least=0, most=MOST_COUNT)


@dataclass(frozen=True, slots=True)
class Augment:
    """Data augmentation: changes to items, drawn from the seed and the item's id.

    `swap`: the order in which a pair is shown: `random`, `both` (each pair twice), or `none` (as in the data). The
    others are probabilities: `drop_reference` (unless its score is asked for too); `drop_rubric` (ask by the scale
    alone); `drop_feedback` (teach the verdict without its prose); `permute_levels` (shuffle the rubric's level
    descriptions); `other_words` (replace, misspell or drop words of these descriptions, see `rubric_augmentation`);
    `blank` (an extra example with grey images, whose gold is the worst label with every claim unclear, and a tie for a
    pair).
    """

    swap: Literal["random", "both", "none"] = "random"
    drop_reference: float = option(0.0, least=0, most=1)
    drop_rubric: float = option(0.0, least=0, most=1)
    drop_feedback: float = option(0.0, least=0, most=1)
    permute_levels: float = option(0.0, least=0, most=1)
    other_words: float = option(0.0, least=0, most=1)
    blank: float = option(0.0, least=0, most=1)


@dataclass(frozen=True, slots=True)
class Lora:
    """Low-rank adapters (Hu et al. 2021). `targets`: `language` (every linear layer of the language model but its head)
    or a regular expression on module names.
    """

    rank: int = option(16, least=1, most=MOST_COUNT)
    alpha: float = option(32.0, above=0, most=MOST_NUMBER)
    dropout: float = option(0.0, least=0, below=1)
    targets: str = "language"


@dataclass(frozen=True, slots=True)
class Eval:
    """Judge metrics during training: `items` with gold are judged every `every` steps, and at the end.

    `limit`: items of a file. `formats` as in data; `read`, `min_mass` and `max_tokens` as for a judge.
    """

    items: tuple[str, ...] = ()
    every: int = option(0, least=0, most=MOST_COUNT)
    limit: int = option(200, least=0, most=MOST_COUNT)
    formats: tuple[str, ...] = FORMATS
    rubric: str = ""
    read: Literal["auto", "only", "never"] = "auto"
    min_mass: float = option(0.5, least=0, most=1)
    max_tokens: int = option(512, least=1, most=MOST_COUNT)
    batch_size: int = option(16, least=1, most=MOST_COUNT)


@dataclass(frozen=True, slots=True)
class Config:
    """A training run. Paths are relative to the configuration's file.

    seed: of every draw: augmentation, the order of examples, first weights.
    model: a folder or `hf:ORG/NAME[@REV]`; or init: a folder with config.json and tokenizer, weights drawn from `seed`.
    train: `full`, `lora`, or `projector` (what joins vision to language; all else frozen). frozen: regular expressions
    of parameter names that stay as they are.
    steps: optimiser steps (0: `epochs` through the data). stop_at: end after so many of them, with the model
    as it is then, for a stage that a next one takes over (0: never); the rate goes by all steps.
    batch_size: examples a step, over all processes. group_by_length: those of about one length together.
    pack: `rows` lays the rows of a forward pass end to end, each seeing only itself, so that nothing is padded; `trees`
    also computes once what rows of one task begin with, and keeps these in one step.
    max_tokens: maximum tokens of one example, prompt and reply; a longer one stops the run before its first step.
    max_tokens_per_micro_batch: maximum tokens, padding included, of one forward pass; gradients are accumulated.
    frames: how many are sampled from a video file that names no number, here and in `eval`.
    optimizer: `adamw`; `muon`: linear layers by Muon, the rest by AdamW, at one rate, much faster from scratch; or, for
    less memory, `adamw8bit` (moments in 8 bits, extra `lowbit`) or `adafactor` (sums of rows and columns in place of
    moments, and `learning_rate` relative to the size of the weights), both in one process.
    learning_rate: the peak, per step; it rises linearly over `warmup` (below 1 a share of the steps, else so many)
    and falls by `schedule` to `min_lr_ratio`, a share of itself. weight_decay: of matrices, not of vectors; betas: of
    AdamW; clip: maximum norm of the gradient (0: no clipping).
    checkpointing: compute activations again in the backward pass, which takes time and saves memory. compile:
    torch.compile of the repeated layers. device: `auto` (CUDA, with `model` also MPS, else the CPU), `cpu`, `cuda`,
    `cuda:N`, `mps` or `xpu`.
    save_every: steps between checkpoints (0: at the end alone), of which the last `keep` stay. log_every: steps a line.
    precision: `fp32`; `bf16`: bf16 arithmetic on fp32 weights, frozen ones (as under LoRA) in bf16 if there is one
    process; `bf16-master`: bf16 weights and gradients, the rest of their fp32 values and fp32
    moments in the optimizer.
    label_loss_weight: how much the tokens of the verdict's label count in the loss, the others 1. label_smoothing: the
    share of the weight of the label's token that goes to the question's other labels, evenly, so that none is certain.
    shards: where the prepared examples are kept (`out`/shards). workers: processes that prepare them, and then, in each
    process that trains, threads that read and prepare pictures ahead of the steps.
    max_seconds: stop with a checkpoint after so long (0: never); the same command goes on from it.
    """

    out: str
    data: tuple[Data, ...]
    model: str = ""
    init: str = ""
    train: Literal["full", "lora", "projector"] = "full"
    frozen: tuple[str, ...] = ()
    lora: Lora = field(default_factory=Lora)
    augment: Augment = field(default_factory=Augment)
    eval: Eval = field(default_factory=Eval)
    seed: int = option(0, least=0, most=MOST_SEED)
    steps: int = option(0, least=0, most=MOST_COUNT)
    stop_at: int = option(0, least=0, most=MOST_COUNT)
    epochs: float = option(1.0, above=0, most=MOST_COUNT)
    batch_size: int = option(32, least=1, most=MOST_COUNT)
    max_tokens_per_micro_batch: int = option(16_384, least=1, most=MOST_COUNT)
    max_tokens: int = option(4096, least=2, most=MOST_COUNT)
    frames: int = option(DEFAULT_FRAMES, least=1, most=MOST_FRAMES)
    optimizer: Literal["adamw", "muon", "adamw8bit", "adafactor"] = "adamw"
    learning_rate: float = option(1e-5, above=0, most=MOST_NUMBER)
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup: float = option(0.03, least=0, most=MOST_COUNT)
    min_lr_ratio: float = option(0.0, least=0, most=1)
    weight_decay: float = option(0.0, least=0, most=MOST_NUMBER)
    betas: tuple[float, float] = option((0.9, 0.95), least=0, below=1)
    clip: float = option(1.0, least=0, most=MOST_NUMBER)
    label_loss_weight: float = option(1.0, least=0, most=MOST_NUMBER)
    label_smoothing: float = option(0.0, least=0, below=0.5)
    precision: Literal["fp32", "bf16", "bf16-master"] = "fp32"
    checkpointing: bool = False
    compile: bool = False
    device: str = "auto"
    group_by_length: bool = True
    pack: Literal["none", "rows", "trees"] = "none"
    save_every: int = option(500, least=0, most=MOST_COUNT)
    keep: int = option(2, least=1, most=MOST_COUNT)
    log_every: int = option(10, least=1, most=MOST_COUNT)
    max_seconds: float = option(0.0, least=0, most=MOST_COUNT)
    workers: int = option(1, least=1, most=MOST_WORKERS)
    shards: str = ""
    source: str = option("", internal=True)
    root: str = option("", internal=True)

    def path(self, name: str) -> Path:
        """A path named in the configuration, resolved from the folder of its file."""
        return Path(self.root) / Path(name).expanduser()

    @property
    def hash(self) -> str:
        """Fingerprint of everything that determines the weights, except for the content of the data, and for rounding:
        micro-batches may change in size between a run and its continuation.
        """
        return self._hash(paths=False)

    def runs(self, data: str, start: Any) -> tuple[str, str]:
        """The identity of a run on this data from this model; second the one that it had when paths of data counted."""
        return fingerprint([self.hash, data, start]), fingerprint([self._hash(paths=True), data, start])

    def _hash(self, *, paths: bool) -> str:
        value = dataclasses.asdict(self)
        for key in (
            "out",
            "eval",
            "max_tokens_per_micro_batch",
            "checkpointing",
            "compile",
            "device",
            "keep",
            "save_every",
            "log_every",
            "max_seconds",
            "stop_at",
            "workers",
            "shards",
            "source",
            "root",
        ):
            value.pop(key)
        if self.pack == "none":
            value.pop("pack")  # runs from before there was packing go on
        if not self.label_smoothing:
            value.pop("label_smoothing")  # nor had they this
        value["data"] = [as_before(each) for each in value["data"]]
        for each in () if paths else value["data"]:
            del each["items"], each["talk"]
        value["augment"] = as_before(value["augment"])
        return fingerprint(under_former_names(value))


_LATER: dict[str, Any] = {"images": "", "drop_rubric": 0.0, "drop_feedback": 0.0}


def as_before(value: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a source or of augmentation without keys of later versions that are not used, for fingerprints."""
    kept = {key: each for key, each in value.items() if key not in _LATER or each != _LATER[key]}
    if tuple(kept.get("formats", ())) == (OWN, *FORMATS):
        kept["formats"] = FORMATS
    return kept


def load_config(source: str | Path | Mapping[str, Any]) -> Config:
    """A configuration from a YAML file, or from a mapping, whose paths start at the working directory.

    DataError with line, key and cure for every mistake in it.
    """
    return config_as(Config, source, lambda config, wrong: None)


C = TypeVar("C", bound=Config)


def config_as(
    kind: type[C], source: str | Path | Mapping[str, Any], check: Callable[[C, Callable[..., None]], None]
) -> C:
    """As `load_config`, for a kind of configuration that has keys of its own; `check` tells what is wrong with them."""
    path = Path("configuration") if isinstance(source, Mapping) else Path(source)
    document = Located(dict(source), str(path)) if isinstance(source, Mapping) else read_located(path)
    mistakes = Mistakes(document)
    config = read_settings(kind, mistakes)
    if config is not None:
        _check(config, mistakes.add)
        check(config, mistakes.add)
    mistakes.raise_all()
    assert config is not None
    return dataclasses.replace(config, source=str(path), root=str(Path(path).resolve().parent))


def _check(config: Config, wrong: Callable[..., None]) -> None:
    """Check what concerns several fields."""
    if bool(config.model) == bool(config.init):
        wrong("give 'model' (weights to start from) or 'init' (a configuration to start from scratch), one of them")
    if not config.data:
        wrong("there is no source of examples", "data")
    for i, data in enumerate(config.data):
        if bool(data.items) == bool(data.talk):
            wrong("a source has 'items' or 'talk', one of them", "data", i)
        if data.items and not data.formats:
            wrong("name a format, or several", "data", i, "formats")
    if config.label_smoothing and not any(data.items for data in config.data):
        wrong("rows of talk have no label: leave it out, or train on items too", "label_smoothing")
    if config.pack != "none" and config.compile:
        wrong(
            "packed rows are never alike in their segments, so each pass would be compiled anew: leave it out",
            "compile",
        )
    if config.precision == "bf16-master" and config.optimizer != "adamw":
        wrong("keeps float32 weights for AdamW alone: use 'bf16', or optimizer: adamw", "precision")
    if not _DEVICE.fullmatch(config.device):
        wrong(f"expected auto, cpu, cuda, cuda:N, mps or xpu, got {config.device!r}", "device")
    for at, patterns in ((("frozen",), config.frozen), (("lora", "targets"), (config.lora.targets,))):
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                wrong(f"{pattern!r} is not a regular expression: {error}", *at)
