"""`dikast.grade`, `compare`, `rank` and `train`: verbs as functions, over files and over rows in memory.

Keywords are the flags of the verbs (`--max-tokens` is `max_tokens`), defined once in `judging.run_options`.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dikast.core.checking import Mistakes, near_keywords
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.records import Arrangement, write_items
from dikast.core.records.items import scan_rows
from dikast.core.records.rows_in_memory import rows_in
from dikast.core.runs.judge_lock import names_version
from dikast.core.runs.run import Run
from dikast.core.text import Located
from dikast.engines.base import Engine
from dikast.judging.judge import Judge
from dikast.judging.run_options import JudgingOptions, PairOptions
from dikast.judging.run_plan import Source
from dikast.judging.watching import Watcher
from dikast.prompts.format import Format
from dikast.ranking.rank_options import RankOptions
from dikast.surface.item_sources import ITEMS, leaving_nothing, source_of
from dikast.surface.judge_runs import (
    JudgeRunOptions,
    Rubrics,
    columns_of,
    judges_of,
    run_judges,
    stop_if_given_up,
    tell_columns,
    tell_equal,
)
from dikast.surface.keywords import ROWS, Groups, filled, named_rows, show_keywords, told_in_keywords
from dikast.surface.progress import telling
from dikast.surface.verbs import leaves_of

_MOST_ERRORS = 20
_OWN = ("items", "judge", "rubric", "format", "out", "dry_run")  # parameters of their own, or of the command line alone
Judges = str | Engine | Sequence[str | Engine]
Rows = Iterable[Item | dict[str, Any]]


@told_in_keywords
@near_keywords()
def grade(items: Any, judge: Judges, rubric: Rubrics | None = None, **options: Any) -> Run:
    """Score every response of every item; `dikast grade` as a function, with its flags as keywords.

    items: the path of a file, the paths of several (each named after its system), or rows (see `rows_in`): dicts,
    Items, a pandas or polars frame, a pyarrow table, a `datasets.Dataset`, a dict of lists, which are columns. judge: a
    spec or an engine, or several, which are a panel. out: the run folder, which an interrupted call goes on with, and
    in which rows are kept as `items.jsonl`; without one a temporary folder that lives as long as the `Run`. watch:
    called with the progress at the start and after each verdict; without it, a Jupyter notebook shows a line. Raises
    UserError for anything that cannot be used, all mistakes at once, before a model is asked, and RunError where a
    server never answers.
    """
    return _judged("grade", items, judge, rubric, **options)


@told_in_keywords
@near_keywords()
def compare(items: Any, judge: Judges, rubric: Rubrics | None = None, **options: Any) -> Run:
    """Decide which response is better, in both orders; `dikast compare` as a function. Parameters as of `grade`."""
    return _judged("compare", items, judge, rubric, **options)


@told_in_keywords
@near_keywords()
def rank(items: Any, judge: Judges, rubric: Rubrics | None = None, **options: Any) -> Run:
    """Order the responses of each item from best to worst; `dikast rank` as a function. Parameters as of `grade`.

    The folder's `rankings.jsonl` holds a line for each item, and the run's `summary["ranking"]` sums them up.
    """
    return _judged("rank", items, judge, rubric, **options)


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
        written = _written(rows_in(data), folder, {})
        config = {**config, "data": [{**source, "items": [str(written.resolve())]}]}
    return sft(load_config(config), watch=watch or (lambda line: None))


_GROUPS: Mapping[str, Groups] = {  # of options, by their name in `JudgeRunOptions`
    "grade": leaves_of(JudgingOptions),
    "compare": {**leaves_of(JudgingOptions), "pairs": PairOptions},
    "rank": {**leaves_of(JudgingOptions), "ranks": RankOptions},
}


def _judge_run_options(options: Mapping[str, Any], verb: str) -> JudgeRunOptions:
    """The groups of options that the keywords fill; UserError reports all mistakes."""
    given = filled(_GROUPS[verb], options, _OWN, ("rubric", "format", "out", "watch"))
    given["ask"] |= {"items": (), "judge": ()}
    return JudgeRunOptions(**{name: kind(**given[name]) for name, kind in _GROUPS[verb].items()})


def _judged(
    verb: str,
    items: Any,
    judge: Judges,
    rubric: Rubrics | None,
    /,
    *,
    out: str | Path | None = None,
    format: str | Path | Format | None = None,
    watch: Watcher | None = None,
    **options: Any,
) -> Run:
    told = _judge_run_options(options, verb)
    judges = [judge] if isinstance(judge, str) or not isinstance(judge, Sequence) else list(judge)
    if any(isinstance(each, Judge) for each in judges):
        raise UserError("judge: a Judge has options of its own: give its engine (judge.engine), or call its methods")
    mistakes = Mistakes(Located({}, "options"))
    columns = mistakes.of(lambda: columns_of(told.ask.map))
    folder = Path(out).expanduser() if out is not None else Path(tempfile.mkdtemp(prefix="dikast-"))
    try:
        with told.media.held():
            made = judges_of(told, judges, rubric, format, mistakes)
            names = [str(getattr(each, "name", each)) for each in judges]
            with leaving_nothing(folder), _source(items, told, columns or {}, folder, made) as source:
                done = run_judges(told, names, made, source, folder, lambda: telling(watch))
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
    items: Any, told: JudgeRunOptions, columns: Mapping[str, str], folder: Path, judges: Sequence[Judge]
) -> Iterator[Source]:
    """The items of a call: of one path, of several, or of rows in memory."""
    listed = [items] if isinstance(items, str | Path) else items
    if isinstance(listed, list | tuple) and listed and all(isinstance(each, str | Path) for each in listed):
        with source_of([str(each) for each in listed], told.ask, columns, folder, needed=told.needed(judges)) as source:
            yield source
        return
    file = _written(rows_in(items, told.ask.split), folder, columns, told.needed(judges))
    with named_rows(file):
        yield Source(str(file), {}, told.ask.limit, told.ask.without, lambda number: f"{ROWS}:{number - 1}")


def _written(rows: Rows, folder: Path, columns: Mapping[str, str], needed: int = 1) -> Path:
    """Rows in memory as a file of items in the folder; UserError with all mistakes (at most 20), or where no row has
    as many responses as are `needed`.

    Recognised columns are reported as a warning of the logger `dikast`.
    """
    arrangement = Arrangement(names_version(folder))
    mistakes = Mistakes(Located({}, ""))
    items: list[Item] = []
    for found in scan_rows(rows, columns, arrangement):
        if isinstance(found, Item):
            items.append(found)
            continue
        mistakes.append(found)
        if len(mistakes) == _MOST_ERRORS:
            break
    mistakes.raise_all()
    if not items:
        raise UserError("no items: there are no rows")
    if arrangement.columns and all(len(each.responses) < needed for each in items):
        raise DataError(arrangement.lacking(needed), path=ROWS)
    tell_columns(ROWS, arrangement.mapping_line())
    tell_equal(ROWS, arrangement)
    folder.mkdir(parents=True, exist_ok=True)
    write_items(folder / ITEMS, items)
    return folder / ITEMS


for _function in (grade, compare, rank):
    show_keywords(_function, _GROUPS[_function.__name__], _OWN, also=_judged)
