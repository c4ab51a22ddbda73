"""Rows that are in memory already."""

from decimal import Decimal
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.records.rows_in_memory import rows_in

ROWS = [{"instruction": "q", "response": "a", "gold": 3}, {"instruction": "r", "response": "b", "gold": None}]
PLAIN = [{"instruction": "q", "response": "a", "gold": 3}, {"instruction": "r", "response": "b"}]


def test_lists_and_single_rows() -> None:
    assert list(rows_in(ROWS)) == PLAIN
    assert list(rows_in(each for each in ROWS)) == PLAIN
    assert list(rows_in(ROWS[0])) == PLAIN[:1]
    item = Item.of("q", "a")
    assert list(rows_in(item)) == [item]
    assert list(rows_in([item, ROWS[0]])) == [item, PLAIN[0]]


def test_frames_tables_and_data_sets() -> None:
    import datasets
    import numpy as np
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

    assert list(rows_in(pd.DataFrame(ROWS))) == PLAIN  # gold is float64 there, 3.0 == 3
    assert list(rows_in(pa.Table.from_pylist(ROWS))) == PLAIN
    assert list(rows_in(datasets.Dataset.from_list(ROWS))) == PLAIN
    (row,) = rows_in(pd.DataFrame({"responses": [np.array(["a", "b"])], "gold": [np.array([1, np.nan])]}))
    assert row == {"responses": ["a", "b"], "gold": [1.0, None]}
    (row,) = rows_in(pd.DataFrame({"gold": pd.array([pd.NA], dtype="Int64"), "id": ["x"], "at": [pd.NaT]}))
    assert row == {"id": "x"}


@pytest.mark.parametrize(
    ("data", "told"), [("x.jsonl", "the path of a file"), (3, "not int"), ([1], "row 0 of the items is int")]
)
def test_what_holds_no_rows(data: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        list(rows_in(data))


def test_dates_and_durations_become_text() -> None:
    pd = pytest.importorskip("pandas")
    day = pd.Timestamp("2025-01-01T12:30")
    frame = pd.DataFrame({"response": ["a", "b"], "when": [day, pd.NaT], "took": [pd.Timedelta(seconds=2), pd.NaT]})
    assert list(rows_in(frame)) == [
        {"response": "a", "when": "2025-01-01T12:30:00", "took": "0 days 00:00:02"},
        {"response": "b"},
    ]
    assert list(rows_in([{"day": day.date(), "cost": Decimal("1.50")}])) == [{"day": "2025-01-01", "cost": "1.50"}]
