"""The audit of scores: headlines with bounds, baselines and ceiling, systems, and a second judge."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import Agreement, Baseline, Baselines, Headline, Role
from dikast.audit.sections.judge_names import Judges
from dikast.audit.statistics.against_gold.bounds import bounds
from dikast.audit.statistics.against_gold.chance import CHANCE, by_chance, chance_within
from dikast.audit.statistics.against_gold.classes import class_estimates
from dikast.audit.statistics.against_gold.measures import (
    FEW,
    MEASURES,
    OF_ORDER,
    difference,
    mean_over_pairs,
    measure,
    measures_for,
)
from dikast.audit.statistics.agreement import discrimination, weighted_discrimination
from dikast.audit.statistics.building_blocks.exact_means import group_means, means_of_others, settled
from dikast.audit.statistics.correlation import mid_ranks, rare_by_chance, telling
from dikast.audit.statistics.intervals import Resampling, bootstrap_kinds, fisher
from dikast.audit.statistics.sample_size import labels_for_pearson, labels_for_width
from dikast.audit.statistics.significance import mcnemar, mcnemar_told
from dikast.audit.tables.columns import Words
from dikast.audit.tables.load import Data
from dikast.audit.tables.scored import Scored
from dikast.core.scale import Scale
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_BESIDE = ("pearson", "spearman", "kendall_tau_b", "exact", "within_1", "mae", "quadratic_kappa")
_RARE = 5  # rows that chance would put into the rarest cell of two columns of two values, as in tests of such tables
_WITHIN_SCALES = (
    "baselines are drawn within each scale, so they know the scale and nothing else; at random, correlations and "
    "kappas come from differences between the means of the scales, which vary alike in gold and in scores that agree "
    "with it: near 0, most of the interval lies above the value"
)


def agreement_table(given: Scored, how: Resampling, wanted: float = 0.03, gold_rule: str = "mean") -> Table:
    """The headlines: complete cases, bounds over the unscored, labels needed for +/- `wanted`."""
    chosen = given.paired
    score, gold = given.score[chosen], given.gold[chosen]
    names = given.kinds
    dropped = len(chosen) - len(score)
    found = given.measured(chosen, names, how, dropped=dropped)
    rows: list[list[Cell]] = []
    allowed = _allowed(given)
    statistics: dict[str, Headline] = {}
    for name, value in found.items():
        ends: tuple[float, float] | tuple[None, None] = (None, None)
        if allowed is not None and len(given.unscored_gold):
            each, of_order = MEASURES[name], given.before is not None and name in OF_ORDER
            labels = np.asarray(given.before.scale.values) if given.before is not None and of_order else allowed.labels
            said = given.score_for(name)[chosen]
            ends = bounds(said, gold, given.unscored_gold, labels, each.table, each.better, allowed.rows)
        statistics[name] = Headline(value, *ends)
        rows.append([name, value, *ends, labels_for_width(value.half_width, value.n, wanted), value.method])
        if name == "pearson" and given.cluster is None and not math.isnan(value.value):
            r = Estimate(value.value, value.n, *fisher(value.value, value.n, how.level), how.level, "Fisher", dropped)
            rows.append(["pearson (Fisher)", r, None, None, labels_for_pearson(r.value, wanted, how.level), r.method])
    unscored, tell = len(given.unscored_gold), telling(gold, given.clusters(chosen))
    return table(
        "agreement",
        f"Agreement of {counted(len(score), 'score')} with gold{given.unit}",
        ("statistic", "value", "worst", "best", f"labels for ±{wanted:g}", "interval"),
        rows,
        f"only {counted(len(score), 'pair')}: too few to conclude anything" if len(score) < FEW else "",
        f"worst and best: if the {unscored:,} unscored had been anything on the scale; of correlations and kappas they "
        "are the ends that a search found, unless there are few enough ways to try all"
        if unscored and allowed is not None
        else "",
        "without --scale only correlations and order are reported" if given.scale is None and given.own is None else "",
        _between_told(given, score, gold),
        f"approximate: by chance alone {rare:.1f} rows (below {_RARE}) would have the rarer value of both columns: "
        "intervals of correlations and kappas may be too narrow"
        if (rare := rare_by_chance(score, gold)) < _RARE
        else "",
        _gold_told(given, gold_rule) if len(given.raters) > 1 else "",
        result=Agreement(statistics, _ends(given), _only(score), _only(gold), given.undecided, tell),
    )


def _ends(given: Scored) -> tuple[float, float] | None:
    """The ends of the scale that scores and gold were given on; None where they have none in common."""
    if given.before is not None or (given.own is not None and given.own.gold is not None):
        return None
    return given.bounds if given.shared else None


def _only(values: Floats) -> float | None:
    """The value of a column that is the same in all rows."""
    return float(values[0]) if len(values) and np.ptp(values) == 0 else None


def _gold_told(given: Scored, rule: str) -> str:
    """How many raters gold is made of, and in how many of the compared rows of fewer."""
    many = len(given.raters)
    fewer = int((np.isnan(given.raters[:, given.paired]).any(0)).sum()) if rule != "first" else 0
    told = f"gold: the {rule} of {counted(many, 'rater')}"
    return f"{told}, of fewer in {fewer:,} of {counted(int(given.paired.sum()), 'row')}" if fewer else told


def _between_told(given: Scored, score: Floats, gold: Floats) -> str:
    """In how many rows score and gold cannot be equal, since one of them (a mean, an equated score) is no label."""
    labels = np.asarray([] if given.scale is None else given.scale.values)
    between = {"gold lies": int((~np.isin(gold, labels)).sum()), "scores lie": int((~np.isin(score, labels)).sum())}
    who, most = max(between.items(), key=lambda each: each[1])
    if not len(labels) or not most:
        return ""
    rows = f"{most:,} of {counted(len(gold), 'row')}"
    other = "score" if who == "gold lies" else "gold"
    return f"exact and cohen_kappa: {who} between the labels in {rows}, where no {other} on a label is equal to it"


class _Allowed(NamedTuple):
    """What unscored rows could have been given: labels, and (m, labels) which of them each row, None for all."""

    labels: Floats
    rows: NDArray[np.bool_] | None


def _allowed(given: Scored) -> _Allowed | None:
    if given.scale is not None:
        return _Allowed(np.asarray(given.scale.values), None)
    if given.own is None:
        return None
    lost = given.own.rows(np.isnan(given.score) & ~np.isnan(given.gold))
    sets = [given.own.goodness_of(code) for code in range(len(given.own.scales))]
    labels = np.unique(np.concatenate(sets))
    return _Allowed(labels, np.array([np.isin(labels, each) for each in sets])[lost.codes])


def confusion_table(given: Scored) -> Table:
    """Counts, gold down and scores across."""
    chosen = given.paired
    labels = np.asarray(given.scale.values if given.scale is not None else [])
    gold = given.gold[chosen]
    rows_of = np.unique(gold)
    counts = [[int(((gold == g) & (given.score[chosen] == s)).sum()) for s in labels] for g in rows_of]
    rows: list[list[Cell]] = [[f"{g:g}", *row, sum(row)] for g, row in zip(rows_of, counts, strict=True)]
    return table("confusion", "Gold (down) and score (across)", ("gold", *(f"{s:g}" for s in labels), "all"), rows)


def class_table(given: Scored, how: Resampling) -> Table:
    """Accuracy and macro precision, recall, F1 where gold lies on the scale's labels."""
    chosen = given.paired
    found = class_estimates(given.score[chosen], given.gold[chosen], how, given.clusters(chosen))
    rows: list[list[Cell]] = [[name, value] for name, value in found.items() if name != "cohen_kappa"]  # told above
    return table("classes", "As classes", ("statistic", "value"), rows)


