"""The same figures per slice (rubric, data set, model), with Holm's correction and the worst decile."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.rendering import Cell, Table, by_slice, table
from dikast.audit.sections.scores import spread_of
from dikast.audit.statistics.against_gold.measures import RATES
from dikast.audit.statistics.agreement import BY_ROW, range_of
from dikast.audit.statistics.building_blocks.linearised import ORDER, linear_pearson, squashed_interval
from dikast.audit.statistics.concordance import by_item
from dikast.audit.statistics.intervals import Resampling, error_of, fisher, mean_estimate, share
from dikast.audit.statistics.significance import Against, holm, student, two_correlations, two_rates
from dikast.audit.tables.columns import rows_by
from dikast.audit.tables.row_scales import is_narrow
from dikast.audit.tables.scored import Scored
from dikast.core.scale import Scale
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
Slices = list[tuple[tuple[Codes, list[str]], str]]  # codes of rows and names of the slices, and what they are by
COUNTS = ("total", "n", "failed")  # of each slice: all of its rows, those its figures are of, and the share that failed
_DRAWN = 100  # with more slices, intervals are Fisher's, Wilson's and linearised: drawing them would take minutes
_FEW_DRAWS = 200  # then, of what is not linearised
_NOT_DRAWN = (
    f"with more than {_DRAWN} slices most intervals are formulas in place of a bootstrap: Fisher's for pearson (in"
    f" clusters linearised), linearised for rank correlations, Student's for mae and bias; kappas take at most"
    f" {_FEW_DRAWS} draws"
)


def slice_table(
    codes: Codes, names: Sequence[str], given: Scored, how: Resampling, by: str, scales: Sequence[Scale] = ()
) -> Table:
    """One row a slice. `p` asks whether its exact agreement (without a scale: its correlation) is that of the rest.

    `scales` are those of the slices, where each slice is a scale: within one label of a scale of two is everything.
    """
    kinds = given.kinds
    paired = given.paired
    tests: list[float] = []
    rows: list[list[Cell]] = []
    r_all: list[float] = []
    hits = (paired & (given.score == given.gold)).astype(np.float64)
    everything = hits.sum(), int(paired.sum())
    cluster = given.cluster
    against = None if cluster is None else Against(hits[paired], cluster[paired])
    place = np.cumsum(paired) - 1
    for code, (name, part) in enumerate(zip(names, rows_by(codes, len(names)), strict=True)):
        chosen = part[paired[part]]
        found = _measured(given, chosen, kinds, how, len(part) - len(chosen), drawn=len(names) <= _DRAWN)
        if scales and is_narrow(scales[code]):
            found["within_1"] = undefined(len(chosen), "all values of the scale are within 1", level=how.level)
        inside = None if cluster is None else cluster[part]
        if given.shared and against is not None:
            tests.append(against.p(place[chosen]))
        elif given.shared:
            mine = hits[chosen].sum(), len(chosen)
            tests.append(two_rates(*mine, everything[0] - mine[0], everything[1] - mine[1]))
        else:
            tests.append(_other_correlation(given, chosen))
        shown: list[Cell] = [name, len(part), len(chosen), share(np.isnan(given.score[part]), how.level, inside)]
        rows.append([*shown, *(found[kind] for kind in kinds)])
        r_all.append(found["pearson"].value)
    adjusted = holm(tests)
    cells: list[list[Cell]] = [[*row, p, q] for row, p, q in zip(rows, tests, adjusted, strict=True)]
    columns = (by, *COUNTS, *kinds, "p", "p (Holm)")
    return table(
        f"by {by}",
        f"By {by}: {counted(len(names), 'slice')}{given.unit}",
        columns,
        cells,
        f"p: {'exact agreement' if given.shared else 'correlation'} of the slice against all the rest"
        + (", by cluster" if cluster is not None else ""),
        counts_told("rows", "score and gold"),
        _NOT_DRAWN if len(names) > _DRAWN else "",
        worst_decile(names, r_all, "Pearson"),
        result=by_slice(by, columns, cells),
    )


def unlabelled_table(
    slices: Sequence[tuple[str, Masks]], given: Scored, how: Resampling, by: str, totals: Scored | None = None
) -> Table:
    """Without gold: how often each slice failed, its mean score, and how evenly labels are used.

    `totals`, the weighted totals of responses where criteria weigh unequally, are a row of their own.
    """
    rows: list[list[Cell]] = []
    for name, mine in slices:
        kept = mine & ~np.isnan(given.score)
        inside = given.clusters(kept)
        failed = share(np.isnan(given.score[mine]), how.level, given.clusters(mine))
        lost = int((mine & ~kept).sum())
        mean = mean_estimate(given.score[kept], how.level, inside, dropped=lost, within=given.bounds)
        rows.append(
            [
                name,
                int(mine.sum()),
                int(kept.sum()),
                failed,
                mean,
                spread_of(given.score[kept], given.scale, how, inside),
            ]
        )
    if totals is not None:
        known = ~np.isnan(totals.score)
        failed = share(~known, how.level, totals.cluster)
        mean = mean_estimate(
            totals.score[known], how.level, totals.clusters(known), dropped=int((~known).sum()), within=totals.bounds
        )
        rows.append(["responses, by weight", len(known), int(known.sum()), failed, mean, None])
    columns = (by or "rows", *COUNTS, "mean score", "discrimination")
    return table(
        f"by {by}" if by else "scores",
        (f"By {by}: {counted(len(slices), 'slice')}, without gold" if by else "Scores, without gold") + given.unit,
        columns,
        rows,
        "without gold it is unknown which verdicts are right",
        counts_told("rows", "score"),
        result=by_slice(by, columns, rows) if by else None,
    )


def counts_told(rows: str, having: str, of: str = "the figures") -> str:
    """What the columns COUNTS of a table of slices count."""
    return f"total: all {rows}, of which failed is the share without a verdict; n: those with {having}, for {of}"


def worst_decile(names: Sequence[str], values: Sequence[float], what: str) -> str:
    """The mean over the worst tenth of the slices (at least one), and which they are."""
    known = sorted((value, name) for name, value in zip(names, values, strict=True) if not math.isnan(value))
    if len(known) < 2:
        return ""
    worst = known[: math.ceil(len(known) / 10)]
    mean = sum(value for value, _ in worst) / len(worst)
    named = ", ".join(name for _, name in worst[:5]) + (", ..." if len(worst) > 5 else "")
    lost = len(values) - len(known)
    more = f"; undefined in {lost}" if lost else ""
    picked = "selected as the worst, so it looks worse than it is by chance: no interval"
    return f"worst decile ({len(worst)} of {len(known)}): mean {what} {mean:z.4f} ({named}){more}; {picked}"


def _measured(
    given: Scored, chosen: Codes, kinds: Sequence[str], how: Resampling, dropped: int, *, drawn: bool
) -> dict[str, Estimate]:
    if drawn:
        return given.measured(chosen, kinds, how, dropped=dropped)
    score, gold = given.score[chosen], given.gold[chosen]
    found, n = {}, len(score)
    cluster = None if given.cluster is None else given.cluster[chosen]
    order = by_item(given.score_for("kendall_tau_b")[chosen], gold) if n else None
    for kind in kinds:
        if order is None:
            found[kind] = Estimate(math.nan, 0, level=how.level, dropped=dropped)
        elif kind in RATES:
            found[kind] = share(BY_ROW[kind](score, gold), how.level, cluster, dropped=dropped)
        elif kind in BY_ROW:
            worth = BY_ROW[kind](score, gold)
            bounds = range_of(kind, given.bounds)
            found[kind] = mean_estimate(worth, how.level, cluster, dropped=dropped, within=bounds)
        elif kind == "pearson" or kind in ORDER:
            each = linear_pearson(score, gold) if kind == "pearson" else ORDER[kind](order)
            least = 0.0 if kind == "ordered_pairs" else -1.0
            interval = squashed_interval(each, how.level, cluster, least=least)
            if kind == "pearson" and cluster is None:
                interval = fisher(each.value, n, how.level)
            method = "Fisher" if kind == "pearson" and cluster is None else "linearised"
            found[kind] = Estimate(each.value, n, *interval, how.level, method, dropped)
    if others := [kind for kind in kinds if kind not in found]:
        few = Resampling(min(how.draws, _FEW_DRAWS), how.level, how.seed)
        found |= given.measured(chosen, others, few, dropped=dropped)
    return found


def _other_correlation(given: Scored, chosen: Codes) -> float:
    """p-value that the slice's correlation is that of all other rows."""
    rest = given.paired.copy()
    rest[chosen] = False
    others = np.flatnonzero(rest)
    if len(chosen) == 0 or len(others) == 0:
        return math.nan
    mine, theirs = (linear_pearson(given.score[each], given.gold[each]) for each in (chosen, others))
    if given.cluster is None:
        return two_correlations(mine.value, len(chosen), theirs.value, len(others))
    if not (abs(mine.value) < 1 and abs(theirs.value) < 1):
        return math.nan
    parts = np.concatenate([mine.parts / (1 - mine.value**2), -theirs.parts / (1 - theirs.value**2)])
    found = error_of(parts, given.cluster[np.concatenate([chosen, others])])
    return student(math.atanh(mine.value) - math.atanh(theirs.value), found)
