"""Format detection: a file's format by its first bytes; the suffix decides only if they are ambiguous."""

import csv
import io
import os
import re
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
from dikast.core.records.files import GZIP_MAGIC, KINDS, Kind, kind_of
from dikast.core.text import near_miss

_HEAD = 2**16
_ROWS = 50  # of a table, to tell its delimiter by
_DELIMITERS = ",;\t|"
_SEP = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)  # a first line that tells spreadsheets the delimiter
_JSON = re.compile(rb'(\[\s*)?\{\s*"[^"]*"\s*:|\[\s*\{\s*\}')  # how a table of JSON begins, and no header of a CSV
_KNOWN = {name for names in NAMES.values() for name in names} | {f"{stem}_{end}" for stem in PAIRS for end in "ab012"}


class Form(NamedTuple):
    """The format of a file, and how a table is written: its delimiter, how quotation marks are meant, and whether
    blanks stand between a delimiter and a quoted cell.
    """

    kind: Kind
    delimiter: str = ","
    quoted: bool = True
    escape: str | None = None
    spaced: bool = False


def form_of(path: str) -> Form:
    """The form of a file; UserError or DataError for one that cannot be read, with what to do instead."""
    if path != "-" and not os.path.lexists(path) and (near := _nearest(path)):
        raise DataError(f"cannot be opened: No such file or directory; did you mean {near!r}?", path=path)
    if path != "-" and not _is_regular(path):
        kind = kind_of(path)  # a pipe can be read only once
        return Form(kind, "\t" if kind == "tsv" else ",")
    head, whole = _head(path)
    refuse_foreign(head, path)
    if head.startswith(b"PAR1"):
        return Form("parquet")
    suffix = _suffix(path)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
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


def _nearest(path: str) -> str:
    """The file of the same folder that was most likely meant; "" for none."""
    folder, name = os.path.split(path)
    try:
        near = near_miss(name, (each for each in os.listdir(folder or ".") if not each.startswith(".")))
    except OSError:
        return ""
    return os.path.join(folder, near) if near else ""


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
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise UserError(
            f"{path}: a web page (HTML or XML), not records: give the address of the file itself (on the Hub `resolve` "
            "in place of `blob`, on GitHub `raw`), and check whether it asks for a login"
        )


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _has_known_names(text: bytes, delimiter: str) -> bool:
    """Whether the first line is a header of several names, one of them of a field."""
    line = text.partition(b"\n")[0].decode(errors="replace")
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # such as a lone carriage return, which is reported when reading
        names = line.splitlines()[0].split(delimiter)
    return len(names) > 1 and any(plain_name(name) in _KNOWN for name in names)


def cells_of(lines: Iterable[str], form: Form) -> Iterator[list[str]]:
    """The rows of a table, as `form` says that they are written; csv.Error where they are not."""
    return csv.reader(
        lines,
        delimiter=form.delimiter,
        quoting=csv.QUOTE_MINIMAL if form.quoted else csv.QUOTE_NONE,
        escapechar=form.escape,
        doublequote=not form.escape,
        skipinitialspace=form.spaced,
        strict=True,
    )


def _table(head: bytes, whole: bool, suffix: str) -> Form:
    """The delimiter that gives all first rows the most cells, or that a first line `sep=;` states, with quotation marks
    doubled, escaped or plain.
    """
    usual = "\t" if suffix == ".tsv" else ","
    text = head.decode("utf-8", errors="replace").removeprefix("\ufeff")
    stated = ""
    if match := _SEP.match(text):
        stated, text = match[1], text[match.end() :]
    ways: list[tuple[bool, str | None, bool]] = [(True, None, False)]
    if ' "' in text:
        ways.append((True, None, True))
    if '\\"' in text:
        ways.append((True, "\\", False))
    if '"' in text:
        ways.append((False, None, False))
    for quoted, escape, spaced in ways:
        delimiters = (usual, *_DELIMITERS) if quoted else ("\t",)  # commas stand in any text: there quotes must hold
        delimiters = (stated,) if stated else delimiters
        widths = {each: _width(text, whole, Form("csv", each, quoted, escape, spaced)) for each in delimiters}
        best = max(widths, key=lambda each: widths[each])
        if widths[best] > 1:
            return Form("tsv" if best == "\t" else "csv", best, quoted, escape, spaced)
    header = text.partition("\n")[0]
    best = usual if usual in header else max(_DELIMITERS, key=header.count)
    best = stated or (best if best in header else usual)
    return Form("tsv" if best == "\t" else "csv", best)


def _width(text: str, whole: bool, form: Form) -> int:
    """How many cells each of the first rows has; 0 where they differ or cannot be read."""
    rows = cells_of(io.StringIO(text, newline=""), form)
    widths: list[int] = []
    try:
        for row in rows:
            if row:
                widths.append(len(row))
            if len(widths) > _ROWS:
                whole = True
                break
    except csv.Error as error:
        if whole or "end of data" not in str(error):
            return 0
        whole = True  # the row that was cut is not among them
    if not whole and len(widths) > 1:
        widths.pop()
    return widths[0] if widths and len(set(widths)) == 1 else 0
