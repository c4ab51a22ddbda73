"""The index of a folder of runs: SQLite beside them, made again whenever it is stale, damaged or of another version
of Dikast, which may read other rows from the same files.

It contains only what is in the runs; deleting it costs the time of reading them again.
"""

import os
import sqlite3
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.core.errors import RunError, UserError, database_at
from dikast.core.runs.run_files import VERDICTS
from dikast.surface.viewer.index_tables import TABLES, DamagedIndex, is_damaged, own_schema, schema_of
from dikast.surface.viewer.indexed_rows import indexed_rows
from dikast.surface.viewer.run_folders import (
    UNREAD,
    RunFacts,
    found_runs,
    read_facts,
    signature_of,
    verdicts_mark,
    written_at,
)

FILE = ".dikast-view.sqlite"
_VERSION = 8  # raised when the same runs give other rows or states; a test compares the rows
AT_ONCE = 16 * 2**20  # bytes of verdicts that are indexed while a page waits
_FRESH = 1.0  # seconds for which the folder is taken to be as it was
_LOOK_SECONDS = 0.15  # seconds of reading locks and summaries in one transaction; other runs are listed meanwhile
_PAUSE = 0.01  # seconds in which a page may be made while the runs of a new index are being looked at
_REST = 10  # a run being written is read again after so many times what reading it took
BEHIND = f"mark != indexed and kind != 'panel' and state != '{UNREAD}'"  # runs whose verdicts are still to be read
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
    failed: int | None
    figure: str
    cost: float | None
    written: float
    recorded: bool
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