def baselines_table(data: Data, given: Scored, how: Resampling) -> Table:
    """The judge between baselines (constant, random, length) and ceiling (people); and the judge asked again."""
    chosen = given.paired
    score, cluster = given.score[chosen], given.clusters(chosen)
    names = [name for name in _BESIDE if name in given.kinds]
    own = given.measured(chosen, names, how)
    rows = [_row("judge", "judge", "judge", own, score, given, how, cluster)]
    if len(given.raters) > 1:
        rows.extend(_rater_rows(given, names, how))
    if "retest" in data.numbers and data.plan.equate is None:
        again = given.given(data.numbers["retest"], between=data.plan.between)
        once = given.score
        if "retested" in data.numbers:  # of a run with several samples, the first of them
            once = given.given(data.numbers["retested"], between=data.plan.between)
        both = np.asarray(~np.isnan(once) & ~np.isnan(again))
        found = measure(once[both], again[both], names, how, given.clusters(both))
        label = "the judge asked again (test-retest)"
        rows.append(_row("retest", "other", label, found, again[both], given, how, given.clusters(both)))
    if len(score):
        rows.extend(_ignoring_the_input(data, given, own, how))
    return table(
        "beside",
        f"The judge between baselines and ceiling{given.unit}",
        ("who", "n", *names, "discrimination"),
        [[row.label, n, *(row.statistics.get(name) for name in (*names, "discrimination"))] for n, row in rows],
        "discrimination: 0 if one label takes all, 1 if all labels are used alike (Ferguson's delta)"
        if given.scale is not None
        else "",
        _WITHIN_SCALES if given.own is not None else "",
        _few_in_common(given, data.plan.gold),
        result=Baselines(tuple(row for _, row in rows)),
    )


