"""Preferences from two orders, and from two scores under each rule for equal ones: every combination."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.core.verdict import Preference, Question, Status, Verdict
from dikast.engines.base import Request, Sampling
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, compare_file_by_scores
from dikast.judging.label_scores import bounded_told
from dikast.judging.pair_orders import EqualRule, from_orders, from_scores
from dikast.judging.run_plan import Source
from dikast.judging.summary import preference_summary
from runs import lines, pairs, write_jsonl
from scripted import Scripted

FIVE = Scale.parse("1-5")
OUTCOMES = ("a", "b", "tie", None)
PAIR = {"id": "p", "instruction": "?", "responses": ["One.", "Two."]}
RUBRIC = {"name": "good", "criterion": "Is it good?", "scale": "1-5"}


def order(label: str | None, responses: tuple[int, int], status: Status = Status.UNPARSED) -> Verdict:
    question = Question("p", "good", responses)
    if label is None:
        return Verdict("k", question, status, reason="nothing there")
    return Verdict("k", question, Status.OK, label)


@pytest.mark.parametrize(("ab", "ba"), list(product(OUTCOMES, OUTCOMES)))
def test_both_orders(ab: str | None, ba: str | None) -> None:
    found = from_orders([order(ab, (0, 1)), order(ba, (1, 0))])
    assert from_orders([order(ba, (1, 0)), order(ab, (0, 1))]) == found  # whichever came first
    assert found.pair == (0, 1)
    assert [each.question.responses for each in found.orders] == [(0, 1), (1, 0)]
    if ab is None or ba is None:
        assert (found.choice, found.status, found.consistent) == (None, Status.UNPARSED, None)
        assert found.reason == ("a first" if ab is None else "b first") + ": nothing there"
    elif ab == ba:
        assert (found.choice, found.status, found.consistent, found.reason) == (ab, Status.OK, True, "")
    else:
        assert (found.choice, found.status, found.consistent) == ("tie", Status.OK, False)
        assert found.reason == f"the orders disagree: {ab} with a first, {ba} with b first"
    assert found.logit_a is None
    assert found.position_bias is None


@pytest.mark.parametrize("label", OUTCOMES)
def test_one_order(label: str | None) -> None:
    found = from_orders([order(label, (1, 0))])
    assert (found.choice, found.consistent, found.pair) == (label, None, (0, 1))
    assert found.status is (Status.OK if label else Status.UNPARSED)


def test_pairs_of_later_responses() -> None:
    found = from_orders([order("b", (2, 5)), order("b", (5, 2))])
    assert (found.pair, found.choice) == ((2, 5), "b")


def score(value: int | None, response: int, expected: float | None = None, sample: int = 0) -> Verdict:
    question = Question("p", "good", (response,), sample)
    if value is None:
        return Verdict("k", question, Status.TRUNCATED, reason="cut")
    return Verdict("k", question, Status.OK, str(value), float(value), expected=expected)


@pytest.mark.parametrize("rule", ["tie", "expected", "resample"])
def test_unequal_scores_need_no_rule(rule: EqualRule) -> None:
    higher = from_scores([score(4, 0, 3.6)], [score(3, 1, 3.9)], FIVE, equal=rule)
    assert (higher.choice, higher.reason) == ("a", "")
    worse = Scale(FIVE.labels, FIVE.values, lower_is_better=True)
    assert from_scores([score(4, 0)], [score(3, 1)], worse, equal=rule).choice == "b"
    for a, b in ((None, 3), (4, None), (None, None)):
        failed = from_scores([score(a, 0)], [score(b, 1)], FIVE, equal=rule)
        assert (failed.choice, failed.status) == (None, Status.TRUNCATED)
        assert failed.reason == f"response {0 if a is None else 1}: cut"


def test_equal_scores_are_a_tie() -> None:
    found = from_scores([score(4, 0, 4.4)], [score(4, 1, 3.6)], FIVE, equal="tie")
    assert (found.choice, found.status, found.reason) == ("tie", Status.OK, "equal scores 4")


@pytest.mark.parametrize(
    ("a", "b", "choice"), [(4.4, 3.6, "a"), (3.6, 4.4, "b"), (4.0, 4.0, "tie"), (None, 3.6, "tie"), (None, None, "tie")]
)
def test_equal_scores_by_expected(a: float | None, b: float | None, choice: str) -> None:
    assert from_scores([score(4, 0, a)], [score(4, 1, b)], FIVE, equal="expected").choice == choice
    worse = Scale(FIVE.labels, FIVE.values, lower_is_better=True)
    turned = from_scores([score(4, 0, a)], [score(4, 1, b)], worse, equal="expected").choice
    assert turned == {"a": "b", "b": "a", "tie": "tie"}[choice]


def test_equal_scores_are_drawn_again() -> None:
    def drawn(*scores: tuple[int | None, int | None]) -> Preference:
        a = [score(one, 0, sample=i) for i, (one, _) in enumerate(scores)]
        b = [score(two, 1, sample=i) for i, (_, two) in enumerate(scores)]
        return from_scores(a, b, FIVE, equal="resample")

    assert drawn((3, 3), (2, 5)).choice == "b"
    assert drawn((3, 3), (2, 2), (4, 1)).choice == "a"
    still = drawn((3, 3), (2, 2), (1, 1))
    assert (still.choice, still.reason, len(still.orders)) == ("tie", "equal scores 1", 6)
    assert drawn((4, 3), (1, 5)).choice == "a"  # decided at once; what was drawn later does not count
    assert drawn((3, 3), (None, 4)).status is Status.TRUNCATED


def by_sample(scores: dict[int, list[str]]) -> Scripted:
    """Says the n-th score of a response for its n-th sample."""

    def say(request: Request) -> str:
        return f"Verdict: {scores[request.about['responses'][0]][request.about['sample']]}"

    return Scripted(say)


def test_the_judge_draws_again_only_as_long_as_scores_are_equal() -> None:
    warm = Sampling(temperature=1.0)
    engine = by_sample({0: ["3", "4", "1"], 1: ["3", "2", "5"]})
    found = Judge(engine, RUBRIC, sampling=warm).compare_by_scores(PAIR, equal="resample")
    assert (found.choice, len(engine.requests)) == ("a", 4)
    engine = by_sample({0: ["3", "3", "3"], 1: ["3", "3", "3"]})
    assert Judge(engine, RUBRIC, sampling=warm).compare_by_scores(PAIR, equal="resample").choice == "tie"
    assert len(engine.requests) == 6
    with pytest.raises(UserError, match="needs a temperature above 0"):
        Judge(engine, RUBRIC).compare_by_scores(PAIR, equal="resample")


def test_a_run_draws_again_only_what_is_equal(tmp_path: Path) -> None:
    items, run = tmp_path / "items.jsonl", tmp_path / "run"
    write_jsonl(items, [{**PAIR, "id": name} for name in ("early", "late", "never", "failed")])
    said = {
        "early": {0: "4", 1: "2"},
        "late": {0: "335", 1: "331"},
        "never": {0: "222", 1: "222"},
        "failed": {0: "x", 1: "2"},
    }

    def say(request: Request) -> str:
        about = request.about
        return f"Verdict: {said[about['item']][about['responses'][0]][about['sample']]}"

    def compare() -> dict[str, Any]:
        judge = Judge(Scripted(say), RUBRIC, sampling=Sampling(temperature=1.0))
        return compare_file_by_scores(judge, Source(str(items)), run, equal="resample")

    first = compare()
    # 8 first gradings; `late` and `never` are drawn again twice; the unparsed reply is not another question
    assert (first["asked"], first["verdicts"]) == (16, 16)
    found = {each["item"]: (each["choice"], each["status"]) for each in lines(run / "preferences.jsonl")}
    assert found == {
        "early": ("a", "ok"),
        "late": ("a", "ok"),
        "never": ("tie", "ok"),
        "failed": (None, "unparsed"),
    }
    assert first["preferences"]["choices"] == {"a": 2, "b": 0, "tie": 1, "disagree": 0}
    assert first["preferences"]["failed"] == {"unparsed": 1}
    before = (run / "preferences.jsonl").read_bytes()
    again = compare()
    assert (again["asked"], again["verdicts"]) == (0, 16)
    assert (run / "preferences.jsonl").read_bytes() == before


def test_a_position_bias_that_is_cut_off_says_so() -> None:
    def pair(*of_second_slot: float) -> Preference:
        orders = []
        for slots, label, p in zip(((0, 1), (1, 0)), "ab", of_second_slot, strict=True):  # "ab": the first slot
            read = {label: 1 - p, "ba"[slots[0]]: p, "tie": 0.0}
            orders.append(Verdict("k", Question("p", "good", slots), Status.OK, label, distribution=read))
        return from_orders(orders)

    known, cut = preference_summary([pair(0.2, 0.1)]), preference_summary([pair(0.0, 0.1), pair(0.2, 0.1)])
    assert known["position_bias_nats"]["value"] == pytest.approx((math.log(4) + math.log(9)) / 2)
    assert "position_bias_bounded" not in known
    assert bounded_told(known) == ""
    assert cut["position_bias_bounded"] == 1  # a tie of probability 0 bounds nothing
    assert bounded_told(cut) == "1 of 2 pairs cut off at 27.6 nats: a probability of 0 counts as 1e-12"


def test_the_summary_of_pairs_by_hand(tmp_path: Path) -> None:
    """a twice, b once, a tie, a disagreement for the first slot, one for the second, one failure."""
    said = {
        "p0": "AB", "p1": "AB", "p2": "BA", "p3": ("tie", "tie"), "p4": "AA", "p5": "BB", "p6": ("A", "?"),
    }  # fmt: skip

    def say(request: Request) -> str:
        return f"Verdict: {said[request.about['item']][request.about['responses'][0]]}"

    items = write_jsonl(tmp_path / "items.jsonl", pairs(7))
    summary = compare_file(Judge(Scripted(say), RUBRIC), Source(str(items)), tmp_path / "run")["preferences"]
    assert summary["pairs"] == 7
    assert summary["choices"] == {"a": 2, "b": 1, "tie": 1, "disagree": 2}
    assert summary["failed"] == {"unparsed": 1}
    assert (summary["order_consistency"]["value"], summary["order_consistency"]["n"]) == (pytest.approx(4 / 6), 6)
    assert summary["flips_to_first_slot"]["value"] == pytest.approx(1 / 6)
    assert summary["flips_to_second_slot"]["value"] == pytest.approx(1 / 6)
    assert summary["position_bias_nats"] == {"value": None, "low": None, "high": None, "n": 0, "level": 0.95}
    records = lines(tmp_path / "run" / "preferences.jsonl")
    disagreeing = next(each for each in records if each["item"] == "p4")
    assert (disagreeing["choice"], disagreeing["consistent"]) == ("tie", False)
    keys = {each["key"] for each in lines(tmp_path / "run" / "verdicts.jsonl")}
    assert all(set(each["orders"]) <= keys and len(each["orders"]) == 2 for each in records)


def test_three_responses_make_three_pairs() -> None:
    item = {"id": "t", "instruction": "?", "responses": ["1", "2", "3"], "gold": [1, 3, 5]}
    judge = Judge("mock:oracle,r=1,accuracy=1", "helpfulness")
    found = {each.pair: each.choice for each in judge.compare_many([item])}
    assert found == {(0, 1): "b", (0, 2): "b", (1, 2): "b"}
    with pytest.raises(UserError, match="has 3 responses where compare takes 2"):
        judge.compare(item)
    with pytest.raises(UserError, match="one criterion and two responses"):
        judge.compare_by_scores(item)
