"""Why a comparison is not a verdict: doubts, denials, conditions, hearsay, concessions, afterthoughts.

`under` looks at the clause before the comparison, `taken_away` at what follows it in its sentence.
"""

from typing import Literal

from dikast.prompts.dialects.label import NOUN
from dikast.prompts.dialects.phrases import END_OF_SENTENCE, LEAD, SHUT, WHOLE, any_of, compiled

_UP_TO = r"[^,.;:!?\n]{0,80}$"
_HEDGE = any_of(
    "whether, if, unless, had, suppose, assuming, imagine, neither, nor, either, hardly, barely, unclear, which, who,"
    "what, why, rather than, instead of, close to, almost, nearly, not, anything but, far from, perhaps, maybe,"
    r"possibly, hard to \w{1,12}, choices are, options are, choose between, might, may, could, can, used to, at first,"
    "initially, originally, wonder(?:ed|ing)?, question(?:ed|ing)?, dispute[sd]?, deny, denies, denied,"
    "reject(?:s|ed)?, disagree[sd]?, hesitate, reluctant, refuse[sd]?, decline[sd]?,"
    "un(?:convinced|sure|certain|likely|true), s[ck]eptical, wrongly, falsely, mistakenly, pretend, rarely, seldom,"
    r"(?:told|asked|instructed|ordered|paid) to say, no way, by no means, under no circumstances, fail(?:s|ed)? to see,"
    "arguably, supposedly, allegedly, seemingly, reportedly, apparently"
)
_DOUBT = r"(?<!no\s)(?<!not\s)(?<!a\s)(?<!any\s)(?<!without\s)(?<!beyond\s)doubt(?:s|ed|ful|ing)?"
_WOULD = (
    r"(?<!\wi\s)(?:(?<!i\s)(?<!we\s)would\s(?:say|argue|claim|think)|would\shave\sme|would\sprefer(?!\sto\ssay)"
    r"|would\shave(?!\w))"
)
_DENIED = any_of(
    r"n['’]t, never, cannot, nobody, difficult to, impossible to, wrong to, tempt\w{1,4} to, unfair to, too early to"
)
_THINK = any_of(
    "mean, say, clear, certain, sure, obvious, believe, think, true, claim, tell, argue, find, feel, follow,"
    "conclude, imply, case, decide, agree, necessarily, settled"
)
_PEOPLE = (
    rf"(?:(?:the\s)?{NOUN}s?\s{{0,2}}+{LEAD}[AB12](?!\w){SHUT}(?:['’]s\s\w{{1,20}})?|"
    + any_of(
        r"(?:(?:the|my|our|an?|one|another|its|his|her) )?(?:\w{1,12} )?(?:user|author|question|text|article|passage|"
        "prompt|instruction|reviewer|writer|judge|evaluator|grader|annotator|rater|referee|colleague|predecessor|critic|expert|"
        "mother), someone,"
        "somebody, some, others, people, many, most, few, no ?one, nobody"
    )
    + ")"
)
_OTHERS = rf"(?:{_PEOPLE}|one|it|he|she|they)"
_KINDS = any_of("people, users, readers, judges, reviewers, annotators, raters, experts, critics, evaluators")
_SAY = any_of(
    "says?, said, claim(?:s|ed)?, states?, stated, argue[sd]?, asserts?, suggests?, concludes?, mentions?, implies,"
    "asks?, asked, thinks?, believes?, prefer, insists?, writes?, wrote"
)
_UNDER = compiled(
    rf"(?:(?<!\w)(?:{_HEDGE}|{_DOUBT}|{_WOULD})|(?<!\w|['’])\w{{0,8}}{_DENIED}(?:\s\w{{1,12}}){{0,2}}?\s{_THINK}",
    rf"|(?<!\w)(?:{_OTHERS}|no\s\w{{1,12}}\s\w{{1,12}})\s(?:\w{{1,12}}ly\s)?{_SAY})(?!\w){_UP_TO}",
)
_CONCESSION = any_of("while, although, though, even though, whereas, despite, notwithstanding, albeit")
_CONCEDED = compiled(rf"(?:(?<!\w){_CONCESSION}|[(\[]\s?(?:but|yet|however))(?!\w){_UP_TO}")
_DECIDE = any_of(
    "choose, chosen, pick, decide, select, say, name, vote, rank, go, give, make, judge, forced, asked, settle"
)
# "If the user wants speed, B is better": the whole sentence depends on its beginning.
_CONDITION = compiled(
    r"(?:^|[,;:(]\s{0,2})[\s*_>-]{0,8}(?:but\s|so\s|and\s|only\s|however,\s|even\s|otherwise,?\s)?",
    rf"(?:if(?!\sI\s(?:(?:had|have|must|need)\s?(?:to\s)?(?:be\s)?{_DECIDE}|must|were)|\swe\s(?:had|compare))|unless|suppose|supposing|assuming|were|in\scase",
    r"|had(?=\s(?!I\s|we\s)\w)|should\sthe|provided(?!\s(?:by|in))|perhaps|maybe|possibly|supposedly|allegedly|reportedly|apparently|as\slong\sas|so\slong\sas|on\scondition|but\sfor",
    rf"|according\sto\s{_OTHERS})(?!\w)",
)
# A clause "that ..." states something only under the words of somebody who concludes it.
_THAT = compiled(rf"(?<!\w)that\s{_UP_TO}")
_CONCLUDED_THAT = compiled(
    r"(?:(?<!\w)(?:I|we)(?:['’](?:d|ll|ve|m|re))?(?:\s\w{1,12}){1,4}",  # verbs of doubt are handled above
    r"|(?:is|was|would\sbe|remains|seems|it|becomes)(?:\s\w{1,12}ly)?(?:\s"
    + any_of("clear, evident, obvious, apparent, plain, certain, safe to say, fair to say, my view, my opinion")
    + r")?|(?:this|it|which|evidence|analysis|comparison|evaluation|all|criteria)\s(?:\w{1,12}ly\s)?",
    any_of("shows?, means?, implies, suggests?, indicates?, follows, confirms"),
    r"|(?:can|could|may)\s(?:\w{1,12}ly\s)?(?:be\s)?(?:said|concluded|conclude|argued|say)",
    r"|(?<!\w)(?:note|noting|remember|remark|observe|no\sdoubt|no\squestion|confidence|certainty)|verdict|decision|conclusion|opinion|view)[\s*_:]{1,4}$",
)
# "With a source, A would be better": hypothetical statements are not verdicts.
_OTHERWISE = compiled(
    r"(?:^|[,;:]\s)[\s*_>-]{0,8}(?:but\s|and\s|overall,\s)?(?:with|without|given|otherwise|for\sa|for\san|in\sa|in\san)(?!\w)"
)
_HYPOTHETICAL = compiled(r"(?<!\w)would\s(?:have\sbeen|be)(?!\w)")
_BEFORE_OR = compiled(r"(?<!\w)(?:or|nor)\s[\s\"'“‘*_`(\[]{0,8}$")