def _few_in_common(given: Scored, names: Sequence[str]) -> str:
    """What to say where there is one rater, or where a rater of few rows leaves the ceiling few rows, or none."""
    if len(given.raters) < 2:
        return "no human ceiling: give more than one --gold"
    known = ~np.isnan(given.raters)
    common, usable = int(known.all(0).sum()), int((known.sum(0) > 1).sum())
    if not usable:
        return "no human ceiling: no row was rated by two"
    if len(known) < 3 or 2 * common >= usable:
        return ""
    fewest = int(known.sum(1).argmin())
    without = int(np.delete(known, fewest, 0).all(0).sum())
    rows = (
        f"people are compared on the {counted(common, 'row')} that all {len(known)} rated"
        if common
        else f"no human ceiling: no row was rated by all {len(known)}"
    )
    return f"{rows}, of {usable:,} with two ratings or more; without --gold {names[fewest]} it would be {without:,}"


def _rater_rows(given: Scored, names: Sequence[str], how: Resampling) -> Iterator[tuple[int, Baseline]]:
    complete = np.asarray(~np.isnan(given.raters).any(0))
    raters = given.raters[:, complete]
    if not complete.any():
        return
    count = len(raters)
    cluster = given.clusters(complete)
    together = np.tile(np.arange(raters.shape[1]) if cluster is None else cluster, count)  # an item's ratings
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]  # as the table of raters has them
    found = mean_over_pairs(raters, pairs, names, how, cluster)
    yield _row("raters", "ceiling", "one rater against another (ceiling)", found, raters.ravel(), given, how, together)
    both = complete & ~np.isnan(given.score)
    columns = np.vstack([given.score[both], given.raters[:, both]])
    if both.any():
        inside = given.clusters(both)
        each = [(0, i + 1) for i in range(count)]
        found = mean_over_pairs(columns, each, names, how, inside)
        if given.before is not None:
            columns[0] = given.before.score[both]
            found |= mean_over_pairs(columns, each, [name for name in names if name in OF_ORDER], how, inside)
        yield _row("judge_rater", "other", "judge against one rater", found, given.score[both], given, how, inside)
    if count > 2:
        columns = np.vstack([raters, means_of_others(raters)])
        found = mean_over_pairs(columns, [(i, count + i) for i in range(count)], names, how, cluster)
        yield _row(
            "rater_others",
            "other",
            "one rater against the mean of the others",
            found,
            raters.ravel(),
            given,
            how,
            together,
        )


