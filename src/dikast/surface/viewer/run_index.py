"""The index of a folder of runs: SQLite beside them, made again whenever it is stale, damaged or of another version.

It contains only what is in the runs; deleting it costs the time of reading them again.
"""

import os
import sqlite3
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.audit.tables.run_rows import ASKED_ONCE, JOINT, Pairs, RunRows, gold_by_item, gold_scale_of, has_gold
from dikast.core.errors import RunError, UserError, database_at
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run_files import GOLD, RUBRICS, VERDICTS
from dikast.surface.report.gaps import Scales, gap_of, label_of
from dikast.surface.report.queue import anchor_of, kept_of
from dikast.surface.viewer.run_folders import RunFacts, found_runs, read_facts, verdicts_mark

FILE = ".dikast-view.sqlite"
VERSION = 3
AT_ONCE = 16 * 2**20  # bytes of verdicts that are indexed while a page waits
_BLOCK = 2000
_FRESH = 1.0  # seconds for which the folder is taken to be as it was
_REST = 10  # a run being written is read again after so many times what reading it took
_TABLES = """
create table run(id integer primary key, path text not null unique, signature text not null, mark text not null,
    indexed text not null, state text not null, kind text not null, judge text not null, data text not null,
    rubric text not null, format text not null, planned integer not null, answered integer not null,
    failed integer not null, figure text not null, cost real, written real not null, why text not null,
    judge_hash text not null, format_hash text not null, differing integer, compared integer not null,
    rows integer not null,
    search text not null);
create table row(run integer not null, place integer not null, anchor text not null, item text not null,
    criterion text not null, status text not null, said text not null, gold text not null, gap real,
    rubric text not null, asked text not null, offsets text not null, kept text not null,
    primary key(run, place)) without rowid;
create index row_at on row(anchor, run);
"""
_FACTS = tuple(each.name for each in fields(RunFacts) if each.name != "lock")


class Listed(NamedTuple):
    """A run as the index knows it. `differing` counts the rows with another verdict than gold, of the `compared` rows
    with both; None without gold or before its verdicts were read.
    """

    id: int
    path: str
    state: str
    kind: str
    judge: str
    data: str
    rubric: str
    format: str
    planned: int
    answered: int
    failed: int
    figure: str
    cost: float | None
    written: float
    why: str
    judge_hash: str
    format_hash: str
    differing: int | None
    compared: int
    rows: int
    whole: bool


class Row(NamedTuple):
    """A verdict of a response, or the joint one of a pair, as the index knows it."""

    place: int
    anchor: str
    item: str
    criterion: str
    status: str
    said: str
    gold: str
    gap: float | None
    rubric: str
    asked: str


@dataclass(slots=True)
class _AskedRows(RunRows):
    """Rows that also say which item they were asked about, by its fingerprint (of a pair with a shown first); of a
    ranking, those of all pairs.
    """

    def checked(self, verdict: dict[str, Any], path: Path, line: int) -> dict[str, Any]:
        row = RunRows.checked(self, verdict, path, line)
        name = "asked_swapped" if "swapped" in row else "asked_item"
        row[name] = (verdict.get("hashes") or {}).get("item") or ""
        return row

    def _of_schedule(self, pairs: Pairs) -> Pairs:
        comparable = RunRows._of_schedule(self, pairs)
        alone = {key: ({**row, ASKED_ONCE: True}, line) for key, (row, line) in pairs.items() if key not in comparable}
        return {**comparable, **alone}


