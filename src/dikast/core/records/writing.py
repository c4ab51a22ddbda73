"""Records to files: whole or not at all."""

import csv
import gzip
import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import DataError
from dikast.core.item import Item, item_from, item_to
from dikast.core.output_folder import replacing
from dikast.core.part import REMOTE, Content, Image, Part, Turn, Video
from dikast.core.records.files import Stream, folder_of, kind_of
from dikast.core.records.reading import cell_value

_OPERATORS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"  # full-width and small forms count
_UNSEEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp", "Zs"}  # categories of invisible characters
_BLANK = "\u115f\u1160\u2800\u3164\uffa0\U0001d159"  # letters and symbols that are drawn as nothing
_STRIPPED = re.compile(r"'*[\t\r]")  # some programs drop these and evaluate what follows
_SPLIT = re.compile(r"([;\n\r])")  # characters after which a program that expects semicolons begins another cell
_BARE_RETURN = re.compile("\r")  # which the writer would leave unquoted
_SPLIT_UNQUOTED = re.compile(r"[\r;,\t]")  # programs that guess the separator keep quoted cells whole
_NUMBER = re.compile(r"[ ]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ ]*")
_TABLE_OF_ITEMS = (
    "id",
    "instruction",
    "response",
    "responses",
    "reference",
    "context",
    "rubric",
    "gold",
    "gold_from",
    "meta",
)


def write_records(path: str | Path, values: Iterable[Mapping[str, Any]], *, escape_formulas: bool = False) -> int:
    """Write JSON objects in the format of the suffix (`-` is JSONL on stdout); returns how many.

    A file appears under its name only when it is complete: an error leaves what was there before. NaN and infinities
    become null. CSV and TSV take their columns from the first record, write null as an empty cell, and lists and
    objects as JSON; with `escape_formulas`, formulas that a spreadsheet would run become text there
    (`escaped_formula`). In Parquet a key that a record lacks comes back as null.
    """
    path = str(path)
    kind = kind_of(path)
    if kind == "parquet":
        from dikast.core.records.parquet import write_rows

        with replacing(path) as temporary:
            return write_rows(temporary, (_dumped(value, path, n) for n, value in enumerate(values, 1)))
    with _stream(path) as stream:
        if kind in ("csv", "tsv"):
            return _write_table(stream, values, path, "," if kind == "csv" else "\t", escape=escape_formulas)
        before, between, after = (b"[\n", b",\n", b"\n]\n") if kind == "json" else (b"", b"\n", b"\n")
        n = 0
        for n, value in enumerate(values, 1):
            stream.write((between if n > 1 else before) + _dumped(value, path, n))
        stream.write(after if n else b"".join((before, after)).strip())
        return n


def write_items(path: str | Path, items: Iterable[Item]) -> int:
    """Write items so that `read_items` gives them back; returns how many.

    Relative image paths are rewritten to start at the new file's folder. CSV and TSV hold text only: DataError for an
    item that they cannot give back (images, conversations, structured gold).
    """
    path = str(path)
    folder, table = folder_of(path), kind_of(path) in ("csv", "tsv")
    moved = (rebased(item, folder) for item in items)
    return write_records(path, (_row(item, path) if table else item_to(item) for item in moved))


def write_file(path: str | Path, data: bytes) -> None:
    """Write a file that the user named: whole, or as it was before. Links are followed, pipes and devices written to.

    UserError where its folder does not exist, RunError where it cannot be written.
    """
    with replacing(str(path)) as temporary, open(temporary, "wb") as file:
        file.write(data)


def _dumped(value: Mapping[str, Any], path: str, number: int) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise DataError(f"record {number} cannot be written as JSON: {error}", path=path) from None


@contextmanager
def _stream(path: str) -> Iterator[Stream]:
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(path) as temporary, open(temporary, "wb") as file:
        if path.lower().endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                yield packed
        else:
            yield file


def escaped_formula(cell: str) -> str:
    """The cell with an apostrophe before whatever a spreadsheet would take for a formula; numbers stay.

    A formula begins with = + - @, also in their full-width forms, behind any blanks, invisible characters and quotation
    marks: where the cell begins, and after each semicolon and line break in it, since spreadsheets of many languages
    expect semicolons between cells and then ignore our quotation marks. A tab or carriage return at the start counts
    too. `unescaped_formula` gives every cell back.
    """
    return "".join("'" + each if runs and not _NUMBER.fullmatch(each) else each for each, runs in _cells_in(cell))


