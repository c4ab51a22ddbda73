"""Every schedule with 2, 3, 5, 16 and other numbers of responses."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from dikast.core.errors import UserError
from dikast.ranking.comparisons import OrderedPair
from dikast.ranking.informative import most_informative
from dikast.ranking.schedules import SCHEDULES, schedule_named


def played(name: str, k: int, seed: int = 0) -> list[list[OrderedPair]]:
    """The rounds of a schedule when response 0 is the strongest, k - 1 the weakest."""
    strengths = np.arange(k, 0.0, -1)
    rounds = SCHEDULES[name].draw(k, np.random.default_rng(seed), strengths)
    found = [next(rounds)]
    try:
        while True:
            found.append(rounds.send(strengths))
    except StopIteration:
        return found


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 16])
def test_no_order_of_a_pair_is_asked_twice_and_as_many_as_planned(name: str, k: int) -> None:
    schedule = SCHEDULES[name]
    if k < schedule.least:
        return
    for seed in range(5):
        pairs = [pair for each in played(name, k, seed) for pair in each]
        assert len(set(pairs)) == len(pairs)
        assert len(pairs) == schedule.calls(k)
        assert all(0 <= i < k and 0 <= j < k and i != j for i, j in pairs)


def test_a_full_round_robin_of_five_asks_20_ordered_pairs() -> None:
    (pairs,) = played("full", 5)
    assert len(pairs) == 20
    assert Counter(pair.first for pair in pairs) == dict.fromkeys(range(5), 4)


@pytest.mark.parametrize("k", [2, 3, 5, 8, 16])
def test_half_of_it_shows_each_first_as_often_as_second(k: int) -> None:
    (pairs,) = played("half", k)
    assert len({frozenset(pair) for pair in pairs}) == k * (k - 1) // 2
    firsts = Counter(pair.first for pair in pairs)
    assert all(abs(2 * firsts[i] - (k - 1)) <= 1 for i in range(k))


@pytest.mark.parametrize("k", [2, 3, 5, 8, 16])
def test_the_strongest_wins_a_knockout(k: int) -> None:
    rounds = played("knockout", k)
    assert len(rounds) == int(np.ceil(np.log2(k)))
    assert 0 in rounds[-1][0]
    lost = [max(pair) for each in rounds for pair in each]
    assert sorted(lost) == list(range(1, k))  # everybody else loses once


def test_top_asks_both_orders_of_the_two_best_and_ends_of_the_two_at_each_end() -> None:
    for name, close in (("top", [(0, 1)]), ("ends", [(0, 1), (6, 7)])):
        pairs = {pair for each in played(name, 8) for pair in each}
        assert all({OrderedPair(i, j), OrderedPair(j, i)} <= pairs for i, j in close)


def test_the_most_informative_pairs_are_those_that_may_change_who_is_first_or_last() -> None:
    strengths, once = np.array([1.1, 1.0, 0.0, -1.0, -1.1]), {OrderedPair(i, j) for i, j in combinations(range(5), 2)}
    assert most_informative(strengths, once, 1, (1,)) == [(0, 1)]
    assert set(most_informative(strengths, once, 2, (1, -1))) == {(0, 1), (3, 4)}
    # with both orders of 0 and 1 asked, 2 may still overtake one of them, and 4 cannot
    (next_,) = most_informative(strengths, once | {OrderedPair(1, 0)}, 1, (1,))
    assert next_ in {(0, 2), (1, 2)}
    # nothing is known of 4: it may be the best of all
    unmet = {pair for pair in once if 4 not in pair}
    assert 4 in most_informative(np.array([1.1, 0.5, 0.0, -1.6, 0.0]), unmet, 1, (1,))[0]


def test_a_duel_is_between_the_two_best_grades() -> None:
    assert played("duel", 5) == [[OrderedPair(0, 1), OrderedPair(1, 0)]]


def test_an_unknown_schedule_is_refused_with_the_near_match() -> None:
    with pytest.raises(UserError, match="did you mean 'knockout'"):
        schedule_named("knock-out")