class RunIndex:
    """What is known of the runs in `root`. Reading opens connections of its own, so any thread may; one writes."""

    def __init__(self, root: Path, file: Path | None = None) -> None:
        self.root = root
        self._scratch = None
        self._writing, self._looked = threading.Lock(), 0.0
        self._took: dict[str, tuple[float, float]] = {}  # run -> when it was read last, and how long that took
        self.path = file or root / FILE
        if file is None and not _can_hold(root):
            self._scratch = tempfile.TemporaryDirectory(prefix="dikast-view-")
            self.path = Path(self._scratch.name) / FILE
        self._begin()

    def _begin(self) -> None:
        """Open the index, or begin a new one where it is of another version or no database."""
        files = [Path(f"{self.path}{end}") for end in ("", "-wal", "-shm", "-journal")]
        for each in files:  # SQLite follows links, and waits for whom a pipe leads to
            if each.is_symlink() or (each.exists() and not each.is_file()):
                raise UserError(f"{each}: not a file that the viewer wrote; remove it")
        for _ in range(2):
            try:
                with database_at(self.path), closing(sqlite3.connect(self.path, timeout=30.0)) as db:
                    found = db.execute("pragma user_version").fetchone()[0]
                    if found == VERSION and _schema(db) == _own_schema():
                        return
                    if found == 0 and not db.execute("select count(*) from sqlite_master").fetchone()[0]:
                        db.execute("pragma journal_mode=wal")
                        db.executescript(f"begin immediate; {_TABLES} pragma user_version={VERSION}; commit;")
                        return
            except sqlite3.DatabaseError:
                pass
            for each in files:
                each.unlink(missing_ok=True)
        raise UserError(f"{self.path}: the index cannot be written; remove it")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own; RunError where the machine cannot read or write the index."""
        with database_at(self.path), closing(sqlite3.connect(self.path, timeout=30.0, isolation_level=None)) as db:
            db.execute("pragma synchronous=off")
            yield db

    def look(self) -> None:
        """Bring the list of runs up to date: new, changed and removed folders; verdicts are not read."""
        if time.monotonic() - self._looked < _FRESH:
            return
        with self._writing, self._opened() as db:
            if time.monotonic() - self._looked < _FRESH:
                return
            known = dict(db.execute("select path, signature from run"))
            found = dict(found_runs(self.root))
            db.execute("begin immediate")
            for path in known.keys() - found.keys():
                db.execute("delete from row where run=(select id from run where path=?)", (path,))
                db.execute("delete from run where path=?", (path,))
            for path, signature in found.items():
                if known.get(path) != signature:
                    _put(db, read_facts(self.root, path), signature)
            db.execute("commit")
            self._looked = time.monotonic()

    def runs(self, where: str = "1", values: Sequence[Any] = (), order: str = "written desc", at: int = 0,
             most: int = -1) -> list[Listed]:  # fmt: skip
        """The runs for which an SQL condition holds."""
        columns = ", ".join(name for name in Listed._fields if name != "whole")
        with self._opened() as db:
            found = db.execute(
                f"select {columns}, indexed=mark from run where {where} order by {order}, path limit ? offset ?",
                (*values, most, at),
            )
            return [Listed._make((*row[:-1], bool(row[-1]))) for row in found]

    def run(self, path: str) -> Listed | None:
        """The run in a folder; None where there is none."""
        return next(iter(self.runs("path=?", (path,))), None)

    def count(self, table: str, where: str, values: Sequence[Any]) -> int:
        """How many runs, or rows of runs, a condition holds for."""
        with self._opened() as db:
            return int(db.execute(f"select count(*) from {table} where {where}", tuple(values)).fetchone()[0])

    def rows(self, run: int, where: str = "1", values: Sequence[Any] = (), order: str = "place", at: int = 0,
             most: int = 100) -> list[Row]:  # fmt: skip
        """Rows of a run for which an SQL condition holds."""
        with self._opened() as db:
            found = db.execute(
                f"select {', '.join(Row._fields)} from row where run=? and {where} order by {order} limit ? offset ?",
                (run, *values, most, at),
            )
            return [Row._make(each) for each in found]

    def distinct(self, run: int, column: str) -> list[str]:
        """The values of a column of a run's rows, at most 100."""
        with self._opened() as db:
            told = db.execute(f"select distinct {column} from row where run=? order by 1 limit 100", (run,))
            return [each for (each,) in told]

    def select(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._opened() as db:
            return list(db.execute(query, tuple(values)))

    def kept(self, run: int, anchor: str) -> tuple[dict[str, Any], list[int]] | None:
        """What `entry_of` needs of a row, and where its verdicts begin in `verdicts.jsonl`."""
        with self._opened() as db:
            found = db.execute("select kept, offsets, gap from row where run=? and anchor=?", (run, anchor)).fetchone()
        if found is None:
            return None
        kept = orjson.loads(found[0])
        kept["gap"] = float("nan") if found[2] is None else found[2]
        return kept, orjson.loads(found[1])

    def neighbours(self, run: int, anchor: str) -> tuple[str, str]:
        """The rows before and after one, "" where there is none."""
        told = []
        with self._opened() as db:
            for sign, order in (("<", "desc"), (">", "asc")):
                found = db.execute(
                    f"select anchor from row where run=? and place {sign} (select place from row where run=? and"
                    f" anchor=? limit 1) order by place {order} limit 1",
                    (run, run, anchor),
                ).fetchone()
                told.append(found[0] if found else "")
        return told[0], told[1]

    def read(self, path: str, *, wait: bool = True) -> bool:
        """Read the verdicts of a run into the index if it is behind; whether it is up to date now.

        Not `wait`: only where that is quick.
        """
        run = self.run(path)
        if run is None or run.whole or run.kind == "panel":
            return True
        file = self.root / path / VERDICTS
        last, took = self._took.get(path, (-1e9, 0.0))
        if not file.exists() or (run.rows and time.monotonic() - last < _REST * took):
            return not file.exists()
        if not wait and file.stat().st_size > AT_ONCE:
            return False
        began = time.monotonic()
        with self._writing, self._opened() as db:
            self._read(db, run)
        self._took[path] = (time.monotonic(), time.monotonic() - began)
        return True

    def behind(self) -> list[str]:
        """The runs whose verdicts have not been read as they are, the newest first."""
        return [each.path for each in self.runs("mark != indexed and kind != 'panel'") if self._is_due(each.path)]

    def _is_due(self, path: str) -> bool:
        last, took = self._took.get(path, (-1e9, 0.0))
        return time.monotonic() - last >= _REST * took and (self.root / path / VERDICTS).exists()

    def _read(self, db: sqlite3.Connection, run: Listed) -> None:
        mark = db.execute("select mark from run where id=?", (run.id,)).fetchone()
        if mark is None:
            return
        db.execute("begin immediate")
        try:
            db.execute("delete from row where run=?", (run.id,))
            why, gold, differing, compared, place = "", False, 0, 0, 0
            try:
                for place, (row, told) in enumerate(_rows(self.root / run.path), 1):
                    gold |= bool(row[5])
                    compared += row[6] is not None
                    differing += bool(row[6])
                    db.execute("insert into row values(?,?,?,?,?,?,?,?,?,?,?,?,?)", (run.id, place, *row, *told))
            except UserError as error:
                why = str(error)
            except OSError as error:
                why = f"{run.path}: cannot be read ({error.strerror or error})"
            state, why = ("damaged", why) if why else (run.state, run.why)
            db.execute(
                "update run set indexed=?, rows=?, differing=?, compared=?, state=?, why=? where id=?",
                (mark[0], place, differing if gold else None, compared, state, why, run.id),
            )
            db.execute("commit")
        except BaseException:
            if db.in_transaction:  # a full disk has ended it already
                db.execute("rollback")
            raise

    def close(self) -> None:
        """Remove an index that could not lie beside the runs."""
        if self._scratch is not None:
            self._scratch.cleanup()


def _schema(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """What is in a database besides SQLite's own: an index of somebody else may have other tables, or triggers."""
    return list(db.execute("select name, sql from sqlite_master where sql is not null order by name"))


def _own_schema() -> list[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_TABLES)
        return _schema(db)


def _can_hold(root: Path) -> bool:
    return os.access(root, os.W_OK)


def _put(db: sqlite3.Connection, facts: RunFacts, signature: str) -> None:
    """A run's facts; its rows stay where its verdicts are as they were."""
    mark = verdicts_mark(signature)
    told = [getattr(facts, name) for name in _FACTS]
    search = " ".join((facts.path, facts.judge, facts.data, facts.rubric, facts.format, facts.kind)).casefold()
    names = ", ".join((*_FACTS, "signature", "mark", "search"))
    again = ", ".join(f"{name}=excluded.{name}" for name in (*_FACTS[1:], "signature", "mark", "search"))
    damaged = ", indexed=case when 'damaged' in (run.state, excluded.state) then '' else indexed end"
    db.execute(
        f"insert into run({names}, indexed, compared, rows) values({', '.join('?' * (len(told) + 3))}, '', 0, 0)"
        f" on conflict(path) do update set {again}{damaged}",
        (*told, signature, mark, search),
    )


def _rows(folder: Path) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """The rows of a run as the table has them, apart from run and place: what is searched, and what is kept."""
    gold = gold_by_item(folder / GOLD, ["gold"]) if has_gold(folder) else {}
    rows = _AskedRows(str(folder), gold=gold, gold_scale=gold_scale_of(folder))
    rubrics = load_rubrics(folder) if (folder / RUBRICS).exists() else {}
    scales = Scales({name: rubric.scale for name, rubric in rubrics.items()}, rows.gold_scale)
    starts = _starts(folder / VERDICTS)
    for row, _ in rows:
        if row["sample"] == JOINT:
            continue
        said = label_of(row.get("choice", row.get("label"))) or ""
        true = row.get("gold")
        gap = gap_of(row, true, scales.both(row, true)) if row.get("status") == "ok" else float("nan")
        if ASKED_ONCE in row:  # no joint verdict: it is shown, and compared with nothing
            said, gap = f"{said} in one order" if said else "", float("nan")
        kept = kept_of(row, true)
        offsets = [starts[line - 1] for line in kept["lines"]]
        searched = (
            anchor_of(kept), str(row["item"]), str(row["criterion"]), str(row["status"]), said, label_of(true) or "",
            None if gap != gap else gap,
        )  # fmt: skip
        of = row.get("asked_item", row.get("asked_swapped", ""))
        asked = (str(row["rubric"] or ""), of, orjson.dumps(offsets).decode())
        yield searched, (*asked, orjson.dumps(kept).decode())


def _starts(path: Path) -> "array[int]":
    """Where each line of a file begins."""
    starts, at = array("Q"), 0
    with path.open("rb") as file:
        for line in file:
            starts.append(at)
            at += len(line)
    return starts


def keep_reading(index: RunIndex, stopping: threading.Event) -> None:
    """Read what is behind, run by run, until `stopping`; what cannot be read is marked as damaged by `read`."""
    while not stopping.is_set():
        with suppress(RunError, sqlite3.OperationalError):  # another viewer is writing, or the disk is full
            index.look()
            for path in index.behind():
                if stopping.is_set():
                    return
                index.read(path)
        stopping.wait(2.0)
