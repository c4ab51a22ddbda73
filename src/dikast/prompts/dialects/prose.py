"""Verdicts of a comparison in plain sentences: "Therefore, Output (b) is better."

What counts as stated is in `statements`; labels in brackets (`[[A>B]]`, `[[C]]`) count too. The last statement is the
verdict, with two exceptions: a verdict in the opening sentence counts unless the reply withdraws it in words; and text
after a conclusion that is followed by a heading of the prompt (`# Output (b):`) is ignored, since the reply ran on. If
the last sentence states two verdicts, a remark at the end contradicts a verdict that was announced, or the sentence
after a tie turns to one of the responses, there is no verdict.
"""

import re
from itertools import pairwise

from dikast.prompts.dialects import arena, brackets, phrases
from dikast.prompts.dialects.label import NOUN
from dikast.prompts.dialects.marked import alone
from dikast.prompts.dialects.statements import Grade, Sentence, statements
from dikast.prompts.parsed import Reading, Stated, Target

_TAKEN_BACK = re.compile(
    r"(?<!\w)(?:wait|actually|however|but\s(?:overall|in\sthe\send|really|my|I)|then\sagain"
    r"|on\s(?:second\sthought|reflection|closer)|reconsider|correction|scratch\sthat|mistaken"
    r"|change(?:d)?\smy|revis(?:e|ed|ing))(?!\w)",
    re.I,
)
_HEADING = re.compile(
    rf"(?:^|\n)[ \t]{{0,3}}+(?:#{{1,6}}[ \t]{{0,4}}+(?:instructions?|input|question|task)|#[ \t]{{0,4}}+{NOUN})\b", re.I
)
# The heading of the part about one response: "### Response A", "Evaluation of Assistant B's answer:".
_PART = phrases.compiled(
    r"(?:^|\n)[ \t]{0,3}+(?:#{2,6}|[*_]{1,3}|\d{1,2}[.)])?[ \t*_]{0,4}+"
    r"(?:(?:evaluation|assessment|analysis|review|discussion|judge?ment)\s(?:of|for)\s(?:the\s)?)?",
    rf"{NOUN}\s{{0,2}}+{phrases.LEAD}(?P<letter>[AB12])(?!\w){phrases.SHUT}(?:['’]s\s(?:\w{{1,12}}\s)?\w{{1,12}})?",
    r"[ \t]{0,2}(?:\([^()\n]{1,40}\)[ \t]?)?[*_]{0,3}:?[*_]{0,3}[ \t]{0,2}(?=\n)",
)
_CONCESSION = re.compile(r"[\s*_.]{1,6}(?:though|although|while|whereas|even\sthough)\s", re.I)
_TURN = re.compile(
    r"[\s*_.,;)—–-]{1,8}(?:however|but|still|yet|though|that\s(?:said|being\ssaid)|nevertheless|nonetheless)(?!\w),?",
    re.I,
)
_IF = re.compile(r"(?<!\w)if(?!\w)", re.I)  # "if pressed, I would go for B" leaves the tie
_NAMED = phrases.compiled(rf"(?<!\w)(?:{NOUN}\s{{0,2}}+{phrases.LEAD}|(?=(?-i:[AB])))(?P<letter>[AB12])(?!\w|['’])")
_CONCEDED = re.compile(
    r"[\s*_.,;)\]—–-]{1,6}(?:though|although|while|whereas|even\sthough)\s\W{0,6}(?:the\s|\w{1,12}\s)?\Z", re.I
)
_OR = re.compile(r"[\s.,\"'”’*_`)\]]{0,8}or[\s\"'“‘*_`(\[]{0,8}", re.I)
_RANK: dict[Grade, int] = {"conceded": -1, "loose": -1, "plain": 0, "concluding": 1, "announced": 2, "label": 3}
_ENDS = re.compile(r"[ .\n]{0,40}+\Z")
_OPENING = re.compile(r"[*_`]{0,3}+\.?[*_`]{0,3}+(?:[ \t]{0,4}+\n|[ \t])")
_WHOLLY_EVEN = re.compile(r"(?:equally\sgood|tie|tied|draw|equal)\Z", re.I)
_LOOSE = "what leads to the comparison is not known to announce a verdict"
_CLOSING = 400  # last characters in which a conclusion that both are alike counts as the verdict
_SENTENCE = 400  # maximum characters of a sentence
_NEXT = re.compile(r"[ .;*_]{1,6}(?:(?:my|the)\s)?", re.I)  # nothing between two sentences
_SENTENCE_END = re.compile(r"[.!?;]\s|\n")


