"""The database of labels: SQLite, write-ahead log, one writer; a label is on disk before it is acknowledged."""

import hashlib
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from dikast.annotation.active_order import Priority, chances
from dikast.annotation.assignment import RaterTask
from dikast.core.errors import RunError, UserError, database_at
from dikast.core.output_folder import identity_of, replacing

VERSION, _ACTIVE = 1, 2  # the form of a database, and of one with an active order
FILE = "labels.sqlite"
_PAGE = 1024  # bytes; a label adds about three pages to the log
SKIPPED = ""  # the value stored when a rater skips a question
_TABLES = """
create table meta(key text primary key, value text not null);
create table rater(id integer primary key, name text not null unique, token text not null unique);
create table task(id integer primary key, rater integer not null references rater, place integer not null,
    question text not null, kind text not null, swapped integer not null, unique(rater, place));
create table label(task integer primary key references task, value text not null, reason text not null,
    at real not null);
create table event(id integer primary key autoincrement, task integer not null references task, what text not null,
    value text not null, reason text not null, at real not null);
"""
_PRIORITIES = "create table priority(question text primary key, weight real not null, place real not null)"
# time, rater, task, question, kind, what, value, reason, swapped
Event = tuple[float, str, int, str, str, str, str, str, int]


class Due(NamedTuple):
    """A task in the database."""

    id: int
    question: str
    kind: str
    swapped: bool
    place: int


class Labelled(NamedTuple):
    """A label that counts; for a pair, a choice between the responses in the item's order."""

    rater: str
    question: str
    kind: str
    value: str
    reason: str


class Done(NamedTuple):
    """How far a rater is: labels, skipped tasks, and all tasks."""

    labels: int
    skipped: int
    due: int


