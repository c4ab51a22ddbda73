"""Players that beat each other in a circle, and how many such circles chance makes."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.building_blocks.exact_means import NEAR
from dikast.audit.statistics.intervals import Resampling
from dikast.audit.statistics.paired_comparison.bradley_terry import Games, Strengths
from dikast.audit.statistics.paired_comparison.ranking import MOST_DRAWS

Floats = NDArray[np.float64]
NO_TRIPLE = "no three players of whom each two have a winner"


def cyclic_triples(wins: ArrayLike) -> Estimate:
    """Share of triples of players that beat each other in a circle, among triples where each pair has a majority.

    wins: (players, players), wins[i, j] how often i beat j (half for ties). No interval: resampled games contain cycles
    of their own; `cycles_by_chance` is what to compare with. A random tournament has one quarter.
    """
    given = np.asarray(wins, np.float64)
    ahead = (given > given.T + NEAR).astype(np.float64)
    decided = ahead + ahead.T
    triples = float(np.trace(decided @ decided @ decided)) / 6
    cycles = float(np.trace(ahead @ ahead @ ahead)) / 3
    if not triples:
        return undefined(0, NO_TRIPLE)
    note = "resampled games contain cycles of their own: compare with the next row"
    return Estimate(cycles / triples, round(triples), note=note)


def cycles_by_chance(games: Games, fit: Strengths, how: Resampling) -> tuple[Estimate, Estimate]:
    """The share of cyclic triples if there were none in truth, and how often it is as large as that of the games.

    Tournaments are drawn from the fitted strengths, ties as they are. First the mean of their shares; then the share of
    them, these games included, that have at least as many cycles: if few have, the cycles are unlikely to be chance.
    Neither has an interval: both are exact but for the number of draws.
    """
    gap = fit.strength[games.i] - fit.strength[games.j] + games.covariates @ fit.effects
    decided, ties = np.round(games.wins + games.losses).astype(np.int64), games.ties
    if not np.isfinite(gap).all():
        nothing = Estimate(math.nan, 0, level=how.level, note="no finite strengths")
        return nothing, nothing
    rng, found, chance = how.rng(), [], 1 / (1 + np.exp(-gap))
    for _ in range(min(how.draws, MOST_DRAWS)):
        won = rng.binomial(decided, chance).astype(np.float64)
        drawn = Games(games.players, games.i, games.j, won, decided - won, ties, games.covariates)
        found.append(cyclic_triples(win_matrix(drawn)).value)
    draws, seen = np.array(found), cyclic_triples(win_matrix(games)).value
    known = draws[~np.isnan(draws)]
    if not len(known) or math.isnan(seen):
        nothing = undefined(len(draws), NO_TRIPLE, level=how.level)
        return nothing, nothing
    note = f"{len(draws)} tournaments drawn from the strengths"
    as_many = (1 + int((known >= seen - NEAR).sum())) / (1 + len(known))
    return Estimate(float(known.mean()), len(draws), note=note), Estimate(as_many, len(draws), note=note)


def win_matrix(games: Games) -> Floats:
    """How often each player (row) beat each other (column), ties half, (players, players)."""
    matrix = np.zeros((games.players, games.players))
    np.add.at(matrix, (games.i, games.j), games.wins + games.ties / 2)
    np.add.at(matrix, (games.j, games.i), games.losses + games.ties / 2)
    return matrix
