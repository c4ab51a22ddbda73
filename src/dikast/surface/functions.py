"""`dikast.grade`, `compare`, `audit` and `train`: the verbs as functions, over files and over rows in memory.

Keywords are the flags of the verbs (`--max-tokens` is `max_tokens`), defined once in `judging.options`.
"""

import dataclasses
import inspect
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from dikast.audit.panel_audit import audit_source
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit
from dikast.audit.tables.column_file import read_columns
from dikast.core.checking import Key, Mistakes, fit, keys_of
from dikast.core.errors import DikastError, UserError
from dikast.core.item import Item
from dikast.core.records import Arrangement, write_items, write_records
from dikast.core.records.items import scan_rows
from dikast.core.records.tables import rows_in
from dikast.core.runs.lock_file import ids_of
from dikast.core.runs.run import Run
from dikast.core.scale import Scale
from dikast.core.text import Located, hint
from dikast.engines.base import Engine
from dikast.judging.judge import Judge
from dikast.judging.run_options import DrawOptions, MediaOptions, PairOptions, ReplyOptions, RunOptions, SpendOptions
from dikast.judging.run_plan import Source
from dikast.judging.watching import Watcher
from dikast.prompts.format import Format
from dikast.surface.commands.audit_command import completed
from dikast.surface.item_sources import ITEMS, leaving_nothing, source_of
from dikast.surface.judge_runs import (
    Rubrics,
    Told,
    columns_of,
    judges_of,
    run_judges,
    stop_if_given_up,
    tell_columns,
)

_ROWS = "rows"  # what rows in memory are called in messages, with their number from 0: `rows:3`
_MOST_ERRORS = 20
_OWN = ("items", "judge", "rubric", "format", "out", "dry_run")  # parameters of their own, or of the command line alone
Judges = str | Engine | Sequence[str | Engine]


def grade(
    items: Any,
    judge: Judges,
    rubric: Rubrics | None = None,
    *,
    out: str | Path | None = None,
    format: str | Path | Format | None = None,
    watch: Watcher | None = None,
    **options: Any,
) -> Run:
    """Score every response of every item; `dikast grade` as a function, with its flags as keywords.

    items: the path of a file, the paths of several (each named after its system), or rows (see `rows_in`): dicts,
    Items, a pandas or polars frame, a pyarrow table, a `datasets.Dataset`. judge: a spec or an engine, or several,
    which are a panel. out: the run folder, which an interrupted call goes on with, and in which rows are kept as
    `items.jsonl`; without one a temporary folder that lives as long as the `Run`. watch: called with the progress at
    the start and after each verdict. Raises UserError for anything that cannot be used, all mistakes at once, before a
    model is asked, and RunError where a server never answers.
    """
    told = _told(options, pairs=False)
    return _judged(items, judge, rubric, format, told, out, watch)


def compare(
    items: Any,
    judge: Judges,
    rubric: Rubrics | None = None,
    *,
    out: str | Path | None = None,
    format: str | Path | Format | None = None,
    watch: Watcher | None = None,
    **options: Any,
) -> Run:
    """Say which response is better, in both orders; `dikast compare` as a function. Parameters as of `grade`."""
    told = _told(options, pairs=True)
    return _judged(items, judge, rubric, format, told, out, watch)


