"""What the probabilities behind the scores add: expected against mode, calibration, abstaining."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.audit import calibration as cal
from dikast.audit import conformal
from dikast.audit.estimate import Estimate
from dikast.audit.exact import settled
from dikast.audit.intervals import Resampling, clusters_of, error_of, mean_estimate, share
from dikast.audit.measures import difference, measure
from dikast.audit.report import Cell, Table, counted, table
from dikast.core.distribution import flaw_of_logprobs, flaw_of_shares
from dikast.core.scale import Scale

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """Probabilities (n, K) over the labels of a scale, NaN in rows that have none; `mass` (n,) before renormalising.

    `refused` counts rows that hold numbers which cannot be probabilities; `why` is one of the reasons.
    """

    probabilities: Floats
    mass: Floats
    scale: Scale
    refused: int = 0
    why: str = ""

    @property
    def known(self) -> Masks:
        """Rows with a distribution."""
        return ~np.isnan(self.probabilities[:, 0])

    @property
    def expected(self) -> Floats:
        """The mean of the distribution (n,), NaN without one."""
        return settled(self.probabilities @ np.asarray(self.scale.values), max(map(abs, self.scale.values)))

    @property
    def mode(self) -> Floats:
        """The likeliest label's value (n,), the lowest of equals; NaN without a distribution."""
        values = np.asarray(self.scale.values)[np.nan_to_num(settled(self.probabilities, 1)).argmax(1)]
        return np.where(self.known, values, np.nan)

    @property
    def confidence(self) -> Floats:
        """The probability of the likeliest label (n,), NaN without a distribution."""
        return settled(self.probabilities.max(1), 1)


def from_logprobs(columns: Sequence[Floats], scale: Scale, floor: float) -> Distributions:
    """From log-probabilities (nats) of the labels in scale order.

    A value at or below `floor` (or missing) means "not among the top k": probability 0. A row with nothing above the
    floor has no distribution; renormalising it would make an opinion (the middle of the scale) out of nothing. Nor has
    a row whose values cannot be log-probabilities of different labels.
    """
    logs = np.column_stack(columns)
    seen = ~np.isnan(logs) & (logs > floor + 1e-9)
    p = np.where(seen, np.exp(np.minimum(np.where(seen, logs, 0), 1.0)), 0)
    doubtful = np.flatnonzero((p.sum(1) > 1) | (p > 1).any(1))
    return _renormalised(p, scale, {int(i): flaw_of_logprobs(logs[i][seen[i]].tolist()) for i in doubtful})


def from_objects(values: Sequence[Any], scale: Scale) -> Distributions:
    """From one object label -> probability a row, as verdicts keep it; None where there is none."""
    p = np.zeros((len(values), len(scale.labels)))
    place: dict[str, int] = {}  # labels are spelt the same way a million times over
    flaws: dict[int, str] = {}
    for i, value in enumerate(values):
        if not isinstance(value, Mapping):
            continue
        if flaw := flaw_of_shares(value.values()):
            flaws[i] = flaw
            continue
        for label, probability in value.items():
            at = place.get(label)
            if at is None:
                matched = scale.match(str(label))
                at = place[label] = -1 if matched is None else scale.labels.index(matched)
            if at >= 0:
                p[i, at] += probability
    return _renormalised(p, scale, flaws)


def _renormalised(p: Floats, scale: Scale, flaws: Mapping[int, str]) -> Distributions:
    """Of rows of probabilities, except those with a flaw (by row; "" is none)."""
    flawed = [i for i, flaw in flaws.items() if flaw]
    p[flawed] = 0
    mass = p.sum(1)
    empty = mass <= 0
    shares = p / np.where(empty, 1, mass)[:, None]
    shares[empty] = np.nan
    return Distributions(shares, mass, scale, len(flawed), min((flaws[i] for i in flawed), default=""))


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
    if len(true) >= cal.LEAST:
        fold = cal.folds_of(len(true), cal.FOLDS, how.rng(), codes)

        def fit(train: Masks) -> Callable[[Masks], Floats]:
            learnt = cal.fit_isotonic(expected[train], true[train])
            return lambda test: learnt(expected[test])

        views = {"expected, isotonic (cross-fitted)": cal.cross_fitted(fit, fold)}
        if family is not None:
            views["expected, isotonic by slice"] = cal.cross_fitted(fit, fold, family[rows_used])
        rows += [[name, *measure(view, true, names, how, codes).values()] for name, view in views.items()]
    rows.append(["expected less mode", *(less.get(name) for name in names)])
    lost = int((~given.known).sum())
    why = f" ({given.refused:,} of them cannot be probabilities, such as: {given.why})" if given.refused else ""
    note = (
        f"{counted(lost, 'row')} without a usable distribution{why}: failures, not the middle of the scale"
        if lost
        else ""
    )
    return table("readout", f"Read-out of {len(true):,} distributions", ("score", *names), rows, note)


