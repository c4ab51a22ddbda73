"""Verdicts of a comparison in plain sentences: "Therefore, Output (b) is better."

What counts as stated: an option that *is better* (best, superior, preferable, the winner; or the other one worse), an
option that is chosen or preferred by the writer, a closing that names one. "More detailed" or "longer" is not a
verdict, nor is a clause under *while*, *although*, *whether* or *if*. The last statement counts, with two exceptions:
a reply that opens with its verdict as a sentence of its own has given it, unless it takes it back in words; and what
follows a conclusion and then a heading of the prompt (`# Output (b):`) is a reply that ran on.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from dikast.prompts.dialects.label import NOUN
from dikast.prompts.dialects.marked import alone
from dikast.prompts.parsed import Reading, Slot, Stated, Target

_LEAD = r"[*_`\"'“‘(\[]{0,4}+"
_SHUT = r"[*_`\"'”’)\]]{0,6}+"
_SKIP = (
    r"(?:\s{1,3}+(?:\w{1,20}ly|a|the|far|much|somewhat|even|still|just|bit|little|overall|also|thus|therefore|deemed|"
    r"considered|judged|rated|generally|more))"
)
_OPTION = (
    rf"(?:{NOUN}\s{{0,3}}+{_LEAD}(?P<letter{{n}}>[AB12])(?!\w){_SHUT}|(?P<ordinal{{n}}>first|second)\s{{1,3}}+{NOUN}{_SHUT}"
    rf"|(?-i:(?<![\w(])(?P<bare{{n}}>[AB])(?![\w'’-])){_SHUT})"
)
_BETTER = r"better|best|superior|preferable|preferred|stronger|winner"
_WORSE = r"worse|inferior|weaker"
_IS = r"(?:is|was|would\s(?:be|have\sbeen)|seems|appears|becomes|remains|should\sbe)(?:\sto\sbe)?"
_CHOOSE = r"(?:prefer|choose|chose|pick|select|favou?r|vote\sfor|go\swith)"
_NAMED = rf"(?:(?:{_BETTER})(?:\s(?:one|choice|{NOUN}))?|verdict|answer|decision|choice|judge?ment|preference)"
_TIE = (
    r"equally\s(?:good|strong|well|helpful|valid|effective|matched|correct|accurate|bad|poor|suitable)"
    r"|neither(?:\s\w{1,20}){0,4}\s(?:is|was)\s(?:\w{1,12}\s)?better|(?:is|are|in|call\sit|it)\s(?:a\s)?(?:tied?|draw)"
)
_STATEMENT = re.compile(
    rf"{_OPTION.replace('{n}', '1')}\s{{1,3}}+(?:{_IS}{_SKIP}{{0,4}}\s{{1,3}}+{_LEAD}"
    rf"(?:(?P<better>{_BETTER})|(?P<worse>{_WORSE}))(?!\w)|wins(?!\w))"
    rf"|(?<!\w)(?:I|we)(?:['’]d|\swould|\swill|\shave)?{_SKIP}{{0,2}}\s{_CHOOSE}"
    rf"\s{{1,3}}+(?:the\s)?{_LEAD}{_OPTION.replace('{n}', '2')}"
    rf"|(?<!\w){_NAMED}{_SHUT}(?:\s(?:is|would\sbe))?\s{{0,2}}+:?\s{{0,3}}+{_SHUT}\s{{0,2}}+"
    rf"(?:the\s)?{_LEAD}{_OPTION.replace('{n}', '3')}"
    rf"|(?P<tie>(?<!\w)(?:{_TIE})(?!\w))",
    re.I,
)
_CONCLUDES = re.compile(
    r"(?<!\w)(?:therefore|thus|hence|overall|so|in\s(?:conclusion|summary|short|the\send)|to\s(?:conclude|sum\sup)"
    r"|final(?:ly)?|verdict|conclusion|consequently|all\sin\sall|both)(?!\w)",
    re.I,
)
_UNDER = re.compile(
    r"(?<!\w)(?:while|although|though|whether|if|unless|whereas|not\s(?:mean|say|clear|certain|sure|obvious|believe|think|true))"
    r"(?!\w)[^,.;:!?\n]{0,80}$",
    re.I,
)
_TAKEN_BACK = re.compile(
    r"(?<!\w)(?:wait|actually|on\s(?:second\sthought|reflection|closer)|reconsider|correction|scratch\sthat|mistaken"
    r"|change(?:d)?\smy|revis(?:e|ed|ing))(?!\w)",
    re.I,
)
_HEADING = re.compile(
    rf"(?:^|\n)[ \t]{{0,3}}+#{{1,6}}[ \t]{{0,4}}+(?:instructions?|input|question|task|{NOUN})\b", re.I
)
_OR = re.compile(r"[\s.,\"'”’*_`)\]]{0,8}or[\s\"'“‘*_`(\[]{0,8}", re.I)
_OTHER: dict[Slot, Slot] = {"first": "second", "second": "first", "tie": "tie"}
_BEFORE = 120


@dataclass(frozen=True, slots=True)
class Sentence:
    """A verdict in words: the slot, where it stands, and whether its sentence concludes."""

    slot: Slot
    start: int
    end: int
    concludes: bool


def read_prose(text: str, target: Target) -> Reading:
    """The verdict of a comparison in plain sentences, by the rules above; the feedback is the whole reply."""
    if target.scale is not None:
        return Reading(None, "the dialect 'prose' reads comparisons only")
    whole = alone(text, target)
    if whole is not None:
        return Reading(whole)
    found = [each for each in sentences(text) if not _on_the_way(text, each)]
    chosen = _headline(text, found) or _last(text, found)
    if chosen is None:
        return Reading(None, "no sentence says which one is better")
    said = text[chosen.start : chosen.end]
    label = chosen.slot if chosen.slot in target else None
    return Reading(Stated(label, said, chosen.start, chosen.end), feedback=text.strip())


def _on_the_way(text: str, each: Sentence) -> bool:
    """Equally good in one respect, said before the comparison is over."""
    return each.slot == "tie" and not each.concludes and bool(text[each.end :].strip(" .\n"))


def sentences(text: str) -> list[Sentence]:
    """Every verdict in words, in order; what only repeats the choices (`A is better or B is better`) is left out."""
    found = list(_found(text))
    echoes = set()
    for i, (one, two) in enumerate(pairwise(found)):
        gap = text[one.end : two.start]
        if one.slot != two.slot and len(gap) < 40 and _OR.fullmatch(gap):
            echoes |= {i, i + 1}
    return [each for i, each in enumerate(found) if i not in echoes]


def _found(text: str) -> Iterator[Sentence]:
    for match in _STATEMENT.finditer(text):
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        clause = re.split(r"[.!?\n]\s", before)[-1]
        if _UNDER.search(clause):
            continue
        yield Sentence(_slot(match), match.start(), match.end(), _CONCLUDES.search(clause + match[0]) is not None)


def _slot(match: re.Match[str]) -> Slot:
    if match["tie"]:
        return "tie"
    names = [match[f"{kind}{n}"] for n in (1, 2, 3) for kind in ("letter", "ordinal", "bare")]
    word = next(name for name in names if name).casefold()
    slot: Slot = "first" if word in ("a", "1", "first") else "second"
    return _OTHER[slot] if match["worse"] else slot


def _headline(text: str, found: list[Sentence]) -> Sentence | None:
    """The opening verdict, if it is a sentence of its own and nothing after it takes it back."""
    if not found or text[: found[0].start].strip(" \n\t*_`#"):
        return None
    first = found[0]
    alone_there = re.match(r"[*_`]{0,3}(?:[.!]|\s*\n|$)", text[first.end :])
    return first if alone_there and not _TAKEN_BACK.search(text, first.end) else None


def _last(text: str, found: list[Sentence]) -> Sentence | None:
    concluded = next((each.end for each in found if each.concludes), None)
    over = _HEADING.search(text, concluded) if concluded is not None else None
    stop = over.start() if over else len(text)
    return next((each for each in reversed(found) if each.end <= stop), None)
