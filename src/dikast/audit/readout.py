"""What the probabilities behind the scores add: expected against mode, calibration, conformal width, abstaining."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.audit import calibration as cal
from dikast.audit import conformal
from dikast.audit.estimate import Estimate
from dikast.audit.failures import rate
from dikast.audit.intervals import Resampling, clusters_of, mean_estimate
from dikast.audit.measures import difference, measure
from dikast.audit.report import Cell, Table, counted, table
from dikast.core.scale import Scale

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
FOLDS = 5
LEAST = 50  # labelled rows below which nothing is fitted


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """Probabilities (n, K) over the labels of a scale, NaN in rows that have none; `mass` (n,) before renormalising."""

    probabilities: Floats
    mass: Floats
    scale: Scale

    @property
    def known(self) -> Masks:
        """Rows with a distribution."""
        return ~np.isnan(self.probabilities[:, 0])

    @property
    def expected(self) -> Floats:
        """The mean of the distribution (n,), NaN without one."""
        return np.asarray(self.probabilities @ np.asarray(self.scale.values))

    @property
    def mode(self) -> Floats:
        """The likeliest label's value (n,), the lowest of equals; NaN without a distribution."""
        values = np.asarray(self.scale.values)[np.nan_to_num(self.probabilities).argmax(1)]
        return np.where(self.known, values, np.nan)


def from_logprobs(columns: Sequence[Floats], scale: Scale, floor: float) -> Distributions:
    """From log-probabilities (nats) of the labels in scale order.

    A value at or below `floor` (or missing) means "not among the top k": probability 0. A row with nothing above the
    floor has no distribution; renormalising it would make an opinion (the middle of the scale) out of nothing.
    """
    logs = np.column_stack(columns)
    seen = ~np.isnan(logs) & (logs > floor + 1e-9)
    p = np.where(seen, np.exp(np.where(seen, logs, 0)), 0)
    return _renormalised(p, scale)


def from_objects(values: Sequence[Any], scale: Scale) -> Distributions:
    """From one object label -> probability a row, as verdicts keep it; None where there is none."""
    p = np.zeros((len(values), len(scale.labels)))
    place: dict[str, int] = {}  # labels are spelt the same way a million times over
    for i, value in enumerate(values):
        if not isinstance(value, Mapping):
            continue
        for label, probability in value.items():
            at = place.get(label)
            if at is None:
                matched = scale.match(str(label))
                at = place[label] = -1 if matched is None else scale.labels.index(matched)
            if at >= 0 and isinstance(probability, int | float):
                p[i, at] += probability
    return _renormalised(p, scale)


def _renormalised(p: Floats, scale: Scale) -> Distributions:
    mass = p.sum(1)
    empty = mass <= 0
    shares = p / np.where(empty, 1, mass)[:, None]
    shares[empty] = np.nan
    return Distributions(shares, mass, scale)


def readout_table(
    given: Distributions, gold: Floats, how: Resampling, cluster: Codes | None, family: Codes | None
) -> Table:
    """The likeliest label, the expected score, and the expected score recalibrated on other rows, against gold."""
    rows_used = given.known & ~np.isnan(gold)
    mode, expected, true = given.mode[rows_used], given.expected[rows_used], gold[rows_used]
    codes = _codes(cluster, rows_used)
    names = ["pearson", "spearman", "kendall_tau_b", "mae"]
    first, second = measure(mode, true, names, how, codes), measure(expected, true, names, how, codes)
    less = difference(expected, mode, true, ["pearson", "spearman", "mae"], how, codes)
    rows: list[list[Cell]] = [["likeliest label (mode)", *first.values()], ["expected score", *second.values()]]
    if len(true) >= LEAST:
        fold = cal.folds_of(len(true), FOLDS, how.rng(), codes)

        def fit(train: Masks) -> Callable[[Masks], Floats]:
            learnt = cal.fit_isotonic(expected[train], true[train])
            return lambda test: learnt(expected[test])

        views = {"expected, isotonic (cross-fitted)": cal.cross_fitted(fit, fold)}
        if family is not None:
            views["expected, isotonic by slice"] = cal.cross_fitted(fit, fold, family[rows_used])
        rows += [[name, *measure(view, true, names, how, codes).values()] for name, view in views.items()]
    rows.append(["expected less mode", *(less.get(name) for name in names)])
    lost = int((~given.known).sum())
    note = (
        f"{counted(lost, 'row')} without a usable distribution: failures, not the middle of the scale" if lost else ""
    )
    return table("readout", f"Read-out of {len(true):,} distributions", ("score", *names), rows, note)


