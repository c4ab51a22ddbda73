"""Where the claims of a verdict stand in the response that it judged."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dikast.audit.statistics.claim_agreement import SUPPORTED

_UNSURE = frozenset({"unclear", "unsupported", "unknown", "uncertain", "cannot tell"})
_SIGNS = {"holds": "✓", "fails": "✗", "unsure": "?"}  # beside the colour, for whoever does not see it


class Stretch(NamedTuple):
    """A part of a text. `kind` is `holds`, `fails` or `unsure` for a claim, "" for what is between claims."""

    text: str
    kind: str = ""
    verdict: str = ""

    @property
    def sign(self) -> str:
        """A sign that tells the kinds apart without colour."""
        return _SIGNS.get(self.kind, "")


def stretches(text: str, claims: Iterable[Mapping[str, str]]) -> list[Stretch]:
    """The text cut at its claims, whole as before; each claim at its first free place, spaces and case aside."""
    places = sorted(_places(text, claims))
    found, at = [], 0
    for start, end, verdict in places:
        found += [Stretch(text[at:start])] if start > at else []
        found.append(Stretch(text[start:end], kind_of(verdict), verdict))
        at = end
    return found + ([Stretch(text[at:])] if at < len(text) else [])


def kind_of(verdict: str) -> str:
    """What a claim's verdict amounts to."""
    word = verdict.strip().casefold()
    return "holds" if word in SUPPORTED else "unsure" if word in _UNSURE else "fails"


def _places(text: str, claims: Iterable[Mapping[str, str]]) -> Iterator[tuple[int, int, str]]:
    taken: list[tuple[int, int]] = []
    for claim in claims:
        words = claim.get("text", "").split()
        if not words or not (verdict := claim.get("verdict", "")):
            continue
        pattern = r"\s+".join(map(re.escape, words))
        for match in re.finditer(pattern, text, re.IGNORECASE):
            start, end = match.span()
            if all(end <= other or start >= until for other, until in taken):
                taken.append((start, end))
                yield start, end, verdict
                break
