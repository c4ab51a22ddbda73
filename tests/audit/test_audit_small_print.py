"""Numbers as they are printed: ranks, counts of one, and what decides all of its games."""

import math

import numpy as np
import pytest

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import shown
from dikast.audit.statistics.bradley_terry import Games, fit_players
from dikast.audit.statistics.intervals import share


def test_a_rank_is_a_whole_number_also_without_an_interval() -> None:
    assert shown(Estimate(4.0, 9, whole=True)) == "4"
    assert shown(Estimate(2.0, 9, 1.0, 3.0, whole=True)) == "2 [1, 3]"
    assert shown(Estimate(2.0, 9, 1.0, 3.0)) == "2.0000 [1.0000, 3.0000]"  # a temperature is no rank


def test_an_interval_that_is_not_symmetric_is_printed_with_both_ends() -> None:
    """No failure among 40 is [0, .088]: "±0.044" would name shares below 0 and leave out half of the others."""
    none_of_40 = share(np.zeros(40), 0.95)
    assert shown(none_of_40, compact=True) == "0.0000 [0.000, 0.088]"
    assert shown(Estimate(0.7257, 24, 0.5602, 0.8709), compact=True) == "0.7257 [0.560, 0.871]"
    assert shown(Estimate(0.5, 9, 0.4, 0.61), compact=True) == "0.5000 [0.400, 0.610]"
    assert shown(Estimate(0.5, 9, 0.4001, 0.6003), compact=True) == "0.5000 ±0.100"
    assert shown(Estimate(2.0, 9, 1.4, 2.7, whole=True), compact=True) == "2 [1, 3]"


def test_a_covariate_that_decides_its_games_leaves_the_others_alone() -> None:
    # 0 beats 1 in 6 of 9 games, log 2 apart; in 4 further games a mark stands for the winner, whoever that is
    first, second = np.zeros(13, int), np.ones(13, int)
    outcome = np.array([0] * 6 + [1] * 3 + [0, 0, 1, 1])
    mark = np.array([0.0] * 9 + [1, 1, -1, -1])
    other = np.array([1.0, -1, 0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1])
    games = Games.of(first, second, outcome, players=2, covariates=np.column_stack([mark, other]))
    found = fit_players(games)
    alone = fit_players(
        Games.of(first[:9], second[:9], outcome[:9], players=2, covariates=other[:9, None])
    )  # the limit: games that the mark decides say nothing of the rest
    assert math.isnan(found.effects[0])
    assert found.effects[1] == pytest.approx(alone.effects[0])
    assert found.strength == pytest.approx(alone.strength)
    assert np.isfinite(found.strength).all()
    every = fit_players(
        Games.of(first, second, outcome, players=2, covariates=np.where(outcome == 0, 1.0, -1)[:, None])
    )
    assert np.isnan(every.strength).all()
    assert np.isnan(every.effects).all()
