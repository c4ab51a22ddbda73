"""Scores beside gold, after failures have been told from scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dikast.audit.calibration import FOLDS, folds_of
from dikast.audit.columns import Words
from dikast.audit.equating import equate
from dikast.audit.exact import row_means, row_medians
from dikast.audit.failures import failed_before, statuses
from dikast.audit.intervals import clusters_of
from dikast.audit.load import Data, gold_on_scale, on_scale
from dikast.audit.report import counted
from dikast.core.errors import UserError
from dikast.core.scale import Scale

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Absolute verdicts as arrays (n,). `score` is NaN where there is none, and `status` says why.

    `gold` is one label made of the raters (R, n) by the plan's rule, NaN where there is none.
    """

    score: Floats
    status: Words
    gold: Floats
    raters: Floats
    cluster: Codes | None
    scale: Scale | None

    @property
    def paired(self) -> NDArray[np.bool_]:
        """Rows with a score and gold."""
        return ~np.isnan(self.score) & ~np.isnan(self.gold)

    @property
    def unscored_gold(self) -> Floats:
        """Gold of the rows that have no score."""
        return self.gold[np.isnan(self.score) & ~np.isnan(self.gold)]

    def clusters(self, chosen: NDArray[np.bool_]) -> Codes | None:
        """Cluster codes of the chosen rows, from 0 without gaps."""
        return None if self.cluster is None else clusters_of(self.cluster[chosen])


def scored(data: Data, score: Floats, *, between: bool = False, absent: str = "missing") -> Scored:
    """Tell scores from failures: a status that is not ok, no value, or a value that is not on the scale.

    `between` allows values between labels, as expected scores have; `absent` names rows without a value.
    """
    plan = data.plan
    failed = failed_before(data.words.get("status"), len(data))
    valid = gold_on_scale(score, plan.scale) if between else on_scale(score, plan.scale)
    valid &= ~failed
    missing = np.isnan(score) & ~failed
    status = statuses(valid, data.words.get("status"), {absent: missing, "off_scale": ~valid & ~failed})
    raters = np.array([data.numbers[f"gold {i}"] for i in range(len(plan.gold))]).reshape(len(plan.gold), len(data))
    for i, name in enumerate(plan.gold):
        usable = gold_on_scale(raters[i], plan.scale)
        if lost := int((~usable & ~np.isnan(raters[i])).sum()):
            data.notes.append(f"{counted(lost, 'value')} of {name!r} beyond the scale {plan.scale}, not used")
        if empty := int(np.isnan(raters[i]).sum()):
            data.notes.append(f"{counted(empty, 'row')} without {name!r}")
        raters[i, ~usable] = np.nan
    gold = consensus(raters, plan.gold_rule or "mean") if len(raters) else np.full(len(data), np.nan)
    cluster = data.words["cluster"].codes if "cluster" in data.words else None
    return Scored(np.where(valid, score, np.nan), status, gold, raters, cluster, plan.scale)


def equated(data: Data, own: Scale) -> Floats:
    """Scores (n,) on the scale `own` told on gold's scale: equal mid-percentile ranks, learnt on other rows.

    Rows are put into folds (whole clusters together); the map of a fold comes from the labelled rows of the others.
    Values that are not on `own` stay failures.
    """
    plan, score = data.plan, data.numbers["score"]
    if plan.scale is None:
        raise ValueError("equating needs the scale of gold")
    raters = np.array([data.numbers[f"gold {i}"] for i in range(len(plan.gold))])
    raters = np.where(gold_on_scale(raters, plan.scale), raters, np.nan)
    gold = consensus(raters, plan.gold_rule or "mean")
    valid = on_scale(score, own)
    groups = clusters_of(data.words["cluster"].codes) if "cluster" in data.words else None
    fold, out = folds_of(len(data), FOLDS, plan.resampling.rng(), groups), np.full(len(data), np.nan)
    for each in range(FOLDS):
        anchors = valid & ~np.isnan(gold) & (fold != each)
        if int(anchors.sum()) < FEWEST_ANCHORS:
            raise UserError(f"--equate: {int(anchors.sum())} rows with score and gold; it takes {FEWEST_ANCHORS}")
        found = equate(score[anchors], gold[anchors])
        mine = valid & (fold == each)
        out[mine] = np.clip(found(score[mine]), plan.scale.low, plan.scale.high)
    out[~valid & ~np.isnan(score)] = plan.scale.high + 1  # a value that was off its own scale is off this one
    data.notes.append(
        f"scores on {own} were put on the scale {plan.scale} by equal ranks, learnt on other rows ({FOLDS} folds): "
        "bias and distances to gold are small by construction, order and correlation are not"
    )
    return out


FEWEST_ANCHORS = 30


def consensus(raters: Floats, rule: str) -> Floats:
    """One label (n,) of several raters (R, n): the mean or median of those present, the majority, or the first.

    Without a strict majority (more than half of those present) there is none: NaN.
    """
    if rule == "first":
        return np.asarray(raters[0])
    if rule in ("mean", "median"):
        return np.asarray(raters[0]) if len(raters) == 1 else (row_means if rule == "mean" else row_medians)(raters)
    if rule != "majority":
        raise UserError(f"--gold-rule {rule!r}: choose mean, median, majority or first")
    present = ~np.isnan(raters)
    count = present.sum(0)
    out = np.full(raters.shape[1], np.nan)
    for value in np.unique(raters[present]):
        out[2 * (raters == value).sum(0) > count] = value
    return out
