"""How the requests of a window run through a model: separately in padded batches, or with common prefixes computed
once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol

import numpy as np
import torch

from dikast.core.errors import UserError
from dikast.engines.local.batch import last_logits
from dikast.engines.local.generating import Ask, GeneratedReply, generate
from dikast.engines.local.label_scoring import LabelRow
from dikast.engines.local.loading import Loaded
from dikast.engines.local.prompt import Prompt
from dikast.engines.local.sharing.media_features import Encoder
from dikast.engines.local.sharing.tree_forward import Path, TreeModel, TreeRow, cut_path, keyed_ids, why_alone
from dikast.engines.local.sharing.tree_replies import OWN, TreeReply, write
from dikast.engines.local.sharing.trie import agreed, parting, sorted_rows

_MOST_TOKENS = 65536  # tokens whose keys and values are held together, if `memory` is not set; more where half of
# what a CUDA device has free holds more
_ALONE, _TOGETHER = 8, 64  # requests that write at a time

Planned = tuple[Prompt, Ask | None]


class Running(Protocol):
    """A batch in progress."""

    def generate(self, asks: Sequence[Ask]) -> list[GeneratedReply]:
        """A reply for each ask of the batch, in order."""
        ...

    def logits(self, rows: Sequence[LabelRow], numbers: Sequence[int]) -> Sequence[torch.Tensor]:
        """The logits that rows ask for, (keep, vocabulary) in float32; `numbers[row.read]` is the request's place."""
        ...


class Execution(Protocol):
    """A way to run requests. `shares`: common prefixes are computed once."""

    shares: bool

    @property
    def notes(self) -> Mapping[str, int]:
        """Why nothing is shared although sharing was not switched off, with the number of requests."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """What was asked, and what was computed for it."""
        ...

    def batches(self, planned: Sequence[Planned]) -> Iterator[list[int]]:
        """Which requests run together, in the order of running."""
        ...

    def middle(self, prompts: Sequence[Prompt]) -> int:
        """Where to cut a batch in two that did not run."""
        ...

    def begin(self) -> Running:
        """A new batch."""
        ...


def execution_of(
    loaded: Loaded, batch_size: int | None = None, *, share: bool = True, memory: float | None = None
) -> Execution:
    """Sharing if it is wanted and the model supports it; if it does not, `notes` say why."""
    if memory is not None and memory <= 0:
        raise UserError(f"option 'memory': expected GB above 0, got {memory:g}")
    if not share:
        return Alone(loaded, batch_size or _ALONE)
    if why := why_alone(loaded.model):
        return Alone(loaded, batch_size or _ALONE, f"what prompts share is computed for each of them: {why}")
    return Together(loaded, batch_size or _TOGETHER, None if memory is None else int(memory * 1e9))


class Alone:
    """Every request separately, in padded batches of similar lengths."""

    shares = False

    def __init__(self, loaded: Loaded, batch_size: int, note: str = "") -> None:
        self._loaded, self._batch_size, self._note, self._asked = loaded, batch_size, note, 0

    @property
    def notes(self) -> Mapping[str, int]:
        """Why nothing is shared, where that was not asked for."""
        return {self._note: self._asked} if self._note and self._asked else {}

    @property
    def counts(self) -> Mapping[str, int]:
        """Nothing."""
        return {}

    def batches(self, planned: Sequence[Planned]) -> Iterator[list[int]]:
        """`batch_size` requests at a time; those that write text and those that do not are in separate batches, as are
        different media.
        """
        self._asked += len(planned)

        def kind(i: int) -> tuple[bool, tuple[int, ...]]:
            prompt, ask = planned[i]
            return ask is None, prompt.seen.shape

        waiting = sorted(range(len(planned)), key=lambda i: (kind(i), len(planned[i][0].ids)))
        while waiting:
            batch = [i for i in waiting[: self._batch_size] if kind(i) == kind(waiting[0])]
            waiting = waiting[len(batch) :]
            yield batch

    def middle(self, prompts: Sequence[Prompt]) -> int:
        """Half of them."""
        return len(prompts) // 2

    def begin(self) -> Running:
        """A batch keeps nothing."""
        return self

    def generate(self, asks: Sequence[Ask]) -> list[GeneratedReply]:
        """By the model's own `generate`."""
        return generate(asks, self._loaded)

    def logits(self, rows: Sequence[LabelRow], numbers: Sequence[int]) -> Sequence[torch.Tensor]:
        """In padded batches of `batch_size` rows."""
        found: dict[int, torch.Tensor] = {}
        order = sorted(range(len(rows)), key=lambda n: len(rows[n].row.ids))
        for start in range(0, len(order), self._batch_size):
            chunk = order[start : start + self._batch_size]
            keep = max(rows[n].keep for n in chunk)
            logits = last_logits([rows[n].row for n in chunk], self._loaded, keep)
            found |= {n: each[keep - rows[n].keep :] for n, each in zip(chunk, logits, strict=True)}
        return [found[n] for n in range(len(rows))]


