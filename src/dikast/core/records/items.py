"""Items from files: columns matched to fields, ids kept apart, mistakes reported together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.media import check_image, confine, sample_video
from dikast.core.part import REMOTE, Image, Part, Video, plain_scheme
from dikast.core.records.arranging import Arranger, ShapeError
from dikast.core.records.column_cures import picture_as_text
from dikast.core.records.content_ids import ContentIds, Ids
from dikast.core.records.files import folder_of
from dikast.core.records.image_folder import pictures_in
from dikast.core.records.reading import NO_RECORDS, Record, scan_file
from dikast.core.records.shapes.arrangement import Arrangement
from dikast.core.records.sniffing import form_of
from dikast.core.records.sources import files_of, is_address, local_path

MOST_ERRORS = 20
_Found = tuple[Item | DataError, int, str, int]  # an item or what is wrong, its place among all, its file and line


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
    """The items of a source, in order, in bounded memory. Raises DataError at the first mistake.

    `path`: a file, a folder or an address (`records.sources`). Columns with the usual names are recognised
    (`records.column_names`). `columns` maps a field of Item to the file's own name for it: `{"id": "idx",
    "instruction": "prompt"}`; "" leaves a field out. A missing id is made from the item's content. In every format
    `response_0`, `response_1`, ... stand for `responses`. In CSV and TSV a cell is text, an empty one (other than a
    response) is no value, `gold` is a number when it is written as one, `responses`, `images`, `meta` and `rubric` may
    be JSON. Relative paths start at the file's folder. Two items with one id are a mistake.
    """
    for found in scan_items(str(path), columns or {}):
        if isinstance(found, DataError):
            raise found
        yield found


def read_repeated(path: str | Path) -> Iterator[Item]:
    """As `read_items`, of a file in which several items may have one id."""
    local = local_path(str(path))
    arrange = _arranger(local, {}, Arrangement())
    for found, *_ in _of_files(files_of(local), local, arrange):
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


def scan_items(path: str, columns: Mapping[str, str], reading: Arrangement | None = None) -> Iterator[Item | DataError]:
    """As `read_items`, with each mistake in the place of its record instead of raised.

    What is wrong with the columns of the whole file is raised. `reading` is filled with what was done.
    """
    path, reading = local_path(path), reading or Arrangement()
    arrange, files = _arranger(path, columns, reading), files_of(path)
    reading.several = len(files) > 1

    def is_same(name: str, place: int) -> bool:
        return _is_same(name, path, place, columns, reading)

    where = "the id of record {}" if reading.several else "on line {}"
    yield from _with_ids(_of_files(files, path, arrange), reading, where, is_same)


def scan_rows(
    rows: Iterable[Item | dict[str, Any]], columns: Mapping[str, str], reading: Arrangement | None = None
) -> Iterator[Item | DataError]:
    """As `scan_items`, of rows in memory, which messages number from 0 (`rows:0`)."""
    reading = reading or Arrangement()
    arrange = Arranger(columns, reading)
    arranged = (
        (
            row if isinstance(row, Item) else _arranged(arrange, Record(row, number), "rows", first=not number),
            number,
            "rows",
            number,
        )
        for number, row in enumerate(rows)
    )
    yield from _with_ids(arranged, reading, "the id of row {}")


def _of_files(files: Sequence[str], path: str, arrange: Arranger) -> Iterator[_Found]:
    number = 0
    for file in files:
        if file != path and not is_address(path):  # found in a folder
            confine(file)
        root = folder_of(path if plain_scheme(path).startswith(REMOTE) else file)
        for record in pictures_in(file) if Path(file).is_dir() else scan_file(file):
            number += 1
            if isinstance(record, DataError):
                yield record, number, file, 0
            else:
                place = number if len(files) > 1 else record.line
                yield _arranged(arrange, record, file, root, first=number == 1), place, file, record.line
    if not number:
        raise DataError(NO_RECORDS, path=path)


def _arranged(arrange: Arranger, record: Record, path: str, root: str = "", *, first: bool = False) -> Item | DataError:
    try:
        found = arrange.item(record, path=path, root=root)
        unsure = first and not found.images and arrange.reading.names > 5
        if unsure and (told := picture_as_text(arrange.fields, record.value, root)):
            raise ShapeError(told, path=path, line=record.line)
        return found
    except ShapeError:
        raise
    except DataError as error:
        return error


def _with_ids(
    items: Iterable[_Found],
    reading: Arrangement,
    where: str,
    is_same: Callable[[str, int], bool] = lambda name, place: True,
) -> Iterator[Item | DataError]:
    """The items with ids of their own; one that stands twice is a mistake, which tells `where` the first is.

    `is_same` says whether the item at a place is really called so: equal hashes do not imply equal ids.
    """
    ids = Ids()
    made = ContentIds(reading, ids)
    for item, place, path, line in items:
        if isinstance(item, DataError):
            yield item
        elif not item.id:
            yield made.named(item)
        elif (earlier := ids.add(item.id, place)) is None or not is_same(item.id, earlier):
            yield item
        else:
            yield _twice(item.id, where.format(earlier), path, line)


def item_of(row: Mapping[str, Any], name: str = "item") -> Item:
    """The item of one row in memory, its columns recognised as those of files are; `name` is its id if it has none."""
    item = Arranger({}, Arrangement()).item(Record({str(key): each for key, each in row.items()}, 0))
    return replace(item, id=item.id or name, origin="")


def _twice(name: str, where: str, path: str, line: int) -> DataError:
    told = (
        f"the id {name!r} is {where} already: give each item its own, remove one, or leave the column out with "
        "--map id= (ids are then made from content)"
    )
    return DataError(told, path=path, line=line, field="id")


def _arranger(path: str, columns: Mapping[str, str], reading: Arrangement) -> Arranger:
    files = files_of(path)
    plain = path == "-" or not Path(files[0]).is_dir()
    return Arranger(columns, reading, cells=plain and form_of(files[0]).kind in ("csv", "tsv"))


def _is_same(name: str, path: str, place: int, columns: Mapping[str, str], reading: Arrangement) -> bool:
    """Whether the item at `place` is really called `name`: equal hashes do not imply equal ids."""
    if path == "-":
        return True
    arrange, files, number = _arranger(path, columns, Arrangement(reading.names)), files_of(path), 0
    for file in files:
        for found in pictures_in(file) if Path(file).is_dir() else scan_file(file):
            number += 1
            if isinstance(found, Record) and (found.line if len(files) == 1 else number) == place:
                return arrange.item(found, path=file).id in (name, "")
    return True
