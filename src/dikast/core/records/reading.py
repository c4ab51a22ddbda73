"""Records from files: what each format holds, one object at a time."""

import csv
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import orjson

from dikast.core.errors import DataError
from dikast.core.item import ITEM_KEYS
from dikast.core.records.files import (
    MOST_LINE_BYTES,
    Line,
    Stream,
    blaming,
    lines_of,
    open_bytes,
    refuse_utf16,
    text_of_line,
)
from dikast.core.records.shapes.wrapped_tables import table_in
from dikast.core.records.sniffing import Form, cells_of, form_of
from dikast.core.records.sources import files_of
from dikast.core.runs.run_files import check_made
from dikast.core.text import number_in

NUMBERED = re.compile(r"response_(\d{1,3})")  # columns that are responses by their own names
NO_RECORDS = "the file holds no records: write one row for each item (in a CSV below the header)"
_CHUNK = 2**20
_SPAN = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len)  # where a value ends, numbers unread
_NOT_A_NUMBER = re.compile(r"-?\+?(NaN|Infinity|inf)\b", re.IGNORECASE)


class Record(NamedTuple):
    """One object of a file, and the line it starts on (in Parquet: its row, from 1)."""

    value: dict[str, Any]
    line: int


def read_records(path: str | Path) -> Iterator[Record]:
    """The records of a source, in order, in bounded memory; the format of a file is recognised by its first bytes.

    A source is a file, `-` (standard input), a folder, or an address (`records.sources`).

    Raises DataError with path and line for anything that is not a record, for a file without any, and for one that
    Dikast wrote and that has changed since (`core.runs.run_files`).
    """
    for found in scan_records(str(path)):
        if isinstance(found, DataError):
            raise found
        yield found


def scan_records(path: str) -> Iterator[Record | DataError]:
    """As `read_records`, but mistakes after which reading can go on are yielded in their place."""
    found = itertools.chain.from_iterable(map(scan_file, files_of(path)))
    first = next(found, None)
    if first is None:
        raise DataError(NO_RECORDS, path=path)
    yield from itertools.chain((first,), found)


def scan_file(path: str) -> Iterator[Record | DataError]:
    """As `scan_records`, of one of the local files of a source; nothing for an empty one."""
    if path != "-":
        check_made(Path(path))
    form = form_of(path)
    if form.kind == "jsonl":
        found = _jsonl(path)
    elif form.kind == "json":
        found = _json(path)
    elif form.kind == "parquet":
        from dikast.core.records.parquet import rows_of

        found = (Record(value, row) for row, value in enumerate(rows_of(path), 1))
    else:
        found = _table(path, form)
    yield from found


def _jsonl(path: str) -> Iterator[Record | DataError]:
    for line in lines_of(path):
        if line.raw.isspace():
            continue
        try:
            value = orjson.loads(line.raw)
        except orjson.JSONDecodeError as error:
            yield _json_problem(line, error, path)
            continue
        if type(value) is dict:
            yield Record(value, line.number)
        else:
            cure = "; a file that is one JSON array is named .json" if isinstance(value, list) else ""
            shown = line.raw[:40].decode(errors="replace").strip()
            yield DataError(f"each line holds one JSON object, this one {shown}{cure}", path=path, line=line.number)


def _json_problem(line: Line, error: orjson.JSONDecodeError, path: str) -> DataError:
    """The mistake in a line that orjson refuses, the most informative cause first."""
    try:
        text = text_of_line(line, path)
    except DataError as broken:
        return broken
    column, near = error.colno, text[error.pos : error.pos + 30].rstrip()
    if (match := _NOT_A_NUMBER.match(text, error.pos)) or "infinity" in error.msg:
        shown = match[0] if match else near
        message = f"{shown} at column {column} is not a JSON number: write null where a number is not known"
    elif text.lstrip().startswith("["):
        message = (
            "each line holds one JSON object, this one starts an array: a file that is one JSON array is named .json"
        )
    elif not near:
        message = "the JSON object does not end on its line: write one object a line (or name the file .json)"
    else:
        message = f"not valid JSON at column {column}, near {near!r}: {error.msg}"
    return DataError(message, path=path, line=line.number)


