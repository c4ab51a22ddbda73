"""Assertions for test suites: a judge's verdict as a condition, its feedback in the failure message."""

from collections.abc import Mapping
from typing import Any

from dikast.core.item import Item
from dikast.core.verdict import Preference, Status, Verdict
from dikast.judging.judge import Judge

_LONGEST = 2000  # characters of feedback in a message


def assert_grade(
    judge: Judge,
    item: Item | Mapping[str, Any] | None = None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    **fields: Any,
) -> Verdict:
    """Grade one response and raise AssertionError, with the judge's feedback, unless its score lies in the range.

    The item is given whole or by keywords (`instruction=`, `response=`, ...), as to `Judge.grade`. A failure to give a
    verdict is a failed assertion that says why there is none, never a low score. Returns the verdict.
    """
    __tracebackhide__ = True
    if at_least is None and at_most is None:
        raise TypeError("assert_grade needs at_least, at_most, or both")
    verdict = _opened(judge).grade(item, **fields)
    wanted = " and ".join(
        f"{word} {value:g}" for word, value in (("at least", at_least), ("at most", at_most)) if value is not None
    )
    if verdict.status is not Status.OK or verdict.score is None:
        raise AssertionError(
            f"no verdict, where {wanted} was wanted ({verdict.status}: {verdict.reason})\n{_shown(verdict)}"
        )
    low = at_least is not None and verdict.score < at_least
    high = at_most is not None and verdict.score > at_most
    if low or high:
        raise AssertionError(
            f"{verdict.question.criterion}: the judge gave {verdict.score:g}, {wanted} was wanted\n{_shown(verdict)}"
        )
    return verdict


def assert_prefers(
    judge: Judge, item: Item | Mapping[str, Any] | None = None, *, winner: str = "a", **fields: Any
) -> Preference:
    """Compare two responses in both orders and raise AssertionError, with the feedback, unless `winner` is preferred.

    `winner` is "a" (the first of `responses`), "b" or "tie". Orders that disagree are no tie and always fail.
    Returns the preference.
    """
    __tracebackhide__ = True
    if winner not in ("a", "b", "tie"):
        raise TypeError(f"winner is 'a', 'b' or 'tie', not {winner!r}")
    found = _opened(judge).compare(item, **fields)
    if found.outcome != winner:
        said = "neither" if found.consistent is False else found.choice or f"nothing ({found.status})"
        orders = "\n".join(
            f"with {'a' if order.question.responses[0] == found.pair[0] else 'b'} shown first: "
            f"{order.label or order.status}\n{_shown(order)}"
            for order in found.orders
        )
        raise AssertionError(
            f"{found.criterion}: the judge prefers {said}, {winner} was wanted. {found.reason}\n{orders}"
        )
    return found


def _opened(judge: Judge) -> Judge:
    if not hasattr(judge, "grade"):
        spec = judge if isinstance(judge, str) else "openai:MODEL"
        raise TypeError(f'the first argument is a judge: write Judge({spec!r}, "helpfulness"), with a rubric of yours')
    return judge


def _shown(verdict: Verdict) -> str:
    text = verdict.feedback or verdict.raw
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
    lines = [f"feedback: {text}" if verdict.feedback else f"raw reply: {text}"]
    lines += [f"  claim {claim.text!r}: {claim.verdict} {claim.note}".rstrip() for claim in verdict.claims]
    if verdict.distribution:
        lines.append("probabilities: " + ", ".join(f"{k} {p:.2f}" for k, p in verdict.distribution.items()))
    return "\n".join(lines)
