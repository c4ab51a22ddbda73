"""Strengths by grades and comparisons together: what grades predict, corrected by what comparisons say beyond it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.ranking.comparisons import Floats, Games, laplacian, signed
from dikast.ranking.pooled import Pooled, pool

_TIMES = 3  # iterations that alternate between the slope and the slot bias
_UNKNOWN = 2.0  # ridge where comparisons leave no residual: half of the variance of their values counts as noise
_SHARE = 0.75  # of what comparisons say beyond the grades: 1 if grades alone erred, 1/2 if both erred alike
_LEAST = 1e-9  # ridge where comparisons have no noise
_MOST = 1e9  # ridge where comparisons say nothing beyond the grades


class GradeLine(NamedTuple):
    """How the strengths of comparisons follow grades, pooled over items.

    slope: units of value per unit of goodness, 0 where comparisons contradict the grades and 1 where none are known.
    left: slot bias and noise of the comparisons, and the spread of the strengths around what the grades predict.
    """

    slope: float
    left: Pooled

    @property
    def ridge(self) -> float:
        """The variance of a comparison's noise over that of the strengths around what the grades predict."""
        noise, spread = self.left.noise.sd, self.left.spread
        if not noise >= 0:
            return _UNKNOWN
        return max(_LEAST, min((noise / spread) ** 2, _MOST)) if spread > 0 else _MOST


def grade_line(contests: Sequence[Games], grades: Sequence[Floats]) -> GradeLine:
    """The line from all items: the comparisons of each, and the grades (k,) of its responses.

    The slope is that of ordinary least squares of `value - bias` by the difference of the grades. A response without a
    grade (NaN) must not be compared.
    """
    slope, left = 0.0, pool(contests)
    for _ in range(_TIMES):
        top = bottom = 0.0
        for games, each in zip(contests, grades, strict=True):
            apart = _apart(centred(each))
            top += float(((games.sums - left.bias.shrunk * games.counts) * apart).sum())
            bottom += float((games.counts * apart * apart).sum())
        slope = max(top / bottom, 0.0) if bottom > 0 else 1.0
        left = pool([_less(games, slope * centred(each)) for games, each in zip(contests, grades, strict=True)])
    return GradeLine(slope, left)


def graded_strengths(games: Games, grades: Floats, line: GradeLine) -> tuple[Floats, Floats]:
    """The strengths (k,) by grades and comparisons, and their covariance for noise of variance 1; or stacks of them.

    The strengths of comparisons have a normal prior around slope * grade, as wide as `line` says; three quarters of
    their posterior deviation from it count, since comparisons have systematic errors as grades do, which nothing but
    gold could tell apart. Strengths sum to 0 over the responses that have a grade; one without a grade has strength 0
    and is not to be ordered.
    """
    told = line.slope * centred(grades)
    beyond, inverse = beyond_told(games, told, line.ridge, line.left.bias.shrunk)
    uncounted = (1 - _SHARE) ** 2 * (np.eye(grades.shape[-1]) / line.ridge - inverse)
    return told + _SHARE * beyond, less_mean(inverse + uncounted, np.isfinite(grades))


def less_mean(covariance: Floats, inside: NDArray[np.bool_]) -> Floats:
    """The covariance (k, k) of strengths less the mean of those that are `inside` (k,); or a stack of them."""
    known = inside.astype(np.float64)
    middle = known[..., :, None] * np.eye(known.shape[-1])
    middle -= known[..., :, None] * known[..., None, :] / np.maximum(known.sum(-1), 1)[..., None, None]
    return middle @ covariance @ middle


def beyond_told(
    games: Games, told: Floats, ridge: float, bias: float, asked: Games | None = None
) -> tuple[Floats, Floats]:
    """What comparisons say of strengths (k,) beyond what is `told` of them, and its covariance for noise of variance 1.

    The posterior mean for a normal prior around `told` whose variance is that of the noise over `ridge`; or stacks of
    both. `asked` counts comparisons without a value too, which the covariance then takes for known.
    """
    left = _less(games, told)
    inverse = np.asarray(np.linalg.inv(laplacian(asked or games) + ridge * np.eye(games.counts.shape[-1])))
    return np.einsum("...ij,...j->...i", inverse, signed(left.sums - bias * games.counts)), inverse


def centred(grades: Floats) -> Floats:
    """Grades less their mean over those that are known; 0 for one that is not."""
    known = np.isfinite(grades)
    mean = np.where(known, grades, 0.0).sum(-1) / np.maximum(known.sum(-1), 1)
    return np.where(known, grades - mean[..., None], 0.0)


def _apart(strengths: Floats) -> Floats:
    return np.asarray(strengths[..., :, None] - strengths[..., None, :])


def _less(games: Games, strengths: Floats) -> Games:
    """The comparisons with `strength[first] - strength[second]` taken off each value."""
    apart = _apart(strengths)
    taken = games.counts * apart
    squares = games.squares - (2 * games.sums * apart - taken * apart).sum((-1, -2))
    return Games(games.counts, games.sums - taken, np.maximum(squares, 0.0))