def _json(path: str) -> Iterator[Record]:
    """The elements of an array, or objects with space between them; each at most MOST_LINE_BYTES characters."""
    with open_bytes(path) as stream:
        values = _JsonValues(stream, path)
        array = values.next_character() == "["
        if array:
            values.skip()
        while (character := values.next_character()) not in ("", "]"):
            if character != "{":
                values.fail(f"expected a JSON object, found {character!r}")
            record = values.take()
            table = None if array else table_in(record.value, path, record.line)
            if table is None:
                yield record
            else:
                yield from (Record(row, number) for number, row in enumerate(table.rows, 1))
            if array:
                following = values.next_character()
                if following == ",":
                    values.skip()
                elif following != "]":
                    values.fail(
                        "expected ',' or ']' after an object" + ("" if following else "; the file is cut short")
                    )
        if array != (character == "]"):
            values.fail("the array does not end: the file is cut short" if array else "a ']' without its '['")
        if array:
            values.skip()
            if values.next_character():
                values.fail("there is text after the end of the array")


def jq_to_records(path: str) -> str:
    """What a program of jq begins with that is to see the records of a JSON file one by one; "" if it does anyhow."""
    with open_bytes(path) as stream:
        values = _JsonValues(stream, path)
        if values.next_character() == "[":
            return ".[] | "
        table = table_in(values.take().value, path)
    return f".{table.inside} | " if table is not None and table.inside else ""


class _JsonValues:
    """A sliding window over a JSON text, one object after another."""

    def __init__(self, stream: Stream, path: str) -> None:
        self._stream, self._path = stream, path
        self._pending = b""  # the start of a character that the last chunk cut off
        self._text, self._at, self._line, self._read, self._ended = "", 0, 1, 0, False

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        line = self._line + self._text.count("\n", self._at, self._at if at is None else at)
        raise DataError(f"not valid JSON: {message}", path=self._path, line=line)

    def next_character(self) -> str:
        """The next character that is not space, without taking it; empty at the end."""
        while True:
            start = self._at
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            self._line += self._text.count("\n", start, self._at)
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._fill(_CHUNK)

    def skip(self) -> None:
        self._at += 1

    def take(self) -> Record:
        """The object that starts here."""
        wanted = _CHUNK
        while True:
            try:
                _, end = _SPAN.raw_decode(self._text, self._at)
                break
            except json.JSONDecodeError as error:
                held = len(self._text) - self._at
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - 100
                if self._ended or not cut:
                    self.fail(f"{error.msg}, near {self._text[error.pos : error.pos + 30]!r}", error.pos)
                if held > MOST_LINE_BYTES:
                    self.fail(f"one object is longer than {MOST_LINE_BYTES:,} characters: refer to images by path")
            except RecursionError:
                self.fail("the object is nested too deeply")
            self._fill(wanted)
            wanted *= 2
        raw, line = self._text[self._at : end].encode(errors="surrogatepass"), self._line
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            lines = raw[: error.pos].count(b"\n")
            raise _json_problem(Line(raw, line + lines, 0), error, self._path) from None
        self._line += self._text.count("\n", self._at, end)
        self._at = end
        return Record(value, line)

    def _fill(self, size: int) -> None:
        with blaming(self._path):
            raw = self._stream.read(size)
        self._ended = not raw
        if self._read == 0:
            refuse_utf16(raw, self._path)
        if (at := raw.find(b"\0")) >= 0:
            self.fail(f"a NUL byte at byte {self._read + at} of the file: write it again as UTF-8", len(self._text))
        start, raw = self._read - len(self._pending), self._pending + raw
        self._read = start + len(raw)
        self._pending = b""
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            if self._ended or error.reason != "unexpected end of data":
                text = self._text[self._at :] + raw[: error.start].decode()
                line = self._line + text.count("\n")
                message = f"broken UTF-8 at byte {start + error.start} of the file: save the file as UTF-8"
                raise DataError(message, path=self._path, line=line) from None
            self._pending, text = raw[error.start :], raw[: error.start].decode()
        self._text, self._at = self._text[self._at :] + (text.removeprefix("\ufeff") if start == 0 else text), 0


class _Feed:
    """Lines of text for `csv.reader`, which asks for as many as a row has; a row may not grow without end."""

    def __init__(self, path: str) -> None:
        self._lines, self._path = lines_of(path), path
        self.number, self.row, self._size = 0, 1, 0  # the line that was read last, the one on which its row begins

    def begin_row(self) -> None:
        self.row, self._size = self.number + 1, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number, self._size = line.number, self._size + len(line.raw)
        if self._size > MOST_LINE_BYTES:
            message = (
                f"the row that begins here has more than {MOST_LINE_BYTES:,} bytes: is a quotation mark not closed?"
            )
            raise DataError(message, path=self._path, line=self.row)
        return text_of_line(line, self._path)


