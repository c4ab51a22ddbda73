"""Scores and gold as arrays, with failures separated from scores."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.against_gold.measures import OF_ORDER, measure, measures_for
from dikast.audit.statistics.building_blocks.exact_means import row_means, row_medians
from dikast.audit.statistics.calibration import FOLDS, folds_of
from dikast.audit.statistics.equating import equate
from dikast.audit.statistics.intervals import Resampling, clusters_of
from dikast.audit.tables.columns import Words
from dikast.audit.tables.load import Data
from dikast.audit.tables.row_scales import UNIT, RowScales, check_alike, check_gold, gold_on_scale, is_narrow, on_scale
from dikast.audit.tables.statuses import failed_before, statuses
from dikast.core.errors import UserError
from dikast.core.gold import scale_text
from dikast.core.scale import Scale
from dikast.core.text import counted

Floats = NDArray[np.float64]
_ON_LABELS = ("exact", "within_1", "cohen_kappa", "quadratic_kappa")  # statistics of labels
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Unequated:
    """Scores (n,) on their own scale, before they were put on that of gold: statistics of order are of these.

    The map of each fold differs a little, so that equal scores of two folds are no longer equal, and scores beyond the
    extremes of gold become equal.
    """

    score: Floats
    scale: Scale


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Absolute verdicts as arrays (n,). `score` is NaN where there is none, and `status` says why.

    `gold` is one label made of the raters (R, n) by the plan's rule, NaN where there is none. `kinds` are the
    statistics that score and gold allow. Where rows lie on several scales (`own`) all of these are goodness, `scale` is
    None, and `raw` holds them as they were given; `unit` says so in titles. `before` are scores that were equated.
    `split` are the rows without gold since their raters have no majority.
    """

    score: Floats
    status: Words
    gold: Floats
    raters: Floats
    cluster: Codes | None
    scale: Scale | None
    kinds: tuple[str, ...]
    own: RowScales | None = None
    raw: "Scored | None" = None
    before: Unequated | None = None
    split: NDArray[np.bool_] | None = None

    @property
    def unit(self) -> str:
        """What titles add where values are goodness."""
        return UNIT if self.own is not None else ""

    @property
    def shared(self) -> bool:
        """Whether score and gold of a row lie on one scale."""
        return "exact" in self.kinds

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value that a score, and so a mean of scores, can have."""
        if self.own is not None:
            return 0.0, 1.0
        return (-math.inf, math.inf) if self.scale is None else (self.scale.low, self.scale.high)

    def given(self, values: Floats, *, between: bool = False) -> Floats:
        """Further scores (n,) of the same rows, such as a second judge's: NaN off the scale, goodness where these are.

        `between` allows values between labels.
        """
        if self.own is None:
            valid = gold_on_scale(values, self.scale) if between else on_scale(values, self.scale)
            return np.where(valid, values, np.nan)
        valid = self.own.within(values) if between else self.own.on(values)
        return self.own.goodness(np.where(valid, values, np.nan))

    @property
    def paired(self) -> NDArray[np.bool_]:
        """Rows with a score and gold."""
        return ~np.isnan(self.score) & ~np.isnan(self.gold)

    @property
    def undecided(self) -> int:
        """How many rows with a score have no gold since their raters have no majority."""
        return 0 if self.split is None else int((self.split & ~np.isnan(self.score)).sum())

    @property
    def unscored_gold(self) -> Floats:
        """Gold of the rows that have no score."""
        return self.gold[np.isnan(self.score) & ~np.isnan(self.gold)]

    def score_for(self, statistic: str) -> Floats:
        """The scores (n,) that a statistic is of: those before equating where it is one of order."""
        return self.score if self.before is None or statistic not in OF_ORDER else self.before.score

    def measured(
        self, chosen: NDArray[np.bool_] | Codes, names: Sequence[str], how: Resampling, *, dropped: int = 0
    ) -> dict[str, Estimate]:
        """Each statistic on the chosen rows, a mask or indices, which have a score and gold."""
        gold, cluster = self.gold[chosen], self.clusters(chosen)
        found = measure(self.score[chosen], gold, names, how, cluster, dropped=dropped)
        if self.before is not None:
            of_order = [name for name in names if name in OF_ORDER]
            found |= measure(self.before.score[chosen], gold, of_order, how, cluster, dropped=dropped)
        return found

    def clusters(self, chosen: NDArray[np.bool_] | Codes) -> Codes | None:
        """Cluster codes of the chosen rows, from 0 without gaps."""
        return None if self.cluster is None else clusters_of(self.cluster[chosen])


def scored(
    data: Data,
    score: Floats,
    *,
    between: bool = False,
    absent: str = "missing",
    known: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Scored:
    """Tell scores from failures: a status that is not ok, no value, or a value that is not on the scale.

    `between` allows values between labels, as expected scores have; `absent` names rows without a value, unless `known`
    (reason -> rows) says better. UserError where most of a column of scores is off the scale.
    """
    plan, own = data.plan, data.scales
    failed = failed_before(data.words.get("status"), len(data))
    if own is not None:
        valid = own.within(score) if between else own.on(score)
    else:
        valid = gold_on_scale(score, plan.scale) if between else on_scale(score, plan.scale)
    valid &= ~failed
    missing = np.isnan(score) & ~failed
    reasons = {**{name: rows & missing for name, rows in (known or {}).items()}, absent: missing}
    status = statuses(valid, data.words.get("status"), {**reasons, "off_scale": ~valid & ~failed})
    if own is None and plan.scale is not None and "score" in data.numbers:
        for role in ("score", "rival", "retest", "earlier"):
            if role in data.numbers and plan.equate is None:
                masked = failed if role == "score" else np.zeros(len(data), bool)
                _check_on_scale(data, role, masked, plan.scale, between=between)
    raters = ratings(data)
    for i, name in enumerate(plan.gold):
        if empty := int(np.isnan(raters[i]).sum()):
            data.notes.append(f"{counted(empty, 'row')} without {name!r}")
    gold = consensus(raters, plan.gold_rule or "mean") if len(raters) else np.full(len(data), np.nan)
    split = split_rows(raters, gold, plan.gold_rule)
    if undecided := int(split.sum()):
        data.notes.append(f"{counted(undecided, 'row')} without a majority among raters: no gold")
    cluster = data.words["cluster"].codes if "cluster" in data.words else None
    narrow = own is None and plan.scale is not None and is_narrow(plan.scale)
    kinds = tuple(
        name for name in measures_for(own is not None or plan.scale is not None) if not (narrow and name == "within_1")
    )
    before = None
    if plan.equate is not None:
        before = Unequated(np.where(valid, data.numbers["score"], np.nan), plan.equate)
    found = Scored(
        np.where(valid, score, np.nan), status, gold, raters, cluster, plan.scale, kinds, before=before, split=split
    )
    return found if own is None else _as_goodness(found, own)


def _check_on_scale(data: Data, role: str, failed: NDArray[np.bool_], scale: Scale, *, between: bool) -> None:
    """UserError where most of a column of scores is off the scale stated for it; a smaller share is reported."""
    plan, values = data.plan, data.numbers[role]
    held = ~np.isnan(values) & ~failed
    valid = gold_on_scale(values, scale) if between else on_scale(values, scale)
    off = values[held & ~valid]
    if not len(off):
        return
    low, high = values[held].min(), values[held].max()
    examples = ", ".join(f"{each:g}" for each in np.unique(off)[:_SHOWN])
    told = (
        f"column {getattr(plan, role)!r}: {len(off):,} of {counted(int(held.sum()), 'value')} off the scale "
        f"{scale} (from {low:g} to {high:g}), such as {examples}"
    )
    if len(off) <= _MOST_OFF * held.sum() or plan.allow_unread:
        data.notes.append(f"{told}: failures (off_scale)" if role == "score" else f"{told}: left out")
        return
    inside = not between and 2 * int(gold_on_scale(off, scale).sum()) > len(off)
    stated = "--scale" if plan.equate is None else "--equate"
    cure = "--between allows values between the labels" if inside else f"name their scale with {stated}"
    raise UserError(
        f"{data.frame.path}: {told}. {cure[0].upper()}{cure[1:]}, mark values that stand for a failure with --failed "
        "VALUE, or go on with --allow-unread, which counts them as failures"
    )


def _as_goodness(given: Scored, own: RowScales) -> Scored:
    """Score and gold as goodness. 'Within 1' is left out: it is a step of 1-5, and all of pass/fail."""
    apart = own.gold is not None  # no label of one is a label of the other, but both have a goodness
    kinds = tuple(name for name in measures_for(True) if name not in (_ON_LABELS if apart else ("within_1",)))
    gold, raters = own.of_gold.goodness(given.gold), given.raters.copy()
    for i, ratings_of_one in enumerate(raters):
        raters[i] = own.of_gold.goodness(ratings_of_one)
    score, raw = own.goodness(given.score), replace(given, scale=None)
    return Scored(score, given.status, gold, raters, given.cluster, None, kinds, own, raw, split=given.split)


def ratings(data: Data) -> Floats:
    """The gold columns (R, n). UserError when one does not lie on the scale, or on another than the rest."""
    plan, own = data.plan, data.scales
    raters = np.array([data.numbers[f"gold {i}"] for i in range(len(plan.gold))]).reshape(len(plan.gold), len(data))
    for i, (name, values) in enumerate(zip(plan.gold, raters, strict=True)):
        first = functools.partial(data.first, f"gold {i}")
        if own is not None:
            due = scale_text(own.gold) if own.gold is not None else f"of its row, {own.listed()}"
            cures = "--equate {scale} says that gold has a scale of its own"
            check_gold(name, values, own.of_gold.within(values), due, cures, first)
        elif plan.scale is not None:
            usable = gold_on_scale(values, plan.scale)
            check_gold(name, values, usable, scale_text(plan.scale), _cures(data), first)
    if own is None and plan.scale is None:
        check_alike(plan.gold, list(raters))
    return raters


def _cures(data: Data) -> str:
    """What to say of the scale of gold: of scores on a run's own scale, or on the one that was stated."""
    plan = data.plan
    if plan.equate is not None:
        return "--scale {scale} is the scale of gold"
    if plan.file.is_dir():
        return (
            "--equate {scale} says that gold has a scale of its own, on which scores are put by equal ranks; "
            "--scale none reports only correlations and order"
        )
    return (
        f"--scale {{scale}} is right if scores lie on it too; --scale {{scale}} --equate {plan.scale} puts scores on "
        "gold's scale by equal ranks; without --scale only correlations and order are reported"
    )


