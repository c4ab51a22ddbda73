"""An effect of arms with its interval, over items and over seeds together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.against_gold.measures import MEASURES
from dikast.audit.statistics.agreement import BY_ROW, range_of
from dikast.audit.statistics.building_blocks.weights import Weighted, mean_of
from dikast.audit.statistics.intervals import Resampling, bootstrap, holding
from dikast.core.confidence import ALIKE, t_of
from dikast.core.text import counted
from dikast.lab.change_point import change_point, power_law, seeds_redrawn, spread

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
_FEW = 20  # items; below, there is no interval
_CONSTANT = "undefined: all scores or all gold of an arm are alike"
_ONE_SEED = "one seed: what another training would give is unknown"


@dataclass(frozen=True, slots=True)
class ArmRun:
    """The verdicts of one arm and one seed: scores (n,), gold (n,), NaN where there is none, in the order of items."""

    score: Floats
    gold: Floats


def effect(
    arms: Mapping[str, Sequence[ArmRun]],
    weights: Mapping[str, float],
    figure: str,
    *,
    how: Resampling,
    cluster: Codes | None = None,
    trained: bool = True,
    apart: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Estimate:
    """The sum of each arm's figure times its weight, the mean over seeds, with an interval.

    arms: arm -> verdicts by seed, all on the same items in the same order (n,). An item counts where every arm has a
    score for it with every seed (and gold, unless the figure is `mean`); the others are `dropped`. Arms that grade
    different items altogether (`apart`: arm -> which of the rows (n,) are its own) are not paired.

    The squared standard error is the sum of two parts: that over items (a bootstrap draws items, or clusters of them,
    once for all arms and seeds, so that arms are paired), and that over seeds (the variance of the seeds' own effects
    over their number). Student's quantile has the degrees of freedom of Welch and Satterthwaite. The part over items
    contains a little of the other, so the interval is slightly too wide. With `trained` and one seed there is no
    interval: since the variation between trainings is unknown. Judges that are not trained have one seed here.
    """
    lined = _lined(arms, list(weights), figure, cluster, apart)
    if isinstance(lined, _Nothing):
        return lined.told(how)
    n, dropped, groups, count = lined.n, lined.dropped, lined.groups, len(lined.seeds)
    factors = np.array(list(weights.values()))
    ones = np.ones((1, n))
    by_seed = np.array([float((figures(ones) @ factors)[0]) for figures in lined.seeds])
    value = float(by_seed.mean())
    if math.isnan(value):
        return undefined(n, "undefined: all scores or all gold are alike", level=how.level, dropped=dropped)
    draws = bootstrap(lambda w: lined.figures(w) @ factors, n, how, cluster=lined.codes)
    if np.isnan(draws).mean() > 0.1:
        return undefined(n, "undefined in many samples of the items", level=how.level, dropped=dropped)
    items = float(np.nanvar(draws, ddof=1)) * groups / (groups - 1)
    if trained and count < 2:
        return Estimate(value, n, level=how.level, method="none", dropped=dropped, note=_ONE_SEED)
    over = float(by_seed.var(ddof=1)) / count if count > 1 else 0.0
    error, free = _joined(items, groups - 1, over, count - 1)
    if error < ALIKE:
        return Estimate(value, n, level=how.level, method="none", dropped=dropped, note="every item is graded alike")
    half = t_of(how.level, free) * error
    return Estimate(value, n, value - half, value + half, how.level, _method(count, apart), dropped)


def _method(seeds: int, apart: object) -> str:
    return ("over items and seeds" if seeds > 1 else "over items") + (", not paired" if apart else ", paired")


def next_doubling(
    arms: Mapping[str, Sequence[ArmRun]],
    doses: Mapping[str, float],
    figure: str,
    *,
    how: Resampling,
    cluster: Codes | None = None,
    trained: bool = True,
    apart: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Estimate:
    """What a dose twice the largest would add to the figure of arms of these doses, by a saturating power law.

    Items are counted and drawn as for `effect`. The interval is that of the law fitted to figures that are drawn again:
    items by the bootstrap, and, where judges were trained with several seeds, the mean over seeds (`seeds_redrawn`).
    """
    lined = _lined(arms, list(doses), figure, cluster, apart)
    if isinstance(lined, _Nothing):
        return lined.told(how)
    n, dropped, at = lined.n, lined.dropped, np.array(list(doses.values()), np.float64)
    by_seed = np.concatenate([figures(np.ones((1, n))) for figures in lined.seeds])
    gain, exponent = (float(each[0]) for each in power_law(by_seed.mean(0, keepdims=True), at))
    if math.isnan(gain):
        return undefined(n, _CONSTANT, level=how.level, dropped=dropped)
    if trained and len(by_seed) < 2:
        return Estimate(gain, n, level=how.level, method="none", dropped=dropped, note=_ONE_SEED)
    draws = bootstrap(lined.figures, n, how, cluster=lined.codes)
    drawn = power_law(draws + seeds_redrawn(by_seed, how) if len(by_seed) > 1 else draws, at)[0]
    low, high = holding(gain, how.interval(drawn, groups=lined.groups))
    if math.isnan(low):
        note = how.why_none(drawn, groups=lined.groups)
        return Estimate(gain, n, level=how.level, method="none", dropped=dropped, note=note)
    note = f"a - b dose^-c, c {exponent:.2f}" if exponent else "a straight line over log(dose) fits best"
    return Estimate(gain, n, low, high, how.level, _method(len(by_seed), apart), dropped, note)


def over_arms(
    arms: Mapping[str, Sequence[ArmRun]],
    names: Sequence[str],
    doses: Sequence[float],
    figure: str,
    *,
    how: Resampling,
    cluster: Codes | None = None,
    apart: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Estimate:
    """The change point of the arms' figures over `doses`, or without doses the spread of the figures.

    Items are counted and drawn as for `effect`; judges are not trained. Undefined where there is no change point.
    """
    lined = _lined(arms, names, figure, cluster, apart)
    if isinstance(lined, _Nothing):
        return lined.told(how)
    n, dropped = lined.n, lined.dropped
    figures = lined.figures(np.ones((1, n)))[0]
    draws = bootstrap(lined.figures, n, how, cluster=lined.codes)
    known = draws[~np.isnan(draws).any(1)]
    if np.isnan(figures).any() or len(known) < 0.9 * len(draws):
        return undefined(n, _CONSTANT, level=how.level, dropped=dropped)
    if not doses:
        value, low, high = spread(figures, known, how)
        return Estimate(value, n, low, high, how.level, "over items", dropped)
    found = change_point(figures, known, np.asarray(doses, np.float64), how)
    if not found.found:
        return undefined(n, f"none: a line fits as well (p {found.p:.2f})", level=how.level, dropped=dropped)
    note = f"a line fits worse (p {found.p:.3f})"
    return Estimate(found.dose, n, found.low, found.high, how.level, "over items", dropped, note)


class _Nothing(NamedTuple):
    """Why arms have no effect: too few of `n` items."""

    n: int
    why: str
    dropped: int

    def told(self, how: Resampling) -> Estimate:
        """The estimate that says so."""
        return undefined(self.n, self.why, level=how.level, dropped=self.dropped)


class _Lined(NamedTuple):
    """`n` items that count, in `groups` that are drawn together (`codes`, (n,)), and by seed the figures of the arms:
    from weights (b, n) to (b, arms).
    """

    n: int
    dropped: int
    groups: int
    codes: Codes | None
    seeds: Sequence[Weighted]

    def figures(self, weights: Floats) -> Floats:
        """The figures (b, arms), the mean over seeds."""
        return np.asarray(np.mean([figures(weights) for figures in self.seeds], axis=0))


def _lined(
    arms: Mapping[str, Sequence[ArmRun]],
    names: Sequence[str],
    figure: str,
    cluster: Codes | None,
    apart: Mapping[str, NDArray[np.bool_]] | None,
) -> _Lined | _Nothing:
    counts = {len(runs) for runs in arms.values()}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(f"every arm needs a run of every seed, got {sorted(counts)} runs")
    count, size = counts.pop(), len(next(iter(arms.values()))[0].score)
    own = apart or dict.fromkeys(names, np.ones(size, bool))
    known = np.ones(size, bool)
    for name in names:
        for run in arms[name]:
            lacking = np.isnan(run.score) | (np.isnan(run.gold) & (figure != "mean"))
            known &= ~(lacking & own[name])
    n, dropped = int(known.sum()), int((~known).sum())
    codes = None if cluster is None else np.unique(cluster[known], return_inverse=True)[1].ravel()
    groups = n if codes is None else int(codes.max(initial=-1)) + 1
    if groups < _FEW:
        return _Nothing(n, f"only {counted(groups, 'item')}", dropped)
    use = {name: known & own[name] for name in names}
    least = min(use, key=lambda name: int(use[name].sum()))
    if (few := int(use[least].sum())) < _FEW:
        return _Nothing(n, f"only {counted(few, 'item')} of {least}", dropped)
    at = {name: np.flatnonzero(own[name][known]) for name in names}
    seeds = [
        _side_by_side([
            (at[name], _figure(figure, arms[name][i].score[use[name]], arms[name][i].gold[use[name]])) for name in names
        ])
        for i in range(count)
    ]  # fmt: skip
    return _Lined(n, dropped, groups, codes, seeds)


def range_of_effect(weights: Mapping[str, float], figure: str) -> tuple[float, float]:
    """The least and the greatest value of an effect where scores and gold are shares of their scale, 0 to 1."""
    low, high = (0.0, 1.0) if figure == "mean" else (-1.0, 1.0)
    if figure in BY_ROW:
        low, high = range_of(figure, (0.0, 1.0))
    ends = [(weight * low, weight * high) for weight in weights.values()]
    return sum(min(each) for each in ends), sum(max(each) for each in ends)


def _joined(first: float, first_free: int, second: float, second_free: int) -> tuple[float, float]:
    """The standard error of a sum of two variances, and its degrees of freedom (Satterthwaite 1946)."""
    total = first + second
    if total <= 0:
        return 0.0, float(first_free)
    below = first**2 / first_free + (second**2 / second_free if second_free else 0.0)
    return math.sqrt(total), total**2 / below


def _side_by_side(parts: Sequence[tuple[Codes, Weighted]]) -> Weighted:
    def statistic(weights: Floats) -> Floats:
        return np.stack([figure(weights[:, rows]) for rows, figure in parts], axis=1)

    return statistic


def _figure(name: str, score: Floats, gold: Floats) -> Weighted:
    if name == "mean":
        return mean_of(score)
    made = MEASURES[name].weighted
    assert made is not None
    return made(score, gold)