class LabelStore:
    """The labels of a folder. One process has it open at a time (the caller holds the folder).

    Reads and writes have a connection each, so that a thread may write while another reads. The file of the database
    holds the assignment and never changes; labels are added to its log, which is never put into it. A copy of both, in
    any order and at any time, therefore holds all labels that were written before it began.
    """

    _db: sqlite3.Connection  # reads
    _writing: sqlite3.Connection

    def __init__(self, folder: Path) -> None:
        self.path, self.log = folder / FILE, folder / f"{FILE}-wal"
        self.begun = self._active = False
        if not self.path.exists():
            return
        if not self.path.is_file():
            raise UserError(f"{self.path}: not a database of labels: restore a copy of it")
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            raise UserError(f"{self.path}: not a database of labels ({error}); restore a copy of it") from None

    def _open(self) -> None:
        """Open what is there. The connection that reads is opened first and closed last: as it cannot write, it does
        not put the log into the database when it is closed, and while it is open the other does not either.
        """
        with database_at(self.path):
            self._db = self._reader()
            found = self._db.execute("pragma user_version").fetchone()[0]
            tables = self._db.execute("select count(*) from sqlite_master").fetchone()[0]
        self._active, self.begun = found == _ACTIVE, found in (VERSION, _ACTIVE)
        if not self.begun:
            self._db.close()
            if found > _ACTIVE:
                known = f"form {found}, this one knows {_ACTIVE}"
                raise UserError(f"{self.path}: written by a newer Dikast ({known}): update it")
            if tables:
                raise UserError(f"{self.path}: not a database of labels; name another folder with --out")
            return
        with database_at(self.path):
            self._writing = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._writing.execute("pragma wal_autocheckpoint=0")
            self._writing.execute("pragma synchronous=full")
            self._writing.execute("pragma foreign_keys=on")
        self._identity = identity_of(self.path)

    def _reader(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)

    def begin(
        self,
        meta: dict[str, str],
        raters: Sequence[tuple[str, str]],
        tasks: Sequence[Sequence[RaterTask]],
        priorities: Mapping[str, Priority] | None = None,
    ) -> None:
        """Write the assignment, all or nothing: raters as (name, token), the tasks of each, an active order."""
        for suffix in ("-wal", "-shm"):  # of a database that was never begun
            self.path.with_name(f"{FILE}{suffix}").unlink(missing_ok=True)
        with (
            replacing(str(self.path), held=True) as part,
            database_at(self.path),
            closing(sqlite3.connect(part, isolation_level=None)) as db,
        ):
            db.execute(f"pragma page_size={_PAGE}")
            db.execute("pragma journal_mode=memory")
            with _transaction(db, self.path):
                _fill(db, meta, raters, tasks, priorities or {})
            db.execute("pragma journal_mode=wal")
        self._open()

    @property
    def meta(self) -> dict[str, str]:
        """The settings stored when labelling began."""
        return dict(self._db.execute("select key, value from meta"))

    @property
    def raters(self) -> dict[str, int]:
        """The number of each rater, by the hash of its token."""
        return dict(self._db.execute("select token, id from rater"))

    def due(self, rater: int) -> Due | None:
        """The first task of a rater without a label; None when all is done."""
        row = self._db.execute(
            "select id, question, kind, swapped, place from task where rater=?"
            " and not exists (select 1 from label where label.task=task.id) order by place limit 1",
            (rater,),
        ).fetchone()
        return None if row is None else Due(row[0], row[1], row[2], bool(row[3]), row[4])

    def task(self, rater: int, task: int) -> Due | None:
        """A task of this rater; None if it does not exist or is another rater's."""
        row = self._db.execute(
            "select id, question, kind, swapped, place from task where id=? and rater=?", (task, rater)
        ).fetchone()
        return None if row is None else Due(row[0], row[1], row[2], bool(row[3]), row[4])

    def kept(self, task: int) -> str | None:
        """The label of a task; None where it has none."""
        row = self._db.execute("select value from label where task=?", (task,)).fetchone()
        return None if row is None else str(row[0])

    def keep(self, task: int, value: str, reason: str = "") -> bool:
        """Store a label; False if the task already has one, which is kept."""
        return self.write([self.label(task, value, reason)])[0]

    def undo(self, rater: int, task: int) -> bool:
        """Undo the last label of a rater if it is that of `task`; the trail keeps both events."""
        return self.write([self.taking_back(rater, task)])[0]

    def label(self, task: int, value: str, reason: str = "") -> Callable[[], bool]:
        """What `keep` does, as a change for `write`."""
        return partial(self._keep, task, value, reason)

    def taking_back(self, rater: int, task: int) -> Callable[[], bool]:
        """What `undo` does, as a change for `write`."""
        return partial(self._undo, rater, task)

    def write(self, changes: Sequence[Callable[[], bool]]) -> list[bool]:
        """Make changes in their order and in one transaction, which is on disk when this returns: all or none.

        RunError where the database was removed or replaced meanwhile: labels would go to a file that nobody finds.
        """
        if self._identity is None or identity_of(self.path) != self._identity:
            raise RunError(f"{self.path}: was removed or replaced while people label: put it back and start again")
        with _transaction(self._writing, self.path):
            return [change() for change in changes]

    def _keep(self, task: int, value: str, reason: str) -> bool:
        now = time.time()
        row = (task, value, reason, now)
        kept = self._writing.execute("insert or ignore into label values(?, ?, ?, ?)", row).rowcount
        if kept:
            self._event(task, "skip" if value == SKIPPED else "label", value, reason, now)
        return bool(kept)

    def _undo(self, rater: int, task: int) -> bool:
        if _last(self._writing, rater) != task:
            return False
        value, reason = self._writing.execute("select value, reason from label where task=?", (task,)).fetchone()
        self._writing.execute("delete from label where task=?", (task,))
        self._event(task, "undo", value, reason, time.time())
        return True

    def last(self, rater: int) -> int | None:
        """The task that a rater labelled last, by the order in which labels arrived."""
        return _last(self._db, rater)

    def counts(self) -> dict[str, Done]:
        """How far each rater is."""
        rows = self._db.execute(
            "select rater.name, count(label.task), sum(label.value=?), count(*) from rater join task on"
            " task.rater=rater.id left join label on label.task=task.id group by rater.id order by rater.id",
            (SKIPPED,),
        )
        return {name: Done(done - (skipped or 0), skipped or 0, due) for name, done, skipped, due in rows}

    @contextmanager
    def one_moment(self) -> Iterator[Self]:
        """The store to be read, in any thread: all of it is of one moment, whatever is written meanwhile."""
        with closing(self._reader()) as db:
            db.execute("begin")
            moment = copy(self)
            moment._db = db
            yield moment

    def open_questions(self) -> set[str]:
        """The questions that a rater has yet to answer, without practice and repeats."""
        rows = self._db.execute(
            "select distinct task.question from task left join label on label.task=task.id"
            " where task.kind='item' and label.task is null"
        )
        return {key for (key,) in rows}

    def labels(self) -> list[Labelled]:
        """Every label that counts, including skips, in the order of tasks."""
        rows = self._db.execute(
            "select rater.name, task.question, task.kind, label.value, label.reason, task.swapped from label"
            " join task on task.id=label.task join rater on rater.id=task.rater order by task.id"
        )
        return [Labelled(*row[:5]) for row in rows]

    def chances(self) -> dict[str, float]:
        """The probability with which each labelled question was chosen; none where the order is random."""
        if not self._active:
            return {}
        order = {key: Priority(*each) for key, *each in self._db.execute("select * from priority")}
        reached = self._db.execute(
            "select task.rater, min(priority.place) from task join priority on priority.question=task.question"
            " left join label on label.task=task.id where task.kind='item' and label.task is null group by task.rater"
        )
        asked = self._db.execute(
            "select task.rater, task.question from task join label on label.task=task.id where task.kind='item'"
        )
        return chances(order, asked, dict(reached))

    @property
    def lost(self) -> bool:
        """Whether there is a log of labels without its database."""
        empty = not self.path.exists() or self.path.stat().st_size == 0
        return empty and self.log.exists() and self.log.stat().st_size > 0

    def trail(self) -> list[Event]:
        """All events, in order: time, rater, task, question, kind, what, value, reason, swapped."""
        return list(
            self._db.execute(
                "select event.at, rater.name, task.id, task.question, task.kind, event.what, event.value, event.reason,"
                " task.swapped from event join task on task.id=event.task join rater on rater.id=task.rater"
                " order by event.id"
            )
        )

    def check(self) -> str:
        """What is found damaged, "ok" for nothing: by SQLite, in the log, and tasks of unknown kind or without a
        question.
        """
        found = self._db.execute("pragma quick_check(1)").fetchone()[0]
        if found == "ok" and (unread := self._unread()) > 1:  # one may be of a machine that lost its power
            return f"{unread:,} changes in {self.log.name} lie behind damage"
        odd = "select count(*) from task where typeof(question)!='text' or kind not in ('training', 'item', 'repeat')"
        return "a task of no kind" if found == "ok" and self._db.execute(odd).fetchone()[0] else str(found)

    def _unread(self) -> int:
        """Transactions behind the place up to which SQLite reads the log; it stops at damage without a word.

        Source: https://www.sqlite.org/walformat.html.
        """
        shared = self.path.with_name(f"{FILE}-shm")
        if not (self.log.exists() and shared.exists()):
            return 0
        with shared.open("rb") as file:
            read = int.from_bytes(file.read(20)[16:], sys.byteorder)  # frames
        frame = 24 + int(self._db.execute("pragma page_size").fetchone()[0])
        with self.log.open("rb") as file:
            head = file.read(48)
            salts = head[16:24], head[40:]  # of the log and of its first frame: one may be what is damaged
            file.seek(32 + read * frame)
            behind = iter(lambda: file.read(frame), b"")
            return sum(len(each) == frame and each[8:16] in salts and any(each[4:8]) for each in behind)

    def close(self) -> None:
        """Close the database; everything is on disk."""
        if self.begun:
            self._writing.close()
            self._db.close()

    def _event(self, task: int, what: str, value: str, reason: str, at: float) -> None:
        self._writing.execute(
            "insert into event(task, what, value, reason, at) values(?, ?, ?, ?, ?)", (task, what, value, reason, at)
        )


