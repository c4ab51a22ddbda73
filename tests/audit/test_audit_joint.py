"""Figures about pairs speak of the joint verdict of both orders; players without a game have no rank."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit_tables import Run, refused, rows_of, values, write
from dikast.audit.statistics.intervals import Resampling
from dikast.audit.statistics.paired_comparison.bradley_terry import Games, bradley_terry, fit_players
from dikast.audit.statistics.paired_comparison.ranking import Bouts, rank_players
from dikast.audit.tables import choices as pairs
from dikast.audit.tables.paired import Paired
from dikast.core.verdict import joint_outcome

A, B, T, N, W, D = pairs.FIRST, pairs.SECOND, pairs.TIE, pairs.NONE, pairs.WRONG, pairs.DISAGREE


def test_one_rule_joins_two_orders() -> None:
    spelt = {A: "a", B: "b", T: "tie", N: None}
    back = {"a": A, "b": B, "tie": T, "disagree": D, None: N}
    for one, two in itertools.product(spelt, repeat=2):
        assert pairs.joint([one], [two]).tolist() == [back[joint_outcome(spelt[one], spelt[two])]]
    assert pairs.joint([W, W, W], [A, W, N]).tolist() == [W, W, N]


def test_a_disagreement_is_no_tie_in_accuracy() -> None:
    # gold tie met by a tie (right) and by a disagreement (wrong); gold a met by a disagreement
    said, gold = [T, D, D, A], [T, T, A, A]
    worth = {rule: pairs.accuracy(said, gold, rule) for rule in pairs.TIE_RULES}
    assert worth["all"].value == 2 / 4
    assert (worth["no_gold_ties"].value, worth["no_gold_ties"].counts.sum()) == (1 / 2, 2)
    assert worth["half"].value == 1.5 / 2
    assert (worth["decided"].value, worth["decided"].counts.sum()) == (1, 1)


def test_flips_by_hand() -> None:
    # two to the first slot, one to the second, one with a tie, two agreements, one without a verdict: of six
    shown, swapped = [A, A, B, T, A, T, N], [B, B, A, B, A, T, A]
    found = pairs.flips(shown, swapped)
    assert {name: (each.value, int(each.counts.sum())) for name, each in found.items()} == {
        "first slot both times": (2 / 6, 6),
        "second slot both times": (1 / 6, 6),
        "a tie in one order": (1 / 6, 6),
    }


def test_bounds_know_the_order_that_did_answer(tmp_path: Path, run_audit: Run) -> None:
    # of 4 pairs with gold a: one right twice; one says b and then nothing: it cannot be right; one says a and then
    # nothing: it may be; one says nothing at all: it may be
    said = (("a", "a"), ("b", ""), ("", "a"), ("", ""))
    rows = [{"shown": shown, "swapped": swapped, "gold": "a"} for shown, swapped in said]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "shown", "--swapped", "swapped", "--gold", "gold")
    accuracy = rows_of(found, "accuracy", "statistic")["accuracy (all)"]
    assert (accuracy["both together"]["value"], accuracy["both together"]["n"]) == (1, 1)
    assert (accuracy["worst"], accuracy["best"]) == (1 / 4, 3 / 4)
    failures = rows_of(found, "failures", "status")
    assert failures["failed"]["count"] == 3
    assert rows_of(found, "failures shown", "status")["failed"]["count"] == 2


@pytest.mark.parametrize("rule", ["tie", "wrong"])
def test_the_rule_for_the_unscored_is_of_the_pair(rule: str, tmp_path: Path, run_audit: Run) -> None:
    rows = [{"shown": "a", "swapped": "a", "gold": "tie"}] * 3 + [{"shown": "a", "swapped": "", "gold": "tie"}] * 2
    found = run_audit(
        write(tmp_path / "x.csv", rows),
        "--score",
        "shown",
        "--swapped",
        "swapped",
        "--gold",
        "gold",
        "--unscored",
        rule,
    )
    accuracy = rows_of(found, "accuracy", "statistic")["accuracy (all)"]["both together"]
    assert accuracy["value"] == (2 / 5 if rule == "tie" else 0)


def always_first(n: int = 500, players: int = 5) -> list[dict[str, Any]]:
    """Pairs of which the response shown first always wins; one player stands first far more often."""
    rng = np.random.default_rng(7)
    rows = []
    for k in range(n):
        a, b = sorted(rng.permutation(players)[:2]) if rng.random() < 0.8 else rng.permutation(players)[:2]
        rows.append({"id": k, "one": f"m{a}", "two": f"m{b}", "shown": "a", "swapped": "b", "gold": "ab"[k % 2]})
    return rows


def test_a_judge_that_always_takes_the_first_slot_names_no_winner(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", always_first())
    found = run_audit(
        file, "--score", "shown", "--swapped", "swapped", "--gold", "gold", "--first", "one", "--second", "two",
        "--by", "one", "--draws", "200",
    )  # fmt: skip
    board, players = rows_of(found, "ranking", "player"), rows_of(found, "players", "player")
    assert len(board) == len(players) == 5
    for name in board:
        for rate in (players[name]["win rate (half)"], board[name]["beats anchor"]):
            assert rate["value"] == pytest.approx(0.5)
            assert rate["low"] < 0.5 < rate["high"]
        assert (board[name]["rank"]["value"], board[name]["rank"]["low"], board[name]["rank"]["high"]) == (1, 1, 5)
        assert board[name]["position controlled"]["value"] is None  # the slot decides every game
        assert players[name]["disagree"] == players[name]["games"]
        assert players[name]["wins"] == players[name]["losses"] == players[name]["ties"] == 0
    sides = {row["side"]: row["share"]["value"] for row in found["tables"]["preferences"]["rows"]}
    assert sides == {"first wins": 0, "tie": 0, "disagree": 1, "second wins": 0, "first less second": 0}
    orders = values(found, "orders")
    assert orders["disagree: first slot both times"]["value"] == orders["first slot, where they differ"]["value"] == 1
    accuracy = rows_of(found, "accuracy", "statistic")
    assert accuracy["accuracy (all)"]["both together"]["value"] == 0
    assert accuracy["accuracy (half)"]["both together"]["value"] == 0.5
    assert [row["disagree"] for row in found["tables"]["confusion"]["rows"]] == [250, 250, 0]
    checks = {row["check"]: row["value"] for row in found["tables"]["ranking checks"]["rows"]}
    assert checks["effect of being shown first"]["value"] is None
    assert any("half a win for each: 1.0000" in note for note in found["tables"]["ranking"]["notes"])
    assert "Davidson tie parameter: of ties and of orders that disagree" in found["tables"]["ranking checks"]["notes"]
    assert any("which may be more than n" in note for note in found["tables"]["head to head"]["notes"])


def test_a_column_of_joint_verdicts_shows_the_disagreements_in_it(tmp_path: Path, run_audit: Run) -> None:
    said = (("a", "a"), ("disagree", "a"), ("disagree", "b"), ("tie", "tie"), ("b", "tie"))
    rows = [{"said": each, "gold": gold, "x": "u", "y": "v"} for each, gold in said]
    command = ("--score", "said", "--pairwise", "--gold", "gold", "--first", "x", "--second", "y")
    found = run_audit(write(tmp_path / "x.csv", rows), *command)
    assert "one order" not in str(found)
    assert "as shown" not in str(found)
    assert rows_of(found, "accuracy", "statistic")["accuracy (all)"]["both together"]["value"] == 2 / 5
    assert rows_of(found, "classes", "verdict")["both together"]["disagree"]["value"] == 2 / 5
    assert rows_of(found, "confusion", "gold")["first"]["disagree"] == 1
    sides = {side: row["share"]["value"] for side, row in rows_of(found, "preferences", "side").items()}
    assert (sides["tie"], sides["disagree"]) == (1 / 5, 2 / 5)
    player = rows_of(found, "players", "player")["u"]
    assert (player["ties"], player["disagree"], player["win rate (half)"]["value"]) == (1, 2, 2.5 / 5)


def test_players_and_strengths_are_of_joint_verdicts(tmp_path: Path, run_audit: Run) -> None:
    # x beats y twice, ties once, and disagrees three times with x first: joint 2 wins, 1 tie, 3 disagreements of 6
    orders = [("a", "a")] * 2 + [("tie", "tie")] + [("a", "b")] * 3
    rows = [{"shown": one, "swapped": two} for one, two in orders] + [{"shown": "a", "swapped": ""}]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "shown", "--swapped", "swapped", "--first", "=x", "--second", "=y",
        "--draws", "50",
    )  # fmt: skip
    x = rows_of(found, "players", "player")["x"]
    assert (x["games"], x["wins"], x["ties"], x["disagree"], x["losses"]) == (6, 2, 1, 3, 0)
    assert x["win rate (half)"]["value"] == (2 + 4 / 2) / 6
    assert x["win rate (decided)"]["value"] == 1
    strength = {name: row["strength"]["value"] for name, row in rows_of(found, "ranking", "player").items()}
    assert strength["x"] - strength["y"] == pytest.approx(math.log(4 / 2))  # 4 of 6 games: odds of 2


def test_complete_pairs_give_the_strengths_of_single_orders() -> None:
    """A pair whose orders disagree is half a win each: the same as one game won by each side."""
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 2, 300), rng.integers(2, 4, 300)
    one, two = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    joint = pairs.joint(one, two)
    games = Games.of(first, second, np.where(joint == D, T, joint), players=4)
    twice = Games.of(np.tile(first, 2), np.tile(second, 2), np.concatenate([one, two]), players=4)
    assert np.allclose(bradley_terry(games).strength, bradley_terry(twice).strength)


# players without a game, and priors


def rows_with_idle(idle: bool) -> list[dict[str, Any]]:
    rows = [{"a": "base", "b": f"m{1 + k % 3}", "v": "ABAAB"[k % 5], "set": "kept"} for k in range(60)]
    return rows + [{"a": "base", "b": "m4", "v": "", "set": "kept"}] * 20 * idle


RANKED = ("--score", "v", "--pairwise", "--pair-labels", "A,B,tie", "--first", "a", "--second", "b", "--draws", "100")


def test_a_player_without_a_verdict_has_no_rank_and_moves_nobody(tmp_path: Path, run_audit: Run) -> None:
    found, without = (
        run_audit(write(tmp_path / f"{idle}.csv", rows_with_idle(idle)), *RANKED, "--anchor", "base")
        for idle in (True, False)
    )
    board, alone = rows_of(found, "ranking", "player"), rows_of(without, "ranking", "player")
    for figure in ("beats anchor", "strength", "rank"):
        assert {board["m4"][figure][end] for end in ("value", "low", "high")} == {None}
    assert {name: row for name, row in board.items() if name != "m4"} == alone
    assert "prior" not in board["m4"]
    notes = found["tables"]["ranking"]["notes"]
    assert "no game with a verdict, so no strength and no rank: m4" in notes
    assert found["tables"]["ranking"]["title"] == "Bradley-Terry ranking of 4 players from 60 games, in one order"
    players = rows_of(found, "players", "player")
    assert players["m4"]["games"] == 0
    assert players["m4"]["win rate (half)"]["value"] is None
    assert "no game with a verdict" in refused(run_audit, tmp_path / "True.csv", *RANKED, "--anchor", "m4")


def test_where_decides_who_is_in_the_table(tmp_path: Path, run_audit: Run) -> None:
    rows = [*rows_with_idle(False), *({"a": "base", "b": "gone", "v": "A", "set": "other"} for _ in range(9))]
    found = run_audit(write(tmp_path / "x.csv", rows), *RANKED, "--where", "set=kept")
    assert (
        set(rows_of(found, "ranking", "player"))
        == set(rows_of(found, "players", "player"))
        == {"base", "m1", "m2", "m3"}
    )


def test_verdicts_of_weight_0_are_no_games(tmp_path: Path, run_audit: Run) -> None:
    plain = [{**row, "v": {"A": "A>B", "B": "B>A"}.get(row["v"], row["v"])} for row in rows_with_idle(False)]
    strong = [{"a": "base", "b": name, "v": "A>>B", "set": "kept"} for name in ("m1", "only-strong") for _ in range(4)]
    flags = ["--score", "v", "--pairwise", "--first", "a", "--second", "b", "--strong", "0"]
    found = run_audit(write(tmp_path / "x.csv", [*plain, *strong]), *flags)
    without = run_audit(write(tmp_path / "y.csv", plain), *flags)
    board, alone = rows_of(found, "ranking", "player"), rows_of(without, "ranking", "player")
    assert {name: row for name, row in board.items() if name != "only-strong"} == alone
    assert (board["only-strong"]["strength"]["value"], board["only-strong"]["rank"]["value"]) == (None, None)
    assert found["tables"]["ranking"]["title"] == without["tables"]["ranking"]["title"]


def test_a_weight_of_strong_verdicts_without_any_is_told_to_change_nothing(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"a": "one", "b": "two", "v": said} for said in ("A>B", "B>A", "A>B", "A=B")]
    flags = ["--score", "v", "--pairwise", "--first", "a", "--second", "b", "--strong", "3"]
    found = run_audit(write(tmp_path / "x.csv", rows), *flags)
    with_one = run_audit(write(tmp_path / "y.csv", [*rows, {"a": "one", "b": "two", "v": "A>>B"}]), *flags)
    told = "--strong 3 changes nothing: no verdict is strong (spelt A>>B or B>>A)"
    assert told in found["tables"]["ranking"]["notes"]
    assert "a strong verdict counts 3 times" in with_one["tables"]["ranking"]["notes"]


def test_a_prior_touches_only_those_whom_separation_needs(tmp_path: Path, run_audit: Run) -> None:
    plain = rows_with_idle(False)
    rows = [*plain, *({"a": "base", "b": "never", "v": "A", "set": "kept"} for _ in range(5))]
    found = run_audit(write(tmp_path / "x.csv", rows), *RANKED)
    without = run_audit(write(tmp_path / "y.csv", plain), *RANKED)
    board, alone = rows_of(found, "ranking", "player"), rows_of(without, "ranking", "player")
    for name, row in alone.items():
        assert board[name]["strength"]["value"] == pytest.approx(row["strength"]["value"], abs=1e-9), name
        assert board[name]["prior"] == ""
    assert board["never"]["prior"] == "only by prior"
    assert (board["never"]["strength"]["low"], board["never"]["beats anchor"]["low"]) == (None, None)
    assert board["never"]["strength"]["value"] < min(row["strength"]["value"] for row in alone.values())
    for level, below in (("0.95", "2.5 %"), ("0.9", "5 %")):
        found = run_audit(tmp_path / "x.csv", *RANKED, "--level", level)
        (note,) = (each for each in found["tables"]["ranking"]["notes"] if "0.1 games" in each)
        assert note.endswith(f"has a probability below {below}")


def test_fitting_players_by_hand() -> None:
    # 0 and 1 have a win each; 2 lost once to 0; 3 never played
    found = fit_players(Games.of([0, 1, 0], [1, 0, 2], [0, 0, 0], players=4), prior=0.1)
    assert found.strength[:2].tolist() == [0, 0]
    assert math.isnan(found.strength[3])
    assert found.touched is not None
    assert found.touched.tolist() == [False, False, True, False]
    # 2: one loss to strength 0 and .1 games at strength 0, half won: .05 of 1.1 games won, odds .05/1.05
    assert found.strength[2] == pytest.approx(math.log(0.05 / 1.05))
    nobody = fit_players(Games.of([], [], [], players=2))
    assert np.isnan(nobody.strength).all()
    # nobody in a group: everyone is touched, as 5 wins of 5 and .1 games against the average
    both = fit_players(Games.of([0] * 5, [1] * 5, [0] * 5, players=2))
    assert both.touched is not None
    assert both.touched.all()
    assert both.strength[0] == pytest.approx(-both.strength[1])


def test_a_player_that_a_draw_leaves_without_a_loss_is_told() -> None:
    first, second = np.zeros(21, int), np.array([1] * 20 + [2])
    outcome = np.array([0, 1] * 10 + [2])
    outcome[-1] = 1
    first, second, outcome = np.append(first, 0), np.append(second, 2), np.append(outcome, 0)
    bouts = Bouts([*"abc"], first, second, outcome, np.ones(22), np.zeros((22, 0)))
    found = rank_players(bouts, Resampling(300, seed=2), anchor="a")
    assert found.prior == 0
    assert found.prior_told(1) == ""
    assert found.prior_told(2).startswith("in ")
    assert math.isfinite(found.strength(1).low)


def test_fillings_try_every_choice_of_what_is_missing() -> None:
    known = np.array([True, False])
    given = Paired(
        np.array([A, N]), np.array([A, B]), known, np.array([True, True]), N, known, np.array([A, B]),
        np.zeros((0, 2)), None, None, None, None, 0.95, Resampling(),
    )  # fmt: skip
    assert {tuple(each.tolist()) for each in given.fillings()} == {(A, D), (A, B)}


def league(names: str, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    games = [rng.choice([*names], 2, replace=False) for _ in range(80)]
    return [
        {"a": a, "b": b, "v": "A" if rng.random() < (0.7 if a < b else 0.3) else "B"}
        for a, b in np.array(games).tolist()
    ]


def test_players_that_never_met_are_ranked_apart(tmp_path: Path, run_audit: Run) -> None:
    """Each group as if it stood alone: the smaller one was fitted by the prior, and ranked among the others."""
    one, two = league("abcd", 1), league("xyz", 2)
    found = run_audit(write(tmp_path / "x.csv", one + two), *RANKED)
    board = rows_of(found, "ranking", "player")
    assert "7 players in 2 groups that never met" in found["tables"]["ranking"]["title"]
    for group, rows in enumerate((one, two), start=1):
        alone = rows_of(run_audit(write(tmp_path / "y.csv", rows), *RANKED), "ranking", "player")
        assert "group" not in next(iter(alone.values()))
        for name, row in alone.items():
            assert board[name]["group"] == group
            assert board[name]["strength"]["value"] == pytest.approx(row["strength"]["value"], abs=1e-9)
            assert board[name]["rank"]["value"] == row["rank"]["value"]
            assert board[name]["strength"]["n"] == 80
            assert board[name].get("prior") != "only by prior"
    anchored = run_audit(tmp_path / "x.csv", *RANKED, "--anchor", "a")
    board = rows_of(anchored, "ranking", "player")
    assert [board[name]["strength"]["value"] is None for name in "abcdxyz"] == [False] * 4 + [True] * 3
    assert any("no games lead to the anchor" in note for note in anchored["tables"]["ranking"]["notes"])


def test_groups_that_never_met_share_the_effect_of_a_covariate() -> None:
    # first wins 3 of 4 games between equals in either group: log 3 nats for being shown first
    first, second = np.array([0, 1] * 4 + [2, 3] * 4), np.array([1, 0] * 4 + [3, 2] * 4)
    outcome = np.array([0, 0, 0, 0, 0, 0, 1, 1] * 2)
    fit = fit_players(Games.of(first, second, outcome, players=4, covariates=np.ones((16, 1))))
    assert fit.effects[0] == pytest.approx(math.log(3))
    assert fit.strength == pytest.approx(np.zeros(4), abs=1e-9)
    assert fit.touched is None
