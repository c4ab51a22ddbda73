"""Items from files: columns matched to fields, ids kept apart, mistakes reported together."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.core.errors import DataError, UserError
from dikast.core.item import ITEM_KEYS, Item, item_from
from dikast.core.media import check_image, sample_video
from dikast.core.part import Image, Part, Video
from dikast.core.records.files import folder_of, kind_of
from dikast.core.records.ids import Ids
from dikast.core.records.reading import Record, scan_records
from dikast.core.text import near_miss

MOST_ERRORS = 20

_NUMBERED = re.compile(r"response_(\d{1,3})")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SHAPES = 1000  # sets of keys whose arrangement is remembered


@dataclass(frozen=True, slots=True)
class ItemsReport:
    """What `check_items` found: how many items are good, the mistakes in order, and whether all was read."""

    path: str
    n: int
    errors: tuple[DataError, ...]
    complete: bool

    def raise_errors(self) -> None:
        """Raise one DataError that lists all mistakes; nothing when there are none."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            count = f"{len(self.errors)} mistakes" if self.complete else f"the first {len(self.errors)} mistakes"
            first = self.errors[0]
            told = DataError("\n".join([f"{self.path}: {count}", *(f"  {error}" for error in self.errors)]))
            told.path, told.line, told.field = first.path, first.line, first.field
            raise told


def read_items(path: str | Path, *, columns: Mapping[str, str] | None = None) -> Iterator[Item]:
    """The items of a file, in order, in bounded memory. Raises DataError at the first mistake.

    `columns` maps a field of Item to the file's own name for it: `{"id": "idx", "instruction": "prompt"}`. In every
    format `response_0`, `response_1`, ... stand for `responses`. In CSV and TSV a cell is text, an empty one (other
    than a response) is no value, `gold` is a number when it is written as one, `responses`, `images`, `meta` and
    `rubric` may be JSON. Relative paths start at the file's folder. Two items with one id are a mistake.
    """
    for found in scan_items(str(path), columns or {}):
        if isinstance(found, DataError):
            raise found
        yield found


def check_items(
    path: str | Path, *, columns: Mapping[str, str] | None = None, images: bool = True, most_errors: int = MOST_ERRORS
) -> ItemsReport:
    """Read a whole file of items, with every image they show (unless `images` is false), and report what is wrong.

    Stops after `most_errors` mistakes, or at one after which the file cannot be read on. Standard input can be read
    only once, so it cannot be checked first: UserError.
    """
    path = str(path)
    if path == "-":
        raise UserError("standard input cannot be checked before it is used: save it to a file first")
    n, errors, complete = 0, [], False
    try:
        for found in scan_items(path, columns or {}):
            if isinstance(found, DataError):
                mistakes = [found]
            else:
                mistakes = _image_mistakes(found, path) if images else []
                n += not mistakes
            errors.extend(mistakes)
            if len(errors) >= most_errors:
                break
        else:
            complete = True
    except DataError as error:
        errors.append(error)
    return ItemsReport(path, n, tuple(errors[:most_errors]), complete)


def _image_mistakes(item: Item, path: str) -> list[DataError]:
    mistakes = []
    for field, shown in _placed_media(item):
        try:
            if isinstance(shown, Image):
                check_image(shown)
            else:
                sample_video(shown)
        except DataError as error:
            line = item.origin.rpartition(":")[2]
            mistakes.append(DataError(str(error), path=path, line=int(line), field=field))
    return mistakes


def _placed_media(item: Item) -> Iterator[tuple[str, Image | Video]]:
    places: list[tuple[str, tuple[Part, ...]]] = [
        ("instruction" if len(item.instruction) == 1 else f"instruction[{i}].content", turn.content)
        for i, turn in enumerate(item.instruction)
    ]
    places.extend((name, each) for name, each in (("context", item.context), ("reference", item.reference)) if each)
    one = len(item.responses) == 1
    places.extend(("response" if one else f"responses[{i}]", each) for i, each in enumerate(item.responses))
    for place, content in places:
        for part in content:
            if isinstance(part, Image) or (isinstance(part, Video) and part.source):
                yield place, part
            for i, frame in enumerate(getattr(part, "frames", ())):
                yield f"{place}.frames[{i}]", frame


def scan_items(path: str, columns: Mapping[str, str]) -> Iterator[Item | DataError]:
    """As `read_items`, with each mistake in the place of its record instead of raised."""
    ids, root, arrange = Ids(), folder_of(path), _Arranger(path, columns)
    for found in scan_records(path):
        if isinstance(found, DataError):
            yield found
            continue
        try:
            item = item_from(arrange(found), path=path, line=found.line, root=root)
        except DataError as error:
            yield error
            continue
        earlier = ids.add(item.id, found.line)
        if earlier is None or not _is_same(item.id, path, earlier, columns):
            yield item
            continue
        message = f"the id {item.id!r} is on line {earlier} already: give each item its own, or remove one"
        yield DataError(message, path=path, line=found.line, field="id")


