"""Vision alignment: train the vision tower and the projector to predict the words for each patch of an image.

LLaVA starts from a vision tower that a contrastive loss has already aligned with text (CLIP; Radford et al. 2021). A
judge from scratch has no such tower and would learn to see only slowly. Here each patch has a set of target words: the
cosines of the projector's output and the token embeddings, times a fixed scale, are the logits of a softmax whose
target is uniform over those words. It differs from CLIP in comparing patches with tokens, not images with sentences,
and in the fixed scale.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.nn.functional import log_softmax, normalize

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.item import Item
from dikast.core.media import load_image
from dikast.core.output_folder import one_writer
from dikast.engines.local.loading import Loaded
from dikast.engines.local.tokens import Piece
from dikast.training.config import Config, Data
from dikast.training.data.examples import files_of, rows_of_file
from dikast.training.log import Log
from dikast.training.models.model import open_model, save_model
from dikast.training.optimizer import optimizer_of
from dikast.training.schedule import rate_at, tell_long_warmup

_SCALE = 20.0  # large enough for four target words, whose cosines are at best a half each
_SEEING = re.compile(r"vision_tower|multi_modal_projector|embed_tokens")


def look(config: Config, *, watch: Callable[[dict[str, Any]], None] = lambda line: None) -> dict[str, Any]:
    """Train the vision tower, the projector and the embeddings of a LLaVA-1.5 on rows of `talk` with `meta.patches`.

    `meta.patches` has a text of words for each patch of the row's one image, in reading order. The configuration's
    `model` or `init`, `out`, `data`, `seed`, `steps`, `batch_size`, `frozen`, `device` and optimizer settings apply.
    watch: called with every line of the log: loss in nats a word, and the share of a patch's k words among its k most
    likely tokens. One process and no checkpoints, since it takes a minute or two. Returns the last line of the log; the
    model is in `out`/model, replacing an earlier one. UserError if `out` holds a run of `train sft`.
    """
    with one_writer(config.path(config.out), "training"):
        return _look(config, watch)


def _look(config: Config, watch: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    out = config.path(config.out)
    if config.train != "full":
        raise UserError(
            f"train: {config.train}: vision alignment trains the tower, the projector and the embeddings: leave it out"
        )
    if any((out / name).exists() for name in ("checkpoints", "eval.jsonl", "shards")):
        raise UserError(f"{out} holds a run of `train sft`: give this one another 'out'")
    loaded = open_model(config)
    model = loaded.model
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(parameter.requires_grad and _SEEING.search(name) is not None)
    rows = [row for data in config.data for row in [*islice(_rows(config, data), data.limit or None)] * data.repeat]
    _check(loaded, rows)
    steps = config.steps or math.ceil(config.epochs * len(rows) / config.batch_size)
    tell_long_warmup(steps, config.warmup, config.learning_rate)
    optimizer, drawn = optimizer_of(model, config), np.random.default_rng(config.seed)
    words: dict[str, list[int]] = {}
    log, line = Log(out / "train.jsonl", 0), dict[str, Any]()
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(
                step, steps=steps, peak=config.learning_rate, warmup=config.warmup, shape=config.schedule,
                final=config.min_lr_ratio,
            )  # fmt: skip
        chosen = [rows[i] for i in drawn.choice(len(rows), config.batch_size, replace=len(rows) < config.batch_size)]
        loss, right = _named(loaded, chosen, words)
        if not torch.isfinite(loss):
            raise RunError(f"step {step + 1}: the loss is {loss.item()}: lower 'learning_rate'")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (step + 1) % config.log_every == 0 or step + 1 == steps:
            line = {"step": step + 1, "steps": steps, "loss": loss.item(), "right": right}
            log.write(line)
            watch(line)
    save_model(loaded, config, out / "model")
    return {**line, "rows": len(rows), "model": str(out / "model")}


def _rows(config: Config, data: Data) -> Iterator[Item]:
    if not data.talk:
        raise UserError("data: vision alignment uses only rows of 'talk'")
    for file in files_of(config, data.talk):
        for item, _ in rows_of_file(file, talk=True):
            if len(item.images) != 1:
                raise DataError(
                    f"vision alignment needs one image in each row, this one has {len(item.images)}",
                    path=item.origin,
                    field="image",
                )
            named = item.meta.get("patches")
            if not isinstance(named, list) or not all(isinstance(each, str) and each.strip() for each in named):
                raise DataError(
                    "vision alignment needs the words of each patch of the image: give meta.patches a list of texts",
                    path=item.origin,
                    field="meta.patches",
                )
            yield replace(item, meta={"patches": tuple(named)})


def _check(loaded: Loaded, rows: list[Item]) -> None:
    """Check that every row has as many patches as the model; DataError for the first that does not."""
    model = loaded.model
    if loaded.processor.vision is None or not hasattr(model.model, "multi_modal_projector"):
        raise UserError(f"model: vision alignment needs a model of the LLaVA-1.5 classes, not {type(model).__name__}")
    if not rows:
        raise UserError("the data gives no rows")
    with torch.no_grad():
        count = len(_seen(loaded, rows[:1]))
    for row in rows:
        if (named := len(row.meta["patches"])) != count:
            raise DataError(
                f"the model sees {count} patches in an image, and meta.patches names {named}",
                path=row.origin,
                field="meta.patches",
            )


def _seen(loaded: Loaded, rows: list[Item]) -> torch.Tensor:
    """The projector's output for every patch of the rows' images, (rows x patches, width)."""
    assert loaded.processor.vision is not None
    pictures = [load_image(row.images[0]).picture for row in rows]
    pixels = loaded.processor.vision.see(pictures).tensors["pixel_values"].to(loaded.device, loaded.model.dtype)
    return torch.cat(list(loaded.model.get_image_features(pixels).pooler_output))


def _named(loaded: Loaded, rows: list[Item], words: dict[str, list[int]]) -> tuple[torch.Tensor, float]:
    """The loss in nats a word, and the share of a patch's k words among its k most likely tokens."""
    model = loaded.model
    found = normalize(_seen(loaded, rows), dim=-1)
    due = torch.zeros(len(found), model.get_input_embeddings().num_embeddings, device=loaded.device)
    count = len(found) // len(rows)
    for i, row in enumerate(rows):
        for j, text in enumerate(row.meta["patches"]):
            if text not in words:
                words[text] = sorted(set(loaded.tokens.encode([Piece(f" {text}")])))
            due[i * count + j, words[text]] = 1
    logits = _SCALE * found @ normalize(model.get_input_embeddings().weight, dim=-1).T
    loss = -(due * log_softmax(logits, dim=-1)).sum() / due.sum()
    sizes = due.sum(1, keepdim=True)
    ranks = logits.detach().argsort(descending=True).argsort()
    right = float(((ranks < sizes) * due).sum() / due.sum())
    return loss, right
