"""Several files as one source: the answers of several models, each file named after its system.

An item's id consists of its file's name and its own id, so that files may share ids. Its system, which wrote the
responses, is that of a column, else the name of the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.records.arranging import Arrangement
from dikast.core.records.column_names import SYSTEM, systems_of
from dikast.core.records.content_ids import prompt_id
from dikast.core.records.items import scan_items
from dikast.core.records.sources import files_of

_HEAD = 100  # records of each file of a folder that tell whether the files answer the same prompts


def names_of(paths: Sequence[str]) -> dict[str, str]:
    """A short name for each file: without folder and endings, with as much of the folder as tells it from the others.

    UserError for a file that is given twice, and for standard input beside others.
    """
    if "-" in paths:
        raise UserError("standard input (-) cannot be read beside files: save it to a file first")
    if twice := [path for i, path in enumerate(paths) if path in paths[:i]]:
        raise UserError(f"{twice[0]}: given twice; leave one out")
    for depth in range(1, max(len(PurePosixPath(path).parts) for path in paths) + 1):
        names = {path: _name(path, depth) for path in paths}
        if len(set(names.values())) == len(paths):
            return names
    return {path: path for path in paths}  # such as a.csv beside a.jsonl


def answers_of_models(folder: str, columns: Mapping[str, str]) -> list[str]:
    """The files of a folder, if each holds another model's answers to the same prompts: no column names the model, and
    the first prompts of a file are, for at least half of them, also those of the file before. Else an empty list, as
    for the parts of one data set.
    """
    files = list(files_of(folder)) if Path(folder).is_dir() else []
    before: set[str] = set()
    for path in files if len(files) > 1 else ():
        if Path(path).is_symlink() or Path(path).is_dir():
            return []
        with suppress(DataError):  # told when the items are read
            heads = [each for each in islice(scan_items(path, columns), _HEAD) if isinstance(each, Item)]
            if any(len(each.responses) != 1 or systems_of(each) for each in heads):
                return []
            prompts = {prompt_id(each) for each in heads if each.instruction}
            if 2 * len(prompts) <= len(heads) or (before and 2 * len(prompts & before) < len(prompts)):
                return []
            before = prompts
    return files if before else []


def joined_items(
    names: Mapping[str, str], columns: Mapping[str, str], readings: Mapping[str, Arrangement], limit: int | None = None
) -> Iterator[Item | DataError]:
    """The items of the files in turn, at most `limit` of each, with mistakes in their place.

    `names` are the files and what each is called, `readings` how each is read, filled with what was done.
    """
    for path, name in names.items():
        taken = 0
        for found in scan_items(path, columns, readings[path]):
            if isinstance(found, DataError):
                yield found
                continue
            if limit is not None and taken == limit:
                break
            taken += 1
            told = len(found.responses) != 1 or systems_of(found)
            meta = found.meta if told else {**found.meta, SYSTEM[0]: name}
            yield replace(found, id=f"{name}/{found.id}", meta=meta)


def origin_of(
    number: int, names: Mapping[str, str], columns: Mapping[str, str], readings: Mapping[str, Arrangement]
) -> str:
    """The file and line of the item with that number, from 1."""
    fresh = {path: Arrangement(reading.ids) for path, reading in readings.items()}
    items = (each for each in joined_items(names, columns, fresh) if isinstance(each, Item))
    return next((each.origin for each in islice(items, number - 1, None)), "")


def _name(path: str, depth: int) -> str:
    parts = PurePosixPath(path).parts
    *folders, file = parts[-depth:]
    file = file.removesuffix(".gz")
    return "/".join([*folders, PurePosixPath(file).stem])
