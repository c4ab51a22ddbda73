"""Converting between public schemas of feedback data, losslessly both ways.

Every conversion goes through Dikast's items. What a row holds and an item does not (its rendered prompt, extra
columns, the spelling of a number) is kept in the item's `meta.source`; what an item holds and a row cannot express is
kept in the row's column `meta`, as JSON text. Both are leaf-by-leaf differences (`schemas.delta`), so that edits made
in between survive.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import DataError, UserError
from dikast.core.item import item_from
from dikast.core.part import REMOTE
from dikast.core.records import read_records, unescaped_formula, write_records
from dikast.corpus.schemas import get_schema, guess_schema
from dikast.corpus.schemas.delta import difference, restored
from dikast.corpus.schemas.public_schema import NO_ID, Row, Schema, image_sources
from dikast.corpus.schemas.talk import last_taught, published

_CARRIED = "dikast"
_COLUMNS = ("meta", "dikast_meta")
_MOST_EXAMPLES = 10
_OF_TRL = ("trl", "trl-kto", "trl-preference")


@dataclass(slots=True)
class Converted:
    """What was converted: number of rows, rows left out by reason, and missing images, with examples."""

    rows: int = 0
    source: str = ""
    target: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    images: int = 0
    missing: int = 0
    examples: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "rows": self.rows, "from": self.source, "to": self.target, "skipped": dict(self.skipped),
            "images": self.images, "missing_images": self.missing, "missing_examples": self.examples,
        }  # fmt: skip


def convert_file(
    source: str | Path,
    out: str | Path,
    *,
    to: str,
    from_: str = "",
    images: Mapping[str, str] | None = None,
    skip: bool = False,
    raw: bool = False,
    escaped: bool = False,
) -> Converted:
    """Convert a file of any known schema to another; returns the counts and the missing images.

    `images` maps prefixes of image paths to new prefixes. Relative paths are resolved from the folder of `out`. With
    `skip`, rows that the target cannot hold are left out and counted by reason; without it, the first one raises
    DataError. In CSV and TSV, text that a spreadsheet would run as a formula is escaped unless `raw` is set; `escaped`
    says that `source` was written that way. Where some rows for trl have pictures, the others have an empty `images`,
    as its collators need (not from standard input, which is read once).
    """
    wanted = get_schema(to)
    given = get_schema(from_) if from_ else _schema_at(source)
    done = Converted(source=given.name, target=wanted.name)
    folder = Path(out).parent if str(out) != "-" else Path()
    if str(out) != "-" and Path(out).exists() and Path(out).resolve() == Path(source).resolve():
        raise UserError(f"{out}: is the input file; name another output file")
    rows = _converted(source, given, wanted, dict(images or {}), folder, done, skip=skip, escaped=escaped)
    write_records(out, rows, escape_formulas=not raw)
    return done


def records_of(source: str | Path, from_: str = "") -> Iterator[tuple[Row, int]]:
    """The rows of a file of any known schema as items in JSON form, each with its line number."""
    schema = get_schema(from_) if from_ else _schema_at(source)
    for row, line in read_records(source):
        with _at(str(source), line):
            record = to_record(row, schema)
        yield record, line


def to_record(row: Row, schema: Schema) -> Row:
    """The item, in JSON form, that holds everything the row holds."""
    if schema.name == "dikast":
        return row
    bare, carried = _without_carried(row)
    return _pure(bare, schema) if carried is None else restored(_own(bare, schema), carried)


def to_row(record: Row, schema: Schema) -> Row:
    """The row of a schema that holds everything the record holds."""
    if schema.name == "dikast":
        return record
    item = item_from({"id": NO_ID, **record})
    source = (record.get("meta") or {}).get("source")
    if schema.name == "talk":  # what is taught, and no more: nothing else is read back from it
        given = to_row(record, get_schema(source["schema"])) if isinstance(source, dict) else {}
        return last_taught(given) if published(given) else schema.writes(item)
    row = schema.writes(item)
    if isinstance(source, dict) and source.get("schema") == schema.name:
        row = restored(row, source["delta"])
    lost = difference(record, _own(row, schema))
    if lost:
        column = next(each for each in _COLUMNS if each not in row)
        row = {**row, column: orjson.dumps({_CARRIED: lost}).decode()}
    return row


def _pure(row: Row, schema: Schema) -> Row:
    """The record made from the row's own columns; what it cannot express goes to `meta.source`."""
    record = schema.reads(row)
    try:
        again = schema.writes(item_from({"id": NO_ID, **record}))
    except DataError:  # readable but not writable, such as a conversation without a reply: the whole row is carried
        again = {}
    delta = difference(row, again)
    if delta:
        record = {**record, "meta": {**(record.get("meta") or {}), "source": {"schema": schema.name, "delta": delta}}}
    return record


