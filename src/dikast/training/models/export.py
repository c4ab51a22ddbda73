"""Export of a training run for trl: a YAML file and Parquet data that `trl sft` or `trl dpo` runs.

trl renders the chat template and tokenises by itself. It does not mark untrusted text: a special token spelt out in an
item acts as one there, while Dikast's own loop keeps it as text. Clips are exported as frames.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dikast.core.errors import DataError, UserError, require
from dikast.core.media import check_image, image_file
from dikast.core.message import Message, Span
from dikast.core.output_folder import one_writer
from dikast.core.part import Image
from dikast.engines.local.source import on_hub
from dikast.training.config import Config
from dikast.training.data.examples import Example, ExampleRow, rows_of_file
from dikast.training.data.prepare import units_of
from dikast.training.preferences import PreferenceConfig, asker_of

_VISION = r"(?!.*(vision_tower|vision_model|visual|multi_modal_projector|lm_head)).*"
_LINEAR = "(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"


def export_trl(config: Config, folder: Path) -> dict[str, Any]:
    """Write `sft.yaml` and `data/*.parquet` into the new folder; run with `cd FOLDER && trl sft --config sft.yaml`.

    Preferences give `dpo.yaml`, for `trl dpo --config dpo.yaml`; the reference is computed there in each step, since
    trl keeps none for rows with images.
    UserError for what trl cannot do: start from scratch, train only the projector, freeze by name, weight or smooth
    the label's loss, use Muon, stop before the end of the schedule. `max_tokens` neither truncates nor refuses rows
    there.
    """
    datasets = require("datasets", "train")
    if not config.model:
        raise UserError("trl starts from a model's weights: give 'model' instead of 'init'")
    for key, plain in (
        ("frozen", ()),
        ("label_loss_weight", 1.0),
        ("label_smoothing", 0.0),
        ("min_lr_ratio", 0.0),
        ("optimizer", "adamw"),
        ("stop_at", 0),
        ("dpop", 0.0),
    ):
        if getattr(config, key, plain) != plain:
            raise UserError(f"trl has no counterpart of {key!r}: leave it out, or train with Dikast itself")
    if config.train == "projector":
        raise UserError("trl cannot train only the projector: use train: full or lora, or train with Dikast itself")
    if not config.path(config.model).is_dir() and not on_hub(config.model):
        raise UserError(f"model: {config.model} is no folder, and no name on the Hub (ORG/NAME)")
    with one_writer(folder, "exporting"):
        if any(folder.iterdir()):
            raise UserError(f"{folder}: is not empty: name a new folder, or empty it")
        try:
            seen, n = _write(config, folder, datasets)
        except BaseException:
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            raise
    return {"examples": n, "images": seen, "folder": str(folder)}


def _write(config: Config, folder: Path, datasets: Any) -> tuple[bool, int]:
    """Write data and settings; returns whether any row has media, and the number of rows."""
    seen = _check(config)
    text = datasets.Value("string")
    turn = [{"role": text, "content": [{"type": text, "text": text}]}]
    pairs = isinstance(config, PreferenceConfig)
    features = {name: turn for name in (("prompt", "chosen", "rejected") if pairs else ("prompt", "completion"))}
    if seen:
        features["images"] = datasets.List(datasets.Image())
    (folder / "data").mkdir()
    rows = datasets.Dataset.from_generator(
        _pair_rows if pairs else _rows,
        features=datasets.Features(features),
        gen_kwargs={"config": config, "seen": seen},
        cache_dir=str(folder / "cache"),
    )
    rows.to_parquet(folder / "data" / "train-00000.parquet")
    shutil.rmtree(folder / "cache")
    name = "dpo.yaml" if pairs else "sft.yaml"
    (folder / name).write_text(yaml.safe_dump(_settings(config, len(rows)), sort_keys=False), "utf-8")
    return seen, len(rows)


def _check(config: Config) -> bool:
    """Whether any row has media; DataError at the first record that cannot be used, before anything is written."""
    seen = False
    for example in _examples(config):
        try:
            seen |= any([check_image(image) for message in example.messages for image in message.images])
        except DataError as error:
            raise DataError(f"example {example.id!r}: {error}", path=example.origin) from error
    return seen


def _examples(config: Config) -> Iterator[Example]:
    asker = asker_of(config)
    for unit in units_of(config):
        taken = 0
        for file in unit.files:
            for record, target in rows_of_file(file, talk=bool(config.data[unit.source].talk)):
                if unit.limit and taken >= unit.limit:
                    break
                taken += 1
                yield from asker.examples(ExampleRow(unit.source, unit.round, record, target))


def _rows(config: Config, seen: bool) -> Iterator[dict[str, Any]]:
    for example in _examples(config):
        reply = [{"type": "text", "text": example.reply.text}]
        row: dict[str, Any] = {
            "prompt": [{"role": message.role, "content": _content(message)} for message in example.messages],
            "completion": [{"role": "assistant", "content": reply}],
        }
        if seen:
            images = [image for message in example.messages for image in message.images]
            row["images"] = [{"bytes": image_file(image), "path": None} for image in images]
        yield row


def _pair_rows(config: Config, seen: bool) -> Iterator[dict[str, Any]]:
    """Rows of preferences: of every two examples the first is the better one."""
    rows = _rows(config, seen)
    for better, worse in zip(rows, rows, strict=True):
        yield {**better, "chosen": better.pop("completion"), "rejected": worse["completion"]}


def _content(message: Message) -> list[dict[str, str | None]]:
    parts: list[dict[str, str | None]] = []
    for part in message.parts:
        if isinstance(part, Span):
            if parts and parts[-1]["type"] == "text":
                parts[-1] = {"type": "text", "text": str(parts[-1]["text"]) + part.text}
            else:
                parts.append({"type": "text", "text": part.text})
        else:
            parts.extend([{"type": "image", "text": None}] * (1 if isinstance(part, Image) else len(part.frames)))
    return parts


def _settings(config: Config, examples: int) -> dict[str, Any]:
    """The settings under trl's names. A step is `batch_size` examples, one at a time with gradient accumulation."""
    name, _, revision = config.model.removeprefix("hf:").partition("@")
    beside = config.path(name)
    per_epoch = -(-examples // config.batch_size)
    steps = config.steps or max(1, round(config.epochs * per_epoch))
    found: dict[str, Any] = {
        "model_name_or_path": str(beside.resolve()) if beside.is_dir() else name,
        "dataset_name": "data",
        "output_dir": "out",
        "max_steps": steps,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": config.batch_size,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": config.schedule if config.schedule != "constant" else "constant_with_warmup",
        "warmup_steps": round(config.warmup * steps) if config.warmup < 1 else round(config.warmup),
        "weight_decay": config.weight_decay,
        "adam_beta1": config.betas[0],
        "adam_beta2": config.betas[1],
        "max_grad_norm": config.clip,
        "seed": config.seed,
        "bf16": config.precision != "fp32",
        "dtype": "bfloat16" if config.precision == "bf16-master" else "float32",
        "gradient_checkpointing": config.checkpointing,
        "max_length": None,
        "logging_steps": config.log_every,
        "save_steps": config.save_every or steps,
        "report_to": "none",
    }
    if isinstance(config, PreferenceConfig):
        weights = {"sigmoid": config.dpo_alpha, "sft": config.sft_weight}
        kept = {name: weight for name, weight in weights.items() if weight}
        found |= {"beta": config.beta, "loss_type": [*kept], "loss_weights": [*kept.values()]}
    else:
        found |= {"packing": False, "completion_only_loss": True}
    if revision:
        found["model_revision"] = revision
    if config.device == "cpu":
        found["use_cpu"] = True
    if config.train == "lora":
        lora = config.lora
        targets = f"{_VISION}\\.{_LINEAR}" if lora.targets == "language" else f".*({lora.targets}).*"
        re.compile(targets)
        found |= {"use_peft": True, "lora_r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": lora.dropout}
        found["lora_target_modules"] = [targets]
    return found
