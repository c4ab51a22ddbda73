"""Notebooks and prompts show one line, or a small table in which nothing of a text can run."""

import re

import pytest

from dikast.core.html.notebook import bars, preference_html, verdict_html
from dikast.core.verdict import Preference, Question, Status, Verdict
from dikast.testing.hostile import MARKUP

KEY = "0" * 32


def verdict(label: str | None = "4", *, responses: tuple[int, ...] = (0,), **fields: object) -> Verdict:
    question = Question("q1", "helpfulness", responses)
    return Verdict(KEY, question, Status.OK if label else Status.UNPARSED, label, **fields)  # type: ignore[arg-type]


def test_a_verdict_is_one_line() -> None:
    assert repr(verdict(score=4.0, expected=3.817)) == "<Verdict of 'q1' (helpfulness): '4', expected 3.82>"
    failed = verdict(None, reason="no verdict in the reply", raw="long\n" * 100)
    assert repr(failed) == "<Verdict of 'q1' (helpfulness): unparsed, no verdict in the reply>"
    second = Verdict(KEY, Question("q1", "care", (1,), 2), Status.OK, "4")
    assert repr(second) == "<Verdict of 'q1' (care, response 1, sample 2): '4'>"


def test_a_preference_tells_a_disagreement_from_a_tie() -> None:
    orders = (verdict("a", responses=(0, 1)), verdict("b", responses=(1, 0)))
    split = Preference("q1", "care", (0, 1), "tie", Status.OK, orders, consistent=False)
    assert repr(split) == "<Preference on 'q1' (care): 'disagree' in both orders>"
    shown = preference_html(split)
    assert "<b>disagree</b>" in shown
    assert shown.index("a shown first") < shown.index("b shown first")
    one = Preference("q1", "care", (0, 1), "a", Status.OK, orders[:1])
    assert repr(one) == "<Preference on 'q1' (care): 'a' in one order>"
    none = Preference("q1", "care", (0, 1), None, Status.REFUSED, reason="the server said no")
    assert repr(none) == "<Preference on 'q1' (care): refused, the server said no>"


def test_a_bar_is_as_long_as_its_probability() -> None:
    found = re.findall(r"width:(\d+)px", bars({"1": 0.25, "2": 0.75}))
    assert found == ["40", "120"]


@pytest.mark.parametrize("text", MARKUP)
def test_no_text_of_a_verdict_is_markup(text: str) -> None:
    shown = verdict_html(verdict(text, feedback=text, distribution={text: 1.0})) + verdict_html(
        Verdict(KEY, Question(text, text), Status.UNPARSED, reason=text)
    )
    tags = set(re.findall(r"</?([a-z]+)", shown))
    assert tags <= {"div", "b", "table", "tr", "th", "td", "span"}
