"""The rows of a bench as items, by its map of fields, its reader, its gold and its groups."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import orjson

from dikast.benches.bench_files import BenchFile, fetch, fetch_file, resolved
from dikast.benches.bench_terms import CONVERSATION_PAIR, CRITERION, RENDERED_PAIR, VIDEO
from dikast.benches.conversation_pairs import conversation_pair
from dikast.benches.definition import Bench
from dikast.benches.row_values import (
    check_count,
    clip_part,
    due_at,
    fields_of_row,
    folder_of,
    gold_by_response,
    gold_of_row,
    group_of_row,
    raters_of_row,
    rendered_pair,
)
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item, item_from
from dikast.core.part import Text
from dikast.core.records.content_ids import prompt_id
from dikast.core.records.files import blaming, open_bytes
from dikast.core.records.reading import Record, scan_file
from dikast.core.text import counted, hint
from dikast.corpus.schemas import get_schema

Pictures = Literal["needed", "skip", "count"]
PROMPT = "prompt_id"  # in an item's metadata: a fingerprint of the prompt, which the responses to it share
LENGTH = "length"  # there too: characters of the response; for a pair, second minus first
_LISTED = 5
_NATIVE = ("id", "image", VIDEO)  # fields that are read beside a rendered prompt
_MOST_ERRORS = 20


@dataclass(frozen=True, slots=True)
class BenchRows:
    """The items of a bench; `left_out` counts the rows that gave no item, by reason.

    `raters` is what each rater said, by item and rater, of all rows; empty where no row has several.
    """

    items: list[Item]
    files: list[BenchFile]
    left_out: Counter[str]
    notes: tuple[str, ...] = ()
    raters: dict[str, dict[str, Any]] = field(default_factory=dict)


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
    _check_responses(bench)
    data = data or bench.source.beside
    files = fetch(bench, data, unverified=unverified)
    items: list[Item] = []
    errors: list[DataError] = []
    left, seen, absent, lacking = Counter[str](), Counter[str](), Counter[str](), 0
    rubrics = _rubrics(bench, data, unverified=unverified)
    make = _maker(bench, rubrics, data, native=native)
    bare = _maker(bench, rubrics, data, native=False) if native else None  # a rendered prompt holds its response too
    read = _NATIVE if native else {name for each in (bench.fields, *bench.variants.values()) for name in each}
    raters: dict[str, dict[str, Any]] = {}
    for file, record, number, variant in _records_of(bench, files):
        try:
            found = make(record.value, file, number, variant)
            found["id"] = _unique(found.get("id"), seen)
            item = item_from(found, path=file.path, line=record.line, root=_root(data, file))
            if not native:
                check_count(bench, len(item.responses))
            plain = item if bare is None else _plain(bare, record.value, file, number, variant)
            if plain is not None and (plain.instruction or plain.context):
                item = replace(item, meta={PROMPT: prompt_id(plain), **item.meta})
            gone = _missing_pictures(item)
            if gone and pictures == "needed":
                kind = "clip" if any(gone == each.source for each in item.videos) else "picture"
                raise DataError(
                    f"the {kind} {gone!r} is not there: put it at {_placed_at(gone, data)}, or leave such rows "
                    "out with --skip-missing"
                )
            raters[item.id] = raters_of_row(bench, record.value)
        except DataError as error:
            errors.append(_placed(error, file.path, record.line))
            if len(errors) == _MOST_ERRORS:
                break
            continue
        left["a picture is missing"] += bool(gone) and pictures == "skip"
        lacking += bool(gone) and pictures == "count"
        if not gone or pictures == "count":
            items.append(item)
            absent.update(name for name in bench.optional if name in read and _lacks(item, found, name))
    _raise(bench, errors)
    if not items:
        told = ", ".join(f"{why} in {counted(n, 'row')}" for why, n in (+left).items())
        raise UserError(f"{bench.name}: no row is left: {told or 'the files hold none'}")
    notes = (*_hash_notes(files), *_revision_notes(bench, files))
    if lacking:
        notes = (*notes, f"{lacking:,} of {counted(len(items), 'row')} refer to a missing image")
    for name, n in absent.items():
        notes = (*notes, f"{n:,} of {counted(len(items), 'row')} have no {name}, which is optional: asked without it")
    if blind := sum(not item.instruction for item in items):
        notes = (
            *notes,
            f"{blind:,} of {counted(len(items), 'row')} hold no instruction: the judge is not told the task",
        )
    several = any(len(said) > 1 for said in raters.values())
    return BenchRows(items, files, +left, notes, raters if several else {})


def _check_responses(bench: Bench) -> None:
    """UserError for a bench with responses in its rows whose file does not say in which columns."""
    mapped = {*bench.fields, *(name for own in bench.variants.values() for name in own)}
    one, two = {"response", "response_0", "responses"}, {"response_0", "response_1"}
    known = bench.reader or bench.responses == "to be brought" or "responses" in mapped
    if known or (two <= mapped if bench.pairs else one & mapped):
        return
    due = "'response_0' and 'response_1' (or a list as 'responses')" if bench.pairs else "'response'"
    raise UserError(
        f"{bench.name}: its file names no column of the responses: name it under 'fields' as {due}; where rows hold "
        "none, write 'responses: to be brought'"
    )


def _hash_notes(files: Sequence[BenchFile]) -> tuple[str, ...]:
    changed = [file.path for file in files if file.published is False]
    unknown = [file.path for file in files if file.published is None]
    found = []
    if changed:
        found.append(f"the rows differ from the published ones: SHA-256 of {', '.join(changed[:_LISTED])} differs")
    if unknown:
        found.append(
            f"no hash is known for {', '.join(unknown[:_LISTED])}: whether these are the published rows is unknown"
        )
    return tuple(found)


def _revision_notes(bench: Bench, files: Sequence[BenchFile]) -> tuple[str, ...]:
    if bench.source.revision or not (commit := resolved(files)):
        return ()
    return (f"no revision is pinned: the rows are those of {bench.source.hub} at {commit[:12]}",)


def _raise(bench: Bench, errors: Sequence[DataError]) -> None:
    if errors:
        more = "+" if len(errors) == _MOST_ERRORS else ""
        lines = "\n".join(f"  {error}" for error in errors)
        told = f"{len(errors)}{more} rows" if len(errors) > 1 else "1 row"
        raise UserError(f"{bench.name}: {told} cannot be used; nothing was asked:\n{lines}")


def _placed(error: DataError, path: str, line: int) -> DataError:
    if error.path:
        return error
    return DataError(str(error).removeprefix(f"field {error.field!r}: "), path=path, line=line, field=error.field)


def _records_of(bench: Bench, files: Sequence[BenchFile]) -> Iterator[tuple[BenchFile, Record, int, str]]:
    """Each row of the files with its number, once for each variant of the bench.

    A row without an id is named by its number: that of its line, or among the rows where responses refer to it.
    """
    brought, place = bench.responses == "to be brought", 0
    for file in files:
        place = 0 if len(bench.source.files) > 1 else place
        for record in _records(file, bench.source.at):
            place += 1
            for variant in bench.variants or ("",):
                yield file, record, place if brought else record.line, variant


def _records(file: BenchFile, at: str) -> Iterator[Record]:
    if not at:
        for found in scan_file(str(file.local)):
            if isinstance(found, DataError):
                raise found
            yield found
        return
    with open_bytes(str(file.local)) as stream, blaming(str(file.local)):
        raw = stream.read()
    try:
        value = orjson.loads(raw)
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
    elif at[0] == "*" and isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _inside(each, at[1:], path)
    elif isinstance(value, dict) and at[0] in value:
        yield from _inside(value[at[0]], at[1:], path)
    else:
        shown = "an object or a list" if at[0] == "*" else repr(at[0])
        found = "" if isinstance(value, dict | list) else f", but {orjson.dumps(value).decode():.40}"
        raise DataError(f"has no {shown}{found} where the rows of this bench are ('at' of its source)", path=path)


Make = Callable[[Mapping[str, Any], BenchFile, int, str], dict[str, Any]]


def _rubrics(bench: Bench, data: Path | None, *, unverified: bool) -> dict[str, dict[str, Any]]:
    """The rubrics of `bench.rubrics` by name, from their file; empty where the bench has no such file."""
    told = bench.rubrics
    if told is None:
        return {}
    file = fetch_file(bench, told.file, told.sha256, data, unverified=unverified)
    found = {}
    for record in _records(file, "*"):
        name, criterion, levels = (due_at(record.value, each) for each in (told.name, told.criterion, told.levels))
        found[str(name)] = {"name": str(name), "criterion": criterion, "levels": levels}
    return found


def _sheet(bench: Bench, row: Mapping[str, Any], known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The rubrics that a row names, as a sheet of criteria."""
    assert bench.rubrics is not None
    column = bench.rubrics.column
    named = due_at(row, column)
    names = [str(each) for each in (named if isinstance(named, list) else [named])]
    if unknown := [each for each in names if each not in known]:
        raise DataError(f"{bench.rubrics.file} has no rubric {unknown[0]!r}: {hint(unknown[0], known)}", field=column)
    if not names:
        raise DataError("names no rubric", field=column)
    return {"name": bench.name, "criteria": [known[each] for each in dict.fromkeys(names)]}