def scan_rows(rows: Iterable[Item | dict[str, Any]], columns: Mapping[str, str]) -> Iterator[Item | DataError]:
    """As `scan_items`, of rows in memory, which messages and ids that are missing number from 0 (`rows:0`)."""
    arrange, ids = _Arranger("rows", columns), Ids()
    for number, row in enumerate(rows):
        try:
            arranged = row if isinstance(row, Item) else arrange(Record(row, number))
            item = arranged if isinstance(arranged, Item) else item_from(arranged, path="rows", line=number)
        except DataError as error:
            yield error
            continue
        earlier = ids.add(item.id, number)
        told = f"the id {item.id!r} is the id of row {earlier} already: give each item its own, or remove one"
        yield item if earlier is None else DataError(told, path="rows", line=number, field="id")


def _is_same(name: str, path: str, line: int, columns: Mapping[str, str]) -> bool:
    """Whether the item on `line` is really called `name`: equal hashes are not yet equal ids."""
    if path == "-":
        return True
    arrange = _Arranger(path, columns)
    for found in scan_records(path):
        if isinstance(found, Record) and found.line == line:
            return item_from(arrange(found), path=path, line=line).id == name
    return True


class _Shape(NamedTuple):
    """What is to be done to records with a given set of keys."""

    moves: tuple[tuple[str, str], ...]  # (field, column)
    responses: tuple[str, ...]  # keys that become the list of responses


class _Arranger:
    """Brings a file's own columns into the fields of an item."""

    def __init__(self, path: str, columns: Mapping[str, str]) -> None:
        for name in columns:
            if name not in ITEM_KEYS and not _NUMBERED.fullmatch(name):
                near = near_miss(name, ITEM_KEYS)
                hint = f"did you mean {near!r}?" if near else f"the fields are {', '.join(ITEM_KEYS)}"
                raise UserError(f"columns: {name!r} is not a field of an item: {hint}")
        self._path, self._columns = path, columns
        self._cells = kind_of(path) in ("csv", "tsv")
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    def __call__(self, record: Record) -> dict[str, Any]:
        value, keys = record.value, tuple(record.value)
        shape = self._shapes.get(keys)
        if shape is None:
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            shape = self._shapes[keys] = self._shape(keys, record.line)
        if shape.moves:
            value = _moved(value, shape.moves)
        if self._cells:
            value = {key: cell_value(key, cell, path=self._path, line=record.line) for key, cell in value.items()}
            if "responses" in value and value.get("response") == "":
                del value["response"]  # a table with both columns fills one of them
        if shape.responses:
            if value.get("responses") is not None or value.get("response") is not None:
                message = f"{shape.responses[0]!r} is given together with 'response' or 'responses': keep one of them"
                raise DataError(message, path=self._path, line=record.line, field=shape.responses[0])
            responses = [value[key] for key in shape.responses]
            value = {key: each for key, each in value.items() if key not in shape.responses}
            value["responses"] = responses
        return value

    def _shape(self, keys: tuple[str, ...], line: int) -> _Shape:
        for field, column in self._columns.items():
            if column not in keys:
                near = near_miss(column, keys)
                hint = f"did you mean {near!r}?" if near else f"it has {', '.join(keys)}"
                message = f"there is no column {column!r} to read {field!r} from: {hint}"
                raise DataError(message, path=self._path, line=line, field=field)
        moved = set(self._columns.values())
        named = [key for key in keys if key not in moved] + list(self._columns)
        numbered = {int(match[1]): key for key in named if (match := _NUMBERED.fullmatch(key))}
        first = min(numbered, default=0)
        if first > 1 or sorted(numbered) != list(range(first, first + len(numbered))):
            message = f"responses are numbered from 0 without a gap, this has {', '.join(sorted(numbered.values()))}"
            raise DataError(message, path=self._path, line=line, field="responses")
        return _Shape(tuple(self._columns.items()), tuple(numbered[i] for i in sorted(numbered)))


def _moved(value: dict[str, Any], moves: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Fields filled from their columns; what stood under a field's name before is kept in `meta`."""
    taken = {column for _, column in moves}
    moved = {key: each for key, each in value.items() if key not in taken}
    displaced = {field: moved.pop(field) for field, _ in moves if field in moved}
    moved.update((field, value[column]) for field, column in moves)
    if displaced and isinstance(meta := moved.get("meta") or {}, dict):
        moved["meta"] = {**displaced, **meta}
    return moved


def cell_value(key: str, cell: str, *, path: str = "", line: int | None = None) -> Any:
    """What a cell of CSV or TSV under the column `key` says."""
    if key == "response" or _NUMBERED.fullmatch(key) or key not in ITEM_KEYS:
        return cell
    if not cell.strip():
        return None
    if key == "gold":
        return _number(cell.strip())
    wants_json = key in ("responses", "meta") or (key, cell.lstrip()[0]) in (("images", "["), ("rubric", "{"))
    if not wants_json:
        return cell
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError as error:
        example = '["first", "second"]' if key != "meta" else '{"split": "test"}'
        raise DataError(f"not valid JSON ({error.msg}): write {example}", path=path, line=line, field=key) from None


def _number(text: str) -> int | float | str:
    """The number that `text` writes, else `text`; `007` and numbers too large for a float stay text."""
    if not _NUMBER.fullmatch(text) or re.match(r"[+-]?0\d", text):
        return text
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text) if len(text) <= 18 else text
    number = float(text)
    return number if math.isfinite(number) else text
