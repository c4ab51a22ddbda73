from collections.abc import Callable
from typing import Any

import pytest

from dikast.judging.judge import Judge
from dikast.testing import assert_grade, assert_prefers

ASKED: dict[str, Any] = {"instruction": "Is 4 even?", "response": "4 ends in 4.", "rubric": "helpfulness"}
PAIR: dict[str, Any] = {
    "instruction": "Is 4 even?",
    "responses": ["It is.", "It is, and here is a long tale about numbers."],
}


def test_a_grade_in_range_is_returned() -> None:
    verdict = assert_grade(Judge("mock:constant,label=4"), ASKED, at_least=4, at_most=4)
    assert verdict.score == 4


def test_the_message_shows_the_feedback() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_grade(Judge("mock:constant,label=2"), ASKED, at_least=4)
    told = str(failure.value)
    assert "gave 2, at least 4 was wanted" in told
    assert "feedback: The response" in told
    assert "probabilities: 1 " in told


def test_too_high_fails_as_well() -> None:
    with pytest.raises(AssertionError, match="gave 5, at most 3 was wanted"):
        assert_grade(Judge("mock:constant,label=5"), ASKED, at_most=3)


def test_no_verdict_is_not_a_low_score() -> None:
    with pytest.raises(AssertionError, match="no verdict, where at most 5 was wanted"):
        assert_grade(Judge("mock:constant,label=2,refused=1"), ASKED, at_most=5)


def test_a_range_is_needed() -> None:
    with pytest.raises(TypeError, match="at_least"):
        assert_grade(Judge("mock:constant"), ASKED)


@pytest.mark.parametrize("asserted", [assert_grade, assert_prefers])
def test_a_spec_is_no_judge(asserted: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match=r"write Judge\('mock:constant', \"helpfulness\"\)"):
        asserted("mock:constant", ASKED, **({"at_least": 3} if asserted is assert_grade else {}))


def test_prefers() -> None:
    judge = Judge("mock:first-slot,nats=0,r=0,per_doubling=9,length_at=1", "helpfulness")
    assert assert_prefers(judge, PAIR, winner="b").choice == "b"
    with pytest.raises(AssertionError) as failure:
        assert_prefers(judge, PAIR)
    told = str(failure.value)
    assert "prefers b, a was wanted" in told
    assert "with a shown first" in told
    assert "with b shown first" in told
    with pytest.raises(TypeError, match="winner"):
        assert_prefers(judge, PAIR, winner="first")
