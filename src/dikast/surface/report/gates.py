"""Gates for CI: a metric of the audit that must not fall below, or rise above, a value."""

import math
from dataclasses import dataclass
from typing import Literal

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import ONE_ORDER_NAME, Audit
from dikast.core.errors import UserError
from dikast.core.text import near_miss

Side = Literal["under", "over"]


@dataclass(frozen=True, slots=True)
class Gate:
    """`text` as it was asked for, the value found (None where undefined), and the limit."""

    text: str
    metric: str
    side: Side
    limit: float
    run: str
    value: float | None
    low: float | None = None
    high: float | None = None
    full: str = ""  # the metric's full name, if it concerns one order of pairs only
    n: int | None = None  # of the value; None if the value is not an estimate

    @property
    def met(self) -> bool:
        """Undefined never meets a gate."""
        return self.value is not None and self._holds(self.value)

    def _holds(self, value: float) -> bool:
        return value >= self.limit if self.side == "under" else value <= self.limit

    def __str__(self) -> str:
        value = "undefined" if self.value is None else f"{self.value:z.4f}"
        if self.value is not None and self._holds(float(value)) != self.met:  # rounded to the other side of the limit
            value = f"{self.value!r}"
        value += "" if self.low is None or self.high is None else f" [{self.low:z.4f}, {self.high:z.4f}]"
        value += "" if self.n is None else f" (n = {self.n:,})"
        return (
            f"{self.run}: {self.metric}{f' ({self.full})' if self.full else ''} is {value}, "
            f"{'at least' if self.side == 'under' else 'at most'} {self.limit:g}"
        )


def check(audit: Audit | None, run: str, side: Side, text: str) -> Gate:
    """`METRIC=VALUE`, where a metric is a row of a table (`pearson`, `failed`), or `TABLE/ROW/COLUMN`.

    `.low` and `.high` after it take that end of the interval, so that a gate on `pearson.low` takes the uncertainty
    into account. A run without an audit has no metric, so no gate on it is met.
    """
    metric, _, limit = text.partition("=")
    try:
        number = float(limit)
    except ValueError:
        raise UserError(f"--fail-{side} {text!r}: write METRIC=VALUE, such as pearson=.7 or failed=.02") from None
    if audit is None:
        return Gate(text, metric, side, number, run, None)
    name, _, end = metric.rpartition(".") if metric.endswith((".low", ".high")) else (metric, "", "value")
    cell = _cell(audit, name, f"--fail-{side}")
    if isinstance(cell, Estimate):
        value = float(getattr(cell, end))
    elif end != "value":
        raise UserError(f"--fail-{side} {text!r}: {name} has no interval")
    else:
        value = float(cell)
    ends = (cell.low, cell.high) if isinstance(cell, Estimate) and end == "value" else (math.nan, math.nan)
    number_of, low, high = (None if math.isnan(each) else float(each) + 0.0 for each in (value, *ends))
    full = next((each for each, other in metrics(audit).items() if other is cell and "/" in each), "")
    one_order = bool(full) and audit[full.partition("/")[0]].one_order
    n = cell.n if isinstance(cell, Estimate) else None
    told = f"{full}{ONE_ORDER_NAME}" if one_order else ""
    return Gate(text, metric, side, number, run, number_of, low, high, told, n)


def metrics(audit: Audit) -> dict[str, Estimate | float]:
    """Every number of an audit by its full name; also by the name of its row where that is the only one."""
    full: dict[str, Estimate | float] = {}
    short: dict[str, list[Estimate | float]] = {}
    for table in audit:
        for cells in table.rows:
            for column, cell in list(zip(table.columns, cells, strict=True))[1:]:
                if isinstance(cell, bool) or not isinstance(cell, Estimate | int | float):
                    continue
                full[f"{table.name}/{cells[0]}/{column}"] = cell
                if table.name in ("agreement", "failures", "orders", "accuracy") and isinstance(cell, Estimate):
                    short.setdefault(str(cells[0]), []).append(cell)
    return {**{name: found[0] for name, found in short.items()}, **full}


def _cell(audit: Audit, name: str, option: str) -> Estimate | float:
    known = metrics(audit)
    if name not in known:
        near = near_miss(name, list(known))
        brief = [each for each in known if "/" not in each]
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(brief)}, and TABLE/ROW/COLUMN of any table"
        raise UserError(f"{option} {name!r}: there is no such metric: {hint}")
    return known[name]
