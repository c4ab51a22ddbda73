import math

import numpy as np
import pytest

from dikast.audit.plan import PairLabels
from dikast.audit.tables import choices as pairs
from dikast.audit.tables.columns import Words
from dikast.core.errors import UserError

A, B, T, N, D = pairs.FIRST, pairs.SECOND, pairs.TIE, pairs.NONE, pairs.DISAGREE


def words(*texts: str) -> Words:
    names = list(dict.fromkeys(text for text in texts if text))
    return Words(np.array([names.index(text) if text else -1 for text in texts]), names)


@pytest.mark.parametrize(
    ("rule", "worth", "n"), [("all", 3, 7), ("no_gold_ties", 2, 5), ("half", 2.5, 5), ("decided", 2, 4)]
)
def test_tie_rules_by_hand(rule: pairs.TieRule, worth: float, n: int) -> None:
    # right, right, wrong, tie against a, wrong; gold ties: one met, one missed; then no verdict, no gold
    choice = [A, B, A, T, B, T, A, N, A]
    gold = [A, B, B, A, A, T, T, A, N]
    found = pairs.accuracy(choice, gold, rule)
    assert int(found.counts.sum()) == n
    assert math.isclose(found.value, worth / n)


def test_nothing_to_judge_is_undefined() -> None:
    assert math.isnan(pairs.accuracy([N, A], [A, N], "all").value)
    with pytest.raises(UserError, match="no tie rule"):
        pairs.accuracy([A], [A], "sometimes")  # type: ignore[arg-type]


def test_orders_by_hand() -> None:
    shown, swapped = np.array([A, A, B, T, N]), np.array([A, B, A, T, A])
    assert pairs.joint(shown, swapped).tolist() == [A, D, D, T, N]
    assert math.isclose(pairs.order_consistency(shown, swapped).value, 2 / 4)
    # two pairs change hands: once the first slot won both times, once the second
    assert math.isclose(pairs.slot_preference(shown, swapped).value, 1 / 2)
    assert pairs.slot_preference([A, A], [B, B]).value == 1  # the first shown always wins
    assert pairs.swap([A, B, T, N]).tolist() == [B, A, T, N]


def test_choices_from_words() -> None:
    arena = pairs.read_choices(words("A>>B", "[[B>A]]", "A=B", "B >> A", "A<B", "", "garbage"), None, "score")
    assert arena.codes.tolist() == [A, B, T, B, B, N, N]
    assert arena.strong.tolist() == [True, False, False, True, False, False, False]
    assert arena.other == {"garbage": 1}
    spelt = pairs.read_choices(words("1", "2", "0", "Tie", "a"), PairLabels("1", "2", "0"), "score")
    assert spelt.codes.tolist() == [A, B, T, T, N]
    with pytest.raises(UserError, match="--pair-labels"):
        pairs.read_choices(words("1", "2"), None, "score")
    with pytest.raises(UserError, match="first, second and tie"):
        PairLabels.parse("1")
