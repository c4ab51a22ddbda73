"""Records to audit, one flat object a row, of any file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.core.gold import LABEL_CHANCE
from dikast.core.records import escaped_formula, read_records
from dikast.core.records.sources import is_address
from dikast.core.runs.run_files import GOLD, VERDICTS
from dikast.core.runs.schema import GoldLine, derived_lines
from dikast.core.text import hint, nearest


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

    def an_example(self) -> Mapping[str, Any]:
        """A record, for the names of its columns; StopIteration where there is none."""
        return next(iter(self))[0]

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """The file of each column that stands in another one than the rows."""
        return {}

    def place(self, column: str, record: Mapping[str, Any], line: int) -> tuple[str, int]:
        """The file and the line of a column of a record that is on `line` of its own file."""
        del column, record
        return self.path, line


class GoldOfItems(dict[str, dict[str, Any]]):
    """Column -> item -> gold, and where in its file the gold of each item stands."""

    def __init__(
        self,
        columns: Mapping[str, dict[str, Any]] | None = None,
        *,
        path: str = "",
        lines: Mapping[str, Mapping[tuple[str, int], int]] | None = None,
    ) -> None:
        super().__init__(columns or {})
        self.path, self._lines = path, lines or {}

    def line(self, item: str, criterion: str, response: int) -> int:
        """The line of the gold of an item, of one criterion and response where these have their own; 0 if unknown."""
        known = self._lines.get(item) or self._lines.get(escaped_formula(item), {})
        return known.get((criterion, response)) or next(iter(known.values()), 0)


Watch = Callable[[Rows], Callable[[Mapping[str, Any]], object]]
"""Called with the rows of an audited file before they are read; what it returns is called with each row."""


def gold_by_item(path: str | Path, columns: Sequence[str], key: str = "") -> GoldOfItems:
    """Column -> item -> value of a file of gold; items are named in `key`, or else in `item` or `id`.

    An item may stand in several rows that differ in `criterion` or `response_index`, as `dikast export` writes them:
    its value is then an object by criterion, with lists by response where there are several.
    """
    found: dict[str, dict[str, dict[tuple[str, int], Any]]] = {column: {} for column in columns}
    place: dict[str, dict[tuple[str, int], int]] = {}
    known: dict[str, None] = {}
    whole = Path(path)
    of_run = whole.name == GOLD and (whole.parent / VERDICTS).is_file()
    for record, line in derived_lines(whole.parent, GOLD, GoldLine) if of_run else Rows(str(path)):
        name = next((each for each in (key, "item", "id") if each and each in record), None)
        if name is None:
            raise DataError(
                "no column names the item: call it 'id' or 'item', or name it with --id; of items without an id, "
                "`dikast export RUN FILE.csv` writes a table that has one",
                path=str(path),
                line=line,
            )
        item, asked = str(record[name]), _asked_in(record)
        known.update(dict.fromkeys(record))
        if asked in place.setdefault(item, {}):
            message = f"the item {item!r} is repeated here (first on line {place[item][asked]}): keep one"
            raise DataError(message, path=str(path), line=line, field=name)
        place[item][asked] = line
        for column in columns:
            value: Any = record
            for step in [column] if column in record else column.split("."):
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                found[column].setdefault(item, {})[asked] = value
    for column, values in found.items():
        if not values and column != LABEL_CHANCE:  # only where rows were chosen with unequal chances
            told = "" if column in known else f": {hint(column, known)}"
            raise UserError(f"{path}: no record has a value for {column!r}{told}")
    columns_of = {
        column: {item: _of_all_rows(told, place[item]) for item, told in values.items()}
        for column, values in found.items()
    }
    return GoldOfItems(columns_of, path=str(path), lines=place)


def _asked_in(record: Mapping[str, Any]) -> tuple[str, int]:
    """The criterion and the response that a row of gold is about, where it says so."""
    index = str(record.get("response_index") or 0)
    return str(record.get("criterion") or ""), int(index) if index.isdecimal() else 0


def _of_all_rows(told: Mapping[tuple[str, int], Any], rows: Mapping[tuple[str, int], int]) -> Any:
    """The gold of an item from the rows that it stands in."""
    if len(rows) == 1:
        return next(iter(told.values()))
    last = max(index for _, index in rows)
    by_criterion: dict[str, Any] = {}
    for (criterion, index), value in told.items():
        if last == 0:
            by_criterion[criterion] = value
        else:
            by_criterion.setdefault(criterion, [None] * (last + 1))[index] = value
    return by_criterion.get("", by_criterion)
