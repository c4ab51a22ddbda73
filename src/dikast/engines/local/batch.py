"""Rows of token ids to the tensors of one forward pass, padded on the left."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dikast.engines.local.loading import Loaded
from dikast.engines.local.processor import Processor
from dikast.engines.local.prompt import Prompt
from dikast.engines.local.seeing.seen import together


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A prompt and the ids that stand in for it and what follows."""

    prompt: Prompt
    ids: Sequence[int]


def tensors_of(rows: Sequence[TokenRow], processor: Processor) -> dict[str, torch.Tensor]:
    """`input_ids` and `attention_mask` (rows, longest), padded on the left, and the media tensors of all rows.

    The rows' prompts are of one `seen.shape`. Tensors are on the CPU, pixels in float32.
    """
    longest = max(len(row.ids) for row in rows)
    ids = torch.full((len(rows), longest), processor.padding, dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, longest - len(row.ids) :] = torch.tensor(row.ids, dtype=torch.long)
        mask[i, longest - len(row.ids) :] = 1
    batch = {"input_ids": ids, "attention_mask": mask, **together([row.prompt.seen for row in rows])}
    vision = processor.vision
    if len(batch) > 2 and vision is not None and vision.types_tokens:
        types = (ids == vision.image_token_id).long()
        if vision.video_token_id is not None:
            types += 2 * (ids == vision.video_token_id)
        batch["mm_token_type_ids"] = types * mask
    return batch


def collate(rows: Sequence[TokenRow], loaded: Loaded) -> dict[str, torch.Tensor]:
    """`tensors_of` on the model's device, pixels in the model's dtype."""
    dtype = loaded.model.dtype
    return {
        name: tensor.to(loaded.device, dtype if name.startswith("pixel_values") else tensor.dtype)
        for name, tensor in tensors_of(rows, loaded.processor).items()
    }


def last_logits(rows: Sequence[TokenRow], loaded: Loaded, keep: int) -> torch.Tensor:
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
