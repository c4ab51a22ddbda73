"""Prepared examples on disk: token ids, labels, and references to the pictures and clips that they show.

Media that several examples of a shard share are referred to once. Shards of earlier versions held the tensors of media;
they are read where they show none.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from dikast.core.canonical import fingerprint
from dikast.core.errors import RunError
from dikast.core.media import image_file, image_sha256
from dikast.core.part import Image
from dikast.core.text import counted
from dikast.engines.local.seeing.vision import Vision
from dikast.training.data.encode import Encoded
from dikast.training.data.media_loader import Due, MediaLoader, Tensors
from dikast.training.data.media_references import MediaReference, path_of, read, written

ROW = np.dtype([("start", "<i8"), ("length", "<i4"), ("prompt", "<i4"), ("label", "<i4", 2), ("media", "<i4")])
SHOWN = np.dtype([("row", "<i4"), ("clip", "?"), ("tokens", "<i4"), ("key", "<i8")])
OTHER = np.dtype([("row", "<i4"), ("place", "<i4"), ("token", "<u4")])  # of another label of the question
MEDIA = np.dtype([("kind", "<i4"), ("start", "<i8"), ("length", "<i4")])  # a reference in the bytes of the shard
_MOST_ROWS = 8192
_MOST_BYTES = 256 * 2**20  # of references and kept files
_MOST_OPEN = 64  # files of a folder that are mapped at a time, each of which holds a descriptor


class ShardWriter:
    """Writes encoded examples into `folder/shard-PREFIX-NNNN`, starting a new shard when one is full.

    root: the folder that references to local files are relative to.
    """

    def __init__(self, folder: Path, prefix: int, *, root: str = "") -> None:
        self._folder, self._prefix, self._root, self._number = folder, prefix, root, 0
        self._clear()

    def _clear(self) -> None:
        self._tokens: list[NDArray[np.uint32]] = []
        self._rows: list[tuple[Any, ...]] = []
        self._names: list[tuple[str, str]] = []
        self._openings: list[int] = []
        self._shown: list[tuple[int, bool, int, int]] = []
        self._others: list[tuple[int, int, int]] = []
        self._kinds: list[list[int]] = []
        self._media: list[tuple[int, int, int]] = []
        self._known: dict[object, int] = {}
        self._files: dict[str, list[int]] = {}
        self._bytes = bytearray()
        self._size = 0

    def add(self, name: str, origin: str, encoded: Encoded, *, opening: int = 0) -> None:
        """Append an example. opening: 63 bits that examples share which ask alike up to the first response."""
        media = self._place(encoded)
        self._openings.append(opening)
        self._shown.extend((len(self._rows), *shown) for shown in encoded.shown)
        self._others.extend((len(self._rows), *other) for other in encoded.others)
        row = (self._size, len(encoded.ids), encoded.prompt, encoded.label, media)
        self._rows.append(row)
        self._names.append((name, origin))
        self._tokens.append(np.asarray(encoded.ids, np.uint32))
        self._size += len(encoded.ids)
        if len(self._rows) >= _MOST_ROWS or len(self._bytes) >= _MOST_BYTES:
            self.flush()

    def _place(self, encoded: Encoded) -> int:
        """The index of the reference to an example's media; -1 for none."""
        if not any(encoded.media):
            return -1
        told, kind = written(encoded.media, self._root, self._kept), list(encoded.shape)
        if kind not in self._kinds:
            self._kinds.append(kind)
        key = (told, encoded.shape)
        if key not in self._known:
            self._known[key] = len(self._media)
            start, length = self._stored(told)
            self._media.append((self._kinds.index(kind), start, length))
        return self._known[key]

    def _kept(self, image: Image) -> list[int]:
        """Where the bytes of a file are that is not on this machine, once for all examples of the shard."""
        sha256 = image_sha256(image)
        if sha256 not in self._files:
            self._files[sha256] = self._stored(image_file(image))
        return self._files[sha256]

    def _stored(self, raw: bytes) -> list[int]:
        self._bytes += raw
        return [len(self._bytes) - len(raw), len(raw)]

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
        np.save(folder / "others.npy", np.array(self._others, OTHER))
        np.save(folder / "bytes.npy", np.frombuffer(self._bytes, np.uint8))
        (folder / "names.json").write_bytes(orjson.dumps(self._names))
        (folder / "kinds.json").write_bytes(orjson.dumps(self._kinds))
        self._number += 1
        self._clear()


