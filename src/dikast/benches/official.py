"""The figure that a bench's authors report, computed from the rows of an audit: a run or recorded verdicts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dikast.audit.audit import judged_scores
from dikast.audit.estimate import Estimate, undefined
from dikast.audit.rendering import Audit
from dikast.audit.results import Agreement, PlayerRanking, Slices
from dikast.audit.sections.slices import slice_table
from dikast.audit.statistics.against_gold.classes import class_estimates
from dikast.audit.statistics.intervals import clusters_of
from dikast.audit.tables.choices import DISAGREE, NONE, SECOND, TIE, WRONG
from dikast.audit.tables.columns import group_codes
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import Paired, paired
from dikast.audit.tables.run_rows import SAMPLES_MEAN
from dikast.benches.bench_terms import Metric, rule_of
from dikast.benches.best_of import best_of, graded_items, order_distance, ties_score
from dikast.benches.compositional import bias_pairs, bias_worth
from dikast.benches.definition import Bench
from dikast.benches.native_prompts import scores_of_both
from dikast.benches.pair_points import CREDIT, POINTS, constants, games_of, mean_of_orders, of_majorities, of_verdicts
from dikast.benches.unit_means import (
    SHARE,
    Bounds,
    Codes,
    Floats,
    Masks,
    OfficialFigure,
    Units,
    group_shares,
    joined_clusters,
)
from dikast.core.errors import UserError

_NO_TIES = " without gold ties"  # at the end of a metric's name


def official_figures(
    bench: Bench, audit: Audit, data: Data, groups: Sequence[tuple[str, ...]] = ()
) -> list[OfficialFigure]:
    """The figures of the bench's `official` on the rows of `audit`, which are `data`. UserError for rows without them.

    `groups` are the columns to slice by, each entry crossed within itself; that of the bench's `official.group` first.
    They stand in the rows in this order, each once ("by 0", ...).
    """
    columns, official = columns_of(groups), bench.official
    sliced = [(names, _words(data, [columns.index(name) for name in names])) for names in groups]
    found = []
    for metric in official.metric:
        if _lacks_group(bench, columns):
            why = f"undefined: it is made of groups; name the column that holds them (by: {official.group})"
            found.append(
                OfficialFigure(metric, undefined(0, why, level=data.plan.level), {}, rule_of(official, metric))
            )
        elif metric in _SCORES and not _of_first_sample(metric, data):
            found.append(_of_audit(metric, audit, data, groups[1:]))
        elif metric in _CLASSES:
            found.append(_of_classes(bench, metric, data))
        elif metric == "kendall of models":
            found.append(_of_models(metric, audit))
        elif metric == "relative score":
            found.append(_of_references(bench, metric, data, sliced))
        elif metric == "bradley-terry score":
            found.append(_of_players(metric, audit, data))
        else:
            found.append(_own(bench, metric, data, sliced, data.plan.level))
    if official.overall:
        alike = replace(bench, official=replace(official, over="rows", overall=False))
        more = official_figures(alike, audit, data, groups)
        found += [OfficialFigure(f"{each.name} over all rows", each.value, {}, each.rule) for each in more]
    return [
        each for figure in found for each in ([figure] if _lacks_group(bench, columns) else _printed(bench, figure))
    ]


def _lacks_group(bench: Bench, columns: Sequence[str]) -> bool:
    """Whether the figures are made of groups that none of the `columns` tells."""
    official = bench.official
    of_groups = official.over in ("groups", "sections") or official.printed or "all of a group" in official.metric
    return bool(of_groups) and official.group not in columns


def _printed(bench: Bench, figure: OfficialFigure) -> list[OfficialFigure]:
    """The figures of the groups that the authors print each by itself, then the one over all rows, which pools them."""
    if not figure.groups:
        return [figure]
    level = figure.value.level
    of_groups = {name: figure.groups.get(name) for name in bench.official.printed}
    apart = [
        OfficialFigure(f"{figure.name}: {name}", each or undefined(0, "undefined: no rows", level=level), {}, told)
        for name, each in of_groups.items()
        for told in [figure.rule.replace("all rows", "its rows")]
    ]
    pooled = f"{figure.rule}, which pools groups that the authors print apart: no figure of theirs"
    return [*apart, replace(figure, rule=pooled, pooled=True)] if apart else [figure]


def floors(bench: Bench, data: Data, groups: Sequence[tuple[str, ...]] = ()) -> list[tuple[str, Estimate, str]]:
    """What judges that read nothing earn by the rule of the bench's figures, on all rows with gold, with the rule.

    Of pairs: one that always chooses the same slot, in whichever order it is asked, one that always says tie. Of
    several responses: one that scores all alike. `groups` are as in `official_figures`; agreement of scores has
    floors in the audit.
    """
    bench = replace(bench, official=replace(bench.official, majority=False))  # of a judge that never wavers
    columns = columns_of(groups)
    sliced = [(names, _words(data, [columns.index(name) for name in names])) for names in groups]
    found = []
    for metric in () if _lacks_group(bench, columns) else bench.official.metric:
        if metric in _OF_ITEMS:
            alike = replace(data, numbers={**data.numbers, "score": np.zeros(len(data))})
            figure = _own(bench, metric, alike, sliced, data.plan.level)
            found.append((f"a judge that scores all alike ({metric})", figure.value, figure.rule))
        elif bench.pairs and metric in {*POINTS, *_NEED_GOLD, *_CLASSES} - _NO_FLOOR:
            for name, given in constants(paired(data)):
                figure = (
                    _of_classes(bench, metric, data, given)
                    if metric in _CLASSES
                    else _own(bench, metric, data, sliced, data.plan.level, given)
                )
                for each in _printed(bench, figure):
                    told = each.title if each.pooled else each.name
                    found.append((f"a judge that always {name} ({told})", each.value, each.rule))
    return found


def columns_of(groups: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The columns of all groups, each once."""
    return tuple(dict.fromkeys(name for names in groups for name in names))