def _table(path: str, form: Form) -> Iterator[Record | DataError]:
    csv.field_size_limit(max(csv.field_size_limit(), MOST_LINE_BYTES))  # a setting of the process; only ever raised
    feed = _Feed(path)
    rows = cells_of(feed, form)
    header: list[str] | None = None
    began = nameless = 0  # the line of the header, and how many columns at its end have no name
    while True:
        feed.begin_row()
        try:
            row = next(rows, None)
        except csv.Error as error:
            mark = form.quote or '"'
            cure = f"put cells with commas, quotes or line breaks in {mark}...{mark}"
            cure += f" and write {mark} inside them as {mark * 2}"
            if "new-line character" in str(error):
                cure = "lines end in a carriage return alone: save the file with line ends as of Unix or Windows"
            raise DataError(
                f"broken row ({str(error).partition(' - ')[0]}): {cure}", path=path, line=feed.row
            ) from None
        if row is None:
            return
        if header is not None and len(row) == len(header) and row[0].strip():  # the usual row, told apart cheaply
            yield Record(dict(zip(header, row, strict=True)), feed.row)
            continue
        if not row or (header is None and feed.row == 1 and _states_delimiter(row, form)):
            continue
        if header is None:
            began, nameless = feed.row, len(row)
            header = _header(row, path, began)
            nameless -= len(header)
            continue
        if len(row) > 1 and not any(map(str.strip, row)):  # an empty row of a spreadsheet
            continue
        if len(row) > len(header) and not any(map(str.strip, row[len(header) :])):
            del row[len(header) :]  # empty columns of a spreadsheet
        if len(header) < len(row) <= len(header) + nameless:
            raise _nameless(len(header), path, began)
        if len(row) != len(header):
            message = (
                f"the row has {len(row)} cells where the header has {len(header)}: quote cells that hold a delimiter "
                f"with {'single' if form.quote == chr(39) else 'double'} quotes ({form.quote or chr(34)})"
            )
            yield DataError(message, path=path, line=feed.row)
        else:
            yield Record(dict(zip(header, row, strict=True)), feed.row)


def _states_delimiter(row: list[str], form: Form) -> bool:
    """Whether the first line is `sep=;`, which tells Excel the delimiter."""
    return form.delimiter.join(row).casefold() == f"sep={form.delimiter}"


def _header(row: list[str], path: str, line: int) -> list[str]:
    """The names of the columns, without empty ones at the end."""
    names = [name.strip() for name in row]
    while len(names) > 1 and not names[-1]:
        del names[-1]
    if len(names) > 1 and not names[0] and all(names[1:]):
        names[0] = "Unnamed: 0"  # the index of a data frame, under the name by which pandas reads it back
    for i, name in enumerate(names):
        if not name:
            raise _nameless(i, path, line)
        if name in names[:i]:
            message = f"columns {names.index(name) + 1} and {i + 1} are both called {name!r}: rename one"
            raise DataError(message, path=path, line=line, field=name)
    return names


def _nameless(column: int, path: str, line: int) -> DataError:
    told = "name it or remove it (a title above the header is to be removed too)"
    return DataError(f"column {column + 1} of the header has no name: {told}", path=path, line=line)


def cell_value(key: str, cell: str, *, path: str = "", line: int | None = None) -> Any:
    """The value of a CSV or TSV cell in the column `key`."""
    if key == "response" or NUMBERED.fullmatch(key) or key not in ITEM_KEYS:
        return cell
    if not cell.strip():
        return None
    if key == "gold":
        return number_in(cell.strip())
    wants_json = key == "responses" or (key, cell.lstrip()[0]) in (("images", "["), ("rubric", "{"), ("meta", "{"))
    if not wants_json:
        return cell if key != "meta" else {"meta": cell}  # a column that happens to have this name
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError as error:
        example = '["first", "second"]'
        if key == "meta":
            example = '{"split": "test"}, or keep the text as it stands with --map meta='
        raise DataError(f"not valid JSON ({error.msg}): write {example}", path=path, line=line, field=key) from None
