"""The scale of each row: what lies on it, and goodness where rows lie on several scales or on reversed ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dikast.audit.tables.columns import Words
from dikast.core.errors import DataError, UserError
from dikast.core.gold import likely_scale, scale_text
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run_files import RUBRICS
from dikast.core.scale import Scale
from dikast.core.text import counted

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
UNIT = " as goodness (0 worst, 1 best)"
_DIGITS = 12  # of goodness: 1 - 0.7 must tie with 0.3, and no scale has labels that close
_FEWEST = 10  # ratings that a column needs before its range is informative
_MOST_TOLD = 5


@dataclass(frozen=True, slots=True, eq=False)
class RowScales:
    """`scales[codes[i]]` is the scale that score and gold of row i lie on.

    `gold` is the scale that all gold lies on, where that is another; it has the direction of each row's own scale.
    """

    scales: tuple[Scale, ...]
    codes: Codes
    gold: Scale | None = None

    def on(self, values: Floats) -> Masks:
        """Which values (n,) are labels of their row's scale."""
        out = np.zeros(len(values), bool)
        for scale, mine in self._parts():
            out[mine] = np.isin(values[mine], np.asarray(scale.values))
        return out

    def within(self, values: Floats) -> Masks:
        """Which values (n,) lie from the lowest to the highest value of their row's scale."""
        out = np.zeros(len(values), bool)
        for scale, mine in self._parts():
            out[mine] = (values[mine] >= scale.low) & (values[mine] <= scale.high)
        return out

    def goodness(self, values: Floats) -> Floats:
        """Values (n,) of their rows' scales as goodness."""
        out = np.full(len(values), np.nan)
        for scale, mine in self._parts():
            out[mine] = _goodness(values[mine], scale)
        return out

    def nearest(self, goodness: Floats) -> Floats:
        """The goodness (n,) of the label of its row's scale that is nearest to each value; of two, the worse."""
        out = np.full(len(goodness), np.nan)
        for code, (_, mine) in enumerate(self._parts()):
            labels = self.goodness_of(code)
            away = np.abs(goodness[mine, None] - labels).round(9)  # so that rounding decides no tie
            out[mine] = labels[away.argmin(axis=1)]
        return out

    def goodness_of(self, code: int) -> Floats:
        """The goodness of the labels of one scale, rising."""
        return np.sort(_goodness(np.asarray(self.scales[code].values), self.scales[code]))

    @property
    def shared(self) -> Scale | None:
        """One scale of goodness for all rows: where the labels of every scale lie at the same goodness, as those of a
        scale and of its reverse do. None where they do not: a label of one is then between the labels of another.
        """
        steps = [tuple(self.goodness_of(code).tolist()) for code in range(len(self.scales))]
        return Scale(tuple(f"{each:.12g}" for each in steps[0]), steps[0]) if len(set(steps)) == 1 else None

    @property
    def of_gold(self) -> "RowScales":
        """The scales that gold lies on."""
        if self.gold is None:
            return self
        same = tuple(replace(self.gold, lower_is_better=each.lower_is_better) for each in self.scales)
        return RowScales(same, self.codes)

    def rows(self, chosen: Masks | Codes) -> "RowScales":
        """The scales of the chosen rows: a mask, or indices."""
        return RowScales(self.scales, self.codes[chosen], self.gold)

    def listed(self) -> str:
        """The scales by name, with the rows on each."""
        sizes = np.bincount(self.codes, minlength=len(self.scales))
        named = [f"{name} ({size:,})" for name, size in zip(self.names, sizes, strict=True)]
        return ", ".join(named[:_MOST_TOLD]) + (", ..." if len(named) > _MOST_TOLD else "")

    @property
    def names(self) -> list[str]:
        """The scales as they are written, reversed ones marked."""
        return [f"{each}, lower is better" if each.lower_is_better else str(each) for each in self.scales]

    def _parts(self) -> Iterator[tuple[Scale, Masks]]:
        for code, scale in enumerate(self.scales):
            yield scale, self.codes == code


def _goodness(values: Floats, scale: Scale) -> Floats:
    share = (values - scale.low) / (scale.high - scale.low)
    return np.asarray(np.round(1 - share if scale.lower_is_better else share, _DIGITS))


def row_scales(rubrics: Mapping[str, tuple[str, Scale]], rubric: Words, criterion: Words, path: str) -> RowScales:
    """The scale of each row of a run: by the hash of its rubric, or else by its criterion.

    `rubrics` maps a hash to the rubric's name and scale. DataError for a verdict whose rubric is not among them.
    """
    named: dict[str, Scale | None] = {}
    for name, scale in rubrics.values():
        named[name] = scale if named.get(name, scale) == scale else None
    found = [rubrics[name][1] if name in rubrics else None for name in rubric.names] + [None]
    backup = [named.get(name) for name in criterion.names] + [None]
    known = {scale for _, scale in rubrics.values()}
    ordered = sorted(known, key=lambda each: (len(each.labels), each.labels, each.lower_is_better))
    places = {scale: i for i, scale in enumerate(ordered)}
    codes = np.empty(len(rubric.codes), np.int64)
    for i, (one, other) in enumerate(zip(rubric.codes, criterion.codes, strict=True)):
        own = found[one] or backup[other]
        if own is None:
            told = f"a verdict of the criterion {criterion.at(i)!r} has a rubric that is not in it: run the items again"
            raise DataError(told, path=path)
        codes[i] = places[own]
    used = np.unique(codes)  # in an order that depends neither on rows nor on rubrics
    return RowScales(tuple(list(places)[code] for code in used), np.searchsorted(used, codes))


