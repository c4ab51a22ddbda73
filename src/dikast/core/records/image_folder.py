"""A folder of images with their captions, as records: each caption is a response about its image.

Captions stand in a text file beside each image (`cat.png`, `cat.txt`), or in one table (`metadata.jsonl`,
`metadata.csv`, `captions.txt`, ...) with a column that names the file.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dikast.core.errors import DataError, UserError
from dikast.core.item import NAMES, plain_name
from dikast.core.media import confine
from dikast.core.records.data_files import TABLES, TEXT_TABLE, pictures_of
from dikast.core.records.reading import Record, read_records
from dikast.core.text import one_line

_FILE = ("file_name", "filename", "file", "image", "image_path", "path")
_TEXT = ("caption", "text", "description")
_MOST_TEXT = 2**20  # bytes of a caption


def pictures_in(path: str) -> Iterator[Record]:
    """One record for each image, named by its file; DataError for images without captions, or captions without one."""
    folder = Path(path)
    table = _table(folder)
    if table is not None:
        confine(table)
        yield from _listed(folder, table)
        return
    for number, picture in enumerate(pictures_of(folder), 1):
        name, text = picture.relative_to(folder).as_posix(), picture.with_suffix(".txt")
        if not _is_file(text):
            cure = f"write its caption to {text.name}, or list all in {folder / 'metadata.csv'} (file_name,caption)"
            raise DataError(f"the image has no caption: {cure}", path=str(picture))
        yield Record({"id": name, "image": name, "response": _caption(text)}, number)


def _table(folder: Path) -> Path | None:
    """The table that lists the images; None where each has a text file of its own."""
    named = next((folder / name for name in TABLES if (folder / name).is_file()), None)
    if named is not None or not (folder / TEXT_TABLE).is_file():
        return named
    captioned = any(_is_file(picture.with_suffix(".txt")) for picture in pictures_of(folder))
    return None if captioned else folder / TEXT_TABLE


def _caption(path: Path) -> str:
    confine(path)
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_TEXT + 1)
        if len(raw) > _MOST_TEXT:
            raise DataError(f"a caption of more than {_MOST_TEXT:,} bytes: is this the file you meant?", path=str(path))
        return raw.decode("utf-8-sig").strip()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=str(path)) from None
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start} is not UTF-8: save the file as UTF-8", path=str(path)) from None


def _listed(folder: Path, table: Path) -> Iterator[Record]:
    seen = Counter[str]()
    for row, line in _rows_of(table):
        names = {plain_name(key): key for key in reversed(row)}
        key = next((names[name] for name in _FILE if name in names), None)
        if key is None:
            told = f"no column names the image; the columns are {', '.join(row)}: call it file_name"
            raise DataError(told, path=str(table), line=line)
        file = row[key]
        if not isinstance(file, str) or not _is_file(folder / file):
            shown = one_line(str(file), 100)
            raise DataError(f"there is no image {shown!r} in the folder", path=str(table), line=line, field=key)
        text = next((names[name] for name in _TEXT if name in names), None)
        said = any(name in names for name in NAMES["response"])
        seen[file] += 1  # some have several captions
        name = file if seen[file] == 1 else f"{file}#{seen[file]}"
        renamed = {key: "image", **({text: "response"} if text and not said else {})}
        record = {renamed.get(each, each): value for each, value in row.items()}
        yield Record({**({} if "id" in names else {"id": name}), **record}, line)


def _rows_of(table: Path) -> Iterator[Record]:
    try:
        yield from read_records(table)
    except DataError:
        raise
    except UserError as error:
        told = "the first line has to name the columns, such as image,caption"
        raise DataError(told, path=str(table), line=1) from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than any file has
        return False
