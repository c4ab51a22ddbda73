"""Verdicts that a reply only mentions: in a quoted line, in quotation marks, or as a statement of somebody else.

A quotation is not a statement. It is the judge's own if it is alone on its line, or if words such as "my verdict is"
lead to it and nothing follows it.
"""

import re
from bisect import bisect_right

from dikast.prompts.dialects.label import NOUN
from dikast.prompts.dialects.phrases import LEAD, SHUT, VERDICT, any_of, compiled
from dikast.prompts.parsed import Reading

_LINE = 400  # characters of a line that are examined, on either side
_QUOTED_LINE = re.compile(r"[ \t]{0,3}>")
# Opening and closing quotation marks. An apostrophe is inside a word or right after it.
_MARKS = (
    (re.compile('"'), re.compile('"')),
    (re.compile("[“„]"), re.compile("[”“]")),
    (re.compile("[«‹]"), re.compile("[»›]")),
    (re.compile("[「『]"), re.compile("[」』]")),
    (re.compile(r"(?:(?<=^)|(?<=[\s(:]))['‘](?=\S|\Z)"), re.compile(r"['’](?!\w)")),
)
_MARK = re.compile("[\"'“„«‹‘「『]")
_OPENING = "\"'“„«‹‘「『"
_NOTHING = re.compile(r"[\s*_`#.,;:!()\[\]-]*\Z")
_SENTENCE_OVER = re.compile(r"[*_`)\]\s]{0,6}(?:[.;!]|\Z)")
_SCORE = any_of(
    "verdict, decision, judge?ment, score, rating, grade, label, preference, conclusion, evaluation, result"
)
_LEADS_TO_OWN = compiled(
    rf"(?<!\w)(?:(?:{VERDICT}|{_SCORE}|answer|choice)(?:\s(?:is|would\sbe))?",
    r"|(?:I|we)(?:['’](?:d|ll)|\swould|\swill|\smust)?(?:\s\w{1,12}ly)?\s",
    any_of(
        "say, give, choose, pick, vote(?: for)?, go (?:with|for), answer, conclude, award, select, settle on, decide"
    ),
    r"(?:\s(?:it|this|that|for|on|an?|the|with)){0,2}|therefore|thus|hence|so|overall|finally)[\s:,*_=]{0,4}\Z",
)
_LIKE_ME = any_of(
    "judges?, evaluators?, graders?, annotators?, raters?, reviewers?, referees?, assessors?, examiners?, critics?,"
    "experts?"
)
_PEOPLE = any_of(
    "colleagues?, predecessors?, users?, authors?, teachers?, students?, readers, someone, somebody, others, people"
)
_OTHER = any_of("previous, prior, earlier, former, other, another, old, first, second, third, last, fellow, human")
_SAID = any_of(
    "says?, said, claim(?:s|ed)?, states?, stated, argue[sd]?, asserts?, insists?, writes?, wrote, reads?, suggests?,"
    "arrive[sd]? at, ends? up (?:with|at), concluded?, concludes, closed? with, closes with, ends? with, ended with,"
    "tries, tried, begs?, demands?, quotes?,"
    r"asks? (?:me|us|for the label|to)"
)
_GAVE = any_of(
    "gave, gives?, assigns?, assigned, awards?, awarded, rated, rates, chose, chooses, picked, picks, voted, answered,"
    "answers, replied, responded, puts? it, settled on, had, scored, decided, called, prefer(?:s|red)?,"
    "favou?r(?:s|ed)?"
)
_EACH = r"(?:\s(?:has|had|have|once|itself|also|only|\w{1,12}ly)){0,2}\s"
_REPORTED = compiled(
    # statements of other people and of texts
    rf"(?<!\w)(?:(?:{_LIKE_ME}|{_PEOPLE}|GPT-?\w{{0,4}}|evaluation|review|note)(?:\s\w{{1,3}}|\s(?:before|above|after)\s\w{{1,8}})?",
    rf"(?:\s\w{{1,12}}\s(?:me|us|it))?{_EACH}(?:{_SAID}|{_GAVE})(?!\w),?",
    rf"|(?<!my\s)(?<!our\s)(?:{NOUN}|text|reply|article|passage|rubric|key|sheet)(?:\s{LEAD}[AB12](?!\w){SHUT})?{_EACH}{_SAID}(?!\w)",
    r"|(?:ask|tell|told|instruct|order|beg|want|urge)(?:s|ed)?\s(?:me|us)\sto(?!\w)",
    # whose verdict it was
    rf"|{_LIKE_ME}\s(?:\d|one|two|three|[A-C])\s?:|(?:{_OTHER}\s{_LIKE_ME}|{_PEOPLE})['’]s?\s(?:\w{{1,12}}\s){{0,2}}(?:{_SCORE}|answer)",
    rf"|(?:the|its|their|his|her|an?)\s(?:previous|prior|earlier|former|other|old)\s(?:\w{{1,12}}\s)?{_SCORE}",
    rf"|{NOUN}\s{LEAD}[AB12]{SHUT}['’]s(?:\s(?:\w{{1,12}}\s){{0,2}}(?:answer|result|solution|conclusion|choice)(?:\s(?:is|was))?)?(?=\s?:?\s?\Z)|(?:for\sexample|an?\sexample|e\.g\.|for\sinstance|such\sas),?)",
    r"(?![^\n]{0,60}(?<!\w)(?:I|we|my|our)(?!\w))[^,.;!?\n]{0,60}\Z",
)
_LEADS_ON = re.compile(r":[*_\s]{0,6}\Z")
_SENTENCE = re.compile(r"(?:[!?;。！？]|(?<!e\.g)(?<!i\.e)\.)[\"'”’*_)\]]{0,4}\s|[。！？]")


