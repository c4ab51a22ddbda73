"""A run as a table: the items' columns, then the verdicts, one row for each judged response or pair.

Verdicts arrive in any order, and items may be larger than memory: both go through a temporary database on disk, from
which the rows come in the order of the items.
"""

import itertools
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.core.errors import UserError
from dikast.core.gold import gold_of_pair, gold_of_response
from dikast.core.item import Item, item_to
from dikast.core.records.items import scan_items
from dikast.core.records.shapes.arrangement import Arrangement
from dikast.core.records.sources import is_address, is_data
from dikast.core.records.writing import rebased
from dikast.core.runs.as_judged import as_changed, is_as_judged
from dikast.core.runs.current_verdicts import current_records
from dikast.core.runs.judge_lock import damaged_lock, names_version, read_lock
from dikast.core.runs.rubrics import written_rubrics
from dikast.core.runs.run_files import COMBINED, PREFERENCES, TOTALS
from dikast.core.runs.schema import PanelLine, PreferenceLine, TotalLine, derived_lines, outcome_of
from dikast.core.runs.table_columns import ITEM, JOINT, OF_AN_ORDER, ORDERS, SIDES, TOLD, is_own
from dikast.core.scale import Scale
from dikast.core.verdict import Verdict

_SHARED = ("criterion", "response_index", "index_a", "index_b")  # of a panel's row, whichever judge
_PAIRS = "pairwise"
_TABLES = """
CREATE TABLE items (id TEXT PRIMARY KEY, place INTEGER, body BLOB) WITHOUT ROWID;
CREATE TABLE verdicts (
    judge INTEGER, key TEXT, item TEXT, criterion TEXT, low INTEGER, high INTEGER, sample INTEGER, shown INTEGER,
    content TEXT, body BLOB, PRIMARY KEY (judge, key)) WITHOUT ROWID;
CREATE INDEX asked ON verdicts (judge, item, criterion, low, high);
CREATE TABLE told (item TEXT, criterion TEXT, place INTEGER, low INTEGER, high INTEGER, judge INTEGER, body BLOB);
CREATE TABLE totals (judge INTEGER, item TEXT, response INTEGER, total REAL, PRIMARY KEY (judge, item, response));
"""
_IN_ORDER = """
SELECT told.item, told.criterion, told.low, told.high, told.judge, told.body, items.body
FROM told LEFT JOIN items ON items.id = told.item
ORDER BY items.place IS NULL, items.place, told.item, told.low, told.high, told.place, told.criterion, told.judge
"""


class JudgeRun(NamedTuple):
    """The run of one judge: its folder, its kind, the judge as it was asked for."""

    folder: Path
    kind: str
    judge: str


