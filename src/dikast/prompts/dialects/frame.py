"""The words around a label: whether the words before and after it are compatible with a verdict.

A label alone does not say what it means: "The winner is [[A]]", "The loser is [[A]]", "Style: [[A]]". Few words
announce a verdict, any others may announce something else: a label counts only after known words, after a sentence
about the responses, or after no words at all. The same words before another label state the verdict again.
"""

import re

from dikast.core.scale import Scale
from dikast.prompts.dialects.label import END_TOKEN, NOUN
from dikast.prompts.dialects.phrases import any_of, compiled
from dikast.prompts.parsed import Stated, Target


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_ANNOUNCING = _words(
    """
    a an the my our this that these it its it's is are be been was i we i'd i'll i've we'd would will must have has to
    of for with at as on in by and or but yet so thus therefore hence then now here again after from between two both
    all verdict verdicts decision judgment judgement judge judging label score rating rate rated grade graded mark
    result answer choice pick vote preference outcome evaluation assessment conclusion summary output json object
    response responses assistant model candidate option one winner winning better best superior preferred preferable
    stronger choose select prefer say give go award assign conclude settle decide rule call name declare deserve
    deserves get gets earn earns receive receives end short arrive total overall final finally ultimately consequently
    considered considering taken together balance whole everything things given above which goes just still also once
    more that's let's return respond reply provide stands stand step repeat boxed think believe feel evaluate assess
    determine find observe reason reasons analysis comparison careful consideration into account i'm clearly slightly
    significantly marginally narrowly definitely certainly strongly accordingly obviously evidently undoubtedly
    decidedly substantially considerably moderately simply truly personally confidently somewhat much far ranking
    """
)
# Words among them when a verdict is stated again, after the first one.
_AGAIN = _words(
    """
    edit edited update updated correction corrected correct right actually rather instead no nope nah wait hold sorry
    oops hmm mean meant make makes making change changed revise revised lower raise let me should said put worth fair
    view think believe though however only really merit merits warrant warrants clearly reconsider be read raised
    lowered honestly frankly clear note please remember oh well ha going minus deduction deductions penalty adjusted
    adjustment reduced typo
    """
)
_OF_TIES = _words("tie tied draw equal equally same good relatively roughly essentially")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+(?:['’][a-z]+)?|[\u4e00-\u9fff]+|[^\W\d_]+")
_CHINESE = re.compile("最终|最后|我的|判决|裁决|结论|评分|分数|答案|选择|因此|所以|总体|综上|判断|评判|结果|是|为|的")
_ODD_SIGN = re.compile(r"[!?<>~≠≈≤≥%&^+]")
_QUOTE = re.compile('["“”]')
_ARROW = re.compile(r"[=-]+>|→")
_SET_PHRASES = compiled(
    r"(?<!\w)(?:to\ssum\sup|here\syou\sgo|(?<=json\s)(?:that\s)?(?:the\suser|you)\s(?:asked|requested)",
    r"|(?:there\sis|I\shave)\sno\s(?:doubt|question)|(?:without|beyond)\s(?:an?\s|any\s)?doubt|in\smy\s(?:opinion|view)",
    r"|it\s(?:follows|is\s(?:clear|evident|obvious|apparent|fair\sto\ssay)|can\sbe\s(?:said|concluded))",
    r"|(?:according\sto|based\son|by)\s(?:the|these|this)\s(?:rubric|criteri(?:a|on)|scale|guidelines)",
    r"|(?:on\s)?(?:an?\s)?(?:second|closer|long|longer|final)\s",
    any_of("readings?, looks?, thoughts?, reflection, inspection, pass"),
    r")(?!\w)",
)
_SENTENCE = re.compile(r"[.!?;…][\"'”’*_)\]]{0,4}\s|[。！？；]|(?<=[^.\s])\.\.\.")
_EXAMPLE = re.compile(r"(?:\be\.g\.|\bfor (?:example|instance)|\bsuch as)[\s:,*_`\"'(]*$", re.I)
_BULLET = re.compile(r"[\s>*_`#|+•–—=$-]*(?:\d{1,2}[.)][ \t])?")
_CONCLUDES = re.compile(r"(?<!\w)(?:so|therefore|thus|hence)(?!\w)", re.I)
_REASON = compiled(
    r"[\s*_]*",
    any_of(
        "as(?! an? ), since, because, due to, given, based, considering, weighing, taking, having, after, unlike,"
        "although, though, even though, while, despite"
    ),
    r"(?!\w)",
)
_ABOUT = compiled(
    rf"(?<!\w)(?:{NOUN}s?\s{{0,2}}[*_`\"'“(\[]{{0,3}}[AB12]|they|both|neither|the\s(?:first|second)(?=\s)|(?-i:B)|(?<=\w\s)(?-i:A))(?!\w)"
)
_BOTH = compiled(rf"[\s*_]*(?:both|they|the\stwo)(?:\s{NOUN}s)?\s(?!are|is|have|say)\w{{3,12}}\s")
_BAD = any_of(
    "worse, worst, weaker, weakest, inferior, loser, loses, lost, losing, lesser, poorer, poor, bad, wrong, incorrect,"
    "fails?, failed, flawed, rejected?, avoid(?:ed)?, eliminated?, discard(?:ed)?, disqualified, ruled out, last,"
    r"runner-?up, second[ -](?:best|place), not|\w{1,8}n['’]t, never, cannot, no, less, points off, least"
)
_BAD_WORD = compiled(rf"(?<!\w){_BAD}(?!\w)")
# Words that need a complement: the label is a part of the sentence, not a marker beside it.
_TAKES = compiled(
    r"(?:[:=–—-]|(?<!\w)",
    any_of(
        r"is, are, was, be, been, being, to, as, for, of, on, a, an, the, than, at, from, by, with, that, it, this,"
        "gives?, gave, gets?, got, earns?, chooses?, chose, choosing, picks?, picked, say, says, said, select, prefer,"
        "award, assign, deserves?, reach, miss(?:es)?, write, output, answer, avoid, reject, discard, eliminate"
    ),
    r")[\s*_`\"'“(\[:]*\Z",
)
_CLOSERS = r"[*_`~\"'”’»)\]}>]{0,8}"
_OVER = re.compile(rf"{_CLOSERS}[ \t]{{0,4}}(?:$|[\r\n\\]|\$|\{{\"|[.](?!\d)|[!。！…]|\||{END_TOKEN}|```)", re.I)
_EXPLAINED = re.compile(
    rf"{_CLOSERS}[ \t]{{0,4}}(?:,(?!\d)|[;，；(（–—]|\[(?!\[)|[:：](?![ \t]*[\d*_]*\d)|-(?![ \t]?[\d>]))[ \t]*"
)
_GOES_ON = (
    rf"{_CLOSERS}[ \t]{{1,4}}(?:(?-i:(?=[^\Wa-z\d_]))|"  # a new sentence, or words that explain
    + any_of(
        r"because, since, as(?! (?:if|bad)), due to, given, based on, overall, here, it is, in"
        r" (?:conclusion|summary|the end|my|this|total)"
    )
    + r"(?!\w)|for\s(?:being|its|the|this|these)(?!\w)|by(?!\s(?:default|mistake|accident)(?!\w))(?!\w)|"
)
_IS_NAMED = (
    r"(?:is|was)\s(?:(?:clearly|definitely|overall|therefore|thus|the|my|a|slightly|much|significantly|final)\s){0,4}"
)
_ON = compiled(
    _GOES_ON,
    r"better(?!\w)|deserves\sto\swin(?!\w)|wins(?=\s*(?:[.,;!\n]|$|because|since|as|by|over|here|overall))|",
    _IS_NAMED,
    any_of("better, best, superior, stronger, preferable, preferred, winner, verdict, choice, pick, vote, answer"),
    r"(?!\w))",
)
_UNIT = compiled(rf"{_CLOSERS}[ \t]{{1,4}}(?:points?|stars?|marks?)(?!\w)")
_ON_SCORE = compiled(
    _GOES_ON,
    r"(?:of|out\sof|on\s(?:a|the)\sscale)(?!\w)|/|",
    _IS_NAMED,
    any_of("(?<=my )(?:score|rating|grade), (?<=final )(?:score|rating|grade), verdict, choice, answer, decision"),
    r"(?!\w))",
)
_LOOK_BACK, _LOOK_ON, _REACH = 400, 300, 2000
_LATER = compiled(r"(?:and\s)?(?:after|having|with)(?!\w)")  # begins lines that lead from a verdict to the next
_SHORT = 4  # words of a heading, or of a line that leads to a label in the next line


def unframed(text: str, stated: Stated, target: Target, *, marked: bool, since: int = 0) -> str:
    """Why the words before or after the label rule it out as the verdict; "" if they do not.

    `marked`: the label has a marker of its own (`[RESULT]`), beside which prose may simply end. `since`: the end of the
    previous label, 0 for the first one.
    """
    return _lead(text, stated, target, marked=marked, since=since) or _tail(text, stated, target)


def announced(words: str, *, again: bool = False, tie: bool = False) -> bool:
    """Whether every word is one that announces a verdict, with `again` one that replaces another, or a `tie`."""
    if _ODD_SIGN.search(words):
        return False
    return all(_known(each, again, tie) for each in _WORD.findall(_SET_PHRASES.sub(" ", words)))


def _known(word: str, again: bool, tie: bool) -> bool:
    folded = word.casefold().replace("’", "'")
    if folded in _ANNOUNCING or (again and folded in _AGAIN) or (tie and folded in _OF_TIES):
        return True
    return not folded.isascii() and not _CHINESE.sub("", folded)


def _lead(text: str, stated: Stated, target: Target, *, marked: bool, since: int) -> str:
    at = stated.start + len(stated_text := text[stated.start : stated.end]) - len(stated_text.lstrip())
    line = text[max(0, since, at - _LOOK_BACK) : at].rpartition("\n")[2]
    if _EXAMPLE.search(line):
        return f"{stated.said.strip()!r} is an example, not the verdict"
    clause = _SENTENCE.split(line)[-1]
    clause = clause[_BULLET.match(clause).end() :]  # type: ignore[union-attr]  # it matches nothing, too
    again, tie = since > 0, stated.label is not None and (stated.label == "tie" or "=" in stated.label)
    if not _WORD.search(clause):
        above = "" if _WORD.search(line) else _above(text[since:at])
        known = not above or announced(above, again=again, tie=tie) or (again and _LATER.match(above))
        return "" if known else f"what {above!r} names is not known to be the verdict"
    *before, last = re.split("[,，]", clause)
    if announced(last, again=again, tie=tie):
        turned = again and text[since:at].endswith(line) and _WORD.search(last) is not None
        if (
            turned
            or _CONCLUDES.search(last)
            or all(announced(e, again=again, tie=tie) or _leads_on(e, target) for e in before)
        ):
            return ""
    elif (_leads_on(clause, target) and not _BAD_WORD.search(clause) and "+" not in clause) or (
        marked and not _TAKES.search(clause) and len(_WORD.findall(clause)) > _SHORT
    ):
        return ""
    return f"what leads to {stated.said.strip()!r} is not known to announce a verdict: {clause.strip()[-80:]!r}"


def leads(clause: str, *, even: bool = False) -> bool:
    """Whether a sentence about the responses may begin with these words and be a verdict on them: a tie, if `even`."""
    if even and _BOTH.match(clause):
        return True
    *before, last = re.split("[,，]", clause)
    if not announced(last, again=True):
        return False
    reasoned = before and _REASON.match(before[0]) is not None
    return reasoned or all(announced(each, again=True) or _ABOUT.search(each) for each in before)


def _leads_on(part: str, target: Target) -> bool:
    """Whether a part of the sentence before the label gives reasons, or is about the responses."""
    return _REASON.match(part) is not None or (_of_pairs(target) and _ABOUT.search(part) is not None)


def _of_pairs(target: Target) -> bool:
    return target.scale is None or target.scale.labels[0] == "B>>A"


def unannounced_above(before: str) -> bool:
    """Whether the line above leads to the next one with words that do not announce a verdict: "Clarity:"."""
    lines = [line for line in before[-_LOOK_BACK:].rstrip().split("\n") if line.strip(" \t*_`~>-=")]
    last = _SENTENCE.split(lines[-1].strip(" \t*_`"))[-1] if lines else ""
    above = last if last[-1:] in (":", "：") or _TAKES.search(last) else _above(before)
    return bool(above) and not announced(above[_BULLET.match(above).end() :], again=True)  # type: ignore[union-attr]


def _above(before: str) -> str:
    """The line above, if it is short and leads to the next one: it ends in a colon or "is", or is a heading."""
    lines = before[-_LOOK_BACK:].rstrip().split("\n")
    lines = [line for line in lines if line.strip(" \t*_`~>-=") and not line.startswith(("```", ">"))]
    line = lines[-1].strip(" \t*_`") if lines else ""
    if not line or _SENTENCE.search(line) or len(_WORD.findall(line)) > _SHORT:
        return ""
    heading = lines[-1].lstrip()[:1] == "#" or (lines[-1].strip()[:2] == lines[-1].strip()[-2:] == "**")
    return line if heading or line[-1] in ":：" or _TAKES.search(line) else ""


def _tail(text: str, stated: Stated, target: Target) -> str:
    at, rest = stated.end, text[stated.end : stated.end + _LOOK_ON]
    unit = None if _of_pairs(target) else _UNIT.match(rest)
    rest = rest[unit.end() :] if unit else rest
    explained = _EXPLAINED.match(rest)
    why = f"what follows {stated.said.strip()!r} is not known to leave it the verdict: {text[at : at + 80].strip()!r}"
    if _OVER.match(rest):
        return ""
    if explained is None:
        follows = _ON if _of_pairs(target) else _ON_SCORE
        return "" if follows.match(rest) and not _negative(rest, target) else why
    return why if _negative(rest[explained.end() :], target) else ""


def _negative(rest: str, target: Target) -> bool:
    """Whether the text after the label says that an unnamed response is the worse one."""
    sentence = _SENTENCE.split(rest.partition("\n")[0])[0]
    found = _WORSE.search(sentence) if _of_pairs(target) else None
    return found is not None and _NAMED.search(sentence) is None


_WORSE = compiled(r"(?<!\w)", any_of("worse, worst, weaker, weakest, inferior, loser, loses, lesser"), r"(?!\w)")
_NAMED = compiled(rf"(?<!\w)(?:{NOUN}\s|other|first|second|latter|former|(?-i:[AB])(?!\w)|than(?!\w))")


# --- the same words, before another label
_FINISHED = (
    rf"(?=[*_`\"'”’)\]]{{0,4}}[ \t]{{0,4}}(?:[.,;!:)]|\n|$|{END_TOKEN}|/\s?\d|(?:"
    + any_of("instead, now, then, overall, is fair, because, since, and not, points?, stars?, marks?, (?:out )?of \\d")
    + r")(?!\w)))"
)
_SO_TOO = compiled(
    r"\w\W{1,3}(?:but|and)\sso\s(?:is|was|does|did)(?!\w)"
)  # of another response: "A is right, but so is B"
_NUMBER = re.compile(rf"(?<![\w.,/-])(?P<said>\d{{1,3}}(?:\.\d{{1,3}})?){_FINISHED}", re.I)
_WHOLE_OF = re.compile(r"\d\s?(?:/|(?:out\s)?of)\s?\Z")
_SPELT = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8"}
_SPELT_NUMBER = re.compile(rf"\s*(?P<said>{'|'.join(_SPELT)})\s(?:points?|stars?|marks?)(?=[\s.!]*(?:\n|$))", re.I)
_OPTION = re.compile(
    rf"(?<![\w.])(?:the\s)?(?:{NOUN}\s{{0,2}})?[*_`\"'“(\[]{{0,4}}(?P<said>(?-i:[AB])|tie|draw)(?!\w)"
    r"(?=[*_`\"'”’)\]]{0,4}[ \t]{0,4}(?:[.,;!)]|\n|$|(?:instead|now|then|overall|because|since|it\sis)(?!\w)))",
    re.I,
)


def restated(rest: str, label: str | None, target: Target) -> str:
    """The text in which words that announce a verdict lead to another one than `label`; "" if there is none."""
    scale = target.scale
    for match in (_OPTION if scale is None else _NUMBER).finditer(rest):
        sentence = _SENTENCE.split(rest[max(0, match.start() - _LOOK_ON) : match.start()].rpartition("\n")[2])[-1]
        if scale is not None:
            said = scale.match(match["said"])
            if (
                _WHOLE_OF.search(sentence)
                or said == label
                or (said is None and "answer" in sentence)
                or not sentence.strip()
            ):
                continue  # a number alone in its line may be an entry of a list
        else:
            slot = {"a": "first", "b": "second"}.get(match["said"].casefold(), "tie")
            alone = not sentence.strip() and (
                not rest[: match.start()].strip() or rest[match.end() :][:1] not in (".", "!")
            )
            if slot == label or alone:
                continue  # a name alone in its line may be a heading
        if _SO_TOO.search(sentence):
            continue
        last = sentence.rpartition(",")[2]
        sentence = last if _CONCLUDES.search(last) else sentence
        if len(_QUOTE.findall(sentence)) % 2 == 0 and announced(_ARROW.sub(" ", sentence), again=True):
            return (sentence + match[0]).strip()
    return _points(rest, label, scale) if scale is not None else ""


def _points(rest: str, label: str | None, scale: Scale) -> str:
    for line in _SENTENCE.split(rest.replace("\n", ". ")):
        said = _SPELT_NUMBER.match(line)
        if said and scale.match(_SPELT[said["said"].casefold()]) not in (None, label):
            return line.strip()
    return ""
