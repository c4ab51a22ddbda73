"""Replies of requests with common prefixes, generated together: the keys of a prefix are stored and read once
for all.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, groupby, takewhile
from typing import NamedTuple

import torch

from dikast.engines.local.generating import Ask, GeneratedReply, Picks, Stops, reply_of
from dikast.engines.local.growable_cache import ROOM, larger
from dikast.engines.local.loading import Loaded
from dikast.engines.local.sharing.attention_part import Part, attend, merge
from dikast.engines.local.sharing.media_features import Encoder
from dikast.engines.local.sharing.segments import KeysSeen, Merged, Segments, folded, in_one_launch, unfolded
from dikast.engines.local.sharing.tree_attention import Block, attending_to_trees
from dikast.engines.local.sharing.tree_forward import Known, Path, TreeModel, TreeRow, positions_of

OWN = 64  # tokens of padding for each row, where ends of prompts are stored beside their replies in bounded memory
_CALL = 1000  # columns of one row that take attention as long as a call for that row alone


class TreeReply(NamedTuple):
    """A reply, and the ids of its request whose keys and values are in `path`."""

    reply: GeneratedReply
    ids: list[int]
    path: Path


def write(asks: Sequence[Ask], loaded: Loaded, trees: TreeModel, encoder: Encoder) -> list[TreeReply]:
    """A reply for each ask, in order. Rows that have ended are no longer computed."""
    most = max(ask.most for ask in asks)
    rows = [TreeRow(ask.prompt, ask.prompt.ids) for ask in asks]
    logits, paths = trees.run(rows, [1] * len(asks), encoder, hold=most + OWN)
    picks, stops = Picks(asks, loaded), Stops(asks, loaded)
    written: list[list[int]] = [[] for _ in asks]
    replies = _Replies(paths, most, bounded=trees.bounded)
    del paths  # what is not shared has been copied
    first = torch.stack([positions_of(ask.prompt, len(ask.prompt.ids) + 1, loaded)[..., -1] for ask in asks], -1)
    going, scores = list(range(len(asks))), torch.cat(logits)
    with torch.inference_mode(), attending_to_trees(loaded.model):
        while True:
            picks.forbid(scores)
            live = [(row, i) for row, i in enumerate(replies.rows) if i in going]
            for row, i in live:
                if picks.changes(i):  # a view of each row takes as long as a small kernel
                    picks.pick(i, written[i][-1] if written[i] else None, scores[row])
            chosen = scores.argmax(-1).tolist()
            for row, i in live:
                written[i].append(chosen[row])
            going = [i for i in going if written[i][-1] not in loaded.ends and not stops.ended(i, written[i])]
            if not going:
                break
            replies.leave_to(going, written)
            at = first[..., replies.rows] + replies.fed
            ids = torch.tensor(
                [written[i][replies.fed] if i in going else loaded.processor.padding for i in replies.rows]
            )
            scores = loaded.model(
                input_ids=ids[:, None].to(loaded.device),
                position_ids=at[..., None].to(loaded.device),
                attention_mask=torch.zeros(1, 1, 1, 1, dtype=torch.long, device=loaded.device),
                logits_to_keep=1, use_cache=False, return_dict=True, tree=replies,
            ).logits[:, -1].float()  # fmt: skip
            replies.fed += 1
            trees.note_bytes(replies.bytes)
    known = replies.paths(written)
    found = []
    for ask, all_ids, path in zip(asks, written, known, strict=True):
        reply = reply_of(ask, all_ids, loaded.ends, loaded.tokens)
        found.append(TreeReply(reply, [*ask.prompt.ids, *all_ids[:-1]], path))
    return found


class _Replies:
    """The keys and values of replies while they are written: blocks that rows share, and each row's own.

    `rows` are the numbers of the rows that are computed, `fed` the number of tokens that each reply has so far.
    """

    def __init__(self, paths: Sequence[Path], most: int, *, bounded: bool) -> None:
        self.rows, self.fed, self._most = list(range(len(paths))), 0, most
        like = paths[0][0].block
        self._together = in_one_launch(like.keys[0])
        users = _users(paths)
        alike = sum(path[-1].tokens for path in paths if users[id(path[-1].block)] == 1)
        padding = OWN * len(paths) if bounded else max(OWN * len(paths), alike)
        counts = own_blocks(paths, padding, copies=not self._together)
        cuts = [len(path) - n for path, n in zip(paths, counts, strict=True)]
        alone = [path[cut:] for path, cut in zip(paths, cuts, strict=True)]
        self._own = [sum(tokens for _, tokens in path) for path in alone]
        self._shared = [path[:cut] for path, cut in zip(paths, cuts, strict=True)]
        left = {id(block): block for path in self._shared for block, _ in path}
        self._shared_bytes = sum(block.bytes for block in left.values())
        self._begin = max(self._own)  # own tokens of prompts are right before this column
        self._left: dict[int, Block] = {}  # what rows that have left wrote
        self._keys, self._values = list[torch.Tensor](), list[torch.Tensor]()
        for layer, none in enumerate([each[:, :, :0].clone() for each in like.keys]):
            for room, of in ((self._keys, "keys"), (self._values, "values")):
                made = none.new_zeros((len(paths), none.shape[1], self._begin, none.shape[3]))
                for i, path in enumerate(alone):
                    at = self._begin - self._own[i]
                    for block, tokens in path:
                        made[i, :, at : at + tokens] = getattr(block, of)[layer][0]
                        at += tokens
                for block in (block for path in alone for block, _ in path if id(block) not in left):
                    getattr(block, of)[layer] = none  # freed, as it has been copied
                room.append(larger(made, self._begin, self._begin, min(most - 1, ROOM)))
        self._own_segments: Segments
        self._own_for = (-1, -1)  # tokens fed and columns of `_own_segments`
        self._merged: Merged | None = None
        if self._together:
            self._put_together()
        self._lay_out()

    @property
    def bytes(self) -> int:
        """What is held: blocks, and what rows have of their own."""
        own = sum(each.numel() * each.element_size() for each in (*self._keys, *self._values))
        return self._shared_bytes + own + sum(block.bytes for block in self._left.values())

    def leave_to(self, going: Sequence[int], written: Sequence[Sequence[int]]) -> None:
        """Continue with the rows in `going` only, once a quarter of the rows has ended."""
        if len(going) > 0.75 * len(self.rows):
            return
        for i in set(self.rows) - set(going):
            self._left[i] = self._block(i, len(written[i]) - 1, copy=True)
        at = torch.tensor([self.rows.index(i) for i in going])
        self._keys, self._values = ([each[at] for each in room] for room in (self._keys, self._values))
        self.rows = list(going)
        self._lay_out()

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One more token of each row, (rows, heads, 1, width): its keys and values are kept."""
        at = self._begin + self.fed
        for room, new in ((self._keys, key), (self._values, value)):
            if at >= room[layer].shape[2]:
                room[layer] = larger(room[layer], at, at + 1, min(self._most - self.fed - 2, ROOM))
            room[layer][:, :, at : at + 1] = new
        if self._together:
            return self._attend_together(layer, query, scale)
        keys, values = (room[layer][:, :, : at + 1] for room in (self._keys, self._values))
        mask = None if self._mask is None else _wide(self._mask, at + 1)
        whole = attend(query, keys, values, scale, mask=mask).exact()
        for start, end, (block, tokens) in self._seen:
            part = attend(
                query[start:end].transpose(0, 2),
                block.keys[layer][:, :, :tokens],
                block.values[layer][:, :, :tokens],
                scale,
            )
            turned = Part(part.out.transpose(0, 2), part.log_sum.transpose(0, 2))
            merge(Part(whole.out[start:end], whole.log_sum[start:end]), turned)
        return whole.out.to(query.dtype)

    def _attend_together(self, layer: int, query: torch.Tensor, scale: float) -> torch.Tensor:
        """The same in one launch for what the rows have of their own, and one for everything shared."""
        rows, heads, columns, width = self._keys[layer].shape
        query = folded(query[:, :, 0], heads)
        if self._own_for != (self.fed, columns):
            used = [self._own[i] + self.fed + 1 for i in self.rows]
            first = [row * heads * columns + self._begin - self._own[i] for row, i in enumerate(self.rows)]
            self._own_segments = Segments.of([query.shape[1]] * rows, first, used, query.device)
            self._own_for = self.fed, columns
        # the columns of all rows as one sequence of tokens, whose heads are `columns` tokens apart
        shape, strides = (((rows - 1) * heads + 1) * columns, heads, width), (width, columns * width, 1)
        keys, values = (each[layer].as_strided(shape, strides) for each in (self._keys, self._values))
        made = self._own_segments.attend(query.flatten(0, 1), keys, values, scale)
        own = Part(*(each.unflatten(0, (rows, -1)) for each in made))
        if not self._seen:
            return unfolded(own.out)[:, :, None]
        if self._merged is None:
            seen = [KeysSeen(at, end, self._first[id(block)], tokens) for at, end, (block, tokens) in self._seen]
            self._merged = Merged(seen, query.shape[1], query.device)
        keys, values = self._shared_keys[layer], self._shared_values[layer]
        return unfolded(self._merged.attend(query, keys, values, scale, own))[:, :, None]

    def _put_together(self) -> None:
        """Shared keys and values behind each other, of which those of the blocks become views."""
        blocks = list({id(block): block for path in self._shared for block, _ in path}.values())
        starts = accumulate((block.tokens for block in blocks), initial=0)
        self._first = {id(block): start for block, start in zip(blocks, starts, strict=False)}
        self._shared_keys, self._shared_values = list[torch.Tensor](), list[torch.Tensor]()
        if not blocks:
            return
        for rooms, of in ((self._shared_keys, "keys"), (self._shared_values, "values")):
            for layer in range(len(self._keys)):
                made = torch.cat([getattr(block, of)[layer][0].transpose(0, 1) for block in blocks])
                for block in blocks:
                    start = self._first[id(block)]
                    getattr(block, of)[layer] = made[start : start + block.tokens].transpose(0, 1)[None]
                rooms.append(made)

    def paths(self, written: Sequence[Sequence[int]]) -> list[Path]:
        """Where the keys and values of each row are: of its prompt and all of its reply but the last token."""
        found = []
        for i, shared in enumerate(self._shared):
            block = self._left.get(i) or self._block(i, len(written[i]) - 1)
            found.append((*shared, Known(block, block.tokens)) if block.tokens else shared)
        return found

    def _block(self, i: int, fed: int, *, copy: bool = False) -> Block:
        row, span = self.rows.index(i), slice(self._begin - self._own[i], self._begin + fed)
        parts = [[each[row : row + 1, :, span] for each in room] for room in (self._keys, self._values)]
        keys, values = ([each.clone() for each in part] if copy else part for part in parts)
        return Block(self._own[i] + fed, keys, values)

    def _lay_out(self) -> None:
        """Which neighbouring rows see which blocks, and which columns before the replies are empty."""
        self._seen: list[tuple[int, int, Known]] = []
        for depth in range(max(len(self._shared[i]) for i in self.rows)):
            deep = [path[depth] if depth < len(path) else None for path in (self._shared[i] for i in self.rows)]
            at = 0
            for _, same in groupby(deep, lambda known: id(known.block) if known is not None else 0):
                members = list(same)
                if members[0] is not None:
                    self._seen.append((at, at + len(members), members[0]))
                at += len(members)
        self._merged = None
        self._own_for = (-1, -1)
        own = torch.tensor([self._own[i] for i in self.rows])
        empty = torch.arange(self._begin) < self._begin - own[:, None]
        mask = torch.zeros(empty.shape).masked_fill(empty, -torch.inf)[:, None, None].to(self._keys[0])
        self._mask = mask if empty.any() else None


