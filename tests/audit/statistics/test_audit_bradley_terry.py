import math

import choix
import numpy as np
import pytest
from scipy.optimize import minimize
from statsmodels.api import Logit

from dikast.audit.statistics.intervals import Resampling
from dikast.audit.statistics.paired_comparison import drawn_strengths
from dikast.audit.statistics.paired_comparison.bradley_terry import (
    Games,
    Meetings,
    Model,
    Strengths,
    bradley_terry,
    fit_players,
)
from dikast.audit.statistics.paired_comparison.cycles import cyclic_triples, win_matrix
from dikast.audit.statistics.paired_comparison.drawn_strengths import fit_draws
from dikast.audit.statistics.paired_comparison.ranking import Bouts, rank_players, win_rate

HOW = Resampling(200, seed=1)


def games(n: int, players: int, seed: int = 0, ties: float = 0.0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    strength = np.linspace(1, -1, players)
    first = rng.integers(0, players, n)
    second = (first + rng.integers(1, players, n)) % players
    outcome = (rng.random(n) > 1 / (1 + np.exp(strength[second] - strength[first]))).astype(int)
    outcome[rng.random(n) < ties] = 2
    return first, second, outcome


def test_two_players_by_hand() -> None:
    # three wins to one: odds 3, strengths +/- ln(3) / 2
    found = bradley_terry(Games.of([0, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 1], players=2))
    assert np.allclose(found.strength, [math.log(3) / 2, -math.log(3) / 2])
    # a tie is half a win for each: 2.5 to 1.5
    tied = bradley_terry(Games.of([0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 2, 0], players=2))
    assert math.isclose(tied.strength[0] - tied.strength[1], math.log(2.5 / 1.5))
    # a win of weight 3 and one loss: odds 3
    weighted = bradley_terry(Games.of([0, 0], [1, 1], [0, 1], players=2, weights=[3, 1]))
    assert math.isclose(weighted.strength[0] - weighted.strength[1], math.log(3))


def test_davidson_by_hand() -> None:
    # 4 wins, 1 loss, 5 ties: odds 4, and nu = ties / sqrt(wins * losses) = 5/2 at the maximum
    found = bradley_terry(Games.of([0] * 10, [1] * 10, [0] * 4 + [1] + [2] * 5, players=2), model="davidson")
    assert math.isclose(found.strength[0] - found.strength[1], math.log(4), abs_tol=1e-7)
    assert math.isclose(math.exp(found.tie), 5 / 2, rel_tol=1e-7)


def test_against_choix() -> None:
    first, second, outcome = games(500, 7)
    theirs = choix.ilsr_pairwise(
        7, [(a, b) if o == 0 else (b, a) for a, b, o in zip(first, second, outcome, strict=True)]
    )
    assert np.allclose(bradley_terry(Games.of(first, second, outcome, players=7)).strength, theirs, atol=1e-6)


def test_davidson_with_covariates_against_a_general_optimiser() -> None:
    first, second, outcome = games(600, 4, seed=2, ties=0.3)
    slot = np.where(np.random.default_rng(3).random(600) < 0.5, 1.0, -1.0)

    def cost(theta: np.ndarray) -> float:
        eta = theta[first] - theta[second] + theta[4] * slot
        up, down, tie = np.exp(eta / 2), np.exp(-eta / 2), math.exp(theta[5])
        chosen = np.choose(outcome, [up, down, np.full(600, tie)])
        return float(-np.log(chosen / (up + down + tie)).sum()) + float(theta[:4].sum() ** 2)

    theirs = minimize(cost, np.zeros(6), method="BFGS").x
    ours = bradley_terry(Games.of(first, second, outcome, players=4, covariates=slot), model="davidson")
    assert np.allclose(ours.strength, theirs[:4], atol=1e-3)
    assert math.isclose(ours.effects[0], theirs[4], abs_tol=1e-3)
    assert math.isclose(ours.tie, theirs[5], abs_tol=1e-3)


def test_covariates_against_logistic_regression() -> None:
    first, second, outcome = games(800, 5, seed=4)
    length = np.random.default_rng(5).normal(size=800)
    design = np.zeros((800, 5))
    design[np.arange(800), first] += 1
    design[np.arange(800), second] -= 1
    design = np.column_stack([design[:, 1:], length])  # the first player at 0
    theirs = Logit(outcome == 0, design).fit(disp=0).params
    ours = bradley_terry(Games.of(first, second, outcome, players=5, covariates=length))
    assert np.allclose(ours.strength[1:] - ours.strength[0], theirs[:4], atol=1e-6)
    assert math.isclose(ours.effects[0], theirs[4], abs_tol=1e-6)


def test_a_position_effect_is_found_and_taken_out() -> None:
    rng = np.random.default_rng(6)
    first, second = np.zeros(4000, int), np.ones(4000, int)
    slot = np.where(rng.random(4000) < 0.8, 1.0, -1.0)  # the first player is mostly shown first
    outcome = (rng.random(4000) > 1 / (1 + np.exp(-0.7 * slot))).astype(int)  # equals, but the first slot wins
    plain = bradley_terry(Games.of(first, second, outcome, players=2))
    fair = bradley_terry(Games.of(first, second, outcome, players=2, covariates=slot))
    assert plain.strength[0] > 0.1
    assert abs(fair.strength[0]) < 0.1
    assert math.isclose(fair.effects[0], 0.7, abs_tol=0.1)


def test_no_finite_order_is_undefined_not_large() -> None:
    unbeaten = Games.of([0, 0, 1], [1, 2, 2], [0, 0, 2], players=3)
    assert not unbeaten.connected
    assert np.isnan(bradley_terry(unbeaten).strength).all()
    assert np.isfinite(bradley_terry(unbeaten, prior=0.1).strength).all()
    apart = Games.of([0, 1, 2, 3], [1, 0, 3, 2], [0, 0, 0, 0], players=4)
    assert np.isnan(bradley_terry(apart).strength).all()


def test_aggregation_turns_games_round() -> None:
    found = Games.of([0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 2], players=2, covariates=[1.0, -1, 5, 1])
    assert (found.i.tolist(), found.j.tolist()) == ([0], [1])  # the game of a player against itself is left out
    assert (found.wins[0], found.losses[0], found.ties[0]) == (1, 1, 1)
    assert found.covariates.tolist() == [[1.0]]
    with pytest.raises(ValueError, match="outcomes"):
        Meetings.of([0], [1], [3], players=2)


def test_ranks_and_intervals() -> None:
    first, second, outcome = games(3000, 5, seed=7)
    bouts = Bouts([*"abcde"], first, second, outcome, np.ones(3000), np.zeros((3000, 0)))
    found = rank_players(bouts, HOW, anchor="e")
    assert [found.rank(i).value for i in range(5)] == [1, 2, 3, 4, 5]
    assert found.rank(0).low == 1
    for known, value in ((found.strength(4), 0), (found.chance(4), 0.5)):
        assert (known.value, known.note) == (value, "the anchor, by definition")
        assert np.isnan([known.low, known.high]).all()
    assert found.rank(4).low <= 5 <= found.rank(4).high  # its place is no definition
    assert found.chance(0).low < 1 / (1 + math.exp(-2)) < found.chance(0).high
    assert found.prior == 0


def test_units_of_games_widen_the_interval() -> None:
    first, second, outcome = (np.tile(each, 6) for each in games(200, 3, seed=8))
    empty = np.zeros((1200, 0))
    alone = rank_players(Bouts([*"abc"], first, second, outcome, np.ones(1200), empty), HOW)
    together = rank_players(
        Bouts([*"abc"], first, second, outcome, np.ones(1200), empty, np.tile(np.arange(200), 6)), HOW
    )
    assert together.strength(0).half_width > 1.8 * alone.strength(0).half_width


def test_copies_of_weighted_games_are_too_sure() -> None:
    first, second, outcome = games(300, 3, seed=9)
    weight, empty = np.full(300, 4.0), np.zeros((300, 0))
    honest = rank_players(Bouts([*"abc"], first, second, outcome, weight, empty), HOW)
    copied = rank_players(Bouts([*"abc"], first, second, outcome, weight, empty, copies=True), HOW)
    assert math.isclose(copied.strength(0).half_width, honest.strength(0).half_width / 2, rel_tol=0.25)


def test_somebody_unbeaten_gets_a_prior_that_is_told() -> None:
    bouts = Bouts([*"ab"], np.zeros(5, int), np.ones(5, int), np.zeros(5, int), np.ones(5), np.zeros((5, 0)))
    found = rank_players(bouts, Resampling(20))
    assert found.prior > 0
    assert math.isfinite(found.strength(0).value)


GAMES = [1.0] * 5 + [0.5] * 2 + [0.0] * 3


def test_win_rates_by_hand() -> None:
    # 5 wins, 2 ties, 3 losses
    assert win_rate(GAMES, "half").rate.value == 0.6
    assert win_rate(GAMES, "wins").rate.value == 0.5
    assert win_rate(GAMES, "decided").rate.value == 5 / 8
    # worth 1 five times, .5 twice: mean .6, mean square .55, variance .19 * 10/9, error sqrt(.19 / 9)
    assert math.isclose(win_rate(GAMES, "half").error, math.sqrt(0.19 / 9))
    assert math.isnan(win_rate([], "half").rate.value)
    assert math.isnan(win_rate([0.5] * 4, "decided").rate.value)


def test_cycles_by_hand() -> None:
    stone_scissors_paper = Games.of([0, 1, 2], [1, 2, 0], [0, 0, 0], players=3)
    assert cyclic_triples(win_matrix(stone_scissors_paper)).value == 1
    ordered = Games.of([0, 1, 0], [1, 2, 2], [0, 0, 0], players=3)
    assert cyclic_triples(win_matrix(ordered)).value == 0
    none = cyclic_triples(np.zeros((3, 3)))
    assert math.isnan(none.value)
    assert none.note == "no three players of whom each two have a winner"


def test_newtons_method_stays_within_the_range_of_floats() -> None:
    # few games far from the start: a full step had log nu beyond what math.exp can take
    rng = np.random.default_rng(0)
    for _ in range(300):
        players, count = int(rng.integers(2, 5)), int(rng.integers(1, 12))
        first = rng.integers(0, players, count)
        second = (first + rng.integers(1, players, count)) % players
        games = Games.of(first, second, rng.choice(3, count, p=[0.1, 0.1, 0.8]), players=players)
        start = Strengths(rng.normal(0, 30, players), np.zeros(0), float(rng.normal(0, 30)), converged=True)
        found = bradley_terry(games, model="davidson", start=start)
        assert not np.isinf(found.strength).any()


def test_strengths_that_only_grow_with_the_tie_parameter_are_undefined() -> None:
    # 0 beat 1 and 2 tied with both: the more ties there are, the further apart 0 and 1 may be
    games = Games.of([0, 2, 2, 2, 2], [1, 0, 1, 0, 1], [0, 2, 2, 2, 2], players=3)
    assert np.isfinite(bradley_terry(games).strength).all()
    found = bradley_terry(games, model="davidson")
    assert np.isnan(found.strength).all()
    assert math.isnan(found.tie)


def test_a_single_tie_does_not_make_a_covariate_that_decides_all_else_finite() -> None:
    # 60 pairs of 4 players in both orders: who is shown first wins, but for one tie. The likelihood grows with the
    # effect for ever, and takes two of the strengths with it.
    rng = np.random.default_rng(3)
    pairs = np.array([rng.choice(4, 2, replace=False) for _ in range(60)])
    outcome = np.repeat([0, 1], 60)
    outcome[7] = 2
    games = Games.of(
        np.tile(pairs[:, 0], 2), np.tile(pairs[:, 1], 2), outcome, players=4, covariates=np.repeat([1.0, -1.0], 60)
    )
    found = fit_players(games)
    assert np.isnan(found.strength).all()
    assert np.isnan(found.effects).all()


@pytest.mark.parametrize("model", ["bradley-terry", "davidson"])
@pytest.mark.parametrize("kind", ["many", "few", "leagues", "covariates", "decided", "idle"])
def test_draws_fitted_together_are_those_fitted_one_by_one(model: Model, kind: str) -> None:
    """Also where somebody is unbeaten or idle, nothing is tied, or a covariate decides its games."""
    rng = np.random.default_rng(7)
    n, players = {"few": 9}.get(kind, 120), 6 if kind == "leagues" else 4
    first = rng.integers(0, players, n)
    second = (first + rng.integers(1, 3, n) * (2 if kind == "leagues" else 1)) % players
    z = {"covariates": rng.normal(0, 1, (n, 2)).round(1), "decided": (np.arange(n) < 12)[:, None] * 1.0}
    outcome = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    extra = z.get(kind, np.zeros((n, 0)))
    if kind == "decided":
        outcome[:12] = np.where(np.arange(12) % 6 > 0, 0, 2)  # one tie in six: some draws have none
    meetings = Meetings.of(first, second, outcome, players=players + (kind == "idle"), covariates=extra)
    whole = meetings.games(np.ones(n))
    fit = fit_players(whole, model=model)
    drawn = [meetings.games(rng.multinomial(n, np.full(n, 1 / n)).astype(float)) for _ in range(40)]
    alone = [fit_players(each, model=model, start=fit, leagues=whole.leagues) for each in drawn]
    many = fit_draws(iter(drawn), model=model, prior=0.1, start=fit, leagues=whole.leagues)
    assert len(many) == 40
    for one, other in zip(alone, many, strict=True):
        assert one.converged == other.converged
        assert np.allclose(one.strength, other.strength, rtol=0, atol=1e-8, equal_nan=True)
        assert np.allclose(one.effects, other.effects, rtol=0, atol=1e-8, equal_nan=True)
        assert np.allclose(one.tie, other.tie, rtol=0, atol=1e-8, equal_nan=True)
        assert (one.touched is None) == (other.touched is None)
    plain = sum(each is not None for each in drawn_strengths._together(drawn, model, fit, whole.leagues))
    assert plain == 40 if kind in ("many", "leagues", "covariates") else plain < 40


def ranked(games: list[tuple[int, int]], players: int) -> list[tuple[float, float, float]]:
    """Rank, low and high of each player, from games of a winner and a loser each."""
    first, second = np.array(games).T
    bouts = Bouts(
        [str(i) for i in range(players)], first, second, 0 * first, np.ones(len(first)), np.zeros((len(first), 0))
    )
    ranking = rank_players(bouts, Resampling(200, 0.95, 0))
    found = [ranking.rank(i) for i in range(players)]
    return [(each.value, each.low, each.high) for each in found]


def test_a_single_game_that_was_won_leaves_every_rank_open() -> None:
    # 0 beats 1 in 30 of 40 games, log-odds log 3 = 1.10; 2 beat 1 once: at the strength of 1 less 3.66, where a win has
    # the probability .025, it is behind both, and nothing says that it is not in front of both
    games = [(0, 1)] * 30 + [(1, 0)] * 10
    assert ranked(games, 2) == [(1, 1, 1), (2, 2, 2)]
    assert ranked([*games, (2, 1)], 3) == [(2, 1, 2), (3, 2, 3), (1, 1, 3)]
    # 40 wins over 1: each with a probability of at least .025 ** (1 / 40) = .912, log-odds 2.34: ahead of 0, whose
    # bootstrap interval ends near 1.9
    assert ranked(games + [(2, 1)] * 40, 3) == [(2, 2, 2), (3, 3, 3), (1, 1, 1)]
    assert ranked(games + [(1, 2)] * 40, 3) == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]  # and 40 losses the other way round