def read_prose(text: str, target: Target) -> Reading:
    """The verdict of a comparison in plain sentences, by the rules above; the feedback is the whole reply."""
    if target.scale is not None:
        return Reading(None, "the dialect 'prose' reads comparisons only")
    whole = alone(text, target)
    if whole is not None:
        return Reading(whole)
    return weigh(text, sentences(text), target)


def weigh(text: str, found: list[Sentence], target: Target) -> Reading:
    """The statement that counts among those found in the text, in their order; none if they are ambiguous."""
    conceded = [each for each in found if each.grade == "conceded"]
    loose = [each for each in found if each.grade == "loose"]
    found = [each for each in found if each.grade not in ("conceded", "loose")]
    chosen = _headline(text, found) or _last(text, found)
    if chosen is None:
        return Reading(None, "no sentence says which one is better" if not loose else _LOOSE)
    others = tuple(each for each in found if each.slot != chosen.slot)
    reason = (
        _unsure(text, chosen, others)
        or _unfinished(text, chosen)
        or _concedes_all(text, chosen, conceded)
        or _turns_to_one(text, chosen)
    )
    against = next((each for each in loose if each.slot != chosen.slot and each.start >= chosen.end), None)
    if (
        not reason
        and against is not None
        and (chosen.grade in ("plain", "label") or _SENTENCE_END.search(text, chosen.end, against.start) is None)
    ):
        reason = f"what follows the verdict says the opposite: {text[against.start : against.end]!r}"
    if reason:
        return Reading(None, reason)
    earlier = tuple(_stated(text, each, target) for each in found if each is not chosen)
    return Reading(_stated(text, chosen, target), feedback=text.strip(), earlier=earlier)


def firmest(text: str, *, limited: bool = False) -> Sentence | None:
    """The last of the most firmly stated verdicts in words or brackets, if there are any; `limited` as `statements`."""
    said = (each for each in sentences(text, limited=limited) if each.grade != "conceded")
    return max(said, key=lambda each: (_RANK[each.grade], each.start), default=None)


def concession(rest: str) -> Sentence | None:
    """The verdict that the text right after a label concedes: "[[A]], though B is better"."""
    return next(
        (each for each in sentences(rest) if each.grade == "conceded" and _CONCEDED.match(rest, 0, each.start)), None
    )


def sentences(text: str, *, limited: bool = False) -> list[Sentence]:
    """Every verdict in words or brackets, in order; repetitions of the choices are left out."""
    found = sorted({*statements(text, limited=limited), *_labels(text)}, key=lambda each: (each.start, each.end))
    echoes = set()
    for i, (one, two) in enumerate(pairwise(found)):
        gap = text[one.end : two.start]
        if "label" in (one.grade, two.grade):
            continue
        if one.slot != two.slot and len(gap) < 40 and _OR.fullmatch(gap):
            echoes |= {i, i + 1}
    kept = [each for i, each in enumerate(found) if i not in echoes and not _on_the_way(text, each)]
    return kept or [each for each in found[:1] if _opens_even(text, each)]


def _opens_even(text: str, each: Sentence) -> bool:
    """Whether the reply opens with a tie in a line of its own, or with "equally good" as a sentence of its own."""
    if each.slot != "tie" or text[: each.start].strip(" \n\t*_`#"):
        return False
    whole = _OPENING.match(text, each.end)
    return whole is not None and ("\n" in whole[0] or _WHOLLY_EVEN.search(text, each.start, each.end) is not None)


def _labels(text: str) -> list[Sentence]:
    pair = Target()
    read = [*arena.labels(text, pair), *brackets.labels(text, pair)]
    return [Sentence(each.label, each.start, each.end, "label") for each in read if each.label is not None]  # type: ignore[arg-type]  # a pair's labels are slots


def _on_the_way(text: str, each: Sentence) -> bool:
    """Whether a tie in one respect is stated before the comparison ends."""
    if each.slot != "tie" or each.grade in ("announced", "label"):
        return False
    return len(text) - each.end > _CLOSING if each.concludes else _ENDS.match(text, each.end) is None


