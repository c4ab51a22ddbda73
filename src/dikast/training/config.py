"""What a training run is told: a YAML file as frozen values, every mistake told at once."""

import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from dikast.core.canonical import fingerprint
from dikast.core.part import MOST_FRAMES
from dikast.core.text import Located, near_miss, read_located
from dikast.core.video import DEFAULT_FRAMES

_LEAST = {
    "batch_size": 1,
    "micro_tokens": 1,
    "max_tokens": 2,
    "log_every": 1,
    "keep": 1,
    "workers": 1,
    "steps": 0,
    "save_every": 0,
    "stop_at": 0,
    "clip": 0,
    "verdict_weight": 0,
    "weight_decay": 0,
    "max_seconds": 0,
}
_DEVICE = re.compile(r"auto|cpu|(cuda|xpu)(:\d+)?|mps")


@dataclass(frozen=True, slots=True)
class Data:
    """One source of examples: files of items with gold, each asked in every format of its kind; or rows of talk.

    `items` or `talk` are paths relative to the configuration, patterns allowed (`world/items-*.jsonl`). With several
    formats each item is asked in all of them, or, with `one_format`, in one drawn for it. `repeat` uses it that often,
    augmented anew each time; `limit` takes the first so many records (0: all). `rubric` is for items without their own.
    """

    items: tuple[str, ...] = ()
    talk: tuple[str, ...] = ()
    formats: tuple[str, ...] = ("absolute", "pairwise")
    one_format: bool = False
    rubric: str = ""
    repeat: int = 1
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Augment:
    """Changes to items before they are asked, all drawn from the seed and the item's id.

    `swap`: which order a pair is shown in: `random`, `both` (each pair twice), or `none` (as it stands).
    `drop_reference`, `permute_levels` (the rubric's level descriptions in another order), `other_words` (some words of
    these descriptions made up, misspelt or left out, see `noise`), `blank` (an extra example with every image grey,
    whose gold is the worst label with every claim unclear, a pair's a tie): probabilities.
    """

    swap: Literal["random", "both", "none"] = "random"
    drop_reference: float = 0.0
    permute_levels: float = 0.0
    other_words: float = 0.0
    blank: float = 0.0


