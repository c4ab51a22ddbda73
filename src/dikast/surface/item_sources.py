"""The items that a run judges: one source as it is, or several files joined in the run folder."""

import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dikast.core.errors import DataError, UserError, told_once
from dikast.core.item import Item
from dikast.core.records import Arrangement, write_items
from dikast.core.records.several_files import Origins, answers_of_models, joined_items, names_of
from dikast.core.runs.run_files import KEYS, VERDICTS
from dikast.core.text import in_shell
from dikast.judging.run_options import RunOptions
from dikast.judging.run_plan import Source
from dikast.surface.judge_runs import tell_columns, tell_equal, with_choice

_log = logging.getLogger(__name__)
ITEMS = "items.jsonl"  # of several files and of rows in memory, in the run folder
_MOST_ERRORS = 20
_NAMED = 5  # files that a message names


@contextmanager
def source_of(
    paths: Sequence[str], ask: RunOptions, columns: Mapping[str, str], out: Path | None, *, needed: int
) -> Iterator[Source]:
    """The source of a run: of several files a copy of their items in the run folder (without one, a temporary file).

    `needed` is how many responses an item must have. UserError lists all mistakes in the files; what is wrong with an
    item of the copy later names the file that it came from.
    """
    if len(paths) == 1 and needed == 1 and not _begun_as_one(out) and (files := answers_of_models(paths[0], columns)):
        told = "files with the same prompts: each is taken as the answers of the model that it is named after"
        _log.warning("%s: %d %s", paths[0], len(files), told)
        paths = files
    if len(paths) == 1:
        yield Source(with_choice(paths[0], ask), columns, ask.limit, ask.without)
        return
    names = {with_choice(path, ask): name for path, name in names_of(paths).items()}
    readings = {path: Arrangement() for path in names}
    with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
        folder = out if out is not None else Path(scratch)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UserError(f"{folder}: is a file, or lies in one: name a folder for the run") from None
        file, origins = folder / ITEMS, Origins()
        write_items(file, _good(joined_items(names, columns, readings, ask.limit), readings, needed, origins))
        for told, n in Counter(reading.mapping_line() for reading in readings.values()).items():
            tell_columns(f"{n} of {len(names)} files" if n < len(names) else f"{n} files", told)
        for path, reading in readings.items():
            tell_equal(path, reading)
        yield Source(str(file), without=ask.without, origins=origins)


def _begun_as_one(out: Path | None) -> bool:
    """Whether a run folder was begun with one source, so that it has no copy of the items."""
    return out is not None and (out / KEYS).exists() and not (out / ITEMS).exists()


def _good(
    found: Iterator[Item | DataError], readings: Mapping[str, Arrangement], needed: int, origins: Origins
) -> Iterator[Item]:
    """The items, their `origins` noted; UserError with all mistakes among them (at most 20), or for a file without
    responses.
    """
    errors: list[DataError] = []
    items, short = Counter[str](), Counter[str]()
    for each in found:
        if isinstance(each, DataError):
            errors.append(each)
            if len(errors) == _MOST_ERRORS:
                break
            continue
        path = each.origin.rpartition(":")[0]
        items[path] += 1
        short[path] += len(each.responses) < needed
        if not errors:
            origins.add(each.origin)
            yield each
    for path, reading in readings.items():
        if needed == 2 and len(readings) > 1 and all(items[each] == short[each] for each in readings):
            told = "no item has two responses, and those of several files are not joined: give one file whose rows have"
            named = " ".join([*map(in_shell, list(readings)[:_NAMED]), *["..."] * (len(readings) > _NAMED)])
            told += f" both (columns response_a and response_b); `dikast grade {named}` scores each response, and says"
            raise DataError(f"{told} which file's are better", path=path)
        if items[path] and items[path] == short[path] and reading.columns:
            raise DataError(reading.lacking(needed), path=path)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lines = "\n".join(f"  {told}" for told in told_once(errors))
        raise UserError(f"{len(errors)} records cannot be used; nothing was asked:\n{lines}")


@contextmanager
def leaving_nothing(out: Path | None) -> Iterator[None]:
    """A run that is refused removes the folders that were made for it; one that holds an answer stays."""
    made = [each for each in (out, *out.parents) if not each.exists()] if out is not None else []
    try:
        yield
    except UserError:
        if out in made and out.is_dir() and not any(each.stat().st_size for each in out.rglob(VERDICTS)):
            shutil.rmtree(out, ignore_errors=True)
        for each in made:
            with suppress(OSError):
                each.rmdir()
        raise
