"""Prepared examples on disk: token ids, and images as the processor's output.

Images are compressed without loss: a processor's output takes few distinct values (256 levels in three channels), so
each number is stored as an index into a table of values, one or two bytes instead of four. With too many distinct
values the numbers are stored unchanged. Media that several examples of a shard share are stored once.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from dikast.core.canonical import fingerprint
from dikast.training.data.encode import Encoded

if TYPE_CHECKING:
    import torch

VERSION = 2
ROW = np.dtype([("start", "<i8"), ("length", "<i4"), ("prompt", "<i4"), ("label", "<i4", 2), ("media", "<i4")])
SHOWN = np.dtype([("row", "<i4"), ("clip", "?"), ("tokens", "<i4"), ("key", "<i8")])
MEDIA = np.dtype([("kind", "<i4"), ("floats", "<i8"), ("ints", "<i8")])
_MOST_ROWS = 8192
_MOST_FLOATS = 64 * 2**20
_MOST_VALUES = 2**16
_MOST_OPEN = 64  # files of a folder that are mapped at a time, each of which holds a descriptor


class ShardWriter:
    """Writes encoded examples into `folder/shard-PREFIX-NNNN`, starting a new shard when one is full."""

    def __init__(self, folder: Path, prefix: int) -> None:
        self._folder, self._prefix, self._number = folder, prefix, 0
        self._clear()

    def _clear(self) -> None:
        self._tokens: list[NDArray[np.uint32]] = []
        self._rows: list[tuple[Any, ...]] = []
        self._names: list[tuple[str, str]] = []
        self._openings: list[int] = []
        self._shown: list[tuple[int, bool, int, int]] = []
        self._kinds: list[dict[str, Any]] = []
        self._media: list[tuple[int, int, int]] = []
        self._known: dict[bytes, int] = {}
        self._floats: list[NDArray[np.float32]] = []
        self._ints: list[NDArray[np.int64]] = []
        self._size = self._float_size = self._int_size = 0

    def add(self, name: str, origin: str, encoded: Encoded, *, opening: int = 0) -> None:
        """Append an example. opening: 63 bits that examples share which ask alike up to the first response."""
        media = self._place(encoded)
        self._openings.append(opening)
        self._shown.extend((len(self._rows), *shown) for shown in encoded.shown)
        row = (self._size, len(encoded.ids), encoded.prompt, encoded.label, media)
        self._rows.append(row)
        self._names.append((name, origin))
        self._tokens.append(np.asarray(encoded.ids, np.uint32))
        self._size += len(encoded.ids)
        if len(self._rows) >= _MOST_ROWS or self._float_size >= _MOST_FLOATS:
            self.flush()

    def _place(self, encoded: Encoded) -> int:
        """The index of an example's media; -1 for none."""
        if not encoded.media:
            return -1
        arrays = {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in sorted(encoded.media.items())}
        digest = hashlib.blake2b(digest_size=16)
        for array in arrays.values():
            digest.update(array)  # type: ignore[arg-type]  # a buffer
        key = digest.digest()
        if key in self._known:
            return self._known[key]
        tensors = {name: {"shape": list(a.shape), "dtype": str(a.dtype)} for name, a in arrays.items()}
        kind = {"group": list(encoded.shape), "tensors": tensors}
        if kind not in self._kinds:
            self._kinds.append(kind)
        self._media.append((self._kinds.index(kind), self._float_size, self._int_size))
        for array in arrays.values():
            if array.dtype.kind == "f":
                self._floats.append(array.astype(np.float32).ravel())
                self._float_size += array.size
            else:
                self._ints.append(array.astype(np.int64).ravel())
                self._int_size += array.size
        self._known[key] = len(self._media) - 1
        return self._known[key]

    def flush(self) -> None:
        """Write the pending examples."""
        if not self._rows:
            return
        tokens = np.concatenate(self._tokens)
        folder = self._folder / f"shard-{self._prefix:05d}-{self._number:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "tokens.npy", tokens.astype(np.uint16) if tokens.max() < 2**16 else tokens)
        np.save(folder / "rows.npy", np.array(self._rows, ROW))
        np.save(folder / "media.npy", np.array(self._media, MEDIA))
        np.save(folder / "openings.npy", np.array(self._openings, np.int64))
        np.save(folder / "shown.npy", np.array(self._shown, SHOWN))
        np.save(folder / "ints.npy", np.concatenate(self._ints) if self._ints else np.zeros(0, np.int64))
        table, codes = _coded(self._floats)
        np.save(folder / "table.npy", table)
        np.save(folder / "floats.npy", codes)
        (folder / "names.json").write_bytes(orjson.dumps(self._names))
        (folder / "kinds.json").write_bytes(orjson.dumps(self._kinds))
        self._number += 1
        self._clear()


def _coded(floats: Sequence[NDArray[np.float32]]) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """The table of distinct values and each number's index; an empty table and the numbers if there are too many."""
    table = np.zeros(0, np.float32)
    for array in floats:
        table = np.union1d(table, np.unique(array))
        if len(table) > _MOST_VALUES or not np.isfinite(table).all():
            return np.zeros(0, np.float32), np.concatenate(floats)
    kind = np.uint8 if len(table) <= 256 else np.uint16
    codes = [_places(table, array).astype(kind) for array in floats]
    return table, np.concatenate(codes) if codes else np.zeros(0, np.uint8)


