"""Several files as one source: the answers of several models, each file named after its system.

An item's id consists of its file's name and its own id, so that files may share ids. Its system, which wrote the
responses, is that of a column, else the name of the file.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.records.column_names import SYSTEM, systems_of
from dikast.core.records.content_ids import prompt_id
from dikast.core.records.items import scan_items
from dikast.core.records.shapes.arrangement import Arrangement
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


class Origins:
    """Where the items of a copy came from, by their number in it, from 1: 8 bytes an item."""

    def __init__(self) -> None:
        self._lines = array("q")
        self._files: list[str] = []
        self._starts: list[int] = []  # the number of the first item of each file

    def add(self, origin: str) -> None:
        """Note the `FILE:LINE` of the next item."""
        path, _, line = origin.rpartition(":")
        self._lines.append(int(line))
        if not self._files or self._files[-1] != path:
            self._files.append(path)
            self._starts.append(len(self._lines))

    def __call__(self, number: int) -> str:
        """The `FILE:LINE` of the item with that number."""
        return f"{self._files[bisect_right(self._starts, number) - 1]}:{self._lines[number - 1]}"


def _name(path: str, depth: int) -> str:
    parts = PurePosixPath(path).parts
    *folders, file = parts[-depth:]
    file = file.removesuffix(".gz")
    return "/".join([*folders, PurePosixPath(file).stem])