def _ignoring_the_input(
    data: Data, given: Scored, judge: Mapping[str, Estimate], how: Resampling
) -> Iterator[tuple[int, Baseline]]:
    """The judges that ignore the input; `judge` are the statistics of the judge itself."""
    names = list(judge)
    chosen = given.paired
    score, gold, cluster = given.score[chosen], given.gold[chosen], given.clusters(chosen)
    constant, label = _constant(given)
    found = measure(constant, gold, names, how, cluster)
    yield _row("constant", "floor", label, found, constant, given, how, cluster)
    found = _at_random(given, names, judge, how)
    yield _row("random", "floor", "a judge that draws its labels at random", found, score, given, how, cluster)
    if "length" in data.numbers:
        length = data.numbers["length"]
        known = chosen & ~np.isnan(length)
        alone = [name for name in names if not MEASURES[name].shared_scale]
        places = length[known] if given.own is None else _place_within(length[known], given.own.codes[known])
        found = measure(places, given.gold[known], alone, how, given.clusters(known))
        yield int(known.sum()), Baseline("length", "other", "length alone", found)
        if given.own is None and (places >= 0).all():  # places within scales are ranks, which no logarithm changes
            found = measure(np.log2(1 + places), given.gold[known], ["pearson"], how, given.clusters(known))
            yield int(known.sum()), Baseline("log_length", "other", "the logarithm of length alone", found)


def _constant(given: Scored) -> tuple[Floats, str]:
    """The best constant judge (n paired,): one label, or one for each scale; and its name."""
    gold, values = given.gold[given.paired], np.array([np.median(given.gold[given.paired])])
    if given.own is not None:
        own, out = given.own.rows(given.paired), np.empty(len(gold))
        for code in np.unique(own.codes):
            mine = own.codes == code
            out[mine] = _nearest(gold[mine], own.goodness_of(code))
        return out, "a judge that always says the same on each scale"
    if given.scale is not None:
        values = np.asarray(given.scale.values)
    constant = _nearest(gold, values)
    said = None if given.scale is None else given.scale.label(constant)
    return np.full(len(gold), constant), f"a judge that always says {said or f'{constant:g}'}"


def _nearest(gold: Floats, values: Floats) -> float:
    """The value that lies nearest to all gold together."""
    return float(values[np.argmin(settled([np.abs(gold - value).sum() for value in values]))])


def _place_within(values: Floats, codes: Codes) -> Floats:
    """The mid-percentile of each value (n,) among those with its code, in (0, 1)."""
    out = np.empty(len(values))
    for code in np.unique(codes):
        mine = codes == code
        _, place, counts = np.unique(values[mine], return_inverse=True, return_counts=True)
        out[mine] = ((mid_ranks(counts) - 0.5) / counts.sum())[place.ravel()]
    return out


def _at_random(
    given: Scored, names: Sequence[str], judge: Mapping[str, Estimate], how: Resampling
) -> dict[str, Estimate]:
    """The expected figures of a judge that draws labels with the same shares as this one, whatever the item:
    correlations of 0 (undefined where those of the judge are), and means over all pairs of a score and a gold. On
    several scales it knows the scale of each item: pairs are of one scale.
    """
    chosen = given.paired
    score, gold, cluster = given.score[chosen], given.gold[chosen], given.clusters(chosen)
    if given.own is not None:
        return chance_within(names, score, gold, given.own.codes[chosen], how, cluster)
    bounds = given.bounds
    found = {name: by_chance(name, score, gold, how.level, cluster, bounds) for name in names if name in CHANCE}
    nought = Estimate(0.0, len(gold), level=how.level, method="expected under independence", note="0 by construction")
    return {name: found.get(name, each if math.isnan(each.value) else nought) for name, each in judge.items()}