def audit(
    source: Any,
    *,
    scale: str | Scale = "",
    parse: str = "",
    columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> Audit:
    """How far verdicts can be trusted; `dikast audit` as a function, with its flags as keywords.

    source: a `Run`, the path of a run folder or of a file, or rows in memory (see `grade`). columns: derived columns as
    the configuration spells them, `{"overall": {"mean": ["clarity", "accuracy"]}}`. Raises UserError or DataError for
    what cannot be used, all mistakes in keywords at once.
    """
    mistakes, known = Mistakes(Located({"columns": columns or {}}, "columns")), keys_of(AuditPlan)
    given = {key: _fitted(key, value, known[key], mistakes) for key, value in options.items() if key in known}
    for key in options.keys() - known.keys():
        mistakes.tell(f"unknown keyword {key!r}: {hint(key, sorted(known))}")
    derived, wrong = read_columns(mistakes.document)
    mistakes += map(UserError, wrong)
    mistakes.raise_all()

    def found(file: Path) -> Audit:
        return audit_source(completed(AuditPlan(**{**given, "file": file}), derived, str(scale), parse))

    if isinstance(source, Run | str | Path):
        return found(source.folder if isinstance(source, Run) else Path(source))
    with tempfile.TemporaryDirectory(prefix="dikast-") as folder:
        file = Path(folder, "rows.jsonl")
        if not write_records(file, map(_record, rows_in(source))):
            raise UserError("no verdicts: there are no rows")
        with _named_rows(file):
            audit = found(file)
    return dataclasses.replace(audit, source=_ROWS, plan={**audit.plan, "file": _ROWS})


@contextmanager
def _named_rows(file: Path) -> Iterator[None]:
    """Make errors about the file that rows in memory were written to name the rows instead."""
    try:
        yield
    except DikastError as error:
        told = re.sub(rf"{re.escape(str(file))}:(\d+)", lambda line: f"{_ROWS}:{int(line[1]) - 1}", str(error))
        error.args = (told.replace(str(file), _ROWS),)
        raise


def _record(row: Any) -> dict[str, Any]:
    if isinstance(row, Item):
        raise UserError("an audit needs verdicts: give rows with scores, or a Run")
    return dict(row)


def _fitted(name: str, value: Any, key: Key, mistakes: Mistakes) -> Any:
    """A keyword's value as its option asks for it; a mistake is reported."""
    return fit(key.type, value, lambda told, *at: mistakes.tell(f"{name}: {told}"), option=key.option)


def train(
    config: str | Path | Mapping[str, Any],
    *,
    data: Any = None,
    watch: Callable[[dict[str, Any]], None] | None = None,
    **source: Any,
) -> dict[str, Any]:
    """Train a judge; `dikast train sft` as a function. Goes on where an interrupted call stopped.

    config: the path of a configuration, or its keys as a mapping. data: rows in memory with gold (see `grade`) in place
    of its `data`, kept in the folder `out` as `items.jsonl`; `source` are the other keys of a source, such as `formats`
    or `rubric`. watch: called with each line of the logs. Returns what was
    done; `model` is the folder of the trained model.
    """
    from dikast.training.config import load_config
    from dikast.training.sft import sft

    if source and data is None:
        raise UserError(f"{', '.join(source)}: only valid together with data")
    if data is not None:
        if not isinstance(config, Mapping):
            raise UserError("data needs the configuration as a mapping; a configuration file names its own data")
        folder = Path(str(config.get("out", "")) or "out").expanduser()
        written = _written(data, folder, {})
        config = {**config, "data": [{**source, "items": [str(written.resolve())]}]}
    return sft(load_config(config), watch=watch or (lambda line: None))


def _kinds(*, pairs: bool) -> dict[str, type[Any]]:
    """The groups of options by their name in `Told`."""
    alike = {"ask": RunOptions, "draws": DrawOptions, "replies": ReplyOptions, "spend": SpendOptions}
    return {**alike, "media": MediaOptions, **({"pairs": PairOptions} if pairs else {})}


def _signature(function: Callable[..., Any], *, pairs: bool) -> inspect.Signature:
    """The function's own parameters, and the options by name in the place of `**options`: for `help` and editors."""
    own = [each for each in inspect.signature(function).parameters.values() if each.name != "options"]
    for kind in _kinds(pairs=pairs).values():
        defaults = {each.name: each.default for each in dataclasses.fields(kind)}
        own += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=key.type)
            for name, key in keys_of(kind).items()
            if name not in _OWN
        ]
    return inspect.Signature(own, return_annotation=Run)


grade.__signature__ = _signature(grade, pairs=False)  # type: ignore[attr-defined]  # what inspect.signature looks at
compare.__signature__ = _signature(compare, pairs=True)  # type: ignore[attr-defined]


