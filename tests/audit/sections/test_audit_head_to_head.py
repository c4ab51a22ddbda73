"""Who beats whom, by hand."""

from pathlib import Path

import pytest

import runs
from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from dikast.audit.results import HeadToHead, Meeting


def meet(folder: Path, rows: list[tuple[str, str, str, str]]) -> HeadToHead:
    """Rows of (first, second, choice, choice in the swapped order), the latter as responses."""
    names = ("a", "b", "said", "swapped")
    file = runs.write_jsonl(folder / "pairs.jsonl", [dict(zip(names, row, strict=True)) for row in rows])
    plan = AuditPlan(file, pairwise=True, score="said", swapped="swapped", first="a", second="b", draws=50)
    found = audit_file(plan).result(HeadToHead)
    assert found is not None
    return found


def test_a_judge_of_position_names_another_winner_in_each_order(tmp_path: Path) -> None:
    # as shown: the first response wins each time; swapped (told as responses): the second
    found = meet(tmp_path, [("x", "y", "a", "b"), ("y", "x", "a", "b")] * 20)
    met = found.of("x", "y")
    assert met is not None
    assert met.rate.value == 0.5
    assert met.disagree is not None
    assert met.disagree.value == 1.0
    assert [each.value for each in met.orders] == [1.0, 0.0]  # shown first, shown second
    assert not met.decided


def test_a_winner_wins_in_both_orders_and_its_interval_excludes_an_even_result(tmp_path: Path) -> None:
    # x beats y in 18 of 20 pairs in both orders, in two the orders disagree: (18 + 1) / 20
    rows = [("x", "y", "a", "a")] * 10 + [("y", "x", "b", "b")] * 8 + [("x", "y", "a", "b"), ("y", "x", "a", "b")]
    met = meet(tmp_path, rows).of("x", "y")
    assert met is not None
    assert met.rate.value == pytest.approx(19 / 20)
    # x shown first: 10 + 1 as shown in its own rows, 8 swapped, and the swapped order of the last row says b = x: 20/20
    # x shown second: 10 swapped, 8 as shown, and of the other two none: 18/20
    assert [each.value for each in met.orders] == pytest.approx([1.0, 0.9])
    assert met.decided
    other = met.turned()
    assert other.first == "y"
    assert other.rate.value == pytest.approx(1 / 20)
    assert [each.value for each in other.orders] == pytest.approx([0.1, 0.0])
    assert other.decided
    assert isinstance(other, Meeting)


def test_pairs_that_are_no_games_are_told(tmp_path: Path) -> None:
    rows = [("x", "y", "a"), ("y", "x", "a")] * 5 + [("x", "x", "b")] * 3 + [("x", "", "a")] * 2
    file = runs.write_jsonl(tmp_path / "x.jsonl", [{"a": a, "b": b or None, "said": said} for a, b, said in rows])
    found = audit_file(AuditPlan(file, pairwise=True, score="said", first="a", second="b", draws=20))
    assert [found["players"].estimate(name, "win rate (half)").n for name in "xy"] == [10, 10]
    assert "3 pairs of a player with itself: not in the ranking, nor in games and win rates" in found.notes
    assert any(note.startswith("2 pairs without the name of a player") for note in found.notes)


def test_who_never_met_is_not_told(tmp_path: Path) -> None:
    found = meet(tmp_path, [("x", "y", "a", "a"), ("y", "z", "a", "b")])
    assert found.of("x", "z") is None
    assert [(each.first, each.second) for each in found.meetings] == [("x", "y"), ("y", "z")]
