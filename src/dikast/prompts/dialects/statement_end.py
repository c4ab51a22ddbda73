"""Whether the rest of its own statement contradicts or limits a verdict on a pair.

"Winner: A (tie)", "Verdict: A, incorrect", "Winner: A because it is worse", "Verdict: A is better than B in fluency":
the label alone misleads. Only the words that directly follow the verdict are examined.
"""

from dikast.prompts.dialects.label import NOUN
from dikast.prompts.dialects.phrases import ASPECT_AFTER, LEAD, OPTIONS, SHUT, any_of, compiled
from dikast.prompts.parsed import Slot

_COMPARED = rf"{SHUT}(?:\sthan\s(?:the\sother(?:\s{NOUN})?|{LEAD}{OPTIONS}){SHUT})?"
_ASIDE = rf"{_COMPARED}[ \t]{{0,3}}(?:[,;:.(\[–—]|--?(?=[ \t]))[ \t]{{0,3}}"  # "A, ...", "A (...)", "A. ..."
_FILLERS = (
    r"(?:(?:\w{1,14}ly|an?|the|but|so|yet|just|both|all|it['’]s|it\sis|which\sis|they\sare|or|very|quite)\s){0,3}"
)
_ENDS = r"(?=[\s*_`\"'”’)\]]{0,6}(?:[.,;:!)\]]|\n|\Z))"
_CAUSE = rf"{_COMPARED}[ \t,;(–—-]{{1,4}}(?:but\s|yet\s|even\s)?"
_CONJUNCTION = "(?:because|since|as|although|though|while|despite|for)"
_BAD = any_of(
    "worse, worst, weaker, weakest, inferior, wrong, incorrect, inaccurate, false, (?:the )?loser, loses, lost, fails,"
    "failed"
)
_LABELLED_BAD = compiled(
    rf"{_ASIDE}{_FILLERS}(?:{_BAD}|",
    any_of(
        r"untrue, invalid, unhelpful, hallucinated, hallucinating, mistaken, rejected, disqualified, fail, failure,"
        r"unsafe, useless, nonsense, irrelevant, second[ -](?:best|place), runner-?up, last place, random, at random,"
        r"coin ?(?:flip|toss), (?:random )?guess"
    ),
    rf"){_ENDS}",
)
_BECAUSE_BAD = compiled(
    rf"{_CAUSE}(?:{_CONJUNCTION}\s)?(?:it\s(?:is|was)|it['’]s|being|(?:which|that)\s(?:is|was)|it|which)\s",
    rf"(?:\w{{1,14}}ly\s|much\s|far\s|the\s){{0,2}}{_BAD}{_ENDS}",
)
_EVEN = any_of(
    r"tie, tied, draw, equal, even, equally \w{3,12}, the same, no (?:clear )?winner, toss-?up, neither,"
    r"50 ?/ ?50, fifty-fifty"
)
_TIED = compiled(rf"{_ASIDE}{_FILLERS}{_EVEN}{_ENDS}")
_BECAUSE_TIED = compiled(
    rf"{_CAUSE}{_CONJUNCTION}\s(?:(?:both|they|the\stwo|{OPTIONS}\sand\s{OPTIONS})(?:\s{NOUN}s)?\s(?:are|were)",
    rf"|(?:it|there)\s(?:is|was)|it['’]s|there['’]s)\s{_FILLERS}{_EVEN}{_ENDS}",
)
_OR_ELSE = compiled(
    rf"{_ASIDE}(?:or|possibly|perhaps|maybe|could\sbe|might\sbe)[\s,]{{1,2}}(?:the\s)?{LEAD}{OPTIONS}{_ENDS}"
)
_IS_BETTER = compiled(
    rf"{SHUT}\s(?:is|was|performs|does)\s(?:\w{{1,14}}ly\s|much\s|far\s|the\s){{0,2}}",
    r"(?:better|best|superior|stronger|preferable|preferred)(?!\w)",
)


def contradicted(rest: str, slot: Slot) -> str:
    """The words that directly follow a verdict on a pair and contradict or limit it; "" if there are none."""
    against = (_LABELLED_BAD, _BECAUSE_BAD, _TIED, _BECAUSE_TIED, _OR_ELSE) if slot != "tie" else ()
    for pattern in against:
        if found := pattern.match(rest):
            return found[0].strip()
    better = _IS_BETTER.match(rest)
    limited = ASPECT_AFTER.match(rest, better.end()) if better else None
    return rest[: limited.end()].strip() if limited else ""
