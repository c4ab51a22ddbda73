"""Rows that are in memory already: lists, data frames, data sets."""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.records.shapes.wrapped_tables import rows_by_columns
from dikast.core.text import hint


def rows_in(data: Any, split: str | None = None) -> Iterator[Item | dict[str, Any]]:
    """The rows of `data` as Items or dicts.

    data: Items or mappings in any iterable (a list, a `datasets.Dataset`); a pandas or polars frame; a pyarrow table; a
    dict of equally long lists, which are columns; a `datasets.DatasetDict`, of which `split` names one. One Item,
    mapping or row of a pandas frame counts as one row. Values that a frame marks as missing (NaN, None, NaT) are left
    out of their row, numpy values become Python's; dates and times become ISO 8601 text, durations and decimals text,
    as those of Parquet do. UserError for anything else, with the number of the row.
    """
    data = _of_split(data, split)
    if type(data).__name__ == "Series" and hasattr(data, "to_frame") and hasattr(data, "index") and not _are_rows(data):
        data = _of_series(data)
    if isinstance(data, Item | Mapping):
        rows = rows_by_columns(data) if isinstance(data, Mapping) else None
        data = [data] if rows is None else rows
    for number, row in enumerate(_rows(data)):
        if isinstance(row, Item):
            yield row
        elif isinstance(row, Mapping):
            yield {str(key): plain for key, value in row.items() if (plain := _plain(value)) is not None}
        else:
            raise UserError(f"row {number} of the items is {type(row).__name__}: give an Item or a dict for each")


def _of_split(data: Any, split: str | None) -> Any:
    """One split of a `datasets.DatasetDict`; UserError where one has to be named, or there is none of that name."""
    if type(data).__name__ not in ("DatasetDict", "IterableDatasetDict"):
        if split:
            raise UserError("split names one of a DatasetDict, or of a data set on the Hub: leave it out")
        return data
    if split is None and len(data) == 1:
        return next(iter(data.values()))
    if split not in data:
        told = hint(split, data) if split else f"name one (split=, or data[{next(iter(data))!r}]): {', '.join(data)}"
        raise UserError(f"the data set has several splits: {told}")
    return data[split]


def _of_series(series: Any) -> Any:
    """One row of a frame, whose index are the columns, as a dict; one column of a frame as a frame."""
    if all(isinstance(each, str) for each in series.index):
        return series.to_dict()
    if not isinstance(series.name, str):
        raise UserError("the items are a Series without a name: name its column (series.to_frame('response'))")
    return series.to_frame()


def _check_names(columns: Any) -> None:
    """UserError for columns of several levels, or two of one name, of which a row as a dict would lose the first."""
    if getattr(columns, "nlevels", 1) > 1:
        told = "give them one name each (frame.columns = ['_'.join(map(str, each)) for each in frame.columns])"
        raise UserError(f"the columns of the frame have {columns.nlevels} levels: {told}")
    names = [str(each) for each in columns]
    if twice := next((each for each in names if names.count(each) > 1), ""):
        raise UserError(f"the frame has several columns called {twice!r}: rename or drop all but one of them")


def _are_rows(series: Iterable[Any]) -> bool:
    """Whether a Series of pandas is a column of rows, not one row of a frame."""
    return isinstance(next(iter(series), None), Item | Mapping)


def _rows(data: Any) -> Iterable[Any]:
    if hasattr(data, "iter_rows"):  # polars
        return data.iter_rows(named=True)  # type: ignore[no-any-return]
    if hasattr(data, "to_pylist"):  # pyarrow
        _check_names(getattr(data, "column_names", ()))
        return data.to_pylist()  # type: ignore[no-any-return]
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        _check_names(data.columns)
        return data.to_dict("records")  # type: ignore[no-any-return]
    if hasattr(data, "collect_schema"):  # a lazy frame of polars
        return _rows(data.collect())
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise UserError(
            f"items are the path of a file, a list of dicts, a data frame or a data set, not {type(data).__name__}"
        )
    return data


def _plain(value: Any) -> Any:
    """Python's own value for numpy's, None for what is missing."""
    if hasattr(value, "tolist") and type(value).__module__.split(".")[0] == "numpy":
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    missing = (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in ("NaTType", "NAType")
    if missing:
        return None
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    return str(value) if isinstance(value, Decimal | timedelta) else value
