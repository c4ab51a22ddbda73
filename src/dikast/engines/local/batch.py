"""Rows of token ids to the tensors of one forward pass, padded on the left."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dikast.engines.local.loading import Loaded
from dikast.engines.local.prompt import Prompt
from dikast.engines.local.vision import together


@dataclass(frozen=True, slots=True)
class Row:
    """A prompt and the ids that stand in for it and what follows."""

    prompt: Prompt
    ids: Sequence[int]


def collate(rows: Sequence[Row], loaded: Loaded) -> dict[str, torch.Tensor]:
    """`input_ids` and `attention_mask` (rows, longest), with the image tensors of all rows in order."""
    longest = max(len(row.ids) for row in rows)
    ids = torch.full((len(rows), longest), loaded.padding, dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, longest - len(row.ids) :] = torch.tensor(row.ids, dtype=torch.long)
        mask[i, longest - len(row.ids) :] = 1
    batch = {"input_ids": ids, "attention_mask": mask}
    images = [image for row in rows for image in row.prompt.images]
    if images:
        batch.update(together(images))
        for name in {name for row in rows for name in row.prompt.aligned}:
            batch[name] = torch.zeros_like(ids)
            for i, row in enumerate(rows):
                known = row.prompt.aligned.get(name, [])[: len(row.ids)]
                start = longest - len(row.ids)
                batch[name][i, start : start + len(known)] = torch.tensor(known, dtype=torch.long)
    dtype = loaded.model.dtype
    return {
        name: tensor.to(loaded.device, dtype if tensor.is_floating_point() else tensor.dtype)
        for name, tensor in batch.items()
    }


def last_logits(rows: Sequence[Row], loaded: Loaded, keep: int) -> torch.Tensor:
    """Logits after each of the last `keep` tokens of every row: (rows, keep, vocabulary), float32."""
    batch: dict[str, Any] = dict(collate(rows, loaded))
    parameters = inspect.signature(loaded.model.forward).parameters
    places_itself = any(name.endswith("type_ids") for name in batch)  # models with positions in three dimensions
    if "position_ids" in parameters and not places_itself:
        mask = batch["attention_mask"]
        batch["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
    if "logits_to_keep" in parameters:
        batch["logits_to_keep"] = keep
    with torch.inference_mode():
        logits = loaded.model(**batch, use_cache=False, return_dict=True).logits
    return logits[:, -keep:].float()
