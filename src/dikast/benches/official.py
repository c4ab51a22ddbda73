"""The figure that a bench's authors report, computed from the rows of an audit: a run or recorded verdicts."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.audit import audit_file, rows_of
from dikast.audit.estimate import Estimate, undefined
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit
from dikast.audit.results import Agreement
from dikast.audit.statistics.intervals import ALIKE, error_of, kept_within, mean_estimate, share, t_of
from dikast.audit.tables.choices import FIRST, NONE, SECOND, TIE
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import Paired, paired
from dikast.benches.best_of import best_of, graded_items, order_distance, ties_score
from dikast.benches.compositional import bias_worth
from dikast.benches.definition import Bench, Metric
from dikast.core.errors import UserError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
Bounds = tuple[float, float]
SHARE: Bounds = (0.0, 1.0)
_CREDIT = {"wrong": 0.0, "half": 0.5, "quarter": 0.25, "skipped": math.nan, "tie": math.nan}


@dataclass(frozen=True, slots=True)
class OfficialFigure:
    """One official figure; `groups` has it for each group, and `rule` says how failures and groups were counted.

    `answered` is the figure of the answered rows alone, all rows alike, and `bounds` what it had been with the worst
    and the best verdicts for the missing ones; None where the audit has both.
    """

    name: str
    value: Estimate
    groups: dict[str, Estimate]
    rule: str
    answered: Estimate | None = None
    bounds: Bounds | None = None


def official_figures(
    bench: Bench, plan: AuditPlan, audit: Audit, groups: Sequence[tuple[str, ...]] = ()
) -> list[OfficialFigure]:
    """The figures of the bench's `official`; `audit` is that of the same plan. UserError as `audit_file`.

    `groups` are the columns to slice by, each entry crossed within itself; that of the bench's `official.group` first.
    """
    columns = tuple(dict.fromkeys(name for names in groups for name in names))
    of_audit = (*_SCORES, *_CLASSES, "kendall of models")
    own = [metric for metric in bench.official.metric if metric not in of_audit]
    data = rows_of(replace(plan, by=columns)) if own else None
    sliced = (
        [] if data is None else [(names, _words(data, [columns.index(name) for name in names])) for names in groups]
    )
    found = []
    for metric in bench.official.metric:
        if metric in _SCORES:
            found.append(_of_audit(metric, audit))
        elif metric in _CLASSES:
            found.append(_of_classes(bench, metric, plan, audit))
        elif metric == "kendall of models":
            found.append(_of_models(metric, audit))
        else:
            assert data is not None
            found.append(_own(bench, metric, data, sliced, plan.level))
    return found


_OF_OTHER_UNITS = ("all of a group", "best of", "order distance", "bias deviation and conformity")
_ANSWERED = ("mean score", "best of", "order distance", "win rate")  # figures that the audit has not
_SCORES: frozenset[Metric] = frozenset(("pearson", "spearman", "kendall_tau_b", "exact", "mae"))
_CLASSES: dict[Metric, str] = {"macro precision": "macro P", "macro recall": "macro R", "macro f1": "macro F1"}


def _of_audit(metric: Metric, audit: Audit) -> OfficialFigure:
    agreement = audit.result(Agreement)
    value = agreement.statistics[metric].value if agreement is not None and metric in agreement.statistics else None
    told = "missing verdicts are dropped and counted; all rows alike"
    return OfficialFigure(metric, value or undefined(0, "undefined: there is no gold to agree with"), {}, told)


def _of_models(metric: Metric, audit: Audit) -> OfficialFigure:
    """From the audit's table of systems, which are the models whose responses were judged."""
    told = "each model's mean over its rows with a verdict and gold; models are resampled"
    if "systems" not in audit:
        why = "undefined: needs gold and the responses of two models or more (records with 'model' and 'gold')"
        return OfficialFigure(metric, undefined(0, why), {}, told)
    return OfficialFigure(metric, audit["systems"].estimate("kendall_tau_b"), {}, told)


def _of_classes(bench: Bench, metric: Metric, plan: AuditPlan, audit: Audit) -> OfficialFigure:
    """From the audit's confusion matrix, with missing verdicts as ties if the authors' code counts them so."""
    if bench.official.failures == "tie" and plan.unscored != "tie":
        audit = audit_file(replace(plan, unscored="tie", by=()))
    table = audit["classes"]
    return OfficialFigure(metric, table.estimate(str(table.rows[0][0]), _CLASSES[metric]), {}, _rule(bench, metric))


