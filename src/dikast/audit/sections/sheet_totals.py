"""Weighted totals of responses that a run graded by the criteria of a sheet with unequal weights."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.statistics.building_blocks.exact_means import settled
from dikast.audit.tables.columns import group_codes
from dikast.audit.tables.load import Data
from dikast.audit.tables.scored import Scored
from dikast.core.errors import DataError, UserError
from dikast.core.rubric import Sheet, load_rubric
from dikast.core.runs.judge_lock import read_lock
from dikast.core.runs.rubrics import load_rubrics, load_sheets
from dikast.core.runs.run_files import AGAIN, LOCK, RUBRICS


class Totals(NamedTuple):
    """A row for each response: `rows`, where its first verdict stands; `given`, its total as the score; `weights`, what
    the criteria count, in words.
    """

    rows: NDArray[np.int64]
    given: Scored
    weights: str


def sheet_totals(data: Data, given: Scored) -> Totals | None:
    """The weighted mean of each response's scores over its criteria; None where no weights differ.

    A response without a score by one of its criteria has no total. Criteria that --where left out do not count.
    """
    folder = data.plan.file
    if not folder.is_dir() or not (folder / RUBRICS).exists():
        return None
    own = load_sheets(folder, load_rubrics(folder))
    shared = _shared(data)
    asked = {data.words["criterion"].names[code] for code in np.unique(data.words["criterion"].codes) if code >= 0}
    sheets = {name: _weights(sheet, asked) for name, sheet in own.items()}
    rest = {} if shared is None else _weights(shared, asked)
    unequal = [each for each in (rest, *sheets.values()) if len(set(each.values())) > 1]
    if not unequal:
        return None
    items, criteria = data.words["item"], data.words["criterion"]
    names = [(items.names[i], criteria.names[j]) for i, j in zip(items.codes, criteria.codes, strict=True)]
    of_rows = [_of_row(sheets.get(item, rest), criterion) for item, criterion in names]
    weight = np.array([each[criterion] for each, (_, criterion) in zip(of_rows, names, strict=True)])
    codes, _ = group_codes([items, data.words["response"]])
    _, rows, place = np.unique(codes, return_index=True, return_inverse=True)
    due = np.array([len(of_rows[row]) for row in rows])
    weight /= np.bincount(place, weight)[place]
    total = np.where(np.bincount(place) < due, np.nan, settled(np.bincount(place, weight * given.score)))
    alike = all(each == unequal[0] for each in unequal)
    told = ", ".join(f"{name} {each:g}" for name, each in unequal[0].items()) if alike else "of each item's own sheet"
    nobody = np.full(len(rows), np.nan)
    view = replace(
        given, score=total, status=given.status._replace(codes=given.status.codes[rows]), gold=nobody,
        raters=np.zeros((0, len(rows))), cluster=None if given.cluster is None else given.cluster[rows],
        own=None if given.own is None else given.own.rows(rows), raw=None,
    )  # fmt: skip
    return Totals(rows, view, told)


def weights_told(totals: Totals) -> str:
    """What the weights of criteria change, and what they do not."""
    return (
        f"criteria weigh unequally ({totals.weights}): figures of all rows count each verdict alike; the leaderboard, "
        "and without gold the row 'responses, by weight', show weighted means of responses"
    )


def _of_row(sheet: Mapping[str, float], criterion: str) -> Mapping[str, float]:
    """The weights that a row's response is summed by: of the sheet, or of a single rubric that its item brought."""
    return sheet if criterion in sheet else {criterion: 1.0}


def _shared(data: Data) -> Sheet | None:
    """The sheet that all items without their own were graded by."""
    told = (read_lock(data.plan.file) or {}).get("rubric")
    try:
        found = load_rubric(told) if told is not None else None
    except UserError as error:
        raise DataError(f"{error}; {AGAIN}", path=str(data.plan.file / LOCK), field="rubric") from error
    return found if isinstance(found, Sheet) else None


def _weights(sheet: Sheet, asked: set[str]) -> Mapping[str, float]:
    return {rubric.name: rubric.weight for rubric in sheet if rubric.name in asked}
