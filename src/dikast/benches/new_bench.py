"""Drafting the description of a new bench from the columns of its rows, and checking it."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from dikast.benches.bench_files import found_in, sha256_of
from dikast.benches.bench_rows import read_rows
from dikast.benches.definition import MOST_LINES, Bench, check_bench, is_repository, load_bench
from dikast.core.errors import UserError
from dikast.core.gold import likely_scale
from dikast.core.records.column_names import recognise
from dikast.core.records.reading import read_records
from dikast.core.records.shapes.pair_winners import winner
from dikast.core.records.sources import files_of
from dikast.core.text import counted

_LOOKED_AT, _LISTED = 1_000, 8  # rows whose gold is looked at; columns that a comment names
_HELPFULNESS = 5  # the best label of the rubric that a draft names
_DRAFT = """\
name: {name}
title: {name}
about: TODO what it measures, in one line
state: {state}
kind: {kind}  # pairs, graded pairs, scores, best of or order
media: {media}  # none, image or video
source:
{source}
  files:
{files}
fields:
{fields}
{gold}groups: {{}}  # NAME: COLUMN
rubric: helpfulness
protocol: {protocol}
official: {official}
licence: TODO
citation: TODO
"""


def draft(
    name: str, *, hub: str, github: str, revision: str, files: Sequence[str], data: Path | None, home: Path = Path()
) -> str:
    """The description of a new bench as YAML, for a file in the folder `home`; without a repository its source is the
    folder `data`. Columns are recognised in the first file, where `data` has them.
    """
    files = _files(hub, github, revision, files, data)
    columns, gold, digests = dict[str, str](), "", dict.fromkeys(files, "")
    others: list[str] = []
    for path in files:
        if data is None:
            break
        local = next(iter(sorted(data.glob(path))), None) if "*" in path else found_in(data, path)
        if local is None:
            raise UserError(f"--file {path}: {data} has no such file")
        digests[path] = "" if "*" in path else sha256_of(local)
        if not columns:
            rows = [each.value for each in islice(read_records(local), _LOOKED_AT)]
            columns, gold = _columns(rows)
            others = [key for key in rows[0] if key not in columns.values()]
    pairs = bool({"response_1", "responses"} & {*columns})
    for field in ("instruction",) if pairs else ("instruction", "response"):
        columns.setdefault(field, "TODO")
    if columns.get("response") == "TODO":
        gold = f"# where rows hold no responses, leave 'response' out and write: responses: to be brought\n{gold}"
    if not gold.endswith("\n"):
        listed = f"  # of the others: {', '.join(others[:_LISTED])}" if others else ""
        gold += f"# gold: {{column: COLUMN}}{listed}\n"
    text = _DRAFT.format(
        name=name,
        state="rows read" if all(digests.values()) else "schema only",
        kind="pairs" if pairs else "scores",
        source=_source(hub, github, revision, data, home),
        files="\n".join(f'    {_quoted(path)}: "{digest}"' for path, digest in digests.items()),
        fields="\n".join(f'  {field}: "{column}"' for field, column in columns.items()),
        gold=gold,
        media="image" if {"image", "images"} & {*columns} else "none",
        protocol="{orders: both, samples: 1}" if pairs else "{samples: 1}",
        official="{metric: accuracy, failures: wrong}" if pairs else "{metric: pearson, failures: skipped}",
    )
    if (lines := text.count("\n")) > MOST_LINES:
        raise UserError(
            f"{counted(len(files), 'file')} and {counted(len(columns), 'field')} make {lines} lines, and a bench has "
            f"at most {MOST_LINES}: name files that are alike by one path with '*' (--file 'data/part-*.jsonl')"
        )
    return text


def _files(hub: str, github: str, revision: str, files: Sequence[str], data: Path | None) -> Sequence[str]:
    """The files of a draft: those that were named, or of a folder those with data. UserError for options that do not
    say where the rows are.
    """
    if (hub and github) or not (hub or github or data):
        raise UserError("give the source: --hub ORG/NAME, --github ORG/NAME, or a folder of your own as --data FOLDER")
    if (hub or github) and not is_repository(hub or github):
        raise UserError("--hub and --github take ORG/NAME, without an address around it")
    if data is not None and not data.is_dir():
        raise UserError(f"--data {data}: is not a folder")
    if revision and not (hub or github):
        raise UserError("--revision: a folder has none: give --hub or --github, or leave it out")
    if not files and data is not None and not (hub or github):
        files = [Path(each).name for each in files_of(str(data)) if each != str(data)]
    if not files:
        raise UserError("give the files of the rows: --file PATH")
    return files


def _source(hub: str, github: str, revision: str, data: Path | None, home: Path) -> str:
    if hub or github:
        return f"  {'hub' if hub else 'github'}: {hub or github}\n  revision: {_quoted(revision)}"
    assert data is not None
    return f"  folder: {_quoted(os.path.relpath(data, home))}  # from here"


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def _columns(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], str]:
    """The column of each field that the first row shows, and the line of gold, "" where no column is known to be it."""
    row = rows[0]
    seen = recognise(list(row), {})
    columns = {field: column for field, column in seen.moves}
    columns |= {key: key for key in row if key in ("id", "instruction", "response", "reference", "image", "images")}
    columns |= {f"response_{i}": column for i, column in enumerate(seen.responses)}
    several = row.get("responses")
    if isinstance(several, list) and len(several) == 2 and not seen.responses:
        columns["responses"] = "responses"
    if not seen.gold:
        return columns, ""
    said = [each.get(seen.gold) for each in rows]
    more, note = "", ""
    if seen.gold in seen.responses:
        more, note = ", default: a", "  # the first response is the better one in every row"
    elif {"response_1", "responses"} & {*columns}:
        words = {_word(each): winner(each, (), seen.responses) for each in said if each is not None}
        if set(words) <= {"0", "1"} and all(word == meant for word, meant in words.items()):
            words = {word: "ab"[int(word)] for word in words}  # the index of the better response
        if set(words.values()) <= {"a", "b", "tie"} and any(word != meant for word, meant in words.items()):
            listed = ", ".join(f'"{word}": {meant}' for word, meant in sorted(words.items()))
            more = f", values: {{{listed}}}"
        note = "" if more else "  # values: {WORD: a, WORD: b}"
    else:
        numbers = [float(each) for each in said if isinstance(each, int | float)]
        scale = likely_scale(numbers)
        if scale is not None and max(numbers) > _HELPFULNESS:
            more, note = f", scale: {scale}", "  # the scale is a guess"
    return columns, f'gold: {{column: "{seen.gold}"{more}}}{note}\n'


def _word(value: Any) -> str:
    """A value as `values` of gold names it."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def finished(name: str) -> Bench:
    """As `load_bench`; UserError for a file in which something is left to do (TODO, as `bench new` drafts it)."""
    bench = load_bench(name)
    if name.endswith((".yaml", ".yml")) and "TODO" in Path(name).read_text("utf-8"):
        raise UserError(f"{name}: replace every TODO")
    return bench


def all_finished(names: Sequence[str]) -> list[Bench]:
    """The benches of one command, all of them before anything is fetched; UserError for two that share a folder."""
    benches = [finished(name) for name in names]
    for name, n in Counter(bench.name for bench in benches).items():
        if n > 1:
            raise UserError(f"{name!r} is the name of {n} of these benches, and of one folder: give each its own --out")
    return benches


def check_with_rows(path: Path, data: Path | None) -> tuple[Bench, int | None]:
    """The bench in a file, and the number of rows read (None without `data` or a folder as its source).

    UserError lists mistakes.
    """
    bench = check_bench(path)
    finished(str(path))
    known = data is not None or bench.source.beside is not None
    return bench, len(read_rows(bench, data, pictures="count").items) if known else None
