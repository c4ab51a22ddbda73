"""The examples of each step, and their tensors.

The order is a function of seed, epoch and the examples' lengths, so a resumed run continues the same order. Rows are
padded on the right, or packed: laid end to end as one row, where each sees only itself (`training.packed_attention`).
Under causal attention padding after a row does not affect it, so padded rows need no attention mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dikast.engines.local.loading import Loaded
from dikast.engines.local.vision import Seen, together
from dikast.training.data.shards import Shards
from dikast.training.packed_attention import segment_table

_BUCKET = 32  # batches whose examples are sorted by length together


@dataclass(frozen=True, slots=True)
class Batch:
    """The inputs of one forward pass. `weights` (targets,) is what each target counts in the loss.

    `inputs["logits_to_keep"]` (rows, tokens) marks the positions whose logits are computed, those before a target;
    `targets` (targets,) are the tokens that they predict, in the same order.
    """

    inputs: dict[str, torch.Tensor]
    targets: torch.Tensor
    weights: torch.Tensor
    numbers: tuple[int, ...]  # indices of the examples

    @property
    def size(self) -> tuple[int, int]:
        """Examples and tokens, padding included."""
        return len(self.numbers), self.inputs["input_ids"].numel()


class BatchPlan:
    """The examples of every step."""

    def __init__(self, lengths: NDArray[np.int32], *, batch_size: int, seed: int, grouped: bool) -> None:
        self._lengths, self._size, self._seed, self._grouped = lengths, min(batch_size, len(lengths)), seed, grouped
        self.per_epoch = -(-len(lengths) // self._size)
        self._epoch, self._order = -1, np.zeros(0, np.int64)

    def step(self, number: int) -> NDArray[np.int64]:
        """The examples of step `number` (from 0), longest first."""
        epoch, place = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._arranged(np.random.default_rng([self._seed, epoch]))
        found = self._order[place * self._size : (place + 1) * self._size]
        return found[np.argsort(-self._lengths[found], kind="stable")]

    def _arranged(self, rng: np.random.Generator) -> NDArray[np.int64]:
        order = rng.permutation(len(self._lengths))
        if not self._grouped:
            return order
        bucket = self._size * _BUCKET
        for start in range(0, len(order), bucket):
            part = order[start : start + bucket]
            order[start : start + bucket] = part[np.argsort(-self._lengths[part], kind="stable")]
        whole = len(order) // self._size
        full, rest = order[: whole * self._size].reshape(whole, self._size), order[whole * self._size :]
        return np.concatenate([full[rng.permutation(whole)].ravel(), rest])


def micro_batches(
    step: NDArray[np.int64], shards: Shards, most: int, parts: int = 1, *, packed: bool = False
) -> list[list[int]]:
    """Cut a step, longest first, into micro-batches of at most `most` tokens for each of `parts` processes.

    The tokens are those computed: padding counts, and packed rows have none. A micro-batch holds examples of one group;
    process p takes its examples p, p + parts, ...
    """
    open_runs: dict[int, list[int]] = {}
    runs: list[list[int]] = []
    for number in map(int, step):
        group = int(shards.groups[number])
        run = open_runs.get(group)
        if run is not None and len(run) % parts == 0:  # the first process has the longest rows of each deal
            mine = [int(shards.lengths[each]) for each in run[::parts]]
            tokens = sum(mine) + int(shards.lengths[number]) if packed else (len(mine) + 1) * mine[0]
            run = run if tokens <= most else None
        if run is None:
            run = open_runs[group] = []
            runs.append(run)
        run.append(number)
    return runs


def collate(
    shards: Shards,
    numbers: Sequence[int],
    loaded: Loaded,
    *,
    label_weight: float = 1.0,
    multiple: int = 1,
    packed: bool = False,
) -> Batch:
    """Rows of examples as tensors: packed into one row, or padded on the right to a multiple of `multiple` tokens."""
    found = [shards.find(number) for number in numbers]
    rows = [part.ids(i) for part, i in found]
    lengths = [len(row) for row in rows]
    media = [part.media(i) for part, i in found]
    if packed:
        shape = (1, sum(lengths))
        starts = np.cumsum([0, *lengths])[:-1]
    else:
        longest = max(lengths) + -max(lengths) % multiple
        shape = (len(rows), longest)
        starts = np.arange(len(rows)) * longest
    places = [start + np.arange(length) for start, length in zip(starts, lengths, strict=True)]
    ids = np.full(shape[0] * shape[1], loaded.processor.padding, np.int64)
    kept = np.zeros(len(ids), np.bool_)
    targets, weights = [], []
    for place, row, (part, i) in zip(places, rows, found, strict=True):
        about = part.rows[i]
        ids[place] = row
        kept[place[about["prompt"] - 1 : -1]] = True
        counts = np.ones(len(row), np.float32)
        counts[about["label"][0] : about["label"][1]] *= label_weight
        targets.append(row[about["prompt"] :].astype(np.int64))
        weights.append(counts[about["prompt"] :])
    inputs: dict[str, Any] = {
        "input_ids": torch.from_numpy(ids.reshape(shape)),
        "logits_to_keep": torch.from_numpy(kept.reshape(shape)),
        **together([Seen(tensors=tensors) for tensors in media if tensors]),
    }
    if any(media) and (types := _types(ids, loaded)) is not None:
        inputs["mm_token_type_ids"] = types.reshape(shape)
    if packed:
        positions = [_positions(row, tensors, loaded) for row, tensors in zip(rows, media, strict=True)]
        inputs["position_ids"] = torch.cat(positions, -1)
        inputs["attention_mask"] = segment_table([int(place[-1]) + 1 for place in places], [-1] * len(places))
    return Batch(
        inputs, torch.from_numpy(np.concatenate(targets)), torch.from_numpy(np.concatenate(weights)), tuple(numbers)
    )


def _types(ids: NDArray[np.int64], loaded: Loaded) -> torch.Tensor | None:
    """The kind of each token, 0 for text, 1 for images and 2 for clips; None for models that are not told."""
    vision = loaded.processor.vision
    if vision is None or not vision.types_tokens:
        return None
    return torch.from_numpy((ids == vision.image_token_id) + 2 * (ids == vision.video_token_id)).long()


def _positions(row: NDArray[Any], media: dict[str, torch.Tensor], loaded: Loaded) -> torch.Tensor:
    """The position of each token of a row: (1, tokens), or (3, 1, tokens) where media have them in three dimensions."""
    ids = row.astype(np.int64)
    if media and (types := _types(ids, loaded)) is not None:
        told = {name: tensor for name, tensor in media.items() if name.endswith(("_grid_thw", "_grid_ts"))}
        found: torch.Tensor = loaded.model.model.get_rope_index(torch.from_numpy(ids)[None], types[None], **told)[0]
        return found
    return torch.arange(len(ids))[None]


def summed_loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The weighted sum of cross-entropy over the targets, in nats. logits: (targets, vocabulary)."""
    loss = torch.nn.functional.cross_entropy(logits.float(), batch.targets, reduction="none")
    return (loss * batch.weights).sum()
