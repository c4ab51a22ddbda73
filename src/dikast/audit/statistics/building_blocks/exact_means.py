"""Means without rounding, so that ties stay ties: 0.1, 0.2 and 0.3 have the mean of 0.2, 0.2 and 0.2, in any order.

Ratings are decimals. Written as whole multiples of a power of ten they add without error, and one correctly rounded
division gives equal means equal floats. Numbers of more than 12 digits (thirds, continuous scores) are added in rising
order and rounded to 12 digits of the largest, far below what any rating resolves.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
NEAR = 1e-9  # numbers this close are equal: 2.2 - 1.2 is 1.0000000000000002
_DIGITS = 12
_EXACT = 2.0**53  # whole numbers below are exact as floats
_TRIED = 200


class Units(NamedTuple):
    """Numbers as whole multiples (`whole`, NaN where missing) of 1 / `per`."""

    whole: Floats
    per: float


def units_of(values: ArrayLike, terms: int = 1) -> Units | None:
    """The coarsest power of ten that all numbers are multiples of; None beyond 12 digits, or where the sum of `terms`
    numbers would not be exact.
    """
    given = np.asarray(values, np.float64)
    known = given[~np.isnan(given)]
    most, places = float(np.abs(known).max(initial=0)), 0
    for part in (known[:_TRIED], known):  # most columns that are no decimals show it in a few rows
        while not _are_whole(part, places):
            places += 1
            if most * 10.0**places > 10.0**_DIGITS:
                return None
    per = 10.0**places
    if most * per * max(terms, 1) >= _EXACT:
        return None
    return Units(np.rint(given * per), per)


def _are_whole(values: Floats, places: int) -> bool:
    per = 10.0**places
    return bool((np.rint(values * per) / per == values).all())


def settled(values: ArrayLike, most: float | None = None) -> Floats:
    """Computed numbers rounded to 12 digits of `most`, so that those that should be equal are.

    `most` is by default the largest of them: arrays that are compared with each other need the same.
    """
    given = np.asarray(values, np.float64)
    if most is None:
        most = float(np.abs(given[np.isfinite(given)]).max(initial=0))
    if most == 0 or not 1e-200 < most < 1e200:
        return given
    return np.asarray(np.round(given, _DIGITS - math.ceil(math.log10(most))) + 0.0)


def row_means(values: Floats) -> Floats:
    """The mean (n,) of those present in each column of (R, n); NaN of none. Exact for decimals."""
    count = (~np.isnan(values)).sum(0)
    units = units_of(values, len(values))
    if units is None:
        ordered = np.sort(values, axis=0)  # missing ones last
        return settled(_over(np.nansum(ordered, axis=0), count.astype(np.float64)))
    return _over(np.nansum(units.whole, axis=0), count * units.per)


def row_medians(values: Floats) -> Floats:
    """The median (n,) of those present in each column of (R, n); NaN of none. Exact for decimals."""
    count = (~np.isnan(values)).sum(0)
    units = units_of(values, 2)
    ordered = np.sort(values if units is None else units.whole, axis=0)
    places = [np.maximum(count - 1, 0) // 2, np.minimum(count // 2, len(values) - 1)]
    middle = sum((np.take_along_axis(ordered, each[None, :], 0)[0] for each in places), np.zeros(values.shape[1]))
    found = np.where(count > 0, middle / 2, np.nan)
    return settled(found) if units is None else np.asarray(found / units.per)


def means_of_others(values: Floats) -> Floats:
    """For each of (R, n) the mean of the other rows' numbers in its column, none missing. Exact for decimals."""
    units, others = units_of(values, len(values)), len(values) - 1
    if units is None:
        return settled([np.sort(np.delete(values, i, axis=0), axis=0).sum(0) / others for i in range(len(values))])
    return np.asarray((units.whole.sum(0) - units.whole) / (others * units.per))


def group_means(values: Floats, codes: Codes) -> Floats:
    """The mean of each group, codes (n,) from 0 without gaps. Exact for decimals."""
    sizes = np.bincount(codes).astype(np.float64)
    units = units_of(values, len(values))
    if units is None:
        return settled(np.bincount(codes, values) / sizes)
    return np.asarray(np.bincount(codes, units.whole) / (sizes * units.per))


def _over(top: Floats, bottom: Floats) -> Floats:
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0))
