"""The tensors of a forward pass.

Rows are padded on the right, or packed: laid out as one row in which each attends only to itself (`packed_attention`),
end to end or, siblings, as a tree. Under causal attention padding after a row does not affect it, so padded rows need
no mask.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from dikast.engines.local.loading import Loaded
from dikast.engines.local.seeing.seen import Medium, Seen, joined, separated, together
from dikast.engines.local.sharing.trie import Tree
from dikast.training.data.batches import Unit
from dikast.training.data.distinct_media import distinct
from dikast.training.data.media_loader import Tensors
from dikast.training.data.shards import Shards
from dikast.training.packed_attention import segment_table

Pack = Literal["none", "rows", "trees"]


@dataclass(frozen=True, slots=True)
class Batch:
    """The inputs of one forward pass. `weights` (targets,) is what each target counts in the loss.

    `inputs["logits_to_keep"]` (rows, tokens) marks the positions whose logits are computed, those before a target.
    `sources` (targets,) says which of these logits predicts each of the tokens `targets` (targets,), in rising order.
    `learnt` counts the examples' tokens that count in the loss; `places` is as `distinct_media.shown_again` takes it.
    `replies` holds for each example which of the targets its reply is made of, in order.
    """

    inputs: dict[str, torch.Tensor]
    targets: torch.Tensor
    sources: torch.Tensor
    weights: torch.Tensor
    numbers: tuple[int, ...]  # indices of the examples
    learnt: int
    places: tuple[int, ...] | None = None
    replies: tuple[NDArray[np.int64], ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Examples and tokens, padding included."""
        return len(self.numbers), self.inputs["input_ids"].numel()


def units_of(step: Sequence[tuple[int, ...]], shards: Shards, loaded: Loaded, pack: Pack) -> list[Unit]:
    """The units of a step, longest first: for trees each set of siblings, else each example."""
    lengths, groups = shards.lengths, shards.groups
    if pack != "trees":
        return [Unit((n,), int(lengths[n]), int(groups[n])) for numbers in step for n in numbers]
    found = [
        Unit(numbers, Tree([_keys(shards, n, loaded) for n in numbers]).tokens, int(groups[numbers[0]]))
        for numbers in step
    ]
    return sorted(found, key=lambda unit: -unit.tokens)


def collate(
    shards: Shards,
    numbers: Sequence[int],
    loaded: Loaded,
    *,
    label_weight: float = 1.0,
    label_smoothing: float = 0.0,
    multiple: int = 1,
    pack: Pack = "none",
    media: Iterable[Tensors] | None = None,
) -> Batch:
    """Examples as tensors: packed into one row, or each a row, padded to a multiple of `multiple` tokens.

    Of the weight of a label's token, `label_smoothing` goes in equal parts to those of the question's other labels.
    With trees, examples whose `siblings` are equal share their common prefix. media: the tensors of each example's
    pictures and clips, if they were loaded before.
    """
    found = [shards.find(number) for number in numbers]
    seen = list(shards.load(numbers) if media is None else media)
    rows = [part.ids(i).astype(np.int64) for part, i in found]
    inputs: dict[str, Any] = {}
    repeated: tuple[int, ...] | None = None
    if pack == "none":
        longest = max(map(len, rows))
        longest += -longest % multiple
        shape = (len(rows), longest)
        places = [n * longest + np.arange(len(row)) for n, row in enumerate(rows)]
        inputs |= together([Seen(tensors=tensors) for tensors in seen if tensors])
    else:
        places, mask = _laid_out(shards, numbers, loaded, trees=pack == "trees")
        shape = (1, int(mask[0, 0, -1, 0]))
        inputs["attention_mask"] = mask
        inputs["position_ids"] = _positions(shards, numbers, loaded, places, seen, shape[1])
        shown, repeated = _shown(shards, numbers, loaded, places, seen)
        inputs |= shown
    ids = np.full(shape[0] * shape[1], loaded.processor.padding, np.int64)
    kept = np.zeros(len(ids), np.bool_)
    sources, targets, weights = [], [], []
    instead: list[tuple[NDArray[Any], ...]] = []  # source, target and weight of other labels
    for place, row, (part, i) in zip(places, rows, found, strict=True):
        about = part.rows[i]
        prompt = int(about["prompt"])
        ids[place] = row
        kept[place[prompt - 1 : -1]] = True
        counts = np.ones(len(row))
        counts[about["label"][0] : about["label"][1]] *= label_weight
        if label_smoothing and len(others := part.others(i)):
            at = others["place"]
            moved = counts[at] * label_smoothing / len(others)
            np.subtract.at(counts, at, moved)
            instead.append((place[at - 1], others["token"].astype(np.int64), moved))
        sources.append(place[prompt - 1 : -1])
        targets.append(row[prompt:])
        weights.append(counts[prompt:])
    ends = np.cumsum([len(each) for each in targets])
    index = (np.cumsum(kept) - 1)[np.concatenate([*sources, *(at for at, _, _ in instead)])]
    wanted = np.concatenate([*targets, *(tokens for _, tokens, _ in instead)])
    counted = np.concatenate([*weights, *(moved for _, _, moved in instead)])
    # a target that several rows share at one place counts for each of them
    pairs, which = np.unique(np.stack([index, wanted]), axis=1, return_inverse=True)
    if any(name.startswith("pixel_values") for name in inputs) and (types := _types(ids, loaded)) is not None:
        inputs["mm_token_type_ids"] = types.reshape(shape)
    inputs["input_ids"] = torch.from_numpy(ids.reshape(shape))
    inputs["logits_to_keep"] = torch.from_numpy(kept.reshape(shape))
    return Batch(
        inputs,
        targets=torch.from_numpy(pairs[1]),
        sources=torch.from_numpy(pairs[0]),
        weights=torch.from_numpy(np.bincount(which, counted).astype(np.float32)),
        numbers=tuple(numbers),
        learnt=int((counted[: ends[-1]] > 0).sum()),
        places=repeated,
        replies=tuple(np.split(which[: ends[-1]], ends[:-1])),
    )