def _maker(bench: Bench, rubrics: Mapping[str, dict[str, Any]], data: Path | None, *, native: bool) -> Make:
    """The function that converts a row (of a variant) to an item in JSON form."""

    def make(row: Mapping[str, Any], file: BenchFile, number: int, variant: str) -> dict[str, Any]:
        if native:
            found: dict[str, Any] = {
                "instruction": due_at(row, bench.rendered),
                **fields_of_row(bench, row, _NATIVE),
            }
        elif bench.reader == RENDERED_PAIR:
            found = rendered_pair(row, bench)
        elif bench.reader == CONVERSATION_PAIR:
            found = conversation_pair(row, bench)
        elif bench.reader:
            found = dict(get_schema(bench.reader).reads(dict(row))) | fields_of_row(bench, row)
            found.pop("gold", None)
        else:
            found = fields_of_row(bench, row, variant=variant)
        if clip := found.pop(VIDEO, None):
            asked = found.get("instruction") or []
            parts = [{"type": "text", "text": asked}] if isinstance(asked, str) else asked
            found["instruction"] = [clip_part(clip, _root(data, file)), *parts]
        if rubrics:
            found["rubric"] = _sheet(bench, row, rubrics)
        found.setdefault("id", f"{folder_of(file.path)}-{number}" if len(bench.source.files) > 1 else str(number))
        if variant:
            found["id"] = f"{found['id']}/{variant}"
        if bench.responses == "to be brought" and bench.kind == "scores":
            found = {name: value for name, value in found.items() if name not in ("response", "responses")}
        if bench.gold is not None:
            found["gold"] = gold_by_response(bench, gold_of_row(bench, row), found)
        meta = {
            name: group_of_row(row, column, file.path) for name, column in bench.groups.items() if column != CRITERION
        }
        return {**found, "meta": {**found.get("meta", {}), **meta}}

    if native and not bench.rendered:
        raise UserError(
            f"{bench.name}: its rows hold no rendered prompt, and no prompt of its authors ships with Dikast: "
            "use --prompt dikast, or --format FILE with the prompt of your choice"
        )
    return make


