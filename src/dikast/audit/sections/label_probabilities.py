"""Statistics of label probabilities: expected score against mode, calibration, abstaining."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import Calibration, Curve, CurvePoint
from dikast.audit.statistics import calibration as cal
from dikast.audit.statistics import conformal
from dikast.audit.statistics.against_gold.measures import difference, measure
from dikast.audit.statistics.building_blocks.exact_means import settled
from dikast.audit.statistics.intervals import Resampling, clusters_of, error_of, mean_estimate, share
from dikast.audit.tables.columns import rows_by
from dikast.audit.tables.row_scales import RowScales
from dikast.core.distribution import flaw_of_logprobs, flaw_of_shares
from dikast.core.scale import Scale
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """Probabilities (n, K) over the labels of a scale, NaN in rows that have none; `mass` (n,) before renormalising.

    `flawed` (n,) are the rows that hold numbers which cannot be probabilities, None without any; `why` is one of the
    reasons.
    """

    probabilities: Floats
    mass: Floats
    scale: Scale
    flawed: Masks | None = None
    why: str = ""

    @property
    def refused(self) -> int:
        """How many rows hold numbers that cannot be probabilities."""
        return 0 if self.flawed is None else int(self.flawed.sum())

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
        """The likeliest label's value (n,), the lowest of equally likely ones; NaN without a distribution."""
        values = np.asarray(self.scale.values)[np.nan_to_num(settled(self.probabilities, 1)).argmax(1)]
        return np.where(self.known, values, np.nan)

    @property
    def tied(self) -> Masks:
        """Rows (n,) in which several labels are equally likely, and none likelier."""
        return self.known & (_labels_of(self.probabilities) < 0)

    @property
    def labels(self) -> "Labels":
        """The likeliest label of each row, none where several are equally likely."""
        return Labels(_labels_of(self.probabilities), "several labels are equally likely")


class Labels(NamedTuple):
    """The label read from each row's probabilities (n,): its place on the scale, -1 for none, and `why` there
    is none.
    """

    codes: Codes
    why: str

    def rows(self, chosen: Masks) -> "Labels":
        """Those of the chosen rows."""
        return Labels(self.codes[chosen], self.why)

    def confidence(self, probabilities: Floats) -> Floats:
        """The probability of each row's label (n,), NaN without one."""
        at = np.maximum(self.codes, 0)
        return np.where(self.codes < 0, np.nan, settled(probabilities[np.arange(len(at)), at], 1))

    def left_out_note(self) -> str:
        """A note on how many rows have no label; none if all have one."""
        lost = int((self.codes < 0).sum())
        return (
            f"accuracy, confidence and ECE leave out {counted(lost, 'row')} of {len(self.codes):,} without a label "
            f"({self.why}): neither right nor wrong"
            if lost
            else ""
        )


def _labels_of(probabilities: Floats) -> Codes:
    """The place (n,) of the greatest probability, -1 where several share it or there is none."""
    rounded = np.nan_to_num(settled(probabilities, 1))
    alone = (rounded == rounded.max(1)[:, None]).sum(1) == 1
    return np.where(alone, rounded.argmax(1), -1)


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


def from_objects_by_scale(values: Sequence[Any], scales: RowScales) -> Distributions | None:
    """The same of rows on several scales, over labels of equal goodness; None where those are not the same on each."""
    shared = scales.shared
    if shared is None:
        return None
    n = len(values)
    found = Distributions(np.full((n, len(shared.labels)), np.nan), np.zeros(n), shared, np.zeros(n, bool))
    for rows, scale in zip(rows_by(scales.codes, len(scales.scales)), scales.scales, strict=True):
        part = from_objects([values[i] for i in rows], scale)
        found.probabilities[rows] = part.probabilities[:, ::-1] if scale.lower_is_better else part.probabilities
        found.mass[rows] = part.mass
        if part.flawed is not None and found.flawed is not None:
            found.flawed[rows] = part.flawed
            found = replace(found, why=found.why or part.why)
    return found


def _renormalised(p: Floats, scale: Scale, flaws: Mapping[int, str]) -> Distributions:
    """Of rows of probabilities, except those with a flaw (by row; "" is none)."""
    flawed = [i for i, flaw in flaws.items() if flaw]
    p[flawed] = 0
    mass = p.sum(1)
    empty = mass <= 0
    shares = p / np.where(empty, 1, mass)[:, None]
    shares[empty] = np.nan
    of_rows = np.isin(np.arange(len(p)), flawed) if flawed else None
    return Distributions(shares, mass, scale, of_rows, min((flaws[i] for i in flawed), default=""))


