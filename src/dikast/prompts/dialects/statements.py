"""Sentences that say which response is better: the patterns, and the reasons why a match is not a verdict.

A match counts as plain, concluding (its clause holds "therefore", "overall", "verdict" and the like) or announced ("my
verdict is X", a sign such as `A > B` where a verdict is expected). Nothing is found in questions, in conditions and
doubts, in claims of others, in quotations, in headings, or if the comparison is limited to one aspect without a
conclusion.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dikast.prompts.dialects import doubts, frame, mention, phrases
from dikast.prompts.parsed import Slot

Grade = Literal["conceded", "loose", "plain", "concluding", "announced", "label"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A verdict in words: the slot, its position, and its firmness."""

    slot: Slot
    start: int
    end: int
    grade: Grade

    @property
    def concludes(self) -> bool:
        """Whether the clause states a conclusion."""
        return self.grade not in ("conceded", "loose", "plain")


class _Naming(NamedTuple):
    """What a reply calls the responses: `noun` with letters, or with digits."""

    noun: str
    digits: bool


_FROM_OPTION = (phrases.COMPARED, phrases.WINS, phrases.HAS_BETTER)
_FROM_WORDS = {
    phrases.MADE: phrases.CUE_BETTER,
    phrases.CHOSEN: phrases.CUE_CHOSEN,
    phrases.NAMED: phrases.CUE_NAMED,
    phrases.ANNOUNCED_MORE: phrases.CUE_NAMED,
    phrases.ANNOUNCED_LINE: phrases.CUE_NAMED,
    phrases.RATED: phrases.CUE_RATED,
}
_CUES = (*dict.fromkeys(_FROM_WORDS.values()), phrases.CUE_EVEN)
_LETTERS = re.compile(r"[AB]\W")
_OTHER: dict[Slot, Slot] = {"first": "second", "second": "first", "tie": "tie"}
_LOOK_BACK, _LOOK_ON = 160, 300
_SPAN = 400  # characters that no pattern exceeds
_BEGINNING, _END = 4_000, 24_000  # characters of a reply that are read


def statements(text: str, *, limited: bool = False) -> Iterator[Sentence]:
    """Every verdict in words, unordered; the caller sorts. With `limited` also conclusions that name an aspect.

    Of a very long reply only its beginning and its end are read. Patterns are tried only near the words that they need,
    which are found first.
    """
    naming = _naming(text)
    folded = text.lower()
    folded = (
        folded
        if len(folded) == len(text)
        else "".join(each if len(each.lower()) > 1 else each.lower() for each in text)
    )
    near = {cue: list(_near(cue, folded)) for cue in _CUES}
    for option in _found(phrases.OPTION, text, near[phrases.CUE_BETTER]):
        for pattern in _FROM_OPTION:
            match = pattern.match(text, option.start())
            if match is not None and (found := _option(text, match, pattern, naming, limited=limited)):
                yield found
    for pattern, cue in _FROM_WORDS.items():
        for match in _found(pattern, text, near[cue]):
            if found := _option(text, match, pattern, naming, limited=limited):
                yield found
    for pattern in (phrases.TIE, phrases.TIE_ANNOUNCED, phrases.TIE_LINE):
        for match in _found(pattern, text, near[phrases.CUE_EVEN]):
            if found := _even(text, match, naming, announced=pattern is not phrases.TIE):
                yield found
    yield from _signs(text)


def _near(cue: re.Pattern[str], folded: str) -> Iterator[tuple[int, int]]:
    """The stretches around the words that `cue` finds, apart from each other."""
    begin = end = 0
    ends = range(_BEGINNING, len(folded) - _END)
    for match in cue.finditer(folded):
        if match.start() in ends:
            continue
        if match.start() - _SPAN > end:
            if end:
                yield begin, end
            begin = max(0, match.start() - _SPAN)
        end = match.end() + _SPAN
    if end:
        yield begin, end


def _found(pattern: re.Pattern[str], text: str, spans: Iterable[tuple[int, int]]) -> Iterator[re.Match[str]]:
    for begin, end in spans:
        yield from pattern.finditer(text, begin, end)


def _naming(text: str) -> _Naming | None:
    """The names that the reply gives the two responses; None if it only uses letters or ordinals."""
    names = Counter((match["noun"].casefold(), match["letter"].isdigit()) for match in phrases.NAME.finditer(text))
    return _Naming(*max(names, key=lambda name: (name[0] in phrases.RESPONSES, names[name]))) if names else None


def _option(
    text: str, match: re.Match[str], pattern: re.Pattern[str], naming: _Naming | None, *, limited: bool
) -> Sentence | None:
    named = match.groupdict()
    kind = named.get("kind") or ""
    about_verdict = phrases.ABOUT_VERDICT.search(kind) is not None
    announced = pattern in (phrases.ANNOUNCED_MORE, phrases.ANNOUNCED_LINE)
    announced = announced or (pattern is phrases.NAMED and about_verdict)
    if (
        naming is not None
        and not ((announced or limited) and (match["bare"] or named.get("digit")))
        and _foreign(match, naming)
    ):
        return None
    aspect = phrases.ASPECT_AFTER.match(text, match.end()) is not None
    if not (limited and aspect) and not _follows(text, match, pattern):
        return None
    grade = _grade(text, match, announced=announced or pattern is phrases.CHOSEN)
    if grade is None or (pattern is phrases.COMPARED and _of_something(text, match)):
        return None
    weak = grade in ("conceded", "loose", "plain")
    if aspect and (weak or not limited):
        return None
    if weak and phrases.ASPECT_BEFORE.search(_line_before(text, match)):
        return None
    if pattern is phrases.NAMED and ":" in match[0] and not _announced_before(text, match):
        return None  # "Clarity winner: B"
    word = (match["letter"] or match["ordinal"] or match["bare"] or match["digit"]).casefold()
    slot: Slot = "first" if word in ("a", "1", "first") else "second"
    return Sentence(_OTHER[slot] if named.get("worse") else slot, match.start(), match.end(), grade)


