"""Orders with ties, cycles, missing verdicts; slot bias and noise from many items."""

import math
from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np
import pytest

from dikast.ranking.comparisons import Comparison, Floats, Games, OrderedPair, games_of
from dikast.ranking.contestants import Contestants
from dikast.ranking.item_order import Ordered, cycles_of, order_of
from dikast.ranking.item_ranking import ranking_of
from dikast.ranking.pooled import UNKNOWN, Noise, SlotBias, pool
from dikast.ranking.schedules import SCHEDULES
from dikast.ranking.simulation import JudgeModel
from dikast.ranking.tournament import Tournament


def compared(*values: tuple[int, int, float]) -> list[Comparison]:
    return [Comparison(OrderedPair(i, j), math.copysign(1, v) if v else 0.0, math.tanh(v / 2), v) for i, j, v in values]


def test_order_ranks_and_rewards_by_hand() -> None:
    # both orders of 0 and 1 by +2 and -2, of 1 and 2 tied: strengths 4/3, -2/3, -2/3; rewards are 2k = 6 times as much
    said = compared((0, 1, 2.0), (1, 0, -2.0), (1, 2, 0.0), (2, 1, 0.0))
    found = order_of(said, 3, "logit", 0.0, UNKNOWN)
    assert (found.order, found.ranks) == ((0, 1, 2), (1, 2, 2))
    assert found.rewards == pytest.approx((8, -4, -4))
    assert found.low == found.best == (None, None, None)
    assert (found.cycles, found.triples) == (0, 0)


def test_intervals_and_the_probability_of_being_best() -> None:
    # two responses, both orders: strengths 1/2 and -1/2, each with variance (noise^2 / 2) / 4; rewards are 4 times them
    found = order_of(compared((0, 1, 1.0), (1, 0, -1.0)), 2, "logit", 0.0, Noise(1.0, 100_000))
    half = 4 * 1.959988 * math.sqrt(1 / 8)
    assert found.low[0] == pytest.approx(2 - half, abs=1e-3)
    assert found.high[1] == pytest.approx(-2 + half, abs=1e-3)
    # the difference is 1 with standard deviation sqrt(1/2): P(best) = Phi(sqrt 2) = .921
    assert found.best[0] == pytest.approx(0.921, abs=0.015)
    assert sum(each or 0 for each in found.best) == pytest.approx(1)


def played(name: str, k: int, judge: JudgeModel, *, alone: bool, items: int = 200) -> Iterator[tuple[Ordered, Floats]]:
    """The order of each simulated item, and the rewards that comparisons without noise would give."""
    rng, schedule = np.random.default_rng([7, k]), SCHEDULES[name]
    n = items + (40 if schedule.grades else 0)  # the last ones are compared in full, as the pilot of `auto`
    quality = rng.standard_normal((n, k))
    grades = quality + judge.graded * rng.standard_normal((n, k)) if schedule.grades else None
    together = Tournament(0, "logit")
    tournaments = [Tournament(0, "logit") if alone else together for _ in range(n)]
    for at, each in enumerate(tournaments):
        each.enter(str(at), k, schedule if at < items else SCHEDULES["full"], None if grades is None else grades[at])
    for each in tournaments if alone else [together]:
        while pairs := each.draw():
            for item, drawn in pairs.items():
                seen, errors = quality[int(item)], rng.standard_normal(len(drawn))
                logits = [
                    judge.gain * (seen[i] - seen[j]) + judge.bias + judge.noise * error
                    for (i, j), error in zip(drawn, errors, strict=True)
                ]
                each.note({item: compared(*((*pair, value) for pair, value in zip(drawn, logits, strict=True)))})
    for at in range(items):
        yield tournaments[at].ordered(str(at)), 2 * k * judge.gain * (quality[at] - quality[at].mean())


@pytest.mark.parametrize(
    ("name", "k", "alone"),
    [
        ("full", 5, False),
        ("half", 4, True),
        ("swiss", 8, False),
        ("top", 5, False),
        ("ends", 8, False),
        ("graded", 5, False),
    ],
)
def test_intervals_and_probabilities_hold_what_they_say(name: str, k: int, alone: bool) -> None:
    judge = JudgeModel(gain=1.6, bias=-0.15, noise=2.2, systematic=0.0, graded=0.7)
    held, said, right = list[bool](), list[float](), list[bool]()
    for order, rewards in played(name, k, judge, alone=alone):
        if len(order.order) < k:  # pairs of `swiss` may leave two groups
            continue
        held += [
            low is not None and high is not None and low <= reward <= high
            for low, reward, high in zip(order.low, rewards, order.high, strict=True)
        ]
        said += [share for share in order.best if share is not None]
        right += (rewards == rewards.max()).tolist()
    assert len(said) == len(right) >= 190 * k
    assert 0.93 < np.mean(held) < 0.98
    first = np.array(said) > 0.6
    assert np.array(said)[first].mean() == pytest.approx(np.array(right)[first].mean(), abs=0.06)


def test_grades_that_comparisons_say_nothing_beyond_leave_the_uncertainty_unknown() -> None:
    tournament = Tournament(0, "logit")
    tournament.enter("0", 4, SCHEDULES["graded"], np.array([0.9, 0.6, 0.3, 0.1]))
    while pairs := tournament.draw():
        tournament.note({item: compared(*((*pair, 0.0) for pair in drawn)) for item, drawn in pairs.items()})
    order = tournament.ordered("0")
    assert order.order == (0, 1, 2, 3)
    assert order.low == order.high == order.best == (None,) * 4


