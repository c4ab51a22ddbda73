"""Format detection: a file's format by its first bytes; the suffix decides only if they are ambiguous."""

import csv
import io
import itertools
import os
import re
import shlex
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from dikast.core.errors import DataError, UserError
from dikast.core.item import NAMES, plain_name
from dikast.core.records.column_names import PAIRS
from dikast.core.records.files import GZIP_MAGIC, KINDS, Kind, kind_of, refuse_utf16
from dikast.core.text import nearest

_HEAD = 2**16
_MOST_ABOVE = 20  # lines above a header
_ROWS = 50  # of a table, to tell its delimiter by
_DELIMITERS = ",;\t|"
_SEP = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)  # a first line that tells spreadsheets the delimiter
_HEADER_IN_APOSTROPHES = re.compile(r"'[^'\n]+'([,;\t|])\s*'[^'\n]+'(?:\1\s*'[^'\n]+')*\s*\n")
_BARE = re.compile(
    r"[-+.,%\deE]*|null|nil|none|n/?a|nan|true|false", re.IGNORECASE
)  # cells that are not quoted as texts
_JSON = re.compile(rb'(\[\s*)?\{\s*"[^"]*"\s*:|\[\s*\{\s*\}')  # how a table of JSON begins, and no header of a CSV
_KNOWN = {name for names in NAMES.values() for name in names} | {f"{stem}_{end}" for stem in PAIRS for end in "ab012"}
_KNOWN |= {"file_name", "caption"}  # of the tables of image folders
_MARKDOWN = re.compile(rb"[^\n]*\|[^\n]*\n[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?)?[ \t]*(?:\r?\n|$)")
_HUB_NAME = re.compile(r"\w[\w-]*/\w[\w.-]*")


_Way = tuple[str, str | None, bool]  # the quote, escape and spaced of a Form
_UNQUOTED: _Way = ("", None, False)


class Form(NamedTuple):
    """The format of a file, and how a table is written: its delimiter, the mark that cells are quoted with ("" for
    none), how that mark is written inside, and whether blanks stand between a delimiter and a quoted cell.
    """

    kind: Kind
    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    spaced: bool = False


def form_of(path: str) -> Form:
    """The form of a file; UserError or DataError for one that cannot be read, with what to do instead."""
    if path != "-" and not os.path.lexists(path) and (near := nearest(path)):
        raise DataError(f"cannot be opened: No such file or directory; did you mean {near!r}?", path=path)
    if _HUB_NAME.fullmatch(path) and not os.path.lexists(path) and not os.path.lexists(os.path.dirname(path)):
        told = f"fix the path, or write hf://datasets/{path} for a data set of the Hub"
        raise DataError(f"cannot be opened: No such file or directory; {told}", path=path)
    if path != "-" and not _is_regular(path):
        kind = kind_of(path)  # a pipe can be read only once
        return Form(kind, "\t" if kind == "tsv" else ",")
    head, whole = _head(path)
    refuse_foreign(head, path)
    refuse_utf16(head, path)
    if head.startswith(b"PAR1"):
        return Form("parquet")
    suffix = _suffix(path)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if above := _lines_above_header(text):
        above += head[: len(head) - len(text)].count(b"\n")
        told = "line 1 is no header" if above == 1 else f"lines 1 to {above} are no header"
        shown = text.partition(b"\n")[0][:40].decode(errors="replace").strip()
        command = f"tail -n +{above + 1} {shlex.quote(path)} > OTHER{suffix or '.csv'}"
        cure = f"the names of the columns stand below; remove what is above ({command})"
        raise DataError(f"{told} ({shown!r}): {cure}", path=path)
    if text[:1] in (b"{", b"[") and suffix not in (".csv", ".tsv"):
        array = text[:1] == b"[" and suffix != ".json" and text[1:].lstrip()[:1] in (b"{", b"")
        return Form("json" if array or suffix == ".json" else "jsonl")
    if suffix in (".csv", ".tsv"):
        if text[:1] == b"{" and _is_object(text.partition(b"\n")[0]):
            return Form("jsonl")
        return Form("json") if _JSON.match(text) else _table(head, whole, suffix)
    if suffix in KINDS or path == "-":
        found = _table(head, whole, suffix)
        return found if _has_known_names(text, found.delimiter) else Form(KINDS.get(suffix, "jsonl"))
    found = _table(head, whole, suffix)
    if text and _has_known_names(text, found.delimiter):
        return found
    return Form(kind_of(path))  # which says what suffixes are known


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _suffix(path: str) -> str:
    stem = path[:-3] if path.lower().endswith(".gz") else path
    return "" if path == "-" else Path(stem).suffix.lower()


