"""A run folder as an object: its summary, its verdicts, its preferences."""

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from dikast.core.canonical import read_json
from dikast.core.errors import DataError, UserError, require
from dikast.core.runs.current_verdicts import verdicts_in_order
from dikast.core.runs.frames import to_arrow
from dikast.core.runs.judge_lock import kind_of, read_lock
from dikast.core.runs.run_files import (
    AGAIN,
    COMBINED,
    KEPT,
    PREFERENCES,
    SUMMARY,
    VERDICTS,
    check,
    is_kept,
    refuse_special,
)
from dikast.core.runs.run_table import JudgeRun, RunTable
from dikast.core.runs.schema import PreferenceLine, SummaryForm, derived_lines, misfit
from dikast.core.text import near_miss
from dikast.core.verdict import Preference, Question, Status, Verdict, verdict_from

_COUNTED = ("verdicts", "status")  # in the summary of every run but a panel's


class Run:
    """The result of `grade` and `compare`. `folder` is its path, `summary` the content of `summary.json`.

    Iterating gives the verdicts that count (of several samples of a question, each) in the order of the items; so do
    `combined`, the verdict of each response where it was asked several times, and `preferences`, the joint verdicts of
    pairs. `runs` are the runs of the judges of a panel. UserError for a folder that is no run, DataError for damage.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._of: Run | None = None  # the run of the panel, whose folder may last only as long as it
        refuse_special(self.folder)
        if not (self.folder / SUMMARY).is_file():
            raise UserError(f"{self.folder}: {self._why_none()}")
        check(self.folder, SUMMARY)
        self.summary = _summary(self.folder / SUMMARY)

    def _why_none(self) -> str:
        if (self.folder / VERDICTS).exists():
            return KEPT if is_kept(self.folder) else "the run was not finished: run the command that made it again"
        if self.folder.exists():
            return f"this is not a run: it has no {SUMMARY}"
        beside = [each.name for each in self.folder.parent.glob("*/") if (each / SUMMARY).is_file()]
        near = near_miss(self.folder.name, beside)
        cure = f"did you mean {str(self.folder.parent / near)!r}?" if near else "name one that --out of a run has made"
        return f"there is no such folder; {cure}"

    @property
    def kind(self) -> str:
        """`absolute`, `pairwise`, `from-absolute` or `panel`."""
        return kind_of(self.summary, read_lock(self.folder) or {})

    @property
    def runs(self) -> list["Run"]:
        """The run of each judge of a panel, in the order of the judges; of any other run, itself."""
        if self.kind != "panel":
            return [self]
        folders = [each for each in self.folder.iterdir() if each.name.split("-")[0].isdigit()]
        found = (each for each in folders if (each / SUMMARY).is_file())
        runs = [Run(each) for each in sorted(found, key=lambda each: int(each.name.split("-")[0]))]
        for run in runs:
            run._of = self
        return runs

    def __iter__(self) -> Iterator[Verdict]:
        if self.kind == "panel":
            raise UserError(f"{self.folder} is of a panel: iterate over each of its `runs`")
        return self._verdicts()

    def _verdicts(self) -> Iterator[Verdict]:
        """The verdicts that count; a generator, which holds the run, since a temporary folder lives as long as it."""
        yield from verdicts_in_order(self.folder)

    def __len__(self) -> int:
        return int(sum(run.summary["verdicts"] for run in self.runs))

    @property
    def combined(self) -> Iterator[Verdict]:
        """One verdict for each response where a question was asked several times; else the verdicts. In the order of
        the items; combined verdicts are all held in memory.
        """
        if not (self.folder / COMBINED).exists():
            yield from self
            return
        places: dict[Question, int] = {}
        for verdict in self:
            places.setdefault(replace(verdict.question, sample=0), len(places))
        found = [verdict_from(record) for record, _ in derived_lines(self.folder, COMBINED, Verdict)]
        yield from sorted(found, key=lambda each: places.get(replace(each.question, sample=0), len(places)))

    @property
    def preferences(self) -> Iterator[Preference]:
        """The joint verdict of each pair, with the verdicts of its orders, in the order of the items. All verdicts are
        held in memory.
        """
        if not (self.folder / PREFERENCES).exists():
            raise UserError(f"{self.folder}: this run compared nothing; its verdicts are of single responses")
        by_key = {verdict.key: verdict for verdict in self}
        places = {key: place for place, key in enumerate(by_key)}
        lines = [record for record, _ in derived_lines(self.folder, PREFERENCES, PreferenceLine)]
        lines.sort(key=lambda record: min((places[key] for key in record["orders"] if key in places), default=0))
        for record in lines:
            told = {key: value for key, value in record.items() if key != "outcome"}
            told["orders"] = tuple(by_key[key] for key in record["orders"] if key in by_key)
            yield Preference(**{**told, "pair": tuple(told["pair"]), "status": Status(told["status"])})

    def table(self, items: str | Path = "", folder: str = "") -> RunTable:
        """One row for each judged response or pair, with the columns of its item: see `RunTable`.

        items: the file of items, if it was moved since the run read it. Relative paths of images start at `folder`.
        """
        runs = [JudgeRun(run.folder, run.kind, str(run.summary.get("judge", ""))) for run in self.runs]
        return RunTable(self.folder, runs, panel=self.kind == "panel", items=str(items), folder=folder)

    def to_arrow(self, items: str | Path = "") -> Any:
        """The rows of `table` as a `pyarrow.Table`. Distributions are structs, other objects and lists JSON text.

        MissingExtra without the extra `parquet`.
        """
        require("pyarrow", "parquet")
        table = self.table(items)
        return to_arrow(table.columns, table)

    def to_pandas(self, items: str | Path = "") -> Any:
        """As `to_arrow`, as a `pandas.DataFrame`. MissingExtra without the extra `frames`."""
        require("pandas", "frames")
        require("pyarrow", "frames")
        return self.to_arrow(items).to_pandas()

    def to_polars(self, items: str | Path = "") -> Any:
        """As `to_arrow`, as a `polars.DataFrame`. MissingExtra without the extra `frames`."""
        polars = require("polars", "frames")
        require("pyarrow", "frames")
        return polars.from_arrow(self.to_arrow(items))

    def __repr__(self) -> str:
        return f"<Run {self.folder}: {', '.join(f'{name} {value}' for name, value in self._facts())}>"

    def _repr_html_(self) -> str:
        """As notebooks show it: judges, counts, failures, mean scores with their intervals."""
        failures = [(f"failed: {why}", n) for why, n in self._failures()]
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td>{escape(str(value))}</td></tr>'
            for name, value in (*self._facts(), *failures, *self._means())
        )
        return f"<div><b>{escape(str(self.folder))}</b><table>{rows}</table></div>"

    def _facts(self) -> list[tuple[str, Any]]:
        judges = self.summary.get("judges") or [self.summary.get("judge", "")]
        failed = sum(n for run in self.runs for status, n in run.summary["status"].items() if status != Status.OK)
        told: list[tuple[str, Any]] = [("judge" if len(judges) == 1 else "judges", ", ".join(map(str, judges)))]
        told += [("verdicts", len(self)), ("no verdict", failed)]
        choices = (self.summary.get("preferences") or {}).get("choices")
        return told + ([("pairs", choices)] if choices else [])

    def _means(self) -> list[tuple[str, str]]:
        """The mean score by criterion, of a run of one judge that graded."""
        found = []
        for criterion, told in (self.summary.get("criteria") or {}).items():
            mean = told.get("mean_score") or {}
            if isinstance(mean.get("value"), int | float):
                bounds = [mean.get("low"), mean.get("high")]
                known = all(isinstance(each, int | float) for each in bounds)
                interval = f" [{bounds[0]:.3f}, {bounds[1]:.3f}]" if known else ""
                found.append((f"mean, {criterion}", f"{mean['value']:.3f}{interval} (n = {mean['n']:,})"))
        return found

    def _failures(self) -> list[tuple[str, int]]:
        return [each for run in self.runs for each in (run.summary.get("failures") or {}).items()]


def _summary(path: Path) -> dict[str, Any]:
    """The content of `summary.json`; DataError if it is not a summary."""
    try:
        value: dict[str, Any] = read_json(path.read_bytes())
        told = misfit(SummaryForm)(value)
        if not told and "kind" not in value:
            told = " has no 'kind'"
        if not told and value["kind"] != "panel" and (missing := [each for each in _COUNTED if each not in value]):
            told = f" has no {missing[0]!r}"
    except ValueError as error:
        told = f" cannot be read ({error})"
    if told:
        raise DataError(f"the summary{told}: {AGAIN}", path=str(path))
    return value
