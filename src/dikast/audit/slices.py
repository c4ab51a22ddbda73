"""The same figures per slice (rubric, data set, model), with Holm's correction and the worst decile."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.failures import rate
from dikast.audit.intervals import Resampling, fisher, wilson
from dikast.audit.measures import MEASURES, measure, measures_for
from dikast.audit.report import Cell, Table, table
from dikast.audit.scored import Scored
from dikast.audit.significance import holm, two_correlations, two_rates

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_SHOWN = ("pearson", "kendall_tau_b", "exact", "within_1", "mae", "bias")
_DRAWN = 100  # with more slices, intervals are Fisher's and Wilson's: drawing them would take minutes


def slice_table(codes: Codes, names: Sequence[str], given: Scored, how: Resampling, by: str) -> Table:
    """One row a slice. `p` asks whether its exact agreement (without a scale: its correlation) is that of the rest."""
    kinds = [name for name in _SHOWN if name in measures_for(given.scale is not None)]
    paired = given.paired
    tests: list[float] = []
    rows: list[list[Cell]] = []
    r_all: list[float] = []
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.searchsorted(codes[order], np.arange(len(names))))[1:]
    hits = paired & (given.score == given.gold)
    for name, part in zip(names, parts, strict=True):
        mine = np.zeros(len(codes), bool)
        mine[part] = True
        chosen, judged = mine & paired, len(part)
        failed = int(np.isnan(given.score[part]).sum())
        found = _measured(given, chosen, kinds, how, drawn=len(names) <= _DRAWN)
        tests.append(_against_rest(given, hits, chosen, paired & ~mine))
        rows.append([name, int(chosen.sum()), rate(failed, judged, how.level), *(found[kind] for kind in kinds)])
        r_all.append(found["pearson"].value)
    adjusted = holm(tests)
    cells: list[list[Cell]] = [[*row, p, q] for row, p, q in zip(rows, tests, adjusted, strict=True)]
    return table(
        f"by {by}",
        f"By {by}: {len(names)} slices",
        (by, "n", "failed", *kinds, "p", "p (Holm)"),
        cells,
        f"p: {'exact agreement' if given.scale is not None else 'correlation'} of the slice against all the rest",
        worst_decile(names, r_all, "Pearson"),
    )


def worst_decile(names: Sequence[str], values: Sequence[float], what: str) -> str:
    """The mean over the worst tenth of the slices (at least one), and which they are."""
    known = sorted((value, name) for name, value in zip(names, values, strict=True) if not math.isnan(value))
    if len(known) < 2:
        return ""
    worst = known[: math.ceil(len(known) / 10)]
    mean = sum(value for value, _ in worst) / len(worst)
    named = ", ".join(name for _, name in worst[:5]) + (", ..." if len(worst) > 5 else "")
    undefined = len(values) - len(known)
    more = f"; undefined in {undefined}" if undefined else ""
    return f"worst decile ({len(worst)} of {len(known)}): mean {what} {mean:.4f} ({named}){more}"


def _measured(
    given: Scored, chosen: NDArray[np.bool_], kinds: Sequence[str], how: Resampling, *, drawn: bool
) -> dict[str, Estimate]:
    score, gold = given.score[chosen], given.gold[chosen]
    if drawn:
        return measure(score, gold, kinds, how, given.clusters(chosen))
    found = {}
    for kind in kinds:
        value, n = MEASURES[kind].value(score, gold) if len(score) else math.nan, len(score)
        if kind == "pearson":
            found[kind] = Estimate(value, n, *fisher(value, n, how.level), how.level, "Fisher")
        elif kind in ("exact", "within_1") and n:
            found[kind] = Estimate(value, n, *wilson(value * n, n, how.level), how.level, "Wilson")
        else:
            found[kind] = Estimate(value, n, level=how.level)
    return found


def _against_rest(given: Scored, hits: NDArray[np.bool_], mine: NDArray[np.bool_], rest: NDArray[np.bool_]) -> float:
    n_mine, n_rest = int(mine.sum()), int(rest.sum())
    if n_mine == 0 or n_rest == 0:
        return math.nan
    if given.scale is not None:
        return two_rates(float(hits[mine].sum()), n_mine, float(hits[rest].sum()), n_rest)
    pearson = MEASURES["pearson"].value
    r_mine, r_rest = pearson(given.score[mine], given.gold[mine]), pearson(given.score[rest], given.gold[rest])
    return two_correlations(r_mine, n_mine, r_rest, n_rest)
