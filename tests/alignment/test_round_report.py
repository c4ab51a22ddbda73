"""When an alignment stops, by hand."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.alignment.round_report import Measured, _wins, estimates, reason_to_stop, too_few_pairs, won_by_grades
from dikast.core.errors import TooManyMissing
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.judging.judge import Judge


def state(gold: list[float | None], words: float = 10.0, kl: float = 1.0, reward: float = 0.5) -> Measured:
    n = len(gold)
    columns: dict[str, tuple[float | None, ...]] = {
        "reward": (reward, reward + 0.1) * (n // 2), "gold": tuple(gold), "second": (None,) * n,
        "words": (words - 1, words + 1) * (n // 2), "empty": (0.0,) * n, "cut": (0.0,) * n, "unreadable": (0.0,) * n,
        "wins": (0.5, 1.0) * (n // 2), "kl": (kl - 1, kl + 1) * (n // 2),
    }  # fmt: skip
    return Measured(tuple(f"p{i}" for i in range(n)), columns)


START = state([0.2, 0.4, 0.6, 0.4, 0.3, 0.5])


def test_a_state_that_is_no_worse_is_gone_on_with() -> None:
    assert reason_to_stop(state([0.3, 0.4, 0.7, 0.4, 0.3, 0.4]), START, START, 10.0) == ""


def test_far_from_the_start() -> None:
    assert reason_to_stop(state([0.4] * 6, kl=12.0), START, START, 10.0) == (
        "the policy is 12.0 nats a reply from its start, more than 10"
    )


def test_replies_that_grow_by_more_than_half() -> None:
    assert reason_to_stop(state([0.4] * 6, words=15.0), START, START, 10.0) == ""
    assert "grown from 10.0 words to 15.1" in reason_to_stop(state([0.4] * 6, words=15.1), START, START, 10.0)


def test_held_out_gold_that_falls_by_more_than_its_interval() -> None:
    """Paired differences -.1, -.1, -.2, -.1, -.1, -.2: mean -.133, half-width 2.571 x .0516/sqrt(6) = .054."""
    now = state([0.1, 0.3, 0.4, 0.3, 0.2, 0.3])
    assert reason_to_stop(now, START, START, 10.0) == "gold on held-out prompts fell by 0.133 [0.079, 0.188]"
    unsure = state([0.0, 0.5, 0.5, 0.5, 0.1, 0.5])  # falls in the mean, within its interval
    assert reason_to_stop(unsure, START, START, 10.0) == ""


def test_without_gold_the_second_judge_decides_and_then_the_judge() -> None:
    none: list[float | None] = [None] * 6
    assert reason_to_stop(state(none, reward=0.5), state(none, reward=0.5), START, 10.0) == ""
    known = state(none)
    columns = {**known.columns, "second": (0.9, 0.8, 0.9, 0.8, 0.9, 0.8)}
    lower = {**known.columns, "second": (0.5, 0.5, 0.5, 0.4, 0.5, 0.4)}
    before, now = (Measured(known.ids, each) for each in (columns, lower))
    assert "the second judge's grade on held-out prompts fell by 0.383" in reason_to_stop(now, before, START, 10.0)


def test_wins_by_grades() -> None:
    start = state([0.5] * 6)  # rewards .5, .6, .5, .6, .5, .6
    rewards: dict[str, list[float | None]] = {"p0": [0.6], "p1": [0.5], "p2": [0.5 + 1e-9], "p3": [None]}
    assert won_by_grades(rewards, start) == {"p0": 1.0, "p1": 0.0, "p2": 0.5, "p3": None, "p4": None, "p5": None}


def test_few_pairs() -> None:
    assert too_few_pairs(20, 100, {}) == ""
    told = too_few_pairs(19, 100, {"equal": 80, "a verdict is missing": 1})
    assert told == "19 of 100 prompts give a pair, fewer than a fifth (80 equal, 1 a verdict is missing)"
    assert too_few_pairs(0, 0, {}).startswith("0 of 0")


def test_every_figure_has_n_and_an_interval_and_what_was_dropped() -> None:
    found = estimates(state([0.3, None, 0.5, 0.4, 0.3, 0.4]), START)
    assert (found["gold"]["n"], found["gold"]["dropped"]) == (5, 1)
    assert found["gold"]["low"] < found["gold"]["value"] < found["gold"]["high"]
    # .1, -.1, 0, 0, -.1
    assert found["gold"]["change"]["value"] == pytest.approx(-0.02)
    assert "second" not in found
    assert found["empty"]["method"] == "Wilson"


def test_no_end_of_an_interval_is_a_value_that_the_figure_cannot_have() -> None:
    now = state([0.0, 0.0, 0.0, 0.0, 0.0, 0.9])  # .15 [-.24, .54] by Student
    columns = {**now.columns, "second": (1.0, 1.0, 1.0, 1.0, 0.2, None), "words": (0.0, 0.0, 0.0, 0.0, 0.0, 60.0)}
    first = Measured(now.ids, {**columns, "gold": (1.0, 1.0, 1.0, 1.0, 1.0, 0.0), "words": (0.0,) * 6})
    found = estimates(Measured(now.ids, columns), first)
    assert (found["gold"]["low"], round(found["gold"]["high"], 2)) == (0.0, 0.54)
    assert (found["second"]["high"], found["second"]["dropped"]) == (1.0, 1)
    assert found["words"]["low"] == 0.0
    assert found["gold"]["change"]["low"] == -1.0  # -1, five times, and .9
    assert found["words"]["change"]["low"] < 0  # of a difference in words nothing is impossible


def test_a_prompt_without_a_reply_is_counted_in_every_figure() -> None:
    now = state([0.3, None, 0.5, 0.4, 0.3, 0.4])
    columns = {name: (*values[:5], None) for name, values in now.columns.items()}
    found = estimates(Measured(now.ids, columns), None)
    assert {name: (each["n"], each["dropped"]) for name, each in found.items()} == {
        **dict.fromkeys(("reward", "words", "empty", "cut", "unreadable", "wins", "kl"), (5, 1)), "gold": (4, 2),
    }  # fmt: skip


def test_wins_have_wilsons_interval_by_hand() -> None:
    def wins(*values: float | None) -> dict[str, Any]:
        found: dict[str, Any] = estimates(Measured(tuple(f"p{i}" for i in range(len(values))), {"wins": values}), None)
        return dict(found.get("wins", {}))

    # 3 of 4 won, z = 1.96, z^2 = 3.8415: middle (3/4 + 3.8415/8) / (1 + 3.8415/4) = 1.23018 / 1.96036 = .62753,
    # half 1.96 sqrt(3/64 + 3.8415/64) / 1.96036 = 1.96 x .32695 / 1.96036 = .32689; a prompt without grades is left out
    found = wins(1.0, 1.0, None, 1.0, 0.0)
    assert (found["value"], found["n"], found["dropped"], found["method"]) == (0.75, 4, 1, "Wilson")
    assert (found["low"], found["high"]) == pytest.approx((0.30064, 0.95441), abs=1e-4)
    # all won is no certainty: the low end is 4 / (4 + z^2) = 4 / 7.8415
    found = wins(1.0, 1.0, 1.0, 1.0)
    assert (found["value"], found["low"], found["high"]) == pytest.approx((1.0, 4 / 7.8415, 1.0), abs=1e-4)
    # ties alone: a half each; they vary less than wins and losses, and the interval is not narrower than theirs
    found = wins(0.5, 0.5, 0.5, 0.5)
    assert (found["value"], found["low"] < 0.2, found["high"] > 0.8) == (0.5, True, True)
    assert wins(None, None) == {}


def test_comparisons_with_the_start_count_for_the_failures_that_are_allowed(tmp_path: Path) -> None:
    def told(folder: str, reply: str) -> list[Item]:
        rows = [{"id": str(i), "instruction": f"Say {i}.", "response": f"{reply} {i}"} for i in range(20)]
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "samples.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        return list(read_items(str(tmp_path / folder / "samples.jsonl")))

    told("start", "Yes,")
    now, judge, asked = told("now", "No,"), Judge("mock:failing", "helpfulness"), {"calls": 3}
    with pytest.raises(TooManyMissing, match=r"against-start: 15 of 40 verdicts are missing, more than"):
        _wins(now, tmp_path / "now", judge, tmp_path / "start", asked, lambda n: 0.05 * n)
    found = _wins(now, tmp_path / "now", judge, tmp_path / "start", asked, lambda n: n)
    assert 0 < sum(value is None for value in found.values()) < 20
    assert asked["calls"] > 3
