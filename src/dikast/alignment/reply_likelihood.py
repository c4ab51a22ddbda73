"""Log-likelihoods of replies under a model, from which the KL divergence of a policy from its start is estimated."""

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.engines.local.loading import load
from dikast.engines.local.source import locate
from dikast.judging.settling import with_frames
from dikast.prompts.ask import prompt_alone
from dikast.prompts.target import Reply
from dikast.training.data.collate import collate
from dikast.training.data.encode import encode, end_of_reply
from dikast.training.data.examples import Example
from dikast.training.data.shards import Shards, ShardWriter
from dikast.training.dpo import logprobs_of_replies

_ROWS = 8  # of a pass


def reply_logprobs(model: str, items: Sequence[Item], folder: Path, *, device: str, frames: int = 8) -> list[float]:
    """The log-probability, in nats, of each item's single reply under a model, including its end-of-sequence token.

    `folder` holds temporary tokenised data and is removed afterwards.
    """
    loaded = load(locate(model), device=device, dtype="float32" if device == "cpu" else "auto")
    loaded.model.eval()
    shutil.rmtree(folder, ignore_errors=True)
    writer, end = ShardWriter(folder, 0), end_of_reply(loaded)
    for item in items:
        asked = prompt_alone(with_frames(item, (), frames))
        example = Example(item.id, item.origin, asked, Reply(text_of(item.responses[0]), ""), opening=asked)
        writer.add(item.id, item.origin, encode(example, loaded, end=end, most=loaded.context, find_label=False))
    writer.flush()
    shards = Shards.open(folder, loaded.processor.vision)
    found = np.zeros(len(shards))
    order = np.lexsort((shards.lengths, shards.groups))
    starts = [0, *(np.flatnonzero(np.diff(shards.groups[order])) + 1).tolist(), len(order)]
    for first, last in pairwise(starts):
        for start in range(first, last, _ROWS):
            numbers = order[start : min(start + _ROWS, last)].tolist()
            with torch.no_grad():
                logprobs = logprobs_of_replies(loaded.model, collate(shards, numbers, loaded), loaded)
            found[numbers] = logprobs.double().cpu().numpy()
    del shards
    shutil.rmtree(folder, ignore_errors=True)
    return [float(value) for value in found]
