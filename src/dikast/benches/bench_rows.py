"""The rows of a bench as items, by its map of fields, its reader, its gold and its groups."""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from dikast.benches.bench_files import BenchFile, fetch
from dikast.benches.definition import RENDERED_PAIR, Bench
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item, item_from
from dikast.core.records.reading import Record, scan_file
from dikast.core.text import counted
from dikast.corpus.schemas import get_schema, sections

Pictures = Literal["needed", "skip", "count"]
_LISTED = 5
_MOST_ERRORS = 20
_COLUMN = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class BenchRows:
    """The items of a bench; `left_out` counts the rows that gave no item, by reason."""

    items: list[Item]
    files: list[BenchFile]
    left_out: Counter[str]
    notes: tuple[str, ...] = ()


def read_rows(
    bench: Bench,
    data: Path | None = None,
    *,
    unverified: bool = False,
    native: bool = False,
    pictures: Pictures = "needed",
) -> BenchRows:
    """All rows of a bench as items, in order; UserError lists mistakes (at most 20).

    `native`: use the rendered prompt of the bench's own rows. Rows whose image is missing are mistakes; with `pictures`
    "skip" they are left out and counted, with "count" only counted.
    """
    files = fetch(bench, data, unverified=unverified)
    items: list[Item] = []
    errors: list[DataError] = []
    left, seen, lacking = Counter[str](), Counter[str](), 0
    make = _maker(bench, native=native)
    for file in files:
        root = str(data if data is not None else file.local.parent)
        for record in _records(file, bench.source.at):
            try:
                found = make(record.value, file, record.line)
                found["id"] = _unique(found.get("id"), seen)
                item = item_from(found, path=file.path, line=record.line, root=root)
            except DataError as error:
                errors.append(_placed(error, file.path, record.line))
                if len(errors) == _MOST_ERRORS:
                    break
                continue
            if gone := _missing_pictures(item):
                if pictures == "needed":
                    cure = "put the pictures under --data FOLDER, or leave such rows out with --skip-missing"
                    told = f"the picture {gone!r} is not there: {cure}"
                    errors.append(DataError(told, path=file.path, line=record.line))
                    if len(errors) == _MOST_ERRORS:
                        break
                else:
                    left["a picture is missing"] += pictures == "skip"
                    lacking += pictures == "count"
                if pictures != "count":
                    continue
            items.append(item)
    _raise(bench, errors)
    if not items:
        raise UserError(f"{bench.name}: no rows are left: {dict(left) or 'the files hold none'}")
    notes = _told(bench, files)
    if lacking:
        notes = (*notes, f"{lacking:,} of {counted(len(items), 'row')} refer to a missing image")
    return BenchRows(items, files, left, notes)


def _told(bench: Bench, files: Sequence[BenchFile]) -> tuple[str, ...]:
    changed = [file.path for file in files if file.published is False]
    unknown = [file.path for file in files if file.published is None]
    found = []
    if changed:
        found.append(f"the rows differ from the published ones: SHA-256 of {', '.join(changed[:_LISTED])} differs")
    if unknown:
        found.append(
            f"no hash is known for {', '.join(unknown[:_LISTED])}: whether these are the published rows is unknown"
        )
    if bench.from_memory:
        found.append(f"not checked against the source: {', '.join(bench.from_memory)}")
    return tuple(found)


