"""Verdicts in notebooks: plain tables and bars; text is escaped, no script runs and nothing is loaded."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dikast.core.verdict import Preference, Status, Verdict

_LONGEST = 2000  # characters of a feedback that are shown
_BAR = 160  # pixels of a probability of 1


def verdict_html(verdict: "Verdict") -> str:
    """The verdict, or why it is missing; the bars of its distribution; its feedback."""
    rows = [("verdict", _said(verdict.status, verdict.label, verdict.reason))]
    if verdict.expected is not None:
        rows.append(("expected", f"{verdict.expected:.3g}"))
    if verdict.distribution is not None:
        rows.append(("distribution", bars(verdict.distribution)))
    if verdict.feedback:
        cut = "" if len(verdict.feedback) <= _LONGEST else " ..."
        rows.append(
            ("feedback", f'<span style="white-space:pre-wrap">{escape(verdict.feedback[:_LONGEST])}{cut}</span>')
        )
    return titled(verdict.question.in_words, rows)


def preference_html(preference: "Preference") -> str:
    """The joint verdict and what each order said, the response shown first named."""
    rows = [("joint verdict", _said(preference.status, preference.outcome, preference.reason))]
    for order in preference.orders:
        first = "a" if order.question.responses[0] < order.question.responses[1] else "b"
        said = _said(order.status, order.label, order.reason)
        rows.append((f"{first} shown first", said + (bars(order.distribution) if order.distribution else "")))
    return titled(f"{preference.item!r} ({preference.criterion})", rows)


def bars(distribution: Mapping[str, float]) -> str:
    """A bar for each label, as long as its probability."""
    return "".join(
        f'<div>{escape(label)} <span style="display:inline-block;height:.7em;background:#4a6fa5;'
        f'width:{_BAR * share:.0f}px"></span> {share:.2f}</div>'
        for label, share in distribution.items()
    )


def titled(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A table of a name and HTML in each row, under a title, which is escaped as the names are."""
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{value}</td></tr>'
        for name, value in rows
    )
    return f"<div><b>{escape(title)}</b><table>{cells}</table></div>"


def _said(status: "Status", label: str | None, reason: str) -> str:
    return f"<b>{escape(str(label))}</b>" if status == "ok" else f"none: {escape(f'{status.value}, {reason}')}"