class RunIndex:
    """What is known of the runs in `root`. Reading opens connections of its own, so any thread may; one writes."""

    def __init__(self, root: Path, file: Path | None = None) -> None:
        self.root = root
        self._scratch = None
        self._mending = threading.Lock()
        self._writing, self._looked, self._listed = threading.Lock(), -1e9, False
        self._took: dict[str, tuple[float, float]] = {}  # run -> when it was read last, and how long that took
        self.path = file or root / FILE
        if file is None and not os.access(root, os.W_OK):
            self._scratch = tempfile.TemporaryDirectory(prefix="dikast-view-")
            self.path = Path(self._scratch.name) / FILE
        self._begin()

    def _begin(self, *, anew: bool = False) -> None:
        """Open the index, or begin a new one where it is of another version or no database, or `anew`."""
        files = [Path(f"{self.path}{end}") for end in ("", "-wal", "-shm", "-journal")]
        for each in files:  # SQLite follows links, and waits for whom a pipe leads to
            if each.is_symlink() or (each.exists() and not each.is_file()):
                raise UserError(f"{each}: not a file that the viewer wrote; remove it")
        for _ in range(2):
            try:
                with database_at(self.path), closing(sqlite3.connect(self.path, timeout=30.0)) as db:
                    found = db.execute("pragma user_version").fetchone()[0]
                    if not anew and found == index_version() and schema_of(db) == own_schema():
                        return
                    if found == 0 and not db.execute("select count(*) from sqlite_master").fetchone()[0]:
                        db.execute("pragma journal_mode=wal")
                        db.executescript(f"begin immediate; {TABLES} pragma user_version={index_version()}; commit;")
                        return
            except sqlite3.DatabaseError:
                pass
            anew = False
            for each in files:
                each.unlink(missing_ok=True)
        raise UserError(f"{self.path}: the index cannot be written; remove it")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own; RunError where the machine cannot read or write the index, DamagedIndex where
        something else did.
        """
        try:
            with database_at(self.path), closing(sqlite3.connect(self.path, timeout=30.0, isolation_level=None)) as db:
                db.execute("pragma synchronous=off")
                yield db
        except (sqlite3.DatabaseError, RunError, ValueError) as error:
            if not is_damaged(self.path):
                raise
            with self._mending:
                if is_damaged(self.path):  # else another page has begun it anew meanwhile
                    self._begin(anew=True)
                    self._looked, self._listed = -1e9, False
                    self._took.clear()
            raise DamagedIndex(f"{self.path}: was damaged ({error}) and is made again: load the page again") from error

    def look(self) -> None:
        """Bring the list of runs up to date: new, changed and removed folders; verdicts are not read.

        Every folder is listed; their locks and summaries are read as in `look_on`.
        """
        if time.monotonic() - self._looked < _FRESH:
            return
        with self._to_write(wait=not self._listed) as db:
            if db is None or time.monotonic() - self._looked < _FRESH:
                return
            known = dict(db.execute("select path, signature from run"))
            found = dict(found_runs(self.root))
            for path in known.keys() - found.keys():
                _drop(db, path)
            for path, signature in found.items():
                if path not in known:
                    _put(db, RunFacts(path, UNREAD, written=written_at(signature)), "", verdicts_mark(signature))
                elif known[path] != signature:
                    db.execute("update run set signature='' where path=?", (path,))
            self._read_facts(db)
        self._listed, self._looked = True, time.monotonic()

    def look_on(self) -> bool:
        """Read locks and summaries that no look has read yet, the newest first, for `_LOOK_SECONDS`; whether some
        are left.

        Not in one transaction for all, so that pages are made meanwhile.
        """
        if self.count("run", "signature=''", ()):
            with self._to_write() as db:
                assert db is not None
                self._read_facts(db)
        return self.count("run", "signature=''", ()) > 0

    def _read_facts(self, db: sqlite3.Connection) -> None:
        began = time.monotonic()
        for (path,) in db.execute("select path from run where signature='' order by written desc").fetchall():
            self._read_one(db, path)
            if time.monotonic() - began > _LOOK_SECONDS:
                break

    def _read_one(self, db: sqlite3.Connection, path: str) -> None:
        signature = signature_of(self.root, path)
        if signature is None:  # the folder has gone since it was listed
            _drop(db, path)
        else:
            _put(db, read_facts(self.root, path), signature, verdicts_mark(signature))

    def look_at(self, path: str) -> None:
        """Read the lock and the summary of a run if no look has read them yet."""
        if self.count("run", "path=? and signature=''", (path,)):
            with self._to_write() as db:
                assert db is not None
                self._read_one(db, path)

    @contextmanager
    def _to_write(self, *, wait: bool = True) -> Iterator[sqlite3.Connection | None]:
        """A transaction, one at a time; not `wait`: None where another takes longer than a moment."""
        if not self._writing.acquire(timeout=-1 if wait else _LOOK_SECONDS):
            yield None
            return
        try:
            with self._opened() as db:
                db.execute("begin immediate")
                try:
                    yield db
                    db.execute("commit")
                except BaseException:
                    if db.in_transaction:  # a full disk has ended it already
                        db.execute("rollback")
                    raise
        finally:
            self._writing.release()

    def runs(self, where: str = "1", values: Sequence[Any] = (), order: str = "written desc", at: int = 0,
             most: int = -1) -> list[Listed]:  # fmt: skip
        """The runs for which an SQL condition holds."""
        columns = ", ".join(name for name in Listed._fields if name != "whole")
        with self._opened() as db:
            found = db.execute(
                f"select {columns}, indexed=mark or kind='panel' from run where {where} order by {order}, path"
                " limit ? offset ?",
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
        with self._to_write() as db:
            assert db is not None
            self._read(db, run)
        self._took[path] = (time.monotonic(), time.monotonic() - began)
        return True

    def behind(self) -> list[str]:
        """The runs whose verdicts have not been read as they are, the newest first."""
        return [each.path for each in self.runs(BEHIND) if self._is_due(each.path)]

    def _is_due(self, path: str) -> bool:
        last, took = self._took.get(path, (-1e9, 0.0))
        return time.monotonic() - last >= _REST * took and (self.root / path / VERDICTS).exists()

    def _read(self, db: sqlite3.Connection, run: Listed) -> None:
        mark = db.execute("select mark from run where id=?", (run.id,)).fetchone()
        if mark is None:
            return
        db.execute("delete from row where run=?", (run.id,))
        why, gold, differing, compared, place, answers, failed = "", False, 0, 0, 0, 0, 0
        try:
            for place, row in enumerate(indexed_rows(self.root / run.path), 1):
                gold |= bool(row.searched[5])
                compared += row.searched[6] is not None
                differing += bool(row.searched[6])
                answers, failed = answers + row.answers, failed + row.failed
                told = (run.id, place, *row.searched, *row.kept)
                db.execute("insert into row values(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", told)
        except UserError as error:
            why = str(error)
        except OSError as error:
            why = f"{error.filename or run.path}: cannot be read ({error.strerror or error})"
            why = run.why or f"{why}; make it a file that this user may read, and load the page again"
        if not why and (run.state != "finished" or answers < run.planned):  # no summary is of what is there
            db.execute("update run set answered=?, failed=? where id=?", (answers, failed, run.id))
        state, why = ("damaged", why) if why else (run.state, run.why)
        if state == "finished" and answers < run.planned:  # the summary is of verdicts that are no longer there
            state = "unfinished"
            lost = "update run set figure='', written=?, recorded=0 where id=?"
            db.execute(lost, (written_at(mark[0]), run.id))
        db.execute(
            "update run set indexed=?, rows=?, differing=?, compared=?, state=?, why=? where id=?",
            (mark[0], place, differing if gold else None, compared, state, why, run.id),
        )

    def close(self) -> None:
        """Remove an index that could not lie beside the runs."""
        if self._scratch is not None:
            self._scratch.cleanup()


def index_version() -> int:
    """The version of the index that this Dikast makes: one that another release wrote is made again."""
    return zlib.crc32(f"{_VERSION} {version('dikast')}".encode()) >> 1


def _drop(db: sqlite3.Connection, path: str) -> None:
    db.execute("delete from row where run=(select id from run where path=?)", (path,))
    db.execute("delete from run where path=?", (path,))


def _put(db: sqlite3.Connection, facts: RunFacts, signature: str, mark: str) -> None:
    """A run's facts, and a signature that is empty where they are still to be read; its rows stay where its verdicts
    are as they were.
    """
    told = [getattr(facts, name) for name in _FACTS]
    search = " ".join((facts.path, facts.judge, facts.data, facts.rubric, facts.format, facts.kind)).casefold()
    names = ", ".join((*_FACTS, "signature", "mark", "search"))
    again = ", ".join(f"{name}=excluded.{name}" for name in (*_FACTS[1:], "signature", "mark", "search"))
    again = again.replace("failed=excluded.failed", "failed=coalesce(excluded.failed, failed)")  # what its rows told
    stale = ", indexed=case when run.state != excluded.state then '' else indexed end"
    db.execute(
        f"insert into run({names}, indexed, compared, rows) values({', '.join('?' * (len(told) + 3))}, '', 0, 0)"
        f" on conflict(path) do update set {again}{stale}",
        (*told, signature, mark, search),
    )


def _look_on(index: RunIndex, stopping: threading.Event) -> None:
    while index.look_on() and not stopping.wait(_PAUSE):
        pass


def keep_reading(index: RunIndex, stopping: threading.Event) -> None:
    """Read what is behind, run by run, until `stopping`; what cannot be read is marked as damaged by `read`."""
    while not stopping.is_set():
        with suppress(RunError, sqlite3.OperationalError):  # another viewer is writing, or the disk is full
            index.look()
            _look_on(index, stopping)
            for path in index.behind():
                if stopping.is_set():
                    return
                index.read(path)
                _look_on(index, stopping)
        stopping.wait(2.0)