def mentioned(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]`, which states a verdict, is a quotation or a statement of somebody else."""
    start += len(text[start:end]) - len(text[start:end].lstrip())
    begin = text.rfind("\n", 0, start) + 1
    if quoted_line(text[begin : begin + 8]):
        return True
    stop = text.find("\n", end) % (len(text) + 1)
    before = text[max(begin, start - _LINE) : start]
    return quoted(before, text[end : min(stop, end + _LINE)]) or _reported(text, begin, before)


def quoted_line(line: str) -> bool:
    """Whether the line is quoted with `>`."""
    return _QUOTED_LINE.match(line) is not None


def quoted(before: str, after: str) -> bool:
    """Whether the text between the two parts of a line is inside quotation marks, and not the judge's own statement."""
    for opens, closes in _MARKS if _MARK.search(before) else ():
        opened = _open(before, opens, closes)
        closed = closes.search(after) if opened is not None else None
        if opened is None or closed is None:
            continue
        lead, rest = before[:opened], after[closed.end() :]
        if _NOTHING.match(lead):
            return _NOTHING.match(rest) is None
        return _LEADS_TO_OWN.search(lead) is None or _SENTENCE_OVER.match(rest) is None
    return False


def _open(before: str, opens: re.Pattern[str], closes: re.Pattern[str]) -> int | None:
    """The position of the quotation mark that is still open at the end."""
    begins = [match.start() for match in opens.finditer(before)]
    if opens.pattern == closes.pattern:
        return begins[-1] if len(begins) % 2 else None
    ends = [match.start() for match in closes.finditer(before)]
    if not begins or (ends and bisect_right(ends, begins[-1]) < len(ends)):
        return None
    return begins[-1]


def _reported(text: str, begin: int, before: str) -> bool:
    clause = _SENTENCE.split(before)[-1]
    if _NOTHING.match(clause.rstrip(_OPENING)) and begin:
        above = text[max(0, begin - _LINE) : begin].rstrip().rpartition("\n")[2]
        led = _LEADS_ON.search(above) or (clause and clause[-1] in _OPENING)
        clause = _SENTENCE.split(above)[-1] if led else clause
    return _REPORTED.search(clause.rstrip(" \t*_`([" + _OPENING)) is not None


def without_mentions(text: str, reading: Reading, last: int) -> str:
    """The text with blanks in place of each of the `last` labels that it only mentions.

    Sentences have been looked at before.
    """
    given = (*reading.earlier, *(() if reading.stated is None else (reading.stated,)))
    labels = sorted((each for each in given if not each.words), key=lambda each: each.start)[-last:]
    kept, at = [], 0
    for each in labels:
        if mentioned(text, each.start, each.end) and each.start >= at:
            kept += [text[at : each.start], re.sub(r"[^\n]", " ", text[each.start : each.end])]
            at = each.end
    return "".join((*kept, text[at:])) if kept else text