def own_blocks(paths: Sequence[Path], most: int, *, copies: bool) -> list[int]:
    """How many blocks at the end of each row's path are stored beside its reply, and computed with it.

    All others take a call of attention each. Rows are padded to the longest of them; padding and `copies`, of blocks
    that several rows continue, add at most `most` tokens in all.
    """
    users = _users(paths)
    sizes = {id(block): tokens for path in paths for block, tokens in path}

    def ends(path: Path) -> list[int]:
        alone = takewhile(lambda known: copies or users[id(known.block)] == 1, reversed(path))
        return list(accumulate(tokens for _, tokens in alone))

    def called(counts: Sequence[int]) -> set[int]:
        return {id(block) for path, n in zip(paths, counts, strict=True) for block, _ in path[: len(path) - n]}

    ended = [ends(path) for path in paths]
    widths = {0, *(width for each in ended for width in each if len(paths) * width - sum(sizes.values()) <= most)}
    found: list[tuple[int, int, list[int]]] = []
    for width in widths:
        counts = [bisect_right(each, width) for each in ended]
        calls = called(counts)
        freed = sum(tokens for block, tokens in sizes.items() if block not in calls)
        if len(paths) * width - freed <= most:
            found.append((len(paths) * width + _CALL * len(calls), width, counts))
    return min(found)[2]


def _users(paths: Sequence[Path]) -> Counter[int]:
    """How many rows see each block."""
    return Counter(id(block) for path in paths for block, _ in path)


def _wide(mask: torch.Tensor, columns: int) -> torch.Tensor:
    return torch.nn.functional.pad(mask, (0, columns - mask.shape[-1]))
