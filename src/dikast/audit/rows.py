"""Records to audit, one flat object a row: of any file, or of a run folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.core.records import read_records

VERDICTS = "verdicts.jsonl"


@dataclass(slots=True)
class Rows:
    """The records of a file with the line each starts on; iterable any number of times.

    A JSON file that is one object of objects (`{"id": {...}, ...}`) is read as one record for each, with its key as `id`.
    """

    path: str

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        if not Path(self.path).exists() and self.path != "-":
            raise UserError(f"{self.path}: there is no such file or folder")
        for record in read_records(self.path):
            if _holds_records(self.path, record.value):
                for key, value in record.value.items():
                    yield {"id": key, **value}, record.line
            else:
                yield record.value, record.line


@dataclass(slots=True)
class RunRows(Rows):
    """The verdicts of a run folder, one row for each response or, in a pairwise run, for each pair with both orders.

    Rows hold `item`, `criterion`, `sample`, `status`, `label`, `score`, `expected`, `mass`, `marker`, `distribution`,
    `feedback` and `claims`; `response` for a response, and for a pair `first` < `second` (indices), `choice` and
    `swapped` ("a", "b" or "tie" as responses, None without a verdict). Verdicts that are not of the current
    configuration (`keys.txt`) are left out and counted in `stale`. `gold` maps a column to item -> value, where a value
    may be an object by criterion or a list by response.
    """

    gold: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stale: int = 0

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        folder, current = Path(self.path), None
        if (listed := folder / "keys.txt").exists():
            current = set(listed.read_text("utf-8").split())
        pairs: dict[tuple[Any, ...], tuple[dict[str, Any], int]] = {}
        self.stale = 0
        for record in read_records(folder / VERDICTS):
            verdict, line = record.value, record.line
            if current is not None and verdict.get("key") not in current:
                self.stale += 1
                continue
            try:
                row = self._row(verdict)
            except (KeyError, TypeError, AttributeError) as error:
                raise DataError(f"not a verdict ({error!r})", path=str(folder / VERDICTS), line=line) from None
            if "first" not in row:
                yield row, line
                continue
            key = (row["item"], row["criterion"], row["sample"], row["first"], row["second"])
            if key in pairs:
                pairs[key][0].update({name: value for name, value in row.items() if value is not None})
            else:
                pairs[key] = (row, line)
        yield from pairs.values()

    def _row(self, verdict: dict[str, Any]) -> dict[str, Any]:
        question, responses = verdict["question"], verdict["question"].get("responses") or [0]
        row = {name: verdict.get(name) for name in _KEPT}
        row |= {name: question.get(name) for name in ("item", "criterion", "sample")}
        row["status"] = verdict["status"]
        if len(responses) == 1:
            row["response"] = responses[0]
        else:
            row["first"], row["second"] = sorted(responses[:2])
            swapped = responses[0] > responses[1]
            row["swapped" if swapped else "choice"] = verdict.get("label")
            row["status_swapped" if swapped else "status"] = verdict["status"]
            if swapped:
                row["status"] = None
        for column, values in self.gold.items():
            if (value := values.get(str(row["item"]))) is not None:
                row[column] = _gold_of(value, str(row["criterion"]), responses)
        return row


_KEPT = ("label", "score", "expected", "mass", "marker", "distribution", "feedback", "claims")


def open_rows(path: str | Path, gold: Mapping[str, Mapping[str, Any]] | None = None) -> Rows:
    """The rows of a file, or of a folder that a run wrote."""
    if Path(path).is_dir():
        if not (Path(path) / VERDICTS).exists():
            raise UserError(f"{path}: not a run folder: it holds no {VERDICTS}")
        return RunRows(str(path), gold or {})
    return Rows(str(path))


def gold_by_item(path: str | Path, columns: Sequence[str], key: str = "") -> dict[str, dict[str, Any]]:
    """Column -> item -> value of a file of gold; items are named in `key`, or else in `item` or `id`."""
    found: dict[str, dict[str, Any]] = {column: {} for column in columns}
    place: dict[str, int] = {}
    for record, line in Rows(str(path)):
        name = next((each for each in (key, "item", "id") if each and each in record), None)
        if name is None:
            raise DataError(
                "no column names the item: call it 'id' or 'item', or name it with --id", path=str(path), line=line
            )
        item = str(record[name])
        if item in place:
            message = f"the item {item!r} stands here again (first on line {place[item]}): keep one"
            raise DataError(message, path=str(path), line=line, field=name)
        place[item] = line
        for column in columns:
            value: Any = record
            for step in [column] if column in record else column.split("."):
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                found[column][item] = value
    for column, values in found.items():
        if not values:
            raise UserError(f"{path}: no record has a value for {column!r}")
    return found


def _gold_of(value: Any, criterion: str, responses: Sequence[int]) -> Any:
    """Gold of one question: an object is by criterion, a list by response; of a pair, the better response."""
    if isinstance(value, dict):
        value = value.get(criterion, value.get("gold"))
    if isinstance(value, list):
        chosen = [value[i] if 0 <= i < len(value) else None for i in sorted(responses)]
        if len(chosen) == 1:
            return chosen[0]
        first, second = chosen[:2]
        if first is None or second is None:
            return None
        return "tie" if first == second else "a" if first > second else "b"
    return value


def _holds_records(path: str, value: dict[str, Any]) -> bool:
    name = path[:-3] if path.endswith(".gz") else path
    return name.endswith(".json") and len(value) > 1 and all(isinstance(each, dict) for each in value.values())