def _raise(bench: Bench, errors: Sequence[DataError]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        more = "+" if len(errors) == _MOST_ERRORS else ""
        lines = "\n".join(f"  {error}" for error in errors)
        raise UserError(f"{bench.name}: {len(errors)}{more} rows cannot be used; nothing was asked:\n{lines}")


def _placed(error: DataError, path: str, line: int) -> DataError:
    if error.path:
        return error
    return DataError(str(error).removeprefix(f"field {error.field!r}: "), path=path, line=line, field=error.field)


def _records(file: BenchFile, at: str) -> Iterator[Record]:
    if not at:
        for found in scan_file(str(file.local)):
            if isinstance(found, DataError):
                raise found
            yield found
        return
    opened = gzip.open if file.local.suffix == ".gz" else open
    with opened(file.local, "rb") as stream:
        try:
            value = orjson.loads(stream.read())
        except orjson.JSONDecodeError as error:
            raise DataError(f"not valid JSON: {error}", path=file.path) from None
    for line, each in enumerate(_inside(value, at.split("."), file.path), 1):
        if not isinstance(each, dict):
            raise DataError(f"a row is an object, got {each!r:.40}", path=file.path, line=line)
        yield Record(each, line)


def _inside(value: Any, at: Sequence[str], path: str) -> Iterator[Any]:
    """The rows at a path; `*` stands for every value of an object or a list, and a final list is the rows."""
    if not at:
        yield from value if isinstance(value, list) else [value]
    elif at[0] == "*":
        for each in value.values() if isinstance(value, dict) else value:
            yield from _inside(each, at[1:], path)
    elif isinstance(value, dict) and at[0] in value:
        yield from _inside(value[at[0]], at[1:], path)
    else:
        raise DataError(f"has no {at[0]!r}, where the rows of this bench are", path=path)


Make = Callable[[Mapping[str, Any], BenchFile, int], dict[str, Any]]


def _maker(bench: Bench, *, native: bool) -> Make:
    """The function that converts a row to an item in JSON form."""

    def make(row: Mapping[str, Any], file: BenchFile, line: int) -> dict[str, Any]:
        if native:
            found: dict[str, Any] = {
                "instruction": value_at(row, bench.rendered),
                **_fields(bench, row, ("id", "image")),
            }
            if not found["instruction"]:
                raise DataError("the row has no rendered prompt", field=bench.rendered)
        elif bench.reader == RENDERED_PAIR:
            found = _rendered_pair(row, bench)
        elif bench.reader:
            found = dict(get_schema(bench.reader).reads(dict(row))) | _fields(bench, row)
            found.pop("gold", None)
        else:
            found = _fields(bench, row)
        found.setdefault("id", f"{_folder(file.path)}-{line}" if len(bench.source.files) > 1 else str(line))
        if bench.responses == "to be brought" and bench.kind == "scores":
            found = {name: value for name, value in found.items() if name not in ("response", "responses")}
        if bench.gold is not None:
            found["gold"] = _by_response(gold_of_row(bench, row), found)
        meta = {name: _group(row, column, file.path) for name, column in bench.groups.items()}
        return {**found, "meta": {**found.get("meta", {}), **meta}}

    if native and not bench.rendered:
        raise UserError(
            f"{bench.name}: its rows hold no rendered prompt, and no prompt of its authors ships with Dikast: "
            "use --prompt dikast, or --format FILE with the prompt of your choice"
        )
    return make


def _fields(bench: Bench, row: Mapping[str, Any], only: Sequence[str] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {}
    parts: list[Any] = []
    for name, paths in bench.fields.items():
        if only and name not in only:
            continue
        listed = paths if isinstance(paths, list) else [paths]
        values = [_value(row, path) for path in listed]
        if name == "responses":
            found[name] = [each for value in values for each in (value if isinstance(value, list) else [value])]
            continue
        value = values[0] if len(values) == 1 else "\n\n".join(str(each) for each in values if each)
        if name in ("response_0", "response_1"):
            parts.append(_due(value, str(listed[0])))
        elif value not in (None, ""):
            found[name] = str(value) if name == "id" else value
    return {**found, "responses": parts} if parts else found


def _value(row: Mapping[str, Any], path: str) -> Any:
    """The value of a field's path: a column, `image:COLUMN` as an image, or text with `{COLUMN}` in it."""
    if path.startswith("image:"):
        source = value_at(row, path.removeprefix("image:"))
        return None if source is None else [{"type": "image", "image": source}]
    if "{" in path:
        return _COLUMN.sub(lambda found: str(value_at(row, found[1])), path)
    return content(value_at(row, path))


def _due(value: Any, path: str) -> Any:
    if value is None:
        raise DataError("the row has no such value", field=path)
    return value


def content(value: Any) -> Any:
    """Lists of pairs `["text", ...]`, `["image", PATH]` as parts; true, false and numbers as text; others unchanged."""
    if isinstance(value, bool | int | float):
        return str(value)
    if not (isinstance(value, list) and value and all(isinstance(each, list) and len(each) == 2 for each in value)):
        return value
    if not all(each[0] in ("text", "image") for each in value):
        return value
    return [{"type": kind, kind: each} for kind, each in value if each]


def value_at(row: Any, path: str) -> Any:
    """The value at a dotted path, whose numbers index lists; None if there is none."""
    if isinstance(row, Mapping) and path in row:
        return row[path]
    for key in path.split("."):
        if isinstance(row, Mapping):
            row = row.get(key)
        elif isinstance(row, list) and key.isdigit() and int(key) < len(row):
            row = row[int(key)]
        else:
            return None
    return row


def gold_of_row(bench: Bench, row: Mapping[str, Any]) -> Any:
    """The gold of a row; None if it has none. DataError for a value that the bench does not define."""
    gold = bench.gold
    if gold is None:
        return None
    if gold.default:
        return gold.default
    if gold.count:
        return {"right": int(_number(value_at(row, gold.column[0]), gold.column[0]))}
    if gold.order:
        return {"order": str(value_at(row, gold.column[0]) or "").strip()}
    said: list[Any] = []
    for column in gold.column:
        value = value_at(row, column)
        listed = value if isinstance(value, list) and not gold.values else [value]
        said += [_meant(gold.values, each, column) for each in listed if each is not None and each != ""]
    if not said:
        return None
    if gold.rule == "first":
        return said[0]
    if gold.rule == "majority":
        [(best, n), *others] = Counter(map(str, said)).most_common()
        return best if not others or others[0][1] < n else None
    numbers = [_number(each, gold.column[0]) for each in said]
    return sum(numbers) / len(numbers)


def _by_response(gold: Any, found: Mapping[str, Any]) -> Any:
    """Gold of each response: `{"right": [1, 0, 0, 0]}` of a count of right ones, which come first; `{"places": [...]}`,
    from 1, of letters from best to worst. DataError for letters that are no order of the responses.
    """
    if not isinstance(gold, dict):
        return gold
    n = len(found.get("responses", ()))
    if "right" in gold:
        return {"right": [int(place < gold["right"]) for place in range(n)]}
    letters = [chr(ord("A") + place) for place in range(n)]
    if sorted(gold["order"]) != letters:
        raise DataError(f"{gold['order']!r:.60} is no order of {n} responses, such as {''.join(letters)!r}")
    return {"places": [gold["order"].index(letter) + 1 for letter in letters]}


def _meant(values: Mapping[str, Any], value: Any, column: str) -> Any:
    if not values:
        return value
    word = value if isinstance(value, str) else orjson.dumps(value).decode()
    if word not in values:
        raise DataError(f"{word!r:.60} is not a gold value of this bench: {', '.join(values)}", field=column)
    return values[word]


def _number(value: Any, column: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"{value!r:.40} is not a number", field=column) from None


def _group(row: Mapping[str, Any], column: str, path: str) -> str:
    if column == "@folder":
        return _folder(path)
    if column == "@file":
        return Path(path).name.partition(".")[0]
    column, ends, cut = column.partition("/")
    word = str(value_at(row, column))
    return re.split(f"[{re.escape(cut)}]", word, maxsplit=1)[0] if ends else word


def _folder(path: str) -> str:
    """The folder of a published path, or its name if it has no folder."""
    parts = Path(path).parts
    return parts[-2] if len(parts) > 1 else Path(path).name.partition(".")[0]


def _rendered_pair(row: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    """Two rendered prompts, of the better response and of the worse, as one item with two responses."""
    better, worse = (sections.fields_of(str(_due(row.get(str(name)), str(name)))) for name in _pair_columns(bench))
    responses = [better.pop("response"), worse.pop("response")]
    return {**better, "responses": responses}


def _pair_columns(bench: Bench) -> tuple[str, str]:
    return str(bench.fields["response_0"]), str(bench.fields["response_1"])


def _unique(name: Any, seen: Counter[str]) -> str:
    text = str(name)
    seen[text] += 1
    return text if seen[text] == 1 else f"{text}#{seen[text]}"


def _missing_pictures(item: Item) -> str:
    """The first image or clip of an item whose file is missing; "" if none is."""
    shown = [(each.source, each.root) for each in item.images] + [(each.source, each.root) for each in item.videos]
    for source, root in shown:
        if "://" not in source and not source.startswith("data:") and not Path(root, source).is_file():
            return source
    return ""