@dataclass(frozen=True, slots=True)
class Lora:
    """Low-rank adapters (Hu et al. 2021). `targets`: `language` (every linear layer of the language model but its head)
    or a regular expression on module names.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: str = "language"


@dataclass(frozen=True, slots=True)
class Eval:
    """Judge metrics while training: `items` (gold on them) are judged every `every` steps, and at the end.

    `limit` items a file. `formats` as in data; `read`, `min_mass` and `max_tokens` as a judge takes them.
    """

    items: tuple[str, ...] = ()
    every: int = 0
    limit: int = 200
    formats: tuple[str, ...] = ("absolute", "pairwise")
    rubric: str = ""
    read: Literal["auto", "only", "never"] = "auto"
    min_mass: float = 0.5
    max_tokens: int = 512
    batch_size: int = 16


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
    max_tokens: the most of one example, asked and answered; a longer one stops the run before its first step.
    micro_tokens: most tokens, padding included, of one forward pass; the rest of a step is accumulated.
    frames: how many are sampled from a video file that names no number, here and in `eval`.
    optimizer: `adamw`; or `muon`: linear layers by Muon, the rest by AdamW, at one rate. Much faster from scratch.
    learning_rate: the highest, per step; it rises linearly over `warmup` (below 1 a share of the steps, else so many)
    and falls by `schedule` to `final_rate`, a share of itself. weight_decay: of matrices, not of vectors; betas: of
    AdamW; clip: the most that the norm of the gradient may be (0: anything).
    checkpointing: compute activations again on the way back, which takes time and saves memory. compile: torch.compile
    of the repeated layers. device: `auto` (CUDA, with `model` also MPS, else the CPU), `cpu`, `cuda`, `cuda:N`, `mps`
    or `xpu`.
    save_every: steps between checkpoints (0: at the end alone), of which the last `keep` stay. log_every: steps a line.
    precision: `fp32`, `bf16` (fp32 weights, bf16 arithmetic), `pure-bf16` (bf16 weights and moments).
    verdict_weight: how much the tokens of the verdict's label count in the loss, the others 1.
    shards: where the prepared examples are kept (`out`/shards). workers: processes that prepare them.
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
    seed: int = 0
    steps: int = 0
    stop_at: int = 0
    epochs: float = 1.0
    batch_size: int = 32
    micro_tokens: int = 16_384
    max_tokens: int = 4096
    frames: int = DEFAULT_FRAMES
    optimizer: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = 1e-5
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup: float = 0.03
    final_rate: float = 0.0
    weight_decay: float = 0.0
    betas: tuple[float, ...] = (0.9, 0.95)
    clip: float = 1.0
    verdict_weight: float = 1.0
    precision: Literal["fp32", "bf16", "pure-bf16"] = "fp32"
    checkpointing: bool = False
    compile: bool = False
    device: str = "auto"
    group_by_length: bool = True
    save_every: int = 500
    keep: int = 2
    log_every: int = 10
    max_seconds: float = 0.0
    workers: int = 1
    shards: str = ""
    source: str = ""
    root: str = ""

    def path(self, name: str) -> Path:
        """A path of the configuration, from the folder of its file."""
        return Path(self.root) / Path(name).expanduser()

    @property
    def hash(self) -> str:
        """Fingerprint of everything that decides which weights come out, but for rounding: a run that did not fit into
        memory goes on with smaller pieces.
        """
        value = dataclasses.asdict(self)
        for key in (
            "out",
            "eval",
            "micro_tokens",
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
        return fingerprint(value)


def load_config(path: str | Path) -> Config:
    """A configuration from a YAML file; DataError with line, key and cure for every mistake in it."""
    document = read_located(path)
    mistakes: list[str] = []
    values = _fields(Config, document, (), mistakes)
    values.pop("root", None)
    if not mistakes:
        _check(document, values, mistakes)
    if mistakes:
        raise document.error("\n".join(["this configuration cannot be used:", *(f"  {each}" for each in mistakes)]))
    return Config(**values, source=str(path), root=str(Path(path).resolve().parent))


def _fields(kind: type[Any], document: Located, at: tuple[object, ...], mistakes: list[str]) -> dict[str, Any]:
    value = document.value
    for key in at:
        value = value[key]
    if not isinstance(value, dict):
        mistakes.append(str(document.error(f"expected a mapping, got {value!r}", *at)))
        return {}
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind) if f.name not in ("source", "root")]
    found: dict[str, Any] = {}
    for key in value:
        if key not in known:
            near = near_miss(str(key), known)
            hint = f"did you mean {near!r}?" if near else f"known keys: {', '.join(known)}"
            mistakes.append(str(document.error(f"unknown key: {hint}", *at, key)))
            continue
        found[key] = _value(hints[key], value[key], document, (*at, key), mistakes)
    for each in dataclasses.fields(kind):
        required = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if required and each.name not in value:
            mistakes.append(str(document.error(f"the key {each.name!r} is missing", *at)))
    return found


def _value(hint: Any, value: Any, document: Located, at: tuple[object, ...], mistakes: list[str]) -> Any:
    def wrong(expected: str) -> Any:
        mistakes.append(str(document.error(f"expected {expected}, got {value!r}", *at)))
        return None

    if dataclasses.is_dataclass(hint):
        before = len(mistakes)
        fields = _fields(typing.cast(type[Any], hint), document, at, mistakes)
        return typing.cast(Any, hint)(**fields) if len(mistakes) == before else None
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        if not isinstance(value, list):
            if dataclasses.is_dataclass(inner):
                return wrong("a list")
            return (_value(inner, value, document, at, mistakes),)
        return tuple(_value(inner, value[i], document, (*at, i), mistakes) for i in range(len(value)))
    if get_origin(hint) is Literal:
        return value if value in get_args(hint) else wrong(" or ".join(map(str, get_args(hint))))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, str):  # YAML reads 1e-5 as text
        try:
            return float(value)
        except ValueError:
            return wrong("a number")
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if isinstance(hint, types.UnionType) or type(value) is not hint:
        return wrong(names.get(hint, str(hint)))
    return value


def _check(document: Located, values: dict[str, Any], mistakes: list[str]) -> None:
    def wrong(message: str, *at: object) -> None:
        mistakes.append(str(document.error(message, *at)))

    _check_sources(values, wrong)
    for key, low in _LEAST.items():
        if not low <= values.get(key, low) < math.inf:
            wrong(f"must be at least {low} and finite, got {values[key]}", key)
    for key in ("learning_rate", "epochs"):
        if not 0 < values.get(key, 1.0) < math.inf:
            wrong(f"must be above 0 and finite, got {values[key]}", key)
    if not 0 <= values.get("warmup", 0.0) < math.inf:
        wrong("is a share of the steps (below 1) or a number of steps", "warmup")
    if not 0 <= values.get("final_rate", 0.0) <= 1:
        wrong("is the share of the rate that is left at the end, from 0 to 1", "final_rate")
    if not 0 <= values.get("seed", 0) < 2**63:
        wrong("is a whole number from 0 to 2**63 - 1", "seed")
    _check_kinds(values, wrong)
    augment = values.get("augment") or Augment()
    for key in ("drop_reference", "permute_levels", "other_words", "blank"):
        if not 0 <= getattr(augment, key) <= 1:
            wrong("is a probability from 0 to 1", "augment", key)


def _check_kinds(values: dict[str, Any], wrong: Callable[..., None]) -> None:
    betas = values.get("betas", (0, 0))
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        wrong("are two numbers from 0 to below 1", "betas")
    if not 1 <= values.get("frames", 1) <= MOST_FRAMES:
        wrong(f"is how many to sample from a video, from 1 to {MOST_FRAMES}", "frames")
    if not _DEVICE.fullmatch(values.get("device", "auto")):
        wrong("is auto, cpu, cuda, cuda:N, mps or xpu", "device")
    lora, judged = values.get("lora") or Lora(), values.get("eval") or Eval()
    if lora.rank < 1:
        wrong("is 1 or more", "lora", "rank")
    if not 0 <= lora.dropout < 1:
        wrong("is a probability from 0 to below 1", "lora", "dropout")
    if not 0 < lora.alpha < math.inf:
        wrong("is above 0", "lora", "alpha")
    if judged.every < 0 or judged.limit < 0:
        wrong("'every' and 'limit' are 0 or more", "eval")
    if judged.max_tokens < 1 or judged.batch_size < 1:
        wrong("'max_tokens' and 'batch_size' are 1 or more", "eval")
    if not 0 <= judged.min_mass <= 1:
        wrong("is a probability from 0 to 1", "eval", "min_mass")
    for at, patterns in ((("frozen",), values.get("frozen", ())), (("lora", "targets"), (lora.targets,))):
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                wrong(f"{pattern!r} is not a regular expression: {error}", *at)


def _check_sources(values: dict[str, Any], wrong: Callable[..., None]) -> None:
    if bool(values.get("model")) == bool(values.get("init")):
        wrong("give 'model' (weights to start from) or 'init' (a configuration to start from scratch), one of them")
    if not values["data"]:
        wrong("there is no source of examples", "data")
    for i, data in enumerate(values["data"]):
        if bool(data.items) == bool(data.talk):
            wrong("a source has 'items' or 'talk', one of them", "data", i)
        if data.items and not data.formats:
            wrong("name a format, or several", "data", i, "formats")
        if data.repeat < 1 or data.limit < 0:
            wrong("'repeat' is 1 or more, 'limit' 0 (all) or more", "data", i)