def _laid_out(
    shards: Shards, numbers: Sequence[int], loaded: Loaded, *, trees: bool
) -> tuple[list[NDArray[np.int64]], torch.Tensor]:
    """The place of each token of each example in a packed row, and the row's table of segments."""
    sets: dict[int, list[int]] = {}
    for k, number in enumerate(numbers):
        sets.setdefault(int(shards.siblings[number]) if trees else k, []).append(k)
    places = [np.zeros(0, np.int64)] * len(numbers)
    ends, parents = list[int](), list[int]()
    for members in sets.values():
        tree = Tree([_keys(shards, numbers[k], loaded) for k in members])
        at, count = ends[-1] if ends else 0, len(ends)
        for k, place in zip(members, tree.places, strict=True):
            places[k] = place + at
        ends += [end + at for end in tree.ends]
        parents += [parent + count if parent >= 0 else -1 for parent in tree.parents]
    return places, segment_table(ends, parents)


def _media_tokens(ids: NDArray[np.int64], loaded: Loaded) -> NDArray[np.int64]:
    """The places of images in the ids, in order, then those of clips."""
    vision = loaded.processor.vision
    tokens = () if vision is None else (vision.image_token_id, vision.video_token_id)
    return np.concatenate([np.zeros(0, np.int64), *(np.flatnonzero(ids == token) for token in tokens)])


def _keys(shards: Shards, number: int, loaded: Loaded) -> NDArray[np.int64]:
    """The ids of an example, with the key of each picture or clip in its place."""
    part, i = shards.find(number)
    ids = part.ids(i).astype(np.int64)
    shown = part.shown(i)
    if len(shown):
        ids[_media_tokens(ids, loaded)] = -1 - np.repeat(shown["key"], shown["tokens"])
    return ids


def _shown(
    shards: Shards, numbers: Sequence[int], loaded: Loaded, places: list[NDArray[np.int64]], seen: Sequence[Tensors]
) -> tuple[dict[str, torch.Tensor], tuple[int, ...] | None]:
    """The tensors of the media in a packed row, each picture once, and the places of their features."""
    standing: dict[tuple[bool, int], tuple[Medium, int]] = {}
    for number, place, tensors in zip(numbers, places, seen, strict=True):
        part, i = shards.find(number)
        shown = part.shown(i)
        if not len(shown):
            continue
        firsts = np.cumsum([0, *shown["tokens"][:-1]])
        at = place[_media_tokens(part.ids(i).astype(np.int64), loaded)[firsts]].tolist()
        known = list(zip(shown["clip"].tolist(), at, strict=True))
        if any(each not in standing for each in known):
            media = separated(tensors)
            standing |= dict(zip(known, zip(media, shown["key"].tolist(), strict=True), strict=True))
    ordered = [standing[at] for at in sorted(standing)]
    once, repeated = distinct([medium for medium, _ in ordered], [key for _, key in ordered])
    plain = repeated == list(range(len(repeated)))
    return joined(once), None if plain else tuple(repeated)


def _types(ids: NDArray[np.int64], loaded: Loaded) -> torch.Tensor | None:
    """The kind of each token, 0 for text, 1 for images and 2 for clips; None for models without token types."""
    vision = loaded.processor.vision
    if vision is None or not vision.types_tokens:
        return None
    return torch.from_numpy((ids == vision.image_token_id) + 2 * (ids == vision.video_token_id)).long()


def _positions(
    shards: Shards, numbers: Sequence[int], loaded: Loaded, places: list[NDArray[np.int64]], seen: Sequence[Tensors],
    tokens: int,
) -> torch.Tensor:  # fmt: skip
    """The position of each token in its own row: (1, tokens), or (3, 1, tokens) where media have three dimensions."""
    made = []
    for number, tensors in zip(numbers, seen, strict=True):
        part, i = shards.find(number)
        ids = part.ids(i).astype(np.int64)
        if len(part.shown(i)) and (types := _types(ids, loaded)) is not None:
            told = {name: each for name, each in tensors.items() if name.endswith(("_grid_thw", "_grid_ts"))}
            made.append(loaded.model.model.get_rope_index(torch.from_numpy(ids)[None], types[None], **told)[0])
        else:
            made.append(torch.arange(len(ids))[None])
    found: torch.Tensor = made[0].new_zeros((*made[0].shape[:-1], tokens))
    for place, positions in zip(places, made, strict=True):
        found[..., torch.from_numpy(place)] = positions
    return found


def cross_entropies(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The cross-entropy of each target in nats, (targets,). logits: (kept, vocabulary)."""
    if len(batch.targets) > len(logits):  # without a copy of a row for each of its targets
        logits = logits.float()
        return logits.logsumexp(-1)[batch.sources] - logits[batch.sources, batch.targets]
    return torch.nn.functional.cross_entropy(logits.float(), batch.targets, reduction="none")


def summed_loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The weighted sum of cross-entropy over the targets, in nats. logits: (kept, vocabulary)."""
    return (cross_entropies(logits, batch) * batch.weights).sum()