def _told(options: Mapping[str, Any], *, pairs: bool) -> Told:
    """The groups of options that the keywords fill; UserError reports all mistakes."""
    kinds = _kinds(pairs=pairs)
    known = {key: name for name, kind in kinds.items() for key in keys_of(kind) if key not in _OWN}
    mistakes = Mistakes(Located({}, "options"))
    given: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    for key, value in options.items():
        if key not in known:
            mistakes.tell(f"unknown keyword {key!r}: {hint(key, sorted(known))}")
            continue
        asked = keys_of(kinds[known[key]])[key]
        if key == "map" and isinstance(value, Mapping):
            value = [f"{field}={column}" for field, column in value.items()]
        given[known[key]][key] = _fitted(key, value, asked, mistakes)
    mistakes.raise_all()
    given["ask"] |= {"items": (), "judge": ()}
    return Told(**{name: kind(**given[name]) for name, kind in kinds.items()})


def _judged(
    items: Any,
    judge: Judges,
    rubric: Rubrics | None,
    format: str | Path | Format | None,
    told: Told,
    out: str | Path | None,
    watch: Watcher | None,
) -> Run:
    judges = [judge] if isinstance(judge, str) or not isinstance(judge, Sequence) else list(judge)
    mistakes = Mistakes(Located({}, "options"))
    columns = mistakes.of(lambda: columns_of(told.ask.map))
    folder = Path(out).expanduser() if out is not None else Path(tempfile.mkdtemp(prefix="dikast-"))
    try:
        with told.media.held():
            made = judges_of(told, judges, rubric, format, mistakes)
            names = [str(getattr(each, "name", each)) for each in judges]
            with leaving_nothing(folder), _source(items, told, columns or {}, folder, made) as source:
                done = run_judges(told, names, made, source, folder, lambda: nullcontext(watch))
                stop_if_given_up(done.each)
        run = Run(folder)
    except BaseException:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if out is None:
        weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
    return run


@contextmanager
def _source(
    items: Any, told: Told, columns: Mapping[str, str], folder: Path, judges: Sequence[Judge]
) -> Iterator[Source]:
    """The items of a call: of one path, of several, or of rows in memory."""
    listed = [items] if isinstance(items, str | Path) else items
    if isinstance(listed, list | tuple) and listed and all(isinstance(each, str | Path) for each in listed):
        with source_of([str(each) for each in listed], told.ask, columns, folder, needed=told.needed(judges)) as source:
            yield source
        return
    file = _written(_of_split(items, told.ask.split), folder, columns)
    with _named_rows(file):
        yield Source(str(file), {}, told.ask.limit)


def _of_split(data: Any, split: str | None) -> Any:
    """One split of a `datasets.DatasetDict`; UserError where one has to be named, or there is none of that name."""
    if type(data).__name__ not in ("DatasetDict", "IterableDatasetDict"):
        if split:
            raise UserError("split names one of a DatasetDict, or of a data set on the Hub: leave it out")
        return data
    if split is None and len(data) == 1:
        return next(iter(data.values()))
    if split not in data:
        told = hint(split, data) if split else f"name one with split=: {', '.join(data)}"
        raise UserError(f"the data set has several splits: {told}")
    return data[split]


def _written(data: Any, folder: Path, columns: Mapping[str, str]) -> Path:
    """Rows in memory as a file of items in the folder; UserError with all mistakes (at most 20).

    What was recognised is told, as a warning of the logger `dikast`.
    """
    arrangement = Arrangement(ids_of(folder))
    mistakes = Mistakes(Located({}, ""))
    items: list[Item] = []
    for found in scan_rows(rows_in(data), columns, arrangement):
        if isinstance(found, Item):
            items.append(found)
            continue
        mistakes.append(found)
        if len(mistakes) == _MOST_ERRORS:
            break
    mistakes.raise_all()
    if not items:
        raise UserError("no items: there are no rows")
    tell_columns(_ROWS, arrangement.told())
    folder.mkdir(parents=True, exist_ok=True)
    write_items(folder / ITEMS, items)
    return folder / ITEMS
