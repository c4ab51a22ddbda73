"""A run folder as an object: its summary, its verdicts, its preferences."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import DataError, UserError, require
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.runs.frames import to_arrow
from dikast.core.runs.run_files import COMBINED, PREFERENCES, SUMMARY, VERDICTS, check
from dikast.core.runs.run_table import JudgeRun, RunTable
from dikast.core.verdict import Preference, Status, Verdict, verdict_from


class Run:
    """What `grade` and `compare` leave behind. `folder` is where, `summary` what `summary.json` holds.

    Iterating gives the verdicts that count (of several samples of a question, each); `combined` the verdict of each
    response where it was asked several times; `preferences` the joint verdicts of pairs. `runs` are the runs of the
    judges of a panel. UserError for a folder that is no run, DataError for a damaged file.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / SUMMARY).is_file():
            began = (self.folder / VERDICTS).exists()
            raise UserError(
                f"{self.folder}: the run was not finished: run the same command again"
                if began
                else f"{self.folder}: this is not a run: it has no {SUMMARY}"
            )
        check(self.folder, SUMMARY)
        self.summary: dict[str, Any] = orjson.loads((self.folder / SUMMARY).read_bytes())

    @property
    def kind(self) -> str:
        """`absolute`, `pairwise`, `from-absolute` or `panel`."""
        return str(self.summary["kind"])

    @property
    def runs(self) -> list["Run"]:
        """The run of each judge of a panel, in the order of the judges; of any other run, itself."""
        if self.kind != "panel":
            return [self]
        folders = [each for each in self.folder.iterdir() if each.name.split("-")[0].isdigit()]
        found = (each for each in folders if (each / SUMMARY).is_file())
        return [Run(each) for each in sorted(found, key=lambda each: int(each.name.split("-")[0]))]

    def __iter__(self) -> Iterator[Verdict]:
        if self.kind == "panel":
            raise UserError(f"{self.folder} is of a panel: iterate over each of its `runs`")
        return current_verdicts(self.folder)

    def __len__(self) -> int:
        return int(sum(run.summary["verdicts"] for run in self.runs))

    @property
    def combined(self) -> Iterator[Verdict]:
        """One verdict for each response where a question was asked several times; else the verdicts."""
        if not (self.folder / COMBINED).exists():
            yield from self
            return
        for record in self._lines(COMBINED):
            yield verdict_from(record)

    @property
    def preferences(self) -> Iterator[Preference]:
        """The joint verdict of each pair, with the verdicts of its orders; all verdicts are held in memory."""
        if not (self.folder / PREFERENCES).exists():
            raise UserError(f"{self.folder}: this run compared nothing; its verdicts are of single responses")
        by_key = {verdict.key: verdict for verdict in self}
        for record in self._lines(PREFERENCES):
            told = {key: value for key, value in record.items() if key != "outcome"}
            told["orders"] = tuple(by_key[key] for key in record["orders"] if key in by_key)
            yield Preference(**{**told, "pair": tuple(told["pair"]), "status": Status(told["status"])})

    def table(self, items: str | Path = "", folder: str = "") -> RunTable:
        """One row for each judged response or pair, with the columns of its item: see `RunTable`.

        items: the file of items, where it is no longer where the run read it. Relative paths of images start at
        `folder`.
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

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        check(self.folder, name)
        path = self.folder / name
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield orjson.loads(line)
                except ValueError as error:
                    raise DataError(f"the line cannot be read ({error})", path=str(path), line=number) from None

    def __repr__(self) -> str:
        return f"<Run {self.folder}: {', '.join(f'{name} {value}' for name, value in self._told())}>"

    def _repr_html_(self) -> str:
        """As notebooks show it: judges, counts, failures."""
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td>{escape(str(value))}</td></tr>'
            for name, value in (*self._told(), *((f"failed: {why}", n) for why, n in self._failures()))
        )
        return f"<div><b>{escape(str(self.folder))}</b><table>{rows}</table></div>"

    def _told(self) -> list[tuple[str, Any]]:
        judges = self.summary.get("judges") or [self.summary.get("judge", "")]
        failed = sum(n for run in self.runs for status, n in run.summary["status"].items() if status != Status.OK)
        told: list[tuple[str, Any]] = [("judge" if len(judges) == 1 else "judges", ", ".join(map(str, judges)))]
        told += [("verdicts", len(self)), ("no verdict", failed)]
        choices = (self.summary.get("preferences") or {}).get("choices")
        return told + ([("pairs", choices)] if choices else [])

    def _failures(self) -> list[tuple[str, int]]:
        return [each for run in self.runs for each in (run.summary.get("failures") or {}).items()]