class Shard:
    """One shard, whose tokens and bytes `mapped` maps into memory by their path."""

    def __init__(self, folder: Path, mapped: Callable[[Path], NDArray[Any]], root: str = "") -> None:
        self.folder, self._mapped, self._root = folder, mapped, root
        self.rows = np.load(folder / "rows.npy")
        self._media = np.load(folder / "media.npy")
        self._kinds = orjson.loads((folder / "kinds.json").read_bytes())

    @property
    def names_media(self) -> bool:
        """Whether media are referred to; shards of earlier versions hold their tensors, and are prepared anew."""
        return not len(self._media) or self._media.dtype == MEDIA

    def ids(self, i: int) -> NDArray[Any]:
        """Token ids of a row."""
        row = self.rows[i]
        tokens = self._mapped(self.folder / "tokens.npy")
        return np.asarray(tokens[row["start"] : row["start"] + row["length"]])

    def name(self, i: int) -> tuple[str, str]:
        """Id and origin (`file:line`) of a row."""
        name, origin = orjson.loads((self.folder / "names.json").read_bytes())[i]
        return name, origin

    @cached_property
    def openings(self) -> NDArray[np.int64]:
        """The opening of each row."""
        return np.asarray(np.load(self.folder / "openings.npy"))

    def shown(self, i: int) -> NDArray[Any]:
        """The images of a row in order, then its clips, as `SHOWN`."""
        return _of_row(self._shown, i)

    @cached_property
    def _shown(self) -> NDArray[Any]:
        return np.asarray(np.load(self.folder / "shown.npy"))

    def others(self, i: int) -> NDArray[Any]:
        """Where the other labels of a row's question differ from its own, as `OTHER`."""
        return _of_row(self._others, i)

    @cached_property
    def _others(self) -> NDArray[Any]:
        return np.asarray(np.load(self.folder / "others.npy"))

    def groups(self) -> list[tuple[int, ...]]:
        """The group of each row; rows of equal groups may share a batch."""
        kinds = [tuple(kind) for kind in self._kinds]
        return [kinds[self._media[place]["kind"]] if place >= 0 else () for place in self.rows["media"]]

    def media(self, i: int) -> MediaReference | None:
        """The reference to the media of a row, None for a row without any."""
        place = int(self.rows[i]["media"])
        if place < 0:
            return None
        return self._reference(place, self._kept)

    def paths(self, i: int) -> list[str]:
        """The local files that a row shows."""
        place = int(self.rows[i]["media"])
        files = self._reference(place, lambda start, length: b"").files() if place >= 0 else ()
        return [path for image, _ in files if (path := path_of(image))]

    def _reference(self, place: int, kept: Callable[[int, int], bytes]) -> MediaReference:
        _, start, length = self._media[place].item()
        return read(self._kept(start, length), self._root, kept)

    def _kept(self, start: int, length: int) -> bytes:
        return self._mapped(self.folder / "bytes.npy")[start : start + length].tobytes()


def _of_row(table: NDArray[Any], i: int) -> NDArray[Any]:
    """The entries of row `i` in a table that is sorted by row."""
    start, end = np.searchsorted(table["row"], [i, i + 1])
    return np.asarray(table[start:end])


@dataclass(frozen=True)
class Shards:
    """Every example of a folder of shards, by number."""

    folder: Path
    parts: tuple[Shard, ...]
    loader: MediaLoader | None = None

    @classmethod
    def open(cls, folder: Path, vision: Vision | None = None, *, root: str = "", threads: int = 1) -> "Shards":
        """All shards of a folder, of which the last used are memory-mapped.

        vision: makes the tensors of media, in `threads` threads. root: the folder that local files are relative to.
        """
        mapped = lru_cache(_MOST_OPEN)(partial(np.load, mmap_mode="r"))
        parts = tuple(Shard(path, mapped, root) for path in sorted(folder.glob("shard-*")))
        return cls(folder, parts, None if vision is None else MediaLoader(vision, threads))

    def load(self, numbers: Iterable[int]) -> Iterator[Tensors]:
        """The media tensors of examples, in order, as `MediaLoader.load` makes them."""
        due: list[Due | None] = []
        for number in numbers:
            part, row = self.find(number)
            reference = part.media(row)
            due.append(None if reference is None else Due(reference, partial(part.name, row)))
        if self.loader is None:
            return iter([{}] * len(due))
        return self.loader.load(due)

    def check_files(self) -> None:
        """RunError, naming row and file of the first, where files are gone that the examples show."""
        known, gone = set[str](), list[str]()
        for part in self.parts:
            _, first = np.unique(part.rows["media"], return_index=True)
            for row in first.tolist():
                for path in part.paths(row):
                    if path not in known and not Path(path).exists():
                        gone.append(f"{part.name(row)[1]}: {path}")
                    known.add(path)
        if gone:
            raise RunError(
                f"{gone[0]} is gone, which was there when the examples were prepared (in all {len(gone):,} of "
                f"{counted(len(known), 'file')}): training reads pictures when it needs them: put back what is missing,"
                " and run the same command again"
            )

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
    def name_media(self) -> bool:
        """Whether all media are referred to; shards of earlier versions hold their tensors."""
        return all(part.names_media for part in self.parts)

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
        return part.name(row)
