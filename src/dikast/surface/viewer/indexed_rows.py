"""The rows of a run as the index of the viewer keeps them: what is searched, and what an item's page is made of."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dikast.audit.tables.record_rows import GoldOfItems, gold_by_item
from dikast.audit.tables.run_rows import ASKED_ONCE, JOINT, ORDERS, Pairs, RunRows, gold_scale_of, has_gold
from dikast.core.runs.rubrics import written_rubrics
from dikast.core.runs.run_files import GOLD, VERDICTS
from dikast.core.verdict import Status
from dikast.surface.report.gaps import Scales, gap_of, label_of
from dikast.surface.report.queue import anchor_of, kept_of


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


class IndexedRow(NamedTuple):
    """A row as the table has it, apart from run and place: what is searched, and what is kept; of its `answers` so
    many `failed`.
    """

    searched: tuple[Any, ...]
    kept: tuple[Any, ...]
    answers: int
    failed: int


def indexed_rows(folder: Path) -> Iterator[IndexedRow]:
    """The rows of a run."""
    gold = gold_by_item(folder / GOLD, ["gold"]) if has_gold(folder) else GoldOfItems()
    rows = _AskedRows(str(folder), gold=gold, gold_scale=gold_scale_of(folder))
    rubrics = written_rubrics(folder)
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
        asked_in = [f"status_{order}" for order in ORDERS if f"status_{order}" in row] or ["status"]
        failed = sum(row[name] != Status.OK for name in asked_in)
        yield IndexedRow(searched, (*asked, orjson.dumps(kept).decode(), scales.of(row)), len(offsets), failed)


def _starts(path: Path) -> "array[int]":
    """Where each line of a file begins."""
    starts, at = array("Q"), 0
    with path.open("rb") as file:
        for line in file:
            starts.append(at)
            at += len(line)
    return starts
