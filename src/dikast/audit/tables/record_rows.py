"""Records to audit, one flat object a row, of any file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.core.records import read_records
from dikast.core.records.sniffing import nearest
from dikast.core.records.sources import is_address


@dataclass(slots=True)
class Rows:
    """The records of a file with the line each starts on; iterable any number of times.

    A JSON file that is one object of objects (`{"id": {...}, ...}`) is read as one record for each, its key as `id`.
    """

    path: str
    _spooled: list[tuple[dict[str, Any], int]] | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        if self.path == "-":  # standard input passes only once
            if self._spooled is None:
                self._spooled = [(record.value, record.line) for record in read_records("-")]
            yield from self._spooled
            return
        if not is_address(self.path) and not Path(self.path).exists():
            near = nearest(self.path)
            cure = f"did you mean {near!r}?" if near else "fix the path"
            raise UserError(f"{self.path}: there is no such file or folder; {cure}")
        records = read_records(self.path)
        if not self.path.removesuffix(".gz").endswith(".json"):
            yield from records
            return
        for value, line in records:
            if len(value) > 1 and all(isinstance(each, dict) for each in value.values()):
                for key, each in value.items():
                    yield {"id": key, **each}, line
            else:
                yield value, line


Watch = Callable[[Rows], Callable[[Mapping[str, Any]], object]]
"""Called with the rows of an audited file before they are read; what it returns is called with each row."""