def readout_table(
    given: Distributions, gold: Floats, how: Resampling, cluster: Codes | None, family: Codes | None
) -> Table:
    """The likeliest label, the expected score, and the expected score recalibrated on other rows, against gold."""
    rows_used = given.known & ~np.isnan(gold)
    mode, expected, true = given.mode[rows_used], given.expected[rows_used], gold[rows_used]
    codes = _codes(cluster, rows_used)
    names = ["pearson", "spearman", "kendall_tau_b", "mae"]
    first, second = measure(mode, true, names, how, codes), measure(expected, true, names, how, codes)
    less, by_slice = difference(expected, mode, true, ["pearson", "spearman", "mae"], how, codes), ""
    rows: list[list[Cell]] = [["likeliest label (mode)", *first.values()], ["expected score", *second.values()]]
    if len(true) >= cal.LEAST:
        fold = cal.folds_of(len(true), cal.FOLDS, how.rng(), codes)

        def fit(train: Masks) -> Callable[[Masks], Floats]:
            learnt = cal.fit_isotonic(expected[train], true[train])
            return lambda test: learnt(expected[test])

        views = {"expected, isotonic (cross-fitted)": cal.cross_fitted(fit, fold)}
        slices, by_slice = cal.fitted_by_slice(fold, None if family is None else family[rows_used])
        if slices is not None:
            views["expected, isotonic by slice"] = cal.cross_fitted(fit, fold, slices)
        rows += [[name, *measure(view, true, names, how, codes).values()] for name, view in views.items()]
    rows.append(["expected less mode", *(less.get(name) for name in names)])
    lost = int((~given.known).sum())
    why = f" ({given.refused:,} of them cannot be probabilities, such as: {given.why})" if given.refused else ""
    note = (
        f"{counted(lost, 'row')} without a usable distribution{why}: failures, not the middle of the scale"
        if lost
        else ""
    )
    tied = int(given.tied[rows_used].sum())
    equal = f"{counted(tied, 'row')} with several likeliest labels: the mode is the lowest of them" if tied else ""
    title, columns = f"Scores read from {counted(len(true), 'distribution')}", ("score", *names)
    return table("readout", title, columns, rows, note, equal, cal.CROSS_FITTED_TOLD, by_slice)


def uncalibrated_table(why: str) -> Table:
    """An empty table instead of the calibration; its note says why the probabilities are not used."""
    told = f"label probabilities were read, and are not used: {why}"
    return table("calibration", "Calibration", ("probabilities", "ECE"), [], told, result=Calibration({}, told))


def calibration_table(
    given: Distributions,
    gold: Floats,
    how: Resampling,
    cluster: Codes | None,
    family: Codes | None,
    *,
    nominal: bool = False,
    labels: Labels | None = None,
) -> Table:
    """Before and after recalibration, always fitted on other rows; notes say why there is none.

    `nominal` labels have no order: no ordinal recalibration and no distances. `labels` are what rows are read as, if
    not their likeliest label: a temperature changes the confidence of the judge, never its label.
    """
    values = np.asarray(given.scale.values)
    rows_used = given.known & np.isin(gold, values)
    read_as = (labels or given.labels).rows(rows_used)
    p, true = given.probabilities[rows_used], np.searchsorted(values, gold[rows_used])
    codes = _codes(cluster, rows_used)
    enough = len(true) >= cal.LEAST
    fold = cal.folds_of(len(true), cal.FOLDS, how.rng(), codes) if enough else np.zeros(0, np.int64)
    slices, by_slice = cal.fitted_by_slice(fold, None if family is None or not enough else family[rows_used])
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
        if slices is not None:
            views[f"{name}, by slice"] = cal.cross_fitted(fit, fold, slices)
    rows = []
    for name, view in views.items() if len(true) else ():
        said = read_as if not name.startswith("ordinal") else Labels(_labels_of(view), read_as.why)
        rows.append(_calibration_row(name, view, said, true, values, how, codes))
    columns: tuple[str, ...] = (
        "probabilities", "accuracy", "confidence", "ECE", "Brier", "log loss", "MAE of expected",
    )  # fmt: skip
    if nominal:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    errors = {name: cell for name, row in zip(views, rows, strict=False) if isinstance(cell := row[3], Estimate)}
    if not enough:
        between = int((given.known & ~np.isnan(gold)).sum()) - len(true)
        few = (
            f"only {counted(len(true), 'row')} with probabilities and gold on a label: recalibration takes {cal.LEAST}"
        )
        return table(
            "calibration",
            f"Calibration on {counted(len(true), 'row')}",
            columns,
            rows,
            few,
            f"{counted(between, 'row')} left out: gold lies between the labels" if between else "",
            read_as.left_out_note(),
            cal.floored_told(p, true),
            result=Calibration(errors, few),
        )
    found = cal.temperature_estimate(p, true, how.level, codes)
    return table(
        "calibration",
        f"Calibration on {counted(len(true), 'row')}, before and after",
        columns,
        rows,
        f"ECE over {cal.BINS} bins of equal mass; its interval is approximate, wide (98.4 % of 1,000 simulations)",
        cal.floored_told(p, true),
        f"recalibration is fitted on the other {cal.FOLDS - 1} of {cal.FOLDS} folds",
        by_slice,
        cal.temperature_told(found),
        read_as.left_out_note(),
        result=Calibration(errors, ""),
    )


