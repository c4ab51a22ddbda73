"""What a reply says against its own verdict: alternatives, a verdict taken back, prose that says the opposite."""

from dataclasses import replace

from dikast.prompts.dialects import phrases
from dikast.prompts.dialects.arena import ARENA
from dikast.prompts.dialects.label import read_label
from dikast.prompts.dialects.prose import firmest
from dikast.prompts.parsed import Reading, Slot, Stated, Target

_CONNECTED = phrases.compiled(r"(?<!\w)(?:or|and|vs|alternatively|maybe|perhaps|possibly)(?!\w)|[/|&]")
_ALTERNATIVE = phrases.compiled(
    r"[\s*_`\"'”’.,;)(\]}]{0,8}(?:",
    r"(?:and\s?/\s?or|or|and|vs\.?|/|\||&|alternatively|maybe|perhaps|possibly)[\s*_`\"'“‘,:(]{0,8}){0,3}",
    r"(?:(?:so|the|my|a|it\sis)\s){0,3}",
)
# A verdict withdrawn without another one, in words that nobody uses about a response.
_WITHDRAWN = phrases.compiled(
    r"(?<!\w)",
    phrases.any_of(
        "just kidding, just joking, only joking, scratch that, strike that, never ?mind, oops, on second thought,"
        "on reflection, on closer look, not really, I take (?:it|that) back, I made a mistake, I was wrong, I misread,"
        "I misspoke, I spoke too soon, I (?:have )?changed my mind,"
        "(?:disregard|ignore) (?:that|this|the (?:above|score|verdict|rating)),"
        "(?:that|this) (?:verdict|score|rating|label|result) (?:is|was) (?:wrong|not|incorrect|a mistake)"
    ),
    r"(?!\w)",
)
# Words that correct what was said, right before another label.
_CORRECTED = phrases.compiled(
    r"(?<!\w)(?:",
    phrases.any_of(
        "no, nope, nah, wait, hold on, hmm+, sorry, actually, rather, correction, I meant?, make (?:that|it), better,"
        "instead, or rather, in fact,"
        "(?:it|this|that|score|verdict|rating|grade|label) should (?:be|have been|read),"
        r"(?:change|revise|lower|raise)d? (?:it|this|that|my \w{1,12}|the (?:score|verdict|rating)) to"
    ),
    r"[\s,:;.!–—-]{1,4}){1,4}(?:",
    phrases.any_of(
        "it['’]?s, it is, let['’]s say, let['’]s make it, I['’]d say, an?, the, is, to, be, it, that, say, score,"
        "verdict, rating, of"
    ),
    r"[\s:]{1,3}){0,5}",
)
_NEAR, _REACH = 60, 2000  # characters between alternatives, and to a correction


def settled(text: str, reading: Reading, target: Target, *, prose: bool) -> Reading:
    """The reading, or none with the reason where the reply contradicts the verdict that counts.

    `prose` readings have weighed the sentences of the reply already.
    """
    stated = reading.stated
    if stated is None or stated.label is None:
        return reading
    reason = _alternatives(text, stated, reading.earlier) or _taken_back(text, stated, target)
    if not reason and not prose:
        reason = _opposite(text, stated, target)
    return replace(reading, stated=None, reason=reason, earlier=()) if reason else reading


def _alternatives(text: str, stated: Stated, earlier: tuple[Stated, ...]) -> str:
    before = max((each for each in earlier if each.end <= stated.start), key=lambda each: each.end, default=None)
    if before is None or before.label in (stated.label, None):
        return ""
    gap = text[before.end : stated.start]
    if len(gap) > _NEAR or _ALTERNATIVE.fullmatch(gap) is None:
        return ""
    if _CONNECTED.search(gap) is None and ("\n" in gap or text[stated.start] == "{"):
        return ""  # one below the other, or two objects: the last one counts
    return f"two verdicts stand side by side: {text[before.start : stated.end][:120]!r}"


def _taken_back(text: str, stated: Stated, target: Target) -> str:
    rest = text[stated.end : stated.end + _REACH]
    withdrawn = _WITHDRAWN.search(rest)
    if withdrawn:
        return f"the verdict {stated.said.strip()!r} is taken back: {withdrawn[0]!r}"
    for match in _CORRECTED.finditer(rest):
        found = read_label(rest, match.end(), target, next_line=False)
        other = found.kind == "label" and found.label != stated.label
        if other or found.kind == "off_scale":
            said = rest[match.start() : found.end].strip()
            return f"the verdict {stated.said.strip()!r} is corrected without a new one: {said!r}"
    return ""


def _opposite(text: str, stated: Stated, target: Target) -> str:
    slot = _slot(stated.label, target)
    said = firmest(text[stated.end :]) if slot is not None else None
    if said is None or said.slot == slot:
        return ""
    excerpt = text[stated.end + said.start : stated.end + said.end]
    return f"what follows the verdict {stated.said.strip()!r} says the opposite: {excerpt!r}"


def _slot(label: str | None, target: Target) -> Slot | None:
    """The slot that won, where the verdict is about a pair."""
    if target.scale is None:
        return label  # type: ignore[return-value]  # a pair's labels are slots
    if label not in ARENA.labels or set(target.scale.labels) - set(ARENA.labels):
        return None
    return "tie" if "=" in label else "first" if label[0] == "A" else "second"
