"""The tables of the index of the viewer, and whether a file is a whole index."""

import sqlite3
from contextlib import closing
from pathlib import Path

from dikast.core.errors import RunError

TABLES = """
create table run(id integer primary key, path text not null unique, signature text not null, mark text not null,
    indexed text not null, state text not null, kind text not null, judge text not null, data text not null,
    rubric text not null, format text not null, planned integer not null, answered integer not null,
    failed integer, figure text not null, cost real, written real not null, recorded integer not null,
    why text not null, judge_hash text not null, format_hash text not null, differing integer,
    compared integer not null, rows integer not null, search text not null);
create table row(run integer not null, place integer not null, anchor text not null, item text not null,
    criterion text not null, status text not null, said text not null, gold text not null, gap real,
    rubric text not null, asked text not null, offsets text not null, kept text not null,
    scale text not null, primary key(run, place)) without rowid;
create index row_at on row(anchor, run);
"""
_NO_DATABASE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


class DamagedIndex(RunError):
    """The index was damaged or removed while it was in use; it has been begun anew, so that asking again helps."""


def is_damaged(path: Path) -> bool:
    """Whether what is at the path is not a whole index; not asked unless something failed."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30.0)) as db:
            whole = db.execute("pragma quick_check(1)").fetchone()[0] == "ok"
            return not whole or schema_of(db) != own_schema()
    except sqlite3.DatabaseError as error:
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return kind in _NO_DATABASE or not path.is_file()


def schema_of(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """What is in a database besides SQLite's own: an index of somebody else may have other tables, or triggers."""
    return list(db.execute("select name, sql from sqlite_master where sql is not null order by name"))


def own_schema() -> list[tuple[str, str]]:
    """What is in an index that this version makes."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(TABLES)
        return schema_of(db)
