"""Agreement among the human raters (inter-rater reliability): the ceiling of every judge."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, Table, table
from dikast.audit.results import RaterAgreement, RaterPair, RaterPairs
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.intervals import Resampling, bootstrap, clusters_of, share
from dikast.audit.statistics.rater_agreement import fleiss_kappa, icc_2_1, krippendorff_alpha
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_FEWEST = 10  # rows, which two people may well rate alike
_DRAWS = 500  # alpha and the other coefficients are recomputed in each draw


def rater_pairs_table(
    raters: Floats, names: Sequence[str], how: Resampling, *, nominal: bool, shared: bool, cluster: Codes | None = None
) -> Table:
    """Every rater against every other, over the items both rated."""
    kinds = ["exact", "cohen_kappa"] if nominal else ["pearson", "spearman", "kendall_tau_b"]
    if shared and not nominal:
        kinds += ["exact", "mae", "cohen_kappa", "quadratic_kappa"]
    pairs: list[RaterPair] = []
    notes = []
    for i in range(len(raters)):
        for j in range(i + 1, len(raters)):
            both = ~np.isnan(raters[i]) & ~np.isnan(raters[j])
            codes = None if cluster is None else clusters_of(cluster[both])
            found = measure(raters[i, both], raters[j, both], kinds, how, codes)
            if both.sum() >= _FEWEST and np.ptp(raters[i, both]) and (raters[i, both] == raters[j, both]).all():
                notes.append(
                    f"{names[i]!r} and {names[j]!r} are equal in all {counted(int(both.sum()), 'row')} that both rated:"
                    " if one is a copy of the other, agreement among raters and its ceiling say nothing"
                )
            pairs.append(RaterPair(names[i], names[j], int(both.sum()), found))
    rows: list[list[Cell]] = [
        [f"{each.first} - {each.second}", each.n, *(each.statistics[kind] for kind in kinds)] for each in pairs
    ]
    title, columns = "Rater against rater", ("raters", "n", *kinds)
    return table("rater pairs", title, columns, rows, *notes, result=RaterPairs(tuple(pairs)))


def raters_table(raters: Floats, how: Resampling, *, nominal: bool, cluster: Codes | None = None) -> Table:
    """Coefficients over all raters at once; items are resampled for intervals."""
    present = ~np.isnan(raters)
    complete = raters[:, present.all(0)]
    inside = None if cluster is None else cluster[present.all(0)]
    rated = int((present.sum(0) >= 2).sum())
    told: dict[str, Estimate] = {}
    if complete.shape[1]:
        told["all raters equal"] = share((complete == complete[0]).all(0), how.level, inside)
        told["fleiss_kappa"] = _drawn(complete, fleiss_kappa, how, inside)
    levels = ("nominal",) if nominal else ("nominal", "ordinal", "interval")
    for level in levels:

        def alpha(given: Floats, level: str = level) -> float:
            return krippendorff_alpha(given, level)  # type: ignore[arg-type]

        found = _drawn(raters, alpha, how, cluster)
        told[f"alpha ({level})"] = replace(found, n=rated)
    if complete.shape[1] and not nominal:
        told["icc_2_1"] = _drawn(complete, icc_2_1, how, inside)
    title = f"{counted(len(raters), 'rater')}, {counted(rated, 'item')} with two or more ratings"
    rows: list[list[Cell]] = [[name, each.n, each] for name, each in told.items()]
    everybody = "alpha uses items with two ratings or more, the other statistics those that all raters rated"
    if not complete.shape[1]:
        everybody = (
            f"no item was rated by all {len(raters)} raters, which the share of all equal, Fleiss' kappa and ICC need"
        )
    return table(
        "raters", title, ("statistic", "n", "value"), rows, everybody, result=RaterAgreement(len(raters), told)
    )


def _drawn(ratings: Floats, statistic: object, how: Resampling, cluster: Codes | None) -> Estimate:
    """A statistic of ratings (raters, items), with a bootstrap over items."""
    function = statistic
    if not callable(function):
        raise TypeError("a statistic is a function of ratings")
    value, n = float(function(ratings)), ratings.shape[1]
    if math.isnan(value) or n < 4:
        return Estimate(value, n, level=how.level)
    few = Resampling(min(how.draws, _DRAWS), how.level, how.seed)

    def weighted(weights: Floats) -> Floats:
        return np.array([function(np.repeat(ratings, each.astype(np.int64), axis=1)) for each in weights])

    if n * few.draws > 4e8:
        return Estimate(value, n, level=how.level, note="too many items to resample")
    codes = None if cluster is None else clusters_of(cluster)
    draws = bootstrap(weighted, n, few, cluster=codes)
    groups = n if codes is None else int(codes.max()) + 1
    return Estimate(value, n, *how.interval(draws, groups=groups), how.level, f"bootstrap, {few.draws:,} draws")
