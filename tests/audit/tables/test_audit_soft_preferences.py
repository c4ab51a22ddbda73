"""Soft preferences: numbers between the two choices, in win rates and in rankings."""

import math
from pathlib import Path

import numpy as np
import pytest

from audit_tables import Run, refused, rows_of, write
from dikast.audit.plan import PairLabels
from dikast.audit.statistics.paired_comparison.bradley_terry import Games, bradley_terry
from dikast.audit.tables.columns import Words
from dikast.audit.tables.soft_preferences import worth_of

PLAYERS = ("--first", "=old", "--second", "who", "--draws", "50")


def test_what_the_first_earns() -> None:
    words = Words(np.arange(8), ["1", "1.25", "2.0", "1.5", "0", "tie", "2.1", "bad"])
    found = worth_of(words, PairLabels("1", "2", "0"))
    assert found[:6].tolist() == [1, 0.75, 0, 0.5, 0.5, 0.5]
    assert np.isnan(found[6:]).all()
    mixed = worth_of(Words(np.arange(3), ["A", "b", "2.25"]), PairLabels("6|A", "1|B"))
    assert mixed.tolist() == [1, 0, 0.25]  # (2.25 - 1) / (6 - 1)
    assert worth_of(Words(np.arange(1), ["0.2"]), PairLabels("1", "0")).tolist() == [0.2]


def test_soft_win_rates_with_their_error(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"who": "new", "said": said} for said in (1.9, 1.6, 1.5, 1.0, 2.0, 1.4)]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "said", "--pair-labels", "1,2", "--soft", *PLAYERS)
    # .9 .6 .5 0 1 .4: mean 3.4 / 6; squares about it .111 .001 .004 .321 .188 .028 sum to .6533, / 5 / 6 is .02178
    new = rows_of(found, "players", "player")["new"]
    assert math.isclose(new["win rate (soft)"]["value"], 3.4 / 6)
    assert math.isclose(new["s.e. (soft)"], math.sqrt(0.6533333333 / 5 / 6), rel_tol=1e-6)
    assert math.isclose(new["win rate (half)"]["value"], 3.5 / 6)  # the nearest choices: 3 wins and a tie
    old = rows_of(found, "players", "player")["old"]
    assert math.isclose(old["win rate (soft)"]["value"], 2.6 / 6)
    sides = rows_of(found, "preferences", "side")
    assert math.isclose(sides["second, soft"]["share"]["value"], 3.4 / 6)
    assert math.isclose(sides["standard error of the soft shares"]["share"], new["s.e. (soft)"])
    board = rows_of(found, "ranking", "player")
    # two players: the strength is the log-odds of the soft win rate
    assert math.isclose(board["new"]["beats anchor"]["value"], 3.4 / 6, rel_tol=1e-6)
    assert "from 6 games" in found["tables"]["ranking"]["title"]


def test_soft_games_are_parts_of_a_win_and_of_a_loss(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(0)
    names = ["x", "y", "z"]
    rows = [
        {"a": names[i], "b": names[j], "said": round(float(rng.random()), 3)}
        for i, j in ((0, 1), (1, 2), (2, 0)) for _ in range(30)
    ]  # fmt: skip
    file = write(tmp_path / "x.csv", rows)
    arguments = ("--score", "said", "--pair-labels", "1,0", "--soft", "--first", "a", "--second", "b", "--draws", "50")
    board = rows_of(run_audit(file, *arguments), "ranking", "player")
    first, second = (np.array([names.index(str(row[side])) for row in rows]) for side in "ab")
    said = np.array([float(str(row["said"])) for row in rows])
    games = Games.of(
        np.tile(first, 2),
        np.tile(second, 2),
        np.repeat([0, 1], 90),
        players=3,
        weights=np.concatenate([said, 1 - said]),
    )
    expected = bradley_terry(games).strength
    assert [board[name]["strength"]["value"] for name in names] == pytest.approx(expected.tolist(), abs=1e-8)
    assert all(row["strength"]["low"] < row["strength"]["value"] < row["strength"]["high"] for row in board.values())


def test_both_orders_are_averaged(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"who": "new", "one": 1.8, "two": 1.4}, {"who": "new", "one": 1.2, "two": 1.6}, {"who": "new", "one": 1.9}]
    found = run_audit(
        write(tmp_path / "x.jsonl", rows),
        "--score",
        "one",
        "--swapped",
        "two",
        "--pair-labels",
        "1,2",
        "--soft",
        *PLAYERS,
    )
    new = rows_of(found, "players", "player")["new"]
    assert math.isclose(new["win rate (soft)"]["value"], (0.6 + 0.4) / 2)  # the third has no second verdict
    assert new["win rate (soft)"]["n"] == 2


def test_soft_preferences_need_two_numbers(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", [{"said": 1.3}] * 10)
    assert "one number each, such as 1,2" in refused(run_audit, file, "--score", "said", "--soft")
    assert "one number each" in refused(run_audit, file, "--score", "said", "--soft", "--pair-labels", "A,B")
    assert "one number each" in refused(run_audit, file, "--score", "said", "--soft", "--pair-labels", "1|0,2")
    assert "holds '1.3'" in refused(run_audit, file, "--score", "said", "--soft", "--pair-labels", "0,1")


@pytest.mark.parametrize("rule", ["both", "net", "tie"])
def test_what_is_said_of_disagreements_is_the_rule_that_was_used(rule: str, tmp_path: Path, run_audit: Run) -> None:
    rows = [{"who": f"m{k % 2}", "one": 1.2, "two": (1.2, 1.5, 1.9)[k % 3]} for k in range(12)]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "one", "--swapped", "two", "--pair-labels", "1,2", "--soft",
        "--two-games", rule, *PLAYERS,
    )  # fmt: skip
    told = " ".join(found["tables"]["preferences"]["notes"])
    assert ("a side wins where both name it" in told) == (rule == "both")
    assert ("a win and a tie are a win" in told) == (rule == "net")
    board = " ".join(found["tables"]["ranking"]["notes"])
    assert "half a win for each" not in board  # a soft preference is the mean of both orders