def _words(data: Data, places: Sequence[int]) -> list[str]:
    """The group of each row, several columns crossed."""
    columns = [data.words[f"by {place}"] for place in places]
    return [
        " x ".join(each.names[each.codes[i]] if each.codes[i] >= 0 else "" for each in columns)
        for i in range(len(data))
    ]


@dataclass(frozen=True, slots=True)
class _Units:
    """The points of each unit (n,), which units count, the group and the cluster of each, and how means are told.

    A unit is a row, an item or a group of pairs; rows of one item (its criteria or responses) are a cluster.
    """

    worth: Floats
    counts: Masks
    group: Sequence[str] | None
    cluster: Codes | None
    level: float
    bounds: Bounds

    def mean(self, chosen: Masks | None = None) -> Estimate:
        """The mean of the chosen units (n,), of all by default; those that do not count are dropped."""
        mine = np.ones(len(self.worth), bool) if chosen is None else chosen
        known, dropped = mine & self.counts, int((mine & ~self.counts).sum())
        cluster = None if self.cluster is None else self.cluster[known]
        if not known.any():
            return undefined(0, "undefined: no rows", level=self.level, dropped=dropped)
        if self.bounds == SHARE:
            return share(self.worth[known], self.level, cluster, dropped=dropped)
        return mean_estimate(self.worth[known], self.level, cluster, dropped=dropped, within=self.bounds)

    def by_group(self, group: Sequence[str]) -> dict[str, Estimate]:
        """The mean of the units of each group; `group` (n,) names it."""
        names, place = np.unique(np.array(group, dtype=str), return_inverse=True)
        return {str(name): self.mean(place == code) for code, name in enumerate(names)}

    def over_groups(self, groups: Mapping[str, Estimate]) -> Estimate:
        """The mean of the means of all groups, weighted equally; of clustered rows, with the error of whole clusters.

        Groups that share items (the criteria of a sheet) are not independent.
        """
        found = _mean_of(list(groups.values()), self.level, self.bounds)
        if self.cluster is None or self.group is None or math.isnan(found.value):
            return found
        mine = [groups[name] for name in self.group]
        parts = (self.worth - [each.value for each in mine]) / [each.n * len(groups) for each in mine]
        error = error_of(parts[self.counts], self.cluster[self.counts])
        known = error.groups > 1 and error.error > ALIKE
        half = t_of(self.level, error.groups - 1) * error.error if known else math.nan
        method = f"of {len(groups)} means, by cluster"
        return kept_within(replace(found, low=found.value - half, high=found.value + half, method=method), self.bounds)


def _own(
    bench: Bench, metric: Metric, data: Data, sliced: Sequence[tuple[tuple[str, ...], list[str]]], level: float
) -> OfficialFigure:
    group = bench.official.group
    main = next((rows for names, rows in sliced if group in names), sliced[0][1] if sliced and not group else None)
    cluster = data.words["cluster"].codes if "cluster" in data.words and metric not in _OF_OTHER_UNITS else None
    units = _Units(*_worth(bench, metric, data, main), cluster, level, _bounds(metric, data))
    apart = {}
    if metric == "best of" and (name := bench.official.ties_apart):
        apart[name] = ties_score([each for each in graded_items(data, main) if each.group == name], level)
    found = _figure(bench, metric, units, apart)
    for names, rows in sliced:
        if rows is not main and metric not in _OF_OTHER_UNITS:
            more = units.by_group(rows)
            found.groups.update({f"{' x '.join(names)} {name}": each for name, each in more.items()})
    if metric not in _ANSWERED:
        return found
    answered, filled = _answered(bench, metric, data, units)
    return replace(found, answered=answered, bounds=filled)


def _answered(bench: Bench, metric: Metric, data: Data, units: _Units) -> tuple[Estimate, Bounds | None]:
    """The mean over the answered rows, and that over all rows with the least or the greatest value for the others."""
    worth, counts, _ = _worth(replace(bench, official=replace(bench.official, failures="skipped")), metric, data, None)
    missing, bounds = 1.0 - counts, units.bounds
    if metric == "win rate":  # two games of a pair count apart
        games = _games(replace(paired(data), gold=np.full(len(data), SECOND, np.int64)))
        missing = np.mean([~known for _, known in games], 0)
    value = replace(replace(units, worth=worth, counts=counts).mean(), dropped=int((missing > 0).sum()))
    if not missing.any() or not all(map(math.isfinite, bounds)) or not len(worth):
        return value, None
    earned = float((np.nan_to_num(worth) * (1 - missing)).sum())
    low, high = ((earned + end * float(missing.sum())) / len(worth) for end in bounds)
    return value, (low, high)