def unescaped_formula(cell: str) -> str:
    """The inverse of `escaped_formula`."""
    return "".join(each[1:] if runs and each.startswith("'") else each for each, runs in _cells_in(cell))


def _cells_in(cell: str) -> Iterator[tuple[str, bool]]:
    """What some program may take for a cell of its own, and whether it may run it, with any apostrophes before it."""
    for n, each in enumerate(_SPLIT.split(cell)):
        yield each, _begins_formula(each) or (n == 0 and _STRIPPED.match(cell) is not None)


def _begins_formula(cell: str) -> bool:
    """Whether the first character that can be seen, quotation marks aside, is an operator."""
    for each in cell:
        if each in _OPERATORS:
            return True
        if each not in "'\"" and each not in _BLANK and unicodedata.category(each) not in _UNSEEN:
            return False
    return False


def _write_table(
    stream: Stream, values: Iterable[Mapping[str, Any]], path: str, delimiter: str, *, escape: bool
) -> int:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    quoting = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    header: list[str] = []
    n = 0
    try:
        for n, value in enumerate(values, 1):
            if n == 1:
                header = list(value)
                writer.writerow(map(escaped_formula, header) if escape else header)
            if value.keys() - set(header):
                extra = ", ".join(sorted(map(str, value.keys() - set(header))))
                raise DataError(f"record {n} has keys that the first has not ({extra}): write JSONL", path=path)
            row = [_cell(value.get(key), path, n) for key in header]
            if escape:
                row = [escaped_formula(cell) for cell in row]
            split = _SPLIT_UNQUOTED if escape else _BARE_RETURN
            (quoting if any(map(split.search, row)) else writer).writerow(row)
    finally:
        text.detach()
    return n


def _cell(value: Any, path: str, number: int) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return _dumped(value, path, number).decode()


def _row(item: Item, path: str) -> dict[str, Any]:
    """The item as cells, checked to come back equal."""
    value = item_to(item)
    row: dict[str, Any] = dict.fromkeys(_TABLE_OF_ITEMS)
    row.update(value)
    if row["response"] == "":
        row["response"], row["responses"] = None, [""]
    cells = {key: _cell(each, path, 0) for key, each in row.items()}
    read = {key: cell_value(key, cell) for key, cell in cells.items() if cell or key != "response"}
    try:
        same = item_from(read) == item and not any("\0" in cell for cell in cells.values())
    except DataError:
        same = False
    if not same:
        raise DataError(f"item {item.id!r} cannot be written as a table of text: use JSONL or Parquet", path=path)
    return cells


def rebased(item: Item, folder: str) -> Item:
    """The item with its relative paths of images and videos relative to `folder`."""
    sources = [(each.source, each.root) for each in item.images] + [(each.source, each.root) for each in item.videos]
    if not any(root != folder and not _absolute(source) for source, root in sources):
        return item
    return replace(
        item,
        instruction=tuple(Turn(turn.role, _moved(turn.content, folder)) for turn in item.instruction),
        responses=tuple(_moved(content, folder) for content in item.responses),
        reference=None if item.reference is None else _moved(item.reference, folder),
        context=None if item.context is None else _moved(item.context, folder),
    )


def _moved(content: Content, folder: str) -> Content:
    parts: list[Part] = []
    for part in content:
        if isinstance(part, Video):
            file = _moved_image(Image(part.source, part.root), folder) if part.source else Image("")
            frames = tuple(_moved_image(frame, folder) for frame in part.frames)
            part = replace(part, frames=frames, source=file.source, root=file.root)
        parts.append(_moved_image(part, folder) if isinstance(part, Image) else part)
    return tuple(parts)


def _moved_image(image: Image, folder: str) -> Image:
    if image.root == folder or _absolute(image.source):
        return image
    absolute = os.path.join(os.path.realpath(image.root or "."), image.source)
    try:
        return Image(os.path.relpath(absolute, os.path.realpath(folder or ".")), folder)
    except ValueError:  # another drive of Windows
        return Image(absolute, folder)


def _absolute(source: str) -> bool:
    return source.startswith(("data:", *REMOTE, "~")) or os.path.isabs(source)