def calibration_table(
    given: Distributions, gold: Floats, how: Resampling, cluster: Codes | None, family: Codes | None
) -> Table | None:
    """Before and after recalibration, always fitted on other rows; None where gold is off the labels or too scarce."""
    values = np.asarray(given.scale.values)
    rows_used = given.known & np.isin(gold, values)
    if int(rows_used.sum()) < LEAST:
        return None
    p, true = given.probabilities[rows_used], np.searchsorted(values, gold[rows_used])
    codes = _codes(cluster, rows_used)
    fold = cal.folds_of(len(true), FOLDS, how.rng(), codes)
    families = None if family is None else family[rows_used]
    views = {"as read": p}
    fits: dict[str, Callable[[Floats, Codes], cal.Recalibration]] = {
        "temperature": cal.fit_temperature,
        "ordinal": cal.fit_ordinal,
    }
    for name, fitter in fits.items():

        def fit(
            train: Masks, fitter: Callable[[Floats, Codes], cal.Recalibration] = fitter
        ) -> Callable[[Masks], Floats]:
            learnt = fitter(p[train], true[train])
            return lambda test: learnt(p[test])

        views[name] = cal.cross_fitted(fit, fold)
        if families is not None:
            views[f"{name}, by slice"] = cal.cross_fitted(fit, fold, families)
    rows = [_calibration_row(name, view, true, values, how, codes) for name, view in views.items()]
    columns = ("probabilities", "accuracy", "confidence", "ECE", "Brier", "log loss", "MAE of expected")
    temperature = cal.fit_temperature(p, true).temperature
    return table(
        "calibration",
        f"Calibration on {len(true):,} rows, before and after",
        columns,
        rows,
        f"ECE over {cal.BINS} bins of equal mass; recalibration is fitted on the other {FOLDS - 1} of {FOLDS} folds",
        f"temperature on all rows: {temperature:.3f} (above 1: too sure)",
    )


def _calibration_row(
    name: str, p: Floats, true: Codes, values: Floats, how: Resampling, cluster: Codes | None
) -> list[Cell]:
    sure, right = p.max(1), p.argmax(1) == true
    onehot = np.eye(p.shape[1])[true]
    losses = -np.log(np.maximum(p[np.arange(len(true)), true], 1e-12))
    columns = (right.astype(np.float64), sure, ((p - onehot) ** 2).sum(1), losses, np.abs(p @ values - values[true]))
    accuracy, confidence, *rest = (mean_estimate(each, how.level, cluster) for each in columns)
    return [name, accuracy, confidence, _ece(sure, right, how), *rest]


def _ece(sure: Floats, right: Masks, how: Resampling) -> Estimate:
    """ECE, and an interval from drawing the gap of each bin (normal, with its own error); the bins stay."""
    order, sizes = np.argsort(sure, kind="stable"), [each.n for each in cal.reliability(sure, right)]
    gaps = np.split((sure - right)[order], np.cumsum(sizes)[:-1])
    means, errors = np.array([g.mean() for g in gaps]), np.array([g.std() / np.sqrt(len(g)) for g in gaps])
    drawn = np.abs(how.rng().normal(means, errors, (how.draws, len(gaps)))) @ (np.array(sizes) / len(sure))
    value = cal.expected_calibration_error(sure, right)
    return Estimate(value, len(sure), *how.interval(drawn), how.level, "gaps of bins drawn")


def reliability_table(given: Distributions, gold: Floats, level: float) -> Table:
    """The reliability diagram as a table."""
    rows_used = given.known & ~np.isnan(gold)
    p = given.probabilities[rows_used]
    right = given.mode[rows_used] == gold[rows_used]
    rows: list[list[Cell]] = []
    for each in cal.reliability(p.max(1), right):
        rows.append([f"{len(rows) + 1}", each.n, each.confidence, rate(each.accuracy * each.n, each.n, level)])
    return table("reliability", "Reliability: bins of equal mass", ("bin", "n", "confidence", "accuracy"), rows)


def abstain_table(confidence: Floats, correct: Masks, level: float) -> Table:
    """Accuracy against coverage when the judge may abstain where it is least sure."""
    rows: list[list[Cell]] = [
        [f"{each.coverage:.0%}", each.n, rate(each.hits, each.n, level)]
        for each in conformal.accuracy_coverage(confidence, correct)
    ]
    return table("abstaining", "Exact agreement where the judge is surest", ("coverage", "n", "exact"), rows)


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """What conformal intervals are built around: a score for each row, and a distribution where there is one."""

    centre: Floats
    distributions: Distributions | None
    scale: Scale