_CLOSED = r"[*_`\"'”’)\]]{0,6}"
_THAN = (
    rf"(?:\s(?:overall|then|{WHOLE}|{NOUN}"
    rf"|(?:than\s)?(?:the\sother|{NOUN}\s{LEAD}[AB12](?!\w){SHUT}|(?-i:[AB])(?!\w)))){{0,2}}"
)
_AFTERTHOUGHT = compiled(
    # attributions and conditions
    rf"^{_CLOSED}{_THAN}(?:\s?[,;(—–-]{{1,2}}\s?|\s)(?:but\s|and\s|only\s|even\s|\w{{1,12}}ly,?\s)?(?:",
    rf"by\s(?:{_PEOPLE}(?:\s{_KINDS})?|(?:a|the)\smajority(?:\sof\s(?:the\s)?\w{{1,15}})?)(?=\s*(?:[.,;:!)\n]|$|but|though|yet))",
    r"|by\s(?:0|zero|no|nothing)(?!\w|\.\d)|(?:just|much|rather|about)\s(?:like|as)\san?(?!\w)|as\sif(?!\w)|(?:is|was)\s(?:just\s|only\s|simply\s)?",
    r"(?:what\s(?!(?:I|we)(?!\w))|how\s|not(?!\w)|(?:an?|the)\s(?:\w{1,12}\s)?(?:claim|view|opinion|thesis|idea|myth|phrase|line)(?!\w))|",
    r"if(?!\s(?:only|slightly|anything|barely|just|not))|unless|provided|assuming|supposing|as\slong\sas|so\slong\sas"
    r"|on\scondition|except|apart\sfrom|aside\sfrom|had\sit|were\sit|according\sto\s",
    rf"{_OTHERS}|(?:or\s)?so\s(?:{_OTHERS}\s)?{_SAY}|{_SAY}\s{_OTHERS})(?!\w)",
    # doubt and denial after a comma
    r"|[,;(—–-]\s?(?:or\s(?:so|not|maybe|perhaps|is|was|does|would|has)|(?:but\s|though\s|although\s|and\syet\s)?(?:",
    r"(?:I['’]m|I\sam|we\sare)\s(?:\w{1,12}\s)?(?:not\s(?:\w{1,12}\s)?(?:sure|certain|convinced|confident)|unsure|uncertain|guessing)",
    r"|I\s(?:have\s(?:my\s)?doubt|doubt|wonder|cannot\sbe\ssure|could\sbe\swrong)\w{0,2}|who\sknows|not\s(?:really|quite)",
    r"|(?:that|this|which|it)(?:['’]s|\sis|\swas|\sseems)\s(?:\w{1,12}ly\s)?"
    r"(?:n['’]t|not\s(?:my|the|true|so|right|what)|wrong|false|untrue|nonsense|absurd|debatable|questionable|unclear|open|a\sguess)",
    rf"|as\s{_PEOPLE}\s(?:would\s|might\s|may\s)?{_SAY}))(?!\w)",
)
_NOT = compiled(r"[\s.,…*_)\]}>-]{1,8}not[\s.!*_]{0,4}(?:\n|$)")

Doubt = Literal["", "conceded", "doubted"]


def under(clause: str, match: str) -> Doubt:
    """The effect of the beginning of the clause on a comparison: none, a concession, or no statement at all."""
    stop = max(clause.rfind(sign) for sign in ",.;:!?\n") + 1  # none of these occurs in what follows
    tail = clause[stop:]
    that = _THAT.search(tail)
    if (
        _UNDER.search(tail)
        or _CONDITION.search(clause)
        or _BEFORE_OR.search(clause)
        or (that is not None and _CONCLUDED_THAT.search(clause[: stop + that.start()]) is None)
        or (_HYPOTHETICAL.search(match) is not None and _OTHERWISE.search(clause) is not None)
    ):
        return "doubted"
    return "conceded" if _CONCEDED.search(tail) else ""


def hypothetical(match: str) -> bool:
    """Whether the comparison is hypothetical."""
    return _HYPOTHETICAL.search(match) is not None


def taken_away(rest: str) -> bool:
    """Whether the rest of the sentence attributes the comparison, makes it conditional, or denies it.

    `rest` may extend beyond the sentence.
    """
    end = END_OF_SENTENCE.search(rest)
    return _AFTERTHOUGHT.search(rest[: end.end()] if end else rest) is not None or _NOT.match(rest) is not None
