"""Files as bounded lines of bytes: plain, gzipped, or standard input."""

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, NamedTuple

from dikast.core.errors import DataError, UserError
from dikast.core.part import REMOTE, plain_scheme

MOST_LINE_BYTES = 64 * 2**20  # a longer line (or JSON element, or CSV row) is refused before it is in memory

Kind = Literal["jsonl", "json", "csv", "tsv", "parquet"]
Stream = IO[bytes] | gzip.GzipFile
KINDS: dict[str, Kind] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet",
    "": "jsonl",
}  # fmt: skip
GZIP_MAGIC = b"\x1f\x8b"


class Line(NamedTuple):
    """A line with its ending, its 1-based number, and the byte of the (uncompressed) file at which it starts."""

    raw: bytes
    number: int
    offset: int


def kind_of(path: str) -> Kind:
    """The format that the file's suffix names, for writing; `-` and files without a suffix are JSONL."""
    stem = path[:-3] if path.lower().endswith(".gz") else path
    suffix = "" if path == "-" else Path(stem).suffix.lower()
    if suffix not in KINDS:
        known = ", ".join(each for each in KINDS if each)
        if suffix in (".xlsx", ".xls", ".ods"):
            raise UserError(f"{path}: a spreadsheet is written and read as CSV UTF-8: name it {Path(stem).stem}.csv")
        raise UserError(
            f"{path}: the suffix {suffix!r} is not a known format: use one of {known} (all but Parquet also .gz); "
            "what Python reads as a data frame is given there: dikast.grade(frame, ...)"
        )
    if KINDS[suffix] == "parquet" and stem != path:
        raise UserError(f"{path}: Parquet is compressed already: unpack the file and drop '.gz'")
    return KINDS[suffix]


@contextmanager
def open_bytes(path: str) -> Iterator[Stream]:
    """The file, unpacked where it is gzipped. Standard input stays open."""
    if path == "-":
        stream = sys.stdin.buffer
        packed = isinstance(stream, io.BufferedReader) and stream.peek(2)[:2] == GZIP_MAGIC
        yield gzip.GzipFile(fileobj=stream) if packed else stream
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below; only the opening may be blamed on the path
    except OSError as error:
        raise DataError(f"cannot be opened: {error.strerror}; fix the path", path=path) from None
    with stream:
        if path.lower().endswith(".gz") or (stream.seekable() and _starts_packed(stream)):
            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield unpacked
        else:
            yield stream


def _starts_packed(stream: IO[bytes]) -> bool:
    packed = stream.read(2) == GZIP_MAGIC
    stream.seek(0)
    return packed


@contextmanager
def blaming(path: str) -> Iterator[None]:
    """Turns errors while reading bytes into a DataError that names the file."""
    try:
        yield
    except EOFError:
        raise DataError("the gzip file is cut short: copy or download it again", path=path) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"not a sound gzip file ({error}): copy it again, or drop '.gz' if it is not", path=path
        ) from None
    except OSError as error:
        raise DataError(f"reading failed: {error.strerror or error}", path=path) from None


def lines_of(path: str, most: int = MOST_LINE_BYTES) -> Iterator[Line]:
    """Each line of the file, a byte order mark left out. Memory is bounded by `most` bytes, whatever the file holds."""
    number = offset = 0
    with open_bytes(path) as stream, blaming(path):
        while raw := stream.readline(most + 1):
            number += 1
            if len(raw) > most:
                raise DataError(
                    f"the line is longer than {most:,} bytes: one record a line; refer to images by path",
                    path=path,
                    line=number,
                )
            size = len(raw)
            if number == 1:
                refuse_utf16(raw, path)
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            yield Line(raw, number, offset + size - len(raw))
            offset += size


_MOST_ACCENTS = 0.3  # of the bytes of a line
_UTF16 = (
    "the file is UTF-16: save it as UTF-8 (in Excel as CSV UTF-8; in a shell: iconv -f UTF-16 -t UTF-8 FILE > OTHER)"
)


def refuse_utf16(head: bytes, path: str) -> None:
    """UTF-16 starts with one of two marks; read as UTF-8 it would only look damaged."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(_UTF16, path=path, line=1)


def text_of_line(line: Line, path: str) -> str:
    """The line as text; DataError with the byte for a NUL or for broken UTF-8."""
    if (at := line.raw.find(b"\0")) >= 0:
        raise DataError(
            f"a NUL byte at byte {at} of the line (byte {line.offset + at} of the file):"
            " the file is damaged, or not UTF-8; write it again as UTF-8",
            path=path, line=line.number,
        )  # fmt: skip
    try:
        return line.raw.decode()
    except UnicodeDecodeError as error:
        cure = f"save the file as UTF-8 (in Excel as CSV UTF-8; in a shell: {_iconv(line.raw)})"
        if _has_accents(path, line.offset):
            cure = "lines before it are UTF-8, so the file is of several encodings: correct this line by hand"
        raise DataError(
            f"broken UTF-8 ({line.raw[error.start : error.end].hex(' ')}) at byte {error.start} of the line"
            f" (byte {line.offset + error.start} of the file): {cure}",
            path=path, line=line.number,
        ) from None  # fmt: skip


def _has_accents(path: str, most: int) -> bool:
    """Whether the first `most` bytes of a file, which are UTF-8, go beyond ASCII and a mark of their order."""
    if not os.path.isfile(path):
        return False
    with open_bytes(path) as stream:
        return not stream.read(min(most, MOST_LINE_BYTES)).removeprefix(b"\xef\xbb\xbf").isascii()


def _iconv(raw: bytes) -> str:
    """The command that makes UTF-8 of the file; few bytes beyond ASCII, mostly alone, are the accents of a
    Western encoding.
    """
    if sum(byte > 127 for byte in raw) < _MOST_ACCENTS * len(raw) and not re.search(rb"[\x80-\xff]{4}", raw):
        return "iconv -f WINDOWS-1252 -t UTF-8 FILE > OTHER"
    return "iconv -f ENCODING -t UTF-8 FILE > OTHER, where ENCODING may be GB18030, SHIFT_JIS or WINDOWS-1251"


def folder_of(path: str) -> str:
    """Where relative paths in the file start: a folder, an address, or "" for the working folder."""
    if (path := plain_scheme(path)).startswith(REMOTE):
        return path.partition("?")[0].rpartition("/")[0]
    if path == "-" or "://" in path:
        return ""
    return path if os.path.isdir(path) else os.path.dirname(path)
