"""The examples of each step, and their tensors.

The order is a function of seed, epoch and the examples' lengths, so a resumed run continues the same order. Rows are
padded on the right: under causal attention padding after a row does not affect it, so no attention mask is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dikast.engines.local.processor import Processor
from dikast.engines.local.vision import Seen, together
from dikast.training.data.shards import Shards

_BUCKET = 32  # batches whose examples are sorted by length together


@dataclass(frozen=True, slots=True)
class Batch:
    """The inputs of one forward pass. `weights` (rows, kept) is the loss mask: the weight of each token, 0 for padding.

    `targets` (rows, kept) are the last `kept` tokens of each padded row; they are predicted by the logits of the last
    `kept` + 1 positions except the very last.
    """

    inputs: dict[str, torch.Tensor]
    targets: torch.Tensor
    weights: torch.Tensor
    numbers: tuple[int, ...]  # indices of the examples

    @property
    def size(self) -> tuple[int, int]:
        """Rows and tokens, padding included."""
        rows, tokens = self.inputs["input_ids"].shape
        return int(rows), int(tokens)


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


def micro_batches(step: NDArray[np.int64], shards: Shards, most: int, parts: int = 1) -> list[list[int]]:
    """Cut a step, longest first, into micro-batches of at most `most` padded tokens for each of `parts` processes.

    A micro-batch holds examples of one group; process p takes its examples p, p + parts, ...
    """
    open_runs: dict[int, list[int]] = {}
    runs: list[list[int]] = []
    for number in map(int, step):
        group = int(shards.groups[number])
        run = open_runs.get(group)
        if run is None or (len(run) % parts == 0 and (len(run) // parts + 1) * int(shards.lengths[run[0]]) > most):
            run = open_runs[group] = []
            runs.append(run)
        run.append(number)
    return runs


def collate(
    shards: Shards, numbers: Sequence[int], processor: Processor, *, label_weight: float = 1.0, multiple: int = 1
) -> Batch:
    """Rows of examples as tensors, padded on the right to a multiple of `multiple` tokens."""
    found = [shards.find(number) for number in numbers]
    rows = [part.rows[i] for part, i in found]
    longest = max(int(row["length"]) for row in rows)
    longest += -longest % multiple
    first = min(int(row["prompt"]) for row in rows)
    ids = np.full((len(rows), longest), processor.padding, np.int64)
    weights = np.zeros((len(rows), longest), np.float32)
    for n, (row, (part, i)) in enumerate(zip(rows, found, strict=True)):
        ids[n, : row["length"]] = part.ids(i)
        weights[n, row["prompt"] : row["length"]] = 1
        weights[n, row["label"][0] : row["label"][1]] *= label_weight
    media = [Seen(tensors=tensors) for part, i in found if (tensors := part.media(i))]
    inputs: dict[str, Any] = {"input_ids": torch.from_numpy(ids), **together(media)}
    vision = processor.vision
    if media and vision is not None and vision.types_tokens:
        types = (ids == vision.image_token_id) + 2 * (ids == vision.video_token_id)
        inputs["mm_token_type_ids"] = torch.from_numpy(types.astype(np.int64))
    return Batch(inputs, inputs["input_ids"][:, first:], torch.from_numpy(weights[:, first:]), tuple(numbers))


def summed_loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The weighted sum of cross-entropy over the targets, in nats. logits: (rows, kept + 1, vocabulary)."""
    kept = batch.targets.shape[1]
    foretold = logits[:, -kept - 1 : -1].float()
    loss = torch.nn.functional.cross_entropy(foretold.flatten(0, 1), batch.targets.flatten(), reduction="none")
    return (loss * batch.weights.flatten()).sum()
