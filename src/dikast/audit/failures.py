"""Failure first: how many verdicts there are, why the others are missing, and how they came about."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dikast.audit.columns import Words
from dikast.audit.estimate import Estimate
from dikast.audit.intervals import share, wilson
from dikast.audit.report import Cell, Table, table

Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
OK = "ok"
FORCED = "forced"  # the verdict marker was added for the model
_FINE = frozenset({OK, "stop", "success"})


def rate(hits: float, n: int, level: float = 0.95, *, dropped: int = 0, note: str = "") -> Estimate:
    """A share of independent observations with Wilson's interval; NaN of none."""
    value = hits / n if n else float("nan")
    return Estimate(value, n, *wilson(hits, n, level), level, "Wilson", dropped, note)


def failed_before(status: Words | None, n: int) -> Masks:
    """Rows (n,) whose status names a failure; a missing status says nothing."""
    if status is None:
        return np.zeros(n, bool)
    bad = np.array([name.casefold() not in _FINE for name in status.names] or [False])
    return np.asarray((status.codes >= 0) & bad[status.codes])


def statuses(ok: Masks, told: Words | None, more: Mapping[str, Masks]) -> Words:
    """One status a row (n,): `ok`, what its status column says, or the first of `more` that holds."""
    codes = np.where(ok, 0, -1)
    names = {OK: 0}
    if told is not None:
        failed = failed_before(told, len(ok)) & ~ok
        place = np.array([names.setdefault(name, len(names)) for name in told.names] or [0])
        codes[failed] = place[told.codes[failed]]
    for name, mask in more.items():
        if (mask & (codes < 0)).any():
            codes[mask & (codes < 0)] = names.setdefault(name, len(names))
    return Words(codes, list(names))


def joined_status(one: Words, two: Words) -> Words:
    """One status (n,) for two verdicts: `ok` if both are, else that of the first that is not."""
    names = {name: code for code, name in enumerate(one.names)}
    place = np.array([names.setdefault(name, len(names)) for name in two.names] or [0])
    return Words(np.where(one.codes == names[OK], place[two.codes], one.codes), list(names))


def joined_marker(one: Words, two: Words) -> Words:
    """One marker (n,) for two verdicts: `forced` if either was, else that of the first that has one."""
    names = {name: code for code, name in enumerate(one.names)}
    place = np.array([names.setdefault(name, len(names)) for name in two.names] or [0])
    second = np.where(two.codes < 0, -1, place[two.codes])
    forced = names.get(FORCED, -2)
    return Words(np.where((one.codes < 0) | (second == forced), second, one.codes), list(names))


def joined_conflict(one: Words, two: Words) -> Words:
    """One mark (n,) for two verdicts: there if the reply of either contradicts it."""
    return Words(np.where((one.codes >= 0) | (two.codes >= 0), 0, -1), one.names or two.names)


def failure_table(
    status: Words,
    level: float,
    marker: Words | None = None,
    cluster: Codes | None = None,
    conflict: Words | None = None,
    *,
    what: str = "verdicts",
) -> Table:
    """Rate by status (n,); `marker` says which verdicts were forced out of the model, `conflict` which ones are
    contradicted by another verdict of the same reply; these stand in the table where there are any.
    """
    total = len(status.codes)
    ok = status.codes == status.names.index(OK)
    rows: list[list[Cell]] = [["failed", total - int(ok.sum()), share(~ok, level, cluster)]]
    for code, name in enumerate(status.names):
        mine = status.codes == code
        if name == OK or mine.any():
            rows.append([name, int(mine.sum()), share(mine, level, cluster)])
    if marker is not None and len(marker.names):
        forced = np.isin(marker.codes, [i for i, name in enumerate(marker.names) if name == FORCED])
        known = marker.codes >= 0
        inside = None if cluster is None else cluster[known]
        found = share(forced[known], level, inside, note="of the verdicts that were read")
        rows.append(["forced marker", int(forced.sum()), found])
    if conflict is not None and (conflict.codes >= 0).any():
        against = (conflict.codes >= 0) & ok
        found = share(
            against[ok], level, None if cluster is None else cluster[ok], note=f"of the {what} with a verdict"
        )
        rows.append(["conflict in the reply", int(against.sum()), found])
    return table("failures", f"Failures of {total:,} {what}", ("status", "count", "share"), rows)
