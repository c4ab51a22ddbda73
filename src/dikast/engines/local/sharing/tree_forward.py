"""Rows of tokens through a model as a prefix tree, each shared token once: the requested logits, and the keys and
values that are kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel

from dikast.core.errors import EngineError
from dikast.engines.local.growable_cache import growable_cache
from dikast.engines.local.loading import Loaded
from dikast.engines.local.prompt import Prompt
from dikast.engines.local.seeing.vision import FAMILIES
from dikast.engines.local.sharing.media_features import Encoder, Features, outputs_of
from dikast.engines.local.sharing.tree_attention import Block, SeenKeys, TreePass, attending_to_trees
from dikast.engines.local.sharing.trie import Row, Tree, Walk, walk

LEAST = 4  # tokens that rows must share to share a segment; attention to one more segment takes about as long
_MOST_BY_DEVICE = {"cpu": 1024}  # tokens of a forward pass by device; on a CPU they should fit in its cache
_MOST_TOKENS = 8192  # on other devices
_FAMILIES = {"llama", "mistral", "qwen2", "qwen3", *FAMILIES}  # whose attention and positions were tried


class Known(NamedTuple):
    """The first tokens of a block, as part of what comes before a row."""

    block: Block
    tokens: int


Path = tuple[Known, ...]


def cut_path(path: Path, tokens: int) -> Path:
    """The first `tokens` tokens of a path."""
    found = []
    for block, known in path:
        if tokens > 0:
            found.append(Known(block, min(known, tokens)))
        tokens -= known
    return tuple(found)


@dataclass(frozen=True)
class TreeRow:
    """Token ids of a prompt and what follows it. The first of them stand in `path`, whose keys and values are known."""

    prompt: Prompt
    ids: Sequence[int]
    path: Path = ()

    @property
    def known(self) -> int:
        """How many of the ids are known."""
        return sum(tokens for _, tokens in self.path)


@dataclass(slots=True)
class Counts:
    """Counts of what was requested and what was computed for it. Bytes are the maximum of keys and values
    held at once.
    """

    tokens_asked: int = 0
    tokens_computed: int = 0
    pictures_shown: int = 0
    pictures_encoded: int = 0
    peak_bytes: int = 0


def keyed_ids(prompt: Prompt, ids: Sequence[int] | Row, loaded: Loaded) -> Row:
    """Ids of a prompt and what follows it, with the key of a picture or clip, less than 0, where it stands."""
    found = np.array(ids, np.int64)
    keys = np.array(prompt.seen.keys, np.int64)
    at = 0
    for _, token, shown in _media(prompt, loaded):
        counts = [each.count(token) for each in shown]
        found[found == token] = -1 - np.repeat(keys[at : at + len(shown)], counts)
        at += len(shown)
    return found


def _media(prompt: Prompt, loaded: Loaded) -> Iterator[tuple[bool, int, tuple[tuple[int, ...], ...]]]:
    """Pictures, then clips, where a prompt has some: whether clips, their placeholder, and the ids of each."""
    seen, vision = prompt.seen, loaded.processor.vision
    if vision is not None and seen.images:
        yield False, vision.image_token_id, seen.images
    if vision is not None and vision.video_token_id is not None and seen.clips:
        yield True, vision.video_token_id, seen.clips


class _Laid:
    """A row ready to be laid out: positions of all its tokens, and the features of its media."""

    def __init__(self, row: TreeRow, loaded: Loaded, encoder: Encoder) -> None:
        self.row, self.known, self._encoder = row, row.known, encoder
        self.ids: Row = np.array(row.ids, np.int64)
        self.keyed = keyed_ids(row.prompt, self.ids, loaded)
        self._stands: dict[bool, tuple[Row, list[int]]] = {}  # placeholders before each token, and those of each medium
        for clip, token, shown in _media(row.prompt, loaded):
            before = np.concatenate([[0], (self.ids == token).cumsum()])
            self._stands[clip] = before, [each.count(token) for each in shown]
        self.positions = positions_of(row.prompt, len(self.ids), loaded)

    def media(self, start: int, end: int) -> Iterator[tuple[bool, Features]]:
        """The features of the placeholders among tokens `start` to `end`, and whether they are of clips."""
        for clip, (before, counts) in self._stands.items():
            low, high, at = int(before[start]), int(before[end]), 0
            for i, count in enumerate(counts):
                begin, stop = max(low - at, 0), min(high - at, count)
                if begin < stop:
                    yield clip, self._encoder.features(self.row.prompt.seen, clip, i).between(begin, stop)
                at += count


def positions_of(prompt: Prompt, tokens: int, loaded: Loaded) -> torch.Tensor:
    """Positions of the prompt and of text after it: (tokens,), or (3, tokens) for models whose media have three
    dimensions.
    """
    vision = loaded.processor.vision
    if vision is None or not vision.types_tokens:
        return torch.arange(tokens)
    if not prompt.seen.tensors:
        return torch.arange(tokens).expand(3, tokens)
    ids = torch.tensor(prompt.ids)
    types = (ids == vision.image_token_id) + 2 * (ids == vision.video_token_id)
    told = {name: each for name, each in prompt.seen.tensors.items() if name.endswith(("_grid_thw", "_grid_ts"))}
    found: torch.Tensor = loaded.model.model.get_rope_index(ids[None], types[None].long(), **told)[0][:, 0]
    after = found.max() + 1 + torch.arange(max(0, tokens - len(ids)))
    return torch.cat([found, after.expand(3, -1).to(found)], 1)[:, :tokens]


class TreeModel:
    """Computes rows of tokens as trees. `memory` bounds the bytes of keys and values that are held at once."""

    def __init__(self, loaded: Loaded, *, memory: int | None = None) -> None:
        self._loaded, self._memory = loaded, memory
        self._most = _MOST_BY_DEVICE.get(loaded.device.type, _MOST_TOKENS)
        text = loaded.model.config.get_text_config()
        width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        self.token_bytes = int(2 * text.num_hidden_layers * heads * width * loaded.model.dtype.itemsize)
        self.counts = Counts()

    def run(
        self, rows: Sequence[TreeRow], keep: Sequence[int], encoder: Encoder, *, hold: int | None = None
    ) -> tuple[list[torch.Tensor], list[Path]]:
        """Logits after each of the last `keep[i]` tokens of row i, (keep, vocabulary) in float32, and with `hold` the
        path of each row: its keys and values, while `hold` tokens more are expected for every row.

        EngineError with the kind `out_of_memory` where `memory` does not suffice.
        """
        laid = [_Laid(row, self._loaded, encoder) for row in rows]
        groups = [tuple((id(block), tokens) for block, tokens in row.path) for row in rows]
        tree = Tree([each.keyed[each.known :] for each in laid], least=LEAST, groups=groups)
        plan = walk(tree, self._most)
        self._check_memory(plan.held if hold is None else tree.tokens + hold * len(rows))
        self.counts.tokens_asked += sum(len(each.ids) - each.known for each in laid)
        self.counts.tokens_computed += tree.tokens
        asked = [place[len(place) - k :] for place, k in zip(tree.places, keep, strict=True)]
        places = np.unique(np.concatenate(asked))
        found, blocks, at = [], dict[int, Block](), 0
        with torch.inference_mode(), attending_to_trees(self._loaded.model):
            for number, part in enumerate(plan.passes):
                kept = {n: Block(_length(plan, n)) for n in part if hold is not None or plan.until[n] > number}
                size = sum(_length(plan, n) for n in part)
                inside = places[(places >= at) & (places < at + size)] - at
                found.append(self._forward(plan, part, laid, blocks, kept, inside))
                blocks |= kept
                self.note_bytes(sum(block.bytes for block in blocks.values()))
                if hold is None:
                    blocks = {n: block for n, block in blocks.items() if plan.until[n] > number}
                at += size
        logits = torch.cat(found)
        paths = [_path(row, plan, leaf, blocks) for row, leaf in zip(rows, plan.leaves, strict=True)]
        return [logits[torch.from_numpy(np.searchsorted(places, each))] for each in asked], paths

    @property
    def bounded(self) -> bool:
        """Whether `memory` was given."""
        return self._memory is not None

    def note_bytes(self, held: int) -> None:
        """Keep count of the most bytes held at once."""
        self.counts.peak_bytes = max(self.counts.peak_bytes, held)

    def _check_memory(self, tokens: int) -> None:
        needed = tokens * self.token_bytes
        if self._memory is not None and needed > self._memory:
            raise EngineError(
                f"the keys and values of {tokens:,} tokens take {needed / 1e9:.3g} GB, and memory is bounded to "
                f"{self._memory / 1e9:.3g} GB: raise 'memory', or shorten the item",
                kind="out_of_memory",
            )

    def _forward(
        self, plan: Walk, part: range, laid: Sequence[_Laid], blocks: dict[int, Block], kept: dict[int, Block],
        places: Row,
    ) -> torch.Tensor:  # fmt: skip
        """One forward pass: logits at `places` of it, (places, vocabulary)."""
        ids, positions = [], []
        media: dict[bool, list[Features]] = {False: [], True: []}
        for n in part:
            segment = plan.segments[n]
            each = laid[segment.row]
            start, end = segment.start + each.known, segment.end + each.known
            ids.append(each.ids[start:end])
            positions.append(each.positions[..., start:end])
            for clip, features in each.media(start, end):
                media[clip].append(features)
        device, model = self._loaded.device, self._loaded.model
        placed = torch.cat(positions, -1).to(device)
        inputs: dict[str, Any] = {
            "input_ids": torch.from_numpy(np.concatenate(ids))[None].to(device),
            "position_ids": placed[:, None] if placed.ndim == 2 else placed[None],
            "attention_mask": torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device),  # with four dimensions: unused
            "logits_to_keep": torch.from_numpy(places).to(device),
            "tree": _tree_pass(plan, part, laid, blocks, kept),
        }
        if media[False] or media[True]:
            inputs["mm_encoder_outputs"] = outputs_of(media, model)
        logits: torch.Tensor = model(**inputs, use_cache=False, return_dict=True).logits
        return logits[0].float()


def why_alone(model: Any) -> str:
    """Why rows cannot be computed as trees by a model; "" if they can."""
    known = isinstance(model, PreTrainedModel) and type(model).__module__.startswith("transformers.models.")
    if not known or model.config.model_type not in _FAMILIES:
        kind = getattr(model.config, "model_type", type(model).__name__)
        return f"models of the type {kind!r} are not known to give the same answers then"
    if growable_cache(model) is None:
        return f"{type(model).__name__} has layers with sliding windows or states"
    return ""


def _length(plan: Walk, n: int) -> int:
    return plan.segments[n].end - plan.segments[n].start


def _path(row: TreeRow, plan: Walk, leaf: int, blocks: dict[int, Block]) -> Path:
    found: list[Known] = []
    while leaf in blocks:
        found.append(Known(blocks[leaf], blocks[leaf].tokens))
        leaf = plan.segments[leaf].parent
    return (*row.path, *reversed(found))


def _tree_pass(
    plan: Walk, part: range, laid: Sequence[_Laid], blocks: dict[int, Block], kept: dict[int, Block]
) -> TreePass:
    """What each segment of a pass sees: itself, and what it continues in this pass and in earlier ones."""
    starts = np.concatenate([[0], np.cumsum([_length(plan, n) for n in part])])

    def at(n: int) -> int:
        return int(starts[min(max(n, part.start), part.stop) - part.start])

    seen = []
    earlier, n = list[int](), plan.segments[part.start].parent
    while n >= 0:
        earlier.append(n)
        n = plan.segments[n].parent
    for n in (*reversed(earlier), *part):
        stop = plan.stops[n]
        if n < part.start:
            seen.append(SeenKeys(0, at(stop), blocks[n], 0, _length(plan, n)))
        elif stop > n + 1:
            seen.append(SeenKeys(at(n + 1), at(stop), None, at(n), _length(plan, n)))
        if plan.segments[n].parent < 0:
            path = laid[plan.segments[n].row].row.path
            seen += [SeenKeys(at(n), at(stop), block, 0, tokens) for block, tokens in path]
    own = [(at(n), at(n + 1)) for n in part]
    return TreePass(own, _merged(seen), [(at(n), at(n + 1), block) for n, block in kept.items()])


def _merged(seen: Sequence[SeenKeys]) -> list[SeenKeys]:
    """What neighbouring queries see of one block as one call."""
    found: list[SeenKeys] = []
    by_keys = sorted((each for each in seen if each.start < each.end), key=lambda s: (id(s.block), s.begin, s.tokens))
    for _, same in groupby(by_keys, lambda s: (id(s.block), s.begin, s.tokens)):
        for each in sorted(same, key=lambda s: s.start):
            if found and found[-1].end == each.start and found[-1][2:] == each[2:]:
                found[-1] = found[-1]._replace(end=each.end)
            else:
                found.append(each)
    return found