def _foreign(match: re.Match[str], naming: _Naming) -> bool:
    """Whether something else than a response is named: "option B" or "B" in a reply about Assistant A and B."""
    if match["bare"]:
        return True
    own = {naming.noun, *phrases.RESPONSES}
    if match["ordinal"]:
        return match["kin"].casefold() not in {*own, "answer", "output"}
    return match["noun"].casefold() not in own or match["letter"].isdigit() != naming.digits


def _follows(text: str, match: re.Match[str], pattern: re.Pattern[str]) -> bool:
    """Whether the text after the match is compatible with a verdict on the whole response."""
    if phrases.AFTER_OR.match(text, match.end()):
        return False
    if pattern in (phrases.COMPARED, phrases.MADE):
        return phrases.WHOLE_MEANT.match(text, match.end()) is not None
    if pattern is phrases.NAMED and "\n" in match[0] and phrases.COLON.match(text, match.end()):
        return False  # the heading below an announcement
    if pattern is phrases.ANNOUNCED_MORE:
        return phrases.BUT_LESS.match(text, match.end()) is None
    if pattern is phrases.NAMED and phrases.LOST.match(text, match.end()):
        return False
    if pattern in (phrases.NAMED, phrases.CHOSEN):
        return phrases.NAME_ENDS.match(text, match.end()) is not None
    return True


def _of_something(text: str, match: re.Match[str]) -> bool:
    """Whether a part is compared instead of the response: "the mistake in Response A is worse"."""
    found = phrases.OF_SOMETHING.search(text[max(0, match.start() - 60) : match.start()])
    return found is not None and re.fullmatch(phrases.WHOLE, found["what"], re.I) is None


def _even(text: str, match: re.Match[str], naming: _Naming | None, *, announced: bool) -> Sentence | None:
    grade = _grade(text, match, announced=announced)
    if grade is None or (naming is not None and not announced and _LETTERS.match(match[0])):
        return None
    if phrases.ASPECT_OF_TIE.match(text, match.end()):
        return None
    if grade in ("conceded", "loose", "plain") and phrases.ASPECT_BEFORE.search(_line_before(text, match)):
        return None
    return Sentence("tie", match.start(), match.end(), grade)


def _signs(text: str) -> Iterator[Sentence]:
    if phrases.CUE_SIGN.search(text) is None:
        return
    due = -1  # end of a line on which a verdict by sign was expected: others after it on the line count as well
    for match in _found(phrases.SIGN, text, _near(phrases.CUE_SIGN, text)):
        before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
        if phrases.SIGN_DUE.search(before):
            due = text.find("\n", match.end()) % (len(text) + 1)
        if found := _sign(text, match, due=match.end() <= due):
            yield found


def _sign(text: str, match: re.Match[str], *, due: bool) -> Sentence | None:
    """`A > B` where a verdict is expected, or alone on the last line; elsewhere it counts as arithmetic."""
    line = text[max(0, match.start() - _LOOK_BACK) : match.start()].rpartition("\n")[2]
    rest = text[match.end() : match.end() + _LOOK_ON]
    last = not rest.strip(" \t\n*_`.!)]") and not line.strip(" \t\n*_`(#[-")
    one, sign, two = match["one"].upper(), match["sign"][0], match["two"].upper()
    last = last and not frame.unannounced_above(text[: match.start()])
    if one == two or not (due or last) or re.match(r"[\s*_`]{0,4}\?", rest) or phrases.SIGN_LIMITED.match(rest):
        return None
    slot: Slot = "tie" if sign in "=≈~" else "first" if (one == "A") == (sign == ">") else "second"
    return Sentence(slot, match.start(), match.end(), "announced")


def _grade(text: str, match: re.Match[str], *, announced: bool) -> Grade | None:
    """The firmness of the statement; None if the clause does not state it."""
    before = (
        "\n" + text[: match.start()] if match.start() < _LOOK_BACK else text[match.start() - _LOOK_BACK : match.start()]
    )
    clause = phrases.BREAK.split(before)[-1]
    rest = text[match.end() : match.end() + _LOOK_ON]
    end = phrases.END_OF_SENTENCE.search(rest)
    doubt = doubts.under(clause, match[0])
    if (
        doubt == "doubted"
        or (end is not None and end[0] == "?")
        or mention.quoted_line(clause)
        or mention.quoted(before.rpartition("\n")[2], rest.partition("\n")[0])
        or doubts.taken_away(rest)
    ):
        return None
    if doubt:
        return "conceded"
    if announced:
        return None if phrases.LIMITED_LEAD.search(clause) else "announced"
    if phrases.CONCLUDES.search(clause + match[0]):
        return "concluding"
    if doubts.hypothetical(match[0]) or clause.lstrip().startswith("#"):
        return None
    made = (
        match.re.pattern == phrases.MADE.pattern and match[0][:3].casefold() == "mak"
    )  # the words before "making A better" are the reason
    return "plain" if made or frame.leads(clause, even=match.re.pattern == phrases.TIE.pattern) else "loose"


def _announced_before(text: str, match: re.Match[str]) -> bool:
    """Whether the words of the clause before the match announce a verdict, as "my" and "so the" do."""
    clause = re.split(r"[.,;!?()]", _line_before(text, match))[-1]
    return frame.announced(re.sub(r"\A\s*(?:\d{1,2}[.)])?", "", clause), again=True)


def _line_before(text: str, match: re.Match[str]) -> str:
    before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
    return "\n" + before.rpartition("\n")[2]