def _calibration_row(
    name: str, p: Floats, said: Labels, true: Codes, values: Floats, how: Resampling, cluster: Codes | None
) -> list[Cell]:
    p = settled(p, 1)
    told = said.codes >= 0
    sure, right = said.confidence(p)[told], said.codes[told] == true[told]
    of_all = (cal.brier_scores(p, true), cal.log_losses(p, true), np.abs(p @ values - values[true]))
    rest = [mean_estimate(each, how.level, cluster, within=(0.0, math.inf)) for each in of_all]
    if not told.any():
        nothing = undefined(0, f"no row has a label ({said.why})", level=how.level, dropped=len(true))
        return [name, nothing, nothing, nothing, *rest]
    inside = _codes(cluster, told)
    lost = int((~told).sum())
    accuracy = share(right, how.level, inside, dropped=lost)
    confidence = mean_estimate(sure, how.level, inside, dropped=lost, within=(0.0, 1.0))
    return [name, accuracy, confidence, _ece(sure, right, how, inside), *rest]


def _ece(sure: Floats, right: Masks, how: Resampling, cluster: Codes | None) -> Estimate:
    """ECE, and an interval from drawing the gap of each bin (normal, with its own error); the bins stay.

    Chance makes ECE larger, never smaller; with few rows most of it may be chance. The low end is found by scaling the
    gaps down until the observed ECE is at the upper percentile of its draws.
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
    return Estimate(value, len(sure), *ends, how.level, "gaps of bins resampled")


def reliability_table(
    given: Distributions, gold: Floats, level: float, cluster: Codes | None = None, labels: Labels | None = None
) -> Table:
    """The reliability diagram as a table, of the rows with a label."""
    sure, right, codes = _paired_with_gold(given, gold, cluster, labels or given.labels)
    rows: list[list[Cell]] = []
    points: list[CurvePoint] = []
    for part in cal.bin_rows(sure):
        inside = None if codes is None else codes[part]
        told = mean_estimate(sure[part], level, None if inside is None else clusters_of(inside), within=(0.0, 1.0))
        points.append(CurvePoint(told.value, share(right[part], level, inside)))
        rows.append([f"{len(rows) + 1}", len(part), told, points[-1].y])
    columns, curve = ("bin", "n", "confidence", "accuracy"), Curve("confidence", "accuracy", tuple(points))
    return table("reliability", "Reliability: bins of equal mass", columns, rows, result=curve)


def abstain_table(
    given: Distributions, gold: Floats, level: float, cluster: Codes | None = None, labels: Labels | None = None
) -> Table:
    """Accuracy against coverage when the judge may abstain where it is least sure, of the rows with a label."""
    sure, right, codes = _paired_with_gold(given, gold, cluster, labels or given.labels)
    rows: list[list[Cell]] = []
    points: list[CurvePoint] = []
    for each in conformal.accuracy_coverage(sure):
        reached = len(each.rows) / len(sure)
        points.append(CurvePoint(reached, share(right[each.rows], level, _codes(codes, each.rows))))
        rows.append([f"{each.coverage:.0%}", f"{reached:.0%}", len(each.rows), points[-1].y])
    return table(
        "abstaining",
        f"Exact agreement on the most confident rows, of {counted(len(sure), 'row')} with a label and gold",
        ("coverage", "reached", "n", "exact"),
        rows,
        "reached: rows of equal confidence stay together, so the order of rows does not matter",
        result=Curve("reached", "exact", tuple(points)),
    )


def _paired_with_gold(
    given: Distributions, gold: Floats, cluster: Codes | None, labels: Labels
) -> tuple[Floats, Masks, Codes | None]:
    """The confidence, the correctness and the cluster of each row that has a label and gold."""
    used = given.known & ~np.isnan(gold) & (labels.codes >= 0)
    said = np.asarray(given.scale.values)[labels.codes[used]]
    return labels.rows(used).confidence(given.probabilities[used]), said == gold[used], _codes(cluster, used)


def _codes(cluster: Codes | None, chosen: Masks | Codes) -> Codes | None:
    return None if cluster is None else clusters_of(cluster[chosen])