class Together:
    """Common prefixes of the requests in a window are computed once."""

    shares = True

    def __init__(self, loaded: Loaded, batch_size: int, memory: int | None) -> None:
        self._loaded, self._batch_size = loaded, batch_size
        self.trees = TreeModel(loaded, memory=memory)
        if memory is not None:
            self._most_tokens = memory // self.trees.token_bytes
        else:
            free = torch.cuda.mem_get_info(loaded.device)[0] if loaded.device.type == "cuda" else 0
            self._most_tokens = max(_MOST_TOKENS, free // 2 // self.trees.token_bytes)

    @property
    def notes(self) -> Mapping[str, int]:
        """Nothing."""
        return {}

    @property
    def counts(self) -> Mapping[str, int]:
        """What was asked, and what was computed for it."""
        return asdict(self.trees.counts)

    def batches(self, planned: Sequence[Planned]) -> Iterator[list[int]]:
        """Requests with common prefixes next to each other: those that write text in batches, then all others in one.

        Of those that write, `batch_size` at a time, or as many as fit with their keys and values in memory.
        """
        if not planned:
            return
        rows = [keyed_ids(prompt, prompt.ids, self._loaded) for prompt, _ in planned]
        order = sorted_rows(rows)
        batch, tokens, before = list[int](), 0, rows[0]
        for i in order:
            ask = planned[i][1]
            if ask is None:
                continue
            new = len(rows[i]) - (agreed(before, rows[i]) if batch else 0) + ask.most + OWN
            if batch and (len(batch) == self._batch_size or tokens + new > self._most_tokens):
                yield batch
                batch, tokens, new = [], 0, len(rows[i]) + ask.most + OWN
            batch.append(i)
            tokens, before = tokens + new, rows[i]
        if batch:
            yield batch
        if reading := [i for i in order if planned[i][1] is None]:
            yield reading

    def middle(self, prompts: Sequence[Prompt]) -> int:
        """Where neighbours share the shortest prefix."""
        return parting([keyed_ids(prompt, prompt.ids, self._loaded) for prompt in prompts])

    def begin(self) -> Running:
        """A batch keeps the features of its pictures."""
        return _TreeBatch(self._loaded, self.trees)


class _TreeBatch:
    def __init__(self, loaded: Loaded, trees: TreeModel) -> None:
        self._loaded, self._trees = loaded, trees
        self._encoder = Encoder(loaded)
        self._written: list[TreeReply] = []

    def generate(self, asks: Sequence[Ask]) -> list[GeneratedReply]:
        self._written = write(asks, self._loaded, self._trees, self._encoder)
        self._count([ask.prompt for ask in asks])
        return [each.reply for each in self._written]

    def logits(self, rows: Sequence[LabelRow], numbers: Sequence[int]) -> Sequence[torch.Tensor]:
        """Rows of a request that has a reply continue from the keys and values of the reply."""
        given = []
        for read, row, keep in rows:
            path: Path = ()
            if self._written:
                written = self._written[numbers[read]]
                same = agreed(np.array(row.ids), np.array(written.ids))
                path = cut_path(written.path, min(same, len(row.ids) - keep))
            given.append(TreeRow(row.prompt, row.ids, path))
        logits, _ = self._trees.run(given, [each.keep for each in rows], self._encoder)
        if not self._written:
            self._count(list({each.read: each.row.prompt for each in rows}.values()))
        return logits

    def _count(self, prompts: Sequence[Prompt]) -> None:
        self._trees.counts.pictures_shown += sum(len(prompt.seen.keys) for prompt in prompts)
        self._trees.counts.pictures_encoded += self._encoder.taken()
