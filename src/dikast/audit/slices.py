"""The same figures per slice (rubric, data set, model), with Holm's correction and the worst decile."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import UNDEFINED, Estimate
from dikast.audit.failures import rate
from dikast.audit.intervals import Resampling, clusters_of, fisher, wilson
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
    hits = (paired & (given.score == given.gold)).astype(np.float64)
    everything = hits.sum(), int(paired.sum())
    for name, part in zip(names, parts, strict=True):
        chosen = part[paired[part]]
        failed = int(np.isnan(given.score[part]).sum())
        found = _measured(given, chosen, kinds, how, len(part) - len(chosen), drawn=len(names) <= _DRAWN)
        if given.scale is not None:
            mine = hits[chosen].sum(), len(chosen)
            tests.append(two_rates(*mine, everything[0] - mine[0], everything[1] - mine[1]))
        else:
            tests.append(_other_correlation(given, chosen))
        shown: list[Cell] = [name, len(chosen), rate(failed, len(part), how.level)]
        rows.append([*shown, *(found[kind] for kind in kinds)])
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
    given: Scored, chosen: Codes, kinds: Sequence[str], how: Resampling, dropped: int, *, drawn: bool
) -> dict[str, Estimate]:
    score, gold = given.score[chosen], given.gold[chosen]
    if drawn:
        cluster = None if given.cluster is None else clusters_of(given.cluster[chosen])
        return measure(score, gold, kinds, how, cluster, dropped=dropped)
    found, n = {}, len(score)
    for kind in kinds:
        value = MEASURES[kind].value(score, gold) if n else math.nan
        interval, method = UNDEFINED, ""
        if kind == "pearson":
            interval, method = fisher(value, n, how.level), "Fisher"
        elif kind in ("exact", "within_1") and n:
            interval, method = wilson(value * n, n, how.level), "Wilson"
        found[kind] = Estimate(value, n, *interval, how.level, method, dropped)
    return found


def _other_correlation(given: Scored, chosen: Codes) -> float:
    """p-value that the slice's correlation is that of all other rows."""
    rest = given.paired.copy()
    rest[chosen] = False
    pearson, others = MEASURES["pearson"].value, int(rest.sum())
    if len(chosen) == 0 or others == 0:
        return math.nan
    mine = pearson(given.score[chosen], given.gold[chosen])
    return two_correlations(mine, len(chosen), pearson(given.score[rest], given.gold[rest]), others)
