"""What gold says of a question, and whether it lies on a scale."""

from typing import Any

import pytest

from dikast.core.gold import GoldCheck, gold_for, gold_number, gold_of_pair, gold_of_response, goodness_of, likely_scale
from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale

FIVE, PASS, LETTERS = Scale.parse("1-5"), Scale.parse("pass/fail"), Scale.parse("A-E")
HARM = Scale(FIVE.labels, FIVE.values, lower_is_better=True)


def item(gold: Any, n: int = 1) -> Item:
    return Item.of("?", responses=["!"] * n, id="it", gold=gold)


@pytest.mark.parametrize(
    ("value", "scale", "number"),
    [
        (3, FIVE, 3), (2.5, FIVE, 2.5), ("4.0", FIVE, 4), (" 2 ", FIVE, 2), ("pass", PASS, 1), ("Fail", PASS, 0),
        ("A", LETTERS, 5), (9, FIVE, 9), ("good", FIVE, None), (True, PASS, 1), (True, FIVE, None), ([3], FIVE, None),
        ("1e999x", FIVE, None),
    ],
)  # fmt: skip
def test_gold_as_a_number(value: Any, scale: Scale, number: float | None) -> None:
    assert gold_number(value, scale) == number


def test_gold_of_one_response_and_of_two() -> None:
    gold = {"kind": [1, 5], "scores": [2, 2], "claims": []}
    assert (gold_of_response(gold, "kind", 1), gold_of_response(gold, "short", 1)) == (5, 2)
    assert gold_of_response([4], "kind", 3) is None
    assert gold_of_pair(gold, "kind", (1, 0)) == "b"
    assert gold_of_pair(gold, "short", (0, 1)) == "tie"
    assert [gold_of_pair(winner, "kind", (0, 1)) for winner in (0, 1, 2, "tie")] == ["a", "b", None, "tie"]


def test_a_pair_is_decided_by_goodness() -> None:
    # on a scale of harm the 1 is the better one; of letters A is, although "A" < "B" as text
    assert gold_of_pair([1, 5], "kind", (0, 1), HARM) == "a"
    assert gold_of_pair(["A", "B"], "kind", (0, 1), LETTERS) == "a"
    assert gold_of_pair([1, 5], "kind", (0, 1), FIVE) == "b"


def test_gold_on_a_scale_of_its_own_by_hand() -> None:
    # 4 on 1-5 is (4 - 1) / 4 = .75 of the way to the best; on 0-10 that is 7.5, on a 0-10 scale of harm 2.5
    ten, harm = (
        Rubric("r", "?", Scale(Scale.parse("0-10").labels, Scale.parse("0-10").values, low)) for low in (False, True)
    )
    assert goodness_of(item(4), ten, FIVE) == 0.75
    assert gold_for(item(4), ten, (0,), FIVE) == 7.5
    assert goodness_of(item(4), harm, FIVE) == 0.25  # the direction is the rubric's: 4 of harm is bad
    assert gold_for(item(4), harm, (0,), FIVE) == 7.5
    assert gold_for(item([1, 5], 2), ten, (0, 1), FIVE) == [0, 10]
    assert gold_for(item("tie", 2), ten, (0, 1), FIVE) == "tie"
    assert goodness_of(item({"r": [1, None]}, 2), ten, FIVE) == [0, None]


@pytest.mark.parametrize(
    ("gold", "responses", "pairs", "wrong"),
    [
        (3, (0,), False, 0), (2.5, (0,), False, 0), (6, (0,), False, 1), ("Paris", (0,), False, 1),
        (None, (0,), False, 0),
        ({"other": 9}, (0,), False, 0), ({"score": 9}, (0,), False, 1), ({"claims": []}, (0,), False, 0),
        ([1, 9], (0, 1), False, 1), ("tie", (0, 1), False, 0), ("A>>B", (0, 1), False, 0), ("best", (0, 1), False, 1),
        (1, (0, 1), False, 0), (2, (0, 1), False, 1), (9, (0, 1), False, 1), ("a", (0,), False, 1),
        ("a", (0,), True, 0), ({"preference": "a"}, (0, 1), False, 0), (True, (0,), False, 1),
    ],
)  # fmt: skip
def test_what_lies_on_the_scale(gold: Any, responses: tuple[int, ...], pairs: bool, wrong: int) -> None:
    check = GoldCheck(pairs=pairs)
    check.look(item(gold, 2), Rubric("r", "?", FIVE), responses)
    assert check.wrong == wrong
    assert (check.error() is None) == (wrong == 0)


