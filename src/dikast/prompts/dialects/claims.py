"""Verdicts claim by claim: `Claim:` and `Finding:` lines, then Dikast's own verdict line."""

import re
from dataclasses import replace

from dikast.core.verdict import Claim
from dikast.prompts.dialects.marked import read_verdict
from dikast.prompts.parsed import Reading, Target

FINDINGS = ("right", "wrong", "unclear")
_LINE = re.compile(
    r"[\s*_`~#>|+•-]{0,24}+(?:\d{1,4}[.)]\s{0,4}+)?[*_`]{0,4}+(?P<key>claim|finding)(?:\s{0,2}\d{1,4})?[*_`]{0,4}+\s{0,2}+:[*_`]{0,4}+(?P<rest>.*)",
    re.I,
)
_FINDING = re.compile(r"[\s*_`\"'(\[]{0,12}+(?P<word>[^\W\d_]{1,30}+)[*_`\"')\].,:;\s–—-]{0,12}+")


def read_claims(text: str, target: Target) -> Reading:
    """The last `Verdict: LABEL`, with every claim and what was found about it. A claim without a finding has ""."""
    claims: list[Claim] = []
    for line in text.split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        rest = match["rest"].strip()
        if match["key"].casefold() == "claim":
            claims.append(Claim(rest, ""))
        elif claims and not claims[-1].verdict:
            claims[-1] = _found(claims[-1].text, rest)
    reading = read_verdict(text, target)
    return replace(reading, claims=tuple(claims))


def _found(text: str, rest: str) -> Claim:
    match = _FINDING.match(rest)
    word = match["word"].casefold() if match else ""
    return Claim(text, word, rest[match.end() :].strip()) if match and word in FINDINGS else Claim(text, "", rest)
