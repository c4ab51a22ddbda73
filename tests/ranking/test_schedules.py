"""Every schedule with 2, 3, 5, 16 and other numbers of responses."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from dikast.core.errors import UserError
from dikast.ranking.comparisons import Comparison, Games, OrderedPair, laplacian
from dikast.ranking.informative import Belief, most_informative
from dikast.ranking.schedules import SCHEDULES, schedule_named
from dikast.ranking.tournament import Tournament


def played(name: str, k: int, seed: int = 0, gaps: Sequence[float] = (1.0,)) -> list[list[list[OrderedPair]]]:
    """The rounds of a schedule by item when response 0 is the strongest, k - 1 the weakest.

    gaps: of each item, by how much neighbours differ in strength.
    """
    tournament, found = Tournament(seed, "logit"), [list[list[OrderedPair]]() for _ in gaps]
    strengths = [gap * np.arange(k, 0.0, -1) for gap in gaps]
    for at, each in enumerate(strengths):
        tournament.enter(str(at), k, SCHEDULES[name], each if SCHEDULES[name].grades else None)
    noise = np.random.default_rng(seed)
    while pairs := tournament.draw():
        said = {}
        for item, drawn in pairs.items():
            own, found_here = strengths[int(item)], found[int(item)]
            found_here.append(drawn)
            said[item] = [
                Comparison(pair, logit=float(own[pair.first] - own[pair.second] + 0.3 * noise.standard_normal()))
                for pair in drawn
            ]
        tournament.note(said)
    return found


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 16])
def test_no_order_of_a_pair_is_asked_twice_and_as_many_as_planned(name: str, k: int) -> None:
    schedule = SCHEDULES[name]
    if k < schedule.least:
        return
    for seed in range(5):
        pairs = [pair for each in played(name, k, seed)[0] for pair in each]
        assert len(set(pairs)) == len(pairs)
        assert len(pairs) == schedule.calls(k)
        assert all(0 <= i < k and 0 <= j < k and i != j for i, j in pairs)


def test_a_full_round_robin_of_five_asks_20_ordered_pairs() -> None:
    ((pairs,),) = played("full", 5)
    assert len(pairs) == 20
    assert Counter(pair.first for pair in pairs) == dict.fromkeys(range(5), 4)


@pytest.mark.parametrize("k", [2, 3, 5, 8, 16])
def test_half_of_it_shows_each_first_as_often_as_second(k: int) -> None:
    ((pairs,),) = played("half", k)
    assert len({frozenset(pair) for pair in pairs}) == k * (k - 1) // 2
    firsts = Counter(pair.first for pair in pairs)
    assert all(abs(2 * firsts[i] - (k - 1)) <= 1 for i in range(k))


@pytest.mark.parametrize("k", [2, 3, 5, 8, 16])
def test_the_strongest_wins_a_knockout(k: int) -> None:
    (rounds,) = played("knockout", k)
    assert len(rounds) == int(np.ceil(np.log2(k)))
    assert 0 in rounds[-1][0]
    lost = [max(pair) for each in rounds for pair in each]
    assert sorted(lost) == list(range(1, k))  # everybody else loses once


def test_top_asks_both_orders_of_the_two_best_and_ends_of_the_two_at_each_end() -> None:
    for name, close in (("top", [(0, 1)]), ("ends", [(0, 1), (6, 7)])):
        pairs = {pair for each in played(name, 8)[0] for pair in each}
        assert all({OrderedPair(i, j), OrderedPair(j, i)} <= pairs for i, j in close)


@pytest.mark.parametrize("name", ["top", "ends", "graded"])
def test_items_share_comparisons_by_how_much_they_help(name: str) -> None:
    (clear, close), k = played(name, 8, gaps=(2.0, 0.05)), 8
    asked = [sum(len(each) for each in rounds) for rounds in (clear, close)]
    assert sum(asked) == 2 * SCHEDULES[name].calls(k)
    assert asked[0] < SCHEDULES[name].calls(k) < asked[1] <= k * (k - 1)


def test_an_item_that_gets_no_verdict_is_asked_no_more_than_its_share() -> None:
    tournament = Tournament(0, "logit")
    for item in ("told", "mute"):
        tournament.enter(item, 5, SCHEDULES["top"])
    while pairs := tournament.draw():
        tournament.note(
            {
                item: [
                    Comparison(pair, logit=math.nan if item == "mute" else pair.second - pair.first) for pair in drawn
                ]
                for item, drawn in pairs.items()
            }
        )
    assert {item: len(contest.asked) for item, contest in tournament.contests.items()} == {"told": 10, "mute": 10}


def test_an_item_whose_grades_say_enough_is_not_compared_and_has_the_unit_of_the_others() -> None:
    tournament, grades = Tournament(), {"clear": [0.9, 0.6, 0.3, 0.0], "close": [0.52, 0.5, 0.49, 0.48]}
    for item, each in grades.items():
        for name in (item, f"{item} too"):
            tournament.enter(name, 4, SCHEDULES["graded"], np.array(each))
    while pairs := tournament.draw():
        said = dict[str, list[Comparison]]()
        for item, drawn in pairs.items():
            own = grades[item.split()[0]]
            said[item] = [Comparison(pair, 1.0, 0.5, 8 * (own[pair.first] - own[pair.second])) for pair in drawn]
        tournament.note(said)
    played = {item: len(contest.played) for item, contest in tournament.contests.items()}
    assert played == {"clear": 0, "clear too": 0, "close": 4, "close too": 4}
    assert {tournament.read(item) for item in played} == {"logit"}
    rewards = tournament.ordered("clear").rewards
    assert rewards[0] == pytest.approx(2 * 4 * 8 * 0.45, rel=0.05)  # eight nats a unit of goodness, .45 above the mean


def believed(mean: list[float], asked: set[OrderedPair]) -> Belief:
    counts = np.zeros((5, 5))
    for pair in asked:
        counts[pair] += 1
    known = laplacian(Games(counts, counts, counts.sum())) + 0.2 * np.eye(5)
    return Belief(
        np.array(mean) / 0.45, np.asarray(np.linalg.inv(known)), (2 - counts - counts.T)[np.triu_indices(5, 1)]
    )


def test_the_most_informative_pairs_are_those_that_may_change_who_is_first_or_last() -> None:
    close, once = [1.1, 1.0, 0.0, -1.0, -1.1], {OrderedPair(i, j) for i, j in combinations(range(5), 2)}
    assert list(most_informative([believed(close, once)], 1, (1,), 2)) == [(0, 0, 1)]
    assert set(most_informative([believed(close, once)], 2, (1, -1), 2)) == {(0, 0, 1), (0, 3, 4)}
    # with both orders of 0 and 1 asked, 2 may still overtake one of them, and 4 cannot
    ((_, *next_),) = most_informative([believed(close, once | {OrderedPair(1, 0)})], 1, (1,), 2)
    assert next_ in ([0, 2], [1, 2])
    # nothing is known of 4: it may be the best of all
    unmet = {pair for pair in once if 4 not in pair}
    assert 4 in next(most_informative([believed([1.1, 0.5, 0.0, -1.6, 0.0], unmet)], 1, (1,), 2))


def test_the_most_informative_pairs_are_those_of_the_closest_item() -> None:
    once = {OrderedPair(i, j) for i, j in combinations(range(5), 2)}
    clear, close = believed([2.0, 1.0, 0.0, -1.0, -2.0], once), believed([1.1, 1.0, 0.0, -1.0, -1.1], once)
    assert [item for item, *_ in most_informative([clear, close], 2, (1, -1), 2)] == [1, 1]
    assert [item for item, *_ in most_informative([clear, close], 3, (1, -1), 2)] == [1, 1, 0]
    every = {OrderedPair(i, j) for i in range(5) for j in range(5) if i != j}
    assert not list(most_informative([believed([0.0] * 5, every)], 3, (1,), 2))


def test_a_duel_is_between_the_two_best_grades() -> None:
    assert played("duel", 5) == [[[OrderedPair(0, 1), OrderedPair(1, 0)]]]


def test_an_unknown_schedule_is_refused_with_the_near_match() -> None:
    with pytest.raises(UserError, match="did you mean 'knockout'"):
        schedule_named("knock-out")