def _worth(
    bench: Bench, metric: Metric, data: Data, group: Sequence[str] | None
) -> tuple[Floats, Masks, Sequence[str] | None]:
    """The points of each unit (a pair, an item, a group of pairs), which units count, and the group of each."""
    if metric == "bias deviation and conformity":
        return bias_worth(data, group, bench.official.conformity)
    if metric in ("best of", "order distance", "mean score"):
        return _of_responses(bench, metric, data, group)
    given = paired(data)
    if given.choice is None:
        raise UserError(f"{data.plan.file}: holds no choices between two responses, which {metric!r} is made of")
    if metric == "all of a group":
        assert group is not None
        right = _orders(bench, given)
        known = given.gold != NONE
        names = sorted(set(group))
        at = np.array([names.index(each) for each in group])
        found = [float((right[known & (at == i)] == 1).all()) for i in range(len(names))]
        all_right = np.array(found)
        return all_right, np.array([bool((known & (at == i)).any()) for i in range(len(names))]), None
    if metric == "win rate":
        given = replace(given, gold=np.full(len(data), SECOND, np.int64))
    worth = _OF_PAIRS[metric](bench, given)
    if metric == "same in both orders":
        return worth, ~np.isnan(worth), group
    return worth, (given.gold != NONE) & ~np.isnan(worth), group


def _games(given: Paired) -> list[tuple[Codes, Masks]]:
    """The choice in each order, as responses, and whether there is a verdict."""
    assert given.choice is not None
    games = [(given.choice, given.known)]
    return games if given.swapped is None else [*games, (given.swapped, given.known_swapped)]


def _earned(bench: Bench, choice: Codes, known: Masks, gold: Codes) -> Floats:
    """The points of a verdict in one order (n,); NaN where the authors' code skips it."""
    official = bench.official
    earned = (choice == gold).astype(float)
    tied = choice == TIE
    if official.ties == "half":
        earned = np.where(tied, 0.5, earned)
    elif official.ties == "wrong":
        earned = np.where(tied, 0.0, earned)
    if official.failures == "tie":
        lost = 0.5 if official.ties == "half" else (gold == TIE).astype(float) * (official.ties != "wrong")
        return np.where(known, earned, lost)
    return np.where(known, earned, _CREDIT[official.failures])


def _orders(bench: Bench, given: Paired) -> Floats:
    """The mean over the orders: the expected value if the order is drawn at random."""
    earned = np.array([_earned(bench, choice, known, given.gold) for choice, known in _games(given)])
    count = (~np.isnan(earned)).sum(0)
    return np.where(count > 0, np.nansum(earned, 0) / np.maximum(count, 1), np.nan)


def _both(bench: Bench, given: Paired) -> Floats:
    earned = np.array([_earned(bench, choice, known, given.gold) for choice, known in _games(given)])
    return np.asarray(earned.min(0))


def _net(bench: Bench, given: Paired) -> Floats:
    """Right minus wrong games: above 0 is right. A tie or a missing verdict counts as neither."""
    net = np.zeros(len(given.gold))
    for choice, known in _games(given):
        decided = known & np.isin(choice, (FIRST, SECOND))
        net += np.where(decided, np.where(choice == given.gold, 1, -1), 0)
    return (net > 0).astype(float)


def _one(bench: Bench, given: Paired, order: int) -> Floats:
    games = _games(given)
    if order >= len(games):
        return np.full(len(given.gold), math.nan)
    return _earned(bench, *games[order], given.gold)


def _same(given: Paired) -> Floats:
    """Two missing verdicts count as the same, as in the authors' code."""
    if given.choice is None or given.swapped is None:
        return np.full(len(given.gold), math.nan)
    one, two = (np.where(known, choice, NONE) for choice, known in _games(given))
    return np.asarray(one == two, np.float64)


_OF_PAIRS: dict[str, Callable[[Bench, Paired], Floats]] = {
    "accuracy": _orders,
    "win rate": _orders,
    "accuracy as shown": lambda bench, given: _one(bench, given, 0),
    "accuracy swapped": lambda bench, given: _one(bench, given, 1),
    "right in both orders": _both,
    "same in both orders": lambda bench, given: _same(given),
    "net of two games": _net,
}


