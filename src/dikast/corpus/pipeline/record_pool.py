"""A pool of records on disk with random access by number; 8 bytes each in memory."""

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

Record = dict[str, Any]


class RecordPool:
    """Starts empty, whatever the file held before. Do not append while iterating."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._starts = array("q")
        self._size = 0
        path.write_bytes(b"")

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Record:
        with self.path.open("rb") as file:
            file.seek(self._starts[number])
            found: Record = orjson.loads(file.readline())
        return found

    def __iter__(self) -> Iterator[Record]:
        with self.path.open("rb") as file:
            for line in file:
                yield orjson.loads(line)

    def append(self, record: Record) -> None:
        """Append a record."""
        line = orjson.dumps(record) + b"\n"
        with self.path.open("ab") as file:
            file.write(line)
        self._starts.append(self._size)
        self._size += len(line)