class RunTable:
    """The rows of a run, in the order of its items, as JSON values; iterating again gives the same rows.

    A graded response has `label`, `score`, `expected`, `status`, `reason`, `distribution`, `feedback` and more; a pair
    the joint `choice` ("a", "b", "tie", "disagree"; None with a `status`), the texts of both responses, and of each
    order its label, status, distribution and feedback (`label_shown`: a first, `label_swapped`: b first; of a run that
    compared by scores `score_a`, `score_b`, ...). Where a question was asked several times the row is the joint
    verdict, and `samples` has the labels. A panel's row has these columns of each judge (`score_1`, `score_2`, ... with
    its name in `judge_1`) and its joint `mean`, `median`, `spread` and `majority`. `gold` is that of the row's own
    question. Other columns of the items keep their names, or are called `meta.NAME` where a column here has that name.
    Columns without any value are left out; `columns` has the others in order. Relative paths of images start at
    `folder`. `notes` say what is missing. UserError where the items are named by `items` and cannot be read.
    """

    def __init__(self, run: Path, runs: Sequence[JudgeRun], *, panel: bool, items: str = "", folder: str = "") -> None:
        self.notes: list[str] = []
        self._run, self._runs, self._several, self._folder = run, runs, panel, folder
        self.metas: dict[str, None] = {}
        self._many = False  # responses of an item that are judged apart, which only their numbers tell apart
        self._scales: dict[tuple[int, str], Scale] = {}
        self._rows = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the table
        weakref.finalize(self, self._rows.close)
        with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
            database = sqlite3.connect(Path(scratch, "rows.db"), isolation_level=None)
            try:
                database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES)
                database.execute("BEGIN")
                for number, each in enumerate(runs):
                    self._read_verdicts(database, number, each)
                self._read_items(database, items)
                self.columns = self._write_rows(database)
            finally:
                database.close()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._rows.seek(0)
        for line in self._rows:
            row = orjson.loads(line)
            yield {column: row.get(column) for column in self.columns}

    def _read_items(self, database: sqlite3.Connection, named: str) -> None:
        lock = read_lock(self._runs[0].folder) or {}
        if (damaged := damaged_lock(self._runs[0].folder)) is not None:
            self.notes.append(f"{damaged}. Until then the items are read as if no columns had been named")
        told = str(lock.get("items", ""))
        kept = self._run / Path(told).name  # of rows in memory, wherever the folder has gone since
        known = () if not told or is_address(told) else (told, kept)  # an address that a file names is not asked
        path = named or next((str(each) for each in known if is_data(each)), "")
        if not path:
            why = f"were read from {told}" if is_address(told) else f"are no longer at {told or '-'}"
            self.notes.append(f"the items {why}: their columns are left out; name --items FILE")
            return
        if not _is_there(path):
            raise UserError(f"--items {path}: there is no such file")
        found = scan_items(path, lock.get("columns") or {}, Arrangement(names_version(self._runs[0].folder)))
        changed = 0
        for place, item in enumerate(found):
            if not isinstance(item, Item):
                continue
            same = is_as_judged(item, self._shown(database, item.id))
            changed += not same
            row = (item.id, place, orjson.dumps(item_to(rebased(item, self._folder))) if same else None)
            database.execute("INSERT OR IGNORE INTO items VALUES (?, ?, ?)", row)
        if changed:
            self.notes.append(as_changed(changed))

    def _shown(self, database: sqlite3.Connection, item: str) -> Iterator[dict[str, Any]]:
        """Which responses of an item the verdicts are about, and the fingerprint of what was shown.

        Without the name of the index SQLite scans all verdicts of a judge for each item.
        """
        query = "SELECT low, high, shown, content FROM verdicts INDEXED BY asked WHERE judge = ? AND item = ?"
        for number in range(len(self._runs)):
            for low, high, shown, content in database.execute(query, (number, item)):
                responses = [low] if high < 0 else [shown, low + high - shown]
                yield {"question": {"responses": responses}, "hashes": {"item": content}}

    def _read_verdicts(self, database: sqlite3.Connection, number: int, run: JudgeRun) -> None:
        rubrics = written_rubrics(run.folder)
        self._scales |= {(number, name): rubric.scale for name, rubric in rubrics.items()}
        places = {rubric.name: place for place, rubric in reversed(list(enumerate(rubrics.values())))}
        database.executemany(
            "INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((number, *_stored(record)) for record in current_records(run.folder)),
        )
        for record, _ in derived_lines(run.folder, TOTALS, TotalLine):
            place = (number, record["item"], record["response"], record["total"])
            database.execute("INSERT OR REPLACE INTO totals VALUES (?, ?, ?, ?)", place)
        units = _joined_units if (run.folder / COMBINED).exists() else _graded_units
        if run.kind in (_PAIRS, "from-absolute"):
            units = _pair_units
        add = "INSERT INTO told VALUES (?, ?, ?, ?, ?, ?, ?)"
        for item, criterion, low, high, body in units(database, number, run):
            if (total := _total(database, number, item, low)) is not None and high < 0:
                body["total"] = total
            told = orjson.dumps({"judge": run.judge, **body})
            database.execute(add, (item, criterion, places.get(criterion, 0), low, high, number, told))

    def _write_rows(self, database: sqlite3.Connection) -> list[str]:
        joint = _panel_lines(self._run, database) if self._several else False
        if self._several and not joint:
            self.notes.append("each question was asked several times: the panel's mean and majority are left out")
        used: dict[str, None] = {}
        for (item, criterion, low, high), group in itertools.groupby(database.execute(_IN_ORDER), lambda row: row[:4]):
            told = list(group)
            body = orjson.loads(told[0][6]) if told[0][6] else {"id": item}
            rubric = ""
            row: dict[str, Any] = {"criterion": criterion}
            for *_, judge, found, _ in told:
                values = orjson.loads(found)
                rubric = values.pop("rubric", None) or rubric
                end = f"_{judge + 1}" if self._several else ""
                row |= {name + end: value for name, value in values.items()}
            if joint:
                query = "SELECT body FROM joint WHERE item = ? AND criterion = ? AND low = ? AND high = ?"
                found = database.execute(query, (item, criterion, low, high)).fetchone()
                row |= orjson.loads(found[0]) if found else {}
            own = self._of_item(body, criterion, low, high, self._scales.get((told[0][4], rubric)))
            row = {name: value for name, value in {**own, **row}.items() if value is not None}
            used.update(dict.fromkeys(row))
            self._rows.write(orjson.dumps(row) + b"\n")
        return self._ordered(used)

    def _of_item(
        self, body: dict[str, Any], criterion: str, low: int, high: int, scale: Scale | None
    ) -> dict[str, Any]:
        """The columns of the item that the row is about; `high` is -1 for a single response."""
        responses = body["responses"] if "responses" in body else [body["response"]] if "response" in body else []
        row = {name: body.get(name) for name in ("id", "instruction", "reference", "context")}
        gold = body.get("gold")
        self._many |= len(responses) > (1 if high < 0 else 2) or low > 0
        if high < 0:
            row |= {"response": _at(responses, low), "response_index": low}
            row["gold"] = gold_of_response(gold, criterion, low)
        else:
            row |= {"response_a": _at(responses, low), "response_b": _at(responses, high)}
            row |= {"index_a": low, "index_b": high}
            row["gold"] = gold_of_pair(gold, criterion, (low, high), scale)
        for name, value in (body.get("meta") or {}).items():
            column = f"meta.{name}" if is_own(name) else name
            self.metas[column] = None
            row[column] = value
        return row

    def _ordered(self, used: Mapping[str, None]) -> list[str]:
        """The columns that have values, and those that a table of verdicts always has."""
        count = len(self._runs) if self._several else 1
        ends = [f"_{number}" for number in range(1, count + 1)] if self._several else [""]
        pairs = any("choice" + end in used for end in ends) or self._runs[0].kind in (_PAIRS, "from-absolute")
        always = {"id", "criterion", *(name + end for name in (("choice",) if pairs else ("score",)) for end in ends)}
        always |= {"status" + end for end in ends}
        known = [*ITEM, *self.metas, *(name for name in _SHARED if self._several), *JOINT]
        for end in ends:
            told = [name for name in TOLD if not (self._several and name in _SHARED)]
            of_orders = [f"{name}_{order}" for order in (*ORDERS, *SIDES) for name in OF_AN_ORDER]
            at = told.index("feedback")
            known += [name + end for name in (*told[:at], *of_orders, *told[at:])]
        left_out = set() if self._many else {"response_index", "index_a", "index_b"}
        return [name for name in dict.fromkeys(known) if (name in used or name in always) and name not in left_out]


