"""Long form: a file with one row for each rater of an item becomes one with one row for each item."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dikast.audit.tables.columns import ABSENT, getter, text_of
from dikast.audit.tables.record_rows import Rows
from dikast.core.errors import DataError, UserError
from dikast.core.text import near_miss

MOST_RATERS = 20  # with more, `COLUMN.*` are the first, second, ... rating of each item, not raters by name
ALL = "*"
_PLACE = "#"  # before the number of a rating, so that no rater has its name


@dataclass(slots=True)
class LongRows(Rows):
    """The rows of `base` that share `key`, as one record each: `COLUMN` holds what all of them say, and `COLUMN.NAME`
    what rater NAME said. `columns` are the names that the audit uses; no other column is kept.

    DataError where a rater stands twice in an item, and where rows of an item differ in a column named without a rater.
    """

    base: Rows | None = None
    key: tuple[str, ...] = ()
    rater: str = ""
    columns: tuple[str, ...] = ()
    raters: list[str] = field(default_factory=list)
    _records: list[tuple[dict[str, Any], int]] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        yield from self._records

    @classmethod
    def fold(cls, base: Rows, key: tuple[str, ...], rater: str, columns: Sequence[str]) -> "LongRows":
        """Read `base` once and fold it."""
        found = cls(base.path, base=base, key=key, rater=rater, columns=tuple(dict.fromkeys(columns)))
        found._fold()
        return found

    def _fold(self) -> None:
        if self.base is None:
            raise ValueError("rows are due")
        first, _ = next(iter(self.base), ({}, 0))
        for name in (*self.key, self.rater):
            if getter(name)(first) is ABSENT and name != "line":
                near = near_miss(name, first)
                raise UserError(
                    f"{self.path}: there is no column {name!r}" + (f"; did you mean {near!r}?" if near else "")
                )
        roots = {name: _root(name, first) for name in self.columns}
        spread = {root for name, root in roots.items() if root != name}
        plain = [name for name, root in roots.items() if root == name]
        if both := sorted(spread.intersection(plain)):
            raise UserError(
                f"{self.path}: {both[0]!r} differs among raters: name what one said ({both[0]}.NAME) or what all said "
                f"({both[0]}.*)"
            )
        get = {name: getter(name) for name in {*spread, *plain, *self.key, self.rater}}
        items: dict[tuple[str, ...], tuple[dict[str, Any], int, dict[str, int]]] = {}
        for record, line in self.base:
            row = {name: _value(read(record)) for name, read in get.items()}
            if "line" not in record:
                row["line"] = line
            name = "" if row[self.rater] is None else text_of(row[self.rater])
            if not name:
                raise DataError("no rater is named here", path=self.path, line=line, field=self.rater)
            asked = tuple("" if row[part] is None else text_of(row[part]) for part in self.key)
            item, begun, seen = items.setdefault(
                asked, ({each: {} for each in spread} | {each: row[each] for each in {*plain, *self.key}}, line, {})
            )
            if name in seen:
                raise DataError(
                    f"{name!r} is repeated here for {', '.join(asked)!r} (first on line {seen[name]}): keep "
                    "one, or name more columns with --id so that rows of different items differ",
                    path=self.path,
                    line=line,
                    field=self.rater,
                )
            seen[name] = line
            for column in plain:
                if row[column] != item[column]:
                    raise DataError(
                        f"differs from line {begun}, which is of the same item ({', '.join(asked)}): name what one "
                        f"rater said ({column}.{name}) or what all said ({column}.*)",
                        path=self.path,
                        line=line,
                        field=column,
                    )
            for column in spread:
                item[column][name] = row[column]
        self.raters = sorted({name for _, _, seen in items.values() for name in seen})
        self._records = [(item, line) for item, line, _ in items.values()]

    def expand(self, column: str, taken: Sequence[str]) -> list[str]:
        """The columns that `COLUMN.*` stands for: one for each rater who rated, those in `taken` left out.

        With more than MOST_RATERS, the first, second, ... rating of each item, in the order of the raters' names.
        """
        root = column.removesuffix("." + ALL)
        if any(root not in item for item, _ in self._records):
            first, _ = next(iter(self.base or ()), ({}, 0))
            near = near_miss(root, first)
            raise UserError(f"{self.path}: there is no column {root!r}" + (f"; did you mean {near!r}?" if near else ""))
        others = {
            name
            for item, _ in self._records
            for name, value in item[root].items()
            if value is not None and f"{root}.{name}" not in taken
        }
        if not others:
            raise UserError(f"{self.path}: nobody rated {root!r}")
        if len(others) <= MOST_RATERS:
            return [f"{root}.{name}" for name in sorted(others)]
        most = 0
        for item, _ in self._records:
            given = [item[root][name] for name in sorted(item[root]) if name in others and item[root][name] is not None]
            item |= {f"{root}.{_PLACE}{i}": value for i, value in enumerate(given, 1)}
            most = max(most, len(given))
        return [f"{root}.{_PLACE}{i}" for i in range(1, most + 1)]


def _root(name: str, record: dict[str, Any]) -> str:
    """The column of the file that `name` is, or, where it is `COLUMN.RATER`, that COLUMN is."""
    if name in record:
        return name
    steps = name.split(".")
    parts = (".".join(steps[:i]) for i in range(len(steps) - 1, 0, -1))
    return next((part for part in parts if part in record), name)


def _value(found: Any) -> Any:
    return None if found is ABSENT or found == "" else found