def _places(table: NDArray[np.float32], array: NDArray[np.float32]) -> NDArray[np.int64]:
    """The index of each number in the sorted table, looked up once for each distinct value (three times as fast)."""
    values, places = np.unique(array, return_inverse=True)
    return np.searchsorted(table, values)[places]


class Shard:
    """One shard, whose tokens and floats `mapped` maps into memory by their path."""

    def __init__(self, folder: Path, mapped: Callable[[Path], NDArray[Any]]) -> None:
        self.folder, self._mapped = folder, mapped
        self.rows = np.load(folder / "rows.npy")
        self._media = np.load(folder / "media.npy")
        self._kinds = orjson.loads((folder / "kinds.json").read_bytes())
        self._ints = np.load(folder / "ints.npy")
        self._table = np.load(folder / "table.npy")

    def ids(self, i: int) -> NDArray[Any]:
        """Token ids of a row."""
        row = self.rows[i]
        tokens = self._mapped(self.folder / "tokens.npy")
        return np.asarray(tokens[row["start"] : row["start"] + row["length"]])

    @cached_property
    def openings(self) -> NDArray[np.int64]:
        """The opening of each row."""
        return np.asarray(np.load(self.folder / "openings.npy"))

    def shown(self, i: int) -> NDArray[Any]:
        """The images of a row in order, then its clips, as `SHOWN`."""
        start, end = np.searchsorted(self._shown["row"], [i, i + 1])
        return np.asarray(self._shown[start:end])

    @cached_property
    def _shown(self) -> NDArray[Any]:
        return np.asarray(np.load(self.folder / "shown.npy"))

    def groups(self) -> list[tuple[int, ...]]:
        """The group of each row; rows of equal groups may share a batch."""
        kinds = [tuple(kind["group"]) for kind in self._kinds]
        return [kinds[self._media[place]["kind"]] if place >= 0 else () for place in self.rows["media"]]

    def media(self, i: int) -> "dict[str, torch.Tensor]":
        """The media tensors of a row, bit for bit as the processor gave them."""
        import torch

        place = int(self.rows[i]["media"])
        if place < 0:
            return {}
        kind, float_at, int_at = (int(value) for value in self._media[place])
        found: dict[str, torch.Tensor] = {}
        floats = self._mapped(self.folder / "floats.npy")
        for name, about in self._kinds[kind]["tensors"].items():
            size = int(np.prod(about["shape"]))
            if about["dtype"].startswith("float"):
                stored = np.asarray(floats[float_at : float_at + size])
                flat: NDArray[Any] = self._table[stored] if len(self._table) else stored.copy()
                float_at += size
            else:
                flat = self._ints[int_at : int_at + size].copy()
                int_at += size
            found[name] = torch.from_numpy(flat.astype(about["dtype"], copy=False)).reshape(about["shape"])
        return found


@dataclass(frozen=True)
class Shards:
    """Every example of a folder of shards, by number."""

    folder: Path
    parts: tuple[Shard, ...]

    @classmethod
    def open(cls, folder: Path) -> "Shards":
        """All shards of a folder, of which the last used are memory-mapped."""
        mapped = lru_cache(_MOST_OPEN)(partial(np.load, mmap_mode="r"))
        return cls(folder, tuple(Shard(path, mapped) for path in sorted(folder.glob("shard-*"))))

    @cached_property
    def shown(self) -> str:
        """Fingerprint of the content of every file that the examples show."""
        files = sorted(self.folder.glob("shown-*.json"))
        return fingerprint([[row[-1] for row in orjson.loads(file.read_bytes())] for file in files])

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.parts else 0

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([len(part.rows) for part in self.parts])

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """Tokens of each example, (n,)."""
        return np.concatenate([part.rows["length"] for part in self.parts])

    @cached_property
    def prompts(self) -> NDArray[np.int32]:
        """Prompt tokens of each example, masked in the loss, (n,)."""
        return np.concatenate([part.rows["prompt"] for part in self.parts])

    @cached_property
    def groups(self) -> NDArray[np.int32]:
        """The group of each example, (n,); examples of one group may share a batch."""
        known: dict[tuple[int, ...], int] = {}
        return np.array([known.setdefault(g, len(known)) for part in self.parts for g in part.groups()], np.int32)

    @property
    def tell_siblings(self) -> bool:
        """Whether they hold what packing needs; shards of earlier versions do not."""
        return all((part.folder / "openings.npy").is_file() for part in self.parts)

    @cached_property
    def siblings(self) -> NDArray[np.int64]:
        """The number of each example's set of siblings, (n,), by first appearance.

        Siblings are of one group and open alike, up to the first response.
        """
        openings = np.concatenate([part.openings for part in self.parts])
        _, first, place = np.unique(np.stack([openings, self.groups]), axis=1, return_index=True, return_inverse=True)
        ranks = np.empty(len(first), np.int64)
        ranks[np.argsort(first)] = np.arange(len(first))
        return ranks[place]

    def find(self, number: int) -> tuple[Shard, int]:
        """The shard of an example and its row there."""
        part = int(np.searchsorted(self._ends, number, side="right"))
        return self.parts[part], number - (int(self._ends[part - 1]) if part else 0)

    def name(self, number: int) -> tuple[str, str]:
        """Id and origin (`file:line`) of an example."""
        part, row = self.find(number)
        name, origin = orjson.loads((part.folder / "names.json").read_bytes())[row]
        return name, origin