def _row(
    key: str,
    role: Role,
    label: str,
    found: dict[str, Estimate],
    scores: Floats,
    given: Scored,
    how: Resampling,
    cluster: Codes | None,
) -> tuple[int, Baseline]:
    """Of how many rows, and the row itself, with the discrimination of its scores."""
    n = next(iter(found.values())).n
    scale = given.scale if given.own is None else given.own.shared
    spread = spread_of(scores, scale, how, cluster)
    return n, Baseline(key, role, label, {**found, "discrimination": spread})


def spread_of(scores: Floats, scale: Scale | None, how: Resampling, cluster: Codes | None) -> Estimate:
    """The discrimination index of scores (n,) on the scale; undefined without a scale, scores, or scores on labels.

    Drawing anew makes shares less even than they are: the draws are moved to where the index is, and cut to [0, 1].
    """
    if len(scores) == 0:
        return undefined(0, "no scores", level=how.level)
    if scale is None:
        return undefined(len(scores), "no scale that all scores share", level=how.level)
    if not np.isin(scores, np.asarray(scale.values)).all():
        return undefined(len(scores), "scores lie between the labels of the scale", level=how.level)
    labels = len(scale.values)
    value = float(discrimination(np.unique(scores, return_counts=True)[1].astype(np.float64), labels))
    if np.ptp(scores) == 0:
        return Estimate(value, len(scores), level=how.level, note=f"every verdict is {scale.label(scores[0])}")
    drawn = bootstrap_kinds(lambda x: weighted_discrimination(x, labels), [scores], how, cluster)
    low, high = how.interval(np.clip(drawn + value - drawn.mean(), 0, 1))
    return Estimate(value, len(scores), low, high, how.level, f"bootstrap, {how.draws:,} draws, centred")


_SYSTEMS_DRAWN = (
    "intervals resample systems; of few systems those of ranks are approximate, wide (of 10 systems they held the "
    "truth in 99 % of 1,000 simulations)"
)


def systems_table(system: Words, given: Scored, how: Resampling) -> Table:
    """Does the judge rank systems as gold does? Correlations of their mean scores, systems resampled for intervals."""
    chosen = given.paired & (system.codes >= 0)
    codes = np.unique(system.codes[chosen], return_inverse=True)[1].ravel()
    scores, gold = (group_means(each[chosen], codes) for each in (given.score, given.gold))
    found = measure(scores, gold, measures_for(False), how)
    rows: list[list[Cell]] = [[name, value] for name, value in found.items()]
    title = f"Ranking of {counted(len(scores), 'system')} by mean score{given.unit}"
    return table("systems", title, ("statistic", "value"), rows, _SYSTEMS_DRAWN)


def other_judge_table(names: Judges, rival: Floats, given: Scored, how: Resampling) -> Table:
    """A second judge on the same items: each statistic, the paired difference, and McNemar on exact agreement."""
    known = ~np.isnan(rival)
    rival = given.given(rival)
    lost = int((known & np.isnan(rival)).sum())
    both = given.paired & ~np.isnan(rival)
    score, other, gold = given.score[both], rival[both], given.gold[both]
    kinds, cluster = given.kinds, given.clusters(both)
    dropped = len(both) - len(gold)
    first, second = (measure(each, gold, kinds, how, cluster, dropped=dropped) for each in (score, other))
    less = difference(score, other, gold, kinds, how, cluster)
    rows: list[list[Cell]] = [[each, first[each], second[each], less[each]] for each in kinds]
    note = ""
    if given.shared:
        note = mcnemar_told(mcnemar(score == gold, other == gold, cluster), names, "exact", how.level)
    return table(
        "rival",
        f"{names.own} compared with {names.rival}, on the same {counted(len(gold), 'row')}{given.unit}",
        ("statistic", *names, "difference"),
        rows,
        note,
        f"{counted(lost, 'value')} of {names.rival} that are not on the scale, left out" if lost else "",
    )