def _head(path: str) -> tuple[bytes, bool]:
    """The first bytes of a file, unpacked, and whether they are all of it."""
    try:
        if path == "-":
            stream = sys.stdin.buffer
            raw, whole = (stream.peek(_HEAD) if isinstance(stream, io.BufferedReader) else b""), False
        else:
            with open(path, "rb") as file:
                raw = file.read(_HEAD + 1)
                raw, whole = raw[:_HEAD], len(raw) <= _HEAD
    except OSError as error:
        raise DataError(f"cannot be opened: {error.strerror}; fix the path", path=path) from None
    if raw[:2] != GZIP_MAGIC:
        return raw, whole
    try:
        return zlib.decompressobj(31).decompress(raw, _HEAD), False
    except zlib.error:
        return b"", False  # reading tells what is wrong


def refuse_foreign(head: bytes, path: str) -> None:
    """UserError for a file that does not hold records, by its first bytes, with what to give instead."""
    start = head[:512].lstrip().lower()
    if head.startswith(b"PK\x03\x04"):
        if b"[Content_Types].xml" in head or b"xl/" in head:
            raise UserError(
                f"{path}: an Excel workbook: save the sheet as CSV UTF-8 and give that file, or in Python give the "
                "frame that pandas.read_excel(...) returns"
            )
        raise UserError(f"{path}: a ZIP archive: unpack it and give a file of it")
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise UserError(f"{path}: an old Excel workbook: save the sheet as CSV UTF-8 and give that file")
    if head.startswith(b"ARROW1"):
        raise UserError(f"{path}: an Arrow file: write it as Parquet, or in Python give the table itself")
    if _MARKDOWN.match(head[:4096].lstrip()):
        command = f"sed -E '2d; s/^ *[|] *//; s/ *[|] *$//; s/ *[|] */|/g' {shlex.quote(path)} > OTHER.csv"
        raise UserError(f"{path}: a Markdown table: write it as a table whose delimiter is a bar ({command})")
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise UserError(
            f"{path}: a web page (HTML or XML), not records: give the address of the file itself (on the Hub `resolve` "
            "in place of `blob`, on GitHub `raw`, of a Google sheet `export?format=csv` in place of `edit`), and check "
            "whether it asks for a login"
        )


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _lines_above_header(text: bytes) -> int:
    """How many lines of comment (`# exported on Monday`) or of a title stand above the header of a table; 0 for none
    that are known as such.
    """
    lines = text.splitlines()[: _MOST_ABOVE + 1]
    if len(lines) < 2 or text[:1] in (b"{", b"[") or any(_has_known_names(lines[0], each) for each in _DELIMITERS):
        return 0
    for at, line in enumerate(lines[1:], 1):
        found = next((each for each in _DELIMITERS if _has_known_names(line, each, least=2)), "")
        if found:
            return at if lines[0].startswith(b"#") or found.encode() not in lines[0] else 0
        if not line.startswith(b"#") and line.strip():
            return 0
    return 0


def _has_known_names(text: bytes, delimiter: str, least: int = 1) -> bool:
    """Whether the first line is a header of several names, one of them (or `least`) of a field."""
    line = text.partition(b"\n")[0].decode(errors="replace")
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # such as a lone carriage return, which is reported when reading
        names = line.splitlines()[0].split(delimiter)
    return len(names) > 1 and sum(plain_name(name) in _KNOWN for name in names) >= least