def test_no_verdict_is_no_order() -> None:
    found = order_of([Comparison(OrderedPair(0, 1)), Comparison(OrderedPair(1, 0))], 2, "verdict", 0.0, UNKNOWN)
    assert (found.order, found.ranks, found.rewards) == ((), (None, None), (None, None))
    assert order_of([], 3, "verdict", 0.0, UNKNOWN).order == ()


def test_only_what_is_connected_is_ordered() -> None:
    found = order_of(compared((3, 4, 1.0), (0, 1, 1.0), (1, 2, 1.0)), 5, "logit", 0.0, UNKNOWN)
    assert found.order == (0, 1, 2)
    assert found.ranks == (1, 2, 3, None, None)
    assert found.rewards[3] is None


def test_cycles_by_hand() -> None:
    # 0 > 1 > 2 > 0 is a circle; 3 loses to all: the triples with 3 have none
    around = compared((0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0), (0, 3, 1.0), (1, 3, 1.0), (2, 3, 1.0))
    assert cycles_of(games_of(around, 4, "logit"), 0.0) == (1, 4)
    # less a slot bias of 2 every preference is turned round, and the circle with it
    assert cycles_of(games_of(around, 4, "logit"), 2.0)[0] == 1
    tied = compared((0, 1, 1.0), (1, 2, 1.0), (2, 0, 0.0))
    assert cycles_of(games_of(tied, 3, "logit"), 0.0) == (0, 1)
    assert cycles_of(games_of(compared((0, 1, 1.0), (1, 2, 1.0)), 3, "logit"), 0.0) == (0, 0)


def test_cycles_are_those_of_every_triple() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        games = games_of(
            compared(*((i, j, float(rng.integers(-1, 2))) for i, j in permutations(range(7), 2) if rng.random() < 0.5)),
            7, "logit",
        )  # fmt: skip
        net, asked = games.sums - games.sums.T, games.counts + games.counts.T > 0
        triples = [each for each in combinations(range(7), 3) if all(asked[pair] for pair in combinations(each, 2))]
        turning = [{np.sign(net[pair]) for pair in ((a, b), (b, c), (c, a))} for a, b, c in triples]
        assert cycles_of(games, 0.0) == (sum(each in ({1}, {-1}) for each in turning), len(triples))


def contests(items: int, k: int, bias: float, noise: float, pairs: str, seed: int = 0) -> list[Games]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(items):
        strengths = 1.5 * rng.normal(size=k)
        asked = [(i, j) for i in range(k) for j in range(k) if i != j and (pairs == "both" or i < j)]
        if pairs == "chain":
            asked = [(i, i + 1) for i in range(k - 1)]
        if pairs != "both":
            asked = [pair if rng.random() < 0.5 else pair[::-1] for pair in asked]
        said = [(i, j, float(strengths[i] - strengths[j] + bias + noise * rng.normal())) for i, j in asked]
        found.append(games_of(compared(*said), k, "logit"))
    return found


@pytest.mark.parametrize("pairs", ["both", "random", "chain"])
def test_slot_bias_and_noise_are_found_again(pairs: str) -> None:
    found = pool(contests(300, 5, 1.0, 0.7, pairs))
    assert abs(found.bias.value - 1.0) < 4 * found.bias.error
    assert 0 < found.bias.error < 0.15
    if pairs == "chain":
        assert math.isnan(found.noise.sd)
    else:
        assert found.noise.sd == pytest.approx(0.7, abs=0.05)
        assert found.spread == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize("pairs", ["both", "random"])
def test_the_error_of_the_slot_bias_is_its_spread_over_runs(pairs: str) -> None:
    found = [pool(contests(10, 4, 0.5, 0.7, pairs, seed)).bias for seed in range(200)]
    inside = sum(abs(each.value - 0.5) < 1.96 * each.error for each in found)
    assert 180 <= inside <= 199


def test_a_bias_within_its_error_is_not_corrected_for() -> None:
    assert SlotBias(0.1, 0.2, 5).shrunk == 0
    assert SlotBias(1.0, 0.5, 5).shrunk == pytest.approx(0.75)
    assert SlotBias(1.0, 0.0, 5).shrunk == 1.0
    assert SlotBias(math.nan, math.nan, 0).shrunk == 0


def test_nothing_compared_is_nothing_known() -> None:
    found = pool([])
    assert math.isnan(found.bias.value)
    assert math.isnan(found.noise.sd)
    alike = pool([games_of(compared((0, 1, 0.0), (1, 0, 0.0)), 2, "logit")] * 3)
    assert (alike.bias.value, alike.noise.sd) == (0, 0)


def test_a_duel_without_a_verdict_in_one_order_decides_nothing() -> None:
    grades, played = np.array([0.9, 0.8, 0.1]), Tournament(values="verdict")
    biased = [Comparison(OrderedPair(0, 1), 1.0), Comparison(OrderedPair(1, 0), 1.0)]  # the first slot wins
    for item in ("one order", "both", *(f"other {at}" for at in range(8))):
        played.enter(item, 3, SCHEDULES["duel"], grades)
        played.note({item: biased})
    tie, none = Comparison(OrderedPair(0, 1), 0.0), Comparison(OrderedPair(1, 0))
    played.contests["one order"].played = [tie, none]
    played.contests["both"].played = [tie, Comparison(OrderedPair(1, 0), 1.0)]
    assert played.pooled("verdict").bias.shrunk > 0.5
    found = [ranking_of(item, Contestants((0, 1, 2), {}), played) for item in ("one order", "both")]
    assert [(each.order, each.missing) for each in found] == [((0, 1, 2), 1), ((1, 0, 2), 0)]