def equated(data: Data, own: Scale) -> Floats:
    """Scores (n,) on the scale `own` told on gold's scale: equal mid-percentile ranks, learnt on other rows.

    Rows are put into folds (whole clusters together); the map of a fold comes from the labelled rows of the others.
    Values that are not on `own` stay failures; those between its labels are scores if the plan allows them.
    """
    plan, score = data.plan, data.numbers["score"]
    if plan.scale is None:
        raise ValueError("equating needs the scale of gold")
    gold = consensus(ratings(data), plan.gold_rule or "mean")
    failed = failed_before(data.words.get("status"), len(data))
    _check_on_scale(data, "score", failed, own, between=plan.between)
    valid = (gold_on_scale(score, own) if plan.between else on_scale(score, own)) & ~failed
    groups = clusters_of(data.words["cluster"].codes) if "cluster" in data.words else None
    fold, out = folds_of(len(data), FOLDS, plan.resampling.rng(), groups), np.full(len(data), np.nan)
    for each in range(FOLDS):
        anchors = valid & ~np.isnan(gold) & (fold != each)
        if int(anchors.sum()) < FEWEST_ANCHORS:
            off = int((~valid & ~np.isnan(score) & ~failed).sum())
            told = f"; {counted(off, 'score')} off the scale {own} that --equate names" if off else ""
            raise UserError(
                f"--equate: {counted(int(anchors.sum()), 'row')} with score and gold; it takes {FEWEST_ANCHORS}{told}"
            )
        found = equate(score[anchors], gold[anchors])
        mine = valid & (fold == each)
        out[mine] = np.clip(found(score[mine]), plan.scale.low, plan.scale.high)
    out[~valid & ~np.isnan(score)] = plan.scale.high + 1  # a value off its own scale stays off the scale
    data.notes.append(
        f"scores on {own} were put on the scale {plan.scale} by equal ranks, learnt on other rows ({FOLDS} folds): "
        "bias and distances to gold are small by construction; rank correlations and ordered pairs are of the scores "
        "as they were given"
    )
    return out


FEWEST_ANCHORS = 30
_SHOWN = 5
_MOST_OFF = 0.5  # of a column of scores


def split_rows(raters: Floats, label: Floats, rule: str) -> NDArray[np.bool_]:
    """Rows (n,) without a `label` since the raters (R, n) who rated them have no strict majority."""
    return np.asarray(np.isnan(label) & ~np.isnan(raters).all(0)) & (rule == "majority")


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
