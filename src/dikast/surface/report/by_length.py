"""Verdicts against the length of what was judged: mean scores, of pairs how often the longer response wins."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.correlation import pearson
from dikast.audit.statistics.intervals import clusters_of, mean_estimate
from dikast.audit.statistics.length_bias import length_slope
from dikast.surface.report.contents import Contents

_BINS, _FEWEST = 5, 20  # groups of rows, and rows below which nothing is drawn


class Measured(NamedTuple):
    """A verdict to be set against lengths: a score of a response and its gold; of a pair the win (0 to 1) of the first
    of its responses, by the judge and by gold. NaN where there is none.
    """

    item: str
    responses: tuple[int, ...]
    said: float
    gold: float


class LengthGroup(NamedTuple):
    """Rows of like length: its range as text, the mean by the judge and by gold (None without gold)."""

    name: str
    judge: Estimate
    gold: Estimate | None


def slope_on_length(measured: Sequence[Measured], found: Contents, level: float) -> Estimate | None:
    """The slope of the error of scores on length; None where no length, or no gold, is known."""
    rows = [(each, found.length(each.item, each.responses[0])) for each in measured if len(each.responses) == 1]
    rows = [(each, length) for each, length in rows if length and not math.isnan(each.gold)]
    if not rows:
        return None
    score, gold = (np.array([getattr(each, name) for each, _ in rows], np.float64) for name in ("said", "gold"))
    return length_slope(score, gold, [length for _, length in rows], level, _clusters([each for each, _ in rows]))


def length_alone(measured: Sequence[Measured], found: Contents) -> float:
    """How well length alone agrees with gold, as `of_lengths` has it."""
    sizes = [[found.length(each.item, index) for index in each.responses] for each in measured]
    return of_lengths(sizes, [each.gold for each in measured])


def of_lengths(sizes: Sequence[Sequence[int]], gold: Sequence[float]) -> float:
    """The correlation of gold with the length of the response or its logarithm, whichever is stronger, without its
    sign; of pairs, how often gold prefers the longer response. `sizes` are those of the responses of each row, 0 where
    they are not known. NaN where lengths or gold are not known, or do not differ.
    """
    rows = [(*row, true) for row, true in zip(sizes, gold, strict=True) if all(row) and not math.isnan(true)]
    known = np.array(rows, np.float64)
    if not len(known):
        return math.nan
    *lengths, true = known.T
    if len(lengths) == 2:
        longer = 0.5 + np.sign(lengths[0] - lengths[1]) / 2
        return float((longer == true).mean()) if np.ptp(longer) else math.nan
    return float(max(abs(pearson(x, true)) for x in (lengths[0], np.log2(1 + lengths[0]))))


def by_length(
    measured: Sequence[Measured], found: Contents, level: float, within: tuple[float, float]
) -> tuple[LengthGroup, ...]:
    """Groups of equal size from the shortest response; of pairs from the least to the most unequal, and how often the
    longer one wins; no interval leaves `within`. Nothing where lengths are not known, hardly differ, or are of too few
    rows.
    """
    kept, lengths = [], list[float]()
    for each in measured:
        sizes = [found.length(each.item, index) for index in each.responses]
        if not all(sizes) or math.isnan(each.said) or (len(sizes) == 2 and sizes[0] == sizes[1]):
            continue
        if len(sizes) == 2 and sizes[1] > sizes[0]:
            each = each._replace(said=1 - each.said, gold=1 - each.gold)
        kept.append(each)
        lengths.append(sizes[0] if len(sizes) == 1 else max(sizes) / min(sizes))
    if len(kept) < _FEWEST:
        return ()
    length, pair = np.array(lengths), len(kept[0].responses) == 2
    starts = np.unique(np.sort(length)[len(kept) * np.arange(_BINS) // _BINS])
    if len(starts) < 2:
        return ()
    place = np.searchsorted(starts, length, "right") - 1
    return tuple(
        LengthGroup(
            _range(length[place == number], pair=pair),
            *_means([each for each, at in zip(kept, place, strict=True) if at == number], level, within),
        )
        for number in range(len(starts))
    )


def _means(rows: Sequence[Measured], level: float, within: tuple[float, float]) -> tuple[Estimate, Estimate | None]:
    labelled = [each for each in rows if not math.isnan(each.gold)]
    judge = mean_estimate([each.said for each in rows], level, _clusters(rows), within=within)
    if not labelled:
        return judge, None
    return judge, mean_estimate([each.gold for each in labelled], level, _clusters(labelled), within=within)


def _range(lengths: NDArray[np.float64], *, pair: bool) -> str:
    low, high = float(lengths.min()), float(lengths.max())
    if pair:
        return f"{low:.2f} to {high:.2f} times as long"
    return f"{low:,.0f} characters" if low == high else f"{low:,.0f} to {high:,.0f} characters"


def _clusters(rows: Sequence[Measured]) -> NDArray[np.int64]:
    _, item = np.unique([each.item for each in rows], return_inverse=True)
    return clusters_of(item.astype(np.int64))
