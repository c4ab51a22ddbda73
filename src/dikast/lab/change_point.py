"""Effects of many arms that are no sum of their figures: change points and curves over doses, and spreads."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.audit.statistics.intervals import Resampling

Floats = NDArray[np.float64]
_PLACES = 101  # doses at which a line may break
_EXPONENTS = np.linspace(0, 4, 81)  # of a power law; at 4, a dose twice as large leaves a sixteenth of what lacks
_SURE = 0.05  # the share of gains by chance alone below which a line does not fit as well


class ChangePoint(NamedTuple):
    """`dose`: where two lines that meet fit best, with its interval. `p`: how often a line, with what chance does to
    the figures, would gain as much by being broken; `found`, where that is rare.
    """

    dose: float
    low: float
    high: float
    p: float

    @property
    def found(self) -> bool:
        """Whether one line does not fit as well."""
        return self.p < _SURE


def change_point(figures: Floats, draws: Floats, doses: Floats, how: Resampling) -> ChangePoint:
    """The change point of figures (a,) at doses (a,) by a broken line, of which `draws` (b, a) are bootstrap draws.

    A line and two lines that meet at a dose between the second and the last but one are fitted by least squares; the
    place with the smallest sum of squares is the change point, its interval that of the draws. What breaking a line
    gains at its best place is compared with what it gains on the draws' deviations alone, since a search over places
    gains something of noise too (Davies 1987; Hansen 1996).
    """
    order = np.sort(np.unique(doses))
    places = np.linspace(order[1], order[-2], _PLACES)
    line = np.vstack([np.ones_like(doses), doses]).T
    left = [_left(line), *(_left(np.column_stack([line, np.maximum(0, doses - at)])) for at in places)]

    def broken(rows: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """What a break gains at its best place, and which place that is."""
        squares = np.array([np.einsum("ij,jk,ik->i", rows, each, rows) for each in left])
        return squares[0] - squares[1:].min(0), squares[1:].argmin(0)

    gain, at = broken(figures[None])
    by_chance, _ = broken(draws - draws.mean(0))
    _, drawn = broken(draws)
    p = float((1 + (by_chance >= gain[0]).sum()) / (1 + len(draws)))
    low, high = how.interval(places[drawn], point=True)
    return ChangePoint(float(places[at[0]]), low, high, p)


def power_law(figures: Floats, doses: Floats) -> tuple[Floats, Floats]:
    """What doubling the largest dose would add to figures (n, a) at doses (a,), above 0, by a saturating power law, and
    its exponent c: (n,) each. NaN where a figure is.

    figure = a - b dose^-c (which Hestness et al. 2017 fit to errors), by least squares; c is the best of 0, .05, ... 4.
    As c goes to 0 the law becomes a straight line over log(dose), which is the fit where figures do not level off.
    """
    ends = np.append(doses, 2 * doses.max()) / doses.max()
    c = _EXPONENTS[:, None]
    law = np.where(c > 0, (1 - ends**-c) / np.where(c > 0, c, 1), np.log(ends))
    columns = np.stack([np.ones((len(c), len(doses))), law[:, :-1]], axis=2)
    solved = np.linalg.pinv(columns)
    left = np.eye(len(doses)) - columns @ solved
    best = np.square(figures @ left).sum(2).argmin(0)
    gains = law[:, -1:] * solved[:, 1]  # the law is 0 at the largest dose
    return np.einsum("ij,ij->i", figures, gains[best]), _EXPONENTS[best]


def seeds_redrawn(by_seed: Floats, how: Resampling) -> Floats:
    """Draws (draws, a) of how far the mean over seeds of figures (k, a) may be from that over all seeds: Student's with
    k - 1 degrees of freedom, with the covariance of the seeds.
    """
    k, rng = len(by_seed), np.random.default_rng([how.seed, 1])  # not the stream that draws items
    normal = rng.normal(size=(how.draws, k)) @ (by_seed - by_seed.mean(0)) / np.sqrt(k * (k - 1))
    return np.asarray(normal / np.sqrt(rng.chisquare(k - 1, (how.draws, 1)) / (k - 1)))


def spread(figures: Floats, draws: Floats, how: Resampling) -> tuple[float, float, float]:
    """The standard deviation of figures (a,) with its interval from their bootstrap draws (b, a).

    The variance that chance gives to the figures of equal arms is taken off: once from that of the figures, and twice
    from that of the draws, which have it twice.
    """
    chance = float((draws - draws.mean(0)).var(1).mean())
    drawn = np.sqrt(np.maximum(0, draws.var(1) - 2 * chance))
    low, high = how.interval(drawn, point=True)
    return float(np.sqrt(max(0.0, figures.var() - chance))), low, high


def _left(columns: Floats) -> Floats:
    """The matrix (a, a) that leaves of figures what a least-squares fit by the columns (a, k) does not explain."""
    return np.asarray(np.eye(len(columns)) - columns @ np.linalg.pinv(columns))