def is_narrow(scale: Scale) -> bool:
    """Whether any two values of the scale are within 1 of each other."""
    return scale.high - scale.low <= 1


def check_gold(
    name: str, values: Floats, usable: Masks, due: str, cures: str, first: Callable[[Masks], tuple[int, str]]
) -> None:
    """UserError when gold does not lie on the scale `due`, with the range that it has, the place of the `first` row
    and the `cures`.
    """
    known = ~np.isnan(values)
    lost = int((known & ~usable).sum())
    if not lost:
        return
    low, high = values[known].min(), values[known].max()
    likely = likely_scale([low, high]) or "SCALE"
    row, place = first(known & ~usable)
    told = f"{lost:,} of {int(known.sum()):,} values are off it (the first is {values[row]:g}), and it goes from"
    raise UserError(
        f"{place}: gold {name!r} does not lie on the scale {due}: {told} {low:g} to {high:g}. "
        f"{cures.format(scale=likely)}; --failed VALUE marks gold that is missing"
    )


def check_alike(names: Sequence[str], columns: Sequence[Floats]) -> None:
    """UserError when two columns of ratings plainly lie on different scales, though no scale was stated.

    Plainly: the ranges overlap by less than half of the narrower one; or one lies in 0 to 1 and the other spans at
    least 4; or both begin alike and the wider range is at least twice as wide as the narrower, of which every step is
    used, five at least (1-5 beside 1-10). A harsh or lenient rater, who uses part of a scale, is none of these.
    """
    ranges = []
    for name, values in zip(names, columns, strict=True):
        distinct = np.unique(values[~np.isnan(values)])
        if int((~np.isnan(values)).sum()) >= _FEWEST and len(distinct) > 1:
            ranges.append((name, distinct))
    for i, (name, mine) in enumerate(ranges):
        for other, theirs in ranges[:i]:
            if _apart(mine, theirs):
                told = [f"{who!r} goes from {x[0]:g} to {x[-1]:g}" for who, x in ((other, theirs), (name, mine))]
                likely = [likely_scale(each.tolist()) or "SCALE" for each in (theirs, mine)]
                raise UserError(
                    f"gold on different scales: {told[0]}, {told[1]} (perhaps {likely[0]} and {likely[1]}). "
                    "Put them on one scale first, name those of one scale with --gold, or state the --scale that "
                    "all of them share"
                )


def _apart(one: Floats, other: Floats) -> bool:
    narrow, wide = sorted((one, other), key=lambda each: float(each[-1] - each[0]))
    span, most = float(narrow[-1] - narrow[0]), float(wide[-1] - wide[0])
    overlap = min(narrow[-1], wide[-1]) - max(narrow[0], wide[0])
    if overlap < span / 2:
        return True
    if narrow[0] >= 0 and narrow[-1] <= 1 and most >= 4:
        return True
    whole = len(narrow) >= 5 and bool((np.diff(narrow) == 1).all())
    return whole and narrow[0] - wide[0] in (0, 1) and most >= 2 * span


def note_of(scales: RowScales) -> str:
    """What is said at the head of an audit whose rows lie on several scales, or whose gold lies on one of its own."""
    if scales.gold is not None:
        return (
            f"scores lie on {scales.listed()}, gold on {scale_text(scales.gold)}: all figures are of goodness "
            "(0 worst, 1 best) on the scale of each: correlations, order and errors, but none of labels"
        )
    return (
        f"rows lie on {counted(len(scales.scales), 'scale')}, {scales.listed()}: all pooled figures are of goodness "
        "(0 worst, 1 best) on each row's own scale; raw scores are in the table 'by scale'"
    )


def on_scale(values: Floats, scale: Scale | None) -> Masks:
    """Which values are scores; without a scale every finite number is."""
    known = ~np.isnan(values)
    if scale is None:
        return known
    return known & np.isin(values, np.asarray(scale.values))


def gold_on_scale(values: Floats, scale: Scale | None) -> Masks:
    """Which gold values can be used: a mean of raters may lie between labels, never beyond the ends."""
    known = ~np.isnan(values)
    if scale is None:
        return known
    return known & (values >= scale.low) & (values <= scale.high)


def scales_by_rubric(folder: Path) -> dict[str, tuple[str, Scale]]:
    """The name and the scale of each rubric of a run by its hash; empty where the run does not tell them."""
    if not (folder / RUBRICS).exists():
        return {}
    return {name: (rubric.name, rubric.scale) for name, rubric in load_rubrics(folder).items()}


def scale_of(folder: Path) -> Scale | None:
    """The one scale of all rubrics of a run, direction included; None when they differ or are not told."""
    scales = {scale for _, scale in scales_by_rubric(folder).values()}
    return scales.pop() if len(scales) == 1 else None


def check_same_scale(folder: Path, other: Path) -> None:
    """UserError if the scores of two runs lie on different scales, since they then cannot be compared."""
    scales = [scale_of(each) for each in (folder, other)]
    if None not in scales and len({(each.labels, each.values, each.lower_is_better) for each in scales if each}) > 1:
        raise UserError(
            f"{other}: its scores lie on {scales[1]}, those of {folder} on {scales[0]}: judge both with one --scale"
        )