def _root(data: Path | None, file: BenchFile) -> str:
    """The folder from which a row's paths lead."""
    return str(data if data is not None else file.local.parent)


def _placed_at(source: str, data: Path | None) -> str:
    """Where a picture or clip of a bench belongs, as a message names it; paths of rows may lead out of the folder."""
    if data is None:
        return f"FOLDER/{source} and give --data FOLDER, which also holds the files of the rows"
    return os.path.normpath(data / source)


def _plain(make: Make, row: Mapping[str, Any], file: BenchFile, number: int, variant: str) -> Item | None:
    """The item of a row by its fields; None where the row, which is asked by its rendered prompt, lacks them."""
    try:
        return item_from(make(row, file, number, variant), path=file.path, line=number)
    except DataError:
        return None


def _unique(name: Any, seen: Counter[str]) -> str:
    text = str(name)
    seen[text] += 1
    return text if seen[text] == 1 else f"{text}#{seen[text]}"


def _lacks(item: Item, found: Mapping[str, Any], name: str) -> bool:
    """Whether a row has nothing for a field; of pictures and clips, one is enough."""
    if name in ("image", "images", VIDEO):
        return all(isinstance(part, Text) for turn in item.instruction for part in turn.content)
    return not found.get(name)


def _missing_pictures(item: Item) -> str:
    """The first image or clip of an item whose file is missing; "" if none is."""
    shown = [(each.source, each.root) for each in item.images] + [(each.source, each.root) for each in item.videos]
    for source, root in shown:
        if "://" not in source and not source.startswith("data:") and not Path(root, source).is_file():
            return source
    return ""