def _fill(
    db: sqlite3.Connection,
    meta: Mapping[str, str],
    raters: Sequence[tuple[str, str]],
    tasks: Sequence[Sequence[RaterTask]],
    priorities: Mapping[str, Priority],
) -> None:
    for each in _TABLES.split(";"):
        if each.strip():
            db.execute(each)
    db.executemany("insert into meta values(?, ?)", list(meta.items()))
    for number, ((name, token), mine) in enumerate(zip(raters, tasks, strict=True), 1):
        db.execute("insert into rater values(?, ?, ?)", (number, name, hashed(token)))
        db.executemany(
            "insert into task(rater, place, question, kind, swapped) values(?, ?, ?, ?, ?)",
            [(number, place, each.question, each.kind, each.swapped) for place, each in enumerate(mine)],
        )
    if priorities:
        db.execute(_PRIORITIES)
        db.executemany("insert into priority values(?, ?, ?)", [(key, *each) for key, each in priorities.items()])
    db.execute(f"pragma user_version={_ACTIVE if priorities else VERSION}")


@contextmanager
def _transaction(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All of what is written inside, or nothing; RunError where the machine cannot write it."""
    with database_at(path):
        db.execute("begin immediate")
        try:
            yield
            db.execute("commit")
        except BaseException:
            if db.in_transaction:  # a full disk has ended it already
                db.execute("rollback")
            raise


def _last(db: sqlite3.Connection, rater: int) -> int | None:
    row = db.execute(
        "select label.task from label join task on task.id=label.task join event on event.task=label.task"
        " where task.rater=? order by event.id desc limit 1",
        (rater,),
    ).fetchone()
    return None if row is None else int(row[0])


def hashed(token: str) -> str:
    """The hash of a token, which the database stores in its place."""
    return hashlib.sha256(token.encode()).hexdigest()