def cells_of(lines: Iterable[str], form: Form) -> Iterator[list[str]]:
    """The rows of a table, as `form` says that they are written; csv.Error where they are not."""
    return csv.reader(
        lines,
        delimiter=form.delimiter,
        quotechar=form.quote or '"',
        quoting=csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE,
        escapechar=form.escape,
        doublequote=not form.escape,
        skipinitialspace=form.spaced,
        strict=True,
    )


def _table(head: bytes, whole: bool, suffix: str) -> Form:
    """The delimiter that gives all first rows the most cells, or that a first line `sep=;` states, with quotation marks
    doubled, escaped or plain; apostrophes are the marks of a table whose texts all stand in them, or that can be read
    in no other way.
    """
    usual = "\t" if suffix == ".tsv" else ","
    text = head.decode("utf-8", errors="replace").removeprefix("\ufeff")
    stated = ""
    if match := _SEP.match(text):
        stated, text = match[1], text[match.end() :]
    delimiters = (stated,) if stated else (usual, *_DELIMITERS)
    in_apostrophes = _widest(text, whole, delimiters, _ways_to_quote("'", text))
    header = _HEADER_IN_APOSTROPHES.match(text)
    if in_apostrophes is not None and (header or _all_texts_quoted(text, whole, in_apostrophes)):
        return in_apostrophes
    if header:  # reading tells which row is broken
        return Form("tsv" if header[1] == "\t" else "csv", header[1], "'")
    found = _widest(text, whole, delimiters, _ways_to_quote('"', text))
    if found is None and '"' in text:  # commas stand in any text: there quotes must hold
        found = _widest(text, whole, (stated or "\t",), (_UNQUOTED,))
    if found is None and in_apostrophes is not None and _widest(text, whole, delimiters, (_UNQUOTED,)) is None:
        found = in_apostrophes
    if found is not None:
        return found
    first = text.partition("\n")[0]
    best = usual if usual in first else max(_DELIMITERS, key=first.count)
    best = stated or (best if best in first else usual)
    return Form("tsv" if best == "\t" else "csv", best)


def _ways_to_quote(mark: str, text: str) -> Iterator[_Way]:
    """How cells may be quoted with a mark, the most usual way first; apostrophes only where there are any."""
    if mark == '"' or mark in text:
        yield mark, None, False
    if f" {mark}" in text:
        yield mark, None, True
    if f"\\{mark}" in text:
        yield mark, "\\", False


def _widest(text: str, whole: bool, delimiters: Iterable[str], ways: Iterable[_Way]) -> Form | None:
    """The form of the first way by which the first rows have equally many cells, and more than one."""
    for quote, escape, spaced in ways:
        forms = [Form("tsv" if each == "\t" else "csv", each, quote, escape, spaced) for each in delimiters]
        widths = {form: _width(text, whole, form) for form in forms}
        best = max(widths, key=lambda form: widths[form])
        if widths[best] > 1:
            return best
    return None


def _all_texts_quoted(text: str, whole: bool, form: Form) -> bool:
    """Whether all texts in the first rows below the header stand in quotes."""
    inside = form.escape or form.quote  # what stands before a quotation mark in a cell
    cells = itertools.chain.from_iterable(_first_rows(text, whole, form)[1:])
    texts = [each.replace(form.quote, inside + form.quote) for each in cells if not _BARE.fullmatch(each.strip())]
    return bool(texts) and all(f"{form.quote}{each}{form.quote}" in text for each in texts)


def _width(text: str, whole: bool, form: Form) -> int:
    """How many cells each of the first rows has; 0 where they differ or cannot be read."""
    widths = {len(row) for row in _first_rows(text, whole, form)}
    return widths.pop() if len(widths) == 1 else 0


def _first_rows(text: str, whole: bool, form: Form) -> list[list[str]]:
    """The first rows that are not empty, without one that was cut; none where they cannot be read."""
    found: list[list[str]] = []
    try:
        for row in cells_of(io.StringIO(text, newline=""), form):
            if row:
                found.append(row)
            if len(found) > _ROWS:
                return found
    except csv.Error as error:
        return [] if whole or "end of data" not in str(error) else found  # the row that was cut is not among them
    return found if whole or len(found) < 2 else found[:-1]