def test_two_players_of_whom_one_won_every_game() -> None:
    # as equals, five games all won by one have the probability 1/32 > .025, and six 1/64
    assert ranked([(0, 1)] * 5, 2) == [(1, 1, 2), (2, 1, 2)]
    assert ranked([(0, 1)] * 6, 2) == [(1, 1, 1), (2, 2, 2)]


def test_who_beat_the_one_that_beat_another_is_ahead_of_it_too() -> None:
    assert ranked([(0, 1), (1, 2)] * 10, 3) == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
    assert ranked([(0, 1), (1, 2), (2, 3)] * 10, 4) == [(1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4)]
    assert ranked([(0, 1)] * 10 + [(1, 2)] * 3, 3) == [(1, 1, 2), (2, 2, 3), (3, 1, 3)]  # three wins say little
    # four meet in both directions and beat each of three others, who beat each other in a circle: no order among these
    four = [(i, j) for i in range(4) for j in range(4) if i != j] * 5
    beaten = [(i, j) for i in range(4) for j in (4, 5, 6)] * 5
    assert [each[1:] for each in ranked([*four, *beaten, *[(4, 5), (5, 6), (6, 4)] * 10], 7)[4:]] == [(1, 7)] * 3


def test_a_rank_that_draws_do_not_know_is_any() -> None:
    # of two games, one won each, half the draws have one winner only
    assert ranked([(0, 1), (1, 0)], 2) == [(1, 1, 2), (1, 1, 2)]