def _stated(text: str, each: Sentence, target: Target) -> Stated:
    label = each.slot if each.slot in target else None
    return Stated(label, text[each.start : each.end], each.start, each.end, words=each.grade != "label")


def _unsure(text: str, chosen: Sentence, others: tuple[Sentence, ...]) -> str:
    """Why the chosen statement is not reliable; "" if it is."""
    for each in others:
        if each.start >= chosen.end and _RANK[each.grade] < _RANK[chosen.grade]:
            continue
        if each.grade == chosen.grade == "label":
            continue  # alternatives and corrections of labels are handled for all dialects together
        low, high = sorted((each, chosen), key=lambda one: one.start)
        if each.grade == chosen.grade and (each.grade == "plain" or _NEXT.fullmatch(text, low.end, high.start)):
            return f"two sentences contradict each other: {text[low.start : high.end][:120]!r}"
        if high.start - low.end < _SENTENCE and not _SENTENCE_END.search(text, low.end, high.start):
            return f"one sentence states two verdicts: {text[low.start : high.end][:120]!r}"
        if each.end <= chosen.start and _RANK[each.grade] > _RANK[chosen.grade]:
            return f"a remark at the end contradicts the verdict {text[each.start : each.end]!r}"
    return ""


def _concedes_all(text: str, chosen: Sentence, conceded: list[Sentence]) -> str:
    """Why not, if the sentence of the chosen statement, or the next, concedes that the other one is better."""
    for each in conceded:
        low, high = sorted((each, chosen), key=lambda one: one.start)
        gap = text[low.end : high.start]
        near = len(gap) < _SENTENCE and _SENTENCE_END.search(gap) is None
        if each.slot != chosen.slot and (near or (low is chosen and _CONCESSION.fullmatch(gap))):
            return f"the verdict concedes the opposite: {text[low.start : high.end][:120]!r}"
    return ""


def _turns_to_one(text: str, chosen: Sentence) -> str:
    """Why not, if the sentence after a tie turns to one of the responses alone: "Tied. However, A has the edge"."""
    turn = _TURN.match(text, chosen.end) if chosen.slot == "tie" else None
    if turn is None:
        return ""
    sentence = _SENTENCE_END.split(text[turn.end() : turn.end() + _SENTENCE], maxsplit=1)[0]
    if len({_slot_of(match) for match in _NAMED.finditer(sentence)}) != 1 or _IF.search(sentence):
        return ""
    return f"what follows the tie turns to one of the two: {sentence.strip()[:120]!r}"


def _unfinished(text: str, chosen: Sentence) -> str:
    """Why not, if the verdict is in the part about one response, before the part about the other."""
    if chosen.grade == "label":
        return ""
    before = {_slot_of(match) for match in _PART.finditer(text, 0, chosen.start)}
    after = next((match for match in _PART.finditer(text, chosen.end) if _slot_of(match) not in before), None)
    if len(before) != 1 or after is None:
        return ""
    return f"the verdict stands before the comparison is over: {after[0].strip()[:60]!r} follows"


def _slot_of(part: re.Match[str]) -> str:
    return "A" if part["letter"] in "Aa1" else "B"


def _headline(text: str, found: list[Sentence]) -> Sentence | None:
    """The opening verdict, if it is a separate sentence and nothing after it withdraws it.

    A slip in its closing repetition ("So A is better" after arguing for B) does not withdraw it.
    """
    if not found or found[0].grade != "plain" or found[0].slot == "tie" or text[: found[0].start].strip(" \n\t*_`#"):
        return None
    first = found[0]
    if any(each.slot != first.slot and each.grade != "concluding" for each in found):
        return None
    alone_there = re.match(r"[*_`]{0,3}(?:[.!]|\s*\n|$)", text[first.end :])
    return first if alone_there and not _TAKEN_BACK.search(text, first.end) else None


def _last(text: str, found: list[Sentence]) -> Sentence | None:
    concluded = next((each.end for each in found if each.concludes), None)
    over = _HEADING.search(text, concluded) if concluded is not None else None
    stop = over.start() if over else len(text)
    return next((each for each in reversed(found) if each.end <= stop), None)