def test_all_that_is_wrong_is_told_in_one_message() -> None:
    check = GoldCheck()
    for k, gold in enumerate((1, 2, 3, 4, 5, "none")):
        check.look(Item.of("?", "!", id=f"i{k}", gold=gold), Rubric("right", "?", PASS), (0,))
    told = str(check.error())
    assert (
        "5 of 6 values are off pass/fail (0 to 1) of the rubric 'right', and gold goes from 1 to 5 and says 'none'"
        in told
    )
    check = GoldCheck()
    check.look(item(7), Rubric("right", "?", PASS), (0,))
    for cure in ("--scale 1-7 puts the rubric on it", "--equate 1-7", "--map gold=COLUMN", "Judge(..., equate=...)"):
        assert cure in str(check.error())
    named = GoldCheck(FIVE)
    named.look(item(7), Rubric("right", "?", PASS), (0,))
    assert "off 1-5 named by --equate" in str(named.error())
    assert "--scale" not in str(named.error())


def test_gold_that_says_there_is_none_is_counted_and_not_wrong() -> None:
    check = GoldCheck()
    for k, gold in enumerate((1, "N/A", " n/a ", "-", 5)):
        check.look(Item.of("?", "!", id=f"i{k}", gold=gold), Rubric("r", "?", FIVE), (0,))
    assert check.error() is None
    assert check.notes() == ("3 of 5 gold values say that there is none (N/A or the like)",)
    own = Scale(("no", "na", "yes"), (0.0, 0.5, 1.0))
    label = GoldCheck()
    label.look(item("na"), Rubric("r", "?", own), (0,))
    assert (label.none, label.error(), label.notes()) == (0, None, ())  # it is a label of this scale
    pairs = GoldCheck(pairs=True)
    pairs.look(item("N/A", 2), Rubric("r", "?", FIVE), (0, 1))
    assert (pairs.none, pairs.error()) == (1, None)


@pytest.mark.parametrize(
    ("numbers", "name"),
    [([0, 1], "0-1"), ([1, 5], "1-5"), ([1, 4], "1-4"), ([2, 9], "1-10"), ([0, 4], "0-5"), ([0, 70], "0-100"),
     ([-1, 5], None), ([], None)],
)  # fmt: skip
def test_the_likely_scale(numbers: list[float], name: str | None) -> None:
    assert likely_scale(numbers) == name


def test_one_value_for_a_pair_is_no_score() -> None:
    """2 lies on 1-5 and says nothing of which response is better; 1 of "1 or 2" would be taken for the second."""
    rubric, check = Rubric("r", "?", FIVE), GoldCheck()
    for gold in (0, 1, "tie", [1, 2], None):
        check.look(item(gold, 2), rubric, (0, 1))
    assert check.error() is None
    check.look(item(2, 2), rubric, (0, 1))
    told = str(check.error())
    assert "1 of 3 values are off 1-5 of the rubric 'r' or stand alone for a pair, and gold goes from 1 to 2" in told
    assert "one value for a pair says which response is better: a, b, tie, 0 (the first) or 1 (the second)" in told
    by_scores = GoldCheck(pairs=True)
    by_scores.look(item(4, 2), rubric, (0,))
    assert by_scores.error() is not None


def test_people_who_differ_are_looked_at_too() -> None:
    """An annotation record on which people differ has no score, but what each of them said."""
    rubric, check, pairs = Rubric("r", "?", FIVE), GoldCheck(), GoldCheck()
    check.look(item({"raters": [2, 4]}), rubric, (0,))
    pairs.look(item({"raters": ["a", "tie"]}, 2), rubric, (0, 1))
    assert (check.error(), pairs.error()) == (None, None)
    check.look(item({"raters": [7, 9]}), rubric, (0,))
    assert "goes from 2 to 9" in str(check.error())
    pairs.look(item({"raters": ["left", "right"]}, 2), rubric, (0, 1))
    assert "'left', 'right'" in str(pairs.error())
