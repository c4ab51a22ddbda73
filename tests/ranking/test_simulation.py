"""The published table of schedules, a sample of it; planning by simulation."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dikast.core.errors import UserError
from dikast.ranking.comparisons import Comparison, OrderedPair
from dikast.ranking.planning import budget_beside, draw_pilot, judge_of, plan
from dikast.ranking.pooled import pool
from dikast.ranking.schedules import SCHEDULES
from dikast.ranking.simulation import JudgeModel, simulate, simulated
from dikast.ranking.tournament import Tournament

PUBLISHED = JudgeModel(gain=1.5, bias=1.0, noise=0.7, systematic=0.3)


@pytest.mark.parametrize(
    ("name", "read", "share", "calls"),
    [("full", "logit", 0.80, 20), ("full", "verdict", 0.72, 20), ("full", "vote", 0.64, 20),
     ("half", "logit", 0.79, 10), ("knockout", "logit", 0.74, 4), ("duel", "logit", 0.72, 7)],
)  # fmt: skip
def test_the_table_of_schedules_is_found_again(name: str, read: str, share: float, calls: int) -> None:
    found = simulate(SCHEDULES[name], 5, PUBLISHED, read=read, items=300)  # type: ignore[arg-type]
    rate = found.goals["best"]
    assert found.calls == calls
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low - 0.02 <= share <= rate.high + 0.02


@pytest.mark.parametrize(
    ("name", "read", "gain", "apart"),
    [("full", "logit", 1.09, 0.997), ("full", "verdict", None, 0.994), ("full", "vote", 0.95, 0.974),
     ("half", "logit", 1.08, 0.995), ("knockout", "logit", 1.05, None), ("duel", "logit", 1.02, 0.968)],
)  # fmt: skip
def test_gains_and_told_apart_pairs_of_the_table_are_found_again(
    name: str, read: str, gain: float | None, apart: float | None
) -> None:
    found = simulate(SCHEDULES[name], 5, PUBLISHED, read=read, items=1000)  # type: ignore[arg-type]
    for rate, told in ((found.gain, gain), (found.told_apart, apart)):
        assert told is None or (rate.low or 0) - 0.01 <= told <= (rate.high or 0) + 0.01


def test_what_orders_are_worth_by_hand() -> None:
    quality = np.array([[0.5, -1.0, 2.0], [0.0, 1.0, -1.0]])
    found = simulated([[2, 0, 1], [2, 0, 1]], quality, 3.0)
    assert (found.goals["best"].value, found.goals["best-and-worst"].value) == (0.5, 0.5)
    assert (found.gain.value, found.told_apart.value, found.calls) == (0.5, 0.5, 3.0)


def test_the_rest_has_what_the_pilot_leaves_of_half_of_all_calls() -> None:
    # 200 items of five: half is 2,000 calls; 20 of them cost 25 each, which leaves 1,500 to 180
    assert budget_beside(5, 200, 20, graded=True) == 8
    assert budget_beside(5, 200, 20, graded=False) == 8  # 1,600 to 180
    assert budget_beside(5, 10_000, 40, graded=True) == 9  # never above half
    assert budget_beside(5, 24, 8, graded=True) == 8  # 2.5 are left: four fifths of half
    assert budget_beside(3, 24, 8, graded=True) == 2
    assert budget_beside(2, 24, 8, graded=False) == 1


def test_schedules_that_share_comparisons_out_keep_within_a_budget() -> None:
    for name, least in (("top", 5), ("ends", 5), ("graded", 6)):
        each = SCHEDULES[name]
        assert [each.within(5, most).in_all(5) for most in (9, least, 12)] == [9, least, 10]
        assert each.within(5, least - 1) is each  # too few: the schedule as it is, which does not fit
        assert simulate(each.within(5, 8), 5, PUBLISHED, items=40).calls == 8
    assert SCHEDULES["half"].within(5, 8) is SCHEDULES["half"]
    assert {"top", "ends", "graded"} <= set(plan("best", 5, PUBLISHED, budget=8, items=40).simulated)


def test_a_schedule_that_begins_with_grades_is_not_simulated_without() -> None:
    with pytest.raises(UserError, match="the schedule graded begins with grades, and the judge has none"):
        simulate(SCHEDULES["graded"], 5, replace(PUBLISHED, graded=math.inf), items=10)


def test_ten_symmetric_logits_find_the_best_at_least_as_often_as_twenty_votes() -> None:
    logits = simulate(SCHEDULES["half"], 5, PUBLISHED, items=300).goals["best"]
    votes = simulate(SCHEDULES["full"], 5, PUBLISHED, read="vote", items=300).goals["best"]
    assert (logits.value or 0) >= (votes.value or 1)


def test_the_same_seed_gives_the_same_numbers() -> None:
    one, two = (simulate(SCHEDULES["top"], 5, PUBLISHED, items=30, seed=3) for _ in range(2))
    assert one == two
    assert one != simulate(SCHEDULES["top"], 5, PUBLISHED, items=30, seed=4)


def test_schedules_with_grades_are_simulated_on_the_same_comparisons() -> None:
    # of two responses a duel compares as the full round robin does, so that grades can decide nothing
    judge = JudgeModel(gain=1.0, bias=1.0, noise=1.5, systematic=0.3, graded=0.5)
    duel, full = (simulate(SCHEDULES[name], 2, judge, items=200).goals for name in ("duel", "full"))
    assert duel["best"] == full["best"]
    assert plan("best", 2, judge, budget=12, items=200).schedule != "duel"


def test_a_plan_says_what_it_assumes_of_grades() -> None:
    judge = JudgeModel(gain=2.1, bias=0.0, noise=2.2, systematic=0.3, graded=0.5)
    told = plan("best", 4, judge, items=100).in_words
    assert told.startswith("4 responses: ")
    assert told.endswith(" if comparisons err as much as grades")
    assert told.count("full: ") == 2
    bare = plan("best", 2, replace(judge, graded=math.inf), items=100).in_words
    assert "with 1 comparison (full: " in bare
    assert "grades" not in bare


def pilot_of(judge: JudgeModel, read: str, items: int) -> Tournament:
    """A tournament of full round robins under the judge."""
    rng = np.random.default_rng(0)
    tournament = Tournament(0, "logit" if read == "logit" else "verdict")
    seen = rng.standard_normal((items, 5)) * math.hypot(1, judge.systematic)
    for at in range(items):
        tournament.enter(str(at), 5, SCHEDULES["full"])
    for item, pairs in tournament.draw().items():
        said = []
        for pair in pairs:
            apart = seen[int(item)][pair.first] - seen[int(item)][pair.second]
            value = float(judge.gain * apart + judge.bias + judge.noise * rng.standard_normal())
            said.append(Comparison(pair, math.copysign(1, value), math.tanh(value / 2), value))
        tournament.note({item: said})
    return tournament


def test_the_judge_of_a_pilot_is_found_again() -> None:
    tournament = pilot_of(PUBLISHED, "logit", 60)
    played = [each.played for each in tournament.contests.values()]
    found, read = judge_of(played, tournament.pooled("logit"), "logit")
    assert read == "logit"
    assert found.gain == pytest.approx(1.5, abs=0.25)
    assert found.bias == pytest.approx(1.0, abs=0.1)
    assert found.noise == pytest.approx(0.7, abs=0.05)


def test_the_judge_of_a_pilot_of_verdicts_is_found_in_units_of_its_noise() -> None:
    tournament = pilot_of(PUBLISHED, "verdict", 150)
    played = [each.played for each in tournament.contests.values()]
    found, read = judge_of(played, tournament.pooled("verdict"), "verdict")
    assert (read, found.noise) == ("verdict", 1.0)
    assert found.gain == pytest.approx(1.5 / 0.7, abs=0.5)
    assert found.bias == pytest.approx(1.0 / 0.7, abs=0.4)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, math.nan], ids=["ties", "first", "second", "none"])
def test_a_pilot_without_a_preference_cannot_be_planned_for(value: float) -> None:
    pairs = [OrderedPair(i, j) for i in range(3) for j in range(3) if i != j]
    pilot = [[Comparison(pair, value) for pair in pairs]] * 20
    for kind in ("verdict", "logit"):
        with pytest.raises(UserError, match="choose a --schedule"):
            judge_of(pilot, pool([]), kind)


def test_a_plan_keeps_to_its_budget() -> None:
    found = plan("best", 5, PUBLISHED, items=100)
    assert found.simulated[found.schedule].calls <= 10
    assert "full" in found.simulated  # to compare with
    assert plan("best", 5, PUBLISHED, budget=4, items=40).schedule == "knockout"
    assert found.in_words.startswith(f"5 responses: {found.schedule}, simulated best 0.")
    with pytest.raises(UserError, match="2 comparisons are too few to rank 5 responses: allow at least 4"):
        plan("best", 5, PUBLISHED, budget=2)
    for budget in (None, 2, 10**9):
        with pytest.raises(UserError, match="takes at most 500 different responses of an item, not 501: rank fewer"):
            plan("best", 501, PUBLISHED, budget=budget)


def test_the_error_of_grades_is_found_again() -> None:
    judge = JudgeModel(gain=2.0, bias=0.0, noise=1.5, systematic=0.3, graded=0.6)
    rng, tournament = np.random.default_rng(1), Tournament(0, "logit")
    seen = rng.standard_normal((120, 5)) * math.hypot(1, judge.systematic)
    grades = 0.5 + 0.1 * (seen + judge.graded * rng.standard_normal((120, 5)))
    for at in range(120):
        tournament.enter(str(at), 5, SCHEDULES["full"], grades[at])
    for item, pairs in tournament.draw().items():
        apart = [seen[int(item)][pair.first] - seen[int(item)][pair.second] for pair in pairs]
        values = [judge.gain * float(each) + judge.noise * rng.standard_normal() for each in apart]
        tournament.note(
            {item: [Comparison(p, math.copysign(1, v), 0.0, v) for p, v in zip(pairs, values, strict=True)]}
        )
    played = [each.played for each in tournament.contests.values()]
    found, _ = judge_of(played, tournament.pooled("logit"), "logit", tournament.grade_line("logit"))
    assert found.graded == pytest.approx(0.6, abs=0.07)
    assert judge_of(played, tournament.pooled("logit"), "logit")[0].graded == math.inf


def test_grades_are_planned_for_where_they_tell_more_than_noisy_comparisons() -> None:
    noisy = JudgeModel(gain=2.0, bias=-0.3, noise=4.0, systematic=0.3, graded=0.4)
    found = plan("best-and-worst", 5, noisy, items=150)
    assert (found.schedule, found.simulated["graded"].calls) == ("graded", 10)
    assert "with 10 calls (full: " in found.in_words
    without = plan("best-and-worst", 5, replace(noisy, graded=math.inf), items=40)
    assert not {"duel", "graded"} & set(without.simulated)


def test_beside_grades_comparisons_seek_the_best_alone_where_that_is_the_goal() -> None:
    judge = JudgeModel(gain=2.1, bias=-0.15, noise=2.2, systematic=0.3, graded=0.7)
    both, best = SCHEDULES["graded"], SCHEDULES["graded"].seeking("best")
    assert both.seeking("best-and-worst") is both
    found = {each.signs: simulate(each, 5, judge, items=600) for each in (both, best)}
    assert found[1,].calls == found[1, -1].calls == 10
    assert (found[1,].goals["best"].value or 0) > (found[1, -1].goals["best"].value or 0)
    assert (found[1,].goals["best-and-worst"].value or 0) < (found[1, -1].goals["best-and-worst"].value or 0)


def test_shared_comparisons_find_the_best_nearly_as_often_as_twice_as_many() -> None:
    judge = JudgeModel(gain=2.1, bias=-0.15, noise=2.2, systematic=0.3)
    found = {name: simulate(SCHEDULES[name], 5, judge, items=1000) for name in ("top", "half", "full")}
    share = {name: each.goals["best"].value or 0 for name, each in found.items()}
    assert found["top"].calls == found["half"].calls == 10
    assert share["full"] - share["top"] < 0.02 < 0.04 < share["full"] - share["half"]


def test_the_pilot_is_a_tenth_of_the_items() -> None:
    sizes = {f"i{n}": 5 for n in range(5000)}
    assert [len(draw_pilot(dict(list(sizes.items())[:n]))) for n in (0, 23, 24, 200, 5000)] == [0, 0, 8, 20, 40]


def test_a_pilot_is_drawn_from_items_of_every_size() -> None:
    # sorted by the number of responses: 600 of 2, which leave nothing to choose, 300 of 4, 90 of 5, 10 of 16
    sizes = {f"i{n}": 2 if n < 600 else 4 if n < 900 else 5 if n < 990 else 16 for n in range(1000)}
    drawn = draw_pilot(sizes)
    assert len(drawn) == 40
    counts = Counter(sizes[item] for item in drawn)
    assert (counts[2], counts[16]) == (0, 1)
    assert counts[4] == pytest.approx(30, abs=1)
    shuffled = dict(sorted(sizes.items(), reverse=True))
    assert set(draw_pilot(shuffled)) == set(drawn)  # the order of the file does not matter
    assert set(draw_pilot(sizes, seed=1)) != set(drawn)
    assert len(draw_pilot(dict.fromkeys(sizes, 2))) == 40
    assert set(draw_pilot({f"i{n}": n + 3 for n in range(30)})) < {f"i{n}" for n in range(30)}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"goal": "worst"}, "goal='worst': known: best, best-and-worst, order"),
        ({"goal": "bets"}, "goal='bets': did you mean 'best'"),
        ({"k": 0}, "k=0: expected a whole number of at least 2"),
        ({"k": 1}, "k=1: expected a whole number of at least 2"),
        ({"k": 2.5}, r"k=2\.5: expected a whole number"),
        ({"items": 0}, "items=0: expected a whole number of at least 1"),
        ({"read": "logits"}, "read='logits': did you mean 'logit'"),
        ({"budget": "10"}, "budget='10': expected a whole number of comparisons, or None"),
        ({"budget": 2.5}, r"budget=2\.5: expected a whole number"),
        ({"budget": True}, "budget=True: expected a whole number"),
        ({"budget": 0}, "0 comparisons are too few to rank 4 responses: allow at least 3"),
        ({"budget": -3}, "-3 comparisons are too few"),
    ],
)
def test_what_cannot_be_planned_names_the_argument(told: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"goal": "best", "k": 4, "judge": PUBLISHED, "items": 30, **told}
    with pytest.raises(UserError, match=message):
        plan(given.pop("goal"), given.pop("k"), given.pop("judge"), **given)


def test_what_cannot_be_simulated_names_the_argument() -> None:
    with pytest.raises(UserError, match="k=4: the schedule ends needs 5 responses"):
        simulate(SCHEDULES["ends"], 4, PUBLISHED)
    with pytest.raises(UserError, match="items=0"):
        simulate(SCHEDULES["full"], 4, PUBLISHED, items=0)
    for name, value in (("gain", math.nan), ("noise", -1.0), ("bias", math.inf), ("graded", math.nan)):
        with pytest.raises(UserError, match=f"JudgeModel: {name} is a number"):
            replace(PUBLISHED, **{name: value})
