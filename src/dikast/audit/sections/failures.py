"""Failures: how many verdicts there are, why others are missing, and how many are forced."""

import numpy as np
from numpy.typing import NDArray

from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import Failures
from dikast.audit.statistics.intervals import share
from dikast.audit.tables.columns import Words
from dikast.audit.tables.statuses import FORCED, OK
from dikast.core.text import counted

Codes = NDArray[np.int64]


def failure_table(
    status: Words,
    level: float,
    marker: Words | None = None,
    cluster: Codes | None = None,
    conflict: Words | None = None,
    *,
    what: str = "verdict",
) -> Table:
    """Rate by status (n,); `marker` says which verdicts were forced out of the model, `conflict` which ones are
    contradicted by another verdict of the same reply; these stand in the table where there are any.
    """
    total = len(status.codes)
    ok = status.codes == status.names.index(OK)
    failed = share(~ok, level, cluster)
    forced_share, conflicts = None, None
    rows: list[list[Cell]] = [["failed", total - int(ok.sum()), failed]]
    lost: dict[str, int] = {}
    for code, name in enumerate(status.names):
        mine = status.codes == code
        if name == OK or mine.any():
            rows.append([name, int(mine.sum()), share(mine, level, cluster)])
        if name != OK and mine.any():
            lost[name] = int(mine.sum())
    known = ok & (marker.codes >= 0) if marker is not None else np.zeros(total, bool)  # a failure may have a marker too
    if marker is not None and known.any():
        forced = known & np.isin(marker.codes, [i for i, name in enumerate(marker.names) if name == FORCED])
        inside = None if cluster is None else cluster[known]
        forced_share = share(forced[known], level, inside, note=f"of the {what}s read at a marker")
        rows.append(["forced marker", int(forced.sum()), forced_share])
    if conflict is not None and (conflict.codes >= 0).any():
        against = (conflict.codes >= 0) & ok
        conflicts = share(
            against[ok], level, None if cluster is None else cluster[ok], note=f"of the {what}s with a verdict"
        )
        rows.append(["conflict in the reply", int(against.sum()), conflicts])
    rest = [
        (name, each) for name, each in (("forced marker", forced_share), ("conflict in the reply", conflicts)) if each
    ]
    told = [f"{name}: share {each.note}, n {each.n:,}" for name, each in rest if each.n != total]
    result = Failures(failed, lost, forced_share, conflicts)
    title = f"Failures of {counted(total, what)}"
    return table("failures", title, ("status", "count", "share"), rows, *told, result=result)
