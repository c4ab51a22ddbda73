"""The reply that a perfect judge would give: the training target of a judge, in the words of its format.

Every target is parsed back by the format's own dialect before it is returned, so that every reply that is taught is
read as its gold.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dikast.core.errors import DataError
from dikast.core.rubric import Rubric
from dikast.core.verdict import Claim
from dikast.prompts.gold import Gold
from dikast.prompts.parse import get_dialect
from dikast.prompts.parsed import Target

if TYPE_CHECKING:
    from dikast.prompts.format import Format


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply in three parts: the text before the verdict's label (its space included), the label, what follows."""

    before: str
    label: str
    after: str = ""

    @property
    def text(self) -> str:
        """The whole reply."""
        return self.before + self.label + self.after


def target(format: "Format", gold: Gold, rubric: Rubric, *, where: str = "") -> Reply:
    """The reply in `format` that says `gold`; DataError, with `where` in front, if the format cannot say it."""
    label = dict(format.words).get(gold.label) if format.kind == "pairwise" else gold.label
    if label is None:
        raise _error(
            where, format, f"has no word for {gold.label!r}: leave ties out, or give the format a word for them"
        )
    prose = _prose(format, gold)
    if (format.feedback or format.explains) and not prose:
        kind = "claims" if format.dialect == "claims" else "feedback"
        cure = f"add '{kind}' to the gold, or train a format without prose, such as 'score-only'"
        raise _error(where, format, f"asks for {kind} and the gold has none: {cure}")
    writer = _WRITERS.get(format.dialect)
    if writer is None:
        raise _error(
            where,
            format,
            f"has the dialect {format.dialect!r}, which can be read but not written; writable are  {sorted(_WRITERS)}",
        )
    reply = writer(format, prose, label)
    parsed = format.parse(reply.text, rubric)
    if parsed.label != gold.label:
        told = f"reads back as {parsed.label!r}" if parsed.label else f"does not read back ({parsed.reason})"
        raise _error(where, format, f"would write a reply that {told}, not as {gold.label!r}: {reply.text[-80:]!r}")
    if (
        prose
        and format.dialect == "claims"
        and _claim_verdicts(parsed.claims) != _claim_verdicts(_listed(format, gold))
    ):
        raise _error(where, format, "would write claims that do not read back: findings are right, wrong or unclear")
    return reply


def _prose(format: "Format", gold: Gold) -> str:
    if not (format.feedback or format.explains):
        return ""
    if format.dialect != "claims" or _lists(format, gold):
        return gold.feedback or "\n".join(_said(claim) for claim in _listed(format, gold))
    return "\n".join(
        f"Claim: {c.text}\nFinding: {c.verdict}{f' - {c.note}' if c.note else ''}" for c in _listed(format, gold)
    )


def _lists(format: "Format", gold: Gold) -> bool:
    """Whether the gold feedback itself lists the gold claims in the lines of the dialect, with more around them."""
    found = get_dialect("claims").read(gold.feedback, Target(None, format.marker, format.words)).claims
    return bool(found) and _claim_verdicts(found) == _claim_verdicts(_listed(format, gold))


def _claim_verdicts(claims: Iterable[Claim]) -> list[tuple[str, str]]:
    return [(claim.text, claim.verdict) for claim in claims]


def _said(claim: Claim) -> str:
    return f"{claim.text} -> {claim.verdict}" + (f": {claim.note}" if claim.note else "")


def _listed(format: "Format", gold: Gold) -> tuple[Claim, ...]:
    """The claims in the form of a list; those of a pair name their response."""
    if format.kind != "pairwise":
        return gold.claims
    words = dict(format.words)
    return tuple(
        Claim(f"{words['first' if i < gold.split else 'second']}: {claim.text}", claim.verdict, claim.note)
        for i, claim in enumerate(gold.claims)
    )


def _marked(format: "Format", prose: str, label: str) -> Reply:
    marker = format.marker or "Verdict:"
    if format.explains:
        return Reply(f"{marker} ", label, f"\n{prose}")
    return Reply(f"{prose}{format.lead if prose else ''}{marker} ", label)


def _bridge(format: "Format", prose: str, label: str) -> Reply:
    told = f"{prose} So the overall score is {label}.".lstrip()
    return Reply(f"{told} {format.marker or '[RESULT]'} ", label)


def _json(format: "Format", prose: str, label: str) -> Reply:
    lead = f'{{"feedback": {json.dumps(prose, ensure_ascii=False)}, ' if format.feedback else "{"
    return Reply(f'{lead}"verdict": "', spelt(format, label), '"}')


def spelt(format: "Format", label: str) -> str:
    """A label as replies in this format spell it: escaped in JSON."""
    return json.dumps(label, ensure_ascii=False)[1:-1] if format.dialect == "json" else label


def _boxed(format: "Format", prose: str, label: str) -> Reply:
    return Reply(f"{prose}\n" * bool(prose) + "\\boxed{", label, "}")


_WRITERS: dict[str, Callable[["Format", str, str], Reply]] = {
    "verdict": _marked,
    "claims": _marked,
    "bracketed": _marked,
    "bridge": _bridge,
    "json": _json,
    "boxed": _boxed,
}


def _error(where: str, format: "Format", message: str) -> DataError:
    return DataError(f"{where + ': ' if where else ''}format {format.name!r} {message}")