def _stored(record: Mapping[str, Any]) -> tuple[Any, ...]:
    asked = record["question"]
    low, high = _ends(asked["responses"])
    shown = asked["responses"][0]
    return (
        record["key"],
        asked["item"],
        asked["criterion"],
        low,
        high,
        asked["sample"],
        shown,
        (record.get("hashes") or {}).get("item"),
        orjson.dumps(_verdict_columns(record)),
    )


def _ends(responses: list[int]) -> tuple[int, int]:
    return (responses[0], -1) if len(responses) == 1 else (min(responses), max(responses))


def _verdict_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one verdict."""
    kept = ("label", "score", "expected", "status", "reason", "mass", "marker", "distribution", "feedback")
    row = {name: record.get(name) for name in kept} | {"claims": record.get("claims") or None}
    row |= {"reason": row["reason"] or None, "conflict": True if record.get("conflict") else None}
    row["rubric"] = (record.get("hashes") or {}).get("rubric")
    usage = record.get("usage") or {}
    return row | {name: usage.get(name) for name in ("tokens_in", "tokens_out", "cost")}


def _graded_units(database: sqlite3.Connection, number: int, run: JudgeRun) -> Iterator[tuple[Any, ...]]:
    query = "SELECT item, criterion, low, high, body FROM verdicts WHERE judge = ?"
    for *place, body in database.execute(query, (number,)):
        yield *place, orjson.loads(body)


def _joined_units(database: sqlite3.Connection, number: int, run: JudgeRun) -> Iterator[tuple[Any, ...]]:
    query = """SELECT body FROM verdicts WHERE judge = ? AND item = ? AND criterion = ? AND low = ? AND high = ?
               ORDER BY sample"""
    for record, _ in derived_lines(run.folder, COMBINED, Verdict):
        asked = record["question"]
        place = (asked["item"], asked["criterion"], *_ends(asked["responses"]))
        samples = [orjson.loads(body)["label"] for (body,) in database.execute(query, (number, *place))]
        yield *place, _verdict_columns(record) | {"samples": samples}


def _pair_units(database: sqlite3.Connection, number: int, run: JudgeRun) -> Iterator[tuple[Any, ...]]:
    by_scores = run.kind == "from-absolute"
    one = "SELECT shown, body FROM verdicts WHERE judge = ? AND key = ?"
    every = """SELECT shown, body FROM verdicts WHERE judge = ? AND item = ? AND criterion = ? AND low = ? AND high = ?
               ORDER BY sample, shown"""
    for record, _ in derived_lines(run.folder, PREFERENCES, PreferenceLine):
        low, high = record["pair"]
        place = (record["item"], record["criterion"], low, high)
        body = {name: record.get(name) for name in ("status", "logit_a", "position_bias")}
        body |= {"choice": outcome_of(record), "reason": record["reason"] or None}
        found = [database.execute(one, (number, key)).fetchone() for key in record["orders"]]
        joined = any(each is None for each in found)  # of several samples, which has a key of its own
        asked = [
            (shown == low, orjson.loads(each))
            for shown, each in (database.execute(every, (number, *place)) if joined else found)
        ]
        names = SIDES if by_scores else ORDERS
        if joined:
            body["samples"] = {
                name: [each["label"] for first, each in asked if first == (name == names[0])] for name in names
            }
        for first, verdict in () if joined else asked:  # of scores that were drawn again, the last decided
            body |= {f"{name}_{names[not first]}": verdict[name] for name in OF_AN_ORDER}
        orders = [each for _, each in asked]
        body["rubric"] = orders[0]["rubric"] if orders else None
        for name in ("tokens_in", "tokens_out", "cost"):
            spent = [order[name] for order in orders if order[name] is not None]
            body[name] = sum(spent) if spent else None
        yield *place, body


def _total(database: sqlite3.Connection, number: int, item: str, response: int) -> float | None:
    query = "SELECT total FROM totals WHERE judge = ? AND item = ? AND response = ?"
    found = database.execute(query, (number, item, response)).fetchone()
    return None if found is None else found[0]


def _panel_lines(folder: Path, database: sqlite3.Connection) -> bool:
    """Put the joint verdicts of a panel into a table of their own; False where there are several of one question."""
    database.execute("CREATE TABLE joint (item, criterion, low, high, body, PRIMARY KEY (item, criterion, low, high))")
    for record, _ in derived_lines(folder, "panel.jsonl", PanelLine):
        if record["sample"]:
            return False
        place = (record["item"], record["criterion"], *_ends(record["responses"]))
        body = orjson.dumps({name: record[name] for name in JOINT})
        database.execute("INSERT OR REPLACE INTO joint VALUES (?, ?, ?, ?, ?)", (*place, body))
    return True


def _is_there(path: str | Path) -> bool:
    return is_address(str(path)) or Path(path).exists()


def _at(values: list[Any], index: int) -> Any:
    return values[index] if 0 <= index < len(values) else None