def conformal_table(
    given: Centres, gold: Floats, how: Resampling, cluster: Codes | None, slices: tuple[Codes, Sequence[str]] | None
) -> Table | None:
    """Width and coverage of cross-fitted conformal intervals: one radius for all, and one for each slice (Mondrian)."""
    rows_used = ~np.isnan(given.centre) & ~np.isnan(gold)
    if int(rows_used.sum()) < LEAST:
        return None
    centre, true = given.centre[rows_used], gold[rows_used]
    group = np.zeros(len(true), np.int64) if slices is None else slices[0][rows_used]
    names = ["all"] if slices is None else list(slices[1])
    fold = cal.folds_of(len(true), FOLDS, how.rng(), _codes(cluster, rows_used))
    level = _CONFORMAL
    plain, mondrian = _radii(np.abs(true - centre), fold, group, level)
    p = given.distributions.probabilities[rows_used] if given.distributions is not None else None
    inside = _set_rows(p, true, fold, given.scale, level) if p is not None else None
    rows: list[list[Cell]] = []
    parts = [("all", np.ones(len(true), bool))]
    parts += [(name, group == code) for code, name in enumerate(names)] if slices is not None else []
    for name, mine in parts:
        row: list[Cell] = [name, int(mine.sum())]
        for radius in (plain, mondrian):
            row += _interval_cells(centre[mine], radius[mine], true[mine], given.scale, how.level)
        if inside is not None:
            row += [
                rate(int(inside[0][mine].sum()), int(mine.sum()), how.level),
                float(inside[1][mine].mean()) if mine.any() else float("nan"),
            ]
        rows.append(row)
    columns = [
        "rows",
        "n",
        "coverage",
        "width",
        "share of scale",
        "coverage (own radius)",
        "width (own)",
        "share of scale (own)",
    ]
    columns += ["coverage of sets", "labels in a set"] if inside is not None else []
    around = "expected score" if p is not None else "score"
    return table(
        "conformal",
        f"Conformal intervals around the {around}, aiming at {level:.0%}",
        columns,
        rows,
        f"radii from the other {FOLDS - 1} of {FOLDS} folds, cut to the scale; 'own': one a slice (Mondrian)",
        "sets: contiguous labels, from probabilities recalibrated on other rows" if inside is not None else "",
    )


_CONFORMAL = 0.9


def _radii(residual: Floats, fold: Codes, group: Codes, level: float) -> tuple[Floats, Floats]:
    plain, own = np.empty(len(residual)), np.empty(len(residual))
    for each in np.unique(fold):
        train, test = fold != each, fold == each
        plain[test] = conformal.conformal_quantile(residual[train], level)
        radii = conformal.mondrian_quantiles(residual[train], group[train], level)
        own[test] = [radii.get(int(code), np.inf) for code in group[test]]
    return plain, own


def _set_rows(p: Floats, true: Floats, fold: Codes, scale: Scale, level: float) -> tuple[Masks, Floats] | None:
    """Whether gold is in each row's set of labels, and the set's size.

    Probabilities are first recalibrated (ordinal) on two of the other folds, the threshold is taken from the other two:
    raw ones are often so sure that only the whole scale covers.
    """
    values = np.asarray(scale.values)
    if not np.isin(true, values).all():
        return None
    index = np.searchsorted(values, true)
    held, size = np.empty(len(true), bool), np.empty(len(true))
    for each in range(FOLDS):
        test = fold == each
        fitted_on, calibrated_on = (np.isin((fold - each) % FOLDS, pair) for pair in ((1, 2), (3, 4)))
        if not (test.any() and fitted_on.any() and calibrated_on.any()):
            return None
        recalibrated = cal.fit_ordinal(p[fitted_on], index[fitted_on])
        masses = conformal.set_masses(recalibrated(p[calibrated_on]))
        threshold = conformal.conformal_quantile(masses[np.arange(len(masses)), index[calibrated_on]], level)
        sets = conformal.ordinal_sets(recalibrated(p[test]), threshold)
        held[test] = sets[np.arange(len(sets)), index[test]]
        size[test] = sets.sum(1)
    return held, size


def _interval_cells(centre: Floats, radius: Floats, true: Floats, scale: Scale, level: float) -> list[Cell]:
    if len(true) == 0:
        return [None, None, None]
    found = conformal.score_intervals(centre, radius, scale.low, scale.high)
    held = int(((true >= found.low) & (true <= found.high)).sum())
    width = float((found.high - found.low).mean())
    return [rate(held, len(true), level), width, width / (scale.high - scale.low)]


def _codes(cluster: Codes | None, chosen: Masks) -> Codes | None:
    return None if cluster is None else clusters_of(cluster[chosen])