def calibration_table(
    given: Distributions,
    gold: Floats,
    how: Resampling,
    cluster: Codes | None,
    family: Codes | None,
    *,
    nominal: bool = False,
) -> Table:
    """Before and after recalibration, always fitted on other rows; notes say why there is none.

    `nominal` labels have no order: no ordinal recalibration and no distances.
    """
    values = np.asarray(given.scale.values)
    rows_used = given.known & np.isin(gold, values)
    p, true = given.probabilities[rows_used], np.searchsorted(values, gold[rows_used])
    codes = _codes(cluster, rows_used)
    enough = len(true) >= cal.LEAST
    fold = cal.folds_of(len(true), cal.FOLDS, how.rng(), codes) if enough else np.zeros(0, np.int64)
    families = None if family is None else family[rows_used]
    views = {"as read": p}
    fits: dict[str, Callable[[Floats, Codes], cal.Recalibration]] = {
        "temperature": cal.fit_temperature,
        "ordinal": cal.fit_ordinal,
    }
    if nominal:
        del fits["ordinal"]
    for name, fitter in fits.items() if enough else ():

        def fit(
            train: Masks, fitter: Callable[[Floats, Codes], cal.Recalibration] = fitter
        ) -> Callable[[Masks], Floats]:
            learnt = fitter(p[train], true[train])
            return lambda test: learnt(p[test])

        views[name] = cal.cross_fitted(fit, fold)
        if families is not None:
            views[f"{name}, by slice"] = cal.cross_fitted(fit, fold, families)
    rows = [_calibration_row(name, view, true, values, how, codes) for name, view in views.items() if len(true)]
    columns: tuple[str, ...] = (
        "probabilities",
        "accuracy",
        "confidence",
        "ECE",
        "Brier",
        "log loss",
        "MAE of expected",
    )
    if nominal:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    if not enough:
        between = int((given.known & ~np.isnan(gold)).sum()) - len(true)
        return table(
            "calibration",
            f"Calibration on {counted(len(true), 'row')}",
            columns,
            rows,
            f"only {counted(len(true), 'row')} with probabilities and gold on a label: recalibration takes {cal.LEAST}",
            f"{counted(between, 'row')} left out: gold lies between the labels" if between else "",
        )
    found = cal.temperature_estimate(p, true, how.level, codes)
    return table(
        "calibration",
        f"Calibration on {len(true):,} rows, before and after",
        columns,
        rows,
        f"ECE over {cal.BINS} bins of equal mass",
        f"recalibration is fitted on the other {cal.FOLDS - 1} of {cal.FOLDS} folds",
        f"temperature on {found.n:,} rows: {found:.3f} (above 1: too sure)",
    )


def _calibration_row(
    name: str, p: Floats, true: Codes, values: Floats, how: Resampling, cluster: Codes | None
) -> list[Cell]:
    p = settled(p, 1)
    sure, right = p.max(1), p.argmax(1) == true
    onehot = np.eye(p.shape[1])[true]
    losses = -np.log(np.maximum(p[np.arange(len(true)), true], 1e-12))
    columns = (right.astype(np.float64), sure, ((p - onehot) ** 2).sum(1), losses, np.abs(p @ values - values[true]))
    accuracy, confidence, *rest = (mean_estimate(each, how.level, cluster) for each in columns)
    return [name, accuracy, confidence, _ece(sure, right, how, cluster), *rest]


def _ece(sure: Floats, right: Masks, how: Resampling, cluster: Codes | None) -> Estimate:
    """ECE, and an interval from drawing the gap of each bin (normal, with its own error); the bins stay.

    Chance makes ECE larger, never smaller: of few rows most of it may be chance. The low end is that of the smallest
    share of the gaps with which so large an ECE would be no rarity (the upper percentile of its draws).
    """
    value = cal.expected_calibration_error(sure, right)
    parts = cal.bin_rows(sure)
    gaps = [sure[part] - right[part] for part in parts]
    errors = [
        error_of((gap - gap.mean()) / len(gap), None if cluster is None else cluster[part]).error
        for gap, part in zip(gaps, parts, strict=True)
    ]
    means, sizes = np.array([gap.mean() for gap in gaps]), np.array([len(part) for part in parts])
    noise = how.rng().normal(0, np.nan_to_num(errors), (how.draws, len(gaps)))

    def drawn(share: float) -> Floats:
        return np.asarray(np.abs(share * means + noise) @ (sizes / len(sure)))

    whole = how.interval(drawn(1.0))
    low, high = 0.0, 1.0  # the share of the gaps, by halving
    if how.interval(drawn(low)).high < value:
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (low, middle) if how.interval(drawn(middle)).high >= value else (middle, high)
    ends = (low * value, whole.high) if math.isfinite(whole.high) else whole
    return Estimate(value, len(sure), *ends, how.level, "gaps of bins drawn")


def reliability_table(given: Distributions, gold: Floats, level: float, cluster: Codes | None = None) -> Table:
    """The reliability diagram as a table."""
    rows_used = given.known & ~np.isnan(gold)
    codes = _codes(cluster, rows_used)
    sure, right = given.confidence[rows_used], given.mode[rows_used] == gold[rows_used]
    rows: list[list[Cell]] = []
    for part in cal.bin_rows(sure):
        inside = None if codes is None else codes[part]
        told = mean_estimate(sure[part], level, None if inside is None else clusters_of(inside))
        rows.append([f"{len(rows) + 1}", len(part), told, share(right[part], level, inside)])
    return table("reliability", "Reliability: bins of equal mass", ("bin", "n", "confidence", "accuracy"), rows)


def abstain_table(confidence: Floats, correct: Masks, level: float, cluster: Codes | None = None) -> Table:
    """Accuracy against coverage when the judge may abstain where it is least sure."""
    rows: list[list[Cell]] = [
        [f"{each.coverage:.0%}", len(each.rows), share(correct[each.rows], level, _codes(cluster, each.rows))]
        for each in conformal.accuracy_coverage(confidence)
    ]
    return table("abstaining", "Exact agreement where the judge is surest", ("coverage", "n", "exact"), rows)


def _codes(cluster: Codes | None, chosen: Masks | Codes) -> Codes | None:
    return None if cluster is None else clusters_of(cluster[chosen])