def _of_responses(
    bench: Bench, metric: Metric, data: Data, group: Sequence[str] | None
) -> tuple[Floats, Masks, Sequence[str] | None]:
    scores = data.numbers["score"]
    if metric == "mean score":
        return scores, ~np.isnan(scores), group
    items = graded_items(data, group)
    one = order_distance if metric == "order distance" else best_of
    lost = _CREDIT[bench.official.failures]
    if metric == "order distance" and bench.official.failures == "wrong":
        lost = 1.0
    worth = np.array([one(each) if each.whole else lost for each in items])
    return worth, ~np.isnan(worth), [each.group for each in items] if group is not None else None


def _figure(bench: Bench, metric: Metric, units: _Units, apart: Mapping[str, Estimate]) -> OfficialFigure:
    official, absent, level, bounds = bench.official, "", units.level, units.bounds
    groups = {} if units.group is None else units.by_group(units.group)
    groups |= {name: each for name, each in apart.items() if name in groups}
    whole = units.mean()
    if official.over == "groups" and groups:
        whole = units.over_groups(groups)
    elif official.over == "sections" and units.group is not None:
        parts = {}
        for section, inside in official.sections.items():
            parts[section] = _section(groups, list(inside), official.weights, level, bounds)
        missing = [name for inside in official.sections.values() for name in inside if name not in groups]
        absent = f"; groups without a row: {', '.join(missing)}" if missing else ""
        groups = {**{f"section {name}": each for name, each in parts.items()}, **groups}
        whole = _mean_of(list(parts.values()), level, bounds)
    return OfficialFigure(metric, whole, groups, _rule(bench, metric) + absent)


def _rule(bench: Bench, metric: Metric) -> str:
    """How missing verdicts, ties and groups are counted in a figure."""
    official = bench.official
    counted = {
        "wrong": "a missing verdict is wrong", "half": "a missing verdict earns .5",
        "quarter": "a missing verdict earns .25", "skipped": "missing verdicts are skipped",
        "tie": "a missing verdict is a tie",
    }[official.failures]  # fmt: skip
    over = {"rows": "all rows alike", "groups": "groups alike", "sections": "sections alike"}[official.over]
    told = {
        "same in both orders": "no verdict in both orders is the same, in one of them it is not",
        "net of two games": "more right games than wrong ones; a tie or a missing verdict is neither",
        "mean score": "missing verdicts are dropped and counted",
        "best of": f"{counted}; k that share the best score earn 1/k",
        "bias deviation and conformity": "a pair without both scores, or whose unbiased score is the lowest where it "
        "should fall, is left out and counted",
        "order distance": f"{counted}; equal scores: the mean over the orders that they leave open",
    }
    return f"{told.get(metric, f'{counted}; ties: {official.ties}')}; {over}"


def _bounds(metric: Metric, data: Data) -> Bounds:
    """The least and the greatest value of a figure: a share, or a mean of scores."""
    if metric != "mean score":
        return SHARE
    scale = data.plan.scale
    return (-math.inf, math.inf) if scale is None else (scale.low, scale.high)


def _section(
    groups: Mapping[str, Estimate], inside: Sequence[str], weights: Mapping[str, float], level: float, bounds: Bounds
) -> Estimate:
    """The mean of a section's groups by their rows, each row of a group counting as often as the authors say.

    Rows are counted, so that a sample of them weighs its groups as the whole bench does.
    """
    there = [name for name in inside if name in groups]
    by_rows = [groups[name].n * weights.get(name, 1.0) for name in there]
    return _mean_of([groups[name] for name in there], level, bounds, by_rows)


def _mean_of(parts: Sequence[Estimate], level: float, bounds: Bounds, weights: Sequence[float] = ()) -> Estimate:
    """The weighted mean of independent means.

    Each half of its interval adds theirs in quadrature (Zou & Donner 2008), so that groups near 0 or 1, whose
    intervals are lopsided, do not lend it an end that is too near.
    """
    n, dropped = sum(each.n for each in parts), sum(each.dropped for each in parts)
    weight = np.array(weights if len(weights) else [1.0] * len(parts))
    if not len(parts) or not weight.sum() or any(math.isnan(each.value) for each in parts):
        return undefined(n, "undefined: a group has no rows", level=level, dropped=dropped)
    weight = weight / weight.sum()
    value = float(weight @ np.array([each.value for each in parts]))
    below, above = (
        math.sqrt(float(weight**2 @ np.array([(each.value - end) ** 2 for each, end in zip(parts, ends, strict=True)])))
        for ends in ([each.low for each in parts], [each.high for each in parts])
    )
    method = f"of {len(parts)} independent means"
    return kept_within(Estimate(value, n, value - below, value + above, level, method, dropped), bounds)
