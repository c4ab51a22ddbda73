"""`dikast audit` on pairs and rankings."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit_tables import Run, refused, rows_of, scores, values, write


def test_few_pairs_duplicates_and_missing_gold_are_said(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [
        *scores(5),
        {"id": "i0", "score": 2, "gold": 2},
        {"id": "z", "score": 2, "gold": None},
    ]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    assert any("only 6 pairs" in note for note in found["tables"]["agreement"]["notes"])
    assert any("1 id occurs more than once (the first is 'i0')" in note for note in found["notes"])
    assert "1 row without 'gold'" in found["notes"]
    assert found["tables"]["agreement"]["title"].startswith("Agreement of 6 scores")


def test_pairs_in_both_orders_with_slots(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"shown": "a", "swapped": "a", "gold": "a"}] * 30 + [{"shown": "b", "swapped": "a", "gold": "b"}] * 30
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "shown", "--swapped", "swapped", "--swapped-as", "slots", "--gold", "gold")
    # in slots: the first 30 name the first slot both times, so the other response when swapped
    orders = values(found, "orders")
    assert orders["same verdict in both orders"]["value"] == 0.5
    assert orders["first slot, where they differ"]["value"] == 1
    accuracy = rows_of(found, "accuracy", "statistic")["accuracy (all)"]
    assert (accuracy["as shown"]["value"], accuracy["swapped"]["value"]) == (1, 0.5)


@pytest.mark.parametrize(("rule", "value", "n"), [("drop", 1.0, 20), ("tie", 20 / 25, 25), ("wrong", 20 / 25, 25)])
def test_the_unscored_follow_a_named_rule(rule: str, value: float, n: int, tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": "a", "gold": "a"}] * 20 + [{"score": "who knows", "gold": "b"}] * 5
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--pairwise", "--unscored", rule,
        "--allow-unread",
    )  # fmt: skip
    accuracy = rows_of(found, "accuracy", "statistic")["accuracy (all)"]
    assert math.isclose(accuracy["as shown"]["value"], value)
    assert accuracy["as shown"]["n"] == n
    assert (accuracy["worst"], accuracy["best"]) == (20 / 25, 1)
    assert "5 'who knows'" in found["notes"][0]
    told = any(f"--unscored {rule}" in note for note in found["tables"]["accuracy"]["notes"])
    assert told == (rule != "drop")


def test_a_judge_that_always_says_tie_is_seen_through(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [{"score": "tie", "gold": gold} for gold in ("a", "b", "tie") * 10]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--pairwise")
    classes = rows_of(found, "classes", "verdict")["as shown"]
    assert classes["discrimination"]["value"] == 0
    assert classes["ties"]["value"] == 1
    assert math.isclose(classes["gold ties"]["value"], 1 / 3)


def test_pairs_asked_again_and_columns_without_meaning(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": "a", "again": "a", "gold": "b"}] * 15 + [{"score": "b", "again": "a", "gold": "b"}] * 5
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--pairwise", "--retest", "again")
    assert rows_of(found, "beside", "who")["the judge asked again (test-retest)"]["all"]["value"] == 15 / 20
    told = refused(run_audit, file, "--score", "score", "--gold", "gold", "--pairwise", "--system", "again")
    assert told == "--system: does not apply to pairs; leave it out"


def test_feedback_of_two_judges_as_blind_preferences(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"better": word} for word in ["a"] * 26 + ["tie"] * 4 + ["b"] * 15]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "better", "--pairwise")
    shares = {row["side"]: row["share"] for row in found["tables"]["preferences"]["rows"]}
    assert math.isclose(shares["first wins"]["value"], 26 / 45)
    assert shares["first wins"]["low"] < 26 / 45 < shares["first wins"]["high"]
    assert math.isclose(shares["first less second"]["value"], 11 / 45)


def test_ranking_with_covariates_from_the_command_line(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(3)
    strength = {"x": 1.0, "y": 0.0, "z": -1.0}
    rows = []
    for _ in range(900):
        a, b = rng.permutation(list(strength))[:2]
        longer = float(rng.normal())  # second less first; length wins games too
        wins = rng.random() < 1 / (1 + math.exp(strength[b] - strength[a] + longer))
        rows.append({"a": a, "b": b, "more": longer, "won": "a" if wins else "b"})
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "won", "--first", "a", "--second", "b", "--anchor", "y",
        "--covariate", "more", "--draws", "100",
    )  # fmt: skip
    board = rows_of(found, "ranking", "player")
    assert list(board) == ["x", "y", "z"]
    assert board["y"]["beats anchor"]["value"] == 0.5
    assert board["x"]["rank"]["value"] == 1
    checks = {row["check"]: row["value"] for row in found["tables"]["ranking checks"]["rows"]}
    effect = checks["effect of more"]
    assert math.isclose(effect["value"], 1, abs_tol=0.25)
    assert effect["low"] < effect["value"] < effect["high"]
    assert math.isclose(board["x"]["more controlled"]["value"], 1 / (1 + math.exp(-1)), abs_tol=0.08)
    assert "no such player" in refused(
        run_audit, tmp_path / "x.csv", "--score", "won", "--first", "a", "--second", "b", "--anchor", "q"
    )


def test_length_controlled_win_rates(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(4)
    rows = []
    for _ in range(1500):  # two equal players; the new one writes longer and the judge likes length
        more = float(rng.normal(1, 1))
        rows.append({"more": more, "won": "b" if rng.random() < 1 / (1 + math.exp(-1.5 * math.tanh(more))) else "a"})
    arguments = ("--score", "won", "--first", "=old", "--second", "=new", "--length", "more", "--draws", "100")
    found = run_audit(write(tmp_path / "x.csv", rows), *arguments)
    new = rows_of(found, "ranking", "player")["new"]
    assert new["beats anchor"]["low"] > 0.6
    assert new["length controlled"]["low"] < 0.5 < new["length controlled"]["high"]


def test_both_orders_take_the_first_slot_out(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(400):
        first_slot = rng.random(2) < 0.7  # the slot shown first wins, whoever stands there
        rows.append({"shown": "a" if first_slot[0] else "b", "swapped": "b" if first_slot[1] else "a"})
    arguments = ("--score", "shown", "--swapped", "swapped", "--first", "=x", "--second", "=y", "--draws", "50")
    found = run_audit(write(tmp_path / "x.csv", rows), *arguments)
    checks = {row["check"]: row["value"] for row in found["tables"]["ranking checks"]["rows"]}
    assert math.isclose(checks["effect of being shown first"]["value"], math.log(0.7 / 0.3), abs_tol=0.2)
    assert values(found, "orders")["first slot, where they differ"]["value"] > 0.8


def test_whole_rankings(tmp_path: Path, run_audit: Run) -> None:
    rows: list[dict[str, Any]] = [{"score": "A>B>C", "gold": ["A", "C", "B"]}] * 11 + [
        {"score": "cannot say", "gold": ["A", "B"]}
    ]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--ranked", "--score", "score", "--gold", "gold")
    assert math.isclose(values(found, "rankings")["kendall_tau_b, mean over items"]["value"], 1 / 3)
    counts = {row["status"]: row["count"] for row in found["tables"]["failures"]["rows"]}
    assert counts == {"failed": 1, "ok": 11, "unparsed": 1}


def test_a_pair_whose_status_is_a_failure_has_no_verdict(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": "a", "gold": "a", "status": "ok"}] * 9 + [{"score": "b", "gold": "a", "status": "engine_error"}]
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--pairwise", "--status", "status")
    accuracy = found["tables"]["accuracy"]["rows"][0]
    assert (accuracy["as shown"]["value"], accuracy["as shown"]["n"]) == (1, 9)
    assert (accuracy["worst"], accuracy["best"]) == (0.9, 1)
    assert {"status": "engine_error", "count": 1}.items() <= found["tables"]["failures"]["rows"][2].items()


def test_shares_in_clusters_stay_shares(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": "b" if k == 0 else "a", "gold": "a", "scene": k // 2, "all": "a"} for k in range(16)]
    common = ("--gold", "gold", "--pairwise", "--cluster", "scene")
    file = write(tmp_path / "x.csv", rows)
    wrong_once, always_right = (
        rows_of(run_audit(file, "--score", score, *common), "accuracy", "statistic")["accuracy (all)"]["as shown"]
        for score in ("score", "all")
    )
    assert 0 < wrong_once["low"] < 15 / 16 < wrong_once["high"] < 1
    assert math.isclose(always_right["low"], 8 / (8 + 1.959964**2), rel_tol=1e-6)  # Wilson of 8 clusters


def test_rankings_with_a_failed_status_do_not_count(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"said": "x>y", "gold": "x>y", "status": "ok"}] * 3 + [{"said": "y>x", "gold": "x>y", "status": "refused"}]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--ranked", "--score", "said", "--gold", "gold", "--status", "status"
    )
    assert rows_of(found, "failures", "status")["refused"]["count"] == 1
    tau = found["tables"]["rankings"]["rows"][0]["value"]
    assert (tau["value"], tau["n"], tau["low"]) == (1, 3, None)


def test_each_baseline_says_which_pairs_it_is_of(tmp_path: Path, run_audit: Run) -> None:
    # gold decided: A A B B (said A B B -), gold a tie: said tie, tie, A; one pair has no gold
    said, gold = ["A", "B", "B", "-", "tie", "tie", "A", "A"], ["A", "A", "B", "B", "tie", "tie", "tie", "-"]
    rows = [
        {"said": a.replace("-", ""), "gold": b.replace("-", ""), "id": k}
        for k, (a, b) in enumerate(zip(said, gold, strict=True))
    ]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "said", "--gold", "gold", "--pairwise")
    beside = rows_of(found, "beside", "who")
    assert {(row["n"], row["n (no_gold_ties)"]) for row in beside.values()} == {(6, 3)}
    chance = beside["a judge that draws its labels at random"]
    # of the 6: A 2/6 * 2/6, B 2/6 * 1/6, tie 2/6 * 3/6; of the 3 with decided gold: A 1/3 * 2/3, B 2/3 * 1/3
    assert chance["all"]["value"] == pytest.approx(2 / 6)
    assert chance["no_gold_ties"]["value"] == pytest.approx(4 / 9)
    assert (chance["all"]["n"], chance["no_gold_ties"]["n"]) == (6, 3)
    assert found["tables"]["accuracy"]["title"].startswith("Accuracy against gold on 6 of 7 pairs with gold")
    counts = {row["statistic"]: row["n"] for row in found["tables"]["accuracy"]["rows"]}
    assert counts == {
        "accuracy (all)": 6, "accuracy (no_gold_ties)": 3, "accuracy (half)": 3, "accuracy (decided)": 3
    }  # fmt: skip


def test_what_missing_verdicts_could_make_of_the_decided_holds_the_value(tmp_path: Path, run_audit: Any) -> None:
    # both orders: a a right, a a right, b b wrong, b b right; of the rest one order is known, and gold is a: with
    # `a` the pair may be right or undecided, with `b` wrong or undecided
    said = [("a", "a", "a"), ("a", "a", "a"), ("b", "b", "a"), ("b", "b", "b")]
    for missing, worst, best in (("aaab", 3 / 5, 6 / 7), ("bbba", 3 / 7, 4 / 5), ("", 3 / 4, 3 / 4)):
        rows = [
            {"id": k, "said": one, "turned": two, "gold": gold}
            for k, (one, two, gold) in enumerate([*said, *((each, "", "a") for each in missing)])
        ]
        found = run_audit(
            write(tmp_path / "x.csv", rows), "--score", "said", "--swapped", "turned", "--gold", "gold", "--pairwise",
            "--allow-unread",
        )  # fmt: skip
        decided = rows_of(found, "accuracy", "statistic")["accuracy (decided)"]
        assert decided["both together"]["value"] == 3 / 4
        assert (decided["worst"], decided["best"]) == pytest.approx((worst, best) if missing else (None, None))


def test_at_random_each_order_is_drawn_by_itself(tmp_path: Path, run_audit: Any) -> None:
    # as shown a 3/4, turned a 1/4; gold a 1/2: a in both orders 3/16, b in both 3/16, and the right one half of it
    rows = [
        {"id": k, "said": one, "turned": two, "gold": gold}
        for k, (one, two, gold) in enumerate([("a", "a", "a"), ("a", "b", "a"), ("a", "b", "b"), ("b", "b", "b")])
    ]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "said", "--swapped", "turned", "--gold", "gold", "--pairwise"
    )
    chance = rows_of(found, "beside", "who")["a judge that draws its labels at random"]
    assert chance["all"]["value"] == pytest.approx(3 / 16)


def games(winners: str) -> list[dict[str, Any]]:
    """Games of P against Q, by their winner: `-` is a game without a verdict."""
    named = {"P": "a", "Q": "b", "=": "tie", "-": ""}
    return [{"one": "P", "two": "Q", "score": named[each]} for each in winners]


PLAYED = ("--score", "score", "--pairwise", "--first", "one", "--second", "two")


def test_a_pair_without_a_verdict_is_a_loss_of_nobody(tmp_path: Path, run_audit: Run) -> None:
    # 6 wins of P, 2 ties, 2 wins of Q, 10 without a verdict: P wins (6 + 1) / 10
    file = write(tmp_path / "x.csv", games("PPPPPP==QQ----------"))
    dropped, wrong = (run_audit(file, *PLAYED, "--unscored", rule)["tables"] for rule in ("drop", "wrong"))
    assert dropped == wrong  # no gold: there is nothing to be wrong about
    for row in wrong["players"]["rows"]:
        assert row["wins"] + row["ties"] + row["losses"] == row["games"] == 10
    p, q = wrong["players"]["rows"]
    assert (p["win rate (half)"]["value"], q["win rate (half)"]["value"]) == (0.7, 0.3)


def test_ties_that_are_pairs_without_a_verdict_are_counted(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", [*games("PPPPPP==QQ----------"), {"one": "P", "two": "P", "score": ""}])
    found = run_audit(file, *PLAYED, "--unscored", "tie")["tables"]
    p = found["players"]["rows"][0]
    assert (p["games"], p["wins"], p["ties"], p["losses"]) == (20, 6, 12, 2)
    told = "pairs without a verdict, counted as ties (--unscored tie): "
    assert [found[name]["notes"].count(f"{told}10") for name in ("players", "head to head")] == [1, 1]
    assert f"{told}11" in found["preferences"]["notes"]  # of all pairs, that of P with itself among them
    assert "from 10 games" in found["ranking"]["title"]
    assert any("no games here" in note for note in found["ranking"]["notes"])


@pytest.mark.parametrize("rule", ["tie", "wrong"])
def test_every_figure_against_gold_says_how_pairs_without_a_verdict_count(
    rule: str, tmp_path: Path, run_audit: Run
) -> None:
    rows = [{"score": "a", "rival": "b", "gold": "a", "topic": "x"}] * 20
    rows += [{"score": "", "rival": "b", "gold": "b", "topic": "y"}] * 5 + [
        {"score": "a", "rival": "", "gold": "b", "topic": "y"}
    ]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--pairwise", "--unscored", rule,
        "--rival", "rival", "--by", "topic",
    )["tables"]  # fmt: skip
    told = {"tie": "ties (--unscored tie)", "wrong": "wrong (--unscored wrong)"}[rule]
    for name in ("accuracy", "classes", "confusion", "beside", "by topic", "over topic"):
        assert f"pairs without a verdict, counted as {told}: 5" in found[name]["notes"], name
    one, two = (f"{who}: pairs without a verdict, counted as {told}: {n}" for who, n in (("score", 5), ("rival", 1)))
    assert {one, two} <= set(found["rival"]["notes"])


def test_an_order_without_a_verdict_is_no_agreement_of_the_orders(tmp_path: Path, run_audit: Run) -> None:
    # 6 pairs: 2 agree, 1 disagrees, 3 without a verdict in one order or both: 2 of 3 are the same
    said = (("a", "a"), ("b", "b"), ("a", "b"), ("", "a"), ("tie", ""), ("", ""))
    rows = [{"shown": one, "swapped": two} for one, two in said]
    file, columns = write(tmp_path / "x.csv", rows), ("--score", "shown", "--swapped", "swapped", "--pairwise")
    for rule in ("drop", "tie", "wrong"):
        same = values(run_audit(file, *columns, "--unscored", rule), "orders")["same verdict in both orders"]
        assert (same["value"], same["n"]) == (2 / 3, 3), rule


def test_right_in_both_is_of_rules_by_which_every_verdict_is_right_or_wrong(tmp_path: Path, run_audit: Run) -> None:
    # 2 right in both orders, 1 whose orders disagree, 1 wrong in both: 2 of 4, while `decided` leaves the third out
    said = (("a", "a"), ("a", "a"), ("a", "b"), ("b", "b"))
    rows = [{"shown": one, "swapped": two, "gold": "a"} for one, two in said]
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "shown", "--swapped", "swapped", "--gold", "gold")
    accuracy = rows_of(found, "accuracy", "statistic")
    both = {rule: accuracy[f"accuracy ({rule})"]["right in both"] for rule in ("all", "no_gold_ties")}
    assert {rule: (each["value"], each["n"]) for rule, each in both.items()} == dict.fromkeys(both, (0.5, 4))
    assert [accuracy[f"accuracy ({rule})"]["right in both"] for rule in ("half", "decided")] == [None, None]


def test_of_two_games_disagree_is_the_joint_verdict_alone(tmp_path: Path, run_audit: Run) -> None:
    # net: a win and a tie are a win, so 1 of 4 disagrees where the orders of 2 differ
    said = (("a", "a"), ("a", "tie"), ("a", "b"), ("b", "b"))
    file = write(tmp_path / "x.csv", [{"shown": one, "swapped": two} for one, two in said])
    columns = (file, "--score", "shown", "--swapped", "swapped", "--pairwise", "--two-games")
    found = run_audit(*columns, "net")
    assert rows_of(found, "preferences", "side")["disagree"]["share"]["value"] == 1 / 4
    orders = values(found, "orders")
    assert orders["orders differ"]["value"] == 1 / 2
    assert not any(name.startswith("disagree") for name in orders)
    assert values(run_audit(*columns, "both"), "orders")["disagree"]["value"] == 1 / 2


def test_a_weight_of_strong_verdicts_that_disagree_is_told(tmp_path: Path, run_audit: Run) -> None:
    said = [("A>>B", "A>>B")] * 4 + [("A>>B", "B>>A")] * 3 + [("B>A", "B>A")] * 3
    rows = [{"one": "P", "two": "Q", "shown": one, "swapped": two} for one, two in said]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "shown", "--swapped", "swapped", "--first", "one",
        "--second", "two", "--strong", "3", "--draws", "50",
    )  # fmt: skip
    told = (
        "a strong verdict counts 3 times, and half-won games too, where both orders are strong but disagree (3 pairs)"
    )
    assert told in found["tables"]["ranking"]["notes"]


def test_rows_with_fewer_raters_are_counted_beside_gold(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": k % 5 + 1, "g": k % 5 + 1, "h": None if k < 4 else 3} for k in range(20)]
    columns = (write(tmp_path / "x.jsonl", rows), "--score", "score", "--gold", "g", "--gold", "h", "--scale", "1-5")
    assert "gold: the mean of 2 raters, of fewer in 4 of 20 rows" in run_audit(*columns)["tables"]["agreement"]["notes"]