_OF_ITEMS = ("best of", "order distance")
_OF_OTHER_UNITS = (*_OF_ITEMS, "all of a group", "bias deviation and conformity")
_NEED_GOLD = ("accuracy without gold ties", "accuracy as shown without gold ties", "all of a group")
_NO_FLOOR = {"win rate", "reward", "same in both orders"}  # of the responses, or not of right verdicts
_ANSWERED = ("mean score", "best of", "order distance", "win rate", "reward")  # figures that the audit has not
_OF_MODELS = ("win rate", "reward")  # figures of each model, and therefore ours too
_SCORES: frozenset[Metric] = frozenset(("pearson", "spearman", "kendall_tau_b", "exact", "mae"))
_CLASSES: frozenset[Metric] = frozenset(("macro precision", "macro recall", "macro f1"))


def _of_audit(metric: Metric, audit: Audit, data: Data, beside: Sequence[tuple[str, ...]]) -> OfficialFigure:
    """From the audit, which has the figures of the first of the groups; those of the groups `beside` from its rows."""
    agreement = audit.result(Agreement)
    value = agreement.statistics[metric].value if agreement is not None and metric in agreement.statistics else None
    told = "missing verdicts are dropped and counted; all rows alike"
    sliced = audit.result(Slices)
    groups = {} if sliced is None else dict(sliced.statistics.get(metric, {}))
    given, _ = judged_scores(data) if beside and value is not None else (None, None)
    for place, (name, *_) in enumerate(beside, 1):
        if given is None:
            break
        codes, names = group_codes([data.words[f"by {place}"]])
        found = slice_table(codes, names, given, data.plan.resampling, name).result
        assert isinstance(found, Slices)
        groups.update({f"{name} {each}": value for each, value in found.statistics.get(metric, {}).items()})
    return OfficialFigure(metric, value or undefined(0, "undefined: there is no gold to agree with"), groups, told)


def _of_first_sample(metric: Metric, data: Data) -> bool:
    """Whether a figure is of the first of several samples: their mean lies between labels, and is exact by chance."""
    return metric == "exact" and data.plan.score == SAMPLES_MEAN and "retested" in data.numbers


