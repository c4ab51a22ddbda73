"""Conformal intervals and sets of an audit: how wide they are and how often they hold gold, cross-fitted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import ScoreIntervals
from dikast.audit.sections.label_probabilities import Distributions
from dikast.audit.statistics import calibration as cal
from dikast.audit.statistics import conformal
from dikast.audit.statistics.building_blocks.exact_means import settled
from dikast.audit.statistics.intervals import Resampling, clusters_of, error_of, kept_within, mean_estimate, share
from dikast.audit.tables.columns import rows_by
from dikast.core.confidence import t_of
from dikast.core.scale import Scale

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
AIM = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """What conformal intervals are built around: a score for each row, and a distribution where there is one."""

    centre: Floats
    distributions: Distributions | None
    scale: Scale


class Sizes(NamedTuple):
    """Whether gold is held (n,), and sizes (n,): as found, and at both ends of the interval of the quantile."""

    held: Masks
    found: Floats
    low: Floats
    high: Floats


def conformal_table(
    given: Centres, gold: Floats, how: Resampling, cluster: Codes | None, slices: tuple[Codes, Sequence[str]] | None
) -> Table | None:
    """Width and coverage of cross-fitted conformal intervals: one radius for all, and one for each slice (Mondrian)."""
    used = ~np.isnan(given.centre) & ~np.isnan(gold)
    if int(used.sum()) < cal.LEAST:
        return None
    centre, true, scale = given.centre[used], gold[used], given.scale
    codes = None if cluster is None else clusters_of(cluster[used])
    group = np.zeros(len(true), np.int64) if slices is None else slices[0][used]
    names = ["all"] if slices is None else list(slices[1])
    fold = cal.folds_of(len(true), cal.FOLDS, how.rng(), codes)
    views = [_intervals(centre, true, fold, each, scale, how.level, codes) for each in (np.zeros_like(group), group)]
    p = given.distributions.probabilities[used] if given.distributions is not None else None
    sets = _sets(p, true, fold, scale, how.level, codes) if p is not None else None
    parts = [("all", np.arange(len(true)))]
    parts += zip(names, rows_by(group, len(names)), strict=True) if slices is not None else []
    rows: list[list[Cell]] = []
    for name, mine in parts:
        inside = None if codes is None else clusters_of(codes[mine])
        row: list[Cell] = [name, len(mine)]
        for each in views:
            width = _mean(each, mine, how.level, inside, scale.high - scale.low)
            row += [share(each.held[mine], how.level, inside), width, _scaled(width, scale.high - scale.low)]
        if sets is not None:
            row += [share(sets.held[mine], how.level, inside), _mean(sets, mine, how.level, inside, len(scale.labels))]
        rows.append(row if len(mine) else [*row[:2], *[None] * (len(row) - 2)])
    columns = ["rows", "n", "coverage", "width", "share of scale", "coverage (own radius)", "width (own)"]
    columns += ["share of scale (own)", *(["coverage of sets", "labels in a set"] if sets is not None else [])]
    return table(
        "conformal",
        f"Conformal intervals around the {'expected score' if p is not None else 'score'}, aiming at {AIM:.0%}",
        columns,
        rows,
        f"radii from the other {cal.FOLDS - 1} of {cal.FOLDS} folds, cut to the scale; 'own': one a slice (Mondrian)",
        "sets: contiguous labels, from probabilities recalibrated on other rows" if sets is not None else "",
        "intervals of widths: the uncertainty of the radius (Woodruff) and of the sample of rows",
        "intervals of coverage are approximate, too wide: radii are fitted to reach the aim, so coverage varies less "
        "than a share of rows does (it lay inside in 100 % of 1,000 simulations)",
        result=ScoreIntervals(width_of_all if isinstance(width_of_all := rows[0][4], Estimate) else None, AIM),
    )


def _mean(given: Sizes, mine: Codes, level: float, cluster: Codes | None, most: float) -> Estimate:
    """A mean size, `most` at the most: the error of the quantile behind it, and that of the rows, as independent."""
    found = mean_estimate(given.found[mine], level, cluster)
    if not len(mine):
        return found
    half = float(np.nan_to_num(found.half_width))
    low = found.value - float(np.hypot(found.value - given.low[mine].mean(), half))
    high = found.value + float(np.hypot(given.high[mine].mean() - found.value, half))
    if high - low < 1e-12:
        return replace(found, method="", note="the quantile falls on one value and every row has the same width")
    return kept_within(replace(found, low=low, high=high, method="Woodruff", note=""), (0.0, float(most)))


def _scaled(given: Estimate, span: float) -> Estimate:
    return replace(given, value=given.value / span, low=given.low / span, high=given.high / span)


def _ends(held: Masks, level: float, cluster: Codes | None) -> tuple[float, float]:
    """Levels between which the true quantile of level AIM lies: AIM +/- the error of the share held (Woodruff 1952)."""
    found = error_of((held - held.mean()) / len(held), cluster)
    half = t_of(level, found.groups - 1) * found.error if found.groups > 1 else 1.0
    return AIM - half, AIM + half


def _intervals(
    centre: Floats, true: Floats, fold: Codes, group: Codes, scale: Scale, level: float, cluster: Codes | None
) -> Sizes:
    residual = settled(np.abs(true - centre))
    parts = _rows_of(group)
    radius = _radii(residual, fold, group, dict.fromkeys(parts, AIM))
    held = residual <= radius
    ends = {
        code: _ends(held[rows], level, None if cluster is None else clusters_of(cluster[rows]))
        for code, rows in parts.items()
    }
    lows, highs = ({code: each[side] for code, each in ends.items()} for side in (0, 1))
    views = [conformal.score_intervals(centre, each, scale.low, scale.high) for each in (
        radius, _radii(residual, fold, group, lows), _radii(residual, fold, group, highs)
    )]  # fmt: skip
    return Sizes(held, *(view.high - view.low for view in views))


def _radii(residual: Floats, fold: Codes, group: Codes, level: dict[int, float]) -> Floats:
    """The radius (n,) of each row from rows of other folds and its own group."""
    out = np.full(len(residual), np.inf)
    for code, rows in _rows_of(group).items():
        given, folds = residual[rows], fold[rows]
        for each in np.unique(folds):
            out[rows[folds == each]] = conformal.conformal_quantile(given[folds != each], level[code])
    return out


def _rows_of(group: Codes) -> dict[int, Codes]:
    """The rows of each group there is, -1 among them."""
    found = rows_by(group + 1, int(group.max(initial=-1)) + 2)
    return {code - 1: rows for code, rows in enumerate(found) if len(rows)}


def _sets(p: Floats, true: Floats, fold: Codes, scale: Scale, level: float, cluster: Codes | None) -> Sizes | None:
    """Whether gold is in each row's set of labels, and the set's size; None where gold lies off the labels.

    Probabilities are first recalibrated (ordinal) on two of the other folds, the threshold is taken from the other two:
    raw ones are often so sure that only the whole scale covers.
    """
    values = np.asarray(scale.values)
    if not np.isin(true, values).all():
        return None
    index = np.searchsorted(values, true)
    calibrated, due = np.empty_like(p), []
    for each in range(cal.FOLDS):
        test = fold == each
        fitted_on, calibrated_on = (np.isin((fold - each) % cal.FOLDS, pair) for pair in ((1, 2), (3, 4)))
        if not (test.any() and fitted_on.any() and calibrated_on.any()):
            return None
        recalibrated = cal.fit_ordinal(p[fitted_on], index[fitted_on])
        masses = conformal.set_masses(recalibrated(p[calibrated_on]))
        due.append(masses[np.arange(len(masses)), index[calibrated_on]])
        calibrated[test] = recalibrated(p[test])

    def sets(aim: float) -> NDArray[np.bool_]:
        out = np.empty(p.shape, bool)
        for each in range(cal.FOLDS):
            test = fold == each
            out[test] = conformal.ordinal_sets(calibrated[test], conformal.conformal_quantile(due[each], aim))
        return out

    found = sets(AIM)
    held = found[np.arange(len(found)), index]
    low, high = _ends(held, level, cluster)
    return Sizes(held, *(each.sum(1).astype(np.float64) for each in (found, sets(low), sets(high))))
