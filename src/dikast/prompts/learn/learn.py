"""`learn_format`: from rows to a verified format."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import DataError, UserError
from dikast.core.output_folder import make_folder
from dikast.core.records import write_file
from dikast.prompts.format import Format, format_from
from dikast.prompts.learn.common import from_common
from dikast.prompts.learn.document import document_of, folded, kind_of, labels_of, to_yaml
from dikast.prompts.learn.edges import Edge, check_edges, settle_edges
from dikast.prompts.learn.fields import Fielded, find_columns, flag_of, from_fields, named_columns
from dikast.prompts.learn.headings import find_headings, from_headings
from dikast.prompts.learn.names import named
from dikast.prompts.learn.proof import Shared, prove, shared
from dikast.prompts.learn.rows import Rendered, draw, find_prompt, prompts_of, read_rows
from dikast.prompts.learn.skeleton import Misfit, Skeleton
from dikast.prompts.parse import get_dialect

_MARKERS = {"bracketed": "[RESULT]", "bridge": "[RESULT]", "verdict": "Verdict:", "claims": "Verdict:"}
_RESULT = "[RESULT]"
_FEWEST = 5  # minimum of different prompts without their fields


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read the rows. `fields` maps slots to columns, `names` numbers of slots to slots.

    Empty `prompt` and `fields` are found by the names and the lengths of the columns; `headings` is a pattern for the
    lines that divide a prompt, for prompts whose headings are not found by themselves. `by` is `fields`, `rows`, or
    `auto`: fields if there are any. `edges` assigns texts that all rows share at an edge of a slot: slot, or slot and
    side (`2.end`), to `prompt` or `field`.
    """

    prompt: tuple[str, ...] = ()
    fields: Mapping[str, str] | None = None
    names: Mapping[str, str] | None = None
    by: str = "auto"
    headings: str = ""
    count: int = 20
    seed: int = 0
    accept_names: bool = False
    edges: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The report of learning: `held_out` prompts were not used for learning, `misfits` are those that differ.

    `skeleton_sha256` identifies the fixed texts with the names of the slots; `stripped` lists fields that the prompts
    contain without surrounding space; `columns` maps slots to columns. `edges` lists the shared texts next to slots and
    their owners, which a rule chose for prompts without fields.
    """

    way: str
    prompt: tuple[str, ...]
    columns: dict[str, str]
    slots: tuple[str, ...]
    seed: int
    rows_drawn: tuple[int, ...]
    prompts_drawn: int
    held_out: int
    misfits: tuple[Misfit, ...]
    stripped: tuple[str, ...]
    skeleton_sha256: str
    format_hash: str
    shared: Shared
    edges: tuple[Edge, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Learnt:
    """A format with its YAML, its skeleton, and the report."""

    format: Format
    yaml: str
    skeleton: Skeleton
    report: Report

    def write(self, path: Path) -> None:
        """Write the format's YAML to `path`, and the report next to it as `NAME.report.json`."""
        make_folder(path.parent)
        report = orjson.dumps(self.report.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        write_file(path.with_suffix(".report.json"), report + b"\n")
        write_file(path, self.yaml.encode())


def learn_format(
    source: str | Path | Sequence[tuple[int, Mapping[str, Any]]],
    reading: Reading | None = None,
    *,
    name: str = "",
    dialect: str = "",
    marker: str | None = None,
    scale: str = "",
    words: Mapping[str, str] | None = None,
    images_first: bool = False,
    where: Mapping[str, str] | None = None,
) -> Learnt:
    """Learn a format from rows of rendered prompts, with or without their fields, and verify it on held-out rows.

    UserError if the rows have no common prompt, if a slot would contain a part of it, if slots have no names, or if the
    prompt does not show how its verdict is parsed (`dialect`). Rows that do not fit are in the report.
    """
    reading = reading or Reading()
    path = str(source) if isinstance(source, str | Path) else "rows"
    rows = read_rows(source, where=where) if isinstance(source, str | Path) else list(source)
    columns = reading.prompt or (find_prompt(rows),)
    prompts = prompts_of(rows, columns, path)
    drawn, rest = draw(prompts, reading.count, reading.seed)
    fields = _fields(reading, drawn, columns)
    stripped: dict[str, bool] = {}
    edges: tuple[Edge, ...] = ()
    if fields:
        skeleton, stripped = from_fields([_fielded(each, fields, path) for each in drawn])
        way = "fields"
    else:
        skeleton, way, edges = _from_rows(reading, [each.text for each in drawn], [each.text for each in rest])
        skeleton, called = named(skeleton, reading.names or {}, drawn[0].text, accept=reading.accept_names)
        edges = tuple(replace(each, slot=called.get(each.slot, each.slot)) for each in edges)
    dialect, marker = _how_read(skeleton, dialect, marker)
    labels = labels_of(skeleton)
    document = document_of(
        name or Path(path.removesuffix(".gz")).stem, {"": skeleton}, dialect=dialect, marker=marker,
        scale=scale or _scale_of(labels), words=_words(skeleton, words),
        images_first=images_first or all(each.pictured for each in prompts),
        about=f"learnt from {Path(path).name}",
    )  # fmt: skip
    form = format_from(document, path="learnt")
    given: dict[tuple[int, str], Mapping[str, str]] = {}
    if fields:
        for each in rest:
            values = _fielded(each, fields, path).fields
            given[each.row, each.column] = {k: v.strip() if stripped[k] else v for k, v in values.items()}
    misfits = prove(form, skeleton, rest, given)
    report = Report(
        way=way, prompt=columns, columns=fields, slots=tuple(folded(skeleton)), seed=reading.seed,
        rows_drawn=tuple(sorted({each.row for each in drawn})), prompts_drawn=len(drawn), held_out=len(rest),
        misfits=tuple(misfits), stripped=tuple(k for k, v in stripped.items() if v),
        skeleton_sha256=skeleton.sha256, format_hash=form.hash, shared=shared(skeleton, rest),
        edges=edges,
    )  # fmt: skip
    comment = f"Learnt by dikast from {Path(path).name}.\nFormat {form.hash}, skeleton sha256 {skeleton.sha256}."
    return Learnt(form, to_yaml(document, comment), skeleton, report)


def prove_on(learnt: Learnt, path: str | Path, columns: Sequence[str] = ()) -> Learnt:
    """The same, also verified on the prompts of one more file; its report counts them and their misfits."""
    rows = read_rows(path)
    prompts = prompts_of(rows, columns or (find_prompt(rows),), str(path))
    found = prove(learnt.format, learnt.skeleton, prompts, {})
    report = learnt.report
    more = replace(report, held_out=report.held_out + len(prompts), misfits=(*report.misfits, *found))
    return replace(learnt, report=more)


def _fields(reading: Reading, drawn: Sequence[Rendered], columns: Sequence[str]) -> dict[str, str]:
    if reading.by == "rows":
        return {}
    records = [each.record for each in drawn]
    if reading.fields:
        return named_columns(reading.fields, records)
    found = find_columns(records, columns[0]) if len(columns) == 1 else {}
    if "response" in found or {"first", "second"} <= set(found):
        return found
    if reading.by == "fields":
        raise UserError(
            f"no columns are known to hold the fields of these prompts: name them (--field response=COLUMN);"
            f" there are {', '.join(records[0])}"
        )
    return {}


def _fielded(row: Rendered, fields: Mapping[str, str], path: str) -> Fielded:
    values = {}
    for slot, column in fields.items():
        value = row.record.get(column)
        if not isinstance(value, str):
            what = "has no such column" if column not in row.record else "has no text there"
            flag = f"--field {flag_of(slot)}=COLUMN"
            cure = f"name the column of the {slot} ({flag}), or leave such rows out (--where COLUMN=VALUE)"
            raise DataError(f"row {row.row} {what}: {cure}", path=path, field=column)
        values[slot] = value
    return Fielded(row.text, values)


def _from_rows(reading: Reading, texts: Sequence[str], rest: Sequence[str]) -> tuple[Skeleton, str, tuple[Edge, ...]]:
    """The skeleton of the drawn texts, its edges settled over all of them: what chance put beside a slot in twenty rows
    is seldom there in all.
    """
    headings = find_headings(texts, re.compile(reading.headings) if reading.headings else None)
    if len(set(texts)) < _FEWEST:
        raise UserError(
            f"{len(set(texts))} prompt(s) alone are too few to tell fixed text from text they happen to share: give"
            f" {_FEWEST} or more to learn from, or their fields (--field)"
        )
    if reading.headings and not headings:
        raise UserError(f"no line that all rows share matches the headings {reading.headings!r}")
    skeleton = from_headings(texts, headings) if headings else from_common(texts)
    given = reading.edges or {}
    check_edges(given, folded(skeleton))
    skeleton, edges = settle_edges(skeleton, [*texts, *rest], given, headings=bool(headings))
    return skeleton, "headings" if headings else "common text", edges


def _how_read(skeleton: Skeleton, dialect: str, marker: str | None) -> tuple[str, str]:
    """The dialect that the user named, or `bracketed` where the prompt itself asks for `[RESULT]`."""
    if not dialect:
        if not any(_RESULT in literal for literal in skeleton.literals):
            raise UserError("the prompt does not show how its verdict is written: name the dialect (--dialect)")
        dialect = "bracketed"
    get_dialect(dialect)
    return dialect, _MARKERS.get(dialect, "") if marker is None else marker


def _scale_of(labels: Sequence[str]) -> str:
    return f"{labels[0]}-{labels[-1]}" if labels else ""


def _words(skeleton: Skeleton, words: Mapping[str, str] | None) -> Mapping[str, str]:
    if kind_of(skeleton) == "absolute":
        return {}
    return words or {"first": "A", "second": "B"}
