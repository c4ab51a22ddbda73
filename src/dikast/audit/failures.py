"""Failure first: how many verdicts there are, why the others are missing, and how they came about."""

from collections.abc import Mapping

import numpy as np

from dikast.audit.columns import Words
from dikast.audit.estimate import Estimate
from dikast.audit.intervals import wilson
from dikast.audit.report import Cell, Table, table


def rate(hits: float, n: int, level: float = 0.95, *, dropped: int = 0, note: str = "") -> Estimate:
    """A share of independent observations with Wilson's interval; NaN of none."""
    value = hits / n if n else float("nan")
    return Estimate(value, n, *wilson(hits, n, level), level, "Wilson", dropped, note)


def failure_table(statuses: Mapping[str, int], level: float, marker: Words | None = None) -> Table:
    """Rate by status; `marker` says which verdicts were forced out of the model."""
    total = sum(statuses.values())
    failed = total - statuses.get("ok", 0)
    rows: list[list[Cell]] = [["failed", failed, rate(failed, total, level)]]
    rows += [[name, count, rate(count, total, level)] for name, count in statuses.items()]
    if marker is not None and len(marker.names):
        forced = int(np.isin(marker.codes, [i for i, name in enumerate(marker.names) if name == "forced"]).sum())
        known = int((marker.codes >= 0).sum())
        rows.append(["forced marker", forced, rate(forced, known, level, note="of the verdicts that were read")])
    return table("failures", f"Failures of {total:,} verdicts", ("status", "count", "share"), rows)