def _own(row: Row, schema: Schema) -> Row:
    """As `_pure`, for rows that carry the item; {} if their columns alone cannot be read (a prompt of Dikast's)."""
    try:
        return _pure(row, schema)
    except DataError:
        return {}


def _without_carried(row: Row) -> tuple[Row, dict[str, Any] | None]:
    for column in reversed(_COLUMNS):
        value = row.get(column)
        if isinstance(value, str) and value.startswith('{"' + _CARRIED + '":'):
            found: dict[str, Any] = orjson.loads(value)[_CARRIED]
            return {key: each for key, each in row.items() if key != column}, found
    return row, None


def _schema_at(source: str | Path) -> Schema:
    first = next(iter(read_records(source)))
    with _at(str(source), first.line):
        return guess_schema(first.value)


class _at:  # noqa: N801
    """Adds file and line to a DataError that has neither."""

    def __init__(self, path: str, line: int) -> None:
        self.path, self.line = path, line

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DataError) and not error.path:
            message = str(error).removeprefix(f"field {error.field!r}: ")
            raise DataError(message, path=self.path, line=self.line, field=error.field) from None


def _converted(
    source: str | Path,
    given: Schema,
    wanted: Schema,
    images: dict[str, str],
    folder: Path,
    done: Converted,
    *,
    skip: bool,
    escaped: bool,
) -> Iterator[Row]:
    seen: dict[str, bool] = {}
    mixed = wanted.name in _OF_TRL and str(source) != "-" and _some_show(source, given)
    for row, line in read_records(source):
        if escaped:
            row = {unescaped_formula(k): unescaped_formula(v) if isinstance(v, str) else v for k, v in row.items()}
        with _at(str(source), line):
            record = remapped(to_record(row, given), images)
            item = item_from({"id": NO_ID, **record})
            try:
                made = to_row(record, wanted)
            except DataError as error:
                if not skip:
                    raise
                done.skipped[_reason(str(error), item.id)] += 1
                continue
        _look(done, (image.source for image in item.images), folder, seen)
        done.rows += 1
        yield {**made, "images": made.get("images", [])} if mixed else made


def _some_show(source: str | Path, given: Schema) -> bool:
    """Whether an instruction in the file shows a picture; rows that cannot be read are told when they are converted."""
    for row, _ in read_records(source):
        with suppress(DataError):
            item = item_from({"id": NO_ID, **to_record(row, given)})
            if image_sources(item):
                return True
    return False


def _reason(message: str, name: str) -> str:
    return message.replace(f"item {name!r}", "the item")


def remapped(value: Any, images: Mapping[str, str]) -> Any:
    """`value` with the prefixes of its image sources replaced; the longest matching prefix applies."""
    if not images:
        return value
    if isinstance(value, list):
        return [remapped(each, images) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, each in value.items():
        if key in ("image", "images", "frames") and isinstance(each, str | list):
            found[key] = (
                _moved(each, images)
                if isinstance(each, str)
                else [_moved(one, images) if isinstance(one, str) else remapped(one, images) for one in each]
            )
        else:
            found[key] = each if key == "source" else remapped(each, images)
    return found


def _moved(path: str, images: Mapping[str, str]) -> str:
    for old in sorted(images, key=len, reverse=True):
        if path.startswith(old):
            return images[old] + path[len(old) :]
    return path


def _look(done: Converted, sources: Iterable[str], folder: Path, seen: dict[str, bool]) -> None:
    for source in sources:
        if source.startswith(("data:", *REMOTE)) or source in seen:
            continue
        there = seen[source] = (folder / source).is_file()
        done.images += 1
        if not there:
            done.missing += 1
            if len(done.examples) < _MOST_EXAMPLES:
                done.examples.append(source)