def _of_models(metric: Metric, audit: Audit) -> OfficialFigure:
    """From the audit's table of systems, which are the models whose responses were judged."""
    told = "each model's mean over its rows with a verdict and gold; models are resampled"
    if "systems" not in audit:
        why = "undefined: needs gold and the responses of two models or more (records with 'model' and 'gold')"
        return OfficialFigure(metric, undefined(0, why), {}, told)
    return OfficialFigure(metric, audit["systems"].estimate("kendall_tau_b"), {}, told)


def _of_references(
    bench: Bench, metric: Metric, data: Data, sliced: Sequence[tuple[tuple[str, ...], list[str]]]
) -> OfficialFigure:
    """From the replies to prompts that grade a reference before the response."""
    given, level = scores_of_both(data), data.plan.level
    if given is None:
        why = "undefined: no reply grades the reference too (--prompt native asks for that)"
        return OfficialFigure(metric, undefined(0, why, level=level), {}, rule_of(bench.official, metric))
    scores, references, both = given
    clusters = data.words["cluster"].codes if "cluster" in data.words else None
    units = Units(scores, np.ones(len(scores), bool), None, clusters, level, (-math.inf, math.inf))
    groups = {
        name if not place else f"{' x '.join(names)} {name}": units.percent(references, np.array(rows) == name)
        for place, (names, rows) in enumerate(sliced)
        for name in sorted(set(rows))
    }
    answered = replace(units.percent(references, both), dropped=int((~both).sum()))
    return OfficialFigure(metric, units.percent(references), groups, rule_of(bench.official, metric), answered)


def _of_players(metric: Metric, audit: Audit, data: Data) -> OfficialFigure:
    """From the audit's ranking of players: the chance of each to beat its anchor, which is the baseline."""
    strong, tied = data.plan.strong, "a tie, or orders that disagree, are half a win"
    told = f"a missing verdict is no game; {tied}; a strong verdict counts {strong:g} times; all games alike"
    ranking = audit.result(PlayerRanking)
    if ranking is None or ranking.anchor is None:
        why = (
            "undefined: needs a verdict on a pair whose models are named (--columns: first: =BASELINE, second: COLUMN)"
        )
        return OfficialFigure(metric, undefined(0, why, level=data.plan.level), {}, told)
    models = {name: each for name, each in ranking.players.items() if name != ranking.anchor}
    groups = {name: each.beats_anchor for name, each in models.items()}
    several = undefined(len(groups), f"one for each of {len(groups)} models", level=data.plan.level)
    whole = next(iter(groups.values())) if len(groups) == 1 else several
    equal = {name: each.controlled for name, each in models.items() if each.controlled is not None}
    ours = {f"{ranking.held} controlled": equal} if equal else {}
    return OfficialFigure(metric, whole, groups, told, ours=ours)


def _of_classes(bench: Bench, metric: Metric, data: Data, given: Paired | None = None) -> OfficialFigure:
    """Class metrics over the verdicts of single orders, clustered by pair; `given` replaces the judge's verdicts."""
    missing = bench.official.failures if bench.official.failures in ("tie", "wrong") else "drop"
    given = given or paired(replace(data, plan=replace(data.plan, unscored=missing), notes=[]))
    games = games_of(given)
    said, gold = np.concatenate([choice for choice, _ in games]), np.tile(given.gold, len(games))
    counts = (said != NONE) & (gold != NONE)
    alone = given.cluster is None and len(games) == 1
    pair = np.arange(len(given.gold)) if given.cluster is None else given.cluster
    cluster = None if alone else clusters_of(np.tile(pair, len(games))[counts])
    found = class_estimates(said[counts], gold[counts], given.how, cluster, outside=(WRONG, DISAGREE))
    return OfficialFigure(metric, found[metric.replace(" ", "_")], {}, rule_of(bench.official, metric))


def _words(data: Data, places: Sequence[int]) -> list[str]:
    """The group of each row, several columns crossed."""
    columns = [data.words[f"by {place}"] for place in places]
    return [
        " x ".join(each.names[each.codes[i]] if each.codes[i] >= 0 else "" for each in columns)
        for i in range(len(data))
    ]


