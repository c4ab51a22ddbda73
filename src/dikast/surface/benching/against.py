"""The rows of benches as files to check feedback data against: `--against bench:NAME`."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dikast.benches.bench_rows import read_rows
from dikast.benches.definition import load_bench
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.part import images_of, text_of
from dikast.core.records import write_records
from dikast.core.rubric import Rubric
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.schemas.public_schema import asked
from dikast.surface.terminal import echo

_PREFIX = "bench:"


@contextmanager
def with_benches(asked: CheckOptions, data: Path | None) -> Iterator[CheckOptions]:
    """The check, with the texts of benches as files in the place of `bench:NAME`.

    Rows come from `data` or from the bench's source; files that are not the published ones are used and told. UserError
    for a bench that is not known or cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
        files = {
            _written(each.removeprefix(_PREFIX), data, Path(scratch)) if each.startswith(_PREFIX) else each: each
            for each in asked.against
        }
        yield replace(asked, against=tuple(files), names=tuple(files.items()))


def _written(name: str, data: Path | None, folder: Path) -> str:
    bench = load_bench(name)
    path = folder / f"{bench.name}.jsonl"
    with _own_flag():
        rows = read_rows(bench, data, unverified=True, pictures="count")  # a leak is one in whichever revision
    for file in rows.files:
        if file.published is False:
            echo(f"{_PREFIX}{name}: {file.path} is not the published file (its SHA-256 differs)", err=True)
    write_records(path, map(_texts, rows.items))
    return str(path)


@contextmanager
def _own_flag() -> Iterator[None]:
    """Mistakes in the rows, with this verb's flag for the folder of their files."""
    try:
        yield
    except UserError as error:
        raise UserError(re.sub(r"(?<![\w-])--data\b", "--bench-data", str(error))) from error


def _texts(item: Item) -> dict[str, Any]:
    """What of an item may leak as text; responses that are pictures alone are left out."""
    responses = [text_of(each) for each in item.responses if text_of(each) or not images_of(each)]
    found: dict[str, Any] = {"id": item.id, "instruction": asked(item), "responses": responses}
    if isinstance(item.rubric, Rubric):
        found["rubric"] = item.rubric.to_dict()
    return found