def _own(
    bench: Bench,
    metric: Metric,
    data: Data,
    sliced: Sequence[tuple[tuple[str, ...], list[str]]],
    level: float,
    given: Paired | None = None,
) -> OfficialFigure:
    """A figure of units' points; of the verdicts `given` in place of the judge's."""
    group = bench.official.group
    main = next((rows for names, rows in sliced if group in names), sliced[0][1] if sliced and not group else None)
    clusters = _clusters(bench, metric, data, main)
    low, high = _bounds(metric, data)
    bounds = (min(0.0, low), max(0.0, high)) if bench.official.failures == "zero" else (low, high)
    units = Units(*_worth(bench, metric, data, main, given), clusters, level, bounds)
    if bench.official.over == "verdicts":
        units = of_verdicts(bench, units, given or paired(data))
    apart = {}
    if metric == "best of" and (name := bench.official.ties_apart):
        apart[name] = ties_score([each for each in graded_items(data, main) if each.group == name], level)
    of_groups = "all of a group" in bench.official.metric
    if of_groups and metric != "all of a group" and bench.official.over in ("rows", "verdicts"):
        units = replace(units, group=None)  # the groups are questions of several pairs
    found = _figure(bench, metric, units, apart)
    first = np.unique(np.array(main), return_index=True)[1] if main is not None and metric == "all of a group" else None
    for names, rows in sliced:
        if rows is not main and (first is not None or metric not in _OF_OTHER_UNITS):
            own = rows * (len(units.worth) // len(rows)) if first is None else [rows[int(i)] for i in first]
            more = units.by_group(own)
            found.groups.update({f"{' x '.join(names)} {name}": each for name, each in more.items()})
    if metric not in _ANSWERED or given is not None:
        return found
    answered, filled, alone = _answered(bench, metric, data, units)
    ours = {} if metric not in _OF_MODELS or main is None else {"rows with a verdict": alone.by_group(main)}
    return replace(found, answered=answered, bounds=filled, ours=ours)


def _clusters(bench: Bench, metric: Metric, data: Data, group: Sequence[str] | None) -> Codes | None:
    """The cluster of each unit (n,), None where units are independent. Groups of pairs that share a cluster are one."""
    if "cluster" not in data.words:
        return None
    codes = data.words["cluster"].codes
    if metric == "all of a group" and group is not None:
        return joined_clusters(np.unique(np.array(group), return_inverse=True)[1], codes)
    if metric == "bias deviation and conformity":
        return joined_clusters(bias_pairs(data), codes)
    if metric in _OF_ITEMS and data.plan.cluster:
        _, first = np.unique(data.words["item"].codes, return_index=True)  # the order of `graded_items`
        return np.asarray(codes[first])
    return None if metric in _OF_OTHER_UNITS else codes


def _answered(bench: Bench, metric: Metric, data: Data, units: Units) -> tuple[Estimate, Bounds | None, Units]:
    """The mean over the answered rows, that over all rows with the least or the greatest value for the others, and the
    units of the answered rows.
    """
    worth, counts, _ = _worth(replace(bench, official=replace(bench.official, failures="skipped")), metric, data, None)
    missing, bounds = 1.0 - counts, _bounds(metric, data)
    if metric in _OF_MODELS:  # two games of a pair count apart
        games = games_of(replace(paired(data), gold=np.full(len(data), SECOND, np.int64)))
        missing = np.mean([~known for _, known in games], 0)
    alone = replace(units, worth=worth, counts=counts, bounds=bounds)
    value = replace(alone.mean(), dropped=int((missing > 0).sum()))
    if not missing.any() or not all(map(math.isfinite, bounds)) or not len(worth):
        return value, None, alone
    earned = float((np.nan_to_num(worth) * (1 - missing)).sum())
    low, high = ((earned + end * float(missing.sum())) / len(worth) for end in bounds)
    return value, (low, high), alone


def _worth(
    bench: Bench, metric: Metric, data: Data, group: Sequence[str] | None, given: Paired | None = None
) -> tuple[Floats, Masks, Sequence[str] | None]:
    """The points of each unit (a pair, an item, a group of pairs), which units count, and the group of each."""
    if metric == "bias deviation and conformity":
        return bias_worth(data, group, bench.official.conformity)
    if metric in ("best of", "order distance", "mean score"):
        return _of_responses(bench, metric, data, group)
    if metric == "exact":
        graded, _ = judged_scores(data)
        assert graded is not None
        first = graded.given(data.numbers["retested"])
        return (first == graded.gold).astype(float), ~np.isnan(first) & ~np.isnan(graded.gold), group
    most = bench.official.majority and metric == "accuracy" and given is None
    given = given or paired(data)
    if given.choice is None:
        raise UserError(f"{data.plan.file}: holds no choices between two responses, which {metric!r} is made of")
    if metric == "all of a group":
        assert group is not None
        right = mean_of_orders(bench, given)
        known = given.gold != NONE
        names, at = np.unique(np.array(group), return_inverse=True)
        of_group = [known & (at == i) for i in range(len(names))]
        all_right = np.array([float((right[mine] == 1).all()) for mine in of_group])
        return all_right, np.array([bool(mine.any()) for mine in of_group]), None
    if metric in _OF_MODELS:
        given = replace(given, gold=np.full(len(data), SECOND, np.int64))
    majorities = of_majorities(data, given.gold) if most else None
    worth = POINTS[metric.removesuffix(_NO_TIES)](bench, given) if majorities is None else majorities
    if metric == "same in both orders":
        return worth, ~np.isnan(worth), group
    due = (given.gold != NONE) & ~(metric.endswith(_NO_TIES) & (given.gold == TIE))
    return worth, due & ~np.isnan(worth), group


def _of_responses(
    bench: Bench, metric: Metric, data: Data, group: Sequence[str] | None
) -> tuple[Floats, Masks, Sequence[str] | None]:
    scores = data.numbers["score"]
    if metric == "mean score":
        scores = np.nan_to_num(scores) if bench.official.failures == "zero" else scores
        return scores, ~np.isnan(scores), group
    items, failures = graded_items(data, group), bench.official.failures
    one = order_distance if metric == "order distance" else best_of
    lost = 1.0 if metric == "order distance" and failures == "wrong" else CREDIT[failures]
    found = np.array([one(each) if each.whole or failures != "skipped" else math.nan for each in items])
    worth = np.where(np.isnan(found), lost, found)
    return worth, ~np.isnan(worth), [each.group for each in items] if group is not None else None


def _figure(bench: Bench, metric: Metric, units: Units, apart: Mapping[str, Estimate]) -> OfficialFigure:
    official, absent = bench.official, ""
    groups = {} if units.group is None else units.by_group(units.group)
    groups |= {name: each for name, each in apart.items() if name in groups}
    whole, joint = units.mean(), replace(units, cluster=None) if apart else units
    if official.over == "groups" and groups:
        absent = f"; no row of {official.ties_apart}" if official.ties_apart not in ("", *groups) else ""
        whole = joint.over_groups(groups, dict.fromkeys(groups, 1.0))
    elif official.over == "sections" and units.group is not None:
        shares = {name: group_shares(groups, inside, official.weights) for name, inside in official.sections.items()}
        missing = [name for inside in official.sections.values() for name in inside if name not in groups]
        absent = f"; groups without a row: {', '.join(missing)}" if missing else ""
        together: dict[str, float] = {}
        for part in shares.values():
            for name, each in part.items():
                together[name] = together.get(name, 0.0) + each
        whole = joint.over_groups(groups, together if all(shares.values()) else {})
        sections = {f"section {name}": joint.over_groups(groups, part) for name, part in shares.items()}
        groups = {**sections, **groups}
    absent += "; groups as independent, since one has a score of its own" if apart else ""
    return OfficialFigure(metric, whole, groups, rule_of(bench.official, metric) + absent)


def _bounds(metric: Metric, data: Data) -> Bounds:
    """The least and the greatest value of a figure: a share, a mean of rewards or of scores."""
    if metric == "reward":
        return (-1.0, 1.0)
    if metric != "mean score":
        return SHARE
    scale = data.plan.scale
    return (-math.inf, math.inf) if scale is None else (scale.low, scale.high)
